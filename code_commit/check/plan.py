"""The values of a start: the inputs of a command, the plan of its run, and the report of the checks that lead to it."""

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, TypeVar

from code_commit.build import Sandbox
from code_commit.changes import RunWarning, WarningKind
from code_commit.codebase.select import CodebaseRequest
from code_commit.codebase.text import Codebase
from code_commit.errors import (
    Message,
    Named,
    NoKeyError,
    NotSetUpError,
    TooLittleMoneyError,
    Word,
    as_option,
    in_lines,
    in_words,
)
from code_commit.exchange import CHARACTERS_PER_TOKEN
from code_commit.llm.keys import Keys
from code_commit.llm.models import longest_prompt
from code_commit.llm.vendor import LlmConfig
from code_commit.project import AGENT_CONFIG, BUILD_SCRIPT, Project
from code_commit.prompts.layout import FailedBuild, SystemPrompts, Task, make_task
from code_commit.redaction import Redactor
from code_commit.runs.record import BuildResult, RunEntry, RunRecord
from code_commit.runs.review import TreeState
from code_commit.settings import LOGGED, Options, Settings

T = TypeVar("T")
Requirement = Literal["tree", "build", "llm", "query", "prompts"]
TASK_OF_REPAIR = "Make the build pass."  # where nobody says more
_ALL: frozenset[Requirement] = frozenset({"tree", "build", "llm", "query", "prompts"})


def logged_in(record: RunRecord) -> Options:
    """Return those settings of a run's log that still exist, and its model."""
    known = {name: value for name, value in record.options.items() if name in LOGGED}
    return known | ({"model": record.model} if record.is_main and record.model else {})


class RunInputs(NamedTuple):
    """The inputs of a command, in place of files of agent-config: None where it takes these.

    `given` is the output of a build that failed elsewhere, and `excluded` a pattern for its file, which is none of the
    project's. `request` is the codebase to make; with `fresh` it is made even where the settings take codeRollup.txt.
    `built` is the first build with its output, where it has been made on this tree. `resumed` is the interrupted run,
    or choice of files, to continue. `environment` holds keys and settings, also for the build. `starts` is True where a
    run follows: then a program may print its key. With `as_sent` no suspicion rejects a response.
    """

    command: Literal["run", "repair", "apply", "prompt", "rollup"] = "run"
    given: bytes | None = None
    excluded: str = ""
    query: str | None = None
    codebase: Codebase | None = None
    request: CodebaseRequest | None = None
    fresh: bool = False
    builds: bool = True
    starts: bool = False
    as_sent: bool = False
    built: tuple[BuildResult, str] | None = None
    resumed: RunEntry | None = None
    environment: Mapping[str, str] = os.environ

    @property
    def is_main(self) -> bool:
        """Whether an LLM is asked for a change."""
        return self.command in ("run", "repair")

    @property
    def logged(self) -> Options | None:
        """The settings of the log that is continued."""
        return logged_in(self.resumed.record) if self.resumed else None

    @property
    def resumes_run(self) -> bool:
        """Return True when a main run that asked is resumed; its money is not checked again."""
        return self.resumed is not None and self.resumed.record.is_main and bool(self.resumed.record.attempts)

    @property
    def needs(self) -> frozenset[Requirement]:
        """The parts of a set-up that the command cannot do without."""
        if self.command == "apply":
            return frozenset({"tree", "build"} if self.builds else {"tree"})
        if self.command == "prompt":
            return frozenset({"query", "prompts"})
        if self.command == "rollup" and not (self.request and self.request.select):
            return frozenset({"query"})
        return _ALL


class RunPlan(NamedTuple):
    """The checked start of a run. `request` is the codebase to make first, None where `codebase` is there.

    `tree` is the tree as git saw it, None outside a repository. `asked` is None where no LLM is asked.
    `first` is the build that failed before the run, `passing` the output of one that passed. `lack` says which key is
    missing, where the run may need none.
    """

    project: Project
    inputs: RunInputs
    settings: Settings
    redactor: Redactor
    keys: Keys
    asked: LlmConfig | None
    sandbox: Sandbox | None
    tree: TreeState | None
    prompts: SystemPrompts | None
    query: str
    request: CodebaseRequest | None
    codebase: Codebase | None
    warnings: Sequence[RunWarning]
    first: FailedBuild | None = None
    passing: str = ""
    lack: NotSetUpError | None = None

    @property
    def llm(self) -> LlmConfig:
        """The LLM of the run. Raises NotSetUpError where there is none."""
        if self.asked is None:
            raise NotSetUpError("no LLM can be called: name a ", Named("model"))
        return self.asked

    @property
    def builds_first(self) -> bool:
        """Whether build.sh runs before anything is sent."""
        return self.inputs.command == "repair" or (self.inputs.command == "run" and self.settings.build_first)

    @property
    def ranking_query(self) -> str:
        """The query as far as it tells which files matter."""
        return "" if self.inputs.command == "repair" and self.query == TASK_OF_REPAIR else self.query

    @property
    def longest_prompt(self) -> int | None:
        """The most characters of a prompt, None where unknown."""
        tokens = longest_prompt(self.llm)
        return int(tokens * CHARACTERS_PER_TOKEN) if tokens else None

    def task(self, codebase: Codebase) -> Task:
        """Return the task of a run with this codebase. Raises NotSetUpError where the plan has no system prompts."""
        if self.prompts is None:
            raise NotSetUpError("the system prompts cannot be read")
        task = make_task(self.settings, self.prompts, self.query, codebase)
        return task._replace(first=self.first, repairs=self.inputs.command == "repair", passing=self.passing)


class Check(NamedTuple):
    """One line of `code-commit check`: `problem` is None where all is well, `note` says what was found."""

    name: str
    problem: str | None = None
    note: str = ""
    error: NotSetUpError | None = None
    output: Sequence[str] = ()  # the last lines of the build that failed


@dataclass(slots=True)
class Report:
    """The checks in their order, the warnings of the run, and its plan where its parts are there.

    `advice` follows the list of problems. `word` names settings as the surface does that asked for the report.
    """

    redactor: Redactor
    word: Word = as_option
    plan: RunPlan | None = None
    advice: str = ""
    checks: list[Check] = field(default_factory=list)
    warnings: list[RunWarning] = field(default_factory=list)

    @property
    def problems(self) -> list[str]:
        """The problems of all checks; a check has one in each line."""
        return [line for check in self.checks if check.problem is not None for line in check.problem.split("\n")]

    @property
    def errors(self) -> list[NotSetUpError]:
        failed = (check for check in self.checks if check.problem is not None)
        return [check.error or NotSetUpError(check.problem or "") for check in failed]

    def warn(self, *messages: str, kind: WarningKind = "setup") -> None:
        self.warnings += [RunWarning(kind, message) for message in messages]

    def refuse(self, name: str, *problem: str | Named) -> None:
        self._fail(name, NotSetUpError(*problem))

    def _fail(self, name: str, error: NotSetUpError) -> None:
        problem = in_words(error.message, self.word)
        self.checks = [check for check in self.checks if check.problem != problem]  # a fault is told once
        self.checks.append(Check(name, problem, error=error))

    def ask(self, name: str, question: Callable[[], T], note: Callable[[T], str] = lambda _: "") -> T | None:
        """Return the answer to a question and report it; None where it raised NotSetUpError."""
        try:
            answer = question()
        except NotSetUpError as error:
            self._fail(name, error)
            return None
        self.checks.append(Check(name, None, note(answer)))
        return answer

    def require_no_problem(self, project: Project) -> None:
        """Raise NotSetUpError with every problem, if there is any."""
        errors = self.errors
        if not errors:
            return
        advice = [self.advice] if self.advice else []
        if len(errors) == 1 and isinstance(errors[0], NoKeyError):
            below: list[Message] = [errors[0].message, *((line,) for line in advice)]
            raise NoKeyError(*in_lines(below), provider=errors[0].provider)
        if len(errors) == 1 and isinstance(errors[0], TooLittleMoneyError):
            raise errors[0]
        count, lines = len(self.problems), [error.message for error in errors]
        told = [(f"{count} problems to solve:",), in_lines(lines, "- ")] if count > 1 else lines
        raise NotSetUpError(*in_lines([*told, *((line,) for line in hint_at_init(project) + advice)]))


def hint_at_init(project: Project) -> list[str]:
    """Return advice for a project without agent-config: that `init` writes it, and what else is missing."""
    if project.agent_config.exists():
        return []
    lacks_line, has_script = True, os.path.lexists(project.build_script)
    with suppress(OSError):
        lacks_line = not has_ignore_line((project.root / ".gitignore").read_bytes())
    missing = [".gitignore"] * lacks_line + [BUILD_SCRIPT] * (not has_script)
    return [f"code-commit init writes {' and '.join(filter(None, [', '.join(missing), f'{AGENT_CONFIG}/']))}"]


def has_ignore_line(rules: bytes, line: str = f"/{AGENT_CONFIG}") -> bool:
    """Tell whether the text of a .gitignore has a line, by default the one that the specification wants."""
    lines = {each.removesuffix("\r").rstrip(" ") for each in rules.decode("utf-8-sig", "replace").split("\n")}
    return not lines.isdisjoint({line, f"{line}/"})
