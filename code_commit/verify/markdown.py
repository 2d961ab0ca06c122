"""Markdown's code fences in an answer: whether one stands around all of a file's text, and whether it belongs there."""

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from fnmatch import fnmatchcase
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

from code_commit.changes import Edit, EditBlock, FileChange, FileRemoval, FileReplacement
from code_commit.regex import regex

if TYPE_CHECKING:
    from pygments.lexer import Lexer

_FENCE_LINE = regex(r"^[ \t]*(?:`{3,}|~{3,})[^`\n]*$", re.MULTILINE)
_FIRST_LINE = regex(r"\s*(`{3,}|~{3,})([^`\n]*)(?:\n|\Z)")
_LAST_LINE = regex(r"(?:\A|\n)[ \t]*(`{3,}|~{3,})\s*\Z")
_INNER = regex(r"^ {0,3}(`{3,}|~{3,})[ \t]*(\S*)", re.MULTILINE)
_LONGEST_END = 200  # characters that may hold the last line
_LONGEST_LEXED = 300_000  # characters
_TEXTS = (("Literal", "String"), ("Comment",), ("Name", "Constant"))  # the last is what YAML has below `|`

# what may hold fences of its own; no .txt that a program reads
DOCUMENT = regex(
    r"(?i)\.(?:md|mdx|mdc|markdown|mdown|mkdn?|[rq]md|rst|rest|adoc|asciidoc|asc|org|textile|wiki|text|typ|gmi|feature|livemd)\Z"
    r"|(?:\A|/)(?:readme|(?!requirements|constraints|robots|cmakelists)[^/]*\.txt)\Z"
)
_TEMPLATE = regex(r"(?i)\.(?:j2|jinja2?|njk|tmpl|tpl|hbs|mustache|liquid|erb|eex|ejs|prompt|template)\Z")
_EXAMPLE = regex(r"(?i)\.(?:example|sample|dist)\Z")
_SAMPLES = regex(r"(?i)(?:\A|/)(?:testdata|fixtures?|snapshots?|__snapshots__|goldens?)/")

_ANY_TEXT = ("", "text", "txt", "plain", "plaintext", "code", "file")  # say nothing of a language
_KINSHIPS = tuple(
    map(
        frozenset,
        (
            ("c", "h", "cc", "cpp", "cxx", "hh", "hpp", "objc", "objective-c", "m"),
            ("js", "cjs", "mjs", "jsx", "javascript", "ts", "tsx", "typescript"),
            ("sh", "bash", "zsh", "ksh", "shell"),
            ("json", "jsonc", "json5", "ipynb"),
            ("html", "htm", "vue", "svelte", "astro", "xml", "svg"),
            ("css", "scss", "sass", "less"),
            ("go", "golang", "mod", "work"),
        ),
    )
)  # one is called by the name of the other


class Wrapped(NamedTuple):
    """A text between two fences, with the mark and the info string of the first; `before` counts the lines above."""

    mark: str
    info: str
    text: str
    before: int


def is_document(path: str) -> bool:
    """Tell whether a file is prose, which may hold Markdown's fences, or a template of something unknown."""
    name = _TEMPLATE.sub("", path)
    if name != path and "." not in name.rpartition("/")[2]:
        return not _languages(name)
    return DOCUMENT.search(name) is not None


def is_sample(path: str) -> bool:
    """Tell whether a file lies in a folder of what tests read: any text may be meant there."""
    return _SAMPLES.search(path) is not None


def fits(info: str, path: str) -> bool:
    """Tell whether the info string of a fence names no language, or the file's."""
    words = re.findall(r"[^\s{}:=\"',]+", info.lower())
    word = words[0].removeprefix(".") if words else ""
    name = _EXAMPLE.sub("", _TEMPLATE.sub("", path.rpartition("/")[2]))
    suffix = name.rpartition(".")[2].lower()
    if word in _ANY_TEXT or word in (suffix, name.lower()) or path.lower() in words:
        return True
    languages = _languages(name)
    if any({word.replace("++", "pp"), suffix} <= kin for kin in _KINSHIPS) or any(
        word in aliases for aliases in languages
    ):
        return True
    return not languages and "." not in name[1:]


def is_any_text(info: str) -> bool:
    """Tell whether the info string of a fence says nothing of a language."""
    return info.strip().lower() in _ANY_TEXT


def is_known_code(path: str) -> bool:
    return not is_document(path) and _languages(path) != ()


@cache
def _languages(path: str) -> tuple[tuple[str, ...], ...]:
    """Return the names of each language whose files are called like that."""
    name = path.rpartition("/")[2]
    names = {name, name.lower(), name.partition(".")[0] or name}
    return tuple(aliases for aliases, is_called in _all_languages() if any(map(is_called, names)))


@cache
def _all_languages() -> list[tuple[tuple[str, ...], Callable[[str], bool]]]:
    """Return the names of each language, and what tells whether a file is called like one of its files."""
    from pygments.lexers import get_all_lexers  # few answers need it, and it takes 40 ms

    lexers = get_all_lexers(plugins=False)
    return [(tuple(aliases), _matcher(patterns)) for _, aliases, patterns, _ in lexers if "text" not in aliases]


def _matcher(patterns: Iterable[str]) -> Callable[[str], bool]:
    """Return what tells whether a name matches one of the patterns; nearly each is `*` and a suffix, or a name."""
    plain = [pattern for pattern in patterns if not any(map(pattern.removeprefix("*").__contains__, "*?["))]
    ends = tuple(pattern[1:] for pattern in plain if pattern.startswith("*"))
    others = {*patterns}.difference(plain)
    return lambda name: name in plain or name.endswith(ends) or any(fnmatchcase(name, each) for each in others)


def lexer_of(path: str) -> "Lexer | None":
    """Return pygments' lexer for files called like that."""
    from pygments.lexers import find_lexer_class_for_filename

    found = find_lexer_class_for_filename(path.rpartition("/")[2])
    return None if found is None else found()


def stands_in_text(path: str, file: str, old: str, new: str) -> bool:
    """Tell whether the fence that `new` begins with, in place of `old`, stands in a string or a comment of the file.

    A letter in its place is of a string or a comment then, by the rules of the file's language.
    """
    fence, start = _FIRST_LINE.match(new), file.find(old)
    lexer = lexer_of(path) if fence and start >= 0 and len(file) + len(new) <= _LONGEST_LEXED else None
    if fence is None or lexer is None:
        return False
    place = start + fence.start(1)
    text = f"{file[:start]}{new[: fence.start(1)]}x{new[fence.end(1) :]}{file[start + len(old) :]}"
    kinds = (kind for at, kind, said in lexer.get_tokens_unprocessed(text) if at <= place < at + len(said))
    kind = next(kinds, ())
    return any(kind[: len(each)] == each for each in _TEXTS)


def begins_with_fence(text: str) -> bool:
    return _FIRST_LINE.match(text) is not None


def ends_with_fence(text: str) -> bool:
    return _LAST_LINE.search(text[-_LONGEST_END:]) is not None


def count_fences(text: str) -> int:
    return sum(1 for _ in _FENCE_LINE.finditer(text)) if "```" in text or "~~~" in text else 0


def unwrap(text: str) -> Wrapped | None:
    """Return what stands between a fence on the first line and one on the last, blank lines apart."""
    first = _FIRST_LINE.match(text)
    last = _LAST_LINE.search(text, max(first.end() - 1, len(text) - _LONGEST_END)) if first else None
    if first is None or last is None or not last[1].startswith(first[1]) or last.start() < first.end():
        return None
    return Wrapped(
        first[1], first[2].strip(), f"{text[first.end() : last.start()]}\n", text.count("\n", 0, first.end())
    )


def inner_fences(text: str) -> Iterator[tuple[str, str]]:
    """Yield each fence that may close another one or open its own: its mark, and the first word after it."""
    return ((match[1], match[2]) for match in _INNER.finditer(text))


def leaves_open(text: str) -> bool:
    """Tell whether a fence opens at the end of the text or before it, and none closes it (CommonMark 4.5)."""
    mark = ""
    for fence, word in inner_fences(text) if "```" in text or "~~~" in text else ():
        if not mark:
            mark = fence
        elif fence.startswith(mark) and not word:
            mark = ""
    return mark != ""


def without_fences(change: FileChange | EditBlock, old: str | None) -> FileChange | EditBlock:
    """Return the change without the fence around all of a file, or around a part of an edit, where it is no content.

    It is content where the file may hold fences, where another one stands inside, where its info string names another
    language, where the old text (None: a new file) was like that, and where an edit puts it into a string or a comment.
    """
    if isinstance(change, FileRemoval):
        return change
    path = change.path
    if isinstance(change, FileReplacement):
        if old is not None and begins_with_fence(old):
            return change
        inside = _inside(path, change.content)
        return change if inside is None else FileReplacement(path, inside.text, change.line + inside.before)
    parts = [part for edit in change.edits for part in (edit.find, edit.last, edit.replacement)]
    if old is None or not any(map(begins_with_fence, parts)) or count_fences(old):
        return change
    return EditBlock(path, tuple(_bare(edit, path, old) for edit in change.edits), change.line)


def _bare(edit: Edit, path: str, file: str) -> Edit:
    find, last, new = (_bare_text(path, part) for part in (edit.find, edit.last, edit.replacement))
    if new != edit.replacement and find == edit.find and stands_in_text(path, file, find, edit.replacement):
        new = edit.replacement
    return replace(edit, find=find, last=last, replacement=new)


def _bare_text(path: str, text: str) -> str:
    inside = _inside(path, text)
    return text if inside is None else inside.text


def _inside(path: str, text: str) -> Wrapped | None:
    """Return what a fence stands around for sure."""
    inside = unwrap(text)
    if inside is None or any(True for _ in inner_fences(inside.text)) or is_document(path) or is_sample(path):
        return None
    return inside if fits(inside.info, path) else None
