"""What is wrong with a response so far: every check adds to it, so that all violations are told at once."""

from collections.abc import Callable, Iterable, Sequence

from code_commit.changes import FileChange, Reasons
from code_commit.verify.ignore_files import UnansweredError


class Findings:
    """The changes of a response, and what is wrong with them so far. `open` are those worth looking at further."""

    def __init__(self, changes: Sequence[FileChange]) -> None:
        self.changes = changes
        self.reasons = Reasons()
        self._lines = {change.path: change.line for change in changes}
        self._closed: set[str] = set()

    @property
    def open(self) -> list[FileChange]:
        return [change for change in self.changes if change.path not in self._closed]

    @property
    def open_paths(self) -> list[str]:
        return [change.path for change in self.open]

    def add(self, path: str, rule: str, message: str, line: int | None = None) -> None:
        where = self._lines.get(path, 0) if line is None else line
        self.reasons.add(path, where, rule, message)

    def close(self, path: str, rule: str, message: str) -> None:
        """Add a violation after which nothing more can be said about the path."""
        self._closed.add(path)
        self.add(path, rule, message)

    def ask(self, rule: str, message: str, question: Callable[[], Iterable[str]]) -> None:
        """Add the violation for each path that the question names; for the whole response when it has no answer."""
        try:
            named = sorted(question())
        except (UnansweredError, OSError) as error:
            self.add("", rule, f"{error}; ask the supervisor to mend this, nothing is written until then", 0)
        else:
            for path in named:
                self.add(path, rule, message)
