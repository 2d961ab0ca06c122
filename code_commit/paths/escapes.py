"""Escapes of a text within a text: a string in JSON or code, a part of a page or of a URL. Each may hold the next."""

import re
from html import unescape

_SIGNS = ("\\", "&", "%", "`")
_ESCAPE = re.compile(
    r"\\(?<!\\\\)\\*(?:[uU](?:0{2,6}|\{0*)(?P<point>[2-7][0-9A-Fa-f])\}?|x(?P<byte>[2-7][0-9A-Fa-f])"
    r"|(?P<octal>0[4-7][0-7]|1[0-7]{2})|(?P<sign>[\"'`/])|(?P<line>n)|[rt](?!oken))"
    r"|&(?:amp;|#38;|#[xX]26;)*"
    r"(?P<entity>(?:quot|apos|lt|gt|equals|colon|#0*(?:10|13|3[2-9]|[4-9]\d|1[01]\d)|#[xX]0*(?:[aA]|[2-7][0-9A-Fa-f]));)"
    r"|\+(?=%[2-7])"
    r"|%(?:25)*(?P<percent>[2-7][0-9A-Fa-f]|0[Aa])(?:\+(?=[%\w]))?(?![^\s/@\"'`<>{}$]{0,144}@[\w.-])"
    r"|`(?=[\"'])",
    re.ASCII,
)
"""Each alternative begins with a character: that takes a tenth of the time. `\\token` is a word, and the escapes in a
URL's password stay, for without them it would end there."""
_MOST_LAYERS = 4


def without_escapes(text: str) -> str:
    """Return the text with each escape of printable ASCII and of line ends undone, through all layers.

    An escape stands in one line: of the lines alone comes what comes of the text.
    """
    for _ in range(_MOST_LAYERS):
        before = text
        if any(map(text.__contains__, _SIGNS)):
            text = _ESCAPE.sub(_plain, text)
        if text == before:
            break
    return text


def _plain(match: re.Match[str]) -> str:
    if code := match["point"] or match["byte"] or match["percent"]:
        return chr(int(code, 16))
    if match["entity"]:
        return unescape(f"&{match['entity']}")
    if match["octal"]:
        return chr(int(match["octal"], 8))
    return match["sign"] or ("\n" if match["line"] else "" if match[0] == "`" else " ")
