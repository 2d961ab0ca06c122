"""code-commit: ask an LLM once, apply its answer whole or not at all, build, and repair up to three times.

From Python: `from code_commit import run, repair, rollup, NotSetUpError`; see `code_commit.api`. They are imported
on first use, because the command line imports this package before it parses its arguments.
"""

from code_commit.version import __version__

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from code_commit.api import repair, rollup, run
    from code_commit.errors import NotSetUpError

__all__ = ["NotSetUpError", "__version__", "repair", "rollup", "run"]


def __getattr__(name: str) -> "Any":
    if name == "NotSetUpError":
        from code_commit.errors import NotSetUpError

        return NotSetUpError
    if name in ("run", "repair", "rollup"):
        from code_commit import api

        return getattr(api, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
