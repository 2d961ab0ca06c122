"""What the user sees on stderr while it runs: one line a step, and on a terminal a live line with the elapsed time.

One gate for everything that is printed: keys are censored and control characters escaped, so that neither a file
name nor a build's output can give orders to the terminal.
"""

from __future__ import annotations  # a command that runs nothing prints without loading the run's record

import os
import sys
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from types import TracebackType
from typing import TYPE_CHECKING, Self, TextIO

from code_commit.changes import shown
from code_commit.redaction import Redactor

if TYPE_CHECKING:
    from rich.live import Live
    from rich.text import Text

    from code_commit.run_record import Attempt, Event, RunRecord, Totals

FILES_SHOWN = 3
"""Names of changed files on a step's line; the log and `--verbose` have all of them."""


class Progress:
    """Prints the steps of a run. A context manager: on leaving it nothing is left on the terminal but the lines."""

    def __init__(
        self, redactor: Redactor, *, quiet: bool = False, verbose: bool = False, stream: TextIO | None = None
    ) -> None:
        self.redactor = redactor
        self.quiet = quiet
        self.verbose = verbose
        self.record: RunRecord | None = None
        self.on_step: Callable[[RunRecord, Event], object] | None = None
        self._stream = stream or sys.stderr
        self._live: Live | None = None
        self._phase = ""
        self._phase_started = 0.0
        self._state = ""

    def __enter__(self) -> Self:
        if not self.quiet and is_live_terminal(self._stream):
            with suppress(OSError, ValueError):
                self._live = _open_live(self._stream, self._render)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live:
            with suppress(OSError, ValueError):
                self._live.stop()
            self._live = None

    def step(self, record: RunRecord, event: Event) -> None:
        """Print what has just happened."""
        self.record = record
        phase = _PHASES.get(event, "").format(model=record.model)
        self._begin_phase(f"attempt {len(record.attempts)} of {_most_attempts(record)}: {phase}" if phase else "")
        for line in _step_lines(record, event, verbose=self.verbose):
            self.say(line)
        if self.on_step:
            self.on_step(record, event)

    def live(self, state: str) -> None:
        """Show the state inside a step on the live line."""
        if self._live:
            last = state.replace("\r", "\n").strip("\n").rpartition("\n")[2]
            self._state = shown(self.redactor.redact_text(last.replace("\t", " "))) or self._state

    def say(self, text: str) -> None:
        """Print a message, unless `--quiet`."""
        if not self.quiet:
            self._print(text)

    def error(self, text: str) -> None:
        """Print an error, each further line of it indented."""
        self._print("code-commit: " + text.replace("\n", "\n  "))

    def _print(self, text: str) -> None:
        lines = [shown(line) for line in self.redactor.redact_text(text).split("\n")]
        with suppress(OSError, ValueError):  # nobody reads it any more: what the run does stays the same
            if self._live:
                self._live.console.print("\n".join(lines), markup=False, highlight=False, soft_wrap=True)
            else:
                print("\n".join(lines), file=self._stream, flush=True)

    def _begin_phase(self, phase: str) -> None:
        self._phase, self._phase_started, self._state = phase, time.monotonic(), ""

    def _render(self) -> Text:
        from rich.text import Text

        if not self._phase:
            return Text("")
        elapsed = _duration(time.monotonic() - self._phase_started)
        rows = [f"{self._phase} ({elapsed})", *([f"  {self._state}"] if self._state else [])]
        return Text("\n".join(rows), no_wrap=True, overflow="ellipsis", style="dim")


_PHASES: dict[Event, str] = {"asking": "asking {model}", "retrying": "asking {model}", "building": "running build.sh"}


def is_live_terminal(stream: TextIO) -> bool:
    """Tell whether a line can be redrawn there."""
    return stream.isatty() and os.environ.get("TERM", "") not in ("", "dumb") and not os.environ.get("CI")


def _open_live(stream: TextIO, render: object) -> Live:
    from rich.console import Console
    from rich.live import Live

    live = Live(console=Console(file=stream), get_renderable=render, transient=True, refresh_per_second=5)  # type: ignore[arg-type]
    live.start()
    return live


def _step_lines(record: RunRecord, event: Event, *, verbose: bool) -> Iterable[str]:
    """Return what is said of a step; those of an attempt begin with its number."""
    if event == "started":
        return [f"model: {record.model}", f"log: {record.log_dir}"] if record.command == "run" else []
    if event == "warned":
        return [f"warning: {record.warnings[-1]}"]
    if event == "finished":
        return _closing_lines(record)
    attempt = record.attempts[-1]
    lines = _attempt_lines(record.model, attempt, event, verbose=verbose)
    lead = f"attempt {attempt.number} of {_most_attempts(record)}: " if record.command == "run" else ""
    return [lead + line for line in lines[:1]] + lines[1:]


def _attempt_lines(model: str, attempt: Attempt, event: Event, *, verbose: bool) -> list[str]:
    if event == "retrying":
        return [attempt.retries[-1]]
    if event == "responded":
        return [f"{model} answered after {_duration(attempt.seconds or 0)}{_tokens(attempt)}"]
    if event == "rejected":
        return _rejections(attempt, verbose=verbose)
    if event == "applied":
        return _changed_files(attempt, verbose=verbose)
    if event == "built" and attempt.build:
        return [f"build {'passed' if attempt.build.passed else 'failed'}: {attempt.build.ending}"]
    return []


def _most_attempts(record: RunRecord) -> int:
    return 1 + int(record.options["max_repairs"])


def _rejections(attempt: Attempt, *, verbose: bool) -> list[str]:
    reasons = [f"  {reason}" for reason in attempt.rejections]
    listed = reasons if verbose else reasons[:FILES_SHOWN]
    more = [f"  and {len(reasons) - len(listed)} more"] if len(reasons) > len(listed) else []
    return ["response rejected, nothing written:", *listed, *more]


def _changed_files(attempt: Attempt, *, verbose: bool) -> list[str]:
    changes = attempt.changes
    added, removed = sum(change.lines_added for change in changes), sum(change.lines_removed for change in changes)
    rows = [f"{change.path} ({change.action}) +{change.lines_added} -{change.lines_removed}" for change in changes]
    summary = f"{_count(len(changes), 'file')} changed, +{added} -{removed}"
    if verbose:
        return [summary, *(f"  {row}" for row in rows)]
    names = ", ".join(change.path for change in changes[:FILES_SHOWN])
    more = f" and {len(changes) - FILES_SHOWN} more" if len(changes) > FILES_SHOWN else ""
    return [f"{summary}: {names}{more}"]


def _closing_lines(record: RunRecord) -> list[str]:
    spent = f"{_duration(record.totals.seconds)}{_total_cost(record.totals)}"
    attempts = _count(record.totals.attempts, "attempt")
    changed = _count(record.totals.files_changed, "file")
    review = f"Review: git status, git diff, code-commit log.\nLog: {record.log_dir}"
    if record.message and record.status == "success":
        return [f"{record.message[0].upper()}{record.message[1:]}.", *([review] if record.totals.files_changed else [])]
    if record.status == "success":
        return [f"The build passes after {attempts}: {changed} changed in {spent}.", review]
    if record.status == "build_failed":
        return [f"The build still fails after {attempts}: {changed} changed in {spent}.", review]
    return []


def _tokens(attempt: Attempt) -> str:
    usage = attempt.usage
    if usage is None or not usage.input + usage.output:
        return ""
    cost = f", ${attempt.cost_usd:.4f}" if attempt.cost_usd is not None else ""
    cached = f" ({usage.cached_input:,} cached)" if usage.cached_input else ""
    return f": {usage.input:,} tokens in{cached}, {usage.output:,} out{cost}"


def _total_cost(totals: Totals) -> str:
    tokens = totals.usage.input + totals.usage.output
    if not tokens:
        return ""
    return f", {tokens:,} tokens" + (f", ${totals.cost_usd:.4f}" if totals.cost_usd is not None else "")


def _duration(seconds: float) -> str:
    if seconds < 60:
        return f"{seconds:.1f} s"
    return f"{int(seconds) // 60} min {int(seconds) % 60:02} s"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
