"""The live region: the rows at the bottom of a terminal that say what goes on now, and vanish when it is over."""

import re
import time
import unicodedata
from collections.abc import Callable
from typing import TextIO

from rich.console import Console
from rich.live import Live
from rich.text import Text

from code_commit.progress.step_lines import duration
from code_commit.terminal import ESCAPE_SEQUENCE

_REDRAWS_PER_SECOND = 5
_KEPT_CHARACTERS = 1000
"""So much of a build's output is kept: its last line may come in many pieces."""


class LiveRegion:
    """Two rows at most: the phase with its elapsed time, and the state inside it. Drawn until `close`.

    `clean` makes foreign text fit to be printed.
    """

    def __init__(self, stream: TextIO, clean: Callable[[str], str]) -> None:
        self._clean = clean
        self._lead = ""
        self._phase = ""
        self._phase_started = 0.0
        self._is_build = False
        self._state = ""
        self._encoding = stream.encoding or "ascii"
        self._live = Live(
            console=Console(file=stream),
            get_renderable=self._draw,
            transient=True,
            refresh_per_second=_REDRAWS_PER_SECOND,
            redirect_stdout=False,
            redirect_stderr=False,
        )
        self._live.start()

    def close(self) -> None:
        """Take the region off the terminal."""
        self._live.stop()

    def begin_phase(self, lead: str, phase: str, *, is_build: bool = False) -> None:
        """Show another phase from now on; "" shows none."""
        self._lead, self._phase, self._phase_started = lead, phase, time.monotonic()
        self._is_build, self._state = is_build, ""
        self._live.refresh()  # or the lines printed next would stand above the phase that is over

    def show(self, state: str) -> None:
        """Show a state of the LLM call, or the last line of the build's output, of which this is the next piece."""
        self._state = (self._state + state)[-_KEPT_CHARACTERS:] if self._is_build else state

    def print_above(self, text: str) -> None:
        """Print lines that stay."""
        self._live.console.print(text, markup=False, highlight=False, soft_wrap=True)

    def _draw(self) -> Text:
        if not self._phase:
            return Text("")
        elapsed = duration(time.monotonic() - self._phase_started)
        state = self._clean(last_line(self._state))
        rows = [f"{self._lead}{', ' if self._lead else ''}{elapsed}: {self._phase}", *([f"  {state}"] if state else [])]
        return Text("\n".join(map(self._fit, rows)), no_wrap=True, overflow="crop", style="dim")

    def _fit(self, row: str) -> str:
        """Cut a row to the terminal's width, so that no terminal wraps it: a third row would not be taken off again."""
        row = row.encode(self._encoding, "backslashreplace").decode(self._encoding)
        text = Text(_without_marks(row))
        text.truncate(self._live.console.width - 1, overflow="ellipsis" if self._encoding == "utf-8" else "crop")
        return text.plain


def last_line(output: str) -> str:
    """Return the last line of a piece of a build's output that says something, as a terminal would show it."""
    lines = re.split(r"[\r\n]+", re.sub(ESCAPE_SEQUENCE, "", output).replace("\t", " "))
    return next((line for line in reversed(lines) if line.strip()), "")


def _without_marks(text: str) -> str:
    """Drop combining characters and variation selectors: terminals disagree on their width."""
    if text.isascii():
        return text
    return "".join(char for char in text if unicodedata.category(char) not in ("Mn", "Me"))
