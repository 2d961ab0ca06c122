"""Lines of source code as HTML: pygments reads them, the markup is made here of escaped pieces."""

from collections.abc import Sequence
from functools import cache
from itertools import groupby, pairwise
from typing import TYPE_CHECKING

from markupsafe import escape

from code_commit.terminal import shown

if TYPE_CHECKING:
    from pygments.lexer import Lexer
    from pygments.token import _TokenType

Piece = tuple[str, str]  # a style class of page.css ("" for none) and the text that has it

MOST_CODE = 200_000  # characters of one side of a hunk that are coloured
LONGEST_LINE = 1_000
"""Characters of a line up to which its hunk is coloured: some lexers are very slow on longer lines."""
MOST_SHOWN = 2_000  # characters of a line
_NAMES = {"nf": "f", "fm": "f", "nc": "f", "nd": "f", "nb": "b", "bp": "b", "na": "b", "nt": "k", "ow": "k", "no": "m"}


def highlighted(path: str, texts: Sequence[str]) -> list[list[Piece]]:
    """Return the lines in coloured pieces, or each in one piece where that is not possible."""
    plain = [[("", text)] for text in texts]
    code = "\n".join(texts) + "\n"
    lexer = _lexer(path.rpartition("/")[2])
    if lexer is None or len(code) > MOST_CODE or max(map(len, texts)) > LONGEST_LINE:
        return plain
    lines: list[list[Piece]] = [[]]
    for _, kind, text in lexer.get_tokens_unprocessed(code):  # `get_tokens` would make line ends of every CR
        for index, part in enumerate(text.split("\n")):
            if index:
                lines.append([])
            lines[-1].append((_style(kind), part))
    same = ["".join(text for _, text in line) for line in lines] == [*texts, ""]
    return lines if same else plain


@cache
def _lexer(name: str) -> "Lexer | None":
    from pygments.lexers import find_lexer_class_for_filename

    found = find_lexer_class_for_filename(name)
    return found() if found else None


@cache
def _style(kind: "_TokenType") -> str:
    """Return the style class: the first letter of pygments' own short name, or that of a few names."""
    from pygments.token import STANDARD_TYPES

    while kind not in STANDARD_TYPES and kind.parent:
        kind = kind.parent
    name = STANDARD_TYPES.get(kind, "")
    return name[0] if name[:1] in {*"ksmc"} else _NAMES.get(name, "")


def line_html(pieces: Sequence[Piece], mark: tuple[int, int] = (0, 0)) -> str:
    """Return one line as HTML: its pieces in their colours, the range `mark` in <mark>."""
    parts = []
    position = 0
    for style, text in pieces:
        cuts = [min(max(cut - position, 0), len(text)) for cut in (0, *mark, MOST_SHOWN)]
        for index, (start, end) in enumerate(pairwise(cuts)):
            if start < end:
                part = visible(text[start:end])
                part = f"<span class={style}>{part}</span>" if style else part
                parts.append(f"<mark>{part}</mark>" if index == 1 else part)
        position += len(text)
    return "".join(parts) + more_characters(position)


def more_characters(length: int) -> str:
    """Return the note on the characters of a line that are not shown; "" where all are."""
    return f"<i>… {length - MOST_SHOWN:,} more characters</i>" if length > MOST_SHOWN else ""


def visible(text: str) -> str:
    """Escape a text for HTML, invisible and direction-changing characters as their escape sequences."""
    if text.replace("\t", " ").isprintable():
        return str(escape(text))
    runs = groupby(text, lambda char: char == "\t" or char.isprintable())
    parts = ((is_seen, "".join(run)) for is_seen, run in runs)
    return "".join(str(escape(part)) if is_seen else f"<i>{escape(shown(part))}</i>" for is_seen, part in parts)
