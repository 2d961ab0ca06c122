"""The build.sh of `init`: it fails where no test runs, runs no goal that deploys, names what it leaves out."""

import json
import os
import shutil
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path

import pytest
from command import Run, git

from code_commit.commands.build_scripts import build_script_for


def lay(root: Path, files: Mapping[str, str]) -> Path:
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
        if content.startswith("#!"):
            path.chmod(0o755)
    return root


def script_for(root: Path, files: Mapping[str, str]) -> str:
    found = build_script_for(lay(root, files))
    assert found is not None
    return found.text


def build(root: Path, **env: str) -> subprocess.CompletedProcess[str]:
    path = f"{root.parent / 'tools'}{os.pathsep}{os.environ['PATH']}"
    return subprocess.run(
        ["./build.sh"],
        cwd=root,
        env=os.environ | {"PATH": path} | env,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )


# Files of a project, then what its runner says where it finds no test, and where it runs some. The stubs end with 0.
SAYS = '#!/bin/sh\necho "$SAID"\nexit ${CODE:-0}\n'
CTEST = '#!/bin/sh\necho "$SAID"\ncase "$SAID $*" in No*no-tests=error*) exit 8;; esac\nexit ${CODE:-0}\n'
SILENT = "#!/bin/sh\n"
RUNNERS = {
    "cargo": (
        {"Cargo.toml": "", "src/lib.rs": "#[tokio::test]\nfn a() {}\n", "../tools/cargo": SAYS},
        "running 5 tests\ntest result: ok. 0 passed; 0 failed; 5 ignored;",
        "running 1 test\ntest result: ok. 1 passed; 0 failed; 0 ignored;",
    ),
    "pytest that skips all": (
        {"pyproject.toml": "[tool.pytest]\n", "tests/test_a.py": "", "../tools/python3": SAYS},
        "ss   [100%]\n2 skipped in 0.1s",
        ".s   [100%]\n1 passed, 1 skipped in 0.1s",
    ),
    "pytest that is quiet": (
        {"uv.lock": "", "conftest.py": "", "tests/test_a.py": "", "../tools/uv": SAYS},
        "sssx   [100%]",
        "s.sx   [100%]",
    ),
    "unittest of Poetry": (
        {"poetry.lock": "", "tests/test_a.py": "import unittest\n", "../tools/poetry": SAYS},
        "Ran 2 tests in 0.0s\n\nOK (expected failures=1, skipped=2)",
        "Ran 3 tests in 0.0s\n\nOK (skipped=2)",
    ),
    "cargo with examples alone": (
        {"Cargo.toml": "", "src/lib.rs": "#[test]\nfn a() {}\n", "../tools/cargo": SAYS},
        "test result: ok. 0 passed; 0 failed;\n   Doc-tests a\ntest result: ok. 3 passed; 0 failed;",
        "test result: ok. 1 passed; 0 failed;\n   Doc-tests a\ntest result: ok. 0 passed; 0 failed;",
    ),
    "go that skips all": (
        {"go.mod": "", "a_test.go": "", "../tools/go": SAYS},
        "=== RUN   TestA\n--- SKIP: TestA (0.00s)\nPASS\nok  \ta\t0.01s",
        "--- SKIP: TestA (0.00s)\nok  \ta\t0.01s\nsaid--- PASS: TestB (0.00s)\nok  \tb\t0.01s",
    ),
    "go": ({"go.mod": "", "a_test.go": "", "../tools/go": SAYS}, "?   \ta\t[no test files]", "ok  \ta\t0.01s"),
    "go without a matching test": (
        {"go.mod": "", "a/a_test.go": "", "../tools/go": SAYS},
        "ok  \ta\t0.01s [no tests to run]",
        "ok  \ta\t(cached)",
    ),
    "go workspace": (
        {"go.work": "", "a/go.mod": "", "a/a_test.go": "", "../tools/go": SAYS},
        "?   \ta\t[no test files]",
        "ok  \ta\t0.01s",
    ),
    "Django": (
        {"manage.py": "import os\nprint(os.environ['SAID'])\nraise SystemExit(int(os.environ.get('CODE', 0)))\n"},
        "Ran 0 tests in 0.0s",
        "Ran 2 tests in 0.0s",
    ),
    "Django without manage.py": (
        {
            "tox.ini": "[testenv]\nsetenv =\n    DJANGO_SETTINGS_MODULE = tests.settings\ncommands = django-admin test\n",
            "tests/test_a.py": "from django.test import TestCase\n",
            "../tools/python3": f'#!/bin/sh\n[ "$DJANGO_SETTINGS_MODULE $*" = "tests.settings -m django test" ] || exit 9\n{SAYS}',
        },
        "Ran 2 tests in 0.0s\n\nOK (skipped=2)",
        "Ran 2 tests in 0.0s\n\nOK",
    ),
    "a runner of its own": (
        {
            "setup.py": "",
            "runtests.py": "import os\nprint(os.environ['SAID'])\nraise SystemExit(int(os.environ.get('CODE', 0)))\n",
            "tests/test_a.py": "from django.test import TestCase\n",
        },
        "Ran 0 tests in 0.0s",
        "Ran 2 tests in 0.0s",
    ),
    "jest": (
        {"package.json": '{"scripts": {"test": "jest --passWithNoTests --maxWorkers=2"}}', "../tools/npm": SAYS},
        "> jest --passWithNoTests --maxWorkers=2\nNo tests found, exiting with code 0",
        "\x1b[1mTests:       \x1b[22m\x1b[32m1 passed\x1b[39m, 1 total",
    ),
    "jest that skips all": (
        {"package.json": '{"scripts": {"test": "npx jest"}}', "../tools/npm": SAYS},
        "Test Suites: 1 skipped, 1 passed, 1 of 2 total\nTests:       2 skipped, 1 todo, 3 total",
        "Test Suites: 1 skipped, 1 passed, 1 of 2 total\nTests:       2 skipped, 1 passed, 3 total",
    ),
    "vitest that skips all": (
        {"package.json": '{"scripts": {"test": "vitest"}}', "../tools/npm": SAYS},
        " Test Files  2 skipped (2)\n      Tests  1 skipped | 1 todo (2)",
        " Test Files  1 passed | 1 skipped (2)\n      Tests  1 passed | 1 skipped (2)",
    ),
    "minitest without rake": (
        {"test/test_a.rb": "", "lib/a.rb": "", "../tools/ruby": SAYS},
        "2 runs, 0 assertions, 0 failures, 0 errors, 2 skips",
        "2 runs, 1 assertions, 0 failures, 0 errors, 1 skips",
    ),
    "a script of a script": (
        {
            "package.json": '{"scripts": {"test": "npm run unit", "unit": "vitest run"}}',
            "vitest.config.ts": "export default { test: { passWithNoTests: true } }",
            "../tools/npm": SAYS,
        },
        "No test files found, exiting with code 0",
        " Test Files  1 passed (1)\n      Tests  2 passed (2)",
    ),
    "mocha": (
        {"package.json": '{"scripts": {"test": "mocha"}}', "../tools/npm": SAYS},
        "> mocha\n  0 passing (1ms)\n  3 pending",
        "> mocha\n  10 passing (3ms)",
    ),
    "a script of a workspace": (
        {
            "package.json": '{"workspaces": ["p/*"], "scripts": {"test": "turbo run test"}}',
            "p/a/package.json": '{"scripts": {"test": "vitest run --passWithNoTests"}}',
            "../tools/npm": SAYS,
        },
        "a:test: No test files found, exiting with code 0\n Tasks:    1 successful, 1 total",
        "a:test:       Tests  2 passed (2)\n Tasks:    1 successful, 1 total",
    ),
    "node": ({"a.test.js": "test()", "../tools/node": SAYS}, "# tests 0\n# pass 0", "# tests 3\n# pass 3"),
    "Bun": (
        {"package.json": "{}", "bun.lock": "", "node_modules/a": "", "a.test.ts": "", "../tools/bun": SAYS},
        " 0 pass\n 2 skip\n 0 fail",
        " 10 pass\n 0 fail",
    ),
    "Maven": (
        {"pom.xml": "", "src/test/java/a/b/c/d/e/ATest.java": "", "../tools/mvn": SAYS},
        "[INFO] No tests to run.\nBUILD SUCCESS",
        "[INFO] Tests run: 12, Failures: 0",
    ),
    "Maven that skips all": (
        {"pom.xml": "", "src/test/java/ATest.java": "", "../tools/mvn": SAYS},
        "[WARNING] Tests run: 12, Failures: 0, Errors: 0, Skipped: 12, Time elapsed: 0.1 s -- in A",
        "[WARNING] Tests run: 12, Failures: 0, Errors: 0, Skipped: 2",
    ),
    "Gradle": (
        {
            "build.gradle": "",
            "src/test/java/ATest.java": "",
            "../tools/gradle": "#!/bin/sh\nmkdir -p build/test-results/test\n"
            """echo "<testsuite name='A' $SAID>" >build/test-results/test/TEST-A.xml; echo "$SAID"; exit ${CODE:-0}\n""",
        },
        'tests="12" skipped="12" failures="0"',
        'tests="12" skipped="1" failures="0"',
    ),
    ".NET": (
        {"a.csproj": '<PackageReference Include="xunit" />', "../tools/dotnet": SAYS},
        "No test is available in a.dll.",
        "Passed!  - Failed:     0, Passed:     3, Skipped:     0, Total:     3",
    ),
    ".NET that skips all": (
        {"a.csproj": '<PackageReference Include="xunit" />', "../tools/dotnet": SAYS},
        "Test summary: total: 3, failed: 0, succeeded: 0, skipped: 3",
        "Test summary: total: 3, failed: 0, succeeded: 3, skipped: 0",
    ),
    "Rails": ({"bin/rails": SAYS}, "9 runs, 0 assertions, 0 failures, 9 skips", "14 runs, 20 assertions, 0 failures"),
    "RSpec": ({".rspec": "", "../tools/rspec": SAYS}, "0 examples, 0 failures", "1 example, 0 failures"),
    "RSpec that skips all": (
        {".rspec": "", "../tools/rspec": SAYS},
        "12 examples, 0 failures, 12 pending",
        "12 examples, 0 failures, 2 pending",
    ),
    "Rake": ({"Rakefile": "Rake::TestTask.new", "../tools/rake": SAYS}, "", "3 runs, 3 assertions"),
    "PHPUnit": (
        {"phpunit.xml": "", "vendor/bin/phpunit": SAYS},
        'No tests found in class "ATest".\nTests: 1, Assertions: 0, Warnings: 1.',
        "OK (3 tests, 5 assertions)",
    ),
    "Composer": (
        {
            "composer.json": '{"scripts": {"test": ["@unit"], "unit": "vendor/bin/phpunit"}}',
            "vendor/a": "",
            "../tools/composer": SAYS,
        },
        "No tests executed!",
        "Tests: 3, Assertions: 5, Skipped: 1.",
    ),
    "mix": (
        {"mix.exs": "", "test/a_test.exs": "", "deps/a": "", "../tools/mix": SAYS},
        "There are no tests to run",
        "2 tests, 0 failures",
    ),
    "mix that skips all": (
        {"mix.exs": "", "test/a_test.exs": "", "deps/a": "", "../tools/mix": SAYS},
        "1 doctest, 2 tests, 0 failures, 2 excluded, 1 skipped",
        "Result: 1 passed, 3 skipped",
    ),
    "Swift": ({"Package.swift": "", "../tools/swift": SAYS}, "Executed 0 tests", "Executed 2 tests, with 0 failures"),
    "Swift that skips all": (
        {"Package.swift": "", "../tools/swift": SAYS},
        "Executed 2 tests, with 2 tests skipped and 0 failures\nTest run with 0 tests passed",
        "Executed 2 tests, with 2 tests skipped and 0 failures\nTest run with 1 test passed",
    ),
    "Dart": (
        {"pubspec.yaml": "", "test/a_test.dart": "", "../tools/dart": SAYS},
        "00:00 +0 ~3: All tests skipped.",
        "00:00 +3: All tests passed!",
    ),
    "Zig": (
        {"build.zig": 'const tests = b.step("test", "Run them");', "../tools/zig": SAYS},
        "Build Summary: 3/3 steps succeeded",
        "Build Summary: 3/3 steps succeeded; 10/12 tests passed (2 skipped)",
    ),
    "Stack": (
        {"stack.yaml": "", "package.yaml": "tests:\n  a-test:\n", "../tools/stack": SAYS},
        "a> build with ghc",
        "a> Test suite a-test passed",
    ),
    "Cabal": (
        {"a.cabal": "name: a\ntest-suite a-test\n", "../tools/cabal": SAYS},
        "Up to date",
        "1 of 1 test suites (1 of 1 test cases) passed.",
    ),
    "sbt": (
        {"build.sbt": "", "src/test/scala/ATest.scala": "", "../tools/sbt": SAYS},
        "[info] Passed: Total 0, Failed 0, Errors 0, Passed 0\n[info] Tests: succeeded 0, failed 0, canceled 2",
        "[info] Passed: Total 3, Failed 0, Errors 0, Passed 3",
    ),
    "Perl": (
        {"cpanfile": "", "t/a.t": "", "../tools/prove": SAYS},
        "Files=1, Tests=0,  0 wallclock secs\nResult: NOTESTS",
        "Files=1, Tests=12,  0 wallclock secs\nResult: PASS",
    ),
    "Perl that nothing describes": (
        {"bin/a": "", "t/a.t": "", "../tools/prove": SAYS},
        "Files=1, Tests=0,  0 wallclock secs\nResult: NOTESTS",
        "Files=1, Tests=12,  0 wallclock secs\nResult: PASS",
    ),
    "Deno": (
        {"deno.json": "{}", "a_test.ts": "", "../tools/deno": SAYS},
        "ok | 0 passed | 0 failed | 2 ignored (1ms)",
        "ok | 20 passed | 0 failed (1ms)",
    ),
    "Julia": (
        {"Project.toml": "", "test/runtests.jl": "", "../tools/julia": SAYS},
        "     Testing A tests passed",
        "Test Summary: | Pass  Total  Time\na             |    3      3  0.1s",
    ),
    "testthat": (
        {"DESCRIPTION": "", "tests/testthat/test-a.R": "", "../tools/Rscript": SAYS},
        "[ FAIL 0 | WARN 0 | SKIP 2 | PASS 0 ]",
        "[ FAIL 0 | WARN 0 | SKIP 0 | PASS 30 ]",
    ),
    "Crystal": (
        {"shard.yml": "", "lib/a": "", "spec/a_spec.cr": "", "../tools/crystal": SAYS},
        "3 examples, 0 failures, 0 errors, 3 pending",
        "3 examples, 0 failures, 0 errors, 0 pending",
    ),
    "lein": (
        {"project.clj": "", "test/a_test.clj": "", "../tools/lein": SAYS},
        "Ran 0 tests containing 0 assertions.",
        "Ran 3 tests containing 5 assertions.",
    ),
    "Meson": (
        {"meson.build": "project('a')\ntest('a', b)\n", "../tools/meson": SAYS},
        "No tests defined.\nOk:                 0",
        "Ok:                 3",
    ),
    "Automake": (
        {"Makefile.am": "TESTS = a\n", "Makefile": "", "configure": SILENT, "../tools/make": SAYS},
        "# TOTAL: 0\n# PASS:  0",
        "# TOTAL: 2\n# PASS:  2",
    ),
    "CTest": (
        {"CMakeLists.txt": "enable_testing()", "build/a": "", "../tools/cmake": SILENT, "../tools/ctest": CTEST},
        "No tests were found!!!",
        "100% tests passed, 0 tests failed out of 1",
    ),
    "CTest that skips all": (
        {"CMakeLists.txt": "enable_testing()", "build/a": "", "../tools/cmake": SILENT, "../tools/ctest": CTEST},
        "100% tests passed, 0 tests failed out of 2\n\t  1 - one (Skipped)\n\t  2 - two (Skipped)",
        "100% tests passed, 0 tests failed out of 2\n\t  1 - one (Skipped)",
    ),
}


@pytest.mark.parametrize("kind", RUNNERS)
def test_a_build_fails_where_its_runner_finds_no_test(kind: str, tmp_path: Path):
    files, none, some = RUNNERS[kind]
    root = tmp_path / "project"
    root.mkdir()
    script = script_for(root, files)
    lay(root, {"build.sh": script})
    done = build(root, SAID=some)
    assert (done.returncode, some.split("\n")[-1] in done.stdout) == (0, True), done.stdout + done.stderr
    assert max(map(len, script.split("\n"))) <= 80
    assert build(root, SAID=none).returncode != 0
    assert "no passed test" not in build(root, SAID=none, CODE="3").stdout
    assert build(root, SAID=some, CODE="3").returncode in {3, 123}, "xargs has a code of its own"


def test_a_runner_that_passes_without_a_test_is_told_as_that(tmp_path: Path):
    files, none, _ = RUNNERS["Julia"]
    root = tmp_path / "project"
    root.mkdir()
    lay(root, {"build.sh": script_for(root, files)})
    assert build(root, SAID=none).stdout.endswith("build.sh: the output tells of a failure, or of no passed test\n")


FAILURES = {
    "RSpec": "47 examples, 1 failure",
    "PHPUnit": "Tests: 2, Assertions: 1, Failures: 1, Errors: 1.",
    "mix": "3 tests, 1 failure",
    "Rake": "3 runs, 4 assertions, 0 failures, 1 errors, 0 skips",
    "CTest": "50% tests passed, 1 tests failed out of 2",
    ".NET": "Failed!  - Failed:     1, Passed:     4, Skipped:     0",
    "mocha": "  2 passed, 1 failed",
}


@pytest.mark.parametrize("kind", FAILURES)
def test_a_build_fails_where_its_runner_tells_of_a_failure_and_exits_with_0(kind: str, tmp_path: Path):
    files, _, some = RUNNERS[kind]
    root = tmp_path / "project"
    root.mkdir()
    lay(root, {"build.sh": script_for(root, files)})
    assert build(root, SAID=f"{some}\n{FAILURES[kind]}").returncode == 1
    assert build(root, SAID=f"{FAILURES[kind]}\n{some}").returncode == 0, "a title of a test, or a first try"


ONCE = {
    "npm": ({"test": "ng test"}, "", "npm run test -- --watch=false\n"),
    "pnpm": ({"test": "karma start"}, "pnpm-lock.yaml", "pnpm run test --single-run\n"),
    "a script that says so": ({"test": "ng test --no-watch"}, "", "npm run test\n"),
    "no end of its script": ({"test": "ng test && lint"}, "", "npm run test\n"),
}


@pytest.mark.parametrize(("scripts", "lock", "line"), ONCE.values(), ids=ONCE)
def test_a_runner_that_waits_for_changes_runs_once(scripts: dict[str, str], lock: str, line: str, tmp_path: Path):
    assert line in script_for(tmp_path / "a", {"package.json": json.dumps({"scripts": scripts}), lock or "a": ""})
    files = {"package.json": '{"scripts": {"test": "karma start"}}', "karma.conf.js": "singleRun: true"}
    assert "npm run test\n" in script_for(tmp_path / "b", files)


def test_a_runner_that_reports_elsewhere_is_trusted(tmp_path: Path):
    for script in ("vitest --reporter=junit", "mocha --reporter mocha-teamcity-reporter"):
        assert "counted" not in script_for(tmp_path, {"package.json": json.dumps({"scripts": {"test": script}})})
    assert "counted" in script_for(tmp_path, {"package.json": '{"scripts": {"test": "mocha --reporter=dot"}}'})
    files = {"package.json": '{"scripts": {"test": "vitest"}}', "vite.config.js": "coverage: { reporter: ['text'] },\n"}
    assert "counted" in script_for(tmp_path, files)


def test_a_go_build_that_fails_beside_a_test_that_passes_says_nothing_of_none(tmp_path: Path):
    files, *_ = RUNNERS["go"]
    root = tmp_path / "project"
    root.mkdir()
    lay(root, {"build.sh": script_for(root, files)})
    done = build(root, SAID="--- PASS: TestA (0.00s)\n--- FAIL: TestB (0.00s)\nFAIL\nFAIL\ta\t0.01s", CODE="1")
    assert (done.returncode, "no test passed" in done.stdout) == (1, False)


PYTEST = {
    "pyproject.toml": {"pyproject.toml": "[tool.pytest.ini_options]\n"},
    "pyproject.toml of today": {"pyproject.toml": "[tool.pytest]\n"},
    "setup.cfg": {"setup.cfg": "[tool:pytest]\n"},
    "tox.ini": {"tox.ini": "[pytest]\n"},
    "conftest.py": {"setup.py": "", "tests/conftest.py": ""},
    "a requirement": {"requirements.txt": "django\npytest-django>=4\n"},
    "a test that is a function": {"setup.py": "", "tests/test_a.py": "async def test_a():\n    pass\n"},
    "an import": {"setup.py": "", "a/a_test.py": "import pytest\n"},
    "a test with a suffix": {"a_test.py": "def test_a(): ...\n"},
    "a test with a suffix in tests": {"a.py": "", "tests/a_test.py": "import pytest\n"},
    "a group": {"pyproject.toml": '[dependency-groups]\ndev = ["pytest>=8"]\n'},
    "Poetry": {"pyproject.toml": '[tool.poetry.group.dev.dependencies]\npytest = "^8"\n'},
}
NO_PYTEST = {
    "a word": {"pyproject.toml": '[project]\nname = "a"\ndescription = "[tool.pytest] is\'nt here"\n# [tool.pytest]\n'},
    "another section": {"setup.cfg": "[metadata]\ndescription = [tool:pytest]\n"},
    "another package": {"requirements.txt": "django\n# pytest\npytestarch\n"},
    "not TOML": {"pyproject.toml": "[tool.pytest"},
}


@pytest.mark.parametrize("files", PYTEST.values(), ids=PYTEST)
def test_pytest_alone_runs_where_it_is_configured_also_beside_django(files: dict[str, str], tmp_path: Path):
    for name, more in {"plain": {}, "django": {"manage.py": ""}}.items():
        script = script_for(tmp_path / name, files | more)
        assert ("-m pytest -q" in script, "unittest" in script, "manage.py test" in script) == (True, False, False)


GROUPS = {
    "the group of uv": ('[dependency-groups]\ndev = ["pytest>=8"]\n', ""),
    "a default group": ('[dependency-groups]\ntests = ["pytest"]\n[tool.uv]\ndefault-groups = ["tests"]\n', ""),
    "all groups": ('[dependency-groups]\ntests = ["pytest"]\n[tool.uv]\ndefault-groups = "all"\n', ""),
    "another group": ('[dependency-groups]\ndev = ["ruff"]\ntests = ["pytest"]\n', " --group tests"),
    "an extra": ('[project.optional-dependencies]\ntest = ["pytest"]\n', " --extra test"),
    "nothing": ("[tool.pytest.ini_options]\n", " --with pytest"),
    "the group of another tool": ('[tool.poetry.group.dev.dependencies]\npytest = "^8"\n', " --with pytest"),
    "a name for no shell": ('[project.optional-dependencies]\n"a;b" = ["pytest"]\n', " --extra 'a;b'"),
    "a name of a command": ('[dependency-groups]\n"a; b" = ["pytest"]\n', " --group 'a; b'"),
}


@pytest.mark.parametrize(("text", "option"), GROUPS.values(), ids=GROUPS)
def test_uv_installs_the_group_that_has_pytest(text: str, option: str, tmp_path: Path):
    script = script_for(tmp_path, {"pyproject.toml": text, "uv.lock": "", "tests/test_a.py": ""})
    assert f" uv run{option} python -m pytest -q\n" in script


@pytest.mark.parametrize("files", NO_PYTEST.values(), ids=NO_PYTEST)
def test_a_word_of_pytest_configures_nothing(files: dict[str, str], tmp_path: Path):
    assert "manage.py test" in script_for(tmp_path / "django", files | {"manage.py": ""})
    assert "unittests discover" in script_for(tmp_path / "plain", files)


def test_unittests_that_are_all_skipped_fail_and_are_counted(tmp_path: Path):
    test = "import unittest\n@unittest.skip('')\nclass T(unittest.TestCase):\n    def test_a(self): pass\n"
    root = lay(tmp_path, {"test_a.py": test, "../tools/pytest.py": "raise ImportError\n"})
    lay(root, {"build.sh": script_for(root, {})})
    done = build(root, PYTHONPATH=str(root.parent / "tools"))
    assert (done.returncode, "no test passed, 1 skipped: " in done.stdout) == (5, True), done.stdout + done.stderr


# A Makefile, and the goals that are made, in their order.
MAKEFILES = {
    "all first": ("all:\n\ntest: all\n", ["all", "test"]),
    "deploy first": ("deploy:\n\ttouch deployed\nbuild:\n", ["build"]),
    "help set": (".DEFAULT_GOAL := help\nhelp:\ncheck:\nall:\n", ["all", "check"]),
    "build set": (".DEFAULT_GOAL = build\nall: deploy\nbuild:\n", ["build"]),
    "variables": ("test := yes\ncheck ?= no\nbuild ::= x\nall:\n", ["all"]),
    "a target's variable": ("all:\ntest: export A := 1\ncheck: A = 1\n", ["all"]),
    "phony alone": (".PHONY: test\nall:\n", ["all"]),
    "several targets": ("SRC = a b \\\n test:\nall test:: $(SRC)\n", ["all", "test"]),
    "a recipe and a comment": ("all:\n\ttest: x\n# check:\ndefine text\nbuild:\nendef\n", ["all"]),
    "none": ("install:\n\ndeploy: install\n", []),
    "default needs all": ("default: all\n.DEFAULT:\n\tcd src && $(MAKE) $@\n", ["default"]),
    "default deploys": ("default: deploy\nall:\n", ["all"]),
    "a program": ("$(BIN): a.c\nprog: b.c\n", []),
}


@pytest.mark.parametrize(("makefile", "goals"), MAKEFILES.values(), ids=MAKEFILES)
def test_make_makes_goals_by_their_names(makefile: str, goals: list[str], tmp_path: Path):
    found = build_script_for(lay(tmp_path, {"Makefile": makefile}))
    lines = [line for line in found.text.split("\n") if "; else make " in line] if found else []
    assert lines == [f"if [ -e {goal} ]; then make -B {goal}; else make {goal}; fi" for goal in goals]
    assert (found is None) == (not goals)


@pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")
@pytest.mark.parametrize("lead", ["", ".PHONY: test\n"])
def test_a_folder_of_a_goals_name_does_not_keep_it_from_running(lead: str, tmp_path: Path):
    files = {"Makefile": f"{lead}test:\n\t@touch tested\n\t@exit 3\n", "test/a": ""}
    script = script_for(tmp_path, files)
    lay(tmp_path, {"build.sh": script})
    assert build(tmp_path).returncode == 2
    assert (tmp_path / "tested").exists()


PACKAGES = {
    "on one line": ('{"scripts": {"test": "jest", "build": "tsc"}}', True, True),
    "other tables": ('{"directories": {"test": "t"}, "config": {"build": "b"}, "scripts": {"test": "x"}}', True, False),
    "npm init": ('{"scripts": {"test": "echo \\"Error: no test specified\\" && exit 1", "build": "x"}}', False, True),
    "echo": ('{"scripts": {"test": "echo none yet", "build": "x"}}', False, True),
    "echo and pass": ('{"scripts": {"test": "echo \\"none; yet\\" && exit 0", "build": "x"}}', False, True),
    "a message": (json.dumps({"scripts": {"test": "node -e \"console.log('none yet')\"", "build": "x"}}), False, True),
    "a message first": ('{"scripts": {"test": "echo now && x"}}', True, False),
    "code": ('{"scripts": {"test": "node -e \\"run(console.log)\\""}}', True, False),
    "a sign at the end": ('{"scripts": {"test": "jest;"}}', True, False),
    "never fails": ('{"scripts": {"test": "jest || true", "build": "x"}}', False, True),
    "no text": ('{"scripts": {"test": 5, "build": "x"}}', False, True),
    "a mark in front": ('\ufeff{"scripts": {"test": "x"}}', True, False),
}


@pytest.mark.parametrize(("package", "tests", "builds"), PACKAGES.values(), ids=PACKAGES)
def test_a_package_is_read_as_json(*, package: str, tests: bool, builds: bool, tmp_path: Path):
    script = script_for(tmp_path, {"package.json": package})
    assert ("npm run test" in script, "npm run build" in script) == (tests, builds)
    assert ("no tests were found" in script) == (not tests)


LOSSES = {
    "a pipe": ({"package.json": '{"scripts": {"test": "node a.js | tee log"}}'}, "| tee"),
    "a pipe of a script that it names": (
        {"package.json": '{"scripts": {"test": "npm run unit", "unit": "jest || true"}}'},
        "|| true",
    ),
    "a step of make": ({"Makefile": "test: unit\nunit:\n\t-./check.sh\n"}, "-./check.sh"),
    "a last word": ({"package.json": '{"scripts": {"test": "node a.js; echo done"}}'}, "; echo done"),
    "a step that cleans": (
        {"Makefile": "test: clean\n\t-mkdir b\n\t./check.sh\nclean:\n\t-rm -f a\n\trm b || true\n"},
        "",
    ),
    "a pipe of make": ({"Makefile": "test:\n\t./check.sh 2>&1 | tee log\n"}, "| tee"),
    "composer": ({"composer.json": '{"scripts": {"test": ["phpunit; true"]}}'}, ""),
    "a pipe that fails": (
        {"Makefile": "SHELL = bash\n.SHELLFLAGS = -o pipefail -c\ntest:\n\t./check.sh | tee log\n"},
        "",
    ),
    "a sign in quotes": ({"package.json": '{"scripts": {"test": "jest -t \'a | b\'"}}'}, ""),
    "another command": ({"package.json": '{"scripts": {"test": "jest", "lint": "eslint . || true"}}'}, ""),
    "a step after the tests": (
        {"package.json": '{"scripts": {"test": "npm run unit; npm run lint"}}'},
        "; npm run lint",
    ),
    "tests in the background": ({"package.json": '{"scripts": {"test": "jest & wait"}}'}, "& wait"),
    "the next turn of a loop": ({"Makefile": "test:\n\tfor t in *.sh; do sh $$t; done\n"}, "; done"),
    "a loop that ends": ({"Makefile": "test:\n\tfor t in *.sh; do sh $$t || exit 1; done\n"}, ""),
    "a step before the tests": (
        {"package.json": '{"scripts": {"test": "cd web; rm -rf out; if [ -d x ]; then jest; fi"}}'},
        "",
    ),
    "an exit code that is kept": ({"package.json": '{"scripts": {"test": "jest; code=$?; rm a; exit $code"}}'}, ""),
    "an exit code that is only told": (
        {"package.json": '{"scripts": {"test": "jest; code=$?; rm a; echo $code"}}'},
        "; echo $code",
    ),
    "a shell within": ({"package.json": """{"scripts": {"test": "bash -c 'jest || true'"}}"""}, "|| true"),
    "a strict shell within": ({"package.json": """{"scripts": {"test": "bash -ec 'jest; rm a'"}}"""}, ""),
    "a failure that is told": ({"package.json": '{"scripts": {"test": "jest || (cat a.log; false)"}}'}, ""),
    "a script of the shell": (
        {"package.json": '{"scripts": {"test": "bash ./t.sh"}}', "t.sh": "#!/bin/bash\njest\nkill $pid\n"},
        "; kill $pid",
    ),
    "a strict script of the shell": (
        {"package.json": '{"scripts": {"test": "bash ./t.sh"}}', "t.sh": "#!/bin/bash\nset -e\njest\nkill $pid\n"},
        "",
    ),
    "make told to ignore": ({"Makefile": ".IGNORE:\ntest:\n\t./check.sh\n"}, ".IGNORE"),
    "Maven told to ignore": (
        {"pom.xml": "<a><testFailureIgnore> true </testFailureIgnore></a>", "src/test/java/ATest.java": ""},
        "testFailureIgnore true",
    ),
    "Maven in a comment": (
        {"pom.xml": "<!-- <testFailureIgnore>true -->", "src/test/java/ATest.java": ""},
        "",
    ),
    "Gradle told to ignore": (
        {"build.gradle": "test { ignoreFailures = true }", "src/test/java/ATest.java": ""},
        "ignoreFailures = true",
    ),
    "an exit code that passes": ({"package.json": '{"scripts": {"test": "jest || [ $? -eq 5 ]"}}'}, "|| [ $? -eq 5 ]"),
    "an exit code that passes in make": ({"Makefile": "test:\n\tjest || test $$? = 5\n"}, "|| test $$? = 5"),
    "a file that has to be there": ({"package.json": '{"scripts": {"test": "jest || [ -f failed.txt ]"}}'}, ""),
    "a command for each file": (
        {"package.json": json.dumps({"scripts": {"test": "find t -name '*.js' -exec node {} \\;"}})},
        "-exec node {}",
    ),
    "a command for each file in quotes": ({"Makefile": "test:\n\tfind t -exec sh {} ';'\n"}, "-exec sh {}"),
    "a command for all files": ({"Makefile": "test:\n\tfind t -exec node --test {} +\n"}, ""),
    "each file is removed": ({"Makefile": "test:\n\tfind t -exec rm {} \\; && ./check.sh\n"}, ""),
    "a list of files": ({"Makefile": "test:\n\tfind t -name 'test*' -print0 | xargs -0 -n1 sh\n"}, ""),
    "a log instead": ({"package.json": '{"scripts": {"test": "jest || cat npm.log"}}'}, "|| cat npm.log"),
    "a log, and then it fails": ({"package.json": '{"scripts": {"test": "jest || (cat npm.log; exit 1)"}}'}, ""),
    "a log, and false": ({"package.json": '{"scripts": {"test": "jest || (cat npm.log && false)"}}'}, ""),
    "an installation first": (
        {
            "package.json": '{"scripts": {"test": "test -d node_modules || npm ci && jest --version || npm i jest && jest"}}'
        },
        "",
    ),
    "containers that come up": (
        {"package.json": '{"scripts": {"test": "docker compose -f ci.yml up tests"}}'},
        "docker compose -f ci.yml up",
    ),
    "the container whose exit code counts": (
        {"package.json": '{"scripts": {"test": "docker-compose up --build --exit-code-from tests"}}'},
        "",
    ),
    "a database that comes up": ({"package.json": '{"scripts": {"test": "docker compose up -d && jest"}}'}, ""),
    "one shell for all steps": (
        {"Makefile": ".ONESHELL:\ntest:\n\tcd web\n\tjest unit\n\tcd ..\n\t./check.sh\n"},
        "; cd ..",
    ),
    "one strict shell": ({"Makefile": ".ONESHELL:\n.SHELLFLAGS=-eu -c\ntest:\n\tjest\n\techo done\n"}, ""),
    "one shell that is set": ({"Makefile": ".ONESHELL:\ntest:\n\tset -e\n\tjest\n\techo done\n"}, ""),
    "a shell for each step": ({"Makefile": "test:\n\tjest\n\techo done\n"}, ""),
    "Maven told to ignore in its options": (
        {"pom.xml": "", ".mvn/maven.config": "-B\n-fn\n", "src/test/java/ATest.java": ""},
        "-fn",
    ),
    "Maven told to fail": (
        {"pom.xml": "", ".mvn/maven.config": "-fae\n-T1C\n", "src/test/java/ATest.java": ""},
        "",
    ),
    "a variable that fails at the end": (
        {"Makefile": "test:\n\t@r=0; for t in *.sh; do ./$$t || r=1; done; exit $$r\n"},
        "",
    ),
    "a variable of the other branch": (
        {"Makefile": "test:\n\tfor t in *.sh; do if ./$$t; then :; else echo no; bad=1; fi; done; [ -z $$bad ]\n"},
        "",
    ),
    "a variable that nothing asks for": (
        {"Makefile": "test:\n\t@for t in *.sh; do ./$$t || r=1; done; echo $$r\n"},
        "; echo $$r",
    ),
    "an exit code that is written down": ({"Makefile": "test:\n\t./check.sh; echo $$? >code\n"}, "; echo $$? >code"),
    "a goal of make that a script names": (
        {"package.json": '{"scripts": {"test": "make test"}}', "Makefile": "test:\n\t-./check.sh\n"},
        "-./check.sh",
    ),
    "a flag of rake where RSpec runs": ({"Rakefile": "t.fail_on_error = false", "spec/a_spec.rb": ""}, ""),
    "a flag of rake": (
        {"Rakefile": "RSpec::Core::RakeTask.new { |t| t.fail_on_error = false }"},
        "fail_on_error = false",
    ),
    "what a step asks first": (
        {"package.json": json.dumps({"scripts": {"test": "s=$(basename $(ps -o x) | sed s/-//); jest $s"}})},
        "",
    ),
    "tests whose output a step asks": (
        {"package.json": json.dumps({"scripts": {"test": "said=$(jest | tail -1); [ -n $said ]"}})},
        "| tail",
    ),
    "words of a case": ({"Makefile": "test:\n\tcase $$X in a|b.sh|c) ;; esac; ./check.sh\n"}, ""),
    "an end with the code of the last step": (
        {"Makefile": "test:\n\tfor t in *.sh; do ./test $$t || exit; done\n"},
        "",
    ),
    "a list of make that looks like an exit code": (
        {"Makefile": "test:\n\t./a_test; if [ $? ]; then echo bad; fi\n"},
        "; if [  ]",
    ),
    "a test that is a question": (
        {"Makefile": "test:\n\tif ./a_test; then echo good; fi\n"},
        "if ./a_test",
    ),
    "a question that ends it": (
        {"Makefile": "test:\n\tif ! ./a_test; then echo bad; exit 1; fi\n"},
        "",
    ),
    "a question about a program": (
        {"Makefile": "test:\n\tif ! pip show pytest; then pip install pytest; fi\n\tpytest\n"},
        "",
    ),
    "two that may fail": ({"package.json": '{"scripts": {"test": "jest || ava"}}'}, ""),
}


@pytest.mark.parametrize(("files", "lost"), LOSSES.values(), ids=LOSSES)
def test_a_command_that_hides_the_failure_of_tests_is_told(files: dict[str, str], lost: str, tmp_path: Path):
    found = build_script_for(lay(tmp_path, files))
    told = [note for note in found.notes if "exit code" in note] if found else []
    assert [f"`{lost}` hides" in note for note in told] == [True] * bool(lost)


def test_a_goal_that_only_speaks_tests_nothing_and_one_of_an_included_file_does(tmp_path: Path):
    assert "make test" not in script_for(tmp_path / "a", {"Makefile": "all:\n\ttrue\ntest:\n\t@echo none yet\n"})
    files = {"Makefile": "include mk/a.mk $(OTHER)\nall:\n", "mk/a.mk": "test:\n\t./a\n"}
    assert "make test" in script_for(tmp_path / "b", files)
    assert "no tests were found" in script_for(tmp_path / "c", {"Makefile": "all:\n\ttrue\ntest:\n"})
    assert "make test" not in script_for(tmp_path / "e", {"Makefile": "all:\n\ttrue\ntest:\n\t@echo none && exit 0\n"})
    assert "make unit-test\n" in script_for(tmp_path / "d", {"Makefile": ".PHONY: unit-test\nunit-test:\n\t./a\n"})


def test_a_script_that_hands_on_to_parts_without_tests_tests_nothing(tmp_path: Path):
    package = '{"scripts": {"test": "nx run-many -t test"}}'
    assert "no tests were found" in script_for(tmp_path / "a", {"package.json": package, "nx.json": "{}"})
    files = {"package.json": package, "apps/a/a.spec.ts": "test('a', () => {})\n"}
    assert "no tests were found" not in script_for(tmp_path / "b", files)


NAMED = '{{"packageManager": "{}@4", "scripts": {{"test": "vitest run"}}, "devDependencies": {{"vitest": "3"}}}}'
SPACES = '{"private": true, "workspaces": ["p/*"]}'
OF_PACKAGES = {
    "its manager is named": ({"package.json": NAMED.format("pnpm")}, ["pnpm install; ", "pnpm run test"], True),
    "Yarn is named": ({"package.json": NAMED.format("yarn")}, ["yarn install; ", "yarn run test"], True),
    "parts have tests": (
        {"package.json": SPACES, "p/a/package.json": '{"scripts": {"test": "vitest run"}}', "pnpm-lock.yaml": ""},
        ["pnpm -r --if-present run test"],
        True,
    ),
    "a script for unit tests": (
        {"package.json": '{"scripts": {"test:watch": "vitest", "test:unit": "vitest run", "test:e2e": "cypress run"}}'},
        ["npm run test:unit"],
        True,
    ),
    "a script whose name is no word": (
        {"package.json": '{"scripts": {"test:a; b {tests_pass}": "node test.js"}}'},
        ["npm run 'test:a; b {tests_pass}'\n"],
        True,
    ),
    "a script that compiles tests": (
        {"package.json": '{"scripts": {"test-compile": "tsc -p .", "build": "tsc"}}'},
        ["npm run build"],
        False,
    ),
    "a script that only asks for tests": (
        {"package.json": json.dumps({"scripts": {"test": 'echo "Write tests!" && exit 1', "build": "x"}})},
        ["npm run build"],
        False,
    ),
    "a script that waits": (
        {"package.json": '{"scripts": {"test:node": "node --inspect-brk test.js", "build": "tsc"}}'},
        ["npm run build"],
        False,
    ),
    "a check beside unit tests": (
        {"package.json": '{"scripts": {"test": "npm run test:lint", "test:lint": "eslint", "test:unit": "x"}}'},
        ["CI=true npm run test\n", "CI=true npm run test:unit\n"],
        True,
    ),
    "no part has tests": (
        {"package.json": SPACES[:-1] + ', "scripts": {"test": "turbo run test"}}', "p/a/package.json": "{}"},
        ["npm run test"],
        False,
    ),
    "no part of lerna has tests": (
        {"package.json": '{"scripts": {"test": "lerna run test"}}', "lerna.json": '{"packages": ["p/*"]}'},
        ["npm run test"],
        False,
    ),
    "a file that tests nothing": (
        {"package.json": '{"scripts": {"test": "node --test"}}', "test/helper.js": "export const x = 1\n"},
        ["npm run test"],
        False,
    ),
    "a file that tests": (
        {"package.json": '{"scripts": {"test": "node --test"}}', "test/a.js": "assert.equal(1, 1)\n"},
        ["npm run test"],
        True,
    ),
}


@pytest.mark.parametrize(("files", "lines", "tested"), OF_PACKAGES.values(), ids=OF_PACKAGES)
def test_a_package_is_tested_as_its_description_says(
    files: dict[str, str], lines: list[str], *, tested: bool, tmp_path: Path
):
    script = script_for(tmp_path, files)
    assert [line for line in lines if line not in script] == []
    assert ("no tests were found" in script) == (not tested)


APP = {"p/a/package.json": '{"scripts": {"build": "x", "test": "x"}, "dependencies": {"b": "workspace:^"}}'}
AROUND = {
    "a lock of pnpm": (
        {"pnpm-lock.yaml": "", **APP},
        ["then pnpm install; fi", "CI=true pnpm run build", "CI=true pnpm run"],
    ),
    "a manager": (
        {"package.json": '{"packageManager": "yarn@4.3.1"}', **APP},
        ["then yarn install; fi", "yarn run test"],
    ),
    "a lock of bun": ({"p/bun.lock": "{}", "yarn.lock": "", **APP}, ["bun run test"]),
    "a lock of its own": ({"pnpm-lock.yaml": "", "p/a/package-lock.json": "{}", **APP}, ["npm ci", "npm run test"]),
    "a manager of its own": (
        {"pnpm-lock.yaml": "", "p/a/package.json": '{"packageManager": "bun@1", "scripts": {"test": "x"}}'},
        ["bun run test"],
    ),
    "Maven's wrapper": ({"mvnw": "", "p/a/pom.xml": ""}, ["sh ../../mvnw --batch-mode"]),
    "Maven's wrapper nearby": ({"mvnw": "", "p/mvnw": "", "p/a/pom.xml": ""}, ["sh ../mvnw --batch-mode"]),
    "Gradle's wrapper": ({"gradlew": "", "p/a/build.gradle.kts": ""}, ["sh ../../gradlew --no-daemon"]),
}


@pytest.mark.parametrize(("files", "lines"), AROUND.values(), ids=AROUND)
@pytest.mark.parametrize("place", ["p/a", ""])
def test_what_stands_around_a_folder_builds_it(files: dict[str, str], lines: list[str], place: str, tmp_path: Path):
    lay(tmp_path / "outside", {"package-lock.json": "", "mvnw": "", "gradlew": ""})
    lay(tmp_path / "outside/top", {".git/HEAD": "", **files})
    script = script_for(tmp_path / "outside/top" / place, {})
    assert [line for line in lines if line not in script] == []


def test_what_stands_around_a_project_without_git_is_none_of_its_own(tmp_path: Path):
    lay(tmp_path, {"pnpm-lock.yaml": "", "mvnw": ""})
    script = script_for(tmp_path / "b", {"package.json": '{"scripts": {"test": "x"}}', "pom.xml": ""})
    assert ("npm run test" in script, "\nmvn --batch" in script) == (True, True)


PYTHONS = {
    "pdm.lock": ["pdm install --frozen-lockfile", "pdm run python -m pytest -q"],
    "Pipfile.lock": ["pipenv sync --dev", "pipenv run python -m pytest -q"],
    "pixi.lock": ["pixi run python -m pytest -q"],
    "poetry.lock": ["poetry install --no-interaction --with test", "poetry run python -m pytest -q"],
}
OPTIONAL = '[tool.poetry.group.test]\noptional = true\n[tool.poetry.group.test.dependencies]\npytest = "^8"\n'


@pytest.mark.parametrize(("lock", "lines"), PYTHONS.items(), ids=PYTHONS)
def test_the_tool_of_a_lock_file_runs_python(lock: str, lines: list[str], tmp_path: Path):
    script = script_for(tmp_path, {lock: "", "pyproject.toml": OPTIONAL, "tests/test_a.py": "def test_a(): ...\n"})
    assert [line for line in lines if line not in script] == []


def test_poetry_adds_a_group_only_where_no_other_one_has_pytest(tmp_path: Path):
    dev = '[tool.poetry.group.dev.dependencies]\npytest = "^8"\n'
    script = script_for(tmp_path, {"poetry.lock": "", "pyproject.toml": OPTIONAL + dev, "test_a.py": ""})
    assert "--no-interaction\n" in script


def test_hatch_tests_where_it_has_environments_and_uv_installs_the_parts_that_have_pytest(tmp_path: Path):
    tests = {"tests/test_a.py": "def test_a(): ...\n"}
    for name, table in (("pyproject.toml", "[tool.hatch.envs.test]\n"), ("hatch.toml", "[envs.test]\n")):
        files = {"pyproject.toml": "", name: table}
        assert "hatch test" in script_for(tmp_path / name, files | tests)
    files = {"uv.lock": "", "pyproject.toml": '[tool.uv.workspace]\nmembers = ["p/*"]\n'}
    files["p/a/pyproject.toml"] = '[dependency-groups]\ndev = ["pytest"]\n'
    assert "uv run --all-packages python" in script_for(tmp_path / "b", files | tests)


@pytest.mark.parametrize("place", ["venv/bin/python", ".venv/bin/python", "p/a/env/bin/python"])
def test_the_python_of_any_environment_beside_the_code_or_above_it_runs_the_tests(place: str, tmp_path: Path):
    files = {"p/a/setup.py": "", "p/a/tests/test_a.py": "import pytest\n", place: "#!/bin/sh\necho 1 passed\n"}
    files[place.replace("bin/python", "pyvenv.cfg")] = ""
    lay(tmp_path, {"build.sh": script_for(tmp_path, files), "tools/python3": "#!/bin/sh\nexit 1\n"})
    assert build(tmp_path, PATH=f"{tmp_path / 'tools'}{os.pathsep}{os.environ['PATH']}").returncode == 0


def test_unittest_finds_tests_whose_files_end_with_test(tmp_path: Path):
    case = "import unittest\n\nclass T(unittest.TestCase):\n    def test_a(self): ...\n"
    assert "discover -p '*_test.py'" in script_for(tmp_path, {"setup.py": "", "a/calc_test.py": case})


@pytest.mark.parametrize(
    ("files", "runner"),
    [
        ({}, "vendor/bin/phpunit"),
        ({"bin/phpunit": "#!/bin/sh\n"}, "bin/phpunit"),
        ({"composer.json": '{"require-dev": {"pestphp/pest": "^3"}}'}, "vendor/bin/pest"),
    ],
)
def test_php_is_tested_by_the_runner_that_the_project_has(files: dict[str, str], runner: str, tmp_path: Path):
    script = script_for(tmp_path, {"phpunit.xml": "", "tests/ATest.php": "", **files})
    assert script.rstrip().endswith(f" {runner}")


def test_one_of_several_solutions_is_named(tmp_path: Path):
    project = '<PackageReference Include="xunit" />'
    assert "dotnet test\n" in script_for(tmp_path / "a", {"A.sln": "", "T/T.csproj": project})
    assert "dotnet test A.sln\n" in script_for(tmp_path / "b", {"A.sln": "", "A.slnx": "", "T/T.csproj": project})
    files = {"A.sln": "", "T.csproj": project, "global.json": '{"test": {"runner": "Microsoft.Testing.Platform"}}'}
    assert "dotnet test --solution A.sln\n" in script_for(tmp_path / "c", files)


def test_tests_for_a_device_are_none_of_the_build(tmp_path: Path):
    script = script_for(tmp_path, {"gradlew": "", "app/src/androidTest/java/ATest.java": "", "settings.gradle": ""})
    assert ("no tests were found" in script, "test-results" in script) == (True, False)


def test_cmake_builds_beside_a_folder_that_git_tracks_and_sets_what_a_preset_sets(tmp_path: Path):
    presets = '{"configurePresets": [{"cacheVariables": {"FEATURE_TESTS": "ON"}}, 5]}'
    files = {"CMakeLists.txt": "if(FEATURE_TESTS)\n  enable_testing()\n  add_test(a)\nendif()\n", "build/a": ""}
    git(lay(tmp_path, files | {"CMakePresets.json": presets}), "init", "-q")
    git(tmp_path, "add", "build/a")
    assert "cmake -S . -B build-out -DFEATURE_TESTS=ON\n" in script_for(tmp_path, {})


def test_a_part_that_a_workspace_leaves_out_is_named_and_one_that_is_tested_is_built(tmp_path: Path):
    files = {"Cargo.toml": '[workspace]\nmembers = ["p/*"]\nexclude = ["p/fuzz"]\n', "p/fuzz/Cargo.toml": ""}
    found = build_script_for(lay(tmp_path / "a", files | {"p/a/Cargo.toml": ""}))
    assert found is not None
    assert "Left out: Rust (p/fuzz/Cargo.toml)" in " ".join(found.notes)
    files = {"pubspec.yaml": "workspace:\n  - p/a\n", "p/a/pubspec.yaml": "", "p/a/test/a_test.dart": ""}
    assert "cd ./p/a\n" in script_for(tmp_path / "b", files)


ODD = ["[]", '"a"', '{"scripts": []}', '{"workspaces": 5, "scripts": 1}', '{"workspaces": {"packages": {"a": 1}}}']


@pytest.mark.parametrize("text", ODD)
def test_odd_descriptions_break_nothing(text: str, tmp_path: Path):
    files = dict.fromkeys(("package.json", "composer.json", "Cargo.toml", "pyproject.toml", "setup.cfg"), text)
    inner = {f"a/{name}": text for name in files}
    rust = '[workspace]\nmembers = 5\n[dependencies]\na = {path = 3}\nb = "1"\n'
    tool = 'tool = {pytest = 5, poetry = [1]}\nproject = "a"\ndependency-groups = 3\n'
    assert "cargo test" in script_for(tmp_path, files | inner | {"go.mod": ""})
    assert "cmake --build" in script_for(
        tmp_path / "c", {"CMakeLists.txt": "", "CMakePresets.json": '{"configurePresets": null}'}
    )
    assert "cargo test" in script_for(
        tmp_path, {"Cargo.toml": rust, "pyproject.toml": tool, "package.json": "[" * 100_000}
    )


CMAKE = {
    "a switch": ('option(A_TESTS "x" OFF)\nif(A_TESTS)\n  enable_testing()\nendif()\n', " -DA_TESTS=ON"),
    "a switch of a folder": (
        "option(A_CHECKS OFF)\nif(A_CHECKS)\n  add_subdirectory(tests)\nendif()",
        " -DA_CHECKS=ON",
    ),
    "a switch that is on": ('option(A_TESTS "x" ON)\nif(A_TESTS)\n  enable_testing()\nendif()\n', ""),
    "CMake's own": ("if(BUILD_TESTING)\n  enable_testing()\nendif()\n", " -DBUILD_TESTING=ON"),
    "its module": ("include(CTest)\nif(BUILD_TESTING)\n  add_test(NAME a COMMAND a)\nendif()\n", ""),
    "switched off": ('option(NO_TESTS "" ON)\nif(NOT NO_TESTS)\n  enable_testing()\nendif()\n', " -DNO_TESTS=OFF"),
    "cached": ("set(A_T OFF CACHE BOOL x)\nif(A_T AND UNIX)\n  enable_testing()\nendif()\n", " -DA_T=ON"),
    "the other branch": ("option(A OFF)\nif(A)\n  x()\nelse()\n  enable_testing()\nendif()\n", ""),
    "an inner file": ('option(A_BUILD_TESTS "x" OFF)\nadd_subdirectory(a)\n', " -DA_BUILD_TESTS=ON"),
    "a switch of that name": ('option(A_TESTS "x" OFF)\noption(SKIP_TESTS OFF)\nenable_testing()\n', " -DA_TESTS=ON"),
    "one switch of several": (
        "option(A_ALL OFF)\noption(A_TESTS OFF)\nif(A_ALL OR A_TESTS)\n  add_test(NAME a COMMAND a)\nendif()\n",
        " -DA_TESTS=ON",
    ),
    "a switch of more tests": (
        'option(A_TEST "x" ${A_MAIN})\noption(A_CUDA_TEST OFF)\nif(A_TEST)\n  add_test(NAME a COMMAND a)\nendif()\n',
        "",
    ),
    "CTest's switch": ("option(BUILD_TESTING OFF)\ninclude(CTest)\n", " -DBUILD_TESTING=ON"),
    "a comment": ("# option(A_TESTS OFF)\nenable_testing()\n", ""),
    "a name with dashes": (
        'option(no-tests "Skip them" ON)\nenable_testing()\nif(NOT no-tests)\nadd_test(NAME a COMMAND a)\nendif()',
        " -Dno-tests=OFF",
    ),
}


def test_cmake_follows_the_folders_that_it_adds(tmp_path: Path):
    inner = {"a/CMakeLists.txt": "add_subdirectory(b)\n", "a/b/CMakeLists.txt": "add_test(NAME a COMMAND a)\n"}
    text = "option(A_EXTRA OFF)\noption(A_SLOW_TESTS OFF)\nenable_testing()\n"
    plain = script_for(tmp_path / "plain", {"CMakeLists.txt": f"{text}add_subdirectory(a)\n", **inner})
    assert "cmake -S . -B build\n" in plain
    off = script_for(
        tmp_path / "off", {"CMakeLists.txt": f"{text}if(A_EXTRA)\nadd_subdirectory(a)\nendif()\n", **inner}
    )
    assert "cmake -S . -B build -DA_EXTRA=ON\n" in off


@pytest.mark.parametrize(("text", "options"), CMAKE.values(), ids=CMAKE)
def test_cmake_switches_tests_on(text: str, options: str, tmp_path: Path):
    script = script_for(tmp_path, {"CMakeLists.txt": text})
    assert f"cmake -S . -B build{options}\n" in script
    assert "ctest --output-on-failure --no-tests=error" in script


# Files of a project, what is built of it in the titles, and what is named as left out.
PARTS = {
    "another language below": ({"go.mod": "", "web/package.json": "{}"}, "Go", "JavaScript (web/package.json)"),
    "another language beside it": ({"Cargo.toml": "", "app.py": ""}, "Rust", "Python (app.py)"),
    "scripts below": ({"go.mod": "", "tools/a.py": ""}, "Go", "Python (tools/a.py)"),
    "a Makefile": ({"Cargo.toml": "", "Makefile": "test:\n"}, "Rust", "make (Makefile)"),
    "deep down": ({"go.mod": "", "a/b/c/pubspec.yaml": ""}, "Go", "Dart (a/b/c/pubspec.yaml)"),
    "a language of which no build is known": (
        {"package.json": '{"scripts": {"test": "x"}}', **dict.fromkeys(["src/a.adb", "src/b.adb", "src/c.ads"], "")},
        "JavaScript",
        "Ada (src/a.adb)",
    ),
    "files called like those of a language": (
        {"package.json": '{"scripts": {"test": "x"}}', "a.adb": "", "b.adb": ""},
        "JavaScript",
        "",
    ),
    "two such files beside one of the language that is built": (
        {"go.mod": "", "tools/go.mod": "", "main.go": ""},
        "Go",
        "",
    ),
    "fewer files of it": (
        {"a.py": "", **dict.fromkeys(["b.py", "c.py", "d.py", "a.adb", "b.adb", "c.adb"], "")},
        "Python",
        "",
    ),
    "a package outside of the workspace": (
        {"Cargo.toml": '[workspace]\nmembers = ["crates/*"]', "crates/a/Cargo.toml": "", "fuzz/Cargo.toml": ""},
        "Rust",
        "Rust (fuzz/Cargo.toml)",
    ),
    "a module outside of the workspace": (
        {"go.work": "go 1.24\nuse (\n\t./a\n)\n", "a/go.mod": "", "b/go.mod": ""},
        "Go",
        "Go (b/go.mod)",
    ),
    "a path in the workspace": (
        {"Cargo.toml": '[workspace]\n[dependencies]\na = {path = "./a"}', "a/Cargo.toml": ""},
        "Rust",
        "",
    ),
    "workspaces": (
        {"package.json": '{"workspaces": ["./p/*"], "scripts": {"test": "x"}}', "p/a/package.json": "{}"},
        "JavaScript",
        "",
    ),
    "modules of Maven": (
        {"pom.xml": "<module>a</module>", "a/pom.xml": "<module>b</module>", "a/b/pom.xml": ""},
        "Maven",
        "",
    ),
    "a module in a comment": (
        {"pom.xml": "<!-- <module>a</module> -->", "a/pom.xml": ""},
        "Maven",
        "Maven (a/pom.xml)",
    ),
    "projects of Gradle": ({"settings.gradle": "include ':a:b'", "a/b/build.gradle": ""}, "Gradle", ""),
    "projects of a solution": ({"a.sln": '"a", "a\\b\\b.csproj"', "a/b/b.csproj": ""}, ".NET", ""),
    "modules of Go": ({"go.mod": "", "a/go.mod": ""}, "Go", ""),
    "folders of CMake": ({"CMakeLists.txt": "add_subdirectory(a)", "a/CMakeLists.txt": ""}, "CMake", ""),
    "tests of Python": ({"setup.py": "", "tests/test_a.py": ""}, "Python", ""),
    "what git ignores mostly": ({"go.mod": "", "node_modules/a/package.json": "{}", "vendor/a/setup.py": ""}, "Go", ""),
    "Swift": (
        {"Package.swift": "", "Tests/a.swift": "", "CMakeLists.txt": "", "Sources/a/CMakeLists.txt": ""},
        "Swift",
        "",
    ),
    "Swift without tests": ({"Package.swift": "", "CMakeLists.txt": "", "Sources/a/a.swift": ""}, "Swift", ""),
    "a package of Swift around a library in C": (
        {"Package.swift": "", "CMakeLists.txt": "", "meson.build": "", "src/a.c": ""},
        "CMake",
        "Swift (Package.swift)",
    ),
    "tests of a package": (
        {"package.json": '{"scripts": {"test": "x"}}', "test/a.test.js": "", "test/b/c.test.js": ""},
        "JavaScript",
        "",
    ),
    "sources beside the tests": (
        {"pyproject.toml": '[tool.pytest]\ntestpaths = ["tests"]', "a/b.py": "", "tests/test_a.py": ""},
        "Python",
        "",
    ),
    "a lock file alone": ({"go.mod": "", "js-store/yarn.lock": ""}, "Go", ""),
    "a part that cannot pass": (
        {"a/pubspec.yaml": "", "a/test/a_test.dart": "", "b/pubspec.yaml": ""},
        "Dart",
        "Dart (b/pubspec.yaml)",
    ),
    "requirements of tools": ({"requirements.txt": "", "meson.build": ""}, "Meson", "Python (requirements.txt)"),
    "a Makefile with goals": ({"Makefile": "all:\n", "meson.build": ""}, "make", "Meson (meson.build)"),
    "folders of Meson": ({"meson.build": "", "a/meson.build": ""}, "Meson", ""),
    "vendored parts": (
        {"deps/a/CMakeLists.txt": "", "b/go.mod": ""},
        "Go",
        "CMake (deps/a/CMakeLists.txt)",
    ),
    "a language without a build": (
        {"go.mod": "", "a.go": "", "native/b.nim": ""},
        "Go",
        "Nim (native/b.nim)",
    ),
    "a few files of a language": (
        {"go.mod": "", "x.nim": "", **{f"{number}.go": "" for number in range(10)}},
        "Go",
        "",
    ),
    "packages that one of the workspace takes from a path": (
        {
            "Cargo.toml": '[workspace]\nmembers = ["a"]\n',
            "a/Cargo.toml": '[dependencies]\nb = {path = "../b"}\n',
            "b/Cargo.toml": '[dev-dependencies]\nc = {path = "../c"}\n',
            "c/Cargo.toml": "",
            "d/Cargo.toml": "",
        },
        "Rust",
        "Rust (d/Cargo.toml)",
    ),
    "packages of Cabal": (
        {
            "cabal.project": "packages:\n  .\n  a\n  ./b/*.cabal\n",
            "x.cabal": "test-suite t",
            **dict.fromkeys(["a/a.cabal", "b/b.cabal", "c/c.cabal"], ""),
        },
        "Haskell",
        "Haskell (c/c.cabal)",
    ),
    "packages of Stack": (
        {"stack.yaml": "packages:\n- '.'\n- a/\n", "x.cabal": "test-suite t", "a/a.cabal": ""},
        "Haskell",
        "",
    ),
    "tests that pytest does not search": (
        {
            "setup.cfg": "[tool:pytest]\ntestpaths = test src/a\n",
            "test/test_a.py": "",
            "src/a/test_b.py": "",
            **dict.fromkeys(["tests/test_c.py", "src/test_d.py"], "def test_x(): pass\n"),
            "src/test_run.py": "class TestRun: ...\n",
        },
        "Python",
        "2 files outside of testpaths (src/test_d.py)",
    ),
    "tests whose names pytest does not look for": (
        {
            "pytest.ini": "[pytest]\npython_files = test_*.py test/check.py . [\n",
            "test/base.py": "class Base(TestCase):\n    def test_a(self): ...\n",
            "test/test_a.py": "import base\n",
            "test/cli_tests.py": "class A(unittest.TestCase):\n    def test_b(self): ...\n",
            **dict.fromkeys(["test/test.py", "test/conftest.py", "test/check.py"], "def test_c(): ...\n"),
        },
        "Python",
        "2 files whose names pytest does not look for (test/cli_tests.py)",
    ),
    "tests behind tags of Go": (
        {
            "go.mod": "",
            "a_test.go": "//go:build linux && !race || go1.22\n\npackage a\n",
            "b_test.go": "//go:build (linux && e2e) || e2e\n\npackage a\n",
            "c_test.go": "// +build e2e,linux integration\n\npackage a\n",
            "d_test.go": "// +build e2e linux\n\npackage a\n",
        },
        "Go",
        "2 files of tests behind build tags (b_test.go)",
    ),
    "tests behind features of Cargo": (
        {
            "Cargo.toml": '[workspace]\nmembers = ["a", "b"]\n',
            "a/Cargo.toml": (
                '[features]\ndefault = ["x"]\nx = ["y"]\n[[test]]\nname = "s"\nrequired-features = ["y", "of-b"]\n'
                '[[test]]\nname = "t"\nrequired-features = ["z"]\n[[test]]\npath = "u.rs"\ntest = false\n'
            ),
            "b/Cargo.toml": '[dependencies]\na = {path = "../a", features = ["of-b"]}\n',
        },
        "Rust",
        "2 files of tests that Cargo skips (a/tests/t.rs)",
    ),
    "packages whose tests have another name": (
        {
            "package.json": '{"scripts": {"test": "lerna run test:x"}, "workspaces": ["p/*"]}',
            "p/a/package.json": '{"scripts": {"test:unit": "jest", "test:x": "x"}}',
            **dict.fromkeys(["p/b/package.json", "p/c/package.json"], '{"scripts": {"test:unit": "jest"}}'),
        },
        "JavaScript",
        "the tests of 2 packages without a script `test` (p/b/package.json)",
    ),
    "packages that did not change": (
        {
            "package.json": '{"scripts": {"test": "lerna run test --since=main"}, "workspaces": ["a"]}',
            "a/package.json": '{"scripts": {"test": "x"}}',
        },
        "JavaScript",
        "what `--since` treats as unchanged",
    ),
    "folders of tests that are not there": (
        {"pytest.ini": "[pytest]\ntestpaths = tests\n", "src/test_a.py": "def test_a(): pass\n"},
        "Python",
        "",
    ),
    "a package of Swift without tests beside make": (
        {"Package.swift": "", "a.swift": "", "Makefile": "test:\n\t./a\n"},
        "make",
        "Swift (Package.swift)",
    ),
    "a program without tests beside make": (
        {"Cargo.toml": "", "src/main.rs": "", "Makefile": "test:\n\t./a\n"},
        "Rust, make",
        "",
    ),
    "helpers that are built beside what most files are": (
        {"Cargo.toml": "", "src/a.rs": "", "Makefile": "test:\n\t./a\n", **dict.fromkeys(["a.c", "b.c"], "")},
        "Rust, make",
        "",
    ),
    "make that runs the tests that run already": (
        {
            "pyproject.toml": "",
            "test_a.py": "import pytest",
            "Makefile": "test:\n\tpytest\n",
            **dict.fromkeys(["static/a.js", "static/b.js", "static/c.js"], ""),
        },
        "Python",
        "make (Makefile)",
    ),
    "parts of a part that is left out": (
        {
            "A.slnx": '<Project Path="a/a.csproj" />',
            "a/a.csproj": "",
            "b/B.slnx": '<Project Path="c/c.csproj" />',
            **dict.fromkeys(["b/c/c.csproj", "b/d/d.csproj"], ""),
        },
        ".NET",
        ".NET (b/B.slnx), .NET (b/d/d.csproj)",
    ),
    "make that a script runs": (
        {"package.json": '{"scripts": {"test": "make test"}}', "Makefile": "test:\n\tjest\n", "a.c": "", "b.c": ""},
        "JavaScript",
        "",
    ),
    "a folder that a pattern ends with": (
        {"package.json": '{"scripts": {"test": "x"}, "workspaces": ["a/**"]}', "a/package.json": "{}"},
        "JavaScript",
        "",
    ),
    "packages of Deno": (
        {
            "deno.json": '{"workspace": ["./a"]}',
            "a/deno.json": "",
            "a/b_test.ts": "",
            "b/deno.json": "",
            "b/c_test.ts": "",
        },
        "Deno",
        "Deno (b/deno.json)",
    ),
    "packages whose classes a package of PHP loads": (
        {
            "composer.json": '{"autoload": {"psr-4": {"A\\\\": "src/A/", "B\\\\": ["src/B"]}}}',
            "phpunit.xml": "",
            "tests/ATest.php": "",
            **dict.fromkeys(["src/A/b/composer.json", "src/B/composer.json", "c/composer.json"], ""),
        },
        "PHP",
        "PHP (c/composer.json)",
    ),
    "a helper in the folder of tests": (
        {"go.mod": "", "test/a.mjs": "export const x = 1\n", "test/a_test.go": "// test()\n"},
        "Go",
        "JavaScript (test/a.mjs)",
    ),
    "folders alone": (
        {"s/a/go.mod": "", "s/b/Cargo.toml": "", "docs/package.json": "{}"},
        "Go, Rust",
        "JavaScript (docs/package.json)",
    ),
}


@pytest.mark.parametrize(("files", "built", "left_out"), PARTS.values(), ids=PARTS)
def test_every_language_is_built_or_named_as_left_out(files: dict[str, str], built: str, left_out: str, tmp_path: Path):
    found = build_script_for(lay(tmp_path, files))
    assert found is not None
    assert ", ".join(title.partition(" (")[0] for title in found.titles) == built
    told = [note for note in found.notes if note.startswith("Left out")]
    assert told == ([f"Left out: {left_out}. Add to build.sh what should count."] if left_out else [])
    assert ("# Left out: " in found.text) == bool(left_out)


@pytest.mark.parametrize("text", ["[tool.ruff]\n", "[tool.pytest.ini_options]\n"])
def test_projects_below_one_without_tests_of_its_own_are_tested_each(text: str, tmp_path: Path):
    files = {"pyproject.toml": text}
    for name in ("a", "b"):  # pytest cannot import both from above
        files |= {f"{name}/pyproject.toml": "", f"{name}/tests/__init__.py": "", f"{name}/tests/conftest.py": ""}
        files[f"{name}/tests/test_x.py"] = "def test_x(): ...\n"
    script = script_for(tmp_path, files)
    assert ("cd ./a\n" in script, "cd ./b\n" in script) == ("ruff" in text, "ruff" in text)
    assert ("# Python (pyproject.toml)\n" in script) == ("ruff" not in text)


@pytest.mark.parametrize("helper", ["tools/c.py", "c.py", "docs/c.txt", "tools/Makefile"])
def test_helpers_stand_for_no_project_that_nothing_builds(helper: str, tmp_path: Path):
    files = {"src/a.zig": "", "src/b.zig": "", "tools/d.zig": "", helper: "all:\n" if "Make" in helper else "d = 1\n"}
    found = build_script_for(lay(tmp_path, files))
    assert found is not None
    assert "No build was found for Zig (src/a.zig): build.sh fails until it has one." in found.notes
    lay(tmp_path, {"build.sh": found.text})
    done = build(tmp_path)
    assert (done.returncode, done.stderr) == (1, "build.sh: put the commands here that build and test the Zig files\n")


def test_what_holds_of_several_parts_is_told_once(tmp_path: Path):
    parts = [f"{name}/Cargo.toml" for name in "abcdefgh"]
    found = build_script_for(lay(tmp_path, dict.fromkeys(parts, "")))
    assert found is not None
    named = ", ".join(f"Rust ({part})" for part in parts[:6])
    locks = ", ".join(f"{name}/Cargo.lock" for name in "abcdef")
    assert found.notes == [
        f"No tests were found for {named}, 2 more parts: build.sh says only whether they build.",
        f"The first build writes {locks}, 2 more files: commit them, or let git ignore them.",
    ]


def test_every_module_of_go_is_built_and_tested_also_a_new_one(tmp_path: Path):
    root = tmp_path / "project"
    tool = '#!/bin/sh\necho "ok ${PWD##*/}"\n[ "$1" != test ] || [ ! -e bad ]\n'
    script = script_for(root, {"go.mod": "", "a b/go.mod": "", "a b/a_test.go": "", "../tools/go": tool})
    lay(root, {"build.sh": script, "testdata/x/go.mod": ""})
    done = build(root)
    assert (done.returncode, sorted(done.stdout.split("\n"))) == (0, ["", *["ok a b"] * 2, *["ok project"] * 2])
    lay(root, {"new/go.mod": "", "new/bad": ""})
    assert build(root).returncode == 1


def test_rspec_that_only_lends_its_words_does_not_run(tmp_path: Path):
    script = script_for(tmp_path, {"Gemfile": "gem 'rspec'\n", "Rakefile": "TestTask", "test/test_a.rb": ""})
    assert ("rake test" in script, "rspec" in script) == (True, False)


def test_rspec_and_minitest_both_run_beside_rails(tmp_path: Path):
    both = script_for(tmp_path / "a", {"bin/rails": "", "test/models/a_test.rb": "", "spec/models/a_spec.rb": ""})
    assert ("bin/rails test" in both, "$run rspec" in both) == (True, True)
    rspec = script_for(tmp_path / "b", {"bin/rails": "", "Gemfile": "  gem 'rspec-rails'\n"})
    assert ("bin/rails test" in rspec, "$run rspec" in rspec) == (False, True)


@pytest.mark.parametrize("task", ["task default: :deploy\n", "# task default: :test\n", "task :release\n"])
def test_rake_runs_no_default_that_may_be_anything(task: str, tmp_path: Path):
    assert build_script_for(lay(tmp_path, {"Rakefile": task})) is None


LEAVES = {
    "Cargo.toml": "target/",
    "CMakeLists.txt": "build/",
    "pom.xml": "target/",
    "build.gradle": "build/ .gradle/",
    "a.csproj": "bin/ obj/",
    "mix.exs": "_build/ deps/",
    "Package.swift": ".build/",
    "pubspec.yaml": ".dart_tool/",
    "phpunit.xml": "vendor/ .phpunit.cache/ .phpunit.result.cache",
    "uv.lock": ".venv/ *.egg-info/",
}


@pytest.mark.parametrize("name", LEAVES)
def test_git_ignores_what_the_build_leaves_behind(name: str, tmp_path: Path, run_code_commit: Run):
    lay(tmp_path, {name: "", "target/kept.txt": "a file of the project\n"})
    git(tmp_path, "init", "-q")
    if name == "pom.xml":
        git(tmp_path, "add", "-A")
    assert run_code_commit(tmp_path, "init").returncode == 0
    ignored = set((tmp_path / ".gitignore").read_text().split("\n"))
    assert (set(LEAVES[name].split()) <= ignored) == (name != "pom.xml"), "what git tracks is not ignored"


def test_what_a_build_does_not_do_is_said(tmp_path: Path, run_code_commit: Run):
    lay(tmp_path, {"Cargo.toml": "", "web/package.json": "{}", "b.py": ""})
    said = " ".join(run_code_commit(tmp_path, "init").stdout.split())
    assert "Left out: Python (b.py), JavaScript (web/package.json). Add to build.sh what should count." in said
    assert "No tests were found for Rust (Cargo.toml): build.sh says only whether it builds." in said
    assert "The first build writes Cargo.lock: commit it, or let git ignore it." in said


@pytest.mark.slow
def test_a_build_of_files_alone_writes_none(tmp_path: Path, run_code_commit: Run):
    lay(tmp_path, {"a.py": "b = 1\n", "lib/c.py": "d = 1\n"})
    git(tmp_path, "init", "-q")
    run_code_commit(tmp_path, "init")
    assert build(tmp_path).returncode == 0
    assert not list(tmp_path.rglob("__pycache__"))
    (tmp_path / "lib/c.py").write_text("d = (\n")
    assert build(tmp_path).returncode != 0


BESIDE_MAKE = {
    "a runner": ("test:\n\tpython3 -m pytest -q\n", False),
    "a runner in a variable": ("PYTEST ?= pytest\ntest: unit\nunit:\n\t$(PYTEST) -x\n", False),
    "each by its name": ("test:\n\tpython3 ./test_a.py\n", False),
    "no runner of Python": ("test: gen\n\t./test_c\ngen:\n\tpython3 gen.py\n", True),
}


@pytest.mark.parametrize(("makefile", "is_run"), BESIDE_MAKE.values(), ids=BESIDE_MAKE)
def test_loose_tests_run_once_beside_make(*, makefile: str, is_run: bool, tmp_path: Path):
    files = {"Makefile": makefile, "test_a.py": "def test_a(): pass\n", "tests/test_b.py": "def test_b(): pass\n"}
    found = build_script_for(lay(tmp_path, files))
    assert found is not None
    assert "make test" in found.text
    assert ("-m pytest" in found.text) == is_run
    assert not any("Left out" in note for note in found.notes)


def _spaces(size: int) -> dict[str, str]:
    names = [f"p/{number}" for number in range(size // 200)]
    package = json.dumps({"workspaces": names, "scripts": {}})
    return {"package.json": package} | {f"{name}/package.json": '{"scripts": {"test": "x"}}' for name in names}


def _test(script: str, **scripts: str) -> dict[str, str]:
    return {"package.json": json.dumps({"workspaces": ["x"], "scripts": {"test": script} | scripts})}


HOSTILE = {
    "listed parts": _spaces,
    "patterns": lambda size: {"package.json": json.dumps({"workspaces": [f"x{n}/*" for n in range(size // 10)]})},
    "blanks": lambda size: _test(f"x; echo{' ' * size};x"),
    "marks": lambda size: _test("; " * size + "x"),
    "words": lambda size: _test("node " * size),
    "a chain": lambda size: _test("run s0", **{f"s{n}": f"run s{n + 1}" for n in range(size // 10)}),
    "names of tests": lambda size: _test("x", **{f"test:{n}": f"run test:{n + 1}" for n in range(size // 10)}),
    "variables": lambda size: _test("test || else a " * (size // 10)),
    "questions": lambda size: _test("if test a " * (size // 10)),
    "answers": lambda size: _test("if test; then " * (size // 10)),
    "asides": lambda size: _test("$(a | " * (size // 10)),
    "words of a case": lambda size: _test("a|" * (size // 2)),
    "packages of a workspace": lambda size: (
        _test("lerna run " + " ".join(f"test:{n}" for n in range(size // 200)))
        | {"lerna.json": '{"packages": ["p/*"]}'}
        | {f"p/{n}/package.json": '{"scripts": {"test:unit": "x"}}' for n in range(size // 200)}
    ),
    "tests of Python": lambda size: (
        {"pytest.ini": "[pytest]\n"}
        | {f"tests/a{n}.py": f"import a{n + 1}\ndef test_a(): ...\n" for n in range(size // 200)}
    ),
    "a constraint of Go": lambda size: {"go.mod": "", "a_test.go": "//go:build " + "a || " * (size // 5)},
    "a chain of features": lambda size: {
        "Cargo.toml": "[features]\ndefault = ['a0']\n" + "".join(f"a{n} = ['a{n + 1}']\n" for n in range(size // 20))
    },
    "a chain of crates": lambda size: (
        {"Cargo.toml": '[workspace]\nmembers = ["c/0"]\n'}
        | {f"c/{n}/Cargo.toml": f'[dependencies]\na = {{path = "../{n + 1}"}}\n' for n in range(size // 200)}
    ),
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_the_time_is_linear_in_the_size(kind: str, tmp_path: Path, *, whole: bool):
    def seconds_for(size: int) -> float:
        root = lay(tmp_path / str(size), HOSTILE[kind](size))
        start = time.process_time()
        build_script_for(root)
        return time.process_time() - start

    size = 50_000 if whole else 20_000
    assert seconds_for(4 * size) < 6 * seconds_for(size) + size / 100_000


def test_a_pattern_of_many_stars_takes_no_time(tmp_path: Path):
    package = json.dumps({"workspaces": ["**/" * 30 + "x*" * 20 + "y"]})
    files = {"package.json": package, f"{'a/' * 20}{'x' * 60}/package.json": '{"scripts": {"test": "x"}}'}
    found = build_script_for(lay(tmp_path, files))
    assert found is None or "npm" not in found.text
