"""Which of the files that are replaced the LLM has seen: what the code rollup holds, in this version. Rule `stale`."""

from collections.abc import Iterator, Mapping

_FEW = 8
"""So many texts are searched one by one; for more of them the codebase is gone through once, line by line, and only
a text that is not found so is searched for in every place."""


def find_unseen(texts: Mapping[str, str], codebase: str) -> set[str]:
    """Return the paths whose text does not stand in the codebase. Line ends and a BOM make no difference."""
    searched = {path: _plain(text) for path, text in texts.items()}
    rollup = codebase.replace("\r\n", "\n") if "\r" in codebase else codebase
    if len(searched) <= _FEW:
        return {path for path, text in searched.items() if text not in rollup}
    places: dict[str, list[int]] = {_longest_line(text)[1]: [] for text in searched.values()}
    for start, line in _lines(rollup):
        if line in places:
            places[line].append(start)
    return {path for path, text in searched.items() if not _stands_in(text, rollup, places)}


def _plain(text: str) -> str:
    return text.removeprefix("\ufeff").replace("\r\n", "\n").rstrip("\n")


def _stands_in(text: str, rollup: str, places: Mapping[str, list[int]]) -> bool:
    offset, line = _longest_line(text)
    aligned = any(rollup.startswith(text, start - offset) for start in places[line] if start >= offset)
    return aligned or text in rollup


def _longest_line(text: str) -> tuple[int, str]:
    return max(_lines(text), key=lambda place: len(place[1]), default=(0, ""))


def _lines(text: str) -> Iterator[tuple[int, str]]:
    start = 0
    for line in text.split("\n"):
        yield start, line
        start += len(line) + 1
