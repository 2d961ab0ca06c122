"""The facts of a project's own files about its build and tests: package scripts, goals of make, the runner of tests.

Each fact is a word, which the lines of build_scripts.toml name. A file that cannot be read says nothing.
"""

import posixpath
import re
import shlex
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from functools import cache
from pathlib import PurePosixPath
from typing import Any

from code_commit.commands.project_files import Facts, Folder, Places, mapping, paths_of, strings
from code_commit.commands.scripts import read_composer, read_make, read_npm
from code_commit.files import folders_of
from code_commit.git import ask_git
from code_commit.regex import regex
from code_commit.runs.words import count
from code_commit.terminal import shown

_FOR_PYTEST = regex(r"^(?:(?:async )?def test_|(?:import|from) pytest\b)", re.MULTILINE)
"""A test that unittest does not run."""
_DEFINES_TEST = regex(r"^\s*(?:async )?def test", re.MULTILINE)
_IS_TEST = regex(r"^(?:(?:async )?def test_|class (?:Test\w*|\w+\([\w., ]*TestCase))", re.MULTILINE)
_IMPORT = regex(r"^\s*(?:from|import)\b.*", re.MULTILINE)
_BUILT_FOR = regex(r"^//(?:go:build (.+)| \+build (.+))", re.MULTILINE)
_OF_SYSTEMS = regex(
    r"!.*|aix|android|darwin|dragonfly|freebsd|hurd|illumos|ios|js|linux|nacl|netbsd|openbsd|plan9|solaris|unix|wasip1"
    r"|windows|zos|386|amd64\w*|arm(?:64|be)?|loong64|mips\w*|ppc64\w*|riscv\w*|s390x?|sparc\w*|wasm|cgo|gc|gccgo|race|msan"
    r"|asan|ignore|boringcrypto|purego|go\d.*|goexperiment.*"
)
"""A test of Python that pytest would run, what modules it names; what Go files are built for, and what is no choice."""
_GOOD_TASKS = {"all", "build", "check", "compile", "features", "lint", "rubocop", "spec", "standard", "test"}
_COMMENTS = regex(r"<!--(?s:.*?)(?:-->|\Z)|^[ \t]*(?:#|//).*", re.MULTILINE)
_IGNORES = {
    "Maven": (
        "**/pom.xml .mvn/maven.config",
        r"testFailureIgnore>\s*true|maven\.test\.failure\.ignore(?:>\s*|=)true|(?<!\S)(?:-fn|--fail-never)(?!\S)",
    ),
    "Gradle": ("**/build.gradle **/build.gradle.kts", r"\bignoreFailures\s*=\s*true|\bignoreFailures\s+true"),
    "Python": ("pyproject.toml setup.cfg pytest.ini tox.ini", r"--suppress-tests-failed-exit-code"),
}
"""The settings with which failed tests are no failure, and the files that hold them."""
_HEAD, _MOST_NAMES = 4000, 100  # characters, in which Go says what a file is built for; patterns of a setting
_CMAKE_SWITCH = regex(
    r"""(?i)\b(?:(?:cmake_dependent_)?option\s*\(\s*([\w-]+)(?:\s+"[^"]*")?\s*([\w$]*)"""
    r"""|set\s*\(\s*([\w-]+)\s+(\w+)\s+CACHE\s+BOOL)"""
)
_CMAKE_HINTS = {"enable_testing", "add_subdirectory", "include"}
_CMAKE_TESTS = regex(r"(?!.*(?:NO|SKIP|DISABLE|WITHOUT|INSTALL)_)(?:\w+_)?TEST(?:S|ING)?")
_CMAKE_COMMAND = regex(
    r"(?i)\b(if|elseif|else|endif|enable_testing|add_test|\w+_discover_tests|\w+_add_\w*test|add_subdirectory|include)"
    r"\s*\(([^()]*(?:\([^()]*\)[^()]*)*)\)"
)


def read_facts(folder: Folder) -> Facts:
    facts = Facts()
    for read in (read_make, read_npm, read_composer, _read_python, _read_ruby, _read_cmake, _read_others):
        read(folder, facts)
    return facts


def _read_python(folder: Folder, facts: Facts) -> None:
    project = folder.toml("pyproject.toml")
    tool = mapping(project.get("tool"))
    configured = (
        "pytest" in tool
        or folder.has("pytest.ini .pytest.ini pytest.toml .pytest.toml conftest.py")
        or "tool:pytest" in folder.ini("setup.cfg")
        or "pytest" in folder.ini("tox.ini")
    )
    extras = mapping(mapping(project.get("project")).get("optional-dependencies"))
    groups = mapping(project.get("dependency-groups"))
    named = [tool.get("poetry"), folder.toml("Pipfile"), extras, groups]
    named += [
        line for name in folder.find("requirements*.txt requirements/*.txt") for line in folder.text(name).split("\n")
    ]
    required = _names_pytest(named)
    tests = [folder.text(name) for name in folder.find("**/test_*.py **/*_test.py")]
    for_pytest = configured or folder.has("**/conftest.py") or required or any(map(_FOR_PYTEST.search, tests))
    for_unittest = not for_pytest and any("unittest" in text for text in tests)
    facts.add(configured=configured, pytest=for_pytest, unittest=for_unittest)
    described = "".join(map(folder.text, ("tox.ini", "setup.cfg", "pyproject.toml")))
    settings = re.search(r"\bDJANGO_SETTINGS_MODULE[\"']?\s*[=:]\s*[\"']?([\w.]+)", described)
    runner = next(folder.find("runtests.py tests/runtests.py"), "-m django test" if settings else "")
    facts.add(settings=settings, runner=runner and not for_pytest, no_runner=not (runner or for_pytest))
    facts.values |= {"settings": settings[1] if settings else "", "runner": runner}
    facts.values["group"] = "" if for_unittest else _group_of_pytest(folder, project, groups, extras)
    poetry = {name: mapping(group) for name, group in mapping(mapping(tool.get("poetry")).get("group")).items()}
    for_tests = [name for name, group in poetry.items() if _names_pytest(group)]
    is_optional = for_tests and all(poetry[name].get("optional") for name in for_tests)
    facts.values["with"] = f" --with {shlex.quote(','.join(for_tests))}" if is_optional else ""
    facts.add(hatch=mapping(tool.get("hatch")).get("envs") or folder.toml("hatch.toml").get("envs"))
    names = [*folder.find("**/test*.py"), *folder.find("**/*_test.py")]
    is_suffix = bool(names) and all(PurePosixPath(name).stem.endswith("_test") for name in names)
    facts.values["pattern"] = " -p '*_test.py'" if is_suffix else ""
    top = "../" * folder.depth
    facts.values["around"] = f"{top}*/pyvenv.cfg {top}.venv/pyvenv.cfg " if top else ""
    is_apart = folder.has("tests/*.py") and not folder.has("tests/__init__.py")
    facts.values["tests"] = " -s tests" if is_apart else ""
    facts.values["missed Python"] = _missed_by_pytest(folder) if for_pytest else ""


def testpaths_of(folder: Folder) -> list[str]:
    """Return the folders that pytest searches by its settings; none where it searches all."""
    paths = _set_for_pytest(folder, "testpaths")
    return [] if "." in paths else paths


def _set_for_pytest(folder: Folder, name: str) -> list[str]:
    tool = mapping(mapping(folder.toml("pyproject.toml").get("tool")).get("pytest"))
    said = [mapping(tool.get("ini_options", tool)).get(name)]
    said += (folder.ini(file).get("pytest", {}).get(name) for file in ("pytest.ini", ".pytest.ini", "tox.ini"))
    said += [folder.ini("setup.cfg").get("tool:pytest", {}).get(name)]
    first: Any = next(filter(None, said), [])
    return paths_of(first.split() if isinstance(first, str) else first)


def _missed_by_pytest(folder: Folder) -> str:
    """Return the tests in none of the folders that pytest searches, where some are there, else those of other names."""
    is_searched = cache(Places(testpaths_of(folder)).have)
    own = folder.without("pyproject.toml setup.py")
    tests = dict.fromkeys(own.find("**/test_*.py **/*_test.py"))
    outside = [name for name in tests if not any(map(is_searched, [name, *folders_of([name])]))]
    outside = [name for name in outside if _DEFINES_TEST.search(folder.text(name))] if len(outside) < len(tests) else []
    names = (_set_for_pytest(folder, "python_files") or ["test_*.py", "*_test.py"])[:_MOST_NAMES]
    texts = {name: folder.text(name) for name in own.find("**/test/**/*.py **/tests/**/*.py")}
    imported = {word for text in texts.values() for line in _IMPORT.findall(text) for word in re.findall(r"\w+", line)}
    imported.add("conftest")
    others = [name for name, text in texts.items() if _IS_TEST.search(text) and _DEFINES_TEST.search(text)]
    others = [name for name in others if PurePosixPath(name).stem not in imported]
    unnamed = [
        name
        for name in others
        if not any(fnmatchcase(name.rpartition("/")[2], each.rpartition("/")[2]) for each in names)
    ]
    return _told(outside, "outside of testpaths") or _told(unnamed, "whose names pytest does not look for")


def _missed_by_go(folder: Folder) -> str:
    """Return the tests that are built only for a tag of the project's own."""
    tests = {name: folder.text(name)[:_HEAD] for name in folder.find("**/*_test.go")}
    ways = {name: _BUILT_FOR.search(text) for name, text in tests.items()}
    return _told([name for name, way in ways.items() if way and _is_choice(way)], "of tests behind build tags")


def _is_choice(way: re.Match[str]) -> bool:
    """Tell whether each alternative of a build constraint names a tag that is no system's."""
    alternatives = way[1].split("||") if way[1] else way[2].split()
    words = (re.findall(r"!?[\w.]+", each) for each in alternatives)
    return all(any(not _OF_SYSTEMS.fullmatch(word) for word in each) for each in words)


def _missed_by_cargo(folder: Folder) -> str:
    """Return the tests that Cargo passes over without a word: for a feature that no package here turns on."""
    manifests = {name: folder.toml(name) for name in folder.find("**/Cargo.toml")}
    wanted = {feature for manifest in manifests.values() for feature in _features_of(manifest)}
    missed = []
    for place, manifest in manifests.items():
        tests = manifest.get("test")
        for test in map(mapping, tests if isinstance(tests, list) else []):
            if test.get("test") is False or not wanted.issuperset(strings(test.get("required-features"))):
                path = next(strings(test.get("path")), f"tests/{test.get('name')}.rs")
                missed.append(posixpath.join(posixpath.dirname(place), path))
    return _told(missed, "of tests that Cargo skips")


def _features_of(manifest: dict[str, Any]) -> set[str]:
    """Return the features that a package turns on: its default ones, and those of its dependencies."""
    features, seen, unread = mapping(manifest.get("features")), set[str](), ["default"]
    while unread:
        feature = unread.pop()
        unread += strings(features.get(feature)) if feature not in seen else []
        seen.add(feature)
    tables = [mapping(manifest.get(name)).values() for name in ("dependencies", "dev-dependencies")]
    return seen | {each for table in tables for needed in table for each in strings(mapping(needed).get("features"))}


def _told(names: Sequence[str], what: str) -> str:
    return f"{count(len(names), 'file')} {what} ({shown(names[0])})" if names else ""


def _names_pytest(value: Any) -> bool:
    return any(re.match(r"pytest(?![\w.])", name) for name in strings(value))


def _group_of_pytest(folder: Folder, project: dict[str, Any], groups: dict[str, Any], extras: dict[str, Any]) -> str:
    """Return the option with which uv installs pytest or, where nothing for uv names it, adds it; "" for none."""
    uv = mapping(mapping(project.get("tool")).get("uv"))
    default = uv.get("default-groups", ["dev"])
    installed = [mapping(project.get("project")).get("dependencies"), uv.get("dev-dependencies")]
    installed += (groups.get(name) for name in (groups if default == "all" else strings(default)))
    if _names_pytest(installed):
        return ""
    options = [("group", groups), ("extra", extras)]
    found = (
        f" --{option} {shlex.quote(name)}" for option, table in options for name in table if _names_pytest(table[name])
    )
    is_of_member = "workspace" in uv and any(
        _names_pytest(mapping(folder.toml(name).get("dependency-groups"))) for name in folder.find("**/pyproject.toml")
    )
    return next(found, " --all-packages" if is_of_member else " --with pytest")


def _read_ruby(folder: Folder, facts: Facts) -> None:
    gems = re.search(r"^[ \t]*gem[ (]+['\"]rspec(?:-rails)?['\"]", folder.text("Gemfile"), re.MULTILINE)
    minitest = folder.has("test/**/*_test.rb test/**/test_*.rb")
    rspec = folder.has("spec/**/*_spec.rb") or (not minitest and (gems or folder.has(".rspec")))
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
    is_run = facts.words & {"rake-test", "rake-spec", "rake-default"}
    facts.values["lost Ruby"] = "".join(re.findall(r"\bfail_on_error\s*=\s*false", tasks)[:1] if is_run else [])
    facts.add(ruby=rails or rspec or rake_test or spec_task or is_good or minitest)


def _read_cmake(folder: Folder, facts: Facts) -> None:
    names = [*folder.find("**/CMakeLists.txt")][:200] if folder.has("CMakeLists.txt") else []
    texts = {PurePosixPath(name).parent.as_posix(): re.sub(r"#[^\n]*", "", folder.text(name)) for name in names}
    text = "\n".join(texts.values())
    switches = {name or cached: (state or kept).upper() for name, state, cached, kept in _CMAKE_SWITCH.findall(text)}
    presets = folder.json("CMakePresets.json").get("configurePresets")
    for preset in presets if isinstance(presets, list) else ():
        for name, value in mapping(mapping(preset).get("cacheVariables")).items():
            if str(value).upper() in {"ON", "TRUE", "YES"}:
                switches.setdefault(name, "OFF")  # not declared, so off unless it is set
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
    is_own = (folder.path / "build").is_dir() and ask_git(["ls-files", "build"], folder.path).stdout != b""
    facts.values["made"] = "build-out" if is_own else "build"
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
    found = re.findall(r"(NOT\s+)?([\w-]+)", condition)
    named = [(name, "OFF" if no else "ON") for no, name in found if name in switches]
    if re.search(r"\bOR\b", condition):
        return [each for each in named if _CMAKE_TESTS.fullmatch(each[0])][:1] or named[:1]
    return named


def _read_others(folder: Folder, facts: Facts) -> None:
    _read_dotnet(folder, facts)
    for name, (files, setting) in _IGNORES.items():
        texts = (_COMMENTS.sub("", folder.text(file)) for file in folder.find(files))
        found = next(filter(None, (re.search(setting, text) for text in texts)), None)
        facts.values[f"lost {name}"] = re.sub(r"\s*>\s*", " ", found[0]) if found else ""
    ways = {"mvnw": "mvn", "gradlew": "gradle"}
    for number, path in reversed([*enumerate(folder.outward())]):
        ways |= {name: f"sh {'../' * number or './'}{name}" for name in ways if (path / name).is_file()}
    facts.values |= ways
    jvm = folder.find("**/src/test/**/*.* **/src/*Test/**/*.*")
    facts.add(gradle_tests=any("/androidTest/" not in f"/{name}" for name in jvm))  # these need a device
    rust = (folder.text(name) for name in folder.find("**/*.rs") if folder.has("Cargo.toml"))
    facts.add(rust_tests=any(re.search(r"#\[[\w:]*(?:test|quickcheck)", text) for text in rust))
    facts.values |= {"missed Rust": _missed_by_cargo(folder), "missed Go": _missed_by_go(folder)}
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


def _read_dotnet(folder: Folder, facts: Facts) -> None:
    projects = (
        folder.text(name) for name in folder.find("**/*.csproj **/*.fsproj **/*.vbproj **/Directory.Build.props")
    )
    tested = r"(?i)\b(?:Include|Sdk)=\"(?:Microsoft\.NET\.Test\.Sdk|xunit|NUnit|MSTest|TUnit)"
    facts.add(dotnet_tests=any(re.search(tested, re.sub(r"(?s)<!--.*?(?:-->|\Z)", "", text)) for text in projects))
    named = [*folder.find("*.sln *.slnx *.csproj *.fsproj *.vbproj")]
    option = "--solution " if "Testing.Platform" in folder.text("global.json") else ""
    facts.values["solution"] = f" {option}{shlex.quote(named[0])}" if len(named) > 1 else ""
