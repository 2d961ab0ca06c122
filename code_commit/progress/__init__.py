"""What the user sees on stderr while it runs: one line a step, and on a terminal a live region with the elapsed time.

One gate for everything that is printed: keys are censored and control characters escaped, so that neither a file
name nor a build's output can give orders to the terminal.
"""

from __future__ import annotations  # a command that runs nothing prints without loading the run's record

import sys
from collections.abc import Callable
from contextlib import suppress
from types import TracebackType
from typing import TYPE_CHECKING, Self, TextIO

from code_commit.redaction import Redactor
from code_commit.terminal import is_live_terminal, shown

if TYPE_CHECKING:
    from code_commit.progress.live_region import LiveRegion
    from code_commit.run_record import Event, RunRecord


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
        self._region: LiveRegion | None = None

    def __enter__(self) -> Self:
        if not self.quiet and is_live_terminal(self._stream):
            from code_commit.progress.live_region import LiveRegion

            with suppress(OSError, ValueError):
                self._region = LiveRegion(self._stream, self._clean)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._region:
            with suppress(OSError, ValueError):
                self._region.close()
            self._region = None

    def step(self, record: RunRecord, event: Event) -> None:
        """Print what has just happened."""
        from code_commit.progress.step_lines import attempt_lead, step_lines

        self.record = record
        if self._region:
            with suppress(OSError, ValueError):
                phase = _PHASES.get(event, "").format(model=record.model)
                self._region.begin_phase(attempt_lead(record), self._clean(phase), is_build=event == "building")
        for line in step_lines(record, event, verbose=self.verbose):
            self.say(line)
        if self.on_step:
            self.on_step(record, event)

    def live(self, state: str) -> None:
        """Show the state inside a step in the live region."""
        if self._region:
            self._region.show(state)

    def say(self, text: str) -> None:
        """Print a message, unless `--quiet`."""
        if not self.quiet:
            self._print(text)

    def error(self, text: str) -> None:
        """Print an error, each further line of it indented."""
        self._print("code-commit: " + text.replace("\n", "\n  "))

    def _print(self, text: str) -> None:
        printed = self._clean(text)
        with suppress(OSError, ValueError):  # nobody reads it any more: what the run does stays the same
            if self._region:
                self._region.print_above(printed)
            else:
                print(printed, file=self._stream, flush=True)

    def _clean(self, text: str) -> str:
        return "\n".join(shown(line) for line in self.redactor.redact_text(text).split("\n"))


_PHASES: dict[Event, str] = {"asking": "asking {model}", "retrying": "asking {model}", "building": "running build.sh"}
