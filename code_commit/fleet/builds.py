"""The clones of a task, the programs that run in them, and single builds: of the commit, a solution or a green result.

A clone shares the objects of the worker's bare copy of the repository. It has the files that the task supplies, and an
agent-config with its query, its settings and links to keys. Each program has a session of its own, which ends with the
task, and with the worker: `setpriv --pdeathsig` ends it with the thread that started it, on Linux.
"""

import hashlib
import json
import math
import os
import signal
import subprocess
import time
from collections import defaultdict
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory, mkdtemp
from threading import Lock
from typing import Any, NamedTuple

from code_commit.api import find_addresses, write_ignore_line
from code_commit.commands.results import Result
from code_commit.errors import EXIT_BUILD_FAILED, NO_ROOM, NotSetUpError
from code_commit.fleet.tasks import NO_BUILD, NO_SUBMODULES, SUBMODULES, Files, FleetTask, Solution
from code_commit.git import Repository, git_environment, require_git
from code_commit.llm.keys import KEY_VARIABLES
from code_commit.project import AGENT_CONFIG, BUILD_SCRIPT, USER_VARIABLE, find_project
from code_commit.settings import ENVIRONMENT_PREFIX, KEYS_VARIABLE, Settings
from code_commit.status import Status
from code_commit.terminal import shown
from code_commit.trust import own_command, with_parent_death_signal

TICK = 0.2  # seconds between two looks at what no process tells
GRACE = 15.0  # seconds between SIGTERM and SIGKILL: a run takes five to end its build
PLAIN_GIT = (
    *("-c", "core.hooksPath=/dev/null", "-c", "commit.gpgSign=false"),
    *("-c", "user.name=fleet", "-c", "user.email=fleet@localhost"),
)
"""Options of git that keep everybody's settings out of a commit."""
_LINES_KEPT = 5
_PROGRAM_MISSING = (126, 127)  # the exit codes by which a shell says that a program cannot be run or found
_copying: defaultdict[Path, Lock] = defaultdict(Lock)


class WorkerError(Exception):
    """The worker failed, not the task."""


class GitError(NotSetUpError):
    """Git could not make the clone: the fault is the repository's or the worker's."""


class EndedError(Exception):
    """The task is not wanted any more, or timed out; all its processes have ended."""


def tells_of_no_room(complaint: str) -> bool:
    """Return whether git failed to write to the disk: it does not always say why."""
    return any(words in complaint for words in ("unable to write", "write error", *map(os.strerror, NO_ROOM)))


class TaskProcesses:
    """Runs programs for a task while it is wanted and has time; `look` is called all the while."""

    def __init__(self, task: FleetTask, is_wanted: Callable[[], bool], look: Callable[[], object]) -> None:
        self._task, self._is_wanted, self._look = task, is_wanted, look
        self.is_late = self.is_unwanted = False
        self.set_timeout(task.timeout)

    def set_timeout(self, seconds: float | None) -> None:
        """Restart the time limit; None is no limit."""
        self._deadline = time.monotonic() + (seconds or math.inf)

    def check(self) -> None:
        """Raise EndedError if the task is not wanted any more, or its time is over."""
        self.is_unwanted = not self._is_wanted()
        self.is_late = not self.is_unwanted and time.monotonic() > self._deadline
        if self.is_unwanted or self.is_late:
            raise EndedError
        self._look()

    def git(self, folder: Path, *arguments: str) -> str:
        """Run git and return what it prints. Raises NotSetUpError with its complaint."""
        words = [require_git(folder), "-c", "core.fsmonitor=false", *arguments]
        done = self._run(words, folder, git_environment(folder))
        if done.returncode != 0:
            complaint = shown(" ".join(done.stderr.decode("utf-8", "replace").split())[:1000])
            kind = WorkerError if tells_of_no_room(complaint) else GitError
            raise kind(f"git {arguments[0]} of {self._task.repository}: {complaint}")
        return done.stdout.decode("utf-8", "replace").strip()

    def command(self, words: list[str], folder: Path) -> subprocess.CompletedProcess[bytes]:
        """Run a command of ours without its user's settings, but with the addresses that the task's keys may go to."""
        settings = self._task.settings
        named = {KEYS_VARIABLE, *(ENVIRONMENT_PREFIX + name.upper() for name in settings)}
        environment = {name: value for name, value in os.environ.items() if name not in named}
        addresses = {ENVIRONMENT_PREFIX + name.upper(): url for name, url in find_addresses(settings).items()}
        return self._run(words, folder, environment | addresses | {USER_VARIABLE: "off"})

    def _run(self, words: list[str], folder: Path, environment: dict[str, str]) -> subprocess.CompletedProcess[bytes]:
        """Run a program to its end. Raises EndedError after ending the program and its session."""
        words = with_parent_death_signal(words, folder)
        null, pipe = subprocess.DEVNULL, subprocess.PIPE
        with subprocess.Popen(
            words, cwd=folder, env=environment, stdin=null, stdout=pipe, stderr=pipe, start_new_session=True
        ) as process:
            while True:
                try:
                    self.check()
                    output, complaint = process.communicate(timeout=TICK)
                    return subprocess.CompletedProcess(words, process.returncode, output, complaint)
                except subprocess.TimeoutExpired:
                    continue
                except BaseException:
                    _end(process)
                    raise


def _end(process: subprocess.Popen[bytes]) -> None:
    """End a program and its session, with force when it takes too long."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        with suppress(ProcessLookupError, subprocess.TimeoutExpired):
            os.killpg(process.pid, number)
            process.communicate(timeout=GRACE)


class Source(NamedTuple):
    """The URL, the path or the git bundle that a worker clones a repository from, or the `problem` with it."""

    url: str
    bundle: bytes | None = None
    problem: str = ""


def copy_path(place: Path, url: str) -> Path:
    return place / f"{hashlib.sha256(url.encode()).hexdigest()[:24]}.git"


def find_commit(task: FleetTask, source: Source, bare: Path, processes: TaskProcesses) -> str:
    """Return the task's commit in the worker's copy of the repository; make it if need be. Raises NotSetUpError."""
    while not _copying[bare].acquire(timeout=TICK):
        processes.check()
    try:
        if not bare.exists():
            _copy(task, source, bare, processes)
        question = ("rev-parse", "-q", "--verify", "--end-of-options")
        try:
            return processes.git(bare, *question, f"{task.commit}^{{commit}}")
        except NotSetUpError:
            processes.git(bare, "fetch", "-q", "origin", task.commit)
            return processes.git(bare, *question, "FETCH_HEAD^{commit}")
    finally:
        _copying[bare].release()


def _copy(task: FleetTask, source: Source, bare: Path, processes: TaskProcesses) -> None:
    if source.problem:
        raise NotSetUpError(source.problem)
    refs = "--mirror" if task.path else "--bare"  # a host has refs of every pull request as well
    with TemporaryDirectory(dir=bare.parent, prefix="copy-", ignore_cleanup_errors=True) as folder:
        url, copy = source.url, Path(folder, "copy")
        if source.bundle is not None:
            url = f"{folder}/bundle"
            Path(url).write_bytes(source.bundle)
        processes.git(bare.parent, "clone", "-q", refs, "--", url, str(copy))
        copy.rename(bare)


class Built(NamedTuple):
    """The reason why a build failed, with its last lines, "" if it passed; the exit code of build.sh; what was told."""

    why: str
    exit_code: int | None
    told: bytes

    @property
    def last_lines(self) -> list[str]:
        return self.why.split("\n")[-_LINES_KEPT:] if self.why else []


@dataclass(slots=True)
class Workshop:
    """The folder of a task, below which its clones are made and built. `hidden` are files that builds may not see."""

    task: FleetTask
    folder: Path
    processes: TaskProcesses
    hidden: tuple[str | Path, ...] = ()
    supplies_build: bool = False  # whether build.sh of the latest clone came with the task

    def clone(self, source: Path, commit: str, root: Path, files: Files) -> Repository:
        """Make a clone with these files in it, ready for a run. Raises NotSetUpError."""
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
        self.supplies_build = BUILD_SCRIPT in files
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
            raise NotSetUpError(f"the commit contains {AGENT_CONFIG}, where keys may be: remove it from git") from error
        (config / "query.txt").write_text(self.task.query, encoding="utf-8")
        lines = (f"{name} = {_toml(value)}\n" for name, value in self.task.run_settings.items() if value is not None)
        (config / "config.toml").write_text("".join(lines), encoding="utf-8")
        link_keys(config)
        for number, file in enumerate(self.hidden):
            (config / f"{number}-key.txt").symlink_to(Path(file).absolute())

    def build(self, source: Path, commit: str, files: Files) -> Built:
        """Run build.sh once in a fresh clone with these files, in the sandbox of the task. Raises NotSetUpError."""
        root = Path(mkdtemp(dir=self.folder), "clone")
        self.clone(source, commit, root, files)
        no_llm = ("--rollup", "fresh", "--model", f"replay:{AGENT_CONFIG}")
        words = [*own_command(self.folder.parent), "check", "--build", "--json", *no_llm]
        done = self.processes.command(words, root)
        try:
            told = json.loads(done.stdout)
        except ValueError as error:
            raise NotSetUpError("code-commit check --build was killed") from error
        if "checks" not in told:
            raise NotSetUpError(told["message"])
        problems = "\n".join(check["problem"] for check in told["checks"] if check["problem"])
        if done.returncode > EXIT_BUILD_FAILED:
            raise NotSetUpError(problems)
        return Built(problems, told.get("build_exit_code"), done.stdout)

    def build_before(self, source: Path, commit: str) -> tuple[Result, bytes]:
        """Return the result of a build on the commit as it is, and what was told. Raises NotSetUpError if it cannot."""
        overlay = self.task.overlay
        built = self.build(source, commit, overlay)
        # A program that is missing keeps the build from running, unless a file of the task's own may call it.
        hopeless = self.task.settings.get("infrastructure_exit_codes", Settings().infrastructure_exit_codes)
        if built.exit_code in (*hopeless, *(_PROGRAM_MISSING if overlay.keys() <= {BUILD_SCRIPT} else ())):
            why = "the build cannot run here (--no-baseline calls the LLM anyway):"
            raise NotSetUpError("\n".join([why, *built.last_lines]))
        return self.task.ended(Status.BUILD_FAILED if built.why else Status.SUCCESS, built.why), built.told

    def validate(self, source: Path, commit: str, solution: Solution) -> Result:
        """Return whether the tests fail before the solution and pass after it, by builds."""
        own = {name: text for name, text in self.task.overlay.items() if name in (BUILD_SCRIPT, SUBMODULES)}
        trees = [("its tests pass without the change", commit, self.task.overlay | self.task.verify, False)]
        trees.append(("its tests fail with the change", solution.commit, own, True))
        if self.task.verify:
            why = "the earlier tests, which a run sees, fail with the change"
            trees.append((why, solution.commit, own | solution.tests_before, True))
        for why, tree, files, should_pass in trees:
            built = self.build(source, tree, files)
            if (not built.why) != should_pass:
                told = "\n".join([": ".join([why, *built.last_lines[-1:]]), *built.last_lines])
                return self.task.ended(Status.UNFIT, told, error=why)
        return self.task.ended(Status.SUCCESS)


def link_keys(config: Path) -> None:
    """Link the key files of this machine into a folder agent-config, where it has a folder of them."""
    if keys := os.environ.get(KEYS_VARIABLE):
        for provider in KEY_VARIABLES:
            (config / f"{provider}-key.txt").symlink_to(Path(keys, f"{provider}-key.txt").absolute())


def put_files(root: Path, files: Files) -> None:
    """Write files into a tree that nothing else changes; None removes one. Raises NotSetUpError, OSError if full."""
    for name, text in files.items():
        path = root / name
        if os.path.realpath(path.parent) != os.path.normpath(Path(os.path.realpath(root), name).parent):
            raise NotSetUpError(f"the task's file {shown(name)} is behind a symbolic link: name its real path")
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
            raise NotSetUpError(f"the task's file {shown(name)} cannot be written: {error.strerror}") from error


def _toml(value: Any) -> str:
    if isinstance(value, dict):
        return f"{{{', '.join(f'{json.dumps(name)} = {_toml(part)}' for name, part in value.items())}}}"
    return json.dumps(value, ensure_ascii=False)
