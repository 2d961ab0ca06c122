"""The build.sh that `init` writes: what it builds of a project, and what it leaves out or cannot test."""

import posixpath
import re
import shlex
import textwrap
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

from code_commit.codebase.grammars import code_languages
from code_commit.commands.descriptions import read_facts, testpaths_of
from code_commit.commands.project_files import Facts, Folder, Places, look_into, mapping, paths_of
from code_commit.commands.scripts import workspaces_of
from code_commit.project import BUILD_SCRIPT
from code_commit.regex import regex
from code_commit.runs.words import count
from code_commit.terminal import shown

_TABLE = tomllib.loads(Path(__file__).with_name("build_scripts.toml").read_text("utf-8"))
_KINDS, _LAST_KINDS, _HOOKS = (
    [kind | variant for kind in _TABLE[name] for variant in kind.get("variants", [{}])]
    for name in ("kinds", "last_kinds", "hooks")
)
_COMMENT = regex(r"(?s:<!--.*?(?:-->|\Z))|^[ \t]*(?:#|//).*$", re.MULTILINE)
_LANGUAGE_OF = {suffix: name for name, suffixes in _TABLE["languages"].items() for suffix in suffixes.split()}
_DEEPEST = 3  # folders down to a part of the project
_MOST_NAMED = 6
_SMALLEST_SHARE = 0.1  # of the files of all languages; below it a language is no part of its own
_FEW = 2  # files that may only be called like those of a language
_NOT_BUILT = {"deps", "doc", "docs", "example", "examples", "external", "third_party"}


class BuildScript(NamedTuple):
    """A build.sh, the titles of what it builds, and what one should know of it."""

    text: str
    titles: Sequence[str]
    notes: Sequence[str]


class _Part(NamedTuple):
    """A kind that was found in a folder of the project ("" is the root); no lines where its files name no build."""

    kind: dict[str, Any]
    folder: str
    title: str
    lines: Sequence[str]
    is_tested: bool
    lost: str  # what hides the failures of its tests
    runs: str  # the kind whose loose tests its own run too
    missed: str  # the tests that its runner does not look for

    @property
    def can_pass(self) -> bool:
        return self.is_tested or not self.kind.get("fails")

    @property
    def languages(self) -> list[str]:
        """The languages that it builds; make builds any."""
        return ["*"] if self.runs == "make" else self.kind.get("languages", self.kind["name"]).split()


class _Language(NamedTuple):
    """A language that nothing builds: its name, with its first file, and whether it is that of most files."""

    name: str
    title: str
    is_main: bool


def build_script_for(root: Path) -> BuildScript | None:
    """Return a build script and what it builds; None for a project of no known kind and no code."""
    project = look_into(root)
    built, left_out = _choose(project)
    parts = [*_find_all(project, _HOOKS, ""), *built]
    languages = _find_unbuilt(project, [*built, *left_out])
    is_of_parts = all(part.folder or (part.kind.get("loose") and not part.is_tested) for part in built)
    missing = languages[0] if languages and languages[0].is_main and is_of_parts else None
    if not parts and not missing:
        return None
    sections = [_section(part) for part in parts]
    if any("counted " in line for part in parts for line in part.lines):
        sections.insert(0, _TABLE["counted"])
    notes = []
    if missing:
        sections.append(_TABLE["no_build"].format(missing.title, missing.name))
        notes.append(f"No build was found for {missing.title}: {BUILD_SCRIPT} fails until it has one.")
    titles = [part.title for part in left_out] + [each.title for each in languages if each != missing]
    titles += (part.missed for part in built if part.missed)
    if titles:
        left = f"Left out: {_listed(titles)}. Add to {BUILD_SCRIPT} what should count."
        notes.append(left)
        comment = textwrap.wrap(left, 77, break_long_words=False, break_on_hyphens=False)
        sections.insert(0, "".join(f"# {line}\n" for line in comment))
    notes += [*_tell_untested(built), *_tell_lost(built), *_tell_locks(built, root)]
    return BuildScript("\n".join([_TABLE["head"], *sections]), [part.title for part in parts], notes)


def leaves_of(script: str) -> list[str]:
    """Return the patterns of what a build script leaves behind: installed packages, what compilers make."""
    code = "\n".join(line for line in script.split("\n") if not line.lstrip().startswith("#"))
    return [pattern for pattern, maker in _TABLE["leaves"].items() if re.search(maker, code, re.MULTILINE)]


def _choose(project: Folder) -> tuple[list[_Part], list[_Part]]:
    """Return the parts that are built and those left out: the root's, and where it has none its topmost folders'."""
    found = _find_all(project, _KINDS, "")
    names = {part.kind["name"] for part in found}
    last = [part for part in _find_all(project, _LAST_KINDS, "") if part.lines and part.kind["name"] not in names]
    built = [part for part in found if part.lines]
    if not any(part.is_tested for part in built):
        built += [part for part in last if part.is_tested or not built]
    elif any(each.is_main for each in _find_unbuilt(project, built)):
        built += [part for part in last if part.is_tested and part.runs not in names]
    left_out = [part for part in [*found, *last] if part not in built]
    of_root = {part.kind["name"]: part.can_pass for part in built}
    kinds = [kind for kind in _KINDS if not project.has(kind.get("unless", ""))]
    outers, folders = {(part.kind["name"], ""): part for part in built}, set[str]()
    missed = {(part.kind["name"], ""): part for part in left_out}
    places: dict[tuple[str, str], tuple[Places, Places]] = {}
    for name, folder in _folders_of(project):
        inner = _find_all(folder, kinds, name) or [part for part in _find_all(folder, _LAST_KINDS, name) if part.lines]
        parts = [part for part in inner if not _is_covered(part, project, outers, places)]
        is_apart = name.split("/")[0] in _NOT_BUILT
        is_outer = not (is_apart or folders.intersection(_above(name)))
        chosen = [
            part
            for part in parts
            if is_outer and part.lines and (not of_root or of_root.get(part.kind["name"]) is False)
        ]
        built += chosen
        outers |= {(part.kind["name"], name): part for part in chosen}
        folders |= {name} if chosen else set()
        others = [part for part in parts if part not in chosen and not _is_covered(part, project, missed, places)]
        missed |= {(part.kind["name"], name): part for part in others}
        left_out += (part for part in others if part.kind in _KINDS or not (is_apart or "/" in name))
    ran = {(part.runs, part.folder) for part in built}
    covered = [part for part in [*built, *left_out] if (part.kind["name"], part.folder) in ran]
    built = [part for part in built if not (part in covered and (part.kind.get("loose") or part.kind in _LAST_KINDS))]
    left_out = [part for part in left_out if part not in covered]
    if any(part.can_pass for part in built):
        left_out[:0] = [part for part in built if not part.can_pass]
        built = [part for part in built if part.can_pass]
    return built, left_out


def _find_unbuilt(project: Folder, parts: Sequence[_Part]) -> list[_Language]:
    """Return the languages that no part builds, the one of most files first, without those of few files.

    One that the table does not have counts if it has more files than any other, and than a few: go.mod is no Modula-2.
    """
    files: dict[str, list[str]] = {}
    others: dict[str, list[str]] = {}
    known = {language for part in parts for language in part.languages}
    built = tuple(part.folder and f"{part.folder}/" for part in parts if "*" in part.languages)
    for name in project.files:
        suffix = PurePosixPath(name).suffix[1:]
        if language := _LANGUAGE_OF.get(suffix):
            files.setdefault(language, []).append(name)
        elif language := code_languages().get(f"*.{suffix}"):
            others.setdefault(language, []).append(name)
    most = max(others, key=lambda language: len(others[language]), default="")
    if len(others.get(most, "")) > max([_FEW, *map(len, files.values())]):
        files[most] = others[most]
    counts = Counter({language: len(names) for language, names in files.items()})
    left = {name: [file for file in files[name] if not file.startswith(built)] for name in counts.keys() - known}
    main = next(
        (language for language, number in counts.most_common(1) if 2 * len(left.get(language, "")) > number), ""
    )
    return [
        _Language(language, f"{language} ({shown(left[language][0])})", language == main)
        for language, _ in counts.most_common()
        if len(left.get(language, "")) >= max(1, _SMALLEST_SHARE * counts.total())
    ]


def _folders_of(project: Folder) -> list[tuple[str, Folder]]:
    """Return the folders that may be parts of the project, outer ones first."""
    below: dict[str, list[str]] = {}
    for name in project.files:
        names = name.split("/")
        for depth in range(1, min(len(names), _DEEPEST + 1)):
            below.setdefault("/".join(names[:depth]), []).append("/".join(names[depth:]))
    outer_first = sorted(below.items(), key=lambda each: (each[0].count("/"), each[0]))
    return [
        (name, Folder(project.path / name, dict.fromkeys(files), name.count("/") + 1)) for name, files in outer_first
    ]


def _above(name: str) -> list[str]:
    """Return the folders that a folder lies in, but for the root."""
    return [parent.as_posix() for parent in PurePosixPath(name).parents][:-1]


def _is_covered(
    part: _Part,
    project: Folder,
    built: Mapping[tuple[str, str], _Part],
    places: dict[tuple[str, str], tuple[Places, Places]],
) -> bool:
    """Tell whether the build of an outer folder builds the part too, as the files of that folder say.

    `places` keeps what each of these says: the folders that it covers, and those that it excludes.
    """
    for folder in ["", *_above(part.folder)]:
        key = part.kind["name"], folder
        if not (outer := built.get(key)):
            continue
        if part.kind.get("loose"):
            return True
        if not outer.can_pass:
            continue
        if key not in places:
            members = [*_members(project.below(folder) if folder else project, outer.kind)]
            places[key] = Places(members), Places([member[1:] for member in members if member[:1] == "!"])
        inner = part.folder.removeprefix(f"{folder}/")
        covered, excluded = (any(map(each.have, [inner, *_above(inner)])) for each in places[key])
        if covered and not excluded:
            return True
    return False


def _members(folder: Folder, kind: dict[str, Any]) -> Iterator[str]:
    """Yield the patterns of the folders that the build of a kind covers."""
    if kind["name"] == "Python":
        yield from testpaths_of(folder) or ["*"]
    elif kind["name"] == "Rust":
        yield from _members_of_cargo(folder)
    elif kind["name"] == "JavaScript":
        yield from workspaces_of(folder)
    elif "members" in kind:
        files, pattern = kind["members"]
        for file in folder.find(files):
            outer = PurePosixPath(file).parent
            for member in re.findall(pattern, _COMMENT.sub("", folder.text(file))):
                yield (outer / re.sub(r"[:\\]", "/", member)).as_posix()


def _members_of_cargo(folder: Folder) -> Iterator[str]:
    """Yield what `cargo --workspace` builds: members, and the packages that these or the root take from a path."""
    description = folder.toml("Cargo.toml")
    if "workspace" not in description:
        return
    workspace = mapping(description["workspace"])
    yield from (members := paths_of(workspace.get("members")))
    yield from (f"!{path}" for path in paths_of(workspace.get("exclude")))
    others = {name.rpartition("/")[0] for name in folder.find("**/Cargo.toml")}
    unread = [*filter(Places(["", *members]).have, others)]
    while unread:
        others.difference_update(unread)
        place = unread.pop()
        package = folder.toml(f"{place}/Cargo.toml".lstrip("/"))
        tables = [package.get(name) for name in ("dependencies", "dev-dependencies", "build-dependencies")]
        tables += [mapping(package.get("workspace")).get("dependencies")]
        named = (paths_of([mapping(each).get("path")]) for table in tables for each in mapping(table).values())
        paths = {posixpath.normpath(posixpath.join(place, path)) for each in named for path in each}
        yield from paths
        unread += paths & others


def _listed(names: Sequence[str], kind: str = "more part") -> str:
    more = [count(len(names) - _MOST_NAMED, kind)] if len(names) > _MOST_NAMED else []
    return ", ".join([*names[:_MOST_NAMED], *more])


def _tell_untested(built: Sequence[_Part]) -> Iterator[str]:
    for can_pass in (True, False):
        if titles := [part.title for part in built if not part.is_tested and part.can_pass == can_pass]:
            they = "it builds" if len(titles) == 1 else "they build"
            effect = f"says only whether {they}" if can_pass else "fails until one is there"
            yield f"No tests were found for {_listed(titles)}: {BUILD_SCRIPT} {effect}."


def _tell_lost(built: Sequence[_Part]) -> Iterator[str]:
    for part in built:
        if part.lost:
            yield f"{part.title}: `{part.lost}` hides an exit code, so it may pass where a test fails."


def _tell_locks(built: Sequence[_Part], root: Path) -> Iterator[str]:
    """Yield what should be known of the files of versions that the first build writes."""
    locks = []
    for part in built:
        if "lock" in part.kind:
            source, lock = (f"{part.folder}/{name}".lstrip("/") for name in part.kind["lock"].split())
            if (root / source).exists() and not (root / lock).exists():
                locks.append(shown(lock))
    if locks:
        it = "it" if len(locks) == 1 else "them"
        yield f"The first build writes {_listed(locks, 'more file')}: commit {it}, or let git ignore {it}."


def _section(part: _Part) -> str:
    title = part.title if part.is_tested else f"{part.title}: no tests were found"
    title += f"; `{part.lost}` hides an exit code" if part.lost else ""
    inside = ["(", f"cd {shlex.quote(f'./{part.folder}')}", *part.lines, ")"] if part.folder else part.lines
    return "\n".join([f"# {title}", *inside, ""])


def _yields(kind: dict[str, Any], folder: Folder, found: Iterable[_Part]) -> bool:
    """Tell whether a kind's sources are for another one's build: it has tests, or sources of its own language."""
    names = kind.get("unless", "")
    others = [part for part in found if set(names.split()) & set(part.kind["markers"].split())]
    own = (name for part in others for name in folder.find(part.kind.get("sources", "")) if name not in names)
    return folder.has(names) and (not others or any(part.can_pass for part in others) or any(own))


def _find_all(folder: Folder, kinds: Sequence[dict[str, Any]], name: str) -> list[_Part]:
    """Try the kinds in their order; the first of each name counts that can be built, else the first."""
    facts: Facts | None = None
    found: dict[str, _Part] = {}
    for kind in kinds:
        earlier = found.get(kind["name"])
        marker = None if earlier and earlier.lines else next(folder.find(kind["markers"]), None)
        if marker is None or _yields(kind, folder, found.values()) or ("with" in kind and not folder.has(kind["with"])):
            continue
        facts = facts or read_facts(folder)
        if not facts.values["manager"].startswith(kind.get("manager", "")):
            continue
        is_fit = "if" not in kind or facts.hold(kind["if"])
        place = folder.without(kind["parts"]) if "parts" in kind and not facts.hold("configured") else folder
        is_tested = facts.hold(kind["tested"]) if "tested" in kind else place.has(kind.get("tests", marker))
        facts.words.discard("tests")
        facts.add(tests=is_tested)
        title = f"{kind['name']} ({shown(f'{name}/{marker}' if name else marker)})"
        if is_fit or not earlier:
            lost, *others = (facts.values.get(f"{word} {kind['name']}", "") for word in ("lost", "runs", "missed"))
            lines = _lines(kind, facts) if is_fit else []
            found[kind["name"]] = _Part(kind, name, title, lines, is_tested, shown(lost), *others)
    return list(found.values())


def _lines(kind: dict[str, Any], facts: Facts) -> list[str]:
    """Return the lines of a kind whose facts hold, with their values."""
    values = _TABLE["values"] | facts.values
    values |= {name: _filled(kind[name], values) for name in ("install", "run", "every", "setup") if name in kind}
    pairs = [(None, entry) if isinstance(entry, str) else entry for entry in kind["lines"]]
    chosen = [line for condition, line in pairs if condition is None or facts.hold(condition)]
    lines = [line for entry in chosen for text in _expand(entry) for line in text.split("\n")]
    return list(filter(None, (_filled(line, values) for line in lines)))


def _filled(line: str, values: Mapping[str, str]) -> str:
    return re.sub(r"\{(\w+)\}", lambda match: values.get(match[1], match[0]), line)


def _expand(entry: str) -> list[str]:
    return [
        line for each in _TABLE["blocks"].get(entry, [entry]) for line in ([each] if each == entry else _expand(each))
    ]
