"""code-commit: ask an LLM once, apply its answer whole or not at all, build, and repair up to three times.

From Python: `from code_commit import run`; see `code_commit.api`. It is imported when it is asked for, because the
command line imports this package before it knows what to do.
"""

from code_commit.version import __version__

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from code_commit.api import run

__all__ = ["__version__", "run"]


def __getattr__(name: str) -> "Any":
    if name == "run":
        from code_commit.api import run

        return run
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
