"""run.json: the record of a whole run, and the results of the steps that it is made of.

The steps return these values, the run log rewrites the record after each of them. Times are UTC in ISO 8601,
durations seconds, sizes bytes, costs US dollars. `schema_version` grows whenever a field changes its meaning or goes
away; the records of older versions still read.
"""

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol

from code_commit.changes import AppliedChange, RunWarning, Violation, in_words
from code_commit.errors import EXIT_INTERNAL_ERROR
from code_commit.exchange import Usage
from code_commit.redaction import Redactor

if TYPE_CHECKING:
    from pydantic import TypeAdapter

SCHEMA_VERSION = 2
BUILT_DIFF = "built.diff"
"""The file of a run's log that says what its last build made of files of the answers."""
_OLD_REQUEST = ("pathspecs", "exclude", "include", "fit", "select", "query", "mentions", "for_run")
"""The options of a choice of files in schema 1 that were no settings."""
_A_LIFE = 3e9

Status = Literal[
    "running",
    "success",
    "build_failed",
    "not_set_up",
    "llm_error",
    "rejected",
    "declined",
    "build_error",
    "refused",
    "internal_error",
    "interrupted",
]

Verdict = Literal["applied", "rejected", "declined", "chosen"]
"""What became of a response. One that is declined says by `^^^cannot` that no change of the project can do the task.

One that is chosen named files: for a rollup, or to see them whole before it changes anything.
"""

_UNFINISHED: frozenset[Status] = frozenset({"running", "interrupted", "llm_error", "build_error", "internal_error"})
"""How a run ends that has a next step; the others came to their end."""

FIRST_SHELL_SIGNAL_CODE = 128  # sh reports a child that died by signal N as exit code 128 + N


@dataclass(frozen=True, slots=True)
class BuildResult:
    """How build.sh ended: `exit_code` or `signal` is set; when it timed out, both may be None.

    In a sandbox `signal` is also what it told by exit code 128 + N itself: bubblewrap reports both alike.
    """

    exit_code: int | None
    signal: int | None
    timed_out: bool
    seconds: float
    output_bytes: int

    @property
    def passed(self) -> bool:
        return self.exit_code == 0 and not self.timed_out

    @property
    def shell_code(self) -> int | None:
        """Its exit code as a shell tells it: 128 + N where signal N ended it."""
        return self.exit_code if self.signal is None else FIRST_SHELL_SIGNAL_CODE + self.signal


@dataclass(frozen=True, slots=True)
class Retry:
    """A request that failed in a way that can pass: why, with which HTTP status, after how many seconds it is repeated.

    `until` is the time, in UTC, when the call is given up; "" where it never is.
    """

    reason: str
    status: int | None = None
    delay: float | None = None
    until: str = ""


@dataclass(slots=True)
class Attempt:
    """One LLM call and what came of it. `seconds` is the LLM's time, retries included.

    `kind` is `retry` where the same is asked once more, because the answer before was rejected or asked for files.

    `model` is the one that was asked, a fallback too; "" where none was. `finish_reason` is the API's word; it is there
    when the response is. `changes` without a verdict are those of a dry run, or of an apply that was interrupted.
    `cut_off` tells of a response that reached the output limit.
    `change_seconds` is the time from the response to its verdict: parsing, verifying and applying it.
    `usage` and `cost_usd` are the sums over all its final replies, also those that were no answer; `unsettled_usd` has
    what each request can have cost at most whose cost is not known: an answer that was lost, or has not come yet.
    `job_id` is the background job whose final reply has not come, `job_model` the model that it asked, and `job_usd`
    what of `unsettled_usd` is its.
    `more_rejections` counts the reasons that `rejections` does not list.
    `notes` are the LLM's words outside the blocks; `asked` are the files that it asks to see, in its spelling.
    `same_change_as` is the first attempt whose response had the same blocks, `same_failure_as` the first one after
    which the build failed in the same way; a repair is told so.
    """

    number: int
    kind: Literal["initial", "retry", "repair"]
    model: str = ""
    seconds: float | None = None
    request_id: str | None = None
    job_id: str | None = None
    job_model: str = ""
    job_usd: float = 0.0
    finish_reason: str | None = None
    incomplete: str | None = None
    cut_off: bool = False
    usage: Usage | None = None
    cost_usd: float | None = None
    unsettled_usd: list[float] = field(default_factory=list)
    notes: str = ""
    asked: list[str] = field(default_factory=list)
    verdict: Verdict | None = None
    change_seconds: float | None = None
    rejections: list[Violation] = field(default_factory=list)
    more_rejections: int = 0
    retries: list[Retry] = field(default_factory=list)
    changes: list[AppliedChange] = field(default_factory=list)
    build: BuildResult | None = None
    same_change_as: int | None = None
    same_failure_as: int | None = None

    @property
    def reasons(self) -> list[str]:
        """Why the response was rejected."""
        return in_words(self.rejections, self.more_rejections)


@dataclass(frozen=True, slots=True)
class FileChoice:
    """The call, in a run of its own, by which an LLM chose the files of the codebase."""

    run: str
    model: str = ""
    calls: int = 0
    seconds: float = 0.0
    usage: Usage = field(default_factory=Usage)
    cost_usd: float | None = None
    unsettled_usd: float = 0.0


@dataclass(frozen=True, slots=True)
class TreeBefore:
    """What git said of the tree before the run: the commit of HEAD, "" before the first, and if nothing was changed."""

    commit: str
    clean: bool


@dataclass(frozen=True, slots=True)
class RunError:
    """Why a run ended without success: `kind` is its status, or in what way the LLM could not be asked.

    `needed_usd` is what the call needs that `--max-cost` did not allow, `left_usd` what was left for it; `may_be_paid`
    tells of an answer that did not arrive and may cost.
    """

    kind: str
    needed_usd: float | None = None
    left_usd: float | None = None
    may_be_paid: bool = False


def error_facts(error: BaseException, attempts: Sequence[Attempt] = ()) -> RunError:
    """Return what programs can act on in an error that ended a run with these attempts."""
    status = getattr(error, "status", "internal_error")
    facts = {name: getattr(error, name) for name in ("needed_usd", "left_usd") if hasattr(error, name)}
    may_be_paid = getattr(error, "may_be_paid", False) or any(attempt.unsettled_usd for attempt in attempts[-1:])
    return RunError(getattr(error, "kind", status), **facts, may_be_paid=may_be_paid)


@dataclass(frozen=True, slots=True)
class RewrittenFile:
    """A file of the answers that was not as they left it after the last build; the lines are as `git diff` counts.

    `action` is `reformat` where white space alone differs, `mode` where only the permissions do, `create` where an
    answer had deleted it.
    """

    path: str
    action: Literal["reformat", "replace", "mode", "delete", "create"]
    lines_added: int
    lines_removed: int


@dataclass(slots=True)
class Totals:
    """Sums over the attempts, and the choice of files before them. `attempts` are the run's own.

    `seconds` is the run's wall time, and the time of the LLM that chose.

    `cost_usd` is None as soon as the cost of one call is not known; `unsettled_usd` is what calls can have cost beside
    that, whose cost is not known.
    """

    seconds: float = 0.0
    llm_seconds: float = 0.0
    build_seconds: float = 0.0
    attempts: int = 0
    usage: Usage = field(default_factory=Usage)
    cost_usd: float | None = None
    unsettled_usd: float = 0.0
    files_changed: int = 0


Command = Literal["run", "apply", "undo", "rollup"]


@dataclass(slots=True)
class RunRecord:
    """The whole run, as run.json holds it. One that was killed stays `running`, and no process has its `pid`.

    `process_start` tells that process from a later one with the same id; "" where the system does not say.
    `undoes` is the run that an undo puts back; `query` the first line of the task.
    `build_changes` are the tracked files that changed during the run and that no answer changed; `new_files` counts
    the untracked ones that git lists since, `new_file_names` are the first three of them. `rewritten` are files of the
    answers that the last build left in another state than they did.
    `chosen` are the files that an LLM chose for the codebase, also in the run after that; `choice` is there the call.
    `request` says, in a choice of files, which codebase was asked for, and if a run is to follow.
    """

    version: str
    run: str
    command: Command
    started: str
    root: str
    log_dir: str
    pid: int
    process_start: str = ""
    model: str = ""
    base_url: str = ""
    query: str = ""
    status: Status = "running"
    exit_code: int | None = None
    finished: str | None = None
    message: str | None = None
    error: RunError | None = None
    tree: TreeBefore | None = None
    options: dict[str, Any] = field(default_factory=dict)
    attempts: list[Attempt] = field(default_factory=list)
    totals: Totals = field(default_factory=Totals)
    warnings: list[RunWarning] = field(default_factory=list)
    rolled_back: bool = False
    undone: bool = False
    undoes: str = ""
    build_changes: list[str] = field(default_factory=list)
    rewritten: list[RewrittenFile] = field(default_factory=list)
    new_files: int = 0
    new_file_names: list[str] = field(default_factory=list)
    chosen: list[str] = field(default_factory=list)
    choice: FileChoice | None = None
    request: dict[str, Any] = field(default_factory=dict)
    schema_version: int = SCHEMA_VERSION

    @property
    def final_code(self) -> int:
        """Its exit code as that of the command: that of a bug where its end was not written down."""
        return EXIT_INTERNAL_ERROR if self.exit_code is None else self.exit_code

    @property
    def asked_model(self) -> str:
        """The model that was asked last, or is to be asked first."""
        return next((attempt.model for attempt in reversed(self.attempts) if attempt.model), self.model)

    @property
    def applied_attempts(self) -> list[int]:
        """The numbers of the attempts that changed files."""
        return [attempt.number for attempt in self.attempts if attempt.verdict == "applied" and attempt.changes]

    @property
    def spent_usd(self) -> float:
        """What all its calls have cost, and can have cost at most where that is not known."""
        totals = sum_up(self, 0.0)
        costs = [attempt.cost_usd or 0.0 for attempt in self.attempts]
        return sum(costs) + (self.choice.cost_usd or 0.0 if self.choice else 0.0) + totals.unsettled_usd

    @property
    def as_choice(self) -> FileChoice:
        """A choice of files as the run that follows it holds it."""
        totals = self.totals
        costs = totals.usage, totals.cost_usd, totals.unsettled_usd
        return FileChoice(self.run, self.asked_model, totals.attempts, totals.llm_seconds, *costs)

    @property
    def asks(self) -> bool:
        """Whether it asks an LLM: a run, or the choice of files before one."""
        return self.command in ("run", "rollup")

    @property
    def is_aside(self) -> bool:
        """Whether it did its part for a run that followed, which is the one to look at."""
        return self.command == "rollup" and self.status == "success"

    @property
    def has_next_step(self) -> bool:
        """Whether `resume` can go on with it, unless what it applied was taken back or changed since."""
        return self.asks and self.status in _UNFINISHED and not self.options.get("dry_run")


class RunEntry(NamedTuple):
    """A run in the log: its folder and its record."""

    folder: Path
    record: RunRecord


Event = Literal[
    "started",
    "asking",
    "retrying",
    "responded",
    "rejected",
    "declined",
    "chosen",
    "applying",
    "applied",
    "building",
    "built",
    "repeated",
    "warned",
    "finished",
]


class RunListener(Protocol):
    """Told how a run goes on. Its redactor censors what the log and the listener write."""

    redactor: Redactor

    def step(self, record: RunRecord, event: Event) -> None:
        """A step was made, and run.json has it."""

    def live(self, state: str) -> None:
        """Something goes on inside an LLM call: a few words for it."""

    def output(self, piece: bytes) -> None:
        """The next piece of a build's output, without keys."""


def utc_timestamp(moment: datetime | None = None) -> str:
    """Return the moment (now when None) as run.json writes it: `2026-11-21T19:51:35.123Z`."""
    return (moment or datetime.now(UTC)).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def utc_after(seconds: float) -> str:
    """Return the moment after so many seconds as run.json writes it; "" where that is never, or after a lifetime."""
    return utc_timestamp(datetime.now(UTC) + timedelta(seconds=seconds)) if 0 < seconds < _A_LIFE else ""


def load_run_record(text: str | bytes) -> RunRecord:
    """Read a run.json, of an older version too. Raises ValueError when it is not one."""
    from pydantic_core import from_json

    document = from_json(text)
    if isinstance(document, dict) and document.get("schema_version", 1) == 1:
        _upgrade(document)
    return _adapter().validate_python(document)


def _upgrade(document: dict[str, Any]) -> None:
    """Turn a record of schema 1, whose warnings and retries were sentences, into one of schema 2."""
    document["schema_version"] = SCHEMA_VERSION
    document["warnings"] = [{"kind": "other", "message": text} for text in document.get("warnings", ())]
    for attempt in document.get("attempts", ()):
        attempt["retries"] = [{"reason": text} for text in attempt.get("retries", ())]
    run, costs = document.pop("rollup_run", ""), document.pop("rollup_costs", [])
    if run:
        document["choice"] = {"run": run, "calls": len(costs), "cost_usd": sum(costs)}
    if document.get("command") == "rollup":
        options = document.get("options", {})
        document["request"] = {name: options.pop(name) for name in _OLD_REQUEST if name in options}


def run_record_schema() -> Mapping[str, Any]:
    """Return the JSON Schema of run.json (draft 2020-12)."""
    return _adapter().json_schema()


@functools.cache
def _adapter() -> "TypeAdapter[RunRecord]":
    """Return what validates a record; to make one takes as long as to read a hundred records."""
    from pydantic import TypeAdapter

    return TypeAdapter(RunRecord)


def sum_up(record: RunRecord, seconds: float) -> Totals:
    """Add up what a run's calls cost; `seconds` is the run's own wall time."""
    attempts, choice = record.attempts, record.choice or FileChoice("")
    usages = [*(attempt.usage for attempt in attempts if attempt.usage), choice.usage]
    calls = [attempt for attempt in attempts if attempt.seconds is not None] + [choice] * bool(choice.calls)
    known = [call.cost_usd for call in calls if call.cost_usd is not None]
    has_unknown = any(call.cost_usd is None and not call.unsettled_usd for call in calls)
    return Totals(
        seconds=seconds + choice.seconds,
        llm_seconds=sum(attempt.seconds or 0.0 for attempt in attempts) + choice.seconds,
        build_seconds=sum(attempt.build.seconds for attempt in attempts if attempt.build),
        attempts=len(attempts),
        usage=sum(usages, Usage()),
        cost_usd=sum(known) if known and not has_unknown else None,
        unsettled_usd=sum(sum(attempt.unsettled_usd) for attempt in attempts) + choice.unsettled_usd,
        files_changed=0
        if record.rolled_back
        else len({change.path for attempt in attempts if attempt.verdict for change in attempt.changes}),
    )
