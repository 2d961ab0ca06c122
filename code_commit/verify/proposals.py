"""Changes that a text outside the blocks may ask for in the formats of other tools, each with its path and its lines.

Most are found by a path of the project. `notes` judges whether they change the file.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import Literal, NamedTuple

from code_commit.changes import Note
from code_commit.codebase.text import read_header
from code_commit.paths.escapes import without_escapes
from code_commit.regex import regex

_FENCE = regex(r" {0,3}(`{3,}|~{3,})([^`]*)")
_QUOTE = regex(r"\A>(?: >)*(?: |$)")
_HEADER = regex(
    r"\*{3} (?:Update|Add|Delete) File: (?P<patch>.+)|diff --git a/.+ b/(?P<git>.+)"
    r"|(?:\+{3}|-{3}) (?:[ab]/)?(?P<unified>[^\s]+)(?:\t.*)?"
)
_FILE_TAGS = (
    regex(r"<(?:path|file|filename|file_path)>([^<>]+)</\w+>"),
    regex(r"(?:\$ )?cat\s*>\s*[\"']?([^\s\"']+)[\"']?\s*<<-?\s*[\"'\\]?\w+[\"']?"),
    regex(r"(?:\$ )?cat\s*<<-?\s*[\"'\\]?\w+[\"']?\s*>\s*[\"']?([^\s\"']+)[\"']?"),
)
_SEARCH, _MIDDLE, _REPLACE = (
    regex(mark) for mark in (r"<{5,9}(?: .*)?|-{5,9} ?SEARCH.*", r"={5,9}", r">{5,9}(?: .*)?|\+{5,9} ?REPLACE.*")
)
_SIGNS = r"\s*`\"'()\[\]<>#:,=^\u02c6\uff3e"  # around a path, also carets of other scripts
_NAMING = regex(rf"[^{_SIGNS}]*[^\W\u02c6][^{_SIGNS}]*")
_COMMENT = regex(r"\s*(?:#|//|--|/\*|<!--|;|%)")
_QUOTED_NAME = regex(r"[\"']([^\"'\s<>]{1,200})[\"']")
_OPENING_TAG = regex(r"\s*<[A-Za-z][\w-]* [^<>]*>(?!.*</)")
_PARAMETER = regex(r"<\w+(?:=\w+| name=\"\w+\")>|</\w+>$")
_A_TAG = regex(r"</?[\w:.-]+(?:[ =][^<>]*)?>")
_MOST_WORDS = 2  # on the line that names a file: the path, and a word such as `File:`
_FEW_WORDS = 3  # of them are more beside a file that no fence encloses
_MOST_BELOW = 200  # lines of such a file
_ABOVE = 3  # lines between that line and the change
_STRING = regex(
    r"\"\"\"(?s:(.{1,20000}?))\"\"\"|\'\'\'(?s:(.{1,20000}?))\'\'\'|`([^`]{2,20000})`"
    r"|\"((?:[^\"\\\n]|\\.){0,200000})\"|'((?:[^'\\\n]|\\.){0,20000})'"
)
_BEFORE_CALL, _BEHIND_CALL = 3, 80  # lines around the path of a call that may be the call's
_MOST_STRINGS, _MOST_CALLS, _LONGEST_LINE = 40, 200, 400
_NAMED_ELEMENT = regex(r"<([^\s<>=/]{1,60})[^<>\n]{0,200}>\s*([^\s<>]{1,200})\s*</\1>")
_END_OF_ELEMENT = regex(r"</([^\s<>=/]{1,60})>")
_LONGEST_CALL = 20_000
_OPTIONS = r"(?:\s+-[\w-]+(?:=\S+)?)*"
_COMMAND = regex(
    rf"(?:.*[;&|]\s*)?(?:\$ |sudo\s+)*(?:git{_OPTIONS}\s+)?"
    rf"(?:(?:rm|mv|unlink|truncate|Remove-Item|Move-Item|del){_OPTIONS}\s+(?P<all>\S.*)"
    r"|(?:sed|perl|ruby|gawk)\s+(?=.*\s?-\w*i)(?P<edited>\S.*)"
    rf"|(?:cp|install|tee|Set-Content|Add-Content|Out-File){_OPTIONS}\s+(?P<last>\S.*))"
    r"|(?![#<]).*?(?<![-=<\w>])>{1,2}\|?\s*(?P<into>[^\s>&|]+).*"
)
"""Commands that change the files on their line, all of them or the last one, and what writes into a file."""
_BEGINS = regex(r"(?:\$ |sudo |git (?:rm|mv) |(?:cat|echo|printf|tee|sed|perl|rm|mv|cp|mkdir)\s+[^A-Z\s]\S*\s)")
_OF_SHELL = frozenset(["", "sh", "bash", "shell", "zsh", "console", "powershell", "ps1", "pwsh", "cmd", "bat"])


class Text(NamedTuple):
    """Lines of the notes, in one Markdown fence or outside of any, and the last ones above; `line` is the first."""

    line: int
    lines: list[str]
    above: Sequence[str] = ()
    info: str | None = None


class Proposal(NamedTuple):
    """A change that the notes may ask for: `new` lines in place of `old` ones, in the file `path`, "" if none is named.

    `info` is the word of a code fence; None for a format that leaves no doubt. The lines of a `bare` file are
    those below its name, of a `call` the strings beside its path.
    """

    line: int
    path: str
    new: Sequence[str]
    old: Sequence[str] = ()
    info: str | None = None
    is_alone: bool = True
    removes: bool = False
    kind: Literal["change", "bare", "call"] = "change"


def read_texts(notes: Sequence[Note]) -> tuple[list[Text], set[int]]:
    """Return the parts of the notes, each fence by itself, and the lines of the blocks that stand in a fence."""
    parts, wrapped, mark = list[Text](), set[int](), ""
    for note in notes:
        parts.append(Text(note.line, [], (), "" if mark else None))
        for number, said in enumerate(note.text.replace("\r", "").split("\n"), note.line):
            line = _QUOTE.sub("", said, count=1) if said.startswith(">") else said
            fence = _FENCE.fullmatch(line)
            if fence and not mark:
                mark = fence[1]
                above = [text for text in parts[-1].lines[-_ABOVE:] if text.strip()]
                parts.append(Text(number + 1, [], above, fence[2].strip()))
            elif fence and fence[1].startswith(mark) and not fence[2].strip():
                mark = ""
                parts.append(Text(number + 1, []))
            else:
                parts[-1].lines.append(line)
        if mark:
            wrapped.add(note.line + note.text.count("\n"))
    return [part for part in parts if part.lines], wrapped


def find_proposals(texts: Sequence[Text], is_file: Callable[[str], bool]) -> Iterator[Proposal]:
    for text in texts:
        formatted = [*_diffs(text), *_searches(text, is_file), *_files(text, is_file), *_commands(text, is_file)]
        yield from formatted
        yield from _calls(text, is_file)
        yield from _bare_files(text, is_file)
        if text.info is None or formatted:
            continue
        path, is_alone = _named_beside(text, is_file)
        if text.info.lower() in ("diff", "patch", "udiff"):
            yield _diff(text.line, path, text.lines)
        else:
            yield Proposal(text.line, path, text.lines, info=text.info, is_alone=is_alone)


def _named_beside(text: Text, is_file: Callable[[str], bool]) -> tuple[str, bool]:
    """Return the path in a fence's info, on the last line above or in a first comment; and whether it is alone."""
    for path in _NAMING.findall(text.info or ""):
        if is_file(path):
            return path, True
    for line in (*text.above[-1:], *filter(_COMMENT.match, text.lines[:1])):
        words = [word.removeprefix("./") for word in _NAMING.findall(_A_TAG.sub(" ", line))]
        paths = [*filter(is_file, words)]
        is_about_one = len(paths) == 1 and line.rstrip(" *").endswith(":")
        if paths and (len(words) <= _MOST_WORDS or is_about_one):
            return paths[0], len(words) == 1
    return "", False


def _diffs(text: Text) -> Iterator[Proposal]:
    headers = list[tuple[int, str]]()
    for at, line in enumerate(text.lines):
        match = _HEADER.fullmatch(line.rstrip()) if line.startswith(("***", "diff", "+++", "---")) else None
        is_pair = match and (
            not match["unified"] or "+++" in (line[:3], *(next_[:3] for next_ in text.lines[at + 1 : at + 2]))
        )
        if match and is_pair and match[match.lastindex or 0] != "/dev/null":
            headers.append((at, match[match.lastindex or 0]))
    for at, path, lines in _below(headers, text.lines):
        removes = text.lines[at].startswith("*** Delete")
        yield _diff(text.line + at, path, lines)._replace(removes=removes)


def _below(named: Sequence[tuple[int, str]], lines: list[str]) -> Iterator[tuple[int, str, list[str]]]:
    """Yield each line that names a file, the path, and the lines up to the next one."""
    ends = [*(at for at, _ in named[1:]), len(lines)]
    return ((at, path, lines[at + 1 : end]) for (at, path), end in zip(named, ends, strict=False))


def _diff(line: int, path: str, lines: Sequence[str]) -> Proposal:
    new, old = ([line[1:] for line in lines if line.startswith(sign) and line[:3] != 3 * sign] for sign in "+-")
    return Proposal(line, path, new, old)


def _searches(text: Text, is_file: Callable[[str], bool]) -> Iterator[Proposal]:
    start = middle = None
    for at, line in enumerate(text.lines):
        if _SEARCH.fullmatch(line.rstrip()):
            start, middle = at, None
        elif start is not None and middle is None and _MIDDLE.fullmatch(line.rstrip()):
            middle = at
        elif start is not None and middle is not None and _REPLACE.fullmatch(line.rstrip()):
            above = [*text.above, *text.lines[max(0, start - _ABOVE) : start]]
            words = (word.removeprefix("./") for line in reversed(above) for word in _NAMING.findall(line))
            path = next(filter(is_file, words), "")
            yield Proposal(text.line + start, path, text.lines[middle + 1 : at], text.lines[start + 1 : middle])
            start = middle = None


def _files(text: Text, is_file: Callable[[str], bool]) -> Iterator[Proposal]:
    """Yield what stands below a line of the prompt that names a file, and below a tag with a path."""
    named: list[tuple[int, str]] = []
    for at, line in enumerate(text.lines):
        header = read_header(line) if line.startswith("--- ") else None
        tags = (tag.match(line.strip()) for tag in _FILE_TAGS) if "<" in line else ()
        tag = next(filter(None, tags), None)
        named_so = _QUOTED_NAME.findall(line) if _OPENING_TAG.match(line) else ()
        path = header.path if header else tag[1] if tag else next(filter(is_file, named_so), "")
        if path and is_file(path):
            named.append((at, path))
    for at, path, lines in _below(named, text.lines):
        yield Proposal(text.line + at, path, lines, info="")


def _bare_files(text: Text, is_file: Callable[[str], bool]) -> Iterator[Proposal]:
    """Yield what stands below a line that is little more than a path, whatever signs are around it."""
    named: list[tuple[int, str]] = []
    for at, line in enumerate(text.lines):
        if not line or len(line) > _LONGEST_LINE or ("." not in line and "/" not in line):
            continue
        words = _NAMING.findall(_A_TAG.sub(" ", line))
        is_named = len(words) <= _FEW_WORDS or line.rstrip().endswith(":")
        paths = {*filter(None, (_file_of(word, is_file) for word in words))} if is_named else set()
        if len(paths) == 1:
            named.append((at, paths.pop()))
    for at, path, lines in _below(named, text.lines):
        said = (_PARAMETER.sub("", line) for line in lines[:_MOST_BELOW] if not _A_TAG.fullmatch(line.strip()))
        yield Proposal(text.line + at, path, [line for line in said if line.strip()], kind="bare")


def _calls(text: Text, is_file: Callable[[str], bool]) -> Iterator[Proposal]:
    """Yield the strings around a path that is a string too, as in a tool call, JSON or a script that writes files, and
    the elements behind one that is a path.
    """
    for count, (at, path) in enumerate(_quoted_paths(text.lines, is_file)):
        if count == _MOST_CALLS:
            break
        near = "\n".join(map(_without_layer, text.lines[max(0, at - _BEFORE_CALL) : at + _BEHIND_CALL]))
        found = islice(_STRING.finditer(near), _MOST_STRINGS)
        values = [without_escapes(match[match.lastindex or 0]) for match in found]
        yield Proposal(text.line + at, path, [value for value in values if not value.endswith(path)], kind="call")
    tagged = "\n".join(text.lines) if any("</" in line for line in text.lines) else ""
    for match in islice(_NAMED_ELEMENT.finditer(tagged), _MOST_CALLS):
        if path := _file_of(match[2], is_file):
            line = text.line + tagged.count("\n", 0, match.start())
            yield Proposal(line, path, [*_elements(tagged[match.end() : match.end() + _LONGEST_CALL])], kind="call")


def _elements(text: str) -> Iterator[str]:
    """Yield what stands in the elements of a text, each up to its end from the nearest tag of that name."""
    for end in islice(_END_OF_ELEMENT.finditer(text), _MOST_STRINGS):
        start = text.rfind(f"<{end[1]}", 0, end.start())
        begin = text.find(">", start, end.start()) if start >= 0 else -1
        if begin >= 0:
            yield text[begin + 1 : end.start()]


def _quoted_paths(lines: Sequence[str], is_file: Callable[[str], bool]) -> Iterator[tuple[int, str]]:
    for at, line in enumerate(lines):
        for match in islice(_QUOTED_NAME.finditer(_without_layer(line)), _MOST_STRINGS):
            if path := _file_of(match[1], is_file):
                yield at, path


def _file_of(name: str, is_file: Callable[[str], bool]) -> str:
    """Return the file of a name, which may be absolute, as those of a tool are; "" for none."""
    name = name.removeprefix("./")
    parts = name.lstrip("/").split("/") if name.startswith("/") else []
    names = (name, *("/".join(parts[first:]) for first in range(len(parts) - 1)))
    return next(filter(is_file, names), "")


def _without_layer(line: str) -> str:
    """Return a line of JSON in which a string is JSON without that string's quotes and escapes."""
    if '{\\"' not in line:
        return line
    bare = re.sub(r'"(?=\[?\{\\")|(?<=\})"|(?<=\}\])"', "", line)
    return re.sub(r"\\([\"\\/])", r"\1", bare)


def _commands(text: Text, is_file: Callable[[str], bool]) -> Iterator[Proposal]:
    """Yield each file that a shell's command changes."""
    if text.info is not None and text.info.lower() not in _OF_SHELL:
        return
    for at, line in enumerate(text.lines):
        is_command = text.info is not None or line.startswith(("    ", "\t")) or _BEGINS.match(line)
        match = _COMMAND.fullmatch(line.strip()) if is_command and len(line) <= _LONGEST_LINE else None
        for path in _changed_files(match) if match else ():
            if is_file(path):
                yield Proposal(text.line + at, path, (), removes=True)


def _changed_files(command: re.Match[str]) -> list[str]:
    words = [word.strip("\"'").removeprefix("./") for word in (command[command.lastgroup or 0] or "").split()]
    end = next((number for number, word in enumerate(words) if word[:1] in ("<", ">", "|", "&", ";")), len(words))
    return words[:end][-1:] if command.lastgroup == "last" else words[:end]
