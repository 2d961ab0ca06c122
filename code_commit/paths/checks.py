"""The files that check the work: tests, CI files and build files, told by common names and folders alone."""

import re
from functools import cache

from code_commit.changes import FileKind
from code_commit.regex import regex

_FOLDERS: dict[FileKind, str] = {
    "ci": "ci .ci .github .gitlab .forgejo .gitea .circleci .buildkite .woodpecker .semaphore .teamcity .husky",
    "test": """
        t [tT]est [tT]ests *Tests *[._-][tT]est *[._-][tT]ests [sS]pec [sS]pecs e2e testing testdata test[-_]data
        fixtures golden goldens androidTest __tests__ __mocks__ __snapshots__
    """,
    "build": ".cargo .mvn cmake pytest _pytest unittest minitest rspec",
}  # a file counts where one of its folders has such a name

_NAMES: dict[FileKind, str] = {
    "ci": """
        .gitlab-ci.* .travis.* .drone.* .cirrus.* .woodpecker.* .pre-commit-config.* [jJ]enkinsfile* azure-pipelines*
        bitbucket-pipelines.* appveyor.* .appveyor.* lefthook.* .lefthook.* cloudbuild.* codecov.* .codecov.*
    """,
    "test": """
        [tT]est[._-]* Test[A-Z]* [tT]ests.* [sS]pec[._-]* conftest.py *[._-][tT]est.* *[._-][tT]ests.* *[._-][sS]pec.*
        *_unittest.* *[._-]e2e.* *.cy.* *Test.* *Tests.* *TestCase.* *Spec.* *Specs.* *IT.java *IT.kt *IT.scala
        *IT.groovy *.feature *.bats *.snap *.phpt *.robot *.t *.golden
    """,
    "build": """
        [mM]akefile* GNUmakefile* *.mk CMake* *.cmake meson* configure configure.* SCons* wscript [jJ]ustfile .justfile
        [tT]askfile.* mise.toml Earthfile Dockerfile* BUILD BUILD.bazel WORKSPACE* MODULE.bazel *.bzl .bazelrc build.*
        build check check.sh check.ps1 check.cmd ci.sh coverage.sh lint lint.sh lint.ps1 lint.cmd test tests verify
        verify.sh runtests*
        pyproject.toml setup.py setup.cfg tox.* noxfile.py hatch.toml pytest.* unittest.py coverage.py *.pth
        sitecustomize.py usercustomize.py mypy.ini .mypy.ini ruff.toml .ruff.toml .flake8 .pydocstyle .pycodestyle
        .bandit .isort.cfg .style.yapf pyrightconfig.json
        package.json *.config.* *.conf.js *.setup.* *.workspace.* .*rc .*rc.* .*ignore [jt]sconfig*.json setupTests.*
        [gG]ulpfile* [gG]runtfile* turbo.json nx.json lerna.json deno.json* bunfig.toml biome.json* cypress.json
        jasmine.json tslint.json mocha.opts
        pom.xml mvnw* *.gradle *.gradle.kts gradle* *.sbt .scalafix.conf .scalafmt.conf testng*.xml checkstyle* pmd*.xml
        junit-platform.properties spotbugs* detekt* lint.xml
        *.csproj *.fsproj *.vbproj *.vcxproj *.sln *.slnx *.runsettings *.ruleset *.props *.targets .editorconfig
        global.json xunit.runner.json stylecop.json
        composer.json phpunit* phpstan* psalm* phpcs* .php-cs* .php_cs* Pest.php codeception* behat* infection.json*
        [rR]akefile *.rake .rspec .rubocop* .standard* .simplecov cucumber.*
        go.mod go.work .golangci.* magefile.go staticcheck.conf
        Cargo.toml clippy.toml .clippy.toml rustfmt.toml .rustfmt.toml rust-toolchain* deny.toml nextest.toml
        mix.exs .credo.exs .formatter.exs rebar.config Package.swift *.xctestplan .swiftlint* pubspec.yaml
        analysis_options.yaml dart_test.yaml stack.yaml *.cabal dune dune-project .busted .proverc Makefile.PL Build.PL
        dist.ini .clang-* .yamllint* .hadolint* .markdownlint* typos.toml [._]typos.toml sonar-project.properties
    """,
}  # a file counts where it has such a name: of CI services, of tests, and of build tools by ecosystem


def file_kind(path: str) -> FileKind:
    """Return the kind of a file that checks the work, by its path; "" for any other."""
    *folders, name = path.split("/")
    for kind, of_folders in _FOLDERS.items():
        if _is_like(_NAMES[kind], name) or any(_is_like(of_folders, folder) for folder in folders):
            return kind
    return ""


def _is_like(globs: str, name: str) -> bool:
    names, starts, ends, pieces, pattern = _read(globs)
    if name in names or name.startswith(starts) or name.endswith(ends):
        return True
    return any(piece in name for piece in pieces) and pattern.match(name) is not None


@cache
def _read(globs: str) -> tuple[set[str], tuple[str, ...], tuple[str, ...], set[str], re.Pattern[str]]:
    """Return the globs, the texts before and after the one star of those without classes, and of the others the longest
    piece of each and their pattern: few names have a piece, and it takes long to compile.
    """
    starts, ends, wild = list[str](), list[str](), list[str]()
    for glob in globs.split():
        before, star, after = glob.partition("*")
        if star and not after and "[" not in before:
            starts.append(before)
        elif star and not before and "*" not in after and "[" not in after:
            ends.append(after)
        elif star or "[" in glob:
            wild.append(glob)
    pieces = {max(re.split(r"\*|\[.*?\]", glob), key=len) for glob in wild}
    pattern = "|".join(wild).replace(".", r"\.").replace("*", ".*")
    return {*globs.split()}, tuple(starts), tuple(ends), pieces, regex(rf"(?s:{pattern})\Z")
