"""The text of a codebase: each file after a line that names it."""

from collections.abc import Mapping


def find_unseen(texts: Mapping[str, str], codebase: str) -> set[str]:
    """Return the paths whose text does not stand in the codebase, from the beginning of a line on.

    Line ends and a BOM make no difference.
    """
    rollup = _plain(codebase)
    return {path for path, text in texts.items() if _plain(text).rstrip("\n") not in rollup}


def _plain(text: str) -> str:
    return f"\n{text}".replace("\r\n", "\n").replace("\n\ufeff", "\n")
