r"""Lines of a file that come again without what something on the way took off them. The rules, all suspicions:

damaged    characters that nobody sees, or U+FFFD, are new; or lines have lost each backslash, star, tag or the like,
           their indentation, or all letters that are not ASCII; or a line ends where it had \n
omission   dots or a mask stand in a line for a part of it, or all comments are gone and hardly anything else
repeated   all of the file comes twice

Each compares a line with one that is gone. A commit that changes lines like that leaves others as they were.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterator
from functools import cached_property, partial
from html import unescape
from itertools import islice
from unicodedata import normalize

from code_commit.changes import EditBlock, FileChange, FileReplacement, SuspicionRule, quoted
from code_commit.regex import regex
from code_commit.verify.escapes import ALIKE, find_lookalike
from code_commit.verify.markdown import is_known_code
from code_commit.verify.parts import Part, Suspicion, parts_of

_FEW = 3  # lines that come again
_MOST_LINES, _LONGEST_LINE = 2_000, 2_000  # that are compared, characters of one
_MOST_MASKED, _MOST_READ = 200, 100  # lines
_LETTER, _WORD = regex(r"[^\W_]"), regex(r"\w\w")
_CONTROL = regex("[\x01-\x08\x0b\x0e-\x1f\x7f]")
_UNSEEN = regex(
    "[\x01-\x08\x0b\x0e-\x1f\x7f-\x9f\xad\u061c\u180e\u200b\u202a-\u202e\u2060-\u206f\ufff9-\ufffb\ufffd\ue000-\uf8ff"
    "\U000e0000-\U000e0fff\U000f0000-\U0010ffff]"
)
_INDENTATION = regex(r"(?m)^[ \t]+")
_ENTITY = regex(r"&(?:lt|gt|amp|quot|apos|#\d{1,6}|#x[0-9A-Fa-f]{1,5});")
_LAYERS: tuple[tuple[re.Pattern[str], Callable[[str], str]], ...] = (
    *((regex(sign), partial(re.sub, sign, "")) for sign in (r"\\", r"\*+", "__", "`", r"<[^<>\n]+>")),
    (regex(r"\$\$"), lambda line: line.replace("$$", "$")),
    (regex(f"[{''.join(map(chr, ALIKE))}]"), lambda line: line.translate(ALIKE)),
    (regex("[\u0300-\u036f]"), partial(normalize, "NFC")),
    (_ENTITY, unescape),
    (_INDENTATION, str.lstrip),
)
"""The signs that a layer which reads strings, Markdown or HTML takes off a line, and the line without each."""
_ESCAPE, _READ = regex(r"\\(.)"), {"n": "\n", "r": "\r", "t": "\t"}
_MASK_SIGNS = ("...", "\u2026", "***", "\u2022\u2022\u2022", "edacted", "EDACTED")
_MASK = regex(  # three dots, a word between stars, as many bullets, what is redacted in brackets
    r"[\[<(\u00ab](?i:redacted)\b[^\n\])>\u00bb]*[\])>\u00bb]"
    r"|\.{3}(?![\w.)])|(?<=\w)\.{3}(?=\w)|\u2026|\*{3,}(?:\w+\*{3,})?|\u2022{3,}"
)
_LEAST_CUT = 4  # characters
_REMARK = regex(r"(?m)^[ \t]*(?://+!?|#+|--+|;+|%+|/?\*+)[ \t].*\w")  # a line of comment in most languages
_FEWEST_REMARKS, _CODE_TO_GONE = 5, 4  # and how many lines of code are kept for one that is gone
_NOT_ASCII, _THREE_ASCII = regex(r"([^\x00-\x7f]+)"), regex(r"(?:[!-~][^!-~]*){3}")
_FEWEST_LOST, _MOST_COMPARED = 2, 50  # lines
_FEWEST_TWICE = 15  # lines; fewer are soon copied, in a table of tests


def find_damages(change: FileChange | EditBlock, old: str | None) -> Iterator[Suspicion]:
    """Yield what each rule finds; the old text of a new file is None."""
    for find in (find_loss, find_lost_letters, find_doubling, find_lookalike):
        if found := find(change, old):
            yield found


def find_loss(change: FileChange | EditBlock, old: str | None) -> Suspicion | None:
    """Return the first thing that lines of the answer have lost since they stood in the file."""
    for part in parts_of(change, old):
        if part.old is None or part.new == part.old or part.is_data:
            continue
        lines = _Lines(part)
        finds = (_find_unseen, _find_read, _find_layer, _find_remarks, _find_mask)
        if found := next(filter(None, (find(lines) for find in finds)), None):
            return found
    return None


class _Lines:
    """The lines of a part and those that it takes the place of, compared when that is asked for."""

    def __init__(self, part: Part) -> None:
        self.part, self.old, self.new = part, part.old or "", part.new

    @cached_property
    def had(self) -> list[str]:
        return [*dict.fromkeys(self.old.split("\n"))]

    @cached_property
    def put(self) -> frozenset[str]:
        return frozenset(self.new.split("\n"))

    @cached_property
    def gone(self) -> list[str]:
        return [line for line in self.had if line not in self.put and _WORD.search(line)][:_MOST_LINES]

    @cached_property
    def added(self) -> list[str]:
        there = {*self.had}
        lines = dict.fromkeys(self.new.split("\n"))
        return [line for line in lines if line not in there and len(line) <= _LONGEST_LINE][:_MOST_LINES]

    def lose(self, sign: re.Pattern[str]) -> bool:
        return sign.search(self.old) is not None and not sign.search(self.new)

    def suspect(self, rule: SuspicionRule, fact: str, advice: str, at: int | None = None) -> Suspicion:
        """Return a finding, at a line of the new text (from 0) where it is known and the whole file is sent."""
        line = self.part.line
        return Suspicion(line if at is None or self.part.is_edit else line and line + 1 + at, fact, advice, rule=rule)


def _find_unseen(lines: _Lines) -> Suspicion | None:
    unseen = _CONTROL if lines.new.isascii() else _UNSEEN
    found = unseen.search(lines.new)
    if found is None or _UNSEEN.search(lines.part.file):
        return None
    start = lines.new.rfind("\n", 0, found.start()) + 1
    said = lines.new[start:].partition("\n")[0].strip()
    kind = " in place of a character" if found[0] == "\ufffd" else ", which nobody sees"
    fact = f"'{quoted(said)}' contains U+{ord(found[0]):04X}{kind}, and the file has none of the kind"
    advice = "write the character that was meant, or its escape"
    return lines.suspect("damaged", fact, advice, lines.new.count("\n", 0, start))


def _find_read(lines: _Lines) -> Suspicion | None:
    """Find a line that comes again as a string of it would be read."""
    written = (line for line in lines.gone if "\\n" in line) if "\\n" in lines.old else ()
    for line in islice(written, _MOST_READ):
        read = (line.replace("\\n", "\n"), _ESCAPE.sub(lambda escape: _READ.get(escape[1], escape[1]), line))
        if any("\n" in each and f"\n{each}\n" in f"\n{lines.new}\n" for each in read):
            fact = f"'{quoted(line.strip())}' comes again with an end of a line in place of \\n"
            return lines.suspect("damaged", fact, "write the two characters \\n as they are in the file")
    return None


def _find_layer(lines: _Lines) -> Suspicion | None:
    """Find lines without a sign that they had, if most lines with this sign come again so, and none has it now."""
    if lines.part.is_edit and lines.new[:1].isspace():  # an edit is asked for its indentation alone
        return None
    for sign, without in _LAYERS[-1 if lines.part.is_edit else 0 :]:
        if not lines.lose(sign) or (sign is _INDENTATION and lines.part.is_document):
            continue
        marked = [line for line in lines.gone if sign.search(line)]
        again = {*map(without, marked)} & {line for line in lines.added if _WORD.search(line)}
        if len(again) >= _FEW and 2 * len(again) >= len({*marked}):
            fact = f"'{quoted(min(again).strip())}' and more lines lack signs or blanks that all of them had"
            return lines.suspect("damaged", fact, "write every character as it is in the file")
    return None


def _find_remarks(lines: _Lines) -> Suspicion | None:
    if lines.part.is_edit or not lines.lose(_REMARK) or not lines.part.is_code or not is_known_code(lines.part.path):
        return None
    remarks = [line for line in lines.gone if _REMARK.match(line)]
    kept = sum(line in lines.put and _WORD.search(line) is not None for line in lines.had)
    if len(remarks) < _FEWEST_REMARKS or _CODE_TO_GONE * (len(lines.gone) - len(remarks)) > kept:
        return None
    return lines.suspect("omission", f"all comments are gone, '{quoted(remarks[0].strip())}' first", "keep them")


def _find_mask(lines: _Lines) -> Suspicion | None:
    """Find a line with dots or a mask in place of a part of one that is gone."""
    if not any(map(lines.new.__contains__, _MASK_SIGNS)):
        return None
    masked = ((line, mask) for line in lines.added for mask in _MASK.finditer(line))
    for line, mask in islice(masked, _MOST_MASKED):
        before, after = line[: mask.start()], line[mask.end() :]
        shortest = len(line) - len(mask[0]) + _LEAST_CUT
        if _WORD.search(before) and any(
            len(old) >= shortest
            and old.startswith(before)
            and old.endswith(after)
            and _WORD.search(old, len(before), len(old) - len(after))
            and not _MASK.search(old)
            for old in lines.gone
        ):
            fact = f"in '{quoted(line.strip())}' a sign stands for a part of the file's line"
            return lines.suspect("omission", fact, "write the whole line")
    return None


def find_lost_letters(change: FileChange | EditBlock, old: str | None) -> Suspicion | None:
    """Return the finding that lines of a file come again with ASCII in place of all that was none, or with what their
    bytes are in another encoding, in several lines.
    """
    if not isinstance(change, FileReplacement) or old is None or old.isascii():
        return None
    new, *lines = (text.replace("\r", "") for text in (change.content, *dict.fromkeys(old.split("\n"))))
    lines = [line for line in lines if len(line) <= _LONGEST_LINE and not line.isascii() and _THREE_ASCII.search(line)]
    is_ascii = new.isascii()
    if not is_ascii and not {*lines}.isdisjoint(new.split("\n")):
        return None
    forms = (f"(?m)^{_lost_form(line, is_ascii=is_ascii)}" for line in lines[:_MOST_COMPARED])
    again = [found for form in forms if (found := re.search(form, new))]
    if len(again) < _FEWEST_LOST or 2 * len(again) < len(lines):
        return None
    said = again[0][0].strip()
    at = change.line and change.line + 1 + new.count("\n", 0, again[0].start())
    others = "ASCII" if is_ascii else "others"
    fact = f"'{quoted(said)}' and more lines have {others} in place of the file's own characters, and none is left"
    return Suspicion(at, fact, "write the characters of the file", rule="damaged")


def _lost_form(line: str, *, is_ascii: bool) -> str:
    """Return the pattern of a line with ASCII in place of all that is none, or with its bytes read as characters.

    A piece is where it first can be, by a group that is found ahead: to try each place would take for ever. (Up to
    3.11.4 Python's own atomic groups match wrongly.)
    """
    first, *pieces = _NOT_ASCII.split(line)
    *kept, last = map(re.escape, pieces[1::2])
    form = re.escape(first)
    for number, (lost, ahead) in enumerate(zip(pieces[::2], [*kept, f"{last}$"], strict=True)):
        most = max(10, 3 * len(lost))
        read = rf"[^\x00-\x3e@-\x7f]{{{len(lost) + 1},{len(lost.encode())}}}"
        form += f"(?=(?P<p{number}>{f'[ -~]{{0,{most}}}?' if is_ascii else read}{ahead}))(?P=p{number})"
    return form


def find_doubling(change: FileChange | EditBlock, old: str | None) -> Suspicion | None:
    """Return the finding that most of a file's lines, which it has once, come twice, one time after the other.

    The first of them begins it again: what is copied within a file stands below its head, or below YAML's `---`.
    """
    if not isinstance(change, FileReplacement) or old is None or 2 * len(change.content) < 3 * len(old):
        return None
    counts = Counter(line for line in map(str.strip, old.split("\n")) if _LETTER.search(line))
    places: dict[str, list[int]] = {line: [] for line, number in counts.items() if number == 1}
    lines = [line.strip() for line in change.content.split("\n")]
    for number, line in enumerate(lines):
        if line in places:
            places[line].append(number)
    kept = [found for found in places.values() if found]
    twice = [found for found in kept if len(found) > 1]
    if len(twice) < _FEWEST_TWICE or 2 * len(kept) < len(places) or 4 * len(twice) < 3 * len(kept):
        return None
    start = min(second for _, second, *_ in twice)
    if max(first for first, *_ in twice) > start or next(parts_of(change, old)).is_data:
        return None
    if kept[0][1:2] != [start] or lines[start - 1] == "---" not in lines[: kept[0][0]]:
        return None
    fact = f"all of it comes twice: '{quoted(lines[start])}' begins it again"
    return Suspicion(change.line and change.line + 1 + start, fact, "send the file once", rule="repeated")
