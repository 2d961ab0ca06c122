"""What a run works on, and within which rules."""

import sys
from collections.abc import Callable
from typing import NamedTuple

from code_commit.build import Builder
from code_commit.exchange import Prompt
from code_commit.llm.keys import ApiKey
from code_commit.project import Project
from code_commit.runs.review import TreeState
from code_commit.settings import Settings
from code_commit.verify import Rules


class Window(NamedTuple):
    """How many characters a prompt may have, None where nobody knows, and what makes the codebase fit, if it may.

    `fit` writes a codebase of so many characters at most, in which the files that a text names go first. It raises
    NotSetUpError.
    """

    longest: int | None = None
    fit: Callable[[int, str], str] | None = None

    def room(self, prompt: Prompt) -> int:
        """Return how many characters more a prompt may have, below 0 for one that is too long."""
        return sys.maxsize if self.longest is None else self.longest - len(prompt.text)


class Job(NamedTuple):
    """A run's project, settings, rules, and who builds. `before` is the tree as git saw it before the run, if it did.

    `approve` is called with the diff of an answer before that is applied, and raises RejectedResponseError where it is
    not wanted.
    """

    project: Project
    settings: Settings
    rules: Rules
    keys: tuple[ApiKey, ...]
    environment: dict[str, str]
    builder: Builder
    before: TreeState | None
    approve: Callable[[bytes], None] | None = None
    window: Window = Window()
