"""The steps of a run on stderr, redacted and without control characters: lines, and a live region on a terminal."""

import re
import sys
import time
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING, Self, TextIO

from code_commit import terminal
from code_commit.outputs import telling_lines
from code_commit.redaction import Redactor
from code_commit.runs import words
from code_commit.runs.list import argument_of
from code_commit.runs.record import BUILT_DIFF, FIRST_BUILD, Attempt, Event, Retry, RunRecord
from code_commit.status import Status

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.live import Live
    from rich.text import Text

_PHASES: dict[Event, tuple[str, str]] = {
    "asking": ("asking {model}", "llm_timeout"),
    "retrying": ("asking {model}", ""),
    "building": ("running build.sh", "build_timeout"),
}  # the words for a step that takes time, and the setting that limits it
_SHOWN = 3  # changed files that a step names without --verbose
_SAID_LINES = 12  # of the LLM's words; `code-commit log latest` has all of them
_LIVE_BYTES = 1000  # of a build's output that are searched for its last line
_REDRAWS_PER_SECOND = 5


class Progress:
    """Prints the steps of a run. A context manager: on exit only the lines stay on the terminal."""

    def __init__(
        self,
        redactor: Redactor,
        *,
        quiet: bool = False,
        verbose: bool = False,
        on_step: Callable[[RunRecord, Event], object] | None = None,
    ) -> None:
        self.redactor = redactor
        self.quiet = quiet
        self.verbose = verbose
        self._on_step = on_step
        self._region: _LiveRegion | None = None
        self._warned = 0
        self._retries: list[Retry] = []
        self._held = ""
        self._output, self._unfinished = bytearray(), b""

    def __enter__(self) -> Self:
        if not self.quiet and terminal.is_live_terminal(sys.stderr):
            with suppress(OSError, ValueError):
                self._region = _LiveRegion(sys.stderr, self._clean)
        return self

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Remove the live region from the terminal while the user is asked there."""
        self.__exit__()
        yield
        self.__enter__()

    def __exit__(self, *_: object) -> None:
        self._end_retries()
        if self._region:
            with suppress(OSError, ValueError):
                self._region.live.stop()
            self._region = None

    def step(self, record: RunRecord, event: Event) -> None:
        """Print a step; on a terminal, retries for one reason become one line when they are over."""
        if event != "retrying":
            self._end_retries()
        if self._region:
            with suppress(OSError, ValueError):
                phase, limit = _PHASES.get(event, ("", ""))
                until = words.utc_after(record.options[limit]) if limit else ""
                until = words.time_of_day(until) if until else ""
                phase = self._clean(phase.format(model=record.asked_model))
                self._region.begin_phase(_attempt_lead(record), phase, until)
        if event == "building":
            self._output, self._unfinished = bytearray(), b""
        if self._unfinished:
            self.output(b"\n")
        lines: Sequence[str] = []
        if event == "warned":
            lines = [f"warning: {warning}" for warning in record.warnings[self._warned :]]
        elif event == "retrying" and self._region:
            self._hold(_attempt_lead(record), record.attempts[-1].retries[-1])
        else:
            lines = _step_lines(record, event, verbose=self.verbose)
        self._warned = len(record.warnings)
        if event == "finished" and not self.verbose and _ends_with_failed_build(record):
            name = f"{record.attempts[-1].number}-build.txt" if record.attempts else FIRST_BUILD
            self.say("\n".join(f"  | {line}" for line in telling_lines(bytes(self._output), f"{name} of the log")))
        for number, line in enumerate(lines):
            self.say(line, _colour(record, event) if number == 0 or event == "warned" else "")
        self.say(_way_to_apply(record) if event == "finished" else "", is_command=True)
        if self._on_step:
            self._on_step(record, event)

    def _hold(self, lead: str, retry: Retry) -> None:
        """Show a retry in the live region, in one line with the preceding ones for the same reason."""
        if len(words.retries_in_words([*self._retries, retry])) > 1:
            self._end_retries()
        self._retries.append(retry)
        (line,) = words.retries_in_words(self._retries)
        self._held = f"{lead}: {line}" if lead else line
        self.live(words.retrying_in_words(self._retries))

    def _end_retries(self) -> None:
        self.say(self._held)
        self._retries, self._held = [], ""

    def live(self, state: str) -> None:
        """Show a few words for the state inside an LLM call."""
        if self._region:
            self._region.show(state)

    def output(self, piece: bytes) -> None:
        """Print the next piece of a build's output with `--verbose`, else keep its end."""
        self._output += piece[-terminal.TAIL_BYTES :]
        del self._output[: -terminal.TAIL_BYTES]
        if self.verbose:
            *lines, self._unfinished = (self._unfinished + piece).split(b"\n")
            if lines:
                text = terminal.render(b"\n".join(lines)).expandtabs()
                self.say("\n".join(f"  | {line}" for line in text.split("\n")))
        elif self._region:
            self._region.show(self._output[-_LIVE_BYTES:].decode("utf-8", "replace"))

    def say(self, text: str, colour: str = "", *, is_command: bool = False) -> None:
        if not self.quiet and text:
            self._print(text, colour, is_command=is_command)

    def error(self, text: str) -> None:
        first, *others = text.split("\n")
        self._print(f"code-commit: {first}", "red")
        for line in others:
            self._print(f"  {line}")

    def _print(self, text: str, colour: str = "", *, is_command: bool = False) -> None:
        live = self._region.live if self._region else None
        print_lines(self._clean(text), colour, sys.stderr, live, is_command=is_command)

    def _clean(self, text: str) -> str:
        return "\n".join(terminal.shown(line) for line in self.redactor.redact_text(text).split("\n"))


def print_lines(text: str, colour: str, stream: TextIO, live: "Live | None", *, is_command: bool = False) -> None:
    """Print lines above the live region, in rows of the terminal's width; a command to copy stays in one row."""
    width = None if is_command else terminal.terminal_width(stream)
    printed = "\n".join(row for line in text.split("\n") for row in terminal.wrapped(line, width))
    with suppress(OSError, ValueError):  # the reader may be gone, which does not end the run
        if live:
            live.console.print(printed, style=colour or None, markup=False, highlight=False, soft_wrap=True)
        else:
            print(terminal.coloured(printed, colour, stream), file=stream, flush=True)


def start_live(stream: TextIO, draw: "Callable[[], RenderableType]", per_second: int) -> "Live":
    """Show what `draw` returns on a terminal, redrawn until stopped. Raises OSError if the terminal is gone."""
    from rich.console import Console
    from rich.live import Live

    live = Live(
        console=Console(file=stream),
        get_renderable=draw,
        transient=True,
        refresh_per_second=per_second,
        redirect_stdout=False,
        redirect_stderr=False,
    )
    live.start()
    return live


def _ends_with_failed_build(record: RunRecord) -> bool:
    build = record.last_build
    is_of_build = record.status in (Status.BUILD_FAILED, Status.BUILD_ERROR, Status.NOT_SET_UP)
    return is_of_build and build is not None and not build.passed


def _colour(record: RunRecord, event: Event) -> str:
    """Return the colour of a step's first line: green or red for verdicts, yellow for warnings."""
    build = record.last_build
    if event in ("warned", "applying") or (event == "built" and not record.attempts and build and not build.passed):
        return "yellow"
    is_good = build is not None and build.passed if event == "built" else record.status == Status.SUCCESS
    is_verdict = event in ("built", "rejected") or (event == "finished" and build is not None)
    return ("green" if is_good else "red") if is_verdict else ""


def _step_lines(record: RunRecord, event: Event, *, verbose: bool) -> Sequence[str]:
    """Return the lines of a step; those of an attempt begin with its number."""
    if event == "started" and record.command == "rollup":
        log = [] if record.first_build else [f"log: {record.log_dir}"]  # which its build has named
        return [f"asking {record.model} which files the task needs whole", *log]
    if event == "chosen" and record.command == "rollup":
        return [f"{words.count(len(record.chosen), 'file')} chosen: {', '.join(record.chosen)}".removesuffix(": ")]
    if event == "started":
        model = [f"model: {record.model}"] if record.model else []  # a repair may need none
        return [*model, f"log: {record.log_dir}"] if record.is_main else []
    if event == "finished":
        return _closing_lines(record)
    if not record.attempts:
        return [f"the {words.first_build_of(record, ' before the run')}"] if event == "built" else []
    lines = _attempt_lines(record, event, verbose=verbose)
    lead = _attempt_lead(record)
    return [f"{lead}: {line}" if lead else line for line in lines[:1]] + lines[1:]


def _attempt_lead(record: RunRecord) -> str:
    """Return `attempt 2 of 4`; "" for a command with a single attempt, and before the first."""
    if not record.is_main or not record.attempts:
        return ""
    repairs = 0 if record.options.get("dry_run") else int(record.options["max_repairs"])
    return f"attempt {len(record.attempts)} of {1 + repairs}"


def _attempt_lines(record: RunRecord, event: Event, *, verbose: bool) -> list[str]:
    *earlier, attempt = record.attempts
    if event == "retrying":
        return words.retries_in_words(attempt.retries[-1:])
    if event == "responded":
        answered = f"{record.asked_model} answered after {words.duration(attempt.seconds or 0)}"
        return [": ".join(filter(None, [answered, words.spent(attempt)])), *_said(attempt, earlier)]
    if event == "rejected":
        return _rejected(record, verbose=verbose)
    if event == "applied":
        return _changed_files(record, verbose=verbose)
    if event == "repeated":
        return [f"{words.repeats_of(attempt)}; the next prompt says so"]
    told = {"built": words.build_of, "chosen": words.asked_of, "applying": _checks}.get(event, lambda _: "")(attempt)
    return told.split("\n") if told else []


def _said(attempt: Attempt, earlier: Sequence[Attempt]) -> list[str]:
    """Return the LLM's words outside the blocks, unless they repeat those of an earlier attempt."""
    if not attempt.notes or attempt.notes in [other.notes for other in earlier]:
        return []
    width = max(20, (terminal.terminal_width(sys.stderr) or 80) - 2)
    start = attempt.notes[: _SAID_LINES * width]
    lines = [part for text in start.split("\n") for part in wrap(terminal.shown(text.expandtabs(4)), width)]
    if len(start) < len(attempt.notes) or len(lines) > _SAID_LINES:
        lines[_SAID_LINES:] = ["... (code-commit log latest shows all of it)"]
    return [f"  {line}" for line in lines]


def _rejected(record: RunRecord, *, verbose: bool) -> list[str]:
    """Return the first reason in brief, or with --verbose all of them in full."""
    *earlier, attempt = (each for each in record.attempts if each.rejections)  # a resumed choice may have a later one
    if same := next((other.number for other in earlier if other.reasons == attempt.reasons), None):
        return [f"response {words.REJECTED}, for the same reasons as in attempt {same}"]
    if not verbose:
        return [f"response {words.REJECTED}: {words.rejection_of(attempt)}"]
    return [f"response {words.REJECTED}:", *(f"  {reason}" for reason in attempt.reasons)]


def _checks(attempt: Attempt) -> str:
    lines = words.check_lines(attempt.changes)
    return "\n  ".join(["the answer changes tests, CI files or build files:", *lines]) if lines else ""


def _changed_files(record: RunRecord, *, verbose: bool) -> list[str]:
    attempt = record.attempts[-1]
    changes = attempt.changes
    if not changes:
        return [f"{words.UNCHANGED}: {words.unchanged(record, attempt)}"]
    added, removed = sum(change.lines_added for change in changes), sum(change.lines_removed for change in changes)
    summary = f"{words.count(len(changes), 'file')} changed, +{added} -{removed}"
    if verbose:
        return [summary, *(f"  {row}" for row in words.change_rows(attempt.changes))]
    return [f"{summary}: {words.listed([change.name for change in changes], _SHOWN)}"]


def _closing_lines(record: RunRecord) -> list[str]:
    totals = record.totals
    if record.is_auxiliary:
        return []
    log = [f"Log: {record.log_dir}"] if not record.is_main else []  # which says at its start where it is
    besides = []
    if rewritten := words.rewritten_by_build(record):
        besides.append(f"The build also {rewritten} (unless you did); {record.log_dir}/{BUILT_DIFF} shows it.")
    if done := words.done_by_build(record):
        besides.append(f"{words.who_changed(record)} also {done} (unless you did); undo does not take that back.")
    ways = "Review: code-commit diff."
    if record.command != "undo":
        ways = f"{'' if record.head_moved else 'Nothing is committed. '}{ways} Undo: code-commit undo."
    review = [ways] if totals.files_changed else []
    if record.message and record.status == Status.SUCCESS:
        return [f"{record.message[0].upper()}{record.message[1:]}.", *besides, *review, *(log if review else [])]
    if record.status not in (Status.SUCCESS, Status.BUILD_FAILED):
        cost = words.cost_in_words(totals.cost)
        why = " (no reply reported the cost)" if totals.unsettled_usd else ""
        return [*besides, f"Cost: {cost}{why}."] if totals.unsettled_usd or totals.unpriced else besides
    build = words.headline_of(record)
    after = f" after {words.count(totals.attempts, 'attempt')}" if record.is_main else ""
    if record.status == Status.BUILD_FAILED:
        run = argument_of(Path(record.root, record.log_dir))
        review = [f"See: code-commit log{run} --open."]
        if totals.files_changed:
            review = [f"See: code-commit log{run} --open. The changes stay until code-commit undo{run}."]
    before = words.result_before(record)
    return [f"{build}{after}{before}: {words.done_in_all(record)}.", *besides, *review, *log]


def _way_to_apply(record: RunRecord) -> str:
    """Return the command that applies the answer of a dry run; "" where there is none to apply."""
    is_dry = record.is_main and record.status == Status.SUCCESS and record.options.get("dry_run")
    if not (is_dry and record.attempts and record.attempts[-1].changes):
        return ""
    edits = record.options.get("answer_format", "files")
    as_edits = "" if edits == "files" else f" --answer-format {edits}"
    return f"To apply it: code-commit apply{as_edits} {record.log_dir}/1-response.txt"


class _LiveRegion:
    """Up to two rows on a terminal: the phase with its elapsed time, and its state, passed through `clean`."""

    def __init__(self, stream: TextIO, clean: Callable[[str], str]) -> None:
        self._clean = clean
        self._lead = ""
        self._phase = ""
        self._until = ""
        self._phase_started = 0.0
        self._state = ""
        self._encoding = stream.encoding or "ascii"
        self.live = start_live(stream, self._draw, _REDRAWS_PER_SECOND)

    def begin_phase(self, lead: str, phase: str, until: str) -> None:
        """Show another phase, "" for none, which ends at `until` at the latest."""
        self._lead, self._phase, self._until, self._phase_started = lead, phase, until, time.monotonic()
        self._state = ""
        self.live.refresh()  # else the next lines would be printed above the old phase

    def show(self, state: str) -> None:
        """Show a state of the LLM call, or the last line of this end of a build's output."""
        self._state = state

    def _draw(self) -> "Text":
        from rich.text import Text

        if not self._phase:
            return Text("")
        elapsed = words.duration(time.monotonic() - self._phase_started)
        state = self._clean(_last_line(self._state))
        row = f"{self._lead}{', ' if self._lead else ''}{elapsed}: {self._phase}"
        limited = f"{row} (until {self._until})"
        row = limited if self._until and len(limited) < self.live.console.width else row
        rows = [row, *([f"  {state}"] if state else [])]
        return Text("\n".join(map(self._fit, rows)), no_wrap=True, overflow="crop", style="dim")

    def _fit(self, row: str) -> str:
        """Cut a row to the terminal's width, without combining characters, on whose width terminals disagree."""
        from rich.text import Text

        row = row.encode(self._encoding, "backslashreplace").decode(self._encoding)
        text = Text("".join(char for char in row if unicodedata.category(char) not in ("Mn", "Me")))
        text.truncate(self.live.console.width - 1, overflow="ellipsis" if self._encoding == "utf-8" else "crop")
        return text.plain


def _last_line(output: str) -> str:
    """Return the last line of a build's output that is not blank, as a terminal would show it."""
    lines = re.split(r"[\r\n]+", re.sub(terminal.ESCAPE_SEQUENCE, "", output).replace("\t", " "))
    return next((line for line in reversed(lines) if line.strip()), "")
