"""The texts of an answer that are judged one by one, a whole file or the lines of an edit, and what is found."""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from code_commit.changes import EditBlock, FileChange, FileReplacement, SuspicionRule
from code_commit.regex import regex
from code_commit.verify import markdown

_CRLF, _LF = "\r\n", "\n"
INSTEAD = "send the file's own lines alone, all of them"
_PATCH = regex(r"(?i)\.(?:cocci|diff|dpatch|patch|rej)\Z")
_OF_TESTS = regex(r"(?i)(?:\A|/)_*(?:tests?|specs?|testdata|fixtures?|snap(?:shot)?s?|goldens?)_*/")
_TABLE = regex(r"(?i)\.(?:csv|dat|log|out|properties|psv|tab|tsv|ya?ml)\Z")  # lines begin with numbers and signs


class Suspicion(NamedTuple):
    """A finding about the text from a line of the response on, and the advice; not `may_be_meant` if it is certain."""

    line: int
    fact: str
    advice: str
    may_be_meant: bool = True
    rule: SuspicionRule = "wrong-format"


class Surroundings(NamedTuple):
    """The facts beside the answer's text: whether the project has a path, and the task, "" if it is unknown."""

    has: Callable[[str], bool]
    query: str = ""


class Part(NamedTuple):
    """A text to judge: all of a file, or the lines that an edit puts in place of `old`.

    `old` is None for a new file, `file` the whole old text, `others` all that the answer puts into the file, `taken`
    all that edits take out of it.
    """

    path: str
    new: str
    old: str | None
    line: int
    file: str
    others: Sequence[str]
    is_edit: bool = False
    taken: Sequence[str] = ()

    @property
    def first(self) -> int:
        """The number of the first line of `old` in the file, from 1."""
        return 1 + self.file.count("\n", 0, max(0, f"\n{self.file}".find(f"\n{self.old}")))

    def has(self, text: str) -> bool:
        """Tell whether the file has a text, or the answer puts it there."""
        return text in self.file or any(text in other for other in self.others)

    @property
    def is_document(self) -> bool:
        return markdown.is_document(self.path)

    @property
    def is_data(self) -> bool:
        """Whether any text may be meant, as a diff or control characters: a patch, or what a test expects."""
        is_of_tests = _OF_TESTS.search(self.path) is not None
        return _PATCH.search(self.path) is not None or (is_of_tests and not markdown.is_known_code(self.path))

    @property
    def is_code(self) -> bool:
        return is_code(self.path) and not self.is_data and not self.is_document


def is_code(path: str) -> bool:
    """Tell whether nothing in a file's name says that it is prose, a table or a patch."""
    return not any(kind.search(path) for kind in (markdown.DOCUMENT, _TABLE, _PATCH))


def parts_of(change: FileChange | EditBlock, old: str | None) -> Iterator[Part]:
    """Yield the texts to judge, with LF for CRLF: an answer mostly has it, whatever the file has."""
    file = (old or "").replace(_CRLF, _LF)
    if isinstance(change, FileReplacement):
        new = change.content.replace(_CRLF, _LF)
        yield Part(change.path, new, old and file, change.line, file, (new,))
    elif isinstance(change, EditBlock) and old is not None:
        edits = [
            tuple(text.replace(_CRLF, _LF) for text in (edit.replacement, edit.find, edit.last))
            for edit in change.edits
        ]
        others, taken = [new for new, _, _ in edits], [_between(file, find, last) for _, find, last in edits]
        for edit, new, there in zip(change.edits, others, taken, strict=True):
            yield Part(change.path, new, there, edit.line, file, others, is_edit=True, taken=taken)


def _between(file: str, find: str, last: str) -> str:
    start, end = (file.find(find), file.find(last)) if last else (0, -1)
    return file[start : end + len(last)] if 0 <= start < end else find
