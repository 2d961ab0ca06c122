"""A build.sh that fits the project: the files that tell what kind of project it is, and the lines that test it."""

import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from code_commit.project import AGENT_CONFIG
from code_commit.terminal import shown

_MOST_READ = 1 << 20  # bytes; a project's description is far smaller
_NOT_SEARCHED = {AGENT_CONFIG, "build", "dist", "docs", "node_modules", "target", "vendor", "venv"}

_HEAD = """\
#!/usr/bin/env bash
# The build: it passes if and only if this script exits with 0. It runs in the
# project's root, with no standard input. `code-commit init` wrote it from what
# it found there: read it, run it once, and change what does not fit.
set -euo pipefail
"""


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of project, told by one of its `markers` (file names or patterns).

    A line with a pattern before it is there only where that stands in the file `reads` (by default the marker); the
    kind itself only where `holds` does.
    """

    name: str
    markers: str
    lines: Sequence[str | tuple[str, str]]
    reads: str = ""
    holds: str = ""


_PYTHON = (
    "# The Python of the virtual environment, where there is one.",
    "python=python3",
    "if [ -x .venv/bin/python ]; then python=.venv/bin/python; fi",
    "if [ -d src ]; then export PYTHONPATH=src; fi",
    "export PYTHONDONTWRITEBYTECODE=1  # no new files that nobody asked for",
)
_TESTS = (
    "# pytest where it is installed, else unittest; where no test runs, it fails",
    "# with 5, as unittest itself does from Python 3.12 on.",
    """unittests() { "$python" -c 'import sys, unittest""",
    "result = unittest.main(None, exit=False).result",
    """if not result.testsRun: print("no test ran: write one, or install pytest")""",
    """sys.exit(not result.wasSuccessful() or 5 * (not result.testsRun))' "$@"; }""",
    """if "$python" -c 'import pytest' 2>/dev/null; then "$python" -m pytest -q""",
    "elif [ -d tests ] && [ ! -e tests/__init__.py ]",
    "then unittests discover -s tests",
    "else unittests discover; fi",
)
_PYTHON_SYNTAX = (
    "# No tests were found: this says only whether the files are valid Python.",
    r""""$python" -m compileall -q -x '(^|/)(\.[^/]+|venv|node_modules|build|dist)/' .""",
)
_RUBY = ("run=", "if [ -f Gemfile ]; then bundle check || bundle install; run='bundle exec'; fi")
_COMPOSER = "if [ ! -d vendor ]; then composer install --no-interaction; fi"
_GO_MODULES = "go list -m -f '{{.Dir}}/...'"
_CMAKE = (
    "# It builds in build/: .gitignore should name it.",
    "cmake -S . -B build",
    "cmake --build build --parallel 2",
)
_HAS_TESTS = r"(?i)^[ \t]*(?:enable_testing|add_test|gtest_discover_tests|include[ \t]*\([ \t]*CTest)"


_TARGET = r"[^\s#.:=][^:=#\n]*:(?!=)"
_NOT_MADE_BELOW = rf"\A(?!(?:(?!{_TARGET}).*\n)*(?:check|test)[ \t]*:(?!=))"
"""The first target of a Makefile, which `make` makes, is none of those that are made by their names."""


def _node(markers: str, install: str, run: str) -> Kind:
    """Return the scripts of package.json, run by the package manager that its lock file names."""
    test = r'"test"\s*:(?!.*no test specified)'  # npm init's own test script, which always fails
    lines = (
        (r'ependencies"\s*:', f"# This needs the network.\nif [ ! -d node_modules ]; then {install}; fi"),
        (r'"build"\s*:', f"{run} build"),
        (test, f"CI=true {run} test"),  # `CI` keeps test runners from watching
    )
    return Kind("JavaScript", markers, lines, "package.json", rf'"build"\s*:|{test}')


_KINDS = (
    Kind("Rust", "Cargo.toml", ["cargo test --workspace"]),
    Kind("Python", "uv.lock", ["uv run python -m pytest -q"]),
    Kind("Python", "poetry.lock", ["poetry run python -m pytest -q"]),
    Kind("Python", "manage.py", [*_PYTHON, '"$python" manage.py test']),
    Kind("Python", "pyproject.toml setup.py setup.cfg requirements.txt pytest.ini tox.ini", [*_PYTHON, *_TESTS]),
    _node("pnpm-lock.yaml", "pnpm install --frozen-lockfile", "pnpm run"),
    _node(".yarnrc.yml", "yarn install --immutable", "yarn run"),
    _node("yarn.lock", "yarn install --frozen-lockfile", "yarn run"),
    _node("bun.lock bun.lockb", "bun install --frozen-lockfile", "bun run"),
    _node("package-lock.json npm-shrinkwrap.json", "npm ci", "npm run"),
    _node("package.json", "npm install --no-package-lock", "npm run"),
    Kind("JavaScript", "*.test.js *.test.mjs test/*.js test/*.mjs", ["node --test"]),
    Kind("Go", "go.work", [f"{_GO_MODULES} | xargs go build", f"{_GO_MODULES} | xargs go test"]),
    Kind("Go", "go.mod", ["go build ./...", "go test ./..."]),
    Kind("Maven", "mvnw", ["sh ./mvnw --batch-mode --no-transfer-progress verify"]),
    Kind("Maven", "pom.xml", ["mvn --batch-mode --no-transfer-progress verify"]),
    Kind("Gradle", "gradlew", ["sh ./gradlew --no-daemon --console=plain build"]),
    Kind("Gradle", "build.gradle* settings.gradle*", ["gradle --no-daemon --console=plain build"]),
    Kind(".NET", "*.slnx *.sln *.csproj *.fsproj *.vbproj", ["dotnet test"]),
    Kind("Ruby", "bin/rails", [*_RUBY, "bin/rails test"]),
    Kind("Ruby", ".rspec spec/*_spec.rb", [*_RUBY, "$run rspec"]),
    Kind("Ruby", "Rakefile", [*_RUBY, "$run rake test"], holds=r"TestTask|task[ (]*:?[\"']?test\b"),
    Kind("Ruby", "Rakefile", [*_RUBY, "$run rake"]),
    Kind("PHP", "composer.json", [_COMPOSER, "composer run-script test"], holds=r'"test"\s*:'),
    Kind("PHP", "phpunit.xml phpunit.xml.dist phpunit.dist.xml", [_COMPOSER, "vendor/bin/phpunit"]),
    Kind("Dart", "pubspec.yaml", ["flutter pub get", "flutter analyze", "flutter test"], holds=r"^ +sdk: *flutter"),
    Kind("Dart", "pubspec.yaml", ["dart pub get", "dart analyze", "dart test"]),
    Kind("Elixir", "mix.exs", ["if [ ! -d deps ]; then mix deps.get; fi", "mix test"]),
    Kind("Swift", "Package.swift", ["swift build", "swift test"]),
    Kind("CMake", "CMakeLists.txt", [*_CMAKE, (_HAS_TESTS, "(cd build && ctest --output-on-failure)")]),
)
_WHERE_NOTHING_ELSE_IS = (
    Kind(
        "make",
        "GNUmakefile makefile Makefile",
        [(_NOT_MADE_BELOW, "make"), (r"^check *:", "make check"), (r"^test *:", "make test")],
    ),
    Kind("Python", "conftest.py test_*.py tests/test*.py", [*_PYTHON, *_TESTS]),
    Kind("Python", "*.py", [*_PYTHON, *_PYTHON_SYNTAX]),
)
_HOOKS = Kind(
    "pre-commit",
    ".pre-commit-config.yaml",
    [  # `--all-files` would leave out the files that are new
        "hooks() {",
        "    git ls-files -z --cached --others --exclude-standard |",
        "        xargs -0 pre-commit run --files",
        "}",
        "# A hook that rewrites a file fails: the second run tells whether all is well.",
        "hooks || hooks",
    ],
)


def build_script_for(root: Path) -> tuple[str, list[str]] | None:
    """Return a build script and what it builds, None where nothing is recognised that can be built."""
    found = _find_all(root, [_HOOKS]) + (_find_kinds(root, "") or _find_in_folders(root))
    if not found:
        return None
    return "\n".join([_HEAD, *(section for _, section in found)]), [title for title, _ in found]


def _find_in_folders(root: Path) -> list[tuple[str, str]]:
    """Find what the root's folders are, where the root itself is nothing."""
    folders = sorted(path for path in root.iterdir() if path.is_dir() and not path.is_symlink())
    names = [path.name for path in folders if not path.name.startswith(".") and path.name not in _NOT_SEARCHED]
    return [found for name in names if shown(name) == name for found in _find_kinds(root / name, name)]


def _find_kinds(folder: Path, name: str) -> list[tuple[str, str]]:
    """Return the title and the part of the script of every kind that the folder is."""
    return _find_all(folder, _KINDS, name) or _find_all(folder, _WHERE_NOTHING_ELSE_IS, name)


def _find_all(folder: Path, kinds: Sequence[Kind], name: str = "") -> list[tuple[str, str]]:
    """Try the kinds in their order; the first of each name counts."""
    found: dict[str, tuple[str, str]] = {}
    for kind in kinds:
        marker = None if kind.name in found else _first_file(folder, kind.markers)
        if marker is None:
            continue
        text = _read_text(folder / (kind.reads or marker))
        lines = _lines(kind, text)
        if lines:
            title = f"{kind.name} ({shown(f'{name}/{marker}' if name else marker)})"
            inside = ["(", f"cd {shlex.quote(f'./{name}')}", *lines, ")"] if name else lines
            found[kind.name] = title, "\n".join([f"# {title}", *inside, ""])
    return list(found.values())


def _lines(kind: Kind, text: str) -> list[str]:
    if not re.search(kind.holds, text, re.MULTILINE):
        return []
    pairs = [("", line) if isinstance(line, str) else line for line in kind.lines]
    return [line for pattern, line in pairs if re.search(pattern, text, re.MULTILINE)]


def _first_file(folder: Path, markers: str) -> str | None:
    """Return the first of the markers, or of what they match, that is a file; None where none is."""
    matches = (path for marker in markers.split() for path in sorted(folder.glob(marker)))
    return next((str(path.relative_to(folder)) for path in matches if path.is_file()), None)


def _read_text(path: Path) -> str:
    """Return the beginning of a text file, "" where there is none."""
    if not path.is_file():
        return ""
    with path.open("rb") as file:
        return file.read(_MOST_READ).decode("utf-8", "replace")
