"""The task as a query says it: its words, the names that it writes as code, and the scope of a commit's message."""

import re
from collections import Counter
from collections.abc import Iterable
from itertools import islice
from typing import NamedTuple

from code_commit.codebase.mentions import SharedWords
from code_commit.codebase.text import Section
from code_commit.regex import regex

CODE = regex(r"`[^`\n]+`|\b(?:\w+(?:(?:\.|::|->)\w+)+|\w+(?=\()|\w*[a-z0-9][A-Z]\w*|\w*[^\W_]_\w+)")
_WRITTEN = regex(r"`\w+\W*`|\b\w+(?:(?:\.|::|->)\w+)+")
_PIECE = regex(r"[A-Z]?[a-z]{2,}|[A-Z]{2,}(?![a-z])|\w{3,}")
_MOST_NAMES, _MOST_WORDS, _MOST_OF_OUTPUT = 300, 64, 20
NAMES_ALONE = regex(r"\n\n(?:`\w+` ?)+\Z")  # as `with_names_of` adds them: no words of the query
_LEAST_SHARED = 3  # letters of a word that names share: shorter ones begin too many of them
NO_NAMES = regex(r"\b\w+://\S+|(?<!\S)[^\s@]+@\S+|^[^\w\n]*\w+\([\w/-]+\)!?:", re.MULTILINE)  # of commit messages
_FORM = regex(r"\A\s*(?P<kind>[\w./-]+)(?:\((?P<scope>[^()\n]{1,99})\))?!?:(?=\s)")
_KIND_WORDS = "build chore ci deps doc docs feat feature fix perf refactor revert style test tests wip"
_KINDS = frozenset(_KIND_WORDS.split())
_TRAILER = regex(r"[A-Z][\w-]*: .*|[A-Z][a-z]+ #\d+|\(.*\)")
_MOST_JOINED, _JOINED_WORDS, _BEGINNING = 40, (3, 2), 400  # names, how many words one joins, characters of the query
_COMMON_WORDS = """
    about above after again all also although always and any are around because been before being below between both
    but can cannot could did does doesn doing don done down during each either else even ever every everything for from
    get gets had has have having here how however into isn its itself just let like make makes many may more most much
    must never new not nothing now off old once only other others our out over own per rather same should since some
    something still such than that the their them then there these they this those through too under until upon use
    used uses using very was wasn way were what when where whether which while who why will with within without would
    yet you your
"""
COMMON = frozenset(_COMMON_WORDS.split())


class Task(NamedTuple):
    """A query, without what only the form of a commit's message has, and the scope that this names."""

    text: str
    scope: frozenset[str]


def read_task(query: str) -> Task:
    """Return a query without trailers and the `fix(scope):` of a commit's message."""
    text = _without_trailers(query)
    form = _FORM.match(text)
    if form is None:
        return Task(text, frozenset())
    is_kind = form["scope"] is not None or form["kind"].lower() in _KINDS
    scope = (form["scope"] or "") if is_kind else form["kind"]
    return Task(text[form.end() :] if is_kind else text, frozenset(pieces_of(scope)))


def _without_trailers(query: str) -> str:
    """Return a query without a last paragraph of `Co-authored-by: ..` and the like."""
    text, blank, last = query.rstrip().rpartition("\n\n")
    lines = last.split("\n")
    are_trailers = (
        blank and all(map(_TRAILER.fullmatch, lines)) and any(re.match(r"\w+-[\w-]+: ", line) for line in lines)
    )
    return text if are_trailers else query


def pieces_of(path: str) -> list[str]:
    return [piece for piece in re.split(r"\W+|_", path.lower()) if piece]


def identifiers(query: str, files: Iterable[Section]) -> set[str]:
    """Return the names that a query writes as code: `name`, a.name, name(), aName, a_name; without file names."""
    suffixes = {file.name.rpartition(".")[2] for file in files}
    code = [match for match in CODE.findall(query) if match.rpartition(".")[2] not in suffixes]
    return names_in(" ".join(code))


def plain_names(names: Iterable[str], query: str) -> set[str]:
    """Return the names that are words, but those that a query writes as names: in backticks alone, or with dots."""
    written = names_in(" ".join(_WRITTEN.findall(query)))
    return {name for name in names if re.fullmatch("[a-z]+", name) and name not in written}


def with_names_of(query: str, output: str, files: Iterable[str], failed: str = "") -> str:
    """Return a query with the names that a build's output writes as code in a paragraph of their own: those in its
    lines that say what `failed`, then those that it writes most. The names of files are none.
    """
    suffixes = "|".join(sorted({re.escape(name.rpartition(".")[2]) for name in files if "." in name}))
    no_file = re.compile(rf"[\w.+-]*/[\w./+-]+|[\w+-]+\.(?:{suffixes or '(?!)'})\b|(?<!\S)-\w[\w-]*")
    code = (" ".join(CODE.findall(no_file.sub(" ", text))) for text in (failed, output))
    first, often = (Counter(re.findall(r"[A-Za-z_]\w{2,}", text)) for text in code)
    names = dict.fromkeys(name for name, _ in [*first.most_common(_MOST_OF_OUTPUT // 2), *often.most_common()])
    told = " ".join(f"`{name}`" for name in islice(names, _MOST_OF_OUTPUT))
    return f"{query.rstrip()}\n\n{told}" if told else query


def names_in(text: str, least: int = 3) -> set[str]:
    return set(islice(dict.fromkeys(re.findall(rf"[A-Za-z_]\w{{{least - 1},}}", text)), _MOST_NAMES))


def joined_names(text: str) -> list[str]:
    """Return names that words standing together may be parts of: `option_name`, `optionname`."""
    runs = re.split(r"[^a-z\s-]+", text.lower()[:_BEGINNING])
    between = rf"\b(?:{'|'.join(COMMON)})\b"
    split = [re.findall(r"[a-z]{3,}", part) for run in runs for part in re.split(between, run)]
    tuples = [run[at : at + many] for many in _JOINED_WORDS for run in split for at in range(len(run) - many + 1)]
    return list(dict.fromkeys(sign.join(parts) for parts in tuples for sign in ("_", "")))[:_MOST_JOINED]


def shared_words(query: str) -> SharedWords:
    stems = _stems(word for word in _PIECE.findall(query) if word.lower() not in COMMON)
    return SharedWords(stem for stem in stems if len(stem) >= _LEAST_SHARED)


def words_of(query: str) -> list[str]:
    """Return the lower-case stems of the words of a query, the longest ones of a long query."""
    stems = _stems([*_PIECE.findall(query), *re.findall(r"\w{3,}", query)])
    return sorted(stems, key=lambda word: (-len(word), word))[:_MOST_WORDS]


def _stems(words: Iterable[str]) -> set[str]:
    return {re.sub(r"(?<=\w{3})(ing|ed|es|s|e)$", "", word.lower()) for word in words}


def beginning(query: str) -> str:
    return query.strip().partition("\n\n")[0]
