"""What is worth a warning: tests, what runs and checks them, CI, files that shrink."""

import time

import pytest

from code_commit.changes import FileRemoval, FileReplacement, OriginalFile, VerifiedChange
from code_commit.verify.cautions import find_cautions


def kinds(path: str, old: str | None, new: str | None) -> list[str]:
    """The kinds of warning about a change from one content to another, None where there is no file."""
    action = "create" if old is None else "delete" if new is None else "replace"
    original = None if old is None else OriginalFile(old.encode(), 0o644)
    change = FileRemoval(path) if new is None else FileReplacement(path, new)
    content = None if new is None else new.encode()
    cautions = find_cautions([VerifiedChange(change, action, content, 0o644, original)])
    assert all(caution.path == path for caution in cautions)
    return [caution.kind for caution in cautions]


def words(text: str) -> list[str]:
    return text.split()


TESTS = words("""
    tests/a.rs test/a.py spec/models/user_spec.rb __tests__/a.js e2e/login.ts src/test/java/FooTest.java Tests/AppTests/A.swift
    App.Tests/A.cs integration_tests/a.py tests/data/expected.json src/__snapshots__/a.snap test_a.py a_test.go a_tests.py
    tests.py app/tests.py src/tests.rs test.js a-test.js App.test.tsx a.spec.ts a.cy.js TestFoo.java FooTest.kt FooTests.cs
    FooSpec.scala FooIT.java FooTestCase.php a_test.exs a_test.cc a_unittest.cc a.feature a.bats t/a.t a.phpt testdata/a.golden
    fixtures/a.yml
""")
RUNNERS = words("""
    conftest.py tests/conftest.py pytest.ini pytest.toml tox.ini noxfile.py setup.cfg pyproject.toml .coveragerc mypy.ini
    .flake8 .pylintrc ruff.toml .ruff.toml src/sitecustomize.py usercustomize.py a.pth package.json web/package.json
    jest.config.js jest.setup.ts vitest.config.ts vite.config.mjs karma.conf.js .mocharc.yml .nycrc playwright.config.ts
    cypress.config.ts .eslintrc.json eslint.config.mjs .eslintignore tsconfig.json tsconfig.test.json biome.json gulpfile.js
    Gruntfile.js deno.json __mocks__/axios.js .npmrc pom.xml mvnw .mvn/maven.config build.gradle build.gradle.kts settings.gradle
    gradle.properties gradlew build.sbt checkstyle.xml testng.xml junit-platform.properties a/App.csproj App.sln
    Directory.Build.props .editorconfig phpunit.xml phpunit.xml.dist phpstan.neon composer.json Rakefile lib/tasks/a.rake .rspec
    spec/spec_helper.rb test/test_helper.rb .rubocop.yml go.mod go.work .golangci.yml Cargo.toml .cargo/config.toml clippy.toml
    rustfmt.toml rust-toolchain.toml CMakeLists.txt cmake/a.cmake Makefile makefile GNUmakefile rules.mk meson.build BUILD.bazel
    BUILD configure.ac SConstruct .clang-tidy justfile Taskfile.yml mix.exs test/test_helper.exs rebar.config Package.swift
    pubspec.yaml analysis_options.yaml stack.yaml dune build.zig .luacheckrc .shellcheckrc codecov.yml scripts/test.sh ci.sh
    run_tests.py bin/check scripts/run-tests.sh lint.cmd
""")
CI = words("""
    .github/workflows/ci.yml .github/actions/a/action.yml .gitlab-ci.yml .travis.yml .circleci/config.yml Jenkinsfile
    azure-pipelines.yml bitbucket-pipelines.yml appveyor.yml .pre-commit-config.yaml .husky/pre-commit
""")
OTHERS = words("""
    src/a.rs src/latest.rs src/contest/a.rs src/attestation.py src/testimonials.tsx src/specification.md lib/inspect.rb
    src/pytest_helpers/a.py src/coverage/report.py docs/test.md docs/tests.rst src/makefile.py src/build.rs src/emit.js
    src/package.py packages.json requirements.txt README.md Gemfile go.sum src/config.toml data/a.json src/Testimony.java
    src/audit.cs src/check.py app/build/a.py scripts/deploy.sh src/runner.ts src/suite.rb docs/conf.py setup.py manage.py
    src/unittest.rs app/models/coverage.py src/mocks.ts
""")


@pytest.mark.parametrize("path", TESTS)
def test_a_test_that_is_changed_or_removed_is_named_and_a_new_one_is_not(path):
    assert kinds(path, "x\n", "y\n") == ["test"]
    assert kinds(path, "x\n", None) == ["test"]
    assert kinds(path, None, "y\n") == []
    assert kinds(path, "x\n", "x\n") == []


@pytest.mark.parametrize(("path", "kind"), [*((path, "runner") for path in RUNNERS), *((path, "ci") for path in CI)])
def test_what_decides_what_is_checked_is_named_also_when_it_is_new(path, kind):
    assert kinds(path, "x\n", "y\n") == [kind]
    assert kinds(path, "x\n", None) == [kind]
    assert kinds(path, None, "y\n") == [kind]
    assert kinds(path, "x\n", "x\n") == []


@pytest.mark.parametrize("path", OTHERS)
def test_other_files_are_not_named(path):
    assert kinds(path, "x\n", "y\n") == kinds(path, "x\n", None) == kinds(path, None, "y\n") == []


@pytest.mark.parametrize(
    "path", ["pytest.py", "pytest/__init__.py", "src/pytest.py", "tests/unittest.py", "coverage.py", "lib/minitest/autorun.rb", "lib/Test/More.pm"]
)  # fmt: skip
def test_a_new_file_that_is_taken_for_a_test_runner_is_named(path):
    assert kinds(path, None, "x = 1\n") == ["runner"]


@pytest.mark.parametrize(
    ("path", "content"),
    [("lib/main_test.go", "package lib\n\nfunc TestMain(m *testing.M) {\n}\n"), ("spec/a_spec.rb", "RSpec.configure do\nend\n")],
)  # fmt: skip
def test_a_new_test_that_concerns_the_others_is_named(path, content):
    assert kinds(path, None, content) == ["test"]


@pytest.mark.parametrize(
    ("path", "old", "new", "is_news"),
    [
        ("package.json", '{"scripts": {"test": "jest"}}', '{"scripts": {"test": "true"}}', True),
        ("package.json", '{"jest": {"bail": 1}}', '{"jest": {"bail": 1, "testPathIgnorePatterns": ["a"]}}', True),
        ("package.json", '{"version": "1", "devDependencies": {}}', '{"version": "2",\n "devDependencies": {"a": "1"}}', False),
        ("package.json", '{"version": "1"}', '{"version": "1",}', True),
        ("pyproject.toml", "[project]\nversion = '1'\ndependencies = []\n", "[project]\nversion = '2'\ndependencies = ['a']\n", False),
        ("pyproject.toml", "[tool.pytest.ini_options]\n", "[tool.pytest.ini_options]\naddopts = '-k not'\n", True),
        ("pyproject.toml", "[project]\n", "[project]\n[project.entry-points.pytest11]\na = 'b'\n", True),
        ("Cargo.toml", "[dependencies]\na = '1'\n", "[dependencies]\na = '2'\n[dev-dependencies]\nb = '1'\n", False),
        ("Cargo.toml", "[package]\nname = 'a'\n", "[package]\nname = 'a'\nautotests = false\n", True),
        ("Cargo.toml", "[lib]\n", "[lib\n", True),
        ("composer.json", '{"require": {"a": "1"}}', '{"require": {"a": "2"}, "require-dev": {"b": "1"}}', False),
        ("package.json", '{"mocha": {"require": ["a"]}}', '{"mocha": {"require": ["b"]}}', True),
        ("composer.json", '{"scripts": {"test": "phpunit"}}', '{"scripts": {"test": ":"}}', True),
        ("go.mod", "module a\n\ngo 1.21\n", "module a\n\ngo 1.22\n\nrequire (\n\tb.c/d v1.0.0 // indirect\n)\n", False),
        ("go.mod", "module a\n", "module a\n\nreplace b.c/d => ./fake\n", True),
        ("go.mod", "require (\n\ta v1\n)\n", "require (\n\ta v1\n)\nreplace (\n\ta v1 => b v2\n)\n", True),
        ("pom.xml", "<a>\n  <version>1</version>\n</a>\n", "<a>\n  <version>2</version>\n</a>\n", False),
        ("pom.xml", "<a>\n</a>\n", "<a>\n  <skipTests>true</skipTests>\n</a>\n", True),
        ("package.json", "[" * 100_000, "[" * 100_001, True),
        ("pyproject.toml", "a = " + "[" * 100_000, "a = " + "[" * 100_001, True),
        ("package.json", '{"a": "\\ud800"}', '{"a": "b"}', True),
    ],
)  # fmt: skip
def test_a_dependency_decides_nothing(path, old, new, is_news):
    assert kinds(path, old, new) == (["runner"] if is_news else [])


@pytest.mark.parametrize(
    ("path", "line"),
    [("package.json", '{"a":'), ("a.toml/Cargo.toml", "[a.a]\n"), ("go.mod", "a v1 "), ("pom.xml", "<version>")],
)
def test_the_time_is_linear_in_the_size(path, line):
    start = time.process_time()
    kinds(path, "x\n", line * (2_000_000 // len(line)))
    kinds(path, line * (900_000 // len(line)), line * (900_000 // len(line)) + "x")
    assert time.process_time() - start < 5
