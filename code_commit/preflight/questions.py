"""The questions of the preflight, one function each, which raises NotSetUpError with the mend where it must."""

import errno
import os
from collections.abc import Mapping
from pathlib import Path

from code_commit.apply import is_locked, needs_recovery
from code_commit.build.command import build_command
from code_commit.config import Settings
from code_commit.errors import BuildError, NotSetUpError
from code_commit.exchange import Prompt
from code_commit.files import read_regular_file
from code_commit.git import ask_git
from code_commit.llm import explain_misfit
from code_commit.model_choice import ModelChoice
from code_commit.project import AGENT_CONFIG, BUILD_SCRIPT, Project
from code_commit.redaction import Redactor
from code_commit.terminal import shown
from code_commit.verify import ignored_paths


def check_gitignore(project: Project) -> None:
    """Raise NotSetUpError unless .gitignore has the line /agent-config and, after all its rules, ignores it."""
    try:
        text = (project.root / ".gitignore").read_bytes().decode("utf-8-sig", "replace")
    except FileNotFoundError as error:
        raise NotSetUpError(f".gitignore is missing: create it with the line /{AGENT_CONFIG}") from error
    except OSError as error:
        raise NotSetUpError(f".gitignore cannot be read: {error.strerror}") from error
    lines = {line.removesuffix("\r").rstrip(" ") for line in text.split("\n")}
    if not lines & {f"/{AGENT_CONFIG}", f"/{AGENT_CONFIG}/"}:
        raise NotSetUpError(f".gitignore lacks the line /{AGENT_CONFIG}: add it, so that no API key is committed")
    if not ignored_paths(project, [f"{AGENT_CONFIG}/query.txt"]):
        raise NotSetUpError(f".gitignore has /{AGENT_CONFIG}, but a later rule takes it back: remove that rule")


def check_nothing_is_tracked(project: Project) -> None:
    if project.git is None:
        return
    tracked = ask_git(["ls-files", "-z", "--", AGENT_CONFIG], project.root)
    names = [os.fsdecode(name) for name in tracked.stdout.split(b"\0") if name]
    if names:
        more = f" and {len(names) - 1} more" if len(names) > 1 else ""
        raise NotSetUpError(
            f"git tracks {shown(names[0])}{more}: git rm -r --cached {AGENT_CONFIG}; a key in it must be replaced"
        )
    if tracked.returncode != 0:
        raise NotSetUpError(f"git ls-files failed: {tracked.stderr.decode('utf-8', 'replace').strip()}")


def check_build_script(project: Project, environment: Mapping[str, str]) -> None:
    """Raise NotSetUpError for a build.sh that cannot be started."""
    if not os.path.lexists(project.build_script):
        raise NotSetUpError(f"{BUILD_SCRIPT} is missing: create it; it must exit with 0 when the build passes")
    if not project.build_script.is_symlink() and not project.build_script.is_file():
        raise NotSetUpError(f"{BUILD_SCRIPT} is not a file")
    if _holds(project.build_script, _UNWRITTEN):
        raise NotSetUpError(f"{BUILD_SCRIPT} is still the example: put your build and test commands into it")
    try:
        build_command(project, environment, lambda _: None)
    except BuildError as error:
        raise NotSetUpError(str(error)) from error


_UNWRITTEN = b"build.sh: put your build and test commands here"
"""What build.sh.example prints before it fails: as it stands no LLM could make it pass."""


def _holds(path: Path, text: bytes) -> bool:
    try:
        return text in read_regular_file(path)
    except OSError:
        return False


def check_prompt_has_no_key(redactor: Redactor, prompt: Prompt) -> None:
    if redactor.reveals_key(prompt.text):
        raise NotSetUpError(
            "the prompt would carry an API key: take it out of the query, the rollup or the own system prompts"
        )


def check_prompt_fits(choice: ModelChoice, settings: Settings, prompt: Prompt) -> None:
    """Raise NotSetUpError when the model cannot read so long a prompt."""
    misfit = explain_misfit(choice, settings, prompt)
    if misfit:
        raise NotSetUpError(f"{misfit}; roll up less")


def check_lock(project: Project) -> None:
    """Raise NotSetUpError when a run could not take the lock, or has to repair something first."""
    if project.agent_config.is_dir() and not os.access(project.agent_config, os.W_OK | os.X_OK):
        read_only = os.statvfs(project.agent_config).f_flag & os.ST_RDONLY
        why = os.strerror(errno.EROFS if read_only else errno.EACCES)
        raise NotSetUpError(f"{AGENT_CONFIG} cannot be written to: {why}; make it yours to write")
    holder = is_locked(project)
    if holder is not None:
        raise NotSetUpError(f"another code-commit runs here (process {holder}): wait for it to end")
    if needs_recovery(project):
        raise NotSetUpError("an interrupted apply has to be repaired: any other code-commit command does it")
