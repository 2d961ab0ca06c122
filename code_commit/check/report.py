"""The report of the preflight: a line for each check, every problem at once, and the plan of the run."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from code_commit.changes import RunWarning, WarningKind
from code_commit.errors import NoKeyError, NotSetUpError, TooLittleMoneyError
from code_commit.project import Project
from code_commit.redaction import Redactor

if TYPE_CHECKING:
    from code_commit.check.plan import RunPlan

T = TypeVar("T")


class Check(NamedTuple):
    """One line of `code-commit check`: `problem` is None where all is well; `note` is what was found.

    `error` is the problem with all its facts.
    """

    name: str
    problem: str | None = None
    note: str = ""
    error: NotSetUpError | None = None


@dataclass(slots=True)
class Report:
    """The checks of the preflight in their order, the warnings of the run, and its plan where its parts are there."""

    redactor: Redactor
    plan: "RunPlan | None" = None
    checks: list[Check] = field(default_factory=list)
    warnings: list[RunWarning] = field(default_factory=list)

    @property
    def problems(self) -> list[str]:
        return [check.problem for check in self.checks if check.problem is not None]

    def warn(self, *messages: str, kind: WarningKind = "setup") -> None:
        self.warnings += [RunWarning(kind, message) for message in messages]

    def refuse(self, name: str, problem: str) -> None:
        self.checks.append(Check(name, problem))

    def ask(self, name: str, question: Callable[[], T], note: Callable[[T], str] = lambda _: "") -> T | None:
        """Ask one question and write its answer down; None where it raised NotSetUpError."""
        try:
            answer = question()
        except NotSetUpError as error:
            self.checks.append(Check(name, str(error), error=error))
            return None
        self.checks.append(Check(name, None, note(answer)))
        return answer

    def require_no_problem(self, project: Project) -> None:
        """Raise NotSetUpError with every problem that was found, if any was."""
        if not self.problems:
            return
        only = [check.error for check in self.checks if check.problem is not None]
        if len(only) == 1 and isinstance(only[0], NoKeyError | TooLittleMoneyError):
            raise only[0]
        problems = "\n".join(self.problems).split("\n")
        if len(problems) > 1:
            problems = [f"{len(problems)} problems to solve:", *(f"- {problem}" for problem in problems)]
        raise NotSetUpError("\n".join(problems + hint_at_init(project)))


def hint_at_init(project: Project) -> list[str]:
    """Return what helps a project that nobody prepared."""
    return [] if project.agent_config.exists() else ["code-commit init writes .gitignore, build.sh and agent-config/"]
