"""Escapes of a text within a text: a string in JSON or code, a part of a page or of a URL. Each may hold the next."""

import base64
import binascii
import re
from html import unescape

from code_commit.paths.gates import pieces_of
from code_commit.regex import regex

_SIGNS = ("\\", "&", "%", "`")
_ESCAPE = regex(
    r"\\(?<!\\\\)\\*(?:[uU](?:0{2,6}|\{0*)(?P<point>[2-7][0-9A-Fa-f]|0?[9AaDd])\}?|x(?P<byte>[2-7][0-9A-Fa-f]|0[9AaDd])"
    r"|(?P<octal>01[125]|0[4-7][0-7]|1[0-7]{2})|(?P<sign>[\"'`/])|(?P<line>n)|[rt](?!oken))"
    r"|&(?:amp;|#38;|#[xX]26;)*"
    r"(?P<entity>(?:quot|apos|lt|gt|equals|colon|Tab|NewLine"
    r"|#0*(?:9|10|13|3[2-9]|[4-9]\d|1[01]\d)|#[xX]0*(?:[9AaDd]|[2-7][0-9A-Fa-f]));)"
    r"|\+(?=%[2-7])"
    r"|%(?:25)*(?P<percent>[2-7][0-9A-Fa-f]|0[9AaDd])(?:\+(?=[%\w]))?(?![^\s/@\"'`<>{}$]{0,144}@[\w.-])"
    r"|`(?=[\"'])",
    re.ASCII,
)
"""Each alternative begins with a character: that takes a tenth of the time. `\\token` is a word, and the escapes in a
URL's password stay, for without them it would end there."""
_MOST_LAYERS = 4


def without_escapes(text: str) -> str:
    """Return the text with each escape of printable ASCII, tabs and line ends undone, through all layers."""
    return "".join(map(_undo, pieces_of(text)))  # an escape stands in one line, and few lines have one


def _undo(text: str) -> str:
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


def text_in_base64(value: str) -> str | None:
    """Return the text that a value is in base64, None where it is none."""
    try:
        return base64.b64decode(value + "=" * (-len(value) % 4), validate=True).decode()
    except (binascii.Error, UnicodeDecodeError):
        return None
