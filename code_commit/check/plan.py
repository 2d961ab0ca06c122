"""The values of a start: the inputs of a command, and the plan of its run."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from code_commit.build import Sandbox
from code_commit.changes import RunWarning
from code_commit.codebase.select import CodebaseRequest
from code_commit.codebase.text import Codebase
from code_commit.errors import NotSetUpError
from code_commit.llm.keys import Keys
from code_commit.llm.models import longest_prompt
from code_commit.llm.vendor import CHARACTERS_PER_TOKEN, Asked
from code_commit.project import Project
from code_commit.prompts.layout import SystemPrompts, Task, make_task
from code_commit.redaction import Redactor
from code_commit.runs.record import RunEntry
from code_commit.runs.review import TreeState
from code_commit.settings import Settings

Need = Literal["tree", "build", "llm", "query", "prompts"]
_ALL: frozenset[Need] = frozenset({"tree", "build", "llm", "query", "prompts"})


@dataclass(frozen=True, slots=True, kw_only=True)
class RunInputs:
    """The inputs of a command, in place of files of agent-config: None where it takes these.

    `request` is the codebase to make; with `fresh` it is made even where the settings take codeRollup.txt as it stands.
    `resumed` is the interrupted run, or choice of files, to continue. `environment` holds keys and settings, and the
    build gets it.
    """

    command: Literal["run", "apply", "prompt", "rollup"] = "run"
    query: str | None = None
    codebase: Codebase | None = None
    request: CodebaseRequest | None = None
    fresh: bool = False
    builds: bool = True
    resumed: RunEntry | None = None
    environment: Mapping[str, str] = field(default_factory=lambda: os.environ)

    @property
    def is_paid(self) -> bool:
        """Whether it continues a run that has paid already, so that its money is not checked."""
        return self.resumed is not None and self.resumed.record.command == "run"

    @property
    def needs(self) -> frozenset[Need]:
        """The parts of a set-up that the command cannot do without."""
        if self.command == "apply":
            return frozenset({"tree", "build"} if self.builds else {"tree"})
        if self.command == "prompt":
            return frozenset({"query", "prompts"})
        if self.command == "rollup" and not (self.request and self.request.select):
            return frozenset({"query"})
        return _ALL


@dataclass(frozen=True, slots=True, kw_only=True)
class RunPlan:
    """All that a run starts from, checked. `request` is the codebase to make first, None where `codebase` is there.

    `tree` is the tree as git saw it, None outside a repository. `asked` is None where no LLM is asked.
    """

    project: Project
    inputs: RunInputs
    settings: Settings
    redactor: Redactor
    keys: Keys
    asked: Asked | None
    sandbox: Sandbox | None
    tree: TreeState | None
    prompts: SystemPrompts | None
    query: str
    request: CodebaseRequest | None
    codebase: Codebase | None
    warnings: Sequence[RunWarning]

    @property
    def llm(self) -> Asked:
        """The LLM of the run. Raises NotSetUpError where there is none."""
        if self.asked is None:
            raise NotSetUpError("no LLM can be asked: name a --model")
        return self.asked

    @property
    def longest_prompt(self) -> int | None:
        """The most characters of a prompt, None where nobody knows."""
        tokens = longest_prompt(self.llm.choice, self.settings)
        return int(tokens * CHARACTERS_PER_TOKEN) if tokens else None

    def task(self, codebase: Codebase) -> Task:
        """Return the task of a run with this codebase. Raises NotSetUpError where the plan has no system prompts."""
        if self.prompts is None:
            raise NotSetUpError("the system prompts cannot be read")
        return make_task(self.project.root, self.settings, self.prompts, self.query, codebase)
