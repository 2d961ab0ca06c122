"""Embedded images: the base64 in notebooks, drawings and pages, which no LLM reads."""

from collections.abc import Iterator

from code_commit.codebase.text import part_of
from code_commit.regex import regex
from code_commit.views import Part

_LEAST, _SHARE = 1_000, 2  # characters of images in a file, and one part in so many of it, else it is a source file
_PAYLOAD = regex(
    r"\b(?:image|audio|video|application|font)/[\w.+-]+(?:;[\w=-]+)*[\"']?\s*[:;,]\s*\[?\s*(?:base64,\s*)?[\"']?"
    r"(?P<data>(?:[A-Za-z0-9+/=]|\\n|\s|&#1[03];){200,})"
)
_GAP = "[... {:,} characters of an image are not shown here ...]"


def has_images(text: str) -> bool:
    """Tell whether embedded images are most of a text."""
    size = sum(last - first for first, last in _images(text))
    return size >= _LEAST and size * _SHARE > len(text)


def without_images(text: str) -> str:
    """Return a text with a line about each image in place of it."""
    pieces, end = list[str](), 0
    for first, last in _images(text):
        pieces += [text[end:first], _GAP.format(last - first)]
        end = last
    return "".join([*pieces, text[end:]])


def lines_beside_images(text: str) -> Part | None:
    """Return the lines of a file that have no image, None where there are none."""
    ranges, first = list[tuple[int, int]](), 1
    for start, end in _images(text):
        line = text.count("\n", 0, start) + 1
        ranges.append((first, line - 1))
        first = text.count("\n", 0, end) + 2
    ranges.append((first, text.count("\n") + 1))
    part = part_of(text, ranges)
    return part if part.passages else None


def _images(text: str) -> Iterator[tuple[int, int]]:
    is_likely = "base64" in text or "image/" in text
    return (match.span("data") for match in _PAYLOAD.finditer(text)) if is_likely else iter(())
