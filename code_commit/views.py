"""The view of each file that a prompt shows: made with it, kept in the log, and asked by the verification.

A view says how a file was shown, and of which text. `dump_sight` and `load_sight` are the form in the log.
"""

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import Enum
from typing import Any, Literal, NamedTuple, TypeVar

_BOM, _BLANKS = "\ufeff", " \t\r"

Basis = Literal["made", "read", "guessed"]
"""The origin of the views: made with the prompt, so that a file without one was not shown; read from a text that
another tool may have written, in which it may stand; or guessed, from a codebase that the LLM may not have seen.
"""
Span = tuple[int, int]  # the place of a first line, from 0, and the one after the last


class Passage(NamedTuple):
    """Lines that are shown, with the number of the first one, from 1."""

    first: int
    text: str

    @property
    def last(self) -> int:
        return self.first + self.text.count("\n") - 1


class Whole(NamedTuple):
    """All of a file, by the `digest_of` its text; `size` is in bytes."""

    digest: str
    size: int


class Part(NamedTuple):
    """Some lines of a file; `lines` is the number of all, 0 where it is unknown."""

    passages: tuple[Passage, ...]
    lines: int

    @property
    def content(self) -> str:
        return "".join(passage.text for passage in self.passages)

    @property
    def ranges(self) -> list[tuple[int, int]]:
        """The first and the last line of each passage."""
        return [(passage.first, passage.last) for passage in self.passages]

    @property
    def where(self) -> str:
        return ", ".join(f"{first}-{last}" for first, last in self.ranges)


class Outline(NamedTuple):
    """The definitions of a file of this size in bytes, 0 where it is unknown."""

    size: int


class Name(NamedTuple):
    """At most the name of a file of this size in bytes, 0 where it is unknown."""

    size: int


class Hidden(NamedTuple):
    """Nothing, for a reason that the prompt may give."""

    reason: str


class Removed(NamedTuple):
    """The fact that an answer removed the file."""


class Unsure(NamedTuple):
    """A line that names the file, before a text that may be all of it: another tool may have written both."""


View = Whole | Part | Outline | Name | Hidden | Removed | Unsure
Views = Mapping[str, View]
K = TypeVar("K", Whole, Part, Outline, Name, Hidden, Removed, Unsure)


class FileView(NamedTuple):
    """A file beside the codebase: what is seen of it, and the text that stands in the prompt.

    `hidden` are the first lines and names of its definitions, for the gaps between the lines of a part; `elsewhere` are
    lines that the codebase has of these gaps.
    """

    path: str
    view: View
    text: str
    hidden: tuple[tuple[int, str], ...] = ()
    elsewhere: tuple[Span, ...] = ()


class Sight(NamedTuple):
    """All that a prompt shows of files: the views, the text of the codebase, and the texts beside it.

    The LLM knows of a codebase that `is_partial` that it lacks what nobody asked for.
    """

    views: Mapping[str, View] = {}
    codebase: str = ""
    beside: Sequence[str] = ()
    basis: Basis = "read"
    is_partial: bool = False

    @property
    def text(self) -> str:
        return "\n".join([self.codebase, *self.beside])


class Seen(Enum):
    """How the text of a file relates to what the LLM saw of it."""

    SEEN = "seen"
    STALE = "stale"  # another text was shown
    UNSEEN = "unseen"
    OUTSIDE_PART = "outside part"  # some lines of this text were shown, the others were not
    UNKNOWN = "unknown"


def whole(path: str, text: str) -> FileView:
    return FileView(path, whole_of(text), text)


def whole_of(text: str, size: int | None = None) -> Whole:
    return Whole(digest_of(text), len(text.encode("utf-8", "surrogatepass")) if size is None else size)


def digest_of(text: str) -> str:
    """Return the SHA-256 of a text with LF as line ends, without a BOM and empty last lines."""
    plain = text.removeprefix(_BOM)
    if "\r" in plain:
        plain = plain.replace("\r\n", "\n")
    plain = plain.rstrip("\n")
    return hashlib.sha256(plain.encode("utf-8", "surrogatepass")).hexdigest()


def of_kind(views: Views, kind: type[K]) -> dict[str, K]:
    return {path: view for path, view in views.items() if isinstance(view, kind)}


def is_current(view: View | None, text: str) -> Seen:
    """Return whether a view, None for none, shows this text of the file. An empty file has nothing to be seen."""
    if not text.removeprefix(_BOM).strip("\r\n"):
        return Seen.SEEN
    match view:
        case Whole(digest=digest):
            return Seen.SEEN if digest == digest_of(text) else Seen.STALE
        case Part():
            spans = find_current(view, text)
            if spans is None:
                return Seen.STALE
            return Seen.SEEN if spans == [(0, len(lines_of(text)))] else Seen.OUTSIDE_PART
        case Outline() | Name() | Hidden() | Removed():
            return Seen.UNSEEN
        case Unsure() | None:
            return Seen.UNKNOWN


def find_current(part: Part, text: str) -> list[Span] | None:
    """Return the lines of a text that a part shows, None where the text is no longer that of which it shows them."""
    lines = _stripped(lines_of(text))
    shown: list[Span] = []
    for first, passage in sorted(part.passages):
        wanted = _stripped(passage.removeprefix(_BOM).split("\n")[:-1])
        start, stop = first - 1, first - 1 + len(wanted)
        if start < 0 or lines[start:stop] != wanted:
            return None
        if shown and start <= shown[-1][1]:
            shown[-1] = shown[-1][0], max(stop, shown[-1][1])
        elif wanted:
            shown.append((start, stop))
    return shown if part.lines in (0, len(lines)) else None


def beyond(part: Part, known: View | None) -> Part:
    """Return a part without the lines that a view shows too, and as it is where the view is of another text."""
    if not isinstance(known, Part) or known.lines != part.lines:
        return part
    lines, passages = dict(_numbered(known)), list[Passage]()
    if any(lines.get(number, line) != line for number, line in _numbered(part)):
        return part
    for number, line in _numbered(part):
        if number in lines:
            continue
        if passages and passages[-1].last == number - 1:
            passages[-1] = Passage(passages[-1].first, f"{passages[-1].text}{line}\n")
        else:
            passages.append(Passage(number, f"{line}\n"))
    return Part(tuple(passage for passage in passages if passage.text.strip()), part.lines)


def _numbered(part: Part) -> Iterator[tuple[int, str]]:
    for passage in part.passages:
        yield from enumerate(passage.text.split("\n")[:-1], passage.first)


def lines_of(text: str) -> list[str]:
    """Return the lines of a text without their ends and a BOM."""
    text = text.removeprefix(_BOM)
    return text.removesuffix("\n").split("\n") if text else []


def _stripped(lines: Iterable[str]) -> list[str]:
    return [line.rstrip(_BLANKS) for line in lines]


def find_unseen(texts: Mapping[str, str], sight: Sight) -> set[str]:
    """Return the paths whose text the LLM did not see.

    A text of which no view can tell is looked for in the codebase, at a line start, apart from line ends and a BOM.
    """
    unseen = {path for path, text in texts.items() if is_current(sight.views.get(path), text) is not Seen.SEEN}
    told = (Whole, Hidden, Removed)
    doubtful = [path for path in unseen if sight.basis != "made" and not isinstance(sight.views.get(path), told)]
    codebase = _plain(sight.codebase) if doubtful else ""
    return unseen.difference(path for path in doubtful if _plain(texts[path]).rstrip("\n") in codebase)


def _plain(text: str) -> str:
    return f"\n{text}".replace("\r\n", "\n").replace("\n\ufeff", "\n")


def dump_sight(sight: Sight) -> dict[str, Any]:
    """Return a sight for the log, without the texts: each file's path and kind, with the fields of its view."""
    files = []
    for path, view in sorted(sight.views.items()):
        facts = view._asdict()
        if isinstance(view, Part):
            facts["passages"] = [passage._asdict() | {"last": passage.last} for passage in view.passages]
        files.append({"path": path, "kind": type(view).__name__.lower(), **facts})
    return {"basis": sight.basis, "is_partial": sight.is_partial, "files": files}


def load_sight(data: bytes, text: str) -> Sight | None:
    """Return the sight of a text that the log has beside it; None where it cannot be read."""
    try:
        found = json.loads(data)
        views = {entry["path"]: _read_view(entry) for entry in found["files"]}
        return Sight(views, text, (), "made" if found["basis"] == "made" else "read", bool(found["is_partial"]))
    except (ValueError, KeyError, TypeError):
        return None


def _read_view(entry: Any) -> View:
    """Return the view in an entry of the log. Raises ValueError, KeyError and TypeError."""
    match entry:
        case {"kind": "whole", "digest": str(digest), "size": int(size)}:
            return Whole(digest, size)
        case {"kind": "part", "passages": [*passages], "lines": int(lines)}:
            return Part(tuple(Passage(int(each["first"]), str(each["text"])) for each in passages), lines)
        case {"kind": "outline" | "name" as kind, "size": int(size)}:
            return Outline(size) if kind == "outline" else Name(size)
        case {"kind": "hidden", "reason": str(reason)}:
            return Hidden(reason)
        case {"kind": "removed" | "unsure" as kind}:
            return Removed() if kind == "removed" else Unsure()
        case _:
            raise ValueError("no view has this form")
