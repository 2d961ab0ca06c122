"""A run and its attempts in words: their results, changes, times, tokens and costs."""

import re
import signal
import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import groupby

from code_commit.changes import AppliedChange, FileKind
from code_commit.exchange import Cost
from code_commit.paths.checks import file_kind
from code_commit.runs.record import (
    FIRST_SHELL_SIGNAL_CODE,
    Attempt,
    BuildResult,
    FileChoice,
    Retry,
    RunRecord,
    Totals,
    utc_timestamp,
)
from code_commit.settings import PROGRAM
from code_commit.status import Status
from code_commit.terminal import shown

_MINUTE, _HOUR, _HALF_A_DAY, _A_LIFE = 60, 3600, 12 * 3600, 3e9
_LEAST_CENT, _LEAST_SHOWN = 0.01, 0.0001
REJECTED, UNCHANGED = "rejected, nothing written", "the answer changes nothing"
_FEW = 3
_REWRITTEN = {
    "reformat": "reformatted",
    "replace": "rewrote",
    "mode": "changed the mode of",
    "delete": "removed",
    "create": "brought back",
}
_OUTCOMES = {
    "rejected": REJECTED,
    "declined": "declined, nothing written",
    "proposed": "verified, not applied",
    "unanswered": "no usable answer",
}
_FACTS = {
    "no-match": "the lines to replace are not in the file",
    "ambiguous": "the lines to replace are in the file more than once",
    "not-allowed": "--allow does not name it",
}  # reasons of a rejection for people, by rule, in place of the message to the LLM
_BY_OPTION = {"not-allowed": "--allow", "protected-by-option": "--protect", "whole-file": "--answer-format"}
_OF_THE_ANSWER = ("incomplete", "cut-off")  # rules whose reason is the API's, or that of who stopped the answer
FILE_KINDS: dict[FileKind, str] = {"test": "a test", "ci": "a CI file", "build": "a build file"}


def unchanged(record: RunRecord, attempt: Attempt) -> str:
    """Tell why an answer changes nothing; where it differs in line ends, also what writes these."""
    if not attempt.ends_alone:
        return "every file already has this content"
    response = f"{record.log_dir}/{attempt.number}-response.txt"
    ways = f"code-commit apply --as-sent {response} writes these"
    return f"every file already has this content, except for line endings; {ways}"


def duration(seconds: float) -> str:
    """Return a time in words: `12.3 s`, `1 min 10 s`, `2 h 5 min`."""
    if seconds < _MINUTE:
        return f"{seconds:.1f} s"
    large, small, units = (_MINUTE, 1, ("min", "s")) if seconds < _HOUR else (_HOUR, _MINUTE, ("h", "min"))
    parts = (int(seconds // large), int(seconds % large // small))
    return " ".join(f"{part:,} {unit}" for part, unit in zip(parts, units, strict=True) if part)


def retries_in_words(retries: Iterable[Retry]) -> list[str]:
    """Return `the API answered 429; retrying in 2.0 s, until 19:51:35 at the latest (4 times)` for each run
    of equal reasons.
    """
    rows = [list(row) for _, row in groupby(retries, lambda retry: (retry.reason, retry.status))]
    return [row[-1].reason + (f"; {when}" if (when := _when(row[-1])) else "") + _times(row) for row in rows]


def retrying_in_words(retries: Sequence[Retry]) -> str:
    """Return retries of equal reasons with the time first: a terminal's row may end before a long reason does."""
    reason, when, times = retries[-1].reason, _when(retries[-1]), _times(retries)
    return f"{when}{times}: {reason}" if when else f"{reason}{times}"


def _when(retry: Retry) -> str:
    if retry.delay is None:
        return ""
    until = f", until {time_of_day(retry.until)} at the latest" if retry.until else ""
    return f"retrying in {duration(retry.delay)}{until}"


def _times(retries: Sequence[Retry]) -> str:
    return f" ({len(retries):,} times)" if len(retries) > 1 else ""


def utc_after(seconds: float) -> str:
    """Return the moment after so many seconds as run.json writes it; "" for never, or after a lifetime."""
    return utc_timestamp(datetime.now(UTC) + timedelta(seconds=seconds)) if 0 < seconds < _A_LIFE else ""


def time_of_day(moment: str) -> str:
    """Return a moment of run.json as local time: `19:51:35`, with the day if it is not near. Raises ValueError."""
    limit = datetime.fromisoformat(moment).timestamp()
    style = "%H:%M:%S" if abs(limit - time.time()) < _HALF_A_DAY else "%Y-%m-%d %H:%M"
    return time.strftime(style, time.localtime(limit))


def count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def listed(names: Collection[str], most: int = 5) -> str:
    """Return `a, b, c`, sorted and safe to print, or the first `most` of them `and 7 more`."""
    more = f" and {len(names) - most:,} more" if len(names) > most else ""
    return ", ".join(map(shown, sorted(names)[:most])) + more


def done_by_build(record: RunRecord) -> str:
    """Return `changed Cargo.lock and left 2 new files: a, b`; "" if the builds did neither."""
    changed = [f"changed {listed(record.build_changes)}"] if record.build_changes else []
    names, unnamed = ", ".join(record.new_file_names), record.new_files - len(record.new_file_names)
    more = f": {names}{f' and {unnamed:,} more' if unnamed else ''}" if names else ""
    left = [f"left {count(record.new_files, 'new file')}{more}"] if record.new_files else []
    return " and ".join(changed + left)


def who_changed(record: RunRecord) -> str:
    """Return who may have done what no answer did, as a sentence begins."""
    has_program = any(attempt.model.startswith(PROGRAM) for attempt in record.attempts)
    return "The build, or the program that is the LLM," if has_program else "The build"


def awaited(record: RunRecord) -> str:
    """Return the current wait of a run: `asking openai:gpt-6.2-sol`, `running build.sh`, or ""."""
    attempt = record.attempts[-1] if record.attempts and record.asks else None
    if record.status != Status.RUNNING or not record.asks:
        return ""
    if attempt is None:
        builds_first = record.command == "repair" or record.options.get("build_first")
        return "running build.sh" if builds_first and not record.first_build else ""
    if attempt.finish_reason is None:
        return f"asking {record.asked_model}"
    return "running build.sh" if attempt.verdict == "applied" and not attempt.build else ""


def rewritten_by_build(record: RunRecord) -> str:
    """Return `reformatted a.py, b.py and removed c.txt`; "" if the last build changed no file of an answer."""
    paths: dict[str, list[str]] = {}
    for file in () if record.rolled_back else record.rewritten:
        paths.setdefault(_REWRITTEN[file.action], []).append(file.path)
    return " and ".join(f"{done} {listed(named, _FEW)}" for done, named in paths.items())


def outcome_of(attempt: Attempt) -> str:
    if attempt.build:
        return "passed" if attempt.build.passed else "failed"
    return attempt.verdict or ("proposed" if attempt.changes else "unanswered")


def summary_of(attempt: Attempt) -> str:
    """Return the result of an attempt in a few words: `rejected, nothing written: 2 reasons`."""
    outcome = outcome_of(attempt)
    said = build_of(attempt) or asked_of(attempt) or _OUTCOMES.get(outcome, outcome)
    if outcome == "unanswered" and attempt.finish_reason:
        said = "answered, nothing written"
    if outcome == "rejected":
        said += f": {count(len(attempt.rejections) + attempt.more_rejections, 'reason')}"
    if attempt.verdict == "applied" and not attempt.changes:
        said = "; ".join(filter(None, [UNCHANGED, build_of(attempt)]))
    return "; ".join(filter(None, [said, repeats_of(attempt)]))


def rejection_of(attempt: Attempt) -> str:
    """Return `build.sh is protected, and 2 more reasons`: the first reason without its advice to the LLM."""
    first, others = attempt.rejections[0], len(attempt.rejections) - 1 + attempt.more_rejections
    fact = _FACTS.get(first.rule) or re.split(": |; ", first.message)[0]
    if attempt.incomplete and first.rule in _OF_THE_ANSWER:
        fact = f"the response is {attempt.incomplete}"
    return joined(str(replace(first, line=0, message=fact)), f"and {count(others, 'more reason')}" if others else "")


def asked_of(attempt: Attempt) -> str:
    """Return `asks to see src/a.py, src/b.py: f, nothing written`; "" if the answer asks for no files."""
    return f"asks to see {listed(attempt.asked, 8)}, nothing written" if attempt.asked else ""


def change_rows(changes: Iterable[AppliedChange]) -> list[str]:
    """Return a row for each changed file: `replace tests/a.py  +9 -4  (a test)`."""
    return [
        f"{'rename' if each.renamed_from else each.action:8}{each.name}  +{each.lines_added} -{each.lines_removed}"
        + (f"  ({FILE_KINDS[each.kind]})" if each.kind else "")
        for each in changes
    ]


def check_lines(changes: Iterable[AppliedChange]) -> list[str]:
    """Return `tests/a.py is a test: 9 lines added, 4 removed` for each test, CI or build file, new ones last."""
    lines, order = [], [*FILE_KINDS, ""]
    for change in sorted(
        changes, key=lambda change: (change.action == "create" and not change.renamed_from, order.index(change.kind))
    ):
        path, other = change.path, change.renamed_from
        if not file_kind(path) and other:
            path, other = other, path  # what was a test is none under its new name
        added, removed = count(change.lines_added, "line"), count(change.lines_removed, "line")
        done = f"{added} added, {change.lines_removed:,} removed"
        if change.renamed_from:
            done = f"renamed {'from' if file_kind(change.path) else 'to'} {shown(other)}, {done}"
        elif change.action != "replace":
            done = f"new, {added}" if change.action == "create" else f"deleted, {removed}"
        elif change.lines_added and not change.lines_removed:
            done = f"only added, {added}"
        if change.kind:
            lines.append(f"{shown(path)} is {FILE_KINDS[change.kind]}: {done}")
    return lines


def ending_of(build: BuildResult) -> str:
    """Return the end of a build: `exit code 139 (SIGSEGV) after 2.0 s`, `killed by signal 9 (SIGKILL) after 2.0 s`."""
    after = f"after {duration(build.seconds)}"
    if build.timed_out:
        return f"timed out {after} (--build-timeout)"
    if build.signal is not None:
        return f"killed by signal {build.signal}{_signal_name(build.signal)} {after}"
    code = build.exit_code or 0
    name = _signal_name(code - FIRST_SHELL_SIGNAL_CODE) if code > FIRST_SHELL_SIGNAL_CODE else ""
    return f"exit code {code}{name} {after}"


def _signal_name(number: int) -> str:
    try:
        return f" ({signal.Signals(number).name})"
    except ValueError:
        return ""


def build_of(attempt: Attempt) -> str:
    """Return `build failed: exit code 1 after 7.3 s`; "" without a build."""
    return f"build {outcome_of(attempt)}: {ending_of(attempt.build)}" if attempt.build else ""


def first_build_of(record: RunRecord, when: str = "") -> str:
    """Return `build failed: exit code 1 after 7.3 s` for the build before the run, with `when` it was; "" without
    one.
    """
    build = record.first_build
    return f"build {'passed' if build.passed else 'failed'}{when}: {ending_of(build)}" if build else ""


def headline_of(record: RunRecord, status: Status | None = None) -> str:
    """Return the headline of a run's end: a build "still" fails where the run's first one failed, too."""
    status = status or record.status
    builds = [build for build in (record.first_build, *(done.build for done in record.attempts)) if build]
    if status == Status.BUILD_FAILED and (len(builds) < 2 or builds[0].passed):
        return "The build fails"
    if status != Status.SUCCESS or any(attempt.build for attempt in record.attempts):
        return status.headline
    if record.command == "undo":
        return "Undone"
    if record.command == "rollup":
        return "Files chosen for a rollup"
    if record.command == "repair" and not record.attempts:
        return "Nothing to repair: the build passes"
    return "Applied, not built" if record.applies else Status.DRY_RUN.headline


def result_before(record: RunRecord) -> str:
    """Return ` (it failed before the run)`, ` (just as before the run)`; "" where nothing was built before."""
    build = record.first_build
    if record.attempts and record.attempts[-1].same_failure_as == 0:
        return " (just as before the run)"
    return f" (it {'passed' if build.passed else 'failed'} before the run)" if build else ""


def repeats_of(attempt: Attempt) -> str:
    """Return `same change as in attempt 1, same failure as after attempt 1`; "" without a repetition."""
    change, failure = attempt.same_change_as, attempt.same_failure_as
    parts = [f"same change as in attempt {change}" if change else "", f"same failure as after attempt {failure}"]
    return ", ".join(filter(None, parts if failure else parts[:1]))


def dollars(cost: float | None, *, short: bool = False) -> str:
    """Return `$0.1384`, in short `$0.14`, or `-` for an unknown cost; only 0 is shown as 0."""
    if cost and abs(cost) < _LEAST_SHOWN:
        return f"<${_LEAST_SHOWN}"
    return "-" if cost is None else f"${cost:.{2 if short and (cost >= _LEAST_CENT or not cost) else 4}f}"


def joined(*parts: str) -> str:
    return ", ".join(filter(None, parts))


def cost_in_words(cost: Cost, *, short: bool = False) -> str:
    """Return `$0.24 and at most $1.28 unsettled`, or one of the two; "" for no known cost and nothing unsettled."""
    settled, unsettled = _amounts(cost, short=short)
    unknown = f"{count(cost.unpriced, 'unused answer')} that may have been charged at an unknown price"
    lost = unknown if cost.unpriced else ""
    return " and ".join(filter(None, [settled, unsettled and f"at most {unsettled} unsettled", lost]))


def total_cost(totals: Totals, *, short: bool = False) -> str:
    """Return the cost of a run in words; a run without tokens, whose answers were recorded, has none."""
    has_tokens = totals.usage.input + totals.usage.output > 0
    return cost_in_words(totals.cost if has_tokens else replace(totals.cost, settled=None), short=short)


def cost_in_cell(cost: Cost, *, short: bool = False) -> str:
    """Return the same for a table: `$0.24 + ≤$1.28`, or one of the two, or `-`; `?` is lost, its price unknown."""
    settled, unsettled = _amounts(cost, short=short)
    return " + ".join(filter(None, [settled, unsettled and f"≤{unsettled}", "?" if cost.unpriced else ""])) or "-"


def _amounts(cost: Cost, *, short: bool) -> tuple[str, str]:
    """Return both parts of a cost; "" for one that is not there."""
    has_settled = cost.settled if cost.unsettled or cost.unpriced else cost.settled is not None
    settled = dollars(cost.settled, short=short) if has_settled else ""
    return settled, dollars(cost.unsettled, short=short) if cost.unsettled else ""


def spent(call: Attempt | FileChoice) -> str:
    """Return `52,113 tokens in (1,024 cached), 3,420 out, $0.1384`; "" if nothing was counted."""
    usage, cost = call.usage, call.cost
    if usage is None or not usage.input + usage.output:
        return cost_in_words(replace(cost, settled=cost.settled or None))
    cached = f" ({usage.cached_input:,} cached)" if usage.cached_input else ""
    return joined(f"{usage.input:,} tokens in{cached}", f"{usage.output:,} out", cost_in_words(cost))


def cut_off_in_words(attempt: Attempt, characters: int) -> str:
    """Return the length of an answer that reached the output limit, and the ways to avoid that."""
    usage = attempt.usage
    thoughts = f"{usage.reasoning:,} of them thoughts, " if usage and usage.reasoning else ""
    tokens = f"{usage.output:,} tokens, {thoughts}" if usage and usage.output else ""
    size = f"the answer of attempt {attempt.number} was cut off after {tokens}{count(characters, 'character')}"
    ways = "--answer-format edits, or a smaller task, makes answers shorter"
    return f"{size}: raise --max-output-tokens, up to the model's limit; {ways}"


def choice_in_words(choice: FileChoice) -> str:
    """Return `1 call of gemini:gemini-3.8-flash, 4.2 s, 52,113 tokens in, 320 out, $0.0112`."""
    calls = count(choice.calls, "call") + (f" of {choice.model}" if choice.model else "")
    return joined(calls, duration(choice.seconds) if choice.seconds else "", spent(choice))


def would_change(files: str) -> str:
    """Return what a dry run comes to, for so many files: `would change 3 files`."""
    return f"would change {files}"


def done_in_all(record: RunRecord) -> str:
    """Return `3 files changed in 1 min 10 s, 112,455 tokens, $0.2595`, and the part of it for the choice of files."""
    totals, choice = record.totals, record.choice
    parts = [f"{count(totals.files_changed, 'file')} changed in {duration(totals.seconds)}"]
    if record.options.get("dry_run") and record.attempts and record.attempts[-1].changes:
        parts = [would_change(count(len(record.attempts[-1].changes), "file")), duration(totals.seconds)]
    tokens = totals.usage.input + totals.usage.output
    parts += [f"{tokens:,} tokens" if tokens else ""]
    parts += [total_cost(totals)]
    of_choice = cost_in_words(choice.cost) if choice and choice.cost != Cost(0.0) else ""
    of_it = f" ({of_choice} of it for the choice of files)" if of_choice else ""
    return joined(*parts) + of_it


def ways_on(record: RunRecord, argument: str) -> Iterator[str]:
    """Yield what to do after a rejection, and the commands that continue or undo an unfinished run.

    `argument` names the run to a command.
    """
    if record.is_main and record.status == Status.REJECTED and record.attempts:
        yield from _ways_from_rejection(record.attempts[-1], record.options)
    if record.command == "undo" or record.taken_back:
        return
    if record.error and record.error.kind == "too_long":
        yield "Then start a new run: resume would send the same prompt again."
    elif record.has_next_step:
        kind = record.error.kind if record.error else None
        has_address = kind in ("network", "refused") and not record.asked_model.startswith(PROGRAM)
        if record.command == "rollup":  # a chooser of another provider has its vendor's address alone
            has_address &= record.model.partition(":")[0] == str(record.options.get("model")).partition(":")[0]
        role = "fallback-" if record.asked_model != record.model else ""
        elsewhere = f"; add --{role}base-url URL to use another address" if has_address else ""
        elsewhere += "; add --llm-timeout S to wait longer, else the limit stays" if kind == "timeout" else ""
        elsewhere += "; add --max-cost USD to allow more, else the limit stays" if kind == "budget" else ""
        elsewhere += "; for another model, start a new run" if kind == "refused" else ""
        yield f"code-commit resume{argument} continues this run{elsewhere}."
    if files := record.totals.files_changed:
        it = "it" if files == 1 else "them"
        yield f"{count(files, 'file')} changed so far; code-commit undo{argument} takes {it} back."


def _ways_from_rejection(attempt: Attempt, options: Mapping[str, object]) -> Iterator[str]:
    """Yield what may bring another answer, unless the reason says it, as of files that are asked for."""
    rules = {why.rule for why in attempt.rejections}
    if rules == {"no-block"} and attempt.model.startswith("chat:") and options.get("prompt_layout") != "short":
        yield "A small model does better with --prompt-layout short."
    elif rules and rules <= _BY_OPTION.keys():
        names = " and ".join(_BY_OPTION[rule] for rule in sorted(rules))
        yield f"To accept such an answer, run again with another {names}."
    elif not rules & {"asked", "not-approved", "cut-off", "stale"}:
        yield "Describe the task in more detail (-m), or use another --model, then run again."
