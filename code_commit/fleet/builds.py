"""The clones of a task, and single builds in them: of the commit as it is, of a solution, of a green result.

A clone shares the objects of the worker's copy of the repository. It has the files that the task brings along, and an
agent-config with its query, its settings and links to keys.
"""

import json
import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import mkdtemp
from typing import Any, NamedTuple

from code_commit.api import write_ignore_line
from code_commit.errors import EXIT_BUILD_FAILED, NotSetUpError
from code_commit.fleet.processes import NO_ROOM, TaskProcesses
from code_commit.fleet.results import Result
from code_commit.fleet.tasks import NO_BUILD, NO_SUBMODULES, SUBMODULES, Files, FleetTask, Solution
from code_commit.git import Repository
from code_commit.llm.keys import KEY_VARIABLES
from code_commit.project import AGENT_CONFIG, BUILD_SCRIPT, find_project
from code_commit.settings import ENVIRONMENT_PREFIX, KEYS_VARIABLE, Settings
from code_commit.terminal import shown
from code_commit.trust import own_command

PLAIN_GIT = (
    *("-c", "core.hooksPath=/dev/null", "-c", "commit.gpgSign=false"),
    *("-c", "user.name=fleet", "-c", "user.email=fleet@localhost"),
)
"""Words for git by which nobody's settings have a part in a commit."""
_LINES_KEPT = 5
_PROGRAM_MISSING = (126, 127)
"""The exit codes by which a shell says that a program cannot be run or found."""


class Built(NamedTuple):
    """Why a build failed, with its last lines, "" where it passed; and the exit code of build.sh."""

    why: str
    exit_code: int | None

    @property
    def last_lines(self) -> list[str]:
        return self.why.split("\n")[-_LINES_KEPT:] if self.why else []


@dataclass(frozen=True, slots=True)
class Workshop:
    """The folder of a task, below which its clones are made and built. `hidden` are files that builds may not see."""

    task: FleetTask
    folder: Path
    processes: TaskProcesses
    hidden: tuple[str | Path, ...] = ()

    def clone(self, source: Path, commit: str, root: Path, files: Files) -> Repository:
        """Make a clone with these files put over it, and what a run needs in it. Raises NotSetUpError."""
        git = self._check_out(source, commit, root)
        put_files(root, files)
        if self.task.build and not os.path.lexists(root / BUILD_SCRIPT):
            files = {**files, BUILD_SCRIPT: self.task.build}
            put_files(root, {BUILD_SCRIPT: self.task.build})
        if not os.path.lexists(root / BUILD_SCRIPT):
            raise NotSetUpError(NO_BUILD)
        with suppress(FileNotFoundError):
            if (root / SUBMODULES).lstat().st_size:
                raise NotSetUpError(NO_SUBMODULES)
        if self.task.setup:
            write_ignore_line(root)
        if files or self.task.setup:
            self.processes.git(root, "update-index", "--add", "--remove", "--replace", "--", *files, ".gitignore")
            words = ("commit", "-q", "--allow-empty", "-m", "Supply what the task brings along")
            self.processes.git(root, *PLAIN_GIT, *words)
        self._write_config(root / AGENT_CONFIG)
        return git

    def _check_out(self, source: Path, commit: str, root: Path) -> Repository:
        ask = self.processes.git
        sandboxes = (self.task.settings.get("sandbox"), os.environ.get(f"{ENVIRONMENT_PREFIX}SANDBOX"))
        way = "--local" if "strict" in sandboxes else "--shared"  # a build there does not see the copy
        if self.task.sealed:
            ask(source, "init", "-q", "--", str(root))
            version = ("-c", "protocol.version=2")  # it gives any commit, not those of branches alone
            ask(root, *version, "fetch", "-q", "--no-tags", "--", str(source), commit)
        else:
            ask(source, "clone", "-q", way, "--no-checkout", "--", str(source), str(root))
        git = find_project(root).git
        if git is None or (git.work_tree, git.git_dir) != (root, root / ".git"):
            raise NotSetUpError(f"{root} is not the clone that was made for the task: nothing was done")
        ask(root, "checkout", "-q", "--detach", commit)
        return git

    def _write_config(self, config: Path) -> None:
        try:
            config.mkdir(mode=0o700)
        except FileExistsError as error:
            raise NotSetUpError(f"the commit holds {AGENT_CONFIG}, where keys may be: take it out of git") from error
        (config / "query.txt").write_text(self.task.query, encoding="utf-8")
        lines = (f"{name} = {_toml(value)}\n" for name, value in self.task.settings.items() if value is not None)
        (config / "config.toml").write_text("".join(lines), encoding="utf-8")
        link_keys(config)
        for number, file in enumerate(self.hidden):
            (config / f"{number}-key.txt").symlink_to(Path(file).absolute())

    def build(self, source: Path, commit: str, files: Files) -> Built:
        """Run build.sh once in a fresh clone with these files put over it, in the sandbox of the task.

        Raises NotSetUpError where it cannot run.
        """
        root = Path(mkdtemp(dir=self.folder), "clone")
        self.clone(source, commit, root, files)
        no_llm = ("--rollup", "fresh", "--model", f"replay:{AGENT_CONFIG}")
        words = [*own_command(self.folder.parent), "check", "--build", "--json", *no_llm]
        done = self.processes.command(words, root)
        try:
            told = json.loads(done.stdout)
        except ValueError as error:
            raise NotSetUpError("the check of the build was killed") from error
        if "checks" not in told:
            raise NotSetUpError(told["message"])
        problems = "\n".join(check["problem"] for check in told["checks"] if check["problem"])
        if done.returncode > EXIT_BUILD_FAILED:
            raise NotSetUpError(problems)
        return Built(problems, told.get("build_exit_code"))

    def build_before(self, source: Path, commit: str) -> Result:
        """Tell whether the build passes on the commit as it is. Raises NotSetUpError where it cannot run.

        A program that is missing is a reason for that, unless files of the task's own may be what calls it.
        """
        overlay = self.task.overlay
        built = self.build(source, commit, overlay)
        hopeless = self.task.settings.get("infrastructure_exit_codes", Settings().infrastructure_exit_codes)
        if built.exit_code in (*hopeless, *(_PROGRAM_MISSING if overlay.keys() <= {BUILD_SCRIPT} else ())):
            why = "the build cannot run here (--no-baseline asks the LLM all the same):"
            raise NotSetUpError("\n".join([why, *built.last_lines]))
        if built.why:
            return self.task.ended("build_failed", EXIT_BUILD_FAILED, built.why)
        return self.task.ended("success", 0, "")

    def validate(self, source: Path, commit: str, solution: Solution) -> Result:
        """Tell by the build whether the tests tell the solution from what was before, and a run could find it."""
        own = {name: text for name, text in self.task.overlay.items() if name in (BUILD_SCRIPT, SUBMODULES)}
        trees = [("tests pass before it", commit, self.task.overlay | self.task.verify, False)]
        trees.append(("tests fail after it", solution.commit, own, True))
        if self.task.verify:
            why = "tests of before, which a run sees, fail after it"
            trees.append((why, solution.commit, own | solution.tests_before, True))
        for why, tree, files, should_pass in trees:
            built = self.build(source, tree, files)
            if (not built.why) != should_pass:
                told = "\n".join([": ".join([why, *built.last_lines[-1:]]), *built.last_lines])
                return self.task.ended("unfit", EXIT_BUILD_FAILED, told, error=why)
        return self.task.ended("success", 0, "")


def link_keys(config: Path) -> None:
    """Link the key files of this machine into a folder agent-config, where it has a folder of them."""
    if keys := os.environ.get(KEYS_VARIABLE):
        for provider in KEY_VARIABLES:
            (config / f"{provider}-key.txt").symlink_to(Path(keys, f"{provider}-key.txt").absolute())


def put_files(root: Path, files: Files) -> None:
    """Write files into a tree where nothing else is at work, None for one to remove.

    Raises NotSetUpError, and OSError where there is no room.
    """
    for name, text in files.items():
        path = root / name
        if os.path.realpath(path.parent) != os.path.normpath(Path(os.path.realpath(root), name).parent):
            raise NotSetUpError(f"{shown(name)} would be written through a link")
        try:
            if path.is_symlink() or text is None:
                path.unlink(missing_ok=True)
            with suppress(OSError):  # git keeps no empty folder
                for folder in path.relative_to(root).parents[:-1]:
                    (root / folder).rmdir()
            if text is not None:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(text.encode())
                path.chmod(path.stat().st_mode | (0o111 if text.startswith("#!") else 0))
        except OSError as error:
            if error.errno in NO_ROOM:
                raise
            raise NotSetUpError(f"{shown(name)} cannot be supplied: {error.strerror}") from error


def _toml(value: Any) -> str:
    """Return a setting as config.toml has it."""
    if isinstance(value, dict):
        return f"{{{', '.join(f'{json.dumps(name)} = {_toml(part)}' for name, part in value.items())}}}"
    return json.dumps(value, ensure_ascii=False)
