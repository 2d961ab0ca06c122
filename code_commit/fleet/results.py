"""The folder of a fleet's results: a line per task in results.jsonl, and a folder per task with all that came of it.

    OUT/results.jsonl       a line per result; the latest of a task counts
    OUT/index.html          the page of all tasks
    OUT/ID/run.json         the record of the run, where one began
    OUT/ID/changes.patch    what its answers changed, a mail for `git am -3` and `git apply --index`
    OUT/ID/build.patch      what the build changed of tracked files beside, the same
    OUT/ID/log/             the log folder of the run, and in choice/ that of the choice of files before it

A task's folder is completed beside its place and renamed, then its line is written: a result with a line is whole.
"""

import dataclasses
import fcntl
import gzip
import io
import json
import os
import re
import shutil
import tarfile
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from code_commit.commands.results import RESULTS, Result, counting, read_lines
from code_commit.errors import LogError, NotSetUpError
from code_commit.exchange import Cost
from code_commit.files import identity_of, replacing, sync_names, write_all
from code_commit.runs.record import RunRecord
from code_commit.runs.words import cost_in_words, count
from code_commit.status import Status, status_in_words

PAGE = "index.html"
LANDED = "landed.jsonl"
BASELINES = "baselines.jsonl"
CLONES = "clones"
RESERVED = frozenset({RESULTS, PAGE, LANDED, BASELINES, CLONES})  # names in OUT that no task may have, in lower case

NAME = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$"  # the pattern of a task's id, which names its folder

_NEW, _OLD = ".new", ".old"  # of `.ID.new`: no task's name begins with a dot
_GREEN = "green"  # of a result for another line, below the red one that followed
_ROOM = f".room{_NEW}"
_LEAST_LEFT, _GROWTH = 1 << 16, 1 << 18  # bytes


class TaskOutcome(NamedTuple):
    """The outcome of a task; parts that its run did not reach are empty. `log` is a folder as `packed` returns it."""

    result: Result
    record: bytes = b""
    patch: bytes = b""
    log: bytes = b""
    build_patch: bytes = b""


@dataclass(slots=True)
class FleetTotals:
    """Sums over the results of so many tasks, and the costs of all runs, but for those of `unknown_costs` tasks."""

    tasks: int
    done: int = 0
    green: int = 0
    statuses: Counter[str] = field(default_factory=Counter)
    attempts: int = 0  # of the latest run of each task
    cost_usd: float = 0.0
    unsettled_usd: float = 0.0
    unknown_costs: int = 0
    built: int = 0  # tasks with a build.patch
    has_more_runs: bool = False  # than the latest ones

    def add(self, result: Result) -> None:
        self.done += 1
        self.green += result.is_green
        self.statuses[result.status] += 1
        self.attempts += result.attempts
        self.built += bool(result.build_changes)
        self.cost_usd += result.cost_usd or 0.0
        self.unsettled_usd += result.unsettled_usd
        self.unknown_costs += not result.is_cost_known
        self.has_more_runs |= result.has_more_runs

    def set_cost(self, cost: Cost) -> None:
        self.cost_usd, self.unsettled_usd = cost.settled or 0.0, cost.unsettled

    @property
    def in_words(self) -> str:
        """Return `7 of 10 tasks green, 2 build failed, 1 not done`."""
        statuses = self.statuses.most_common()
        others = [(status_in_words(status), number) for status, number in statuses if status != Status.SUCCESS]
        parts = [f"{number} {status}" for status, number in [*others, ("not done", self.tasks - self.done)] if number]
        return ", ".join([f"{self.green} of {count(self.tasks, 'task')} green", *parts])

    @property
    def cost(self) -> str:
        """Return `$0.31`, `$0.31 and 2 tasks of unknown cost`, or `cost unknown` where no cost is known."""
        known = cost_in_words(self.known, short=True)
        known += " in all runs" if known and self.has_more_runs else ""
        unknown = f"{count(self.unknown_costs, 'task')} of unknown cost" if self.unknown_costs else ""
        return " and ".join(filter(None, [known, unknown])) if known else "cost unknown"

    @property
    def known(self) -> Cost:
        return Cost(self.cost_usd or (None if self.unknown_costs else 0.0), self.unsettled_usd)


def recorded_cost(record: RunRecord) -> Cost:
    """Return the cost of a run, without a settled part where a price is unknown."""
    may_be_paid = record.error.may_be_paid if record.error else record.finished is None
    unknown = [
        attempt.unpriced > 0
        or (
            attempt.cost_usd is None
            and not attempt.unsettled_usd
            and bool(attempt.finish_reason or attempt.job_id or may_be_paid)
        )
        for attempt in record.attempts
    ]
    if choice := record.choice:
        unknown.append(choice.calls > 0 and choice.cost_usd is None and not choice.unsettled_usd)
    return dataclasses.replace(record.cost, settled=None if any(unknown) else record.cost.settled or 0.0)


def first_run(record: RunRecord) -> str:
    """Return the name by which a run's cost is counted: that of its choice of files, whose cost it includes."""
    return record.choice.run if record.choice else record.run


@contextmanager
def results_folder(out: Path) -> Iterator[None]:
    """Make the folder of a fleet's results if need be, and lock it for this fleet until the block ends.

    Raises NotSetUpError if it cannot be used, holds something else, or is locked by another fleet.
    """
    file = out / RESULTS
    try:
        out.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not file.exists() and any(out.iterdir()):
            raise NotSetUpError(f"{out} is not empty and has no results of a fleet: name another folder")
        opened = os.fdopen(open_own(file, os.O_RDWR | os.O_CREAT), "rb")
    except OSError as error:
        raise NotSetUpError(f"the folder {out} cannot be used: {error.strerror}; name another") from error
    with opened as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise NotSetUpError(f"another fleet is using {out}: wait for it to end, or name another folder") from error
        if b"\n" in file.read_bytes() and not load_results(out):
            raise NotSetUpError(f"{file} was not written by a fleet: name another folder")
        _clear_up(out)
        reserve_room(out, {})
        free_room(out)
        try:
            yield
        finally:
            free_room(out)


def reserve_room(out: Path, logs: Mapping[str, int]) -> None:
    """Reserve room on the disk for another copy of logs of these sizes, each with one more answer. Raises LogError."""
    try:
        with open(open_own(out / _ROOM, os.O_RDWR | os.O_CREAT), "r+b", buffering=0) as file:
            size = sum(logs.values()) + _GROWTH * len(logs)
            os.posix_fallocate(file.fileno(), 0, size + _LEAST_LEFT)
            os.ftruncate(file.fileno(), size)
    except OSError as error:
        free_room(out)
        raise LogError(out, error) from error


def free_room(out: Path) -> None:
    (out / _ROOM).unlink(missing_ok=True)


def open_own(file: Path, flags: int) -> int:
    """Open a file, but no link in its place. Raises OSError."""
    return os.open(file, flags | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)


def _clear_up(out: Path) -> None:
    """Put back or remove the temporary folders of a fleet that was killed."""
    for new in out.glob(f".*{_NEW}"):
        _put_green_back(new, out / new.name[1 : -len(_NEW)])
    for old in out.glob(f".*{_OLD}"):
        with suppress(OSError):  # the new one is in its place
            old.rename(out / old.name[1 : -len(_OLD)])
    for left in [*out.glob(f".*{_OLD}"), *out.glob(f".*{_NEW}")]:
        with suppress(OSError):
            shutil.rmtree(left) if left.is_dir() else left.unlink()


def load_results(out: Path) -> dict[str, Result]:
    """Return the result of each task that counts, by its id. Raises NotSetUpError where there is no results.jsonl."""
    return counting(load_lines(out))


def load_lines(out: Path) -> list[Result]:
    """Return all results in their order. Raises NotSetUpError where there is no results.jsonl."""
    try:
        lines = read_lines(out / RESULTS, Result)
    except OSError as error:
        raise NotSetUpError(f"{out} has no results of a fleet ({RESULTS}: {error.strerror}): name another") from error
    return [line for line in lines if re.fullmatch(NAME, line.id) and line.id.lower() not in RESERVED]


def store_result(out: Path, outcome: TaskOutcome, results: Mapping[str, Result]) -> None:
    """Write the folder of a task's result, then its line; `results` are those that count so far.

    An earlier green result stays: in its place if it still counts, else inside the new folder. Raises LogError, as on a
    full disk; then nothing is stored.
    """
    result = outcome.result
    new, place = out / f".{result.id}{_NEW}", out / result.id
    before = results.get(result.id) if place.is_dir() and not result.is_green else None
    green = before if before and before.is_green else None
    try:
        shutil.rmtree(new, ignore_errors=True)
        new.mkdir(mode=0o700)
        unpack(outcome.log, new / "log")
        parts = {"run.json": outcome.record, "changes.patch": outcome.patch, "build.patch": outcome.build_patch}
        for name, content in parts.items():
            if content:
                with replacing(new / name, sync=True) as file:
                    file.write(content)
        sync_names(new)
        if green and green.digest == result.digest:
            shutil.rmtree(place / "red", ignore_errors=True)
            new.rename(place / "red")
        else:
            _put_in_place(new, place, keep_as=_GREEN if green else "")
        append_line(out / RESULTS, result)
    except OSError as error:
        _put_green_back(new, place)
        shutil.rmtree(new, ignore_errors=True)
        raise LogError(out / result.id, error) from error


def append_line(path: Path, value: Any) -> None:
    """Append a dataclass to a file of JSON Lines, durably and whole. Raises LogError.

    If writing fails, the half line is removed; one that a kill left is ended first.
    """
    line = json.dumps(dataclasses.asdict(value)).encode() + b"\n"
    try:
        with open(open_own(path, os.O_RDWR | os.O_CREAT), "r+b", buffering=0) as file:
            end = file.seek(0, os.SEEK_END)
            file.seek(max(0, end - 1))
            lead = b"" if file.read(1) in (b"", b"\n") else b"\n"
            try:
                write_all(file.fileno(), lead + line)
                os.fsync(file.fileno())
            except OSError:
                file.truncate(end)
                raise
    except OSError as error:
        raise LogError(path, error) from error


def write_own(file: Path, content: bytes, *, sync: bool = False) -> None:
    """Write a file whole or not at all. Raises LogError."""
    try:
        with replacing(file, sync=sync) as written:
            written.write(content)
    except OSError as error:
        raise LogError(file, error) from error


def _put_green_back(new: Path, place: Path) -> None:
    """Move a green result back from a new one that did not get into its place."""
    with suppress(OSError):
        (new / _GREEN).rename(place)


def _put_in_place(new: Path, place: Path, keep_as: str) -> None:
    """Put a folder in the place of another, which is removed, or kept in it by this name."""
    old = new.with_suffix(_OLD)
    if place.exists():
        place.rename(old)
    if keep_as:
        old.rename(new / keep_as)
    new.rename(place)
    shutil.rmtree(old, ignore_errors=True)
    sync_names(place.parent)


Parts = dict[str, tuple[tuple[int, ...], bytes]]
"""The parts of an archive by the names of their files, each with the version of its file."""


def packed(
    folders: Mapping[str, Path], contents: Mapping[str, bytes] | None = None, kept: Parts | None = None
) -> bytes:
    """Return the files of folders as a compressed tar archive, each below its name in it. Raises OSError.

    `contents` come first, in place of the files of that name. `kept` has the parts of an earlier archive: only
    what grew is compressed.
    """
    contents, kept = contents or {}, {} if kept is None else kept
    parts = [_packed_file(name, content) for name, content in contents.items()]
    for name, folder in folders.items():
        for path in sorted(folder.rglob("*")):
            member = str(Path(name, path.relative_to(folder)))
            if path.is_file() and not path.is_symlink() and member not in contents:
                version, (known, part) = identity_of(path.stat()), kept.get(member, ((), b""))
                if version != known:
                    kept[member] = version, (part := _packed_file(member, path.read_bytes()))
                parts.append(part)
    return b"".join([*parts, gzip.compress(bytes(2 * tarfile.BLOCKSIZE), 1, mtime=0)])


def _packed_file(name: str, content: bytes) -> bytes:
    member = tarfile.TarInfo(name)
    member.size = len(content)
    return gzip.compress(b"".join([member.tobuf(), content, bytes(-len(content) % tarfile.BLOCKSIZE)]), 1, mtime=0)


@contextmanager
def opened_archive(archive: bytes) -> Iterator[tarfile.TarFile]:
    """Open a packed log. Raises ValueError while it is read if it is damaged."""
    try:
        with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
            yield tar
    except (tarfile.TarError, gzip.BadGzipFile, zlib.error, EOFError) as error:
        raise ValueError("the packed log is damaged") from error


def unpack(archive: bytes, folder: Path) -> None:
    """Write the regular files of an archive that lie inside the folder; ignore all else. Raises ValueError."""
    folder.mkdir(mode=0o700)
    if not archive:
        return
    with opened_archive(archive) as tar:
        for member in tar:
            path = folder / member.name
            if not member.isreg() or not path.is_relative_to(folder) or ".." in path.parts:
                continue
            for parent in reversed(path.relative_to(folder).parents):
                (folder / parent).mkdir(mode=0o700, exist_ok=True)
            file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
            with open(file, "wb") as copy, tar.extractfile(member) or io.BytesIO() as content:  # noqa: PTH123
                shutil.copyfileobj(content, copy)
