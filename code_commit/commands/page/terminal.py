"""A build's output as a terminal would finally show it, in its colours: escape sequences are read, none is passed on.

Colours and the styles of SGR are kept. CR, backspace and erase-in-line are carried out, so that a progress bar is
one line. Everything else an escape sequence asks for (titles, links, moving about the screen) is dropped.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

from markupsafe import Markup

from code_commit.commands.page.colours import class_of, nearest
from code_commit.commands.page.highlight import visible
from code_commit.terminal import ESCAPE_SEQUENCE

MOST_COLUMNS = 4_000
"""Characters of a line that are shown."""


@dataclass(frozen=True, slots=True)
class Style:
    """How characters look: colours by number (None: the panel's own) and the attributes of SGR (ECMA-48, 8.3.117)."""

    foreground: int | None = None
    background: int | None = None
    bold: bool = False
    dim: bool = False
    italic: bool = False
    underline: bool = False
    struck: bool = False
    inverse: bool = False

    @property
    def colours(self) -> tuple[int | None, int | None]:
        if self.inverse:
            return (0 if self.background is None else self.background), (
                7 if self.foreground is None else self.foreground
            )
        return self.foreground, self.background


PLAIN = Style()
Run = tuple[str, Style]
_Cell = tuple[str, Style]

_TOKEN = re.compile(
    ESCAPE_SEQUENCE + r"|(?P<control>[\x00-\x08\x0b-\x1f\x7f-\x9f])"
    r"|(?P<line>\n)"
    r"|(?P<text>[^\x00-\x08\x0a-\x1f\x7f-\x9f]+)"
)


def terminal_lines(text: str) -> Iterator[list[Run]]:
    """Yield the lines of an output in runs of one style each."""
    style = PLAIN
    line = _Line()
    for token in _TOKEN.finditer(text.replace("\r\n", "\n")):
        if token["line"]:
            yield line.runs()
            line = _Line()
        elif token["text"]:
            line.write(token["text"], style)
        elif token["control"]:
            line.control(token["control"])
        elif token["final"] == "m":
            style = apply_sgr(style, token["parameters"])
        elif token["final"] in ("K", "G"):
            line.edit(token["final"], token["parameters"])
    if line.cells:
        yield line.runs()


class _Line:
    """One line of the screen and where the cursor is in it."""

    def __init__(self) -> None:
        self.cells: list[_Cell] = []
        self._column = 0
        self._lost = 0

    def write(self, text: str, style: Style) -> None:
        room = max(0, MOST_COLUMNS - self._column)
        self._lost += max(0, len(text) - room)
        text = text[:room]
        self.cells += [(" ", PLAIN)] * (self._column - len(self.cells))
        self.cells[self._column : self._column + len(text)] = [(char, style) for char in text]
        self._column += len(text)

    def control(self, char: str) -> None:
        if char == "\r":
            self._column = 0
        elif char == "\b":
            self._column = max(0, self._column - 1)

    def edit(self, final: str, parameters: str) -> None:
        if final == "G":
            self._column = max(0, min(int(parameters[:6]), MOST_COLUMNS) - 1) if parameters.isdecimal() else 0
        elif parameters in ("", "0"):
            del self.cells[self._column :]
        elif parameters == "1":
            self.cells[: self._column] = [(" ", PLAIN)] * min(self._column, len(self.cells))
        else:
            self.cells.clear()

    def runs(self) -> list[Run]:
        runs = [("".join(char for char, _ in run), style) for style, run in groupby(self.cells, lambda cell: cell[1])]
        return [*runs, (f"… {self._lost:,} more characters", Style(italic=True))] if self._lost else runs


def apply_sgr(style: Style, parameters: str) -> Style:
    """Return the style after an SGR sequence. Unknown codes change nothing."""
    codes = [_codes(part) for part in (parameters or "0").split(";")]
    position = 0
    while position < len(codes):
        code = codes[position]
        if code[0] in (38, 48):
            flat = code[1:] if len(code) > 1 else [part[0] for part in codes[position + 1 : position + 5]]
            colour, used = _extended(flat, with_space=len(code) > 5)
            if colour is not None:
                style = replace(style, foreground=colour) if code[0] == 38 else replace(style, background=colour)
            position += 0 if len(code) > 1 else used
        else:
            style = _simple(style, code)
        position += 1
    return style


def _codes(part: str) -> list[int]:
    """Return a parameter's numbers; colons stand between the parts of one (ITU T.416, 13.1.8)."""
    return [int(number) if number.isdecimal() and len(number) < 4 else 0 for number in part.split(":")]


def _extended(numbers: Sequence[int], *, with_space: bool) -> tuple[int | None, int]:
    """Return the colour of `5;N` or `2;R;G;B` and how many numbers it took."""
    if len(numbers) > 1 and numbers[0] == 5:
        return min(numbers[1], 255), 2
    if len(numbers) > 3 and numbers[0] == 2:
        red, green, blue = (min(number, 255) for number in numbers[2 if with_space else 1 :][:3])
        return nearest(red, green, blue), 4
    return None, len(numbers)


def _simple(style: Style, code: Sequence[int]) -> Style:
    number = code[0]
    if number == 0:
        return PLAIN
    if number == 4 and code[1:] == [0]:
        return replace(style, underline=False)
    if number in _ATTRIBUTES:
        return replace(style, **_ATTRIBUTES[number])  # type: ignore[arg-type]
    for first, base, ground in _RANGES:
        if first <= number < first + 8:
            return replace(style, **{ground: number - first + base})  # type: ignore[arg-type]
    return style


_ATTRIBUTES: dict[int, dict[str, bool | None]] = {
    1: {"bold": True},
    2: {"dim": True},
    3: {"italic": True},
    4: {"underline": True},
    7: {"inverse": True},
    9: {"struck": True},
    21: {"underline": True},
    22: {"bold": False, "dim": False},
    23: {"italic": False},
    24: {"underline": False},
    27: {"inverse": False},
    29: {"struck": False},
    39: {"foreground": None},
    49: {"background": None},
}
_RANGES = ((30, 0, "foreground"), (40, 0, "background"), (90, 8, "foreground"), (100, 8, "background"))


class TerminalMarkup:
    """Makes HTML of outputs and remembers the pairs of colours that they use."""

    def __init__(self) -> None:
        self.colours: set[tuple[int | None, int | None]] = set()

    def line(self, runs: Sequence[Run]) -> Markup:
        """Return one line as HTML."""
        return Markup("").join(self._run(text, style) for text, style in runs)

    def _run(self, text: str, style: Style) -> Markup:
        names = [name for name in _CLASSES if getattr(style, name)]
        pair = style.colours
        if pair != (None, None):
            self.colours.add(pair)
            names.append(class_of(*pair))
        return Markup('<span class="{}">{}</span>').format(" ".join(names), visible(text)) if names else visible(text)


_CLASSES = ("bold", "dim", "italic", "underline", "struck")
