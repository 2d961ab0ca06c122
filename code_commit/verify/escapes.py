"""Characters in place of others: entities of HTML, those written as in a string, and those that look alike.

Only the file's own code tells: its lines without strings and comments, where no language has these characters. A file
that holds markup may have them in its text.
"""

import re
import unicodedata
from collections.abc import Iterator
from html import unescape

from code_commit.changes import EditBlock, FileChange, quoted
from code_commit.regex import regex
from code_commit.verify import markdown
from code_commit.verify.parts import Part, Suspicion, parts_of

_FEW_LINES, _FEW_ENDS, _FEW_AGAIN = 3, 3, 2
_ENTITY = regex(r"&(?:lt|gt|amp|quot|apos|#x?[0-9A-Fa-f]{1,6});")
_JSON_ESCAPE = regex(r"\\u00(2[267]|3[CEce])")  # of what HTML would take for its own
_QUOTED = regex(r"\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'|`[^`\n]*`")
_REMARK = regex(r"//|(?<!\S)(?:\*|#(?!include\b)|--|;|%)|<!--")
_LONG_TEXTS = (('"""', '"""'), ("'''", "'''"), ("/*", "*/"))
_MARKUP = regex(r"</[\w.:-]*>|/>")
_WRITTEN_END = regex(r"\\n(?=\s|\\n|[)}\]]|\Z)")
_ESCAPES = regex(r"\\(.)")
_DASH = regex("[\u2013\u2014]")  # stands for two as well
ALIKE = str.maketrans("“”„‟″‘’‚‛′–—−‐‒", "\"\"\"\"\"'''''-----", "\u200b\u200c\u200d\u2060\ufeff")  # noqa: RUF001 - these are meant  # fmt: skip


def is_escaped(part: Part) -> bool:
    """Tell whether code has entities of HTML, or lines that differ by them, or by how their ends are written, alone."""
    if _has_foreign_entity(part) or _joins_lines(part):
        return True
    if part.is_edit:
        return False
    if part.old is None:
        return _has_written_ends(part)
    if _adds_backslashes(part):
        return True
    signs = [sum(map(text.count, ("<", "&&"))) for text in (part.new, part.old)]
    plain = _JSON_ESCAPE.sub(_unescaped, unescape(part.new)) if signs[0] == 0 < signs[1] else part.new
    if plain == part.new and "\\n" not in plain:
        return False
    old = {line for line in part.old.split("\n") if line.strip()}
    new_lines, plain_lines = (sum(map(old.__contains__, text.split("\n"))) for text in (part.new, plain))
    of_string = old & {*plain.replace("\\n", "\n").replace('\\"', '"').split("\n")}
    return plain_lines > new_lines or len(of_string) > max(_FEW_LINES, 2 * plain_lines)


def _unescaped(escape: re.Match[str]) -> str:
    return chr(int(escape[1], 16))


def _adds_backslashes(part: Part) -> bool:
    """Tell whether lines come again with a backslash before each of some signs, and none with such a sign as it was.

    Code that lacked backslashes has others of these signs: quotes around its strings, dots outside of its patterns.
    """
    if "\\" not in part.new or part.is_document:
        return False
    lines, old = ({*text.split("\n")} for text in (part.new, part.old or ""))
    bare = {line.replace("\\", ""): line for line in old - lines}
    again = {line: bare.get(line.replace("\\", "")) for line in lines - old if "\\" in line}
    pairs = [(line, was) for line, was in again.items() if was is not None and line.count("\\") > was.count("\\")]
    signs = {sign for line, was in pairs for sign in {*_ESCAPES.findall(line)} - {*_ESCAPES.findall(was)}}
    signs |= {'"'} if "\\" in signs else set()  # what doubles backslashes writes a string
    marked = [line for line in old if not signs.isdisjoint(line)]
    has_bare = any(not signs.isdisjoint(_ESCAPES.sub("", line)) for line, _ in pairs)
    are_all = 2 * len(pairs) >= len(marked) and lines.isdisjoint(marked) and not has_bare
    return len(pairs) >= _FEW_AGAIN and signs != set() and are_all


def _has_foreign_entity(part: Part) -> bool:
    if "&" not in part.new or not _ENTITY.search(part.new) or not _is_known_code(part):
        return False
    new, file = (list(_code_of(text)) for text in (part.new, part.file))
    is_page = any(_MARKUP.search(line) for line in (*new, *file))
    return not is_page and any(map(_ENTITY.search, new)) and not any(map(_ENTITY.search, file))


def _joins_lines(part: Part) -> bool:
    """Tell whether a line of code is an old one that is gone, and others behind line ends written as in a string."""
    if "\\n" not in part.new or part.old is None:
        return False
    new, old = ({*text.split("\n")} for text in (part.new, part.old))
    joined = (line.replace('\\"', '"').split("\\n", 1)[0] for line in new - old if _WRITTEN_END.search(line))
    return any(first.strip() and first in old - new for first in joined) and _is_known_code(part)


def _has_written_ends(part: Part) -> bool:
    """Tell whether a new file is one line with several line ends written as in a string, outside of strings."""
    line = part.new.strip()
    if "\n" in line or part.is_data or not (markdown.is_known_code(part.path) or part.is_document):
        return False
    escapes = _ESCAPES.findall(_QUOTED.sub('""', line))
    return escapes.count("n") >= _FEW_ENDS and set(escapes) <= set("ntr\"'\\")


def find_lookalike(change: FileChange | EditBlock, old: str | None) -> Suspicion | None:
    """Return the first line of code that the file has with other characters, which look alike."""
    for part in parts_of(change, old) if old is not None else ():
        if part.new.isascii() or not _is_known_code(part) or any(map(_MARKUP.search, _code_of(part.file))):
            continue
        had = set(part.file.split("\n"))
        of_code = {char for line in _code_of(part.new) for char in line if not char.isascii()}
        for line in part.new.split("\n") if of_code else ():
            if line.isascii() or line in had:
                continue
            plain = unicodedata.normalize("NFKC", line).translate(ALIKE)
            longer = _DASH.sub("--", line)
            odd = next((char for char in line if char in of_code and char not in plain), "")
            is_indent = odd.isspace() and odd in line.removesuffix(line.lstrip()) and odd not in part.file
            if odd and (plain in had or longer in had or is_indent):
                fact = f"'{quoted(line.strip())}' has U+{ord(odd):04X} in place of the file's own character"
                return Suspicion(part.line, fact, "write the plain one", rule="damaged")
    return None


def _is_known_code(part: Part) -> bool:
    return part.is_code and markdown.is_known_code(part.path)


def _code_of(text: str) -> Iterator[str]:
    """Yield the lines of a text without strings and comments."""
    for opening, closing in _LONG_TEXTS[:2]:
        text = _without(text, opening, closing)
    for line in _without(_QUOTED.sub('""', text), *_LONG_TEXTS[2]).split("\n"):
        yield _REMARK.split(line, maxsplit=1)[0]


def _without(text: str, opening: str, closing: str) -> str:
    kept, end = list[str](), 0
    while (start := text.find(opening, end)) >= 0 and (close := text.find(closing, start + len(opening))) >= 0:
        kept.append(text[end:start])
        end = close + len(closing)
    return "".join((*kept, text[end:])) if kept else text
