"""The build.sh that `init` writes: what it builds of a project, and what it leaves out or cannot test."""

import re
import shlex
import textwrap
import tomllib
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

from code_commit.commands.descriptions import Facts, Folder, look_into, mapping, read_facts
from code_commit.project import BUILD_SCRIPT
from code_commit.runs.words import count
from code_commit.terminal import shown

_TABLE = tomllib.loads(Path(__file__).with_name("build_scripts.toml").read_text("utf-8"))
_KINDS, _LAST_KINDS, _HOOKS = (
    [kind | variant for kind in _TABLE[name] for variant in kind.get("variants", [{}])]
    for name in ("kinds", "last_kinds", "hooks")
)
_COMMENT = re.compile(r"(?s:<!--.*?(?:-->|\Z))|^[ \t]*(?:#|//).*$", re.MULTILINE)
_DEEPEST = 3  # folders down to a part of the project
_MOST_NAMED = 6
_NOT_BUILT = {"doc", "docs", "example", "examples"}


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


def build_script_for(root: Path) -> BuildScript | None:
    """Return a build script and what it builds; None for a project of no known kind."""
    project = look_into(root)
    built, left_out = _choose(project)
    parts = [*_find_all(project, _HOOKS, ""), *built]
    if not parts:
        return None
    sections = [_section(part) for part in parts]
    if any(line.startswith("counted ") for part in parts for line in part.lines):
        sections.insert(0, _TABLE["counted"])
    notes = []
    if left_out:
        notes.append(_tell_left_out([part.title for part in left_out]))
        comment = textwrap.wrap(notes[0], 77, break_long_words=False, break_on_hyphens=False)
        sections.insert(0, "".join(f"# {line}\n" for line in comment))
    notes += (_tell_untested(part) for part in built if not part.is_tested)
    notes += (note for part in built for note in _tell_lock(part, root))
    return BuildScript("\n".join([_TABLE["head"], *sections]), [part.title for part in parts], notes)


def leaves_of(script: str) -> list[str]:
    """Return the patterns of what a build script leaves behind: installed packages, what compilers make."""
    code = "\n".join(line for line in script.split("\n") if not line.lstrip().startswith("#"))
    return [pattern for pattern, maker in _TABLE["leaves"].items() if re.search(maker, code, re.MULTILINE)]


def _choose(project: Folder) -> tuple[list[_Part], list[_Part]]:
    """Return the parts that are built and those left out: the root's, and where it has none its topmost folders'."""
    found = _find_all(project, _KINDS, "")
    last = [part for part in _find_all(project, _LAST_KINDS, "") if part.lines and _is_new(part, found)]
    built = [part for part in found if part.lines] or last
    left_out = [part for part in [*found, *last] if part not in built]
    is_root = bool(built)
    for name, folder in _folders_of(project):
        parts = [part for part in _find_kinds(folder, name) if not _is_covered(part, project, built)]
        is_apart = name.split("/")[0] in _NOT_BUILT
        is_outer = not (is_root or is_apart or any(name.startswith(f"{part.folder}/") for part in built))
        built += (part for part in parts if is_outer and part.lines)
        left_out += (
            part for part in parts if part not in built and (part.kind in _KINDS or not (is_apart or "/" in name))
        )
    return built, left_out


def _is_new(part: _Part, others: Sequence[_Part]) -> bool:
    return part.kind["name"] not in {each.kind["name"] for each in others}


def _folders_of(project: Folder) -> list[tuple[str, Folder]]:
    """Return the folders that may be parts of the project, outer ones first."""
    below: dict[str, list[str]] = {}
    for name in project.files:
        names = name.split("/")
        for depth in range(1, min(len(names), _DEEPEST + 1)):
            below.setdefault("/".join(names[:depth]), []).append("/".join(names[depth:]))
    outer_first = sorted(below.items(), key=lambda each: (each[0].count("/"), each[0]))
    return [(name, Folder(project.path / name, files)) for name, files in outer_first]


def _is_covered(part: _Part, project: Folder, built: Sequence[_Part]) -> bool:
    """Tell whether the build of an outer folder builds the part too, as the files of that folder say."""
    for outer in built:
        lead = f"{outer.folder}/" if outer.folder else ""
        if outer.kind["name"] != part.kind["name"] or not part.folder.startswith(lead):
            continue
        inner = part.folder.removeprefix(lead)
        names = [inner, *(parent.as_posix() for parent in PurePosixPath(inner).parents)][:-1]
        folder = project.below(outer.folder) if outer.folder else project
        if any(fnmatchcase(name, member) for member in _members(folder, outer.kind) for name in names):
            return True
    return False


def _members(folder: Folder, kind: dict[str, Any]) -> Iterator[str]:
    """Yield the patterns of the folders that the build of a kind covers."""
    if kind["name"] == "Python":
        tool = mapping(mapping(folder.toml("pyproject.toml").get("tool")).get("pytest"))
        searched = mapping(tool.get("ini_options", tool)).get("testpaths") or "*"
        yield from _paths(searched.split() if isinstance(searched, str) else searched)
    elif kind["name"] == "Rust":
        yield from _members_of_cargo(folder.toml("Cargo.toml"))
    elif kind["name"] == "JavaScript":
        spaces = folder.json("package.json").get("workspaces")
        yield from _paths(spaces.get("packages") if isinstance(spaces, dict) else spaces)
        yield from re.findall(r"""(?m)^[ \t]*-[ \t]*['"]?(?:\./)?([^'"\s!]+)""", folder.text("pnpm-workspace.yaml"))
    elif "members" in kind:
        files, pattern = kind["members"]
        for file in folder.find(files):
            outer = PurePosixPath(file).parent
            for member in re.findall(pattern, _COMMENT.sub("", folder.text(file))):
                yield (outer / re.sub(r"[:\\]", "/", member)).as_posix()


def _members_of_cargo(description: dict[str, Any]) -> Iterator[str]:
    """Yield what `cargo --workspace` builds: members, and the packages that the root's own one takes from a path."""
    if "workspace" not in description:
        return
    yield from _paths(mapping(description["workspace"]).get("members"))
    for name in ("dependencies", "dev-dependencies", "build-dependencies"):
        yield from _paths([mapping(each).get("path") for each in mapping(description.get(name)).values()])


def _paths(value: Any) -> list[str]:
    """Return the paths of a list in a description, which may hold anything."""
    paths = value if isinstance(value, list) else []
    return [path.removeprefix("./").rstrip("/") for path in paths if isinstance(path, str)]


def _tell_left_out(titles: Sequence[str]) -> str:
    more = [count(len(titles) - _MOST_NAMED, "more part")] if len(titles) > _MOST_NAMED else []
    return f"Left out: {', '.join([*titles[:_MOST_NAMED], *more])}. Add to {BUILD_SCRIPT} what should count."


def _tell_untested(part: _Part) -> str:
    effect = "fails until one is there" if part.kind.get("fails") else "says only whether it builds"
    return f"No tests were found for {part.title}: {BUILD_SCRIPT} {effect}."


def _tell_lock(part: _Part, root: Path) -> Iterator[str]:
    """Yield what should be known of a file of versions that the first build writes."""
    if "lock" in part.kind:
        source, lock = (f"{part.folder}/{name}".lstrip("/") for name in part.kind["lock"].split())
        if (root / source).exists() and not (root / lock).exists():
            yield f"The first build writes {shown(lock)}: commit it, or let git ignore it."


def _section(part: _Part) -> str:
    title = part.title if part.is_tested else f"{part.title}: no tests were found"
    inside = ["(", f"cd {shlex.quote(f'./{part.folder}')}", *part.lines, ")"] if part.folder else part.lines
    return "\n".join([f"# {title}", *inside, ""])


def _find_kinds(folder: Folder, name: str) -> list[_Part]:
    """Return the part for every kind of the folder, of the last kinds where it has no other."""
    return _find_all(folder, _KINDS, name) or [part for part in _find_all(folder, _LAST_KINDS, name) if part.lines]


def _find_all(folder: Folder, kinds: Sequence[dict[str, Any]], name: str) -> list[_Part]:
    """Try the kinds in their order; the first of each name counts that can be built, else the first."""
    facts: Facts | None = None
    found: dict[str, _Part] = {}
    for kind in kinds:
        earlier = found.get(kind["name"])
        marker = None if earlier and earlier.lines else next(folder.find(kind["markers"]), None)
        if marker is None or folder.has(kind.get("unless", "")):
            continue
        facts = facts or read_facts(folder)
        is_fit = "if" not in kind or facts.hold(kind["if"])
        is_tested = facts.hold(kind["tested"]) if "tested" in kind else folder.has(kind.get("tests", marker))
        facts.words.discard("tests")
        facts.add(tests=is_tested)
        title = f"{kind['name']} ({shown(f'{name}/{marker}' if name else marker)})"
        if is_fit or not earlier:
            found[kind["name"]] = _Part(kind, name, title, _lines(kind, facts) if is_fit else [], is_tested)
    return list(found.values())


def _lines(kind: dict[str, Any], facts: Facts) -> list[str]:
    """Return the lines of a kind whose facts hold, with their values."""
    values = facts.values | {name: kind[name] for name in ("install", "run") if name in kind}
    pairs = [(None, entry) if isinstance(entry, str) else entry for entry in kind["lines"]]
    chosen = [line for condition, line in pairs if condition is None or facts.hold(condition)]
    lines = [line for entry in chosen for text in _expand(entry) for line in text.split("\n")]
    return [re.sub(r"\{(\w+)\}", lambda match: values.get(match[1], match[0]), line) for line in lines]


def _expand(entry: str) -> list[str]:
    return [
        line for each in _TABLE["blocks"].get(entry, [entry]) for line in ([each] if each == entry else _expand(each))
    ]
