"""What a reviewer should look at first, and is no reason to reject.

test    a test, or what it compares with, is not as before; where only new tests were added it is no news
runner  the file decides what a build checks: it configures or is a test runner, a linter, a build tool
ci      the file belongs to CI
shrunk  the file is less than half of what it was
case    a new path differs from one that is there in letter case alone: `tree` finds it
"""

import re
from collections.abc import Callable, Sequence
from typing import Literal

from code_commit.changes import RunWarning, VerifiedChange
from code_commit.terminal import shown
from code_commit.verify.growth import only_adds

Kind = Literal["test", "runner", "ci", "shrunk", "case"]

_ORDER = ("test", "runner", "ci", "shrunk")
_WORDS = {"test": "is a test", "runner": "decides what is checked", "ci": "belongs to CI"}
_DONE = {"create": "created", "replace": "changed", "delete": "removed"}

_CI = r"""(?i:
    \.github/(?:workflows|actions)/|\.(?:circleci|buildkite|woodpecker|ci|gitlab|forgejo|gitea|semaphore|teamcity|husky)/
    |\.(?:gitlab-ci|travis|drone|cirrus|woodpecker|pre-commit-config)\.ya?ml\Z|\.?(?:appveyor|lefthook|cloudbuild)\.ya?ml\Z
    |Jenkinsfile|azure-pipelines[^/]*\.ya?ml\Z|bitbucket-pipelines\.ya?ml\Z
    )"""

_RUNNER = r"""(?:.*/)?(?:
    # Python
    conftest\.py|\.?pytest\.(?:ini|toml)|tox\.(?:ini|toml)|noxfile\.py|setup\.cfg|pyproject\.toml|hatch\.toml|\.coveragerc
    |\.?mypy\.ini|\.?(?:flake8|pylintrc|pydocstyle|pycodestyle|bandit|isort\.cfg)(?:\.toml)?|\.?ruff\.toml|pyrightconfig\.json
    |\.style\.yapf|(?:site|user)customize\.py|[^/]*\.pth
    # JavaScript and TypeScript
    |package\.json|(?:jest|vitest|vite|karma|playwright|cypress|ava|wdio|nightwatch|protractor|eslint|prettier|stylelint
    |babel)\.(?:config|conf|setup|workspace)\.\w+|\.(?:mocha|nyc|c8|tap|eslint|prettier|stylelint|jshint)rc[^/]*|mocha\.opts
    |\.(?:eslint|prettier|stylelint)ignore|cypress\.json|jasmine\.json|[tj]sconfig[^/]*\.json|tslint\.json|biome\.jsonc?
    |setupTests\.\w+|[gG]ulpfile\.\w+|[gG]runtfile\.\w+|(?:turbo|nx|lerna)\.json|deno\.jsonc?|bunfig\.toml|\.npmrc
    # Java, Kotlin, Scala
    |pom\.xml|mvnw(?:\.cmd)?|gradlew(?:\.bat)?|[^/]*\.gradle(?:\.kts)?|gradle\.properties|build\.(?:xml|sc|mill)|[^/]*\.sbt
    |testng[^/]*\.xml|junit-platform\.properties|(?:checkstyle|pmd|spotbugs|detekt|lint)[^/]*\.(?:xml|ya?ml)
    |\.mvn/.*|\.scalafix\.conf|\.scalafmt\.conf
    # Visual Studio
    |[^/]*\.(?:csproj|fsproj|vbproj|vcxproj|sln|slnx|runsettings|ruleset|props|targets)|\.editorconfig|global\.json
    |xunit\.runner\.json|stylecop\.json
    # PHP
    |phpunit[^/]*\.xml(?:\.dist)?|(?:phpstan|psalm|phpcs)[^/]*\.(?:neon|xml)(?:\.dist)?|\.php-?cs[^/]*|composer\.json
    |codeception[^/]*\.ya?ml|behat[^/]*\.ya?ml|infection\.json5?(?:\.dist)?|Pest\.php
    # Ruby
    |[rR]akefile|[^/]*\.rake|\.rspec|(?:spec|rails|test)_helper\.rb|\.rubocop[^/]*\.ya?ml|\.standard\.ya?ml|\.simplecov
    |cucumber\.ya?ml
    # Go and Rust
    |go\.(?:mod|work)|\.golangci\.\w+|magefile\.go|staticcheck\.conf|Cargo\.toml|\.cargo/config(?:\.toml)?
    |\.?(?:clippy|rustfmt|nextest|deny)\.toml|rust-toolchain(?:\.toml)?
    # C, and any language
    |CMakeLists\.txt|[^/]*\.cmake|CMakePresets\.json|[^/]*\.mk|configure(?:\.ac|\.in)?
    |(?:GNU)?[mM]akefile(?:\.(?:am|common|dev|in|inc|test|unix|win))?
    |meson\.(?:build|options)|meson_options\.txt|(?:BUILD|WORKSPACE|MODULE)(?:\.bazel)?|[^/]*\.bzl|\.bazelrc|SCons\w+|wscript
    |\.clang-(?:tidy|format)|\.?justfile|Justfile|[tT]askfile\.ya?ml|mise\.toml|Earthfile
    # Elixir, Erlang, Swift, Dart, Haskell, OCaml, Zig, Lua, Perl
    |mix\.exs|test_helper\.exs|\.(?:credo|formatter)\.exs|rebar\.config|Package\.swift|[^/]*\.xctestplan|\.swiftlint\.ya?ml
    |pubspec\.yaml|analysis_options\.yaml|dart_test\.yaml|stack\.yaml|[^/]*\.cabal|dune(?:-project)?|build\.zig|\.busted
    |\.luacheckrc|\.perlcriticrc|\.proverc|(?:Makefile|Build)\.PL|dist\.ini
    # other checks
    |\.shellcheckrc|\.yamllint[^/]*|\.hadolint\.ya?ml|\.markdownlint[^/]*|\.?codecov\.ya?ml|\.?_?typos\.toml|\.codespellrc
    |sonar-project\.properties
    # scripts that builds call
    |(?:run[-_]?)?(?:all[-_]?)?(?:builds?|checks?|ci|coverage|lint|tests?|verify)(?:[-_]all)?\.(?:sh|bash|zsh|ps1|bat|cmd)
    |run[-_]?tests\.\w+
    |(?:bin|dev|scripts?|tools)/(?:run[-_]?)?(?:builds?|checks?|ci|coverage|lint|tests?|verify)
    )\Z
    |__mocks__/
    """

_TEST = r"""
    (?:.*/)?(?:[tT]ests?|specs?|__(?:tests|mocks|snapshots)__|e2e|testing|test[-_]?data|fixtures|goldens?|androidTest
    |[\w.]+[.-][tT]ests?|(?:integration|unit)[-_]?tests?)/
    |(?:.*/)?(?:test_[^/]*|[^/]*(?:_tests?|_spec|\.tests?|\.spec|\.e2e|\.cy)\.\w+|[^/]*(?:-tests?|-spec)\.[cm]?[jt]sx?
    |[^/]*_unittests?\.\w+|tests?\.(?:exs|go|[cm]?[jt]sx?|lua|php|pl|py|rb|rs|sh)|specs?\.(?:lua|rb|[jt]s)
    |(?:Test[A-Z]\w*|[^/]*(?:Tests?|TestCase|Specs?|IT))\.(?:cs|fs|groovy|hs|java|kt|mm?|php|scala|swift|vb)
    |[^/]*\.(?:feature|bats|snap|phpt|robot|t))\Z
    """

_SHADOW = r"""
    (?:(?:lib|python|src|tests?)/)?(?:_?pytest|pluggy|unittest|doctest|nose2?|coverage|tox|nox|hypothesis|mypy|ruff|flake8
    |pylint|pyflakes|pycodestyle|black|isort|pyright)(?:\.py|/__(?:init|main)__\.py)\Z
    |(?:lib|test|spec)/(?:rspec|minitest|test/unit)(?:/autorun)?\.rb\Z|(?:t/)?lib/Test/\w+\.pm\Z
    """
"""What is taken for a test runner or a linter of this name when it is not there yet."""

_FILES: tuple[tuple[Kind, str], ...] = (("ci", _CI), ("runner", _RUNNER), ("test", _TEST))

_CONCERNS_OTHERS = re.compile(rb"^func TestMain\(|\bRSpec\.configure\b", re.MULTILINE)
"""What in a new test concerns those that are there."""

_LARGEST = 1_000_000  # bytes that are parsed

_PLAIN = re.compile(
    r"(?:optional-?|dev-?|build-|bundled|peer)?[dD]ependencies(?:Meta)?|dependency-groups|packageManager"
    r"|authors|maintainers|contributors|description|keywords|classifiers|categories|licenses?|readme|version"
    r"|urls|homepage|repository|documentation|bugs|funding|requires-python|rust-version"
)
"""Keys of JSON and TOML: what a project depends on, at any depth, and what is told of it."""

_PLAIN_TABLES = ("require", "require-dev")
"""Further ones of composer.json; a list of this name is what a test runner loads."""

_REQUIREMENTS = {
    "go.mod": re.compile(rb"\s*(?:(?:require )?\S+ v\S+(?: *//.*)?|require \(|\)|(?:go|toolchain) \S+|(?://.*)?)"),
    "pom.xml": re.compile(rb"\s*<((?:[\w.-]+\.)?version)>[^<]*</\1>\s*"),
}
"""Lines of other files that say no more than what is required."""


def find_cautions(changes: Sequence[VerifiedChange]) -> list[RunWarning]:
    """Return what a reviewer should look at: tests that are not as before, runners, CI files, files that shrink."""
    found = []
    for change in changes:
        old, new = None if change.original is None else change.original.content, change.content
        kind = _kind_of(change.path, is_new=old is None)
        if kind and old != new and _is_news(kind, change.path, old, new):
            done = f"is {_DONE[change.action]}: check that nothing is weakened"
            found.append(RunWarning(kind, f"{shown(change.path)} {_WORDS[kind]} and {done}", change.path))
        if old is not None and new is not None and 2 * len(new) < len(old):
            sizes = f"from {len(old)} to {len(new)} bytes"
            found.append(RunWarning("shrunk", f"{shown(change.path)} shrinks to under half: {sizes}", change.path))
    return sorted(found, key=lambda caution: _ORDER.index(caution.kind))


def _is_news(kind: Kind, path: str, old: bytes | None, new: bytes | None) -> bool:
    if old is None or new is None:
        return kind != "test" or new is None or _CONCERNS_OTHERS.search(new) is not None
    if kind == "test":
        return not only_adds(path, old, new)
    return kind == "ci" or not _decides_the_same(path, old, new)


def _kind_of(path: str, *, is_new: bool) -> Kind | None:
    if is_new and re.match(_SHADOW, path, re.VERBOSE):
        return "runner"
    return next((kind for kind, pattern in _FILES if re.match(pattern, path, re.VERBOSE)), None)


def _decides_the_same(path: str, old: bytes, new: bytes) -> bool:
    requirement = _REQUIREMENTS.get(path.rpartition("/")[2])
    if requirement:
        had, has = ([line for line in text.split(b"\n") if not requirement.fullmatch(line)] for text in (old, new))
        return had == has
    import json  # few answers change such a file
    import tomllib

    parse: Callable[[str], object] = tomllib.loads if path.endswith(".toml") else json.loads
    if not path.endswith((".json", ".toml")) or max(len(old), len(new)) > _LARGEST:
        return old == new
    try:
        return _deciding(parse(old.decode())) == _deciding(parse(new.decode()))
    except (ValueError, RecursionError):
        return False


def _deciding(value: object) -> object:
    """Return a document without its plain keys."""
    if isinstance(value, dict):
        return {
            key: _deciding(inner)
            for key, inner in value.items()
            if not (_PLAIN.fullmatch(key) or (key in _PLAIN_TABLES and isinstance(inner, dict)))
        }
    return [_deciding(inner) for inner in value] if isinstance(value, list) else value
