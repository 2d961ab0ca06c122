"""run.json: the record of a whole run, and the results of its steps.

Times are UTC in ISO 8601, durations seconds, sizes bytes, costs US dollars. `schema_version` grows whenever a field
changes its meaning or goes away; the records of older versions still read.
"""

import functools
import sys
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from code_commit.changes import AppliedChange, RunWarning, Violation, in_words
from code_commit.exchange import Cost, Usage
from code_commit.status import Status

if TYPE_CHECKING:
    from pydantic import TypeAdapter

SCHEMA_VERSION = 2
# the log's files of the build before anything was sent, and of the output that a repair was given beside it
FIRST_BUILD, GIVEN_BUILD = "0-build.txt", "given-build.txt"
BUILT_DIFF = "built.diff"  # the log's file of the last build's changes to files of the answers
# options of a choice of files in schema 1 that are no settings
_OLD_REQUEST = ("pathspecs", "exclude", "include", "fit", "select", "query", "mentions", "for_run")

# declined: by `^^^cannot`; chosen: the response only names files to see
Verdict = Literal["applied", "rejected", "declined", "chosen"]
FIRST_SHELL_SIGNAL_CODE = 128  # sh reports a child that died by signal N as exit code 128 + N
Command = Literal["run", "repair", "apply", "undo", "rollup"]
_OfCall = Literal["asking", "retrying", "responded", "rejected", "declined", "chosen"]
_OfChange = Literal["applying", "applied", "building", "built", "repeated"]
Event = Literal["started", _OfCall, _OfChange, "warned", "finished"]


@dataclass(frozen=True, slots=True)
class BuildResult:
    """The end of build.sh: `exit_code` or `signal` (in a sandbox for 128 + N too), or neither after a timeout.

    `refused` is the line of a failure's output that says what the sandbox refused, `full` the one that
    says that a disk or the memory is full, `missing` what is not installed.
    """

    exit_code: int | None
    signal: int | None
    timed_out: bool
    seconds: float
    output_bytes: int
    refused: str = ""
    missing: str = ""
    full: str = ""

    @property
    def passed(self) -> bool:
        return self.exit_code == 0 and not self.timed_out

    @property
    def is_of_set_up(self) -> bool:
        """Whether no change of the project can mend it."""
        return bool(self.refused or self.missing or self.full)

    @property
    def shell_code(self) -> int | None:
        """Its exit code in a shell: 128 + N where signal N ended it."""
        return self.exit_code if self.signal is None else FIRST_SHELL_SIGNAL_CODE + self.signal


@dataclass(frozen=True, slots=True)
class Retry:
    """A failed request, its HTTP `status`, repeated after `delay` seconds, `until` a time in UTC ("" for ever)."""

    reason: str
    status: int | None = None
    delay: float | None = None
    until: str = ""


@dataclass(slots=True)
class Attempt:
    """One LLM call and its result. `seconds` is the LLM's time, `change_seconds` that of parsing, verifying and
    applying.

    `kind` is `retry` after a rejection or a list of files. `finish_reason` is the API's word, there once the response
    is; `cut_off` marks one that reached the output limit. `changes` without a verdict are those of a dry run or an
    interrupted apply. `cost_usd` and `usage` sum up all final replies; `unsettled_usd` has the largest cost of each
    request whose cost is not known, and `unpriced` counts those without a price. `job_id` is the background job
    without a final reply, `job_model` its model, `job_usd` its share of `unsettled_usd`. `more_rejections` counts
    reasons beyond `rejections`. `notes` are the LLM's words outside the blocks, `asked` the files that it asks to
    see, `edits` the number of files sent as edits, `leniences` the forms beside those of the specification that were
    read, `ends_alone` the files that stay as they are, since it differs from them in line ends or the last newline
    alone. `same_change_as` and `same_failure_as` are the first attempts with equal blocks and an equal failure, 0 the
    build before the run.
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
    unpriced: int = 0
    notes: str = ""
    asked: list[str] = field(default_factory=list)
    edits: int = 0
    leniences: list[str] = field(default_factory=list)
    ends_alone: list[str] = field(default_factory=list)
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
    def cost(self) -> Cost:
        return Cost(self.cost_usd, sum(self.unsettled_usd), self.unpriced)

    @property
    def may_be_paid(self) -> bool:
        """Whether a request may have been paid for that no reply has counted; one at a price of zero may not."""
        return self.cost.unsettled > 0 or self.unpriced > 0

    @property
    def reasons(self) -> list[str]:
        return in_words(self.rejections, self.more_rejections)

    @property
    def misfits(self) -> Collection[str]:
        """The files whose edits have a place that was not found, or found more than once."""
        return dict.fromkeys(why.path for why in self.rejections if why.rule in ("no-match", "ambiguous"))


@dataclass(frozen=True, slots=True)
class FileChoice:
    run: str
    model: str = ""
    calls: int = 0
    seconds: float = 0.0
    usage: Usage = field(default_factory=Usage)
    cost_usd: float | None = None
    unsettled_usd: float = 0.0
    unpriced: int = 0

    @property
    def cost(self) -> Cost:
        return Cost(self.cost_usd, self.unsettled_usd, self.unpriced)


@dataclass(frozen=True, slots=True)
class TreeBefore:
    """The state of the tree before the run: the commit of HEAD, "" before the first, and whether git saw no change."""

    commit: str
    clean: bool


@dataclass(frozen=True, slots=True)
class RunError:
    """The reason for a failed run: `kind` is its status, or the way in which the LLM could not be called.
    `needed_usd` is the price of the call that --max-cost did not allow, `left_usd` the rest of it. With `may_be_paid` a
    lost answer may cost.
    """

    kind: str
    needed_usd: float | None = None
    left_usd: float | None = None
    may_be_paid: bool = False


def error_facts(error: BaseException, attempts: Sequence[Attempt] = ()) -> RunError:
    """Return the fields for programs of an error that ended a run with these attempts."""
    status: Status = getattr(error, "status", Status.INTERNAL_ERROR)
    facts = {name: getattr(error, name) for name in ("needed_usd", "left_usd") if hasattr(error, name)}
    may_be_paid = any(attempt.may_be_paid for attempt in attempts[-1:])
    return RunError(getattr(error, "kind", status.value), **facts, may_be_paid=may_be_paid)


@dataclass(frozen=True, slots=True)
class RewrittenFile:
    """A file of the answers that differs after the last build; lines are counted as `git diff` counts. `reformat` is
    white space alone, `mode` permissions alone, `create` a file that an answer had deleted.
    """

    path: str
    action: Literal["reformat", "replace", "mode", "delete", "create"]
    lines_added: int
    lines_removed: int


@dataclass(slots=True)
class Totals:
    """Sums over the attempts and the choice of files; `cost_usd` is None once one call's cost is unknown,
    `unsettled_usd` the largest cost of calls beside it, `unpriced` the lost ones without a price. `seconds` is the
    run's wall time and that of the choice before it: its LLM and its build.
    """

    seconds: float = 0.0
    llm_seconds: float = 0.0
    build_seconds: float = 0.0
    attempts: int = 0
    usage: Usage = field(default_factory=Usage)
    cost_usd: float | None = None
    unsettled_usd: float = 0.0
    unpriced: int = 0
    files_changed: int = 0

    @property
    def cost(self) -> Cost:
        return Cost(self.cost_usd, self.unsettled_usd, self.unpriced)


@dataclass(slots=True)
class RunRecord:
    """The whole run, as run.json holds it. One that was killed stays `running`, and no process has its `pid`.

    `process_start` distinguishes that process from a later one with the same id. `query` is the first line of the task,
    `undoes` the run that an undo puts back. `build_changes` are tracked files that changed without an answer,
    `rewritten` files of answers that the last build changed, `unchanged` those that are as before the run; `new_files`
    counts new untracked ones, `new_file_names` are the first three. `head_moved` tells that HEAD is at another commit
    or branch than before the run: a build, or the user, may have committed the change. `first_build` is the build
    before anything was sent. `chosen` are the files that an LLM chose, also in the run after that, which has the call
    in `choice`.
    `request` is the codebase that a choice of files was asked for, and whether a run follows; or, for a run that built
    first, whether its codebase is made anew.
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
    status: Status = Status.RUNNING
    exit_code: int | None = None
    finished: str | None = None
    message: str | None = None
    error: RunError | None = None
    tree: TreeBefore | None = None
    options: dict[str, Any] = field(default_factory=dict)
    first_build: BuildResult | None = None
    attempts: list[Attempt] = field(default_factory=list)
    totals: Totals = field(default_factory=Totals)
    warnings: list[RunWarning] = field(default_factory=list)
    rolled_back: bool = False
    undone: bool = False
    undoes: str = ""
    build_changes: list[str] = field(default_factory=list)
    rewritten: list[RewrittenFile] = field(default_factory=list)
    unchanged: list[str] = field(default_factory=list)
    new_files: int = 0
    new_file_names: list[str] = field(default_factory=list)
    head_moved: bool = False
    chosen: list[str] = field(default_factory=list)
    choice: FileChoice | None = None
    request: dict[str, Any] = field(default_factory=dict)
    schema_version: int = SCHEMA_VERSION

    @property
    def final_code(self) -> int:
        """Its exit code, that of a bug if the end is not recorded."""
        return Status.INTERNAL_ERROR.exit_code if self.exit_code is None else self.exit_code

    @property
    def asked_model(self) -> str:
        """The model of the latest call, or of the first one to come."""
        return next((attempt.model for attempt in reversed(self.attempts) if attempt.model), self.model)

    @property
    def cost(self) -> Cost:
        """The cost of all its calls so far, also where the price of one is not known."""
        return sum((attempt.cost for attempt in self.attempts), self.choice.cost if self.choice else Cost())

    @property
    def taken_back(self) -> str:
        """`rolled back` or `undone`, "" while its changes stand."""
        return "rolled back" if self.rolled_back else "undone" if self.undone else ""

    @property
    def last_build(self) -> BuildResult | None:
        """The build of the latest attempt, or the one before the first."""
        return self.attempts[-1].build if self.attempts else self.first_build

    @property
    def seconds_before(self) -> float:
        """The time of what stands in the log of its choice of files: the choice, and the first build."""
        built = self.first_build.seconds if self.first_build else 0.0
        return self.choice.seconds + built if self.choice else 0.0

    @property
    def as_choice(self) -> FileChoice:
        totals = self.totals
        costs = totals.usage, totals.cost_usd, totals.unsettled_usd, totals.unpriced
        return FileChoice(self.run, self.asked_model, totals.attempts, totals.llm_seconds, *costs)

    @property
    def asks(self) -> bool:
        return self.is_main or self.command == "rollup"

    @property
    def is_main(self) -> bool:
        """Whether an LLM is asked for a change."""
        return self.command in ("run", "repair")

    @property
    def applies(self) -> bool:
        """Whether it applied something, be it what the tree had already, or puts a run's changes back."""
        return self.command == "undo" or any(attempt.verdict == "applied" for attempt in self.attempts)

    @property
    def is_auxiliary(self) -> bool:
        """Whether it is a choice of files for a run that followed."""
        return self.command == "rollup" and self.status == Status.SUCCESS

    @property
    def has_next_step(self) -> bool:
        """Whether `resume` can continue it, unless its changes were undone or overwritten."""
        return self.asks and self.status.is_resumable and not self.options.get("dry_run")


class RunEntry(NamedTuple):
    folder: Path
    record: RunRecord


def utc_timestamp(moment: datetime | None = None) -> str:
    """Return the moment (now when None) as run.json writes it: `2026-11-21T19:51:35.123Z`."""
    return (moment or datetime.now(UTC)).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def load_run_record(text: str | bytes) -> RunRecord:
    """Return the record in a run.json, of an older version too. Raises ValueError for anything else."""
    from pydantic_core import from_json

    document = from_json(text)
    try:
        require_finite(document)
        if isinstance(document, dict) and document.get("schema_version", 1) == 1:
            _upgrade(document)
        record = _adapter().validate_python(document)
        ends = [retry.until for attempt in record.attempts for retry in attempt.retries]
        for moment in (record.started, *filter(None, [record.finished, *ends])):
            datetime.fromisoformat(moment).timestamp()
        paths = [change.path for attempt in record.attempts for change in attempt.changes]
        if "\0" in "".join([*paths, *(file.path for file in record.rewritten)]):
            raise ValueError("it names what no file can be")
    except (AttributeError, OverflowError, TypeError) as error:
        raise ValueError("it holds something else") from error
    return record


def require_finite(value: Any) -> None:
    """Raise ValueError if the value of a JSON text holds a number that no run has: the sums of others are finite."""
    if isinstance(value, int | float) and not abs(value) <= sys.maxsize:
        raise ValueError("it holds a number out of range")
    for member in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        require_finite(member)


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
    return _adapter().json_schema()


@functools.cache
def _adapter() -> "TypeAdapter[RunRecord]":
    """Return the validator of a record; making one takes as long as reading a hundred records."""
    from pydantic import TypeAdapter

    return TypeAdapter(RunRecord)
