"""One task, as a worker of the cluster does it: a clone of its own, and the real commands as processes of their own.

Below the worker's folder each repository has one bare copy, whose objects its clones share. Every process leads a
session of its own, and is ended with the thread that started it (by `setpriv --pdeathsig`, on Linux), so with the
worker.
"""

import errno
import json
import math
import os
import re
import shutil
import signal
import subprocess
import tarfile
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict, replace
from pathlib import Path
from tempfile import TemporaryDirectory, mkdtemp
from typing import Any, NamedTuple

from code_commit.api import find_addresses, list_runs, make_redactor, read_changes, write_ignore_line
from code_commit.errors import EXIT_BUILD_FAILED, CodeCommitError, MachineError, NoKeyError, NotSetUpError
from code_commit.files import read_ends
from code_commit.fleet.copies import copy_path, make_room, used_copy
from code_commit.fleet.patches import Patches, digest_of, make_patches
from code_commit.fleet.results import Result, packed, unpack
from code_commit.fleet.tasks import BUILD_ALONE, LIMITS, NO_BUILD, NO_SUBMODULES, SUBMODULES, Files, FleetTask, Solution
from code_commit.git import Repository, UnansweredError, require_git
from code_commit.llm.call import TOO_MANY_REQUESTS
from code_commit.llm.keys import KEY_VARIABLES
from code_commit.project import AGENT_CONFIG, BUILD_SCRIPT, find_project
from code_commit.runs.record import RunRecord, load_run_record
from code_commit.runs.words import duration, ending_of
from code_commit.settings import ENVIRONMENT_PREFIX, KEYS_VARIABLE, Settings
from code_commit.terminal import TAIL_BYTES, last_lines, shown
from code_commit.trust import ended_with_us, isolated, outside_environment, own_command

TICK = 0.2  # seconds between two looks at what no process tells
_LONGEST_REASON = 200
_LINES_KEPT = 5
_BASE = "base-commit.txt"
GRACE = 15.0  # seconds between SIGTERM and SIGKILL: a run takes five to end its build

_PLAIN = (
    *("-c", "core.hooksPath=/dev/null", "-c", "commit.gpgSign=false"),
    *("-c", "user.name=fleet", "-c", "user.email=fleet@localhost"),
)
"""Words for git by which nobody's settings have a part in a commit."""

_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.ENOMEM)
_INTERRUPTED: Any = {"status": "interrupted", "exit_code": 128 + signal.SIGTERM, "message": "the fleet was ended"}
_UNVERIFIED = "green, but not verified: "
_MACHINE_FAILED: Any = {"status": "machine_failed", "exit_code": MachineError.exit_code}
_ANOTHER_REPOSITORY = {"GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY", "GIT_COMMON_DIR"}


class Source(NamedTuple):
    """Where a worker clones a repository from: a URL, a path that it sees, or the bytes of a git bundle.

    `problem` says why there is none.
    """

    url: str
    bundle: bytes | None = None
    problem: str = ""


class TaskOutcome(NamedTuple):
    """What comes back of a task; what its run did not get to is empty."""

    result: Result
    record: bytes = b""
    patch: bytes = b""
    log: bytes = b""
    build_patch: bytes = b""


class TaskSupervision(NamedTuple):
    """Who asked for a task: whether it is wanted still, and who is told that the provider wants fewer requests.

    `logged` gets the packed log as it grows. `hidden` are files that a sandbox hides from builds, where they are here.
    """

    is_wanted: Callable[[], bool] = lambda: True
    limited: Callable[[], object] = lambda: None
    logged: Callable[[bytes], object] = lambda _: None
    hidden: Sequence[str | Path] = ()


class _Built(NamedTuple):
    """Why a build failed, with its last lines, "" where it passed; and the exit code of build.sh."""

    why: str
    exit_code: int | None


class WorkerError(Exception):
    """The worker is to blame, not the task."""


class GitError(NotSetUpError):
    """Git could not make the clone: for the task's repository, or for this worker."""


def _tells_of_no_room(complaint: str) -> bool:
    """Tell whether git could not write: it does not always say why."""
    return any(words in complaint for words in ("unable to write", "write error", *map(os.strerror, _NO_ROOM)))


class EndedError(Exception):
    """Nobody waits for the task any more, or its own time is over; all that it started has ended."""


def run_task(  # noqa: PLR0913, PLR0917 - what a task is, and what it may take
    task: FleetTask, source: Source, place: Path, max_cost: float | None, supervision: TaskSupervision, log: bytes = b""
) -> TaskOutcome:
    """Do the task in a clone below `place`, which is removed then, until its run has cost so many US dollars at most.

    `log` is that of a run that it goes on with. One that nobody wants any more comes back as it is then. Raises
    WorkerError and OSError.
    """
    begun = time.monotonic()
    place.mkdir(mode=0o700, parents=True, exist_ok=True)
    with TemporaryDirectory(dir=place, prefix="task-", ignore_cleanup_errors=True) as folder:
        work = _Work(task, Path(os.path.realpath(folder), "clone"), supervision)
        try:
            with used_copy(copy_path(place, source.url)) as bare:
                outcome = work.do(source, bare, max_cost, log)
        except NotSetUpError as error:
            kind = "clone" if isinstance(error, GitError) else ""
            outcome = TaskOutcome(ended(task, "not_set_up", error.exit_code, str(error), error=kind))
        except EndedError:
            outcome = work.outcome()
    return outcome._replace(result=replace(outcome.result, seconds=time.monotonic() - begun))


def ended(task: FleetTask, status: str, exit_code: int, message: str, **facts: Any) -> Result:
    """Return the result of a task; `facts` are the further members that are known, without a run it costs nothing."""
    line: dict[str, Any] = {
        "identity": task.identity,
        "repository": task.repository,
        "base": task.commit,
        "query": task.title,
        "task": task.task or task.id,
        "label": task.label,
    }
    return Result(task.id, task.digest, status, exit_code, message=message, **line, **{"cost_usd": 0.0, **facts})


def machine_failed(task: FleetTask, message: str) -> Result:
    """Return the result of a task that failed by the machine, not by the LLM."""
    return ended(task, **_MACHINE_FAILED, message=message, cost_usd=None)


_copying: defaultdict[Path, threading.Lock] = defaultdict(threading.Lock)


def _find_commit(work: "_Work", source: Source, bare: Path) -> str:
    """Return the task's commit in the worker's copy of the repository, made by the first task that needs it."""
    commit = work.task.commit
    while not _copying[bare].acquire(timeout=TICK):
        work.check()
    try:
        if not bare.exists():
            make_room(bare.parent)
            _copy(work, source, bare)
        question = ("rev-parse", "-q", "--verify", "--end-of-options")
        try:
            return work.git(bare, *question, f"{commit}^{{commit}}")
        except NotSetUpError:
            work.git(bare, "fetch", "-q", "origin", commit)
            return work.git(bare, *question, "FETCH_HEAD^{commit}")
    finally:
        _copying[bare].release()


def _copy(work: "_Work", source: Source, bare: Path) -> None:
    if source.problem:
        raise NotSetUpError(source.problem)
    refs = "--mirror" if work.task.path else "--bare"  # a host has refs of every pull request as well
    with TemporaryDirectory(dir=bare.parent, prefix="copy-", ignore_cleanup_errors=True) as folder:
        url, copy = source.url, Path(folder, "copy")
        if source.bundle is not None:
            url = f"{folder}/bundle"
            Path(url).write_bytes(source.bundle)
        work.git(bare.parent, "clone", "-q", refs, "--", url, str(copy))
        copy.rename(bare)


class _Work:
    """A task at work: its clone, its processes, its time."""

    def __init__(self, task: FleetTask, root: Path, supervision: TaskSupervision) -> None:
        self.task = task
        self.root = root
        self._supervision = supervision
        self._said = ""
        self._deadline = time.monotonic() + (task.timeout or math.inf)
        self._is_late = self._is_unwanted = False
        self._is_moved = False
        self.commit = ""
        self.repository: Repository | None = None
        self._record_seen = 0
        self._limits_met = 0
        self._logged: object = None
        self._packed: dict[str, tuple[tuple[int, ...], bytes]] = {}

    def do(self, source: Source, bare: Path, max_cost: float | None, log: bytes) -> TaskOutcome:
        """Do the task by the worker's copy of its repository. Raises as `run_task`, NotSetUpError and EndedError."""
        self.commit = _find_commit(self, source, bare)
        if self.task.solution == BUILD_ALONE:
            return TaskOutcome(self.build_before(bare))
        if self.task.solution:
            return TaskOutcome(self.validate(bare, self.task.solution))
        self.repository = self.clone(bare, self.commit, self.root, self.task.overlay)
        self.take_up(log)
        self.roll_up_and_run(max_cost)
        return self.outcome()

    def clone(self, source: Path, commit: str, root: Path, files: Files) -> Repository:
        """Make a clone with these files put over it, and what a run needs in it. Raises NotSetUpError."""
        sandboxes = (self.task.settings.get("sandbox"), os.environ.get(f"{ENVIRONMENT_PREFIX}SANDBOX"))
        way = "--local" if "strict" in sandboxes else "--shared"  # a build there does not see the copy
        if self.task.sealed:
            self.git(source, "init", "-q", "--", str(root))
            version = ("-c", "protocol.version=2")  # it gives any commit, not those of branches alone
            self.git(root, *version, "fetch", "-q", "--no-tags", "--", str(source), commit)
        else:
            self.git(source, "clone", "-q", way, "--no-checkout", "--", str(source), str(root))
        git = find_project(root).git
        if git is None or (git.work_tree, git.git_dir) != (root, root / ".git"):
            raise NotSetUpError(f"{root} is not the clone that was made for the task: nothing was done")
        self.git(root, "checkout", "-q", "--detach", commit)
        put_files(root, files)
        if self.task.build and not os.path.lexists(root / BUILD_SCRIPT):
            put_files(root, {BUILD_SCRIPT: self.task.build})
            files = {**files, BUILD_SCRIPT: self.task.build}
        if not os.path.lexists(root / BUILD_SCRIPT):
            raise NotSetUpError(NO_BUILD)
        with suppress(FileNotFoundError):
            if (root / SUBMODULES).lstat().st_size:
                raise NotSetUpError(NO_SUBMODULES)
        if self.task.setup:
            write_ignore_line(root)
        if files or self.task.setup:
            self.git(root, "update-index", "--add", "--remove", "--replace", "--", *files, ".gitignore")
            self.git(root, *_PLAIN, "commit", "-q", "--allow-empty", "-m", "Supply what the task brings along")
        config = root / AGENT_CONFIG
        try:
            config.mkdir(mode=0o700)
        except FileExistsError as error:
            raise NotSetUpError(f"the commit holds {AGENT_CONFIG}, where keys may be: take it out of git") from error
        (config / "query.txt").write_text(self.task.query, encoding="utf-8")
        lines = (f"{name} = {_toml(value)}\n" for name, value in self.task.settings.items() if value is not None)
        (config / "config.toml").write_text("".join(lines), encoding="utf-8")
        link_keys(config)
        for number, file in enumerate(self._supervision.hidden):
            (config / f"{number}-key.txt").symlink_to(Path(file).absolute())
        return git

    def build(self, source: Path, commit: str, files: Files) -> "_Built":
        """Run build.sh once in a fresh clone with these files put over it, in the sandbox of the task.

        Raises NotSetUpError where it cannot run.
        """
        root = Path(mkdtemp(dir=self.root.parent), "clone")
        self.clone(source, commit, root, files)
        no_llm = ("--rollup", "fresh", "--model", f"replay:{AGENT_CONFIG}")
        words = [*own_command(self.root.parents[1]), "check", "--build", "--json", *no_llm]
        done = self._process(words, root, self._environment())
        try:
            told = json.loads(done.stdout)
        except ValueError as error:
            raise NotSetUpError("the check of the build was killed") from error
        if "checks" not in told:
            raise NotSetUpError(told["message"])
        problems = "\n".join(check["problem"] for check in told["checks"] if check["problem"])
        if done.returncode > EXIT_BUILD_FAILED:
            raise NotSetUpError(problems)
        return _Built(problems, told.get("build_exit_code"))

    def build_before(self, bare: Path) -> Result:
        """Tell whether the build passes on the commit as it is. Raises NotSetUpError where it cannot run.

        A shell's 126 and 127 say that a program is missing, unless files of the task's own may be what calls it.
        """
        built = self.build(bare, self.commit, self.task.overlay)
        hopeless = self.task.settings.get("infrastructure_exit_codes", Settings().infrastructure_exit_codes)
        if built.exit_code in (*hopeless, *((126, 127) if self.task.overlay.keys() <= {BUILD_SCRIPT} else ())):
            lines = "\n".join(built.why.split("\n")[-_LINES_KEPT:])
            raise NotSetUpError(f"the build cannot run here (--no-baseline asks the LLM all the same):\n{lines}")
        return ended(self.task, *(("build_failed", EXIT_BUILD_FAILED, built.why) if built.why else ("success", 0, "")))

    def validate(self, bare: Path, solution: Solution) -> Result:
        """Tell by the build whether the tests tell the solution from what was before, and a run could find it."""
        build = {name: text for name, text in self.task.overlay.items() if name in (BUILD_SCRIPT, SUBMODULES)}
        kind = said = ""
        if not self.build(bare, self.commit, self.task.overlay | self.task.verify).why:
            kind = "tests pass before it"
        elif said := self.build(bare, solution.commit, build).why:
            kind = "tests fail after it"
        elif self.task.verify and (said := self.build(bare, solution.commit, build | solution.tests_before).why):
            kind = "tests of before, which a run sees, fail after it"
        if not kind:
            return ended(self.task, "success", 0, "")
        lines = said.split("\n")[-_LINES_KEPT:] if said else []
        told = "\n".join([": ".join([kind, *lines[-1:]]), *lines])
        return ended(self.task, "unfit", EXIT_BUILD_FAILED, told, error=kind)

    def _verify(self, tree: str, log: Path) -> dict[str, Any]:
        """Build a green result once more, with the files over it that the run did not see; return what that changes."""
        self._deadline = time.monotonic() + (self.task.timeout or math.inf)
        try:
            commit = self.git(self.root, *_PLAIN, "commit-tree", tree, "-p", self.commit, "-m", "The result")
            why = self.build(self.root, commit, self.task.overlay | self.task.verify).why
        except (NotSetUpError, EndedError) as error:
            if self._is_unwanted:
                return dict(_INTERRUPTED)
            why = str(error) or "timed out"
        (log / "verify.txt").write_text(f"{why or 'passed'}\n")
        failed = {"status": "not_verified", "exit_code": EXIT_BUILD_FAILED, "message": f"{_UNVERIFIED}{why}"}
        return {"verified": not why, **(failed if why else {})}

    def take_up(self, log: bytes) -> None:
        """Put the log of an earlier start back; the limits of time and money are those that the task has now.

        Of a run that had ended the last build is done again: what it made of other files is in no log. Where the base
        is another now, that is all that can be done: the LLM has seen the files of before.
        """
        if not log:
            return
        folder = self.root / AGENT_CONFIG / "logs" / "log"
        folder.parent.mkdir(mode=0o700)
        with suppress(ValueError, FileNotFoundError, tarfile.TarError):  # no log of ours: it begins anew
            unpack(log, folder)
            record = load_run_record((folder / "run.json").read_bytes())
            record.options = {name: value for name, value in record.options.items() if name not in LIMITS}
            self._is_moved = (folder / _BASE).exists() and (folder / _BASE).read_text() != self.commit
            if self._is_moved:
                record.options |= {"max_repairs": len(record.attempts) - 1}
            is_useless = self._is_moved and record.status != "success"
            record.status = "interrupted" if record.status == "success" else record.status
            (folder / "run.json").write_text(json.dumps(asdict(record)), encoding="utf-8")
            names = {folder / "choice": record.choice.run if record.choice else "", folder: record.run}
            for place, name in names.items():
                if place.is_dir() and re.fullmatch(r"[\w-]+", name):
                    place.rename(folder.with_name(name))
            if is_useless or not self._is_as_before(folder.with_name(record.run)):
                shutil.rmtree(folder.parent)

    def _is_as_before(self, folder: Path) -> bool:
        """Tell whether the clone has each file that a run changed as the run found it: its base may have moved on."""
        try:
            edits, lost = read_changes(folder, self.root)
            files = {edit.path: self.root / edit.path for edit in edits}
            found = {path: file.read_bytes() if file.exists() else None for path, file in files.items()}
        except (CodeCommitError, OSError):
            return False
        return not lost and all(found[edit.path] == edit.old for edit in edits)

    def roll_up_and_run(self, max_cost: float | None) -> None:
        """Write codeRollup.txt and run the main job, or go on with it. Raises NotSetUpError."""
        options = [] if max_cost is None else ["--max-cost", repr(max_cost)]
        self._code_commit(json.dumps([self.task.rollup, options, self._is_moved]))
        printed = self._printed("rollup.json")
        if self._printed("run.json") is None and printed and "exit_code" in printed:
            kind = WorkerError if printed["exit_code"] == MachineError.exit_code else NotSetUpError
            raise kind(printed["message"])

    def _printed(self, name: str) -> Any:
        """Return what a command printed, None where it printed nothing."""
        with suppress(OSError, ValueError):
            return json.loads((self.root.parent / name).read_bytes())

    def outcome(self) -> TaskOutcome:
        """Return what came of the run: by its log folder where it began, else by what it printed."""
        self._deadline = math.inf
        folder = self._log_folder()
        if folder is None:
            printed = self._printed("run.json")
            printed = load_run_record(json.dumps(printed)) if printed else None
            return TaskOutcome(ended(self.task, **self._facts_of(printed)))
        content = (folder / "run.json").read_bytes()
        record = load_run_record(content)
        facts, patches = self._facts_of(record), Patches()
        try:
            if record.attempts and self.repository:
                apart = {*self.task.overlay, BUILD_SCRIPT}
                patches = make_patches(self.repository, self.commit, record, folder, apart)
        except (CodeCommitError, UnansweredError) as error:
            why = f"no patch could be made: {error}"
            kind = "" if isinstance(error, UnansweredError) and _tells_of_no_room(error.complaint) else "patch"
            facts |= {**_MACHINE_FAILED, "message": why, "error": kind}
        if facts["exit_code"] == 0 and self.task.verify:
            try:
                facts |= self._verify(patches.tree, folder)
            except (WorkerError, OSError) as error:
                facts |= {**_MACHINE_FAILED, "message": f"{_UNVERIFIED}{error}"}
        result = ended(
            self.task,
            **facts,
            patch=digest_of(patches.changes),
            lines_added=patches.lines_added,
            lines_removed=patches.lines_removed,
            build_changes=tuple(record.build_changes) if patches.build else (),
            rewritten=tuple(file.path for file in record.rewritten if patches.changes),
        )
        redact = make_redactor(self.root).redact
        log = self._packed_log(folder, content, record)
        return TaskOutcome(result, content, redact(patches.changes), log, redact(patches.build))

    def _facts_of(self, record: RunRecord | None) -> dict[str, Any]:
        """Return the members of the result that tell of the run, and how the task ended."""
        end = self._end_of(record)
        if record is None:
            return end
        totals, error = record.totals, record.error
        return {
            **end,
            "model": record.asked_model,
            "commit": self.commit,
            "run": first_run(record),
            "cost_usd": cost_of(record),
            "input_tokens": totals.usage.input,
            "output_tokens": totals.usage.output,
            "attempts": totals.attempts,
            "files_changed": totals.files_changed,
            "needed_usd": (error and error.needed_usd) or 0.0,
            "error": error.kind if error else "",
        }

    def _end_of(self, record: RunRecord | None) -> dict[str, Any]:
        """Return how the task ended: by its time, by the fleet, by the machine, or as its run did."""
        if self._is_late and not (record and record.status == "success"):
            message = f"timed out after {duration(self.task.timeout or 0)}"
            return {"status": "timed_out", "exit_code": 128 + signal.SIGTERM, "message": message}
        if record is None or record.exit_code is None:
            killed = {**_MACHINE_FAILED, "message": self._said or "the run was killed", "cost_usd": None}
            return dict(_INTERRUPTED) if self._is_unwanted else killed
        build = record.attempts[-1].build if record.attempts else None
        failed = f"build: {ending_of(build)}: {self._last_words(record)}" if build and not build.passed else ""
        message = record.message or failed.removesuffix(": ")
        if record.status == "not_set_up" and record.error and record.error.kind == NoKeyError.kind:
            message = f"the worker has no usable key for the model: set its variable there, or {KEYS_VARIABLE}"
        return {"status": record.status, "exit_code": record.exit_code, "message": message}

    def _last_words(self, record: RunRecord) -> str:
        """Return the last line of the last build's output, "" where it said nothing."""
        with suppress(OSError, IndexError):  # the very last line is its exit code
            if folder := self._log_folder():
                ends = read_ends(folder / f"{record.attempts[-1].number}-build.txt", 0, TAIL_BYTES)
                return last_lines(ends.tail)[-2].strip()[:_LONGEST_REASON]
        return ""

    def check(self) -> None:
        """Raise EndedError when it is time to end; pass on what the log says that is new."""
        self._is_unwanted = not self._supervision.is_wanted()
        self._is_late = not self._is_unwanted and time.monotonic() > self._deadline
        if self._is_unwanted or self._is_late:
            raise EndedError
        with suppress(OSError, ValueError):
            folder = self._log_folder()
            if folder and (written := (folder / "run.json").stat().st_mtime_ns) != self._record_seen:
                self._pass_on(folder, (folder / "run.json").read_bytes())
                self._record_seen = written

    def _pass_on(self, folder: Path, content: bytes) -> None:
        """Pass on what this content of run.json says; the log only where no answer is half applied in it."""
        record = load_run_record(content)
        retries = [retry for attempt in record.attempts for retry in attempt.retries]
        met = sum(retry.status in TOO_MANY_REQUESTS for retry in retries)
        if met > self._limits_met:
            self._supervision.limited()
        self._limits_met = met
        steps = [(len(each.unsettled_usd), each.finish_reason, each.verdict, each.build) for each in record.attempts]
        is_applying = any(each.changes and each.verdict is None for each in record.attempts[-1:])
        if steps != self._logged and not is_applying:
            log = self._packed_log(folder, content, record)
            if (folder / "run.json").read_bytes() == content:  # else it is packed again, with the next look
                self._supervision.logged(log)
                self._logged = steps

    def _packed_log(self, folder: Path, content: bytes, record: RunRecord) -> bytes:
        """Return the packed log of a run, with this content of run.json: what it tells of was written before it."""
        choice = {"choice": folder.with_name(record.choice.run)} if record.choice else {}
        return packed({"": folder} | choice, {"run.json": content, _BASE: self.commit.encode()}, self._packed)

    def git(self, folder: Path, *arguments: str) -> str:
        """Run git and return what it prints. Raises NotSetUpError with its complaint."""
        outside = outside_environment(folder).items()
        environment = {name: value for name, value in outside if name not in _ANOTHER_REPOSITORY}
        environment |= {"GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C"}
        words = [require_git(folder), "-c", "core.fsmonitor=false", *arguments]
        done = self._process(words, folder, environment)
        if done.returncode != 0:
            complaint = shown(" ".join(done.stderr.decode("utf-8", "replace").split())[:1000])
            kind = WorkerError if _tells_of_no_room(complaint) else GitError
            raise kind(f"git {arguments[0]} of {self.task.repository}: {complaint}")
        return done.stdout.decode("utf-8", "replace").strip()

    def _code_commit(self, steps: str) -> None:
        """Do the steps in the clone. An interrupted one says itself how it ended."""
        words = isolated("code_commit.fleet.clone", "work", self.root.parents[1])
        self._said = ""
        said = self._process([*words, steps], self.root, self._environment()).stderr.decode("utf-8", "replace")
        self._said = shown(said.strip().rpartition("\n")[2])

    def _environment(self) -> dict[str, str]:
        """Return the environment of the run; the addresses that the task names stand in it, so that keys go there."""
        named = {KEYS_VARIABLE, *(ENVIRONMENT_PREFIX + name.upper() for name in self.task.settings)}
        addresses = find_addresses(self.task.settings).items()
        return {name: value for name, value in os.environ.items() if name not in named} | {
            ENVIRONMENT_PREFIX + name.upper(): url for name, url in addresses
        }

    def _process(
        self, words: list[str], folder: Path, environment: dict[str, str]
    ) -> subprocess.CompletedProcess[bytes]:
        """Run a program to its end. Raises what `check` raises; then it has ended, with its session."""
        words = ended_with_us(words, folder)
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

    def _log_folder(self) -> Path | None:
        return next(reversed(list_runs(self.root)), None)


def link_keys(config: Path) -> None:
    """Link the key files of this machine into a folder agent-config, where it has a folder of them."""
    if keys := os.environ.get(KEYS_VARIABLE):
        for provider in KEY_VARIABLES:
            (config / f"{provider}-key.txt").symlink_to(Path(keys, f"{provider}-key.txt").absolute())


def cost_of(record: RunRecord) -> float | None:
    """Return what a run can have cost in US dollars, None where a price is not known.

    A call whose end is not known counts with the most that it can have cost.
    """
    may_be_paid = record.error.may_be_paid if record.error else record.finished is None
    unknown = (
        attempt.cost_usd is None
        and not attempt.unsettled_usd
        and bool(attempt.finish_reason or attempt.job_id or may_be_paid)
        for attempt in record.attempts
    )
    choice = record.choice
    is_unknown = choice is not None and choice.calls > 0 and choice.cost_usd is None and not choice.unsettled_usd
    return None if is_unknown or any(unknown) else record.spent_usd


def first_run(record: RunRecord) -> str:
    """Return the name by which a run's cost is counted: that of its choice of files, whose cost it includes."""
    return record.choice.run if record.choice else record.run


def _end(process: subprocess.Popen[bytes]) -> None:
    """End a program and its session, with force when it takes too long."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        with suppress(ProcessLookupError, subprocess.TimeoutExpired):
            os.killpg(process.pid, number)
            process.communicate(timeout=GRACE)


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
            if error.errno in _NO_ROOM:
                raise
            raise NotSetUpError(f"{shown(name)} cannot be supplied: {error.strerror}") from error


def _toml(value: Any) -> str:
    """Return a setting as config.toml has it."""
    if isinstance(value, dict):
        return f"{{{', '.join(f'{json.dumps(name)} = {_toml(part)}' for name, part in value.items())}}}"
    return json.dumps(value, ensure_ascii=False)
