"""What holds for a whole run, read before anything is changed."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from code_commit.config import Settings
from code_commit.errors import NotSetUpError
from code_commit.git import find_git
from code_commit.project import Project
from code_commit.redaction import Redactor
from code_commit.verify.ignore_files import IgnoreMemory, UnansweredError, remember_ignore_files
from code_commit.verify.ignored import find_ignored_now
from code_commit.verify.repositories import list_submodules


@dataclass(frozen=True, slots=True)
class Rules:
    """What holds for a whole run: options, the codebase, the keys, and the ignore rules of before the run.

    `written` remembers what earlier responses of the run put into files: the LLM knows that content too.
    """

    allow: tuple[str, ...]
    protect: tuple[str, ...]
    strict: bool
    codebase: str | None
    redactor: Redactor
    ignore_memory: IgnoreMemory
    submodules: frozenset[str]
    written: dict[str, int] = field(default_factory=dict)


def capture_rules(project: Project, settings: Settings, codebase: str | None, redactor: Redactor) -> Rules:
    """Read what holds for the whole run, before anything is changed. Raises NotSetUpError where git gives no answer."""
    try:
        memory = remember_ignore_files(project, has_git=find_git() is not None)
        submodules = list_submodules(project)
    except (UnansweredError, OSError) as error:
        raise NotSetUpError(f"the ignore rules cannot be read: {error}") from error
    return Rules(settings.allow, settings.protect, settings.strict, codebase, redactor, memory, submodules)


def ignored_paths(project: Project, paths: Sequence[str]) -> frozenset[str]:
    """Return those of the paths that git ignores now, tracked or not. Raises NotSetUpError."""
    try:
        return frozenset(find_ignored_now(paths, project))
    except (UnansweredError, OSError) as error:
        raise NotSetUpError(f"the ignore rules cannot be read: {error}") from error
