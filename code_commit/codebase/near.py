"""The files next to others: what they import, and their tests."""

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import takewhile

from code_commit.codebase.text import Section
from code_commit.regex import regex

_IMPORT = regex(
    r"(?:^[ \t]*(?:from|import|(?:pub )?(?:use|mod)|using|#[ \t]*include|source|load|export\b.*\bfrom|\}[ \t]*from)"
    r"|\brequire(?:_relative)?)\b(?:[^(\n]*\([^)]{0,2000}\)|.*)",
    re.MULTILINE,
)
_QUOTED = regex(
    r"[\"'`]([^\"'`\n]+)[\"'`]"
)  # where a statement quotes what it imports, its other words name parts of it
_KEYWORD = regex(r"^\W*(?:pub )?\w+|\bimport\b")  # of a statement
_SEPARATOR = regex(r"::|[./]")  # of an imported path's names
_TEST_NAME = regex(r"^tests?[_-]|[._-](?:tests?|spec)$|(?<=[a-z])Tests?$")
_STEM = regex(r"([^.]*)(\.(?:tests?|spec)(?=\.))?")  # `a.test.ts` is no `a`
_TEST_FOLDER = regex(r"(?:^|/)(?:tests?|testdata|specs?|__tests__)/")
_MOST_OF_A_NAME = 100  # files: one that more have tells nothing
_FOLDER_NAMES = {"__init__", "index", "mod"}


def has_test_name(path: str) -> bool:
    return _TEST_NAME.search(_module(path)) is not None


def is_test(path: str) -> bool:
    return has_test_name(path) or _TEST_FOLDER.search(path) is not None


def find_near(sections: Sequence[Section], chosen: Collection[str]) -> set[str]:
    """Return the files next to the chosen ones: their imports and their tests."""
    code = {name for name in chosen if not is_document(name) and _module(name)}
    by_module = defaultdict[str, list[str]](list)
    for file in sections:
        if not is_document(file.name):
            by_module[_module(file.name)].append(file.name)

    def meant(imported: Iterable[tuple[str, str]], importing: str) -> Iterator[str]:
        for module, folder in imported:
            there = by_module.get(module, [])
            inside = [name for name in there if folder and _folder(name) == folder]
            if len(inside or there) <= _MOST_OF_A_NAME:
                yield from _nearest(inside or there, importing)

    near = {*_tests_of(code, by_module)}
    for file in sections:
        if file.name in code:
            near.update(meant(_imports(file.name, file.text), file.name))
    return near.union(chosen)


def _tests_of(code: Collection[str], by_module: Mapping[str, Sequence[str]]) -> Iterator[str]:
    """Yield the tests of files, and what files test; of several with one name those in the nearest folder."""
    modules, named = {_module(name) for name in code}, defaultdict[str, list[str]](list)
    for module in by_module.keys() - modules:
        named[_TEST_NAME.sub("", module)] += by_module[module]
    for name in code:
        there = named[_TEST_NAME.sub("", _module(name))]
        yield from [*_nearest(there, name)] or there


def imports_any(file: Section, paths: Collection[str]) -> bool:
    """Tell whether a file imports one of these by name, as one that lists the modules of a folder does."""
    modules = {_module(path) for path in paths}
    return any(name in modules for name, _ in _imports(file.name, file.text))


def without_imports(text: str) -> str:
    return _IMPORT.sub("", text)


def is_document(path: str) -> bool:
    return path.endswith((".md", ".mdx", ".rst", ".adoc", ".ipynb", ".txt"))


def _nearest(paths: Iterable[str], path: str) -> Iterator[str]:
    """Yield the paths that share the most leading folders with a path; of several that share none, no path."""

    def shared(other: str) -> int:
        pairs = zip(other.split("/")[:-1], path.split("/")[:-1], strict=False)
        return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))

    common = {other: shared(other) for other in paths}
    most = max(common.values(), default=0)
    return (other for other, number in common.items() if number == most and (most or len(common) == 1))


def _module(path: str) -> str:
    return _place(path)[-1]


def _folder(path: str) -> str:
    """Return the name of the folder that a module is imported from."""
    return "".join(_place(path)[-2:-1])


def _place(path: str) -> list[str]:
    """Return the folders of a module and its name; the file of a package stands for its folder."""
    *folders, base = path.split("/")
    name, test = _STEM.findall(base)[0]
    *above, last = folders or [""] if name in _FOLDER_NAMES else [*folders, name]
    return [*above, f"{last}{test}"]


def _imports(path: str, text: str) -> set[tuple[str, str]]:
    """Return the names in a file's imports, each with the name before it in an imported path, "" without one."""
    statements = [] if is_document(path) else _IMPORT.findall(text)
    paths = re.findall(
        r"[\w.:/-]+", " ".join(" ".join(_QUOTED.findall(each)) or _KEYWORD.sub("", each) for each in statements)
    )
    split = (_SEPARATOR.split(each) for each in paths)
    return {(name, before) for names in split for name, before in zip(names, ["", *names], strict=False) if name}
