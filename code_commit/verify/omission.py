"""Code that the response left out, told by what the files lose. Rule `omission`, a suspicion.

A line is lost if the files of the answer have fewer of it than before, so that moved code is not lost. Comments, and
lines without a word, do not count. The words of what stands there instead matter only in `placeholders`. A remark in
place of a whole file, in any language, is told by its form: words alone, as no line of code in the old file was.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from functools import cached_property, lru_cache
from itertools import chain, islice, pairwise
from typing import NamedTuple

from code_commit.changes import Edit
from code_commit.regex import regex
from code_commit.runs.diff import anchors, without_equal_ends
from code_commit.verify.markdown import is_document, is_sample, lexer_of
from code_commit.verify.placeholders import COMMENT, find_placeholder

_LEAST_LOST = 6  # lines in one place
_LEAST_DISTINCT = 4  # of these
_LEAST_BY_DOTS = 2  # lines where dots stand in each line instead
_MOST_INSTEAD = 3  # lines that stand there instead
_MOST_CHANGED = 5  # lines beside them that the answer changed, on either side
_LIKE = 0.6  # the ratio of difflib from which a line is a changed one
_LONGEST_LINE = 400
_LONGEST_LEXED, _LONGEST_LEXED_LINE = 300_000, 10_000  # characters: a lexer takes the square of some long lines
_DIRECTIVES = (("Preproc",), ("PreprocFile",))  # pygments' kinds of comments that are none
_WORD, _ELLIPSIS = regex(r"[^\W\d_]"), regex(r"\.{3}|\u2026")
_DOTS = r"(?:\.{3,}|[\u2026\u22ee\u22ef]+)"
_SAYS = regex(rf"[^\W\d_]|{_DOTS}")  # the marks around a comment say nothing
# dots beside nothing but punctuation, dots with a blank behind them, and dots at both ends
_DOTTED = regex(rf"\W*{_DOTS}\W*|[^\w.\u2026]*{_DOTS}(?=\W*\s).*|[^\w.\u2026]*{_DOTS}.*{_DOTS}\W*")
# in brackets, of any width, two words or one that is not ASCII, and no sign of code
_BRACKETED = regex(r"[(\[<{\uff08\u3010](?=.*(?:\w\s+\w|[^\x00-\x7f\W]))[^()\[\]<>{}=;:\"]*[)\]>}\uff09\u3011]\W*")
# the same with a colon, if it has four words at least
_SENTENCE = regex(r"[(\[<{](?=(?:\S+\s+){4})[^()\[\]<>{}=;\"]*[)\]>}]\W*")
_QUOTED_CODE = regex(r"`[^`]+`|(?<![\w.])[\w.-]*/[\w./-]+|\b\w[\w-]*\.[a-z]\w*\b")  # and paths
_REMARK = regex(r"[^=;{}()\[\]<>\"#$%&+|\\/@~^`]*")
_SENTENCE_END = regex(r"[.!\u2026\u3002\uff01]\W*\Z")
_LEAST_OF_ALL = 3  # lines of a file of which nothing is left
_FEW_WORDS = 5  # fewer of them around a colon are a setting
_MOST_CODE = 2_000  # lines of the old file that are compared with a remark
_MARKED = regex(rf"(?:{COMMENT}|-#|@\*|\{{\{{/\*|[!/]|'(?!.*'[.,;)]))\s")  # a comment of some language, no string


Span = tuple[int, int]


class ChangedFile(NamedTuple):
    """A file of the answer before (None: a new one) and after (None: removed) it.

    `edits` are all that it changes, () for others, and for a file of other ends than LF.
    """

    path: str
    old: str | None
    new: str | None
    edits: Sequence[Edit] = ()


class Omission(NamedTuple):
    """Lines `first` to `last` (from 1) of the old file that are lost, 0 where only the words say so.

    `at` is the line of the new content (from 0) that stands there instead, `text` what it says; "" in an empty file.
    """

    path: str
    at: int
    text: str
    first: int = 0
    last: int = 0


def find_omissions(files: Sequence[ChangedFile]) -> Iterator[Omission]:
    """Yield the first omission of each file."""
    lost = _Lost(files)
    for file in files:
        if file.new is None:
            continue
        if (old := file.old) is not None and (
            place := (not _only_replace(file.edits) and _find_place(file.path, old, file.new, lost))
            or _find_remark(file.path, old, file.new, lost)
            or _find_emptied(file.path, old, file.new, lost)
        ):
            yield place
        elif (word := find_placeholder(file.path, file.new, old, file.edits)) and (old is None or lost.any_of(old)):
            yield Omission(file.path, *word)


def _only_replace(edits: Sequence[Edit]) -> bool:
    """Tell whether edits take hardly more lines than they put there, and move none: no place has lost its lines.

    A place that has lost them without dots has at least six lines fewer and at most three more. Lines that both have
    once stand around it; if none is moved, they are in the same order, and the edits between make up the difference.
    """
    taken, put, fewer = set[str](), set[str](), 0
    for edit in edits:
        old, new = _stripped(edit.find)[:-1], _stripped(edit.replacement)[:-1]
        (start, end), (first, last) = without_equal_ends(old, new)
        old, new = old[start:end], new[first:last]
        fewer += max(0, sum(map(bool, old)) - sum(map(bool, new)))
        taken.update(filter(None, old))
        put.update(new)
    is_known = edits and not any(edit.last for edit in edits)
    can_be = fewer >= _LEAST_LOST - _MOST_INSTEAD or any(map(_ELLIPSIS.search, put))
    return bool(is_known) and not can_be and taken.isdisjoint(put)


class _Lost:
    """Tells which lines the files of the answer have fewer of than before. It counts them when it is asked."""

    def __init__(self, files: Sequence[ChangedFile]) -> None:
        self._files = files

    @cached_property
    def _counts(self) -> Counter[str]:
        counts = Counter(line for file in self._files if file.old for line in _stripped(file.old))
        counts.subtract(line for file in self._files if file.new for line in _stripped(file.new))
        return counts

    def __call__(self, line: str) -> bool:
        return self._counts[line] > 0

    def any_of(self, text: str) -> bool:
        return any(self(line) and _WORD.search(line) for line in {*_stripped(text)})


def _stripped(text: str) -> list[str]:
    return [line.strip() for line in text.split("\n")]


class _Gap(NamedTuple):
    """Lines of the old and of the new content, from the first to before the last, between lines that both have."""

    old: Span
    new: Span


def _find_place(path: str, old_text: str, new_text: str, lost: _Lost) -> Omission | None:
    had, put = ({*text.split("\n")} for text in (old_text, new_text))
    has_dots = any(map(_ELLIPSIS.search, put - had))
    if len(had - put) < (_LEAST_BY_DOTS if has_dots else _LEAST_DISTINCT):
        return None
    old, new = _stripped(old_text), _stripped(new_text)
    gaps = _gaps(old, new, _LEAST_BY_DOTS if has_dots else _LEAST_LOST)
    for gap in chain.from_iterable(_trimmed(old, new, wide) for wide in gaps):
        instead = [number for number in range(*gap.new) if new[number]]
        gone = [number for number in range(*gap.old) if _WORD.search(old[number])]
        least = _LEAST_BY_DOTS if all(_ELLIPSIS.search(new[number]) for number in instead) else _LEAST_LOST
        if not 0 < len(instead) <= _MOST_INSTEAD or len(gone) < least:
            continue
        lines = old[slice(*gap.old)]
        instead = [number for number in instead if not _is_cut(new[number], lines)]
        comments = _comment_lines(path, old_text, gap.old)
        gone = [number for number in gone if number not in comments]
        is_lost = sum(lost(old[number]) for number in gone)
        says = any(_SAYS.search(new[number]) for number in instead)
        if not says or is_lost < least or 10 * is_lost < 9 * len(gone):
            continue
        comments = _comment_lines(path, new_text, gap.new)
        is_alone = len(instead) == 1
        if all(
            number in comments
            or _stands_for_code(new[number], path, old, is_alone=is_alone)
            or (not is_document(path) and _is_remark(new[number], path, old_text))
            for number in instead
        ):
            return Omission(path, instead[0], new[instead[0]], gone[0] + 1, gone[-1] + 1)
    return None


def _find_emptied(path: str, old: str, new: str, lost: _Lost) -> Omission | None:
    """Return all of a file that is sent empty, as when an answer forgot its lines."""
    if new.strip():
        return None
    lines = _stripped(old)
    comments = _comment_lines(path, old, (0, len(lines)))
    gone = [at for at, line in enumerate(lines) if _WORD.search(line) and at not in comments and lost(line)]
    return Omission(path, 0, "", gone[0] + 1, gone[-1] + 1) if len(gone) >= _LEAST_OF_ALL else None


def _gaps(old: Sequence[str], new: Sequence[str], least: int) -> Iterator[_Gap]:
    """Yield what lies between the lines that both contents have once, in the same order."""
    named = [[line or object() for line in lines] for lines in (old, new)]  # blank lines are like no others
    kept = [(-1, -1), *anchors(*named), (len(old), len(new))]
    for (old_start, new_start), (old_stop, new_stop) in pairwise(kept):
        if old_stop - old_start > least and new_stop - new_start > 1:
            yield _Gap((old_start + 1, old_stop), (new_start + 1, new_stop))


def _trimmed(old: Sequence[str], new: Sequence[str], gap: _Gap) -> Iterator[_Gap]:
    """Yield the gap without the equal lines on both sides, then also without a few that the answer changed."""
    gap = _Gap(*without_equal_ends(old, new, gap))
    yield gap
    first, end = gap.new
    if end - first <= _MOST_INSTEAD + 2 * _MOST_CHANGED:
        yield _Gap(*without_equal_ends(old, new, gap, _is_like))


def _is_cut(line: str, old: Sequence[str]) -> bool:
    """Tell whether a line with a word is the beginning of an old one."""
    return _WORD.search(line) is not None and any(each.startswith(line) for each in old)


def _is_like(old: str, new: str) -> bool:
    can_be = max(len(old), len(new)) <= _LONGEST_LINE
    return old == new or (can_be and SequenceMatcher(None, old, new, autojunk=False).ratio() >= _LIKE)


def _stands_for_code(line: str, path: str, old: Sequence[str], *, is_alone: bool) -> bool:
    """Tell whether a line is a comment by itself, or dots or prose in brackets of which the old file has no lines."""
    is_body = is_alone and line == "..." and path.endswith((".py", ".pyi"))  # of a function
    if len(line) > _LONGEST_LINE or is_body:
        return False
    # it stands in a text, or the lexer is that of another language
    if _comments(path, line) or (_MARKED.match(line) and not is_document(path)):
        return True
    form = next((form for form in (_DOTTED, _BRACKETED, _SENTENCE) if form.fullmatch(line)), None)
    return form is not None and not any(len(each) <= _LONGEST_LINE and form.fullmatch(each) for each in old)


def _find_remark(path: str, old_text: str, new_text: str, lost: _Lost) -> Omission | None:
    """Return the words about a file that stand in place of all of it."""
    lines = enumerate(map(str.strip, new_text.split("\n")))
    said = [*islice(((number, line) for number, line in lines if line), _MOST_INSTEAD + 1)]
    if not 0 < len(said) <= _MOST_INSTEAD or is_sample(path):
        return None
    old = _stripped(old_text)
    gone = [number for number, line in enumerate(old) if _WORD.search(line)]
    if not gone or not all(lost(old[number]) for number in gone):
        return None
    if is_document(path):
        is_remark = len(said) == 1 and len(gone) >= _LEAST_LOST and _form_of(said[0][1]) != ""
    else:
        forms = {_form_of(line) for _, line in said}
        is_sure = forms <= {"sentence", "Words"} and lexer_of(path) is not None
        comments, is_alone = _comments(path, new_text), len(said) == 1
        is_remark = (is_sure or len(gone) >= _LEAST_OF_ALL) and all(
            number in comments
            or _stands_for_code(line, path, old, is_alone=is_alone)
            or _is_remark(line, path, old_text)
            for number, line in said
        )
    return Omission(path, *said[0], gone[0] + 1, gone[-1] + 1) if is_remark else None


def _form_of(line: str) -> str:
    """Return the form of a line that is words alone: `sentence`, `Words`, `words` or `word`; "" for any other line."""
    bare = _QUOTED_CODE.sub("x", line.strip("*_ ").removeprefix("(").removeprefix("[").rstrip(")]"))
    words = re.findall(r"[^\W\d_]+", bare) if len(line) <= _LONGEST_LINE and _REMARK.fullmatch(bare) else []
    if not words or (":" in bare.rstrip(": ") and len(words) < _FEW_WORDS):
        return ""
    if len(words) == 1 and words[0].isascii():
        return "word"
    is_lower = words[0][0].islower()
    return "words" if is_lower else "sentence" if _SENTENCE_END.search(bare) else "Words"


def _is_remark(line: str, path: str, old: str) -> bool:
    """Tell whether a line is words alone, and nothing that is code in the file's language or was code in the file."""
    form = "" if line.endswith(",") else _form_of(line)  # an item of a list
    if not form or _begins_as_code(line, path, form) or (form == "word" and lexer_of(path) is None):
        return False
    code = _code_lines(path, old)
    first = re.search(r"[^\W\d_]+", line)
    if form in ("word", "words") and first and any(re.search(rf"\b{first[0]}\b", each) for each in code):
        return False
    return not any(form == _form_of(each) and not _begins_as_code(each, path, form) for each in code)


def _begins_as_code(line: str, path: str, form: str) -> bool:
    """Tell whether a line begins with a string, or, if it is no sentence, with a keyword or a command."""
    lexer = lexer_of(path)
    kinds = (kind for _, kind, said in lexer.get_tokens_unprocessed(f"{line}\n") if said.strip()) if lexer else ()
    first = next(iter(kinds), ())
    is_constant = form == "word" and first == ("Keyword", "Constant")  # such as `undefined`: no line of code alone
    is_command = (first[:1] == ("Keyword",) and not is_constant) or first[:2] == ("Name", "Builtin")
    is_string = line.startswith("'") or first[:2] == ("Literal", "String")  # of PHP no lexer sees it in a line alone
    return is_string or (is_command and form != "sentence")


def _code_lines(path: str, text: str) -> list[str]:
    """Return the first lines that have words outside of comments and strings."""
    text = text[:_LONGEST_LEXED]
    others = _lines_in(path, text, (("Comment",), ("Literal", "String")))
    return [line for number, line in enumerate(_stripped(text)) if number not in others][:_MOST_CODE]


def _comment_lines(path: str, text: str, span: Span) -> frozenset[int]:
    """Return the numbers of the lines, from 0, that have words in comments alone by the rules of the file's language.

    In a long text only the lines of the span are looked at.
    """
    if len(text) > _LONGEST_LEXED:
        part = "\n".join(text.split("\n")[slice(*span)])
        return frozenset(span[0] + number for number in _comments(path, part[:_LONGEST_LEXED]))
    return _comments(path, text)


def _comments(path: str, text: str) -> frozenset[int]:
    return _lines_in(path, text, (("Comment",),))


@lru_cache(maxsize=4)  # a file has several places
def _lines_in(path: str, text: str, kinds: tuple[tuple[str, ...], ...]) -> frozenset[int]:
    """Return the numbers of the lines, from 0, that have words in these kinds of tokens alone."""
    lexer = lexer_of(path)
    if lexer is None or max(map(len, text.split("\n"))) > _LONGEST_LEXED_LINE:
        return frozenset(number for number, line in enumerate(_stripped(text)) if re.match(COMMENT, line))
    inside, others, number = set[int](), set[int](), 0
    for _, kind, said in lexer.get_tokens_unprocessed(f"{text}\n"):  # some want a line end behind a comment
        is_inside = any(kind[: len(each)] == each for each in kinds) and kind[1:2] not in _DIRECTIVES
        for offset, piece in enumerate(said.split("\n")):
            if is_inside and piece.strip():
                inside.add(number + offset)
            elif not is_inside and _WORD.search(piece):
                others.add(number + offset)
        number += said.count("\n")
    return frozenset(inside - others)
