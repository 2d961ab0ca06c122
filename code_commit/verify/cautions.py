"""What a reviewer should look at first, and is no reason to reject.

test    a test, or what it compares with, is not as before; where only new tests were added it is no news
runner  the file decides what a build checks: it configures or is a test runner, a linter, a build tool
ci      the file belongs to CI
shrunk  the file is less than half of what it was
case    a new path differs from one that is there in letter case alone: `tree` finds it
"""

import re
from collections import defaultdict
from collections.abc import Callable, Collection, Sequence
from functools import cache
from itertools import product
from typing import Literal

from code_commit.changes import RunWarning, VerifiedChange
from code_commit.terminal import shown

Kind = Literal["test", "runner", "ci", "shrunk", "case"]

_ORDER = ("test", "runner", "ci", "shrunk")
_WORDS = {"test": "is a test", "runner": "decides what is checked", "ci": "belongs to CI"}
_DONE = {"create": "created", "replace": "changed", "delete": "removed"}

_CI = """
    .github/{workflows,actions}/* .{circleci,buildkite,woodpecker,ci,gitlab,forgejo,gitea,semaphore,teamcity,husky}/*
    .{gitlab-ci,travis,drone,cirrus,woodpecker,pre-commit-config}.{yml,yaml} jenkinsfile*
    {,.}{appveyor,lefthook,cloudbuild}.{yml,yaml} azure-pipelines*.{yml,yaml} bitbucket-pipelines.{yml,yaml}
"""
"""Paths in lower case."""

_RUNNER = """
    conftest.py {,.}pytest.{ini,toml} tox.{ini,toml} noxfile.py setup.cfg pyproject.toml hatch.toml .coveragerc
    {,.}{flake8,pylintrc,pydocstyle,pycodestyle,bandit,isort.cfg}{,.toml} {,.}mypy.ini {,.}ruff.toml pyrightconfig.json
    .style.yapf {site,user}customize.py *.pth

    package.json .{mocha,nyc,c8,tap,eslint,prettier,stylelint,jshint}rc* .{eslint,prettier,stylelint}ignore mocha.opts
    {jest,vitest,vite,karma,playwright,cypress,ava,wdio,nightwatch,protractor}.{config,conf,setup,workspace}.*
    {eslint,prettier,stylelint,babel}.{config,conf,setup,workspace}.* {js,ts}config*.json
    cypress.json jasmine.json tslint.json biome.{json,jsonc} setupTests.* {g,G}{ulp,runt}file.* {turbo,nx,lerna}.json
    deno.{json,jsonc} bunfig.toml .npmrc

    pom.xml mvnw{,.cmd} gradlew{,.bat} *.gradle{,.kts} gradle.properties build.{xml,sc,mill} *.sbt .scala{fix,fmt}.conf
    testng*.xml junit-platform.properties {checkstyle,pmd,spotbugs,detekt,lint}*.{xml,yml,yaml}

    *.{csproj,fsproj,vbproj,vcxproj,sln,slnx,runsettings,ruleset,props,targets} .editorconfig global.json
    xunit.runner.json stylecop.json

    phpunit*.xml{,.dist} {phpstan,psalm,phpcs}*.{neon,xml}{,.dist} .php{,-}cs* composer.json Pest.php
    {codeception,behat}*.{yml,yaml} infection.{json,json5}{,.dist}

    {r,R}akefile *.rake .rspec {spec,rails,test}_helper.rb .rubocop*.{yml,yaml} .standard.{yml,yaml} .simplecov
    cucumber.{yml,yaml}

    go.{mod,work} .golangci.* magefile.go staticcheck.conf Cargo.toml {,.}{clippy,rustfmt,nextest,deny}.toml
    rust-toolchain{,.toml}

    CMakeLists.txt *.cmake CMakePresets.json *.mk configure{,.ac,.in} {BUILD,WORKSPACE,MODULE}{,.bazel} *.bzl .bazelrc
    {,GNU}{m,M}akefile{,.am,.common,.dev,.in,.inc,.test,.unix,.win} meson.{build,options} meson_options.txt SCons*
    wscript .clang-{tidy,format} {,.}justfile Justfile {t,T}askfile.{yml,yaml} mise.toml Earthfile

    mix.exs test_helper.exs .{credo,formatter}.exs rebar.config Package.swift *.xctestplan .swiftlint.{yml,yaml}
    pubspec.yaml analysis_options.yaml dart_test.yaml stack.yaml *.cabal dune{,-project} build.zig .busted .luacheckrc
    .perlcriticrc .proverc {Makefile,Build}.PL dist.ini

    .shellcheckrc .yamllint* .hadolint.{yml,yaml} .markdownlint* {,.}codecov.{yml,yaml} {,.}{,_}typos.toml .codespellrc
    sonar-project.properties
"""
"""Names of files: of Python, JavaScript, the JVM, Visual Studio, PHP, Ruby, Go and Rust, C and any language, others."""

_SCRIPT = r"""(?:.*/)?(?:
    (?:run[-_]?)?(?:all[-_]?)?(?:builds?|checks?|ci|coverage|lint|tests?|verify)(?:[-_]all)?\.(?:sh|bash|zsh|ps1|bat|cmd)
    |run[-_]?tests\.\w+
    |(?:bin|dev|scripts?|tools)/(?:run[-_]?)?(?:builds?|checks?|ci|coverage|lint|tests?|verify)
    )\Z
    """
"""Scripts that builds call."""
_OF_SHELLS = (".sh", ".bash", ".zsh", ".ps1", ".bat", ".cmd")

_TEST = r"""
    (?:.*/)?(?:[tT]ests?|specs?|__(?:tests|mocks|snapshots)__|e2e|testing|test[-_]?data|fixtures|goldens?|androidTest
    |[\w.]+[.-][tT]ests?|(?:integration|unit)[-_]?tests?)/
    |(?:.*/)?(?:test_[^/]*|[^/]*(?:_tests?|_spec|\.tests?|\.spec|\.e2e|\.cy)\.\w+|[^/]*(?:-tests?|-spec)\.[cm]?[jt]sx?
    |[^/]*_unittests?\.\w+|tests?\.(?:exs|go|[cm]?[jt]sx?|lua|php|pl|py|rb|rs|sh)|specs?\.(?:lua|rb|[jt]s)
    |(?:Test[A-Z]\w*|[^/]*(?:Tests?|TestCase|Specs?|IT))\.(?:cs|fs|groovy|hs|java|kt|mm?|php|scala|swift|vb)
    |[^/]*\.(?:feature|bats|snap|phpt|robot|t))\Z
    """

_PIECES = "test spec mocks snap e2e fixtures golden .feature .bats .phpt .robot .t .cy. it."
_IN_EVERY_TEST = tuple(_PIECES.split())
"""Of these one at least, in lower case."""

_SHADOW = r"""
    (?:(?:lib|python|src|tests?)/)?(?:_?pytest|pluggy|unittest|doctest|nose2?|coverage|tox|nox|hypothesis|mypy|ruff|flake8
    |pylint|pyflakes|pycodestyle|black|isort|pyright)(?:\.py|/__(?:init|main)__\.py)\Z
    |(?:lib|test|spec)/(?:rspec|minitest|test/unit)(?:/autorun)?\.rb\Z|(?:t/)?lib/Test/\w+\.pm\Z
    """
"""What is taken for a test runner or a linter of this name when it is not there yet."""

_CONCERNS_OTHERS = rb"(?m)^func TestMain\(|\bRSpec\.configure\b"
"""What in a new test concerns those that are there."""

_LARGEST = 1_000_000  # bytes that are parsed

_PLAIN = (
    r"(?:optional-?|dev-?|build-|bundled|peer)?[dD]ependencies(?:Meta)?|dependency-groups|packageManager"
    r"|authors|maintainers|contributors|description|keywords|classifiers|categories|licenses?|readme|version"
    r"|urls|homepage|repository|documentation|bugs|funding|requires-python|rust-version"
)
"""Keys of JSON and TOML: what a project depends on, at any depth, and what is told of it."""

_PLAIN_TABLES = ("require", "require-dev")
"""Further ones of composer.json; a list of this name is what a test runner loads."""

_REQUIREMENTS = {
    "go.mod": rb"\s*(?:(?:require )?\S+ v\S+(?: *//.*)?|require \(|\)|(?:go|toolchain) \S+|(?://.*)?)",
    "pom.xml": rb"\s*<((?:[\w.-]+\.)?version)>[^<]*</\1>\s*",
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
        return kind != "test" or new is None or re.search(_CONCERNS_OTHERS, new) is not None
    if kind == "test":
        from code_commit.verify.growth import only_adds  # few answers change a test

        return not only_adds(path, old, new)
    return kind == "ci" or not _decides_the_same(path, old, new)


def _kind_of(path: str, *, is_new: bool) -> Kind | None:
    if is_new and re.match(_SHADOW, path, re.VERBOSE):
        return "runner"
    if _is_listed(path.lower(), _CI):
        return "ci"
    if _is_runner(path):
        return "runner"
    can_be_test = any(map(path.lower().__contains__, _IN_EVERY_TEST))
    return "test" if can_be_test and re.match(_TEST, path, re.VERBOSE) else None


def _is_runner(path: str) -> bool:
    name = path.rpartition("/")[2]
    if _is_listed(name, _RUNNER) or path.startswith("__mocks__/") or "/.mvn/" in f"/{path}":
        return True
    if f"/{path}".endswith(("/.cargo/config", "/.cargo/config.toml")):
        return True
    can_be_script = "." not in name or name.startswith("run") or name.endswith(_OF_SHELLS)
    return can_be_script and re.match(_SCRIPT, path, re.VERBOSE) is not None


def _is_listed(name: str, table: str) -> bool:
    names, starts = _table(table)
    return name in names or any(name.endswith(end) and name.startswith(some) for end, some in starts)


@cache
def _table(words: str) -> tuple[Collection[str], Sequence[tuple[str, tuple[str, ...]]]]:
    """Return the words without a `*`; and what stands after it in the others, with all that stands before it there.

    `a{b,c}` are the two words `ab` and `ac`.
    """
    names, starts = set(), defaultdict(list)
    for word in words.split():
        for parts in product(*(part.split(",") for part in word.replace("}", "{").split("{"))):
            start, star, end = "".join(parts).partition("*")
            if star:
                starts[end].append(start)
            else:
                names.add(start)
    return names, [(end, tuple(some)) for end, some in starts.items()]


def _decides_the_same(path: str, old: bytes, new: bytes) -> bool:
    requirement = _REQUIREMENTS.get(path.rpartition("/")[2])
    if requirement:
        had, has = ([line for line in text.split(b"\n") if not re.fullmatch(requirement, line)] for text in (old, new))
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
            if not (re.fullmatch(_PLAIN, key) or (key in _PLAIN_TABLES and isinstance(inner, dict)))
        }
    return [_deciding(inner) for inner in value] if isinstance(value, list) else value
