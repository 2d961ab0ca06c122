"""A task on a worker: a clone of its own, in which the commands run as processes.

The worker's folder has one bare copy of each repository, whose objects the clones share.
"""

import json
import os
import re
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from code_commit.api import list_runs, make_redactor, read_changes
from code_commit.errors import CodeCommitError, MachineError, NoKeyError, NotSetUpError
from code_commit.files import load_json, read_ends
from code_commit.fleet import in_fleet_words
from code_commit.fleet.baseline import ways_left_out
from code_commit.fleet.builds import (
    PLAIN_GIT,
    EndedError,
    GitError,
    Source,
    TaskProcesses,
    WorkerError,
    Workshop,
    copy_path,
    find_commit,
    tells_of_no_room,
)
from code_commit.fleet.clone import DRAIN
from code_commit.fleet.patches import Patches, digest_of, make_patches
from code_commit.fleet.results import Parts, TaskOutcome, first_run, packed, recorded_cost, unpack
from code_commit.fleet.tasks import BUILD_ALONE, LIMITS, FleetTask
from code_commit.fleet.unfinished import STARTS, log_path, starts_file
from code_commit.git import Repository, UnansweredError, require_utf8_names
from code_commit.llm.ledger import ROUNDING
from code_commit.outputs import failure_line
from code_commit.project import AGENT_CONFIG, BUILD_SCRIPT
from code_commit.runs.record import RunRecord, load_run_record
from code_commit.runs.words import duration, ending_of
from code_commit.settings import KEYS_VARIABLE
from code_commit.sources import read_user_settings
from code_commit.status import Status
from code_commit.terminal import TAIL_BYTES, shown
from code_commit.trust import isolated

TASK_PREFIX = "task-"  # the begin of the name of a task's folder
_LONGEST_REASON = 200
_BASE = "base-commit.txt"
_BUILT = "built.json"
_TASK = "task.json"  # beside the clone: the name of the task's log in OUT, and the base commit
_ENDED = "the fleet was ended"
_UNVERIFIED = "green, but not verified by the build with the hidden files: "


class TaskSupervision(NamedTuple):
    """The words of a task's sender on how to do it, and its callbacks."""

    is_wanted: Callable[[], bool] = lambda: True  # whether to continue
    logged: Callable[[bytes], object] = lambda _: None  # gets the log as it grows
    hidden: Sequence[str | Path] = ()  # files that a sandbox hides from builds, if they exist here
    start: str = ""  # the line for this start in its log, as `starts_file` takes it
    is_drained: Callable[[], bool] = lambda: False  # whether to end before the next call to an LLM


def run_task(  # noqa: PLR0913, PLR0917 - what a task is, and what it may take
    task: FleetTask, source: Source, place: Path, max_cost: float | None, supervision: TaskSupervision, log: bytes = b""
) -> TaskOutcome:
    """Do the task in a clone below `place`, and remove the clone. The run may cost `max_cost` US dollars.

    `log` is the packed log of a run to continue. A task that is not wanted any more ends at once. Raises WorkerError
    and OSError.
    """
    begun = time.monotonic()
    place.mkdir(mode=0o700, parents=True, exist_ok=True)
    with TemporaryDirectory(dir=place, prefix=TASK_PREFIX, ignore_cleanup_errors=True) as folder:
        run = _Run(task, Path(os.path.realpath(folder), "clone"), supervision)
        try:
            require_utf8_names()
            outcome = run.do(source, copy_path(place, source.url), max_cost, log)
        except NotSetUpError as error:
            kind = "clone" if isinstance(error, GitError) else ""
            outcome = TaskOutcome(task.ended(Status.NOT_SET_UP, str(error), error=kind))
        except EndedError:
            outcome = run.outcome()
    seconds = time.monotonic() - begun + run.seconds_before.get(outcome.result.run, 0.0)
    message = in_fleet_words(outcome.result.message)
    return outcome._replace(result=replace(outcome.result, message=message, seconds=seconds))


class _Run:
    """The run of a task in its clone. It reports the log as it grows, and returns the outcome."""

    def __init__(self, task: FleetTask, root: Path, supervision: TaskSupervision) -> None:
        self._task, self._root, self._supervision = task, root, supervision
        self._processes = TaskProcesses(task, supervision.is_wanted, self._look)
        self._workshop = Workshop(task, root.parent, self._processes, tuple(supervision.hidden))
        self._said = ""
        self._is_moved = False
        self._spent = 0.0
        self.seconds_before: dict[str, float] = {}  # by run: the time that it took until this start went on with it
        self._commit = ""
        self._repository: Repository | None = None
        self._record_seen = 0
        self._logged: object = None
        self._packed: Parts = {}

    def do(self, source: Source, bare: Path, max_cost: float | None, log: bytes) -> TaskOutcome:
        """Do the task by the worker's copy of its repository. Raises as `run_task`, NotSetUpError and EndedError."""
        self._commit = find_commit(self._task, source, bare, self._processes)
        if self._task.solution == BUILD_ALONE:
            return TaskOutcome(*self._workshop.build_before(bare, self._commit))
        if self._task.solution:
            return TaskOutcome(self._workshop.validate(bare, self._commit, self._task.solution))
        told = json.dumps([log_path(Path(), self._task).name, self._commit, self._supervision.start])
        (self._root.parent / _TASK).write_text(told, encoding="utf-8")
        self._repository = self._workshop.clone(bare, self._commit, self._root, self._task.overlay)
        self._take_up(log)
        self._roll_up_and_run(max_cost)
        return self.outcome()

    def _take_up(self, log: bytes) -> None:
        """Put the log of an earlier start into the clone, with the limits of time and money that the task has now.

        The last build of a finished run is repeated, since the log lacks the files that it made. If the base has moved,
        nothing else is done: the LLM saw the earlier files.
        """
        if not log:
            return
        folder = self._root / AGENT_CONFIG / "logs" / "log"
        folder.parent.mkdir(mode=0o700)
        with suppress(ValueError, FileNotFoundError):  # no log of ours: it begins anew
            unpack(log, folder)
            record = load_run_record((folder / "run.json").read_bytes())
            self._spent = record.cost.highest
            self.seconds_before[first_run(record)] = record.totals.seconds
            record.options = {name: value for name, value in record.options.items() if name not in LIMITS}
            self._is_moved = (folder / _BASE).exists() and (folder / _BASE).read_text() != self._commit
            if self._is_moved:
                record.options |= {"max_repairs": len(record.attempts) - 1}
            is_useless = self._is_moved and record.status != Status.SUCCESS
            record.status = Status.INTERRUPTED if record.status == Status.SUCCESS else record.status
            (folder / "run.json").write_text(json.dumps(asdict(record)), encoding="utf-8")
            names = {folder / "choice": record.choice.run if record.choice else "", folder: record.run}
            for place, name in names.items():
                if place.is_dir() and re.fullmatch(r"[\w-]+", name):
                    place.rename(folder.with_name(name))
            if is_useless or not self._is_as_before(folder.with_name(record.run)):
                shutil.rmtree(folder.parent)

    def _is_as_before(self, folder: Path) -> bool:
        """Return whether each file that a run changed is in the clone as the run found it."""
        try:
            edits, lost = read_changes(folder, self._root)
            files = {edit.path: self._root / edit.path for edit in edits}
            found = {path: file.read_bytes() if file.exists() else None for path, file in files.items()}
        except (CodeCommitError, OSError):
            return False
        return not lost and all(found[edit.path] == edit.old for edit in edits)

    def _roll_up_and_run(self, max_cost: float | None) -> None:
        """Write codeRollup.txt and run the main job, or continue it. Raises NotSetUpError and WorkerError."""
        limits = () if max_cost is None else (max_cost, max(max_cost - self._spent, ROUNDING))  # anew: the rest
        again, anew = [["--max-cost", repr(limit)] for limit in limits] or ([], [])
        words = isolated("code_commit.fleet.clone", "work", self._root.parents[1])
        if self._task.built:
            (self._root.parent / _BUILT).write_text(self._task.built, encoding="utf-8")
            anew = [*anew, "--built", f"../{_BUILT}"]
        words.append(json.dumps([self._task.rollup, again, anew, self._is_moved]))
        said = self._processes.command(words, self._root).stderr.decode("utf-8", "replace")
        self._said = shown(said.strip().rpartition("\n")[2])
        printed = self._printed("rollup.json")
        if self._printed("run.json") is None and printed and "exit_code" in printed:
            kind = WorkerError if printed["exit_code"] == MachineError.exit_code else NotSetUpError
            raise kind(printed["message"])

    def _printed(self, name: str) -> Any:
        """Return the JSON that a command printed, None without any."""
        with suppress(OSError, ValueError):
            return json.loads((self._root.parent / name).read_bytes())

    def _printed_record(self) -> RunRecord | None:
        printed = self._printed("run.json")
        return load_run_record(json.dumps(printed)) if printed else None

    def outcome(self) -> TaskOutcome:
        """Return the outcome of the run, from its log folder, or from its output if it has none."""
        self._processes.set_timeout(None)
        folder = self._log_folder()
        if folder is None:
            return TaskOutcome(self._task.ended(**self._facts_of(self._printed_record())))
        content = (folder / "run.json").read_bytes()
        record = load_run_record(content)
        facts, patches, told = self._facts_of(record), Patches(), content
        if record.is_auxiliary:  # files were chosen, and no run began
            facts |= self._end_of(self._printed_record())
        try:
            if record.attempts and self._repository:
                apart = {*self._task.overlay, BUILD_SCRIPT}
                patches = make_patches(self._repository, self._commit, record, folder, apart)
        except (CodeCommitError, UnansweredError) as error:
            why = f"no patch could be made: {error}"
            kind = "" if isinstance(error, UnansweredError) and tells_of_no_room(error.complaint) else "patch"
            facts |= {**_end(Status.MACHINE_FAILED, why), "error": kind}
        is_supplied = self._workshop.supplies_build
        facts |= {"is_build_supplied": is_supplied, "without_build": "" if is_supplied else self._task.without_build}
        if facts["exit_code"] == 0 and self._task.verify:
            try:
                facts |= self._verify(patches.tree, folder)
            except (WorkerError, OSError) as error:
                facts |= _end(Status.MACHINE_FAILED, f"{_UNVERIFIED}{error}")
            if facts["status"] == Status.NOT_VERIFIED:  # the record beside the log tells what the table tells
                judged = replace(record, **_end(Status.BUILD_FAILED, facts["message"]))
                told = json.dumps(asdict(judged)).encode()
        result = self._task.ended(
            **facts,
            patch=digest_of(patches.changes),
            lines_added=patches.lines_added,
            lines_removed=patches.lines_removed,
            build_changes=tuple(record.build_changes) if patches.build else (),
            rewritten=tuple(file.path for file in record.rewritten if patches.changes),
        )
        redact = make_redactor(self._root).redact
        log = self._packed_log(folder, content, record, is_over=True)
        return TaskOutcome(result, told, redact(patches.changes), log, redact(patches.build))

    def _verify(self, tree: str, log: Path) -> dict[str, Any]:
        """Build a green result again with the files that the run did not see; return the members that this changes."""
        self._processes.set_timeout(self._task.timeout)
        try:
            words = ("commit-tree", tree, "-p", self._commit, "-m", "The result")
            commit = self._processes.git(self._root, *PLAIN_GIT, *words)
            why = self._workshop.build(self._root, commit, self._task.overlay | self._task.verify).why
        except (NotSetUpError, EndedError) as error:
            if self._processes.is_unwanted:
                return _end(Status.INTERRUPTED, _ENDED)
            why = str(error) or "timed out"
        (log / "verify.txt").write_text(f"{why or 'passed'}\n", encoding="utf-8")
        return {"verified": not why, **(_end(Status.NOT_VERIFIED, f"{_UNVERIFIED}{why}") if why else {})}

    def _facts_of(self, record: RunRecord | None) -> dict[str, Any]:
        """Return the members of the result that the record determines."""
        end = self._end_of(record)
        if record is None:
            return end
        totals, error = record.totals, record.error
        return {
            **end,
            "model": record.asked_model,
            "commit": self._commit,
            "run": first_run(record),
            "cost_usd": recorded_cost(record).settled,
            "unsettled_usd": record.cost.unsettled,
            "input_tokens": totals.usage.input,
            "output_tokens": totals.usage.output,
            "attempts": totals.attempts,
            "files_changed": totals.files_changed,
            "needed_usd": (error and error.needed_usd) or 0.0,
            "error": error.kind if error else "",
        }

    def _end_of(self, record: RunRecord | None) -> dict[str, Any]:
        """Return status, exit code and message: by timeout, by the fleet, by the machine, or of the run."""
        if self._processes.is_late and not (record and record.status == Status.SUCCESS):
            return _end(Status.TIMED_OUT, f"timed out after {duration(self._task.timeout or 0)}")
        if record is None or record.exit_code is None:
            if self._processes.is_unwanted:
                return _end(Status.INTERRUPTED, _ENDED)
            return _end(Status.MACHINE_FAILED, self._said or "the run was killed")
        build = record.attempts[-1].build if record.attempts else None
        failed = f"build: {ending_of(build)}: {self._last_words(record)}" if build and not build.passed else ""
        message = record.message or failed.removesuffix(": ")
        if record.status == Status.NOT_SET_UP and record.error and record.error.kind == NoKeyError.kind:
            message = f"the worker has no usable key for the model: set the key's variable there, or {KEYS_VARIABLE}"
        elif record.error and record.error.kind == NoKeyError.kind:  # what the run calls so are links into that folder
            message = message.replace(f"{AGENT_CONFIG}/", f"${KEYS_VARIABLE}/")
        if record.error and record.error.kind in ("key", "refused"):
            left_out = ways_left_out([self._task], read_user_settings(None, os.environ, []))
            message = f"{message}; {left_out}" if left_out else message
        return {"status": record.status, "exit_code": record.exit_code, "message": message}

    def _last_words(self, record: RunRecord) -> str:
        """Return the line that tells of the last build's failure, "" where it said nothing."""
        with suppress(OSError):
            if folder := self._log_folder():
                ends = read_ends(folder / f"{record.attempts[-1].number}-build.txt", 0, TAIL_BYTES)
                output = ends.tail.rstrip().rpartition(b"\n")[0]  # the very last line is its exit code
                said = make_redactor(self._root).redact_text(failure_line(output).strip())  # a key may be whole again
                return said[:_LONGEST_REASON]
        return ""

    def _look(self) -> None:
        """Report what is new in the log, and let a drained task make no more calls."""
        with suppress(OSError, ValueError):
            if self._supervision.is_drained():
                (self._root.parent / DRAIN).touch()
            folder = self._log_folder()
            if folder and (written := (folder / "run.json").stat().st_mtime_ns) != self._record_seen:
                self._pass_on(folder, (folder / "run.json").read_bytes())
                self._record_seen = written

    def _pass_on(self, folder: Path, content: bytes) -> None:
        """Report this content of run.json; the log only while no answer is half applied."""
        record = load_run_record(content)
        steps = [
            (len(each.unsettled_usd), each.job_id, each.finish_reason, each.verdict, each.build)
            for each in record.attempts
        ]
        if steps != self._logged and not _is_applying(record):
            log = self._packed_log(folder, content, record)
            if (folder / "run.json").read_bytes() == content:  # else it is packed again, with the next look
                self._supervision.logged(log)
                self._logged = steps

    def _packed_log(self, folder: Path, content: bytes, record: RunRecord, *, is_over: bool = False) -> bytes:
        """Return the packed log of a run with this content of run.json, which was written after the other files."""
        starts = starts_file(folder, self._supervision.start, is_over=is_over)
        return _packed_log(folder, content, record, {_BASE: self._commit.encode(), STARTS: starts}, self._packed)

    def _log_folder(self) -> Path | None:
        return next(reversed(list_runs(self._root)), None)


def _end(status: Status, message: str) -> dict[str, Any]:
    return {"status": status, "exit_code": status.exit_code, "message": message}


def _is_applying(record: RunRecord) -> bool:
    """Tell whether an answer may be half applied."""
    return any(each.changes and each.verdict is None for each in record.attempts[-1:])


def _packed_log(folder: Path, content: bytes, record: RunRecord, facts: Mapping[str, bytes], kept: Parts) -> bytes:
    choice = {"choice": folder.with_name(record.choice.run)} if record.choice else {}
    return packed({"": folder} | choice, {"run.json": content, **facts}, kept)


def left_log(folder: Path) -> tuple[str, bytes]:
    """Return name and content of the log of a task whose worker was killed. Raises OSError, ValueError without any."""
    told = load_json((folder / _TASK).read_bytes())
    if not (isinstance(told, list) and len(told) == 3 and all(isinstance(word, str) for word in told)):
        raise ValueError(folder)
    name, base, start = told
    run = next(reversed(list_runs(folder / "clone")), None)
    facts = {_BASE: base.encode(), STARTS: starts_file(run or folder, start, is_over=True)}
    if run is None:
        return name, packed({}, facts)
    content = (run / "run.json").read_bytes()
    if _is_applying(record := load_run_record(content)):
        raise ValueError(folder)
    return name, _packed_log(run, content, record, facts, {})
