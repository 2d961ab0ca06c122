"""The facts of a project's own files about its build and tests: package scripts, goals of make, the runner of tests.

Each fact is a word, which the lines of build_scripts.toml name. A file that cannot be read says nothing.
"""

import configparser
import json
import os
import posixpath
import re
import shlex
import tomllib
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path, PurePosixPath
from typing import Any

from code_commit.project import AGENT_CONFIG
from code_commit.terminal import shown

_MOST_READ = 1 << 20  # bytes; a project's description is far smaller
_MOST_FILES = 20_000
_NOT_SEARCHED = {AGENT_CONFIG, "build", "dist", "fixtures", "node_modules", "target", "testdata", "vendor", "venv"}
_MAY_RUN_NONE = re.compile(
    r"(?i)pass-?with-?no-?tests|\s--test\b|\bmocha\b|\btape\b|phpunit|paratest|\bpest\b|artisan test"
)
"""The runners in a script that pass where they find no test."""
_MAY_SKIP_ALL = re.compile(r"(?<![\w-])(?:(?:jest|vitest)(?:\.m?js)?|react-scripts test)(?=[\s\"';&|]|$)")
_REPORTS_ELSEWHERE = re.compile(r"reporter|--json")
"""The runners that pass where all tests are skipped, and what keeps them from saying how many passed."""
_JS_SETTINGS = ("jest.config.*", "vitest.config.*", "vite.config.*")
_FOR_PYTEST = re.compile(r"^(?:(?:async )?def test_|(?:import|from) pytest\b)", re.MULTILINE)
"""A test that unittest does not run."""
_GOOD_TASKS = {"all", "build", "check", "compile", "features", "lint", "rubocop", "spec", "standard", "test"}
_ASSIGNED = re.compile(r"\s*(?:(?:export|override|private)\s+)*[\w.-]+\s*(?::{1,3}|[+?!])?=")
_CMAKE_SWITCH = re.compile(
    r"""(?i)\b(?:(?:cmake_dependent_)?option\s*\(\s*(\w+)(?:\s+"[^"]*")?\s*([\w$]*)|set\s*\(\s*(\w+)\s+(\w+)\s+CACHE\s+BOOL)"""
)
_CMAKE_HINTS = {"enable_testing", "add_subdirectory", "include"}
_CMAKE_TESTS = re.compile(r"(?!.*(?:NO|SKIP|DISABLE|WITHOUT|INSTALL)_)(?:\w+_)?TEST(?:S|ING)?")
_CMAKE_COMMAND = re.compile(
    r"(?i)\b(if|elseif|else|endif|enable_testing|add_test|\w+_discover_tests|\w+_add_\w*test|add_subdirectory|include)"
    r"\s*\(([^()]*(?:\([^()]*\)[^()]*)*)\)"
)


@dataclass(frozen=True, slots=True)
class Folder:
    """A folder and the paths of the files below it, without installed packages and what builds make."""

    path: Path
    files: Sequence[str]

    def find(self, patterns: str) -> Iterator[str]:
        """Yield the regular files that match a pattern; the patterns are tried in their order."""
        for pattern in patterns.split():
            matches = _pattern(pattern).fullmatch
            yield from (name for name in self.files if matches(name) and (self.path / name).is_file())

    def has(self, patterns: str) -> bool:
        return any(True for _ in self.find(patterns))

    def below(self, name: str) -> "Folder":
        lead = f"{name}/"
        return Folder(self.path / name, [file.removeprefix(lead) for file in self.files if file.startswith(lead)])

    def text(self, name: str) -> str:
        """Return the beginning of a text file, "" where none can be read."""
        path = self.path / name
        if path.is_file():
            with suppress(OSError), path.open("rb") as file:
                return file.read(_MOST_READ).decode("utf-8-sig", "replace")
        return ""

    def json(self, name: str) -> dict[str, Any]:
        return self._parsed(name, json.loads)

    def toml(self, name: str) -> dict[str, Any]:
        return self._parsed(name, tomllib.loads)

    def _parsed(self, name: str, parse: Callable[[str], Any]) -> dict[str, Any]:
        try:
            return mapping(parse(self.text(name)))
        except (ValueError, RecursionError):
            return {}

    def sections(self, name: str) -> list[str]:
        """Return the names of the sections of an INI file."""
        parser = configparser.ConfigParser(strict=False, interpolation=None, allow_no_value=True)
        try:
            parser.read_string(self.text(name))
        except configparser.Error:
            return []
        return parser.sections()


@dataclass(slots=True)
class Facts:
    """The facts of a folder: words that hold, and values that stand in lines."""

    words: set[str] = field(default_factory=set)
    values: dict[str, str] = field(default_factory=dict)

    def hold(self, condition: str) -> bool:
        return (condition.removeprefix("!") in self.words) != condition.startswith("!")

    def add(self, **words: object) -> None:
        self.words |= {word.replace("_", "-") for word, holds in words.items() if holds}


@cache
def _pattern(pattern: str) -> re.Pattern[str]:
    parts = re.split(r"(\*\*/|\*)", pattern)
    return re.compile(
        "".join({"**/": "(?:.*/)?", "*": "[^/]*"}.get(part, re.escape(part)) for part in parts), re.DOTALL
    )


def look_into(root: Path) -> Folder:
    """Return the root with its files, top down."""
    files: list[str] = []
    for path, folders, names in os.walk(root):
        searched = (name for name in folders if not name.startswith(".") and name not in _NOT_SEARCHED)
        folders[:] = sorted(
            name for name in searched if shown(name) == name and not (Path(path) / name / "pyvenv.cfg").exists()
        )
        lead = "" if path == str(root) else f"{Path(path).relative_to(root).as_posix()}/"
        files += (f"{lead}{name}" for name in sorted(names))
        if len(files) > _MOST_FILES:
            break
    return Folder(root, files)


def mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def read_facts(folder: Folder) -> Facts:
    facts = Facts()
    for read in (_read_npm, _read_composer, _read_python, _read_ruby, _read_make, _read_cmake, _read_others):
        read(folder, facts)
    return facts


def _script(value: Any) -> str:
    """Return a script of a package, "" for one that runs nothing."""
    lines = value if isinstance(value, list) else [value]
    text = "\n".join(line for line in lines if isinstance(line, str)).strip()
    return "" if _is_idle(text) else text


def _is_idle(script: str) -> bool:
    """Tell whether a script runs nothing, such as that of `npm init`, or never fails."""
    *_, last = re.split(r"\|\||;", script)
    only_speaks = re.match(r"echo\b", script) is not None and not re.search(r"[&|;]", script)
    has_none = re.search(r"\bno test specified\b", script) is not None
    return only_speaks or has_none or last.strip() in ("", "true", ":", "exit 0")


def _reached(scripts: dict[str, Any], name: str) -> str:
    """Return the text of a script and of those that it names, and that they name."""
    reached, text = {name}, _script(scripts.get(name))
    while named := {
        other for other in scripts.keys() - reached if re.search(rf"(?<![\w:-]){re.escape(other)}(?![\w:-])", text)
    }:
        reached |= named
        text = "\n".join([text, *(_script(scripts[other]) for other in sorted(named))])
    return text


def _read_npm(folder: Folder, facts: Facts) -> None:
    package = folder.json("package.json")
    scripts = mapping(package.get("scripts"))
    test, build = _script(scripts.get("test")), _script(scripts.get("build"))
    texts = [_reached(scripts, "test"), *_strings(package.get("jest"))] if test else []
    for inner in ["", *(f"{name}/" for name in workspaces_of(folder))] if test else []:
        texts += (folder.text(name) for name in folder.find(" ".join(f"{inner}{name}" for name in _JS_SETTINGS)))
        members = (folder.json(name) for name in folder.find(f"{inner}package.json") if inner)
        texts += (_reached(mapping(member.get("scripts")), "test") for member in members)
    may_skip_all = any(map(_MAY_SKIP_ALL.search, texts)) and not any(map(_REPORTS_ELSEWHERE.search, texts))
    may_run_none = may_skip_all or any(map(_MAY_RUN_NONE.search, texts))
    installs = any(mapping(package.get(name)) for name in ("dependencies", "devDependencies", "optionalDependencies"))
    facts.add(npm=test or build, npm_build=build, npm_test=test, npm_counts=may_run_none, npm_installs=installs)
    facts.add(npm_trusted=test and not may_run_none)


def workspaces_of(folder: Folder) -> list[str]:
    """Return the patterns of the folders that a JavaScript package names as parts of its own."""
    spaces = folder.json("package.json").get("workspaces")
    listed = re.findall(r"""(?m)^[ \t]*-[ \t]*['"]?([^'"\s!]+)""", folder.text("pnpm-workspace.yaml"))
    return paths_of(spaces.get("packages") if isinstance(spaces, dict) else spaces) + paths_of(listed)


def paths_of(value: Any) -> list[str]:
    """Return the paths of a list in a description, which may hold anything."""
    paths = value if isinstance(value, list) else []
    return [path.removeprefix("./").rstrip("/") for path in paths if isinstance(path, str)]


def _read_composer(folder: Folder, facts: Facts) -> None:
    test = _reached(mapping(folder.json("composer.json").get("scripts")), "test")
    may_run_none = _MAY_RUN_NONE.search(test)
    facts.add(composer_test=test, composer_counts=may_run_none, composer_trusted=test and not may_run_none)


def _read_python(folder: Folder, facts: Facts) -> None:
    project = folder.toml("pyproject.toml")
    tool = mapping(project.get("tool"))
    configured = (
        "pytest" in tool
        or folder.has("pytest.ini .pytest.ini pytest.toml .pytest.toml **/conftest.py")
        or "tool:pytest" in folder.sections("setup.cfg")
        or "pytest" in folder.sections("tox.ini")
    )
    extras = mapping(mapping(project.get("project")).get("optional-dependencies"))
    groups = mapping(project.get("dependency-groups"))
    named = [tool.get("poetry"), folder.toml("Pipfile"), extras, groups]
    named += [
        line for name in folder.find("requirements*.txt requirements/*.txt") for line in folder.text(name).split("\n")
    ]
    required = _names_pytest(named)
    tests = [folder.text(name) for name in folder.find("**/test_*.py **/*_test.py")]
    for_pytest = configured or required or any(map(_FOR_PYTEST.search, tests))
    facts.add(pytest=for_pytest, unittest=not for_pytest and any("unittest" in text for text in tests))
    described = "".join(map(folder.text, ("tox.ini", "setup.cfg", "pyproject.toml")))
    settings = re.search(r"\bDJANGO_SETTINGS_MODULE[\"']?\s*[=:]\s*[\"']?([\w.]+)", described)
    runner = next(folder.find("runtests.py tests/runtests.py"), "-m django test" if settings else "")
    facts.add(settings=settings, runner=runner and not for_pytest, no_runner=not (runner or for_pytest))
    facts.values |= {"settings": settings[1] if settings else "", "runner": runner}
    facts.values["group"] = _group_of_pytest(project, groups, extras)
    is_apart = folder.has("tests/*.py") and not folder.has("tests/__init__.py")
    facts.values["tests"] = " -s tests" if is_apart else ""


def _names_pytest(value: Any) -> bool:
    return any(re.match(r"pytest(?![\w.])", name) for name in _strings(value))


def _group_of_pytest(project: dict[str, Any], groups: dict[str, Any], extras: dict[str, Any]) -> str:
    """Return the option with which uv installs pytest, "" where it does so without one."""
    uv = mapping(mapping(project.get("tool")).get("uv"))
    default = uv.get("default-groups", ["dev"])
    installed = [mapping(project.get("project")).get("dependencies"), uv.get("dev-dependencies")]
    installed += (groups.get(name) for name in (groups if default == "all" else _strings(default)))
    if _names_pytest(installed):
        return ""
    options = [("group", groups), ("extra", extras)]
    found = (f" --{option} {name}" for option, table in options for name in table if _names_pytest(table[name]))
    return next((each for each in found if shlex.quote(each.split()[-1]) == each.split()[-1]), "")


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        yield from _strings([*value, *value.values()])
    elif isinstance(value, list):
        for each in value:
            yield from _strings(each)


def _read_ruby(folder: Folder, facts: Facts) -> None:
    gems = re.search(r"^[ \t]*gem[ (]+['\"]rspec(?:-rails)?['\"]", folder.text("Gemfile"), re.MULTILINE)
    rspec = gems or folder.has(".rspec spec/**/*_spec.rb")
    minitest = folder.has("test/**/*_test.rb test/**/test_*.rb")
    tasks = re.sub(r"(?m)^[ \t]*#.*$", "", folder.text("Rakefile"))
    test_task = re.search(r"TestTask|\btask[ (]?[ ]?(?::test\b|test:|[\"']test\b)", tasks)
    spec_task = not rspec and re.search(r"RSpec::Core::RakeTask", tasks)
    default = re.search(r"\btask[ (]?[ ]?(?::default\s*=>|default:|[\"']default[\"']\s*=>)(.*)", tasks)
    needed = re.findall(r"\w{2,}", default[1]) if default else []
    is_good = bool(needed) and set(needed) <= _GOOD_TASKS
    rails = folder.has("bin/rails")
    facts.add(rspec=rspec, rails_test=rails and (minitest or not rspec))
    rake_test = not rails and test_task and (minitest or not rspec)
    facts.add(rake_test=rake_test, rake_spec=not rails and not rake_test and spec_task)
    facts.add(rake_default=not (rails or rspec or rake_test or spec_task) and is_good)
    facts.add(minitest=minitest and not (rails or test_task or is_good))
    facts.add(ruby=rails or rspec or rake_test or spec_task or is_good or minitest)


def _read_make(folder: Folder, facts: Facts) -> None:
    text = next((folder.text(name) for name in folder.find("GNUmakefile makefile Makefile")), "")
    rules, named = _read_rules(text.replace("\\\n", " "))
    first = named or next((rule for rule in rules if not rule.startswith(".") and "%" not in rule), "")
    built = {"all", "build"}
    if built & set(rules.get("default", [])):
        built.add("default")
    goals = [goal for goal in (first, "all", "build") if goal in built and goal in rules][:1]
    goals += (goal for goal in ("check", "test") if goal in rules)
    facts.add(make=goals, make_test={"check", "test"} & set(goals))
    facts.values["goals"] = "\n".join(
        f"make {goal}"
        if goal in rules.get(".PHONY", [])
        else f"if [ -e {goal} ]; then make -B {goal}; else make {goal}; fi"
        for goal in goals
    )


def _read_rules(text: str) -> tuple[dict[str, list[str]], str]:
    """Return the targets of a Makefile in their order with what they need, and the default goal that it sets."""
    rules: dict[str, list[str]] = {}
    named, in_define = "", False
    for line in text.split("\n"):
        in_define = line.startswith("define ") or (in_define and not line.startswith("endef"))
        targets, colon, rest = line.partition("#")[0].partition(":")
        if default := re.match(r"\s*\.DEFAULT_GOAL\s*[:?]*=\s*(\S+)", line):
            named = default[1]
        elif in_define or line.startswith("\t") or not colon or "=" in targets or re.match(r":{0,2}=", rest):
            continue
        elif not _ASSIGNED.match(rest.removeprefix(":")):
            for target in targets.split():
                rules.setdefault(target, []).extend(rest.removeprefix(":").split())
    return rules, named


def _read_cmake(folder: Folder, facts: Facts) -> None:
    names = [*folder.find("**/CMakeLists.txt")][:200] if folder.has("CMakeLists.txt") else []
    texts = {PurePosixPath(name).parent.as_posix(): re.sub(r"#[^\n]*", "", folder.text(name)) for name in names}
    text = "\n".join(texts.values())
    switches = {name or cached: (state or kept).upper() for name, state, cached, kept in _CMAKE_SWITCH.findall(text)}
    declared = set(switches)
    switches.setdefault("BUILD_TESTING", "ON" if re.search(r"(?i)\binclude\s*\(\s*CTest\b", text) else "")
    off = {name for name, state in switches.items() if state in {"", "OFF", "FALSE", "NO", "0"}}
    changes: dict[bool, list[dict[str, str]]] = {True: [], False: []}
    for is_hint, conditions in _tests_of_cmake(texts, ".", ()):
        wanted = {name: state for each in conditions for name, state in _wanted(each, switches)}
        changes[is_hint].append({name: state for name, state in wanted.items() if (name in off) == (state == "ON")})
    by_name = {name: "ON" for name in off & declared if _CMAKE_TESTS.fullmatch(name)}
    hinted = min(filter(None, changes[True]), key=len, default=by_name)
    changed = min(changes[False], key=len, default=hinted)
    found = any(match[1].lower() != "add_subdirectory" and _is_test(match) for match in _CMAKE_COMMAND.finditer(text))
    facts.add(cmake_tests=found or changed)
    facts.values["options"] = "".join(f" -D{name}={state}" for name, state in sorted(changed.items()))


def _is_test(command: re.Match[str]) -> bool:
    """Tell whether a command of CMake adds tests, or hints at some."""
    name = command[1].lower()
    return "test" in name or (name in _CMAKE_HINTS and "test" in command[2].lower())


def _tests_of_cmake(
    texts: dict[str, str], place: str, around: tuple[str, ...]
) -> Iterator[tuple[bool, tuple[str, ...]]]:
    """Yield for each command of tests whether it is but a hint, and the conditions under which it is reached."""
    conditions: list[str] = []
    for match in _CMAKE_COMMAND.finditer(texts.pop(place, "")):
        command, arguments = match[1].lower(), match[2]
        if command in {"elseif", "else", "endif"} and conditions:
            conditions.pop()
        if command in {"if", "elseif", "else"}:
            conditions.append(arguments if command != "else" else "")
        if _is_test(match):
            yield command in _CMAKE_HINTS, (*around, *conditions)
        if command == "add_subdirectory" and (named := re.match(r'\s*"?([^\s"]+)', arguments)):
            yield from _tests_of_cmake(texts, posixpath.normpath(f"{place}/{named[1]}"), (*around, *conditions))


def _wanted(condition: str, switches: dict[str, str]) -> list[tuple[str, str]]:
    """Return the states of switches that a condition wants; where one of several will do, the one of tests."""
    named = [(name, "OFF" if no else "ON") for no, name in re.findall(r"(NOT\s+)?(\w+)", condition) if name in switches]
    if re.search(r"\bOR\b", condition):
        return [each for each in named if _CMAKE_TESTS.fullmatch(each[0])][:1] or named[:1]
    return named


def _read_others(folder: Folder, facts: Facts) -> None:
    projects = (
        folder.text(name) for name in folder.find("**/*.csproj **/*.fsproj **/*.vbproj **/Directory.Build.props")
    )
    tested = r"(?i)\b(?:Include|Sdk)=\"(?:Microsoft\.NET\.Test\.Sdk|xunit|NUnit|MSTest|TUnit)"
    facts.add(dotnet_tests=any(re.search(tested, re.sub(r"(?s)<!--.*?(?:-->|\Z)", "", text)) for text in projects))
    rust = (folder.text(name) for name in folder.find("**/*.rs") if folder.has("Cargo.toml"))
    facts.add(rust_tests=any(re.search(r"#\[[\w:]*(?:test|quickcheck)", text) for text in rust))
    meson = "\n".join(folder.text(name) for name in folder.find("**/meson.build"))
    automake = "\n".join(folder.text(name) for name in folder.find("**/Makefile.am"))
    facts.add(
        meson_tests=re.search(r"(?m)^[^#'\n]*\btest\s*\(", meson),
        automake_tests=re.search(r"(?m)^[ \t]*(?:\w+_)?TESTS[ \t]*\+?=", automake),
    )
    zig = re.search(r"\bstep\(\s*\"test\"", folder.text("build.zig"))
    suites = (
        re.search(r"(?m)^(?:test-suite\s|tests:)", folder.text(n)) for n in folder.find("**/*.cabal **/package.yaml")
    )
    facts.add(zig_tests=zig, haskell_tests=any(suites))
    modules = sum(1 for _ in folder.find("**/go.mod"))
    facts.add(go_modules=modules > 1)
    facts.values["every"] = "every " if modules > 1 else ""
    flutter = re.search(r"(?m)^ +sdk: *flutter", folder.text("pubspec.yaml"))
    facts.add(flutter=flutter)
    facts.values["dart"] = "flutter" if flutter else "dart"
