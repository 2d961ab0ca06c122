"""The files that define the names of a query, as their outlines tell, or else lines that look like a definition."""

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence

from code_commit.codebase.outline import read_definitions
from code_commit.codebase.text import Section
from code_commit.regex import regex

_MOST_PARSED = 400_000  # bytes of files that are asked what they define
_BEFORE_NO_DEFINITION = regex(r"=|\b(?:return|import)\b")
_ARGUMENTS = r"[ \t]*(?:\([^()\n]*\)[ \t]*)?"
_FORMS = (
    r"\(def[\w*!-]*[ \t]+\(?{0}(?![\w-])",  # Lisp
    r"(?i:create[ \t][\w \t]{{0,99}}){0}\b",  # SQL
    r"[a-z]+[ \t](?:\"\w+\"[ \t])?\"{0}\"",  # a block of Terraform
    r"let[ \t](?:rec[ \t])?{0}\b",
    rf"[.#]?{{0}}{_ARGUMENTS}(?:[\w \t]{{{{0,99}}}}=(?!=)|::|->|<-|[{{{{:](?!=))",  # a rule, a signature, an assignment
    # the head of a function or macro, which no other sign ends
    (
        r"(?!return\b|else\b)[A-Za-z_+-][\w:<>,*&!()\[\] \t]{{0,99}}[ \t*&)]{0}"
        r"[ \t]*[(:][^;=\n]{{0,300}}(?:\n?[ \t]{{0,99}}\{{[^}}\n]{{0,99}})?$"
    ),
)
_LOOKS_DEFINED = rf"(?m)^[ \t]*(?:{'|'.join(_FORMS)})"


def may_be_defined(text: str, places: Iterable[int]) -> bool:
    """Tell whether a text has a name, which stands in these places, where a definition of it could have it."""
    return any(not _BEFORE_NO_DEFINITION.search(text, text.rfind("\n", 0, at) + 1, at) for at in places)


def find_defining(
    files: Sequence[Section], candidates: Mapping[int, Sequence[str]], alike: Mapping[str, Collection[int]]
) -> dict[str, set[int]]:
    """Return the numbers of the files that define each name; `candidates` are names that a file may define.

    Lines that look like a definition, and the files that are `alike` in that, tell where no outline has a name. Small
    files are asked first, as long as this takes no time that one would notice.
    """
    defining, looks, room = defaultdict[str, set[int]](set), defaultdict[str, set[int]](set), _MOST_PARSED
    for number in sorted(candidates, key=lambda number: files[number].bytes):
        file, own = files[number], set[str]()
        if (room := room - file.bytes) >= 0:
            own = {each.name.rpartition(".")[2] for each in read_definitions(file.name, file.file_text)}
        for name in candidates[number]:
            if name in own:
                defining[name].add(number)
            elif name not in defining and (
                number in alike.get(name, ()) or re.search(_LOOKS_DEFINED.format(name), file.content)
            ):
                looks[name].add(number)
    return looks | defining
