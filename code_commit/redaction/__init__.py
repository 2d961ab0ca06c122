"""The Redactor: every byte that leaves the process passes it, and an API key comes out censored.

The specification: only the last two characters of a key are revealed, wherever it appears. A key is recognised
as it is and in the spellings that tools give it: JSON, URL, XML, shell and Python escapes, any letter case,
UTF-16, reversed, hex and octal dumps, base64 at each of its three alignments; also where line wraps, quotes or
colour codes stand between its characters, and when it is split over any number of writes. What it cannot see is
a key that somebody transformed on purpose (encrypted, cut in pieces): the build therefore gets no key to read.
"""

from code_commit.redaction.redactor import Redactor

__all__ = ["Redactor"]
