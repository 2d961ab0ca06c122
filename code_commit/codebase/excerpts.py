"""Excerpts of files that are not shown whole: the definitions and tests of long ones that tell most, the lines beside
embedded images, and the lines of long outlines that share words with the query.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain, zip_longest

from code_commit.codebase.images import lines_beside_images
from code_commit.codebase.outline import Definition, read_definitions, tell_rest
from code_commit.codebase.parts import FileRequest, find_part
from code_commit.codebase.rank import Survey
from code_commit.codebase.text import Section, part_of, part_section
from code_commit.regex import regex
from code_commit.views import Part, lines_of

LONG, SHORT_JUDGE = 40_000, 4_000
"""Bytes of a file that is fitted by its definitions; of one that build.sh names, of which parts are shown."""

_SHARE_OF_A_WORD, _FEW_TESTS = 4, 3  # tests of a file that may share a telling word: one in so many, or so few
_TOLD = regex(r" *\.\.\. and ([\d,]+) (?:definitions? )?more\n")


def telling_parts(files: Iterable[Section], survey: Survey) -> dict[str, Part]:
    """Return the definitions that hold the query's names, of the long files among these."""
    lines = defaultdict[str, set[int]](set)
    for mention in chain.from_iterable(survey.mentions.telling()):
        lines[mention.path].add(mention.line)
    parts = {}
    for file in files:
        if file.bytes > LONG and lines[file.name]:
            text = file.file_text
            definitions = [found for found in read_definitions(file.name, text) if found.name]
            holding = [
                [found for found in definitions if found.first <= line <= found.last] for line in lines[file.name]
            ]
            part = part_of(text, ((found[-1].first, found[-1].last) for found in holding if found))
            if part.passages and len(part_section(file.name, part)) < file.bytes // 2:
                parts[file.name] = part
    return parts


def telling_tests(files: Iterable[Section], survey: Survey, room: int) -> Iterator[tuple[str, Part]]:
    """Yield the tests that share two telling words with the query, of the longer files that build.sh names.

    A word that many tests of a file share, as they do that of its subject, tells nothing of one. The tests with most
    words come first, then those with rare ones, until they and the shorter files that build.sh names have so many
    characters.
    """
    judges = {file.name: file for file in files if file.name in survey.judges}
    room -= sum(file.bytes for file in judges.values() if file.bytes <= SHORT_JUDGE)
    found = list[tuple[int, int, str, int, int, int]]()
    for file in judges.values():
        if file.bytes > SHORT_JUDGE:
            lines, tests = lines_of(text := file.file_text), [*_innermost(read_definitions(file.name, text))]
            words = [survey.shared.of(each.name) for each in tests]
            often = Counter(chain.from_iterable(words))
            most = max(len(tests) // _SHARE_OF_A_WORD, _FEW_TESTS)
            for each, shared in zip(tests, words, strict=True):
                telling = [often[word] for word in shared if often[word] <= most]
                if len(telling) > 1:
                    size = sum(len(line) + 1 for line in lines[each.first - 1 : each.last])
                    found.append((-len(telling), sum(telling), file.name, each.first, each.last, size))
    ranges = defaultdict[str, list[tuple[int, int]]](list)
    for _, _, name, first, last, size in sorted(found):
        if size <= room:
            room -= size
            ranges[name].append((first, last))
    for name, places in ranges.items():
        if part := find_part(name, judges[name].file_text, FileRequest(name, (), tuple(places))).part:
            yield name, part


def _innermost(definitions: Iterable[Definition]) -> Iterator[Definition]:
    """Yield the definitions with a name that hold no other."""
    named = [each for each in definitions if each.name]
    for each, after in zip_longest(named, named[1:]):
        if after is None or after.first > each.last:
            yield each


def text_of_part(file: Section, part: Part) -> str:
    hidden = [(each.first, each.name) for each in read_definitions(file.name, file.file_text)]
    return part_section(file.name, part, hidden=hidden)


def joined(
    files: Iterable[Section], chosen: Mapping[str, Part | None], shown: Mapping[str, Part], heads: Mapping[str, Part]
) -> dict[str, Part | None]:
    """Return the chosen parts of files, each with what of the file is `shown` to the choice. The head of a change log,
    which comes by itself, stands with lines beyond it; lines of it stand alone.
    """
    parts = dict[str, Part | None]()
    for file in files:
        if file.name in chosen:
            ranges = [each for part in (chosen[file.name], shown.get(file.name)) if part for each in part.ranges]
            head = heads[file.name].ranges if file.name in heads else []
            if not any(last > 1 and first <= head[-1][1] for first, last in ranges if head):
                ranges += head
            parts[file.name] = part_of(file.file_text, ranges) if ranges else None
    return parts


def is_shorter(file: Section, part: Part) -> bool:
    """Tell whether a part saves anything: else the file is shown whole."""
    return len(text_of_part(file, part)) < len(file.text)


def beside_images(files: Iterable[Section], survey: Survey) -> dict[str, Part]:
    parts = {file.name: lines_beside_images(file.file_text) for file in files if file.name in survey.pictured}
    return {name: part for name, part in parts.items() if part}


def shortened(lines: str, survey: Survey, longest: int, plain: int | None = None) -> str:
    """Return an outline of about so many characters: the lines that share words with the query, then others.

    These end at `plain` characters of the outline. A line stands below that of its class.
    """
    plain = longest if plain is None else min(plain, longest)
    if len(lines) <= plain:
        return lines
    numbered, room = list(enumerate(lines.splitlines(keepends=True))), longest
    shared, kept = [sum(map(line.lower().__contains__, survey.words)) for _, line in numbered], set[int]()
    owners, owner_of = list[tuple[int, int]](), list[set[int]]()
    for number, line in numbered:
        depth = len(line) - len(line.lstrip())
        owners = [owner for owner in owners if owner[0] < depth]
        owner_of.append({number, *(owner for _, owner in owners)})
        owners.append((depth, number))
    for number, _ in sorted(numbered, key=lambda item: -shared[item[0]]):
        added = owner_of[number] - kept
        room -= sum(len(numbered[each][1]) for each in added)
        if room < (0 if shared[number] else longest - plain):
            break
        kept |= added
    text = "".join(numbered[number][1] for number in sorted(kept))
    told = (_TOLD.fullmatch(line) for number, line in numbered if number not in kept)
    return text + tell_rest(sum(int(match[1].replace(",", "")) if match else 1 for match in told))
