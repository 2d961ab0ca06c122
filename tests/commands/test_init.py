"""`init`: what it writes into which project, that it touches nothing, and that its build.sh builds and fails truly."""

import json
import os
import pwd
import shutil
import stat
import subprocess
import tomllib
import venv
from pathlib import Path

import pytest
from command import Run, git
from fake_server import FakeServer

from code_commit import api
from code_commit.commands.build_scripts import build_script_for
from code_commit.llm import local

NEXT = ["code-commit check -m", "code-commit -m", "query.txt", "code-commit rollup", "code-commit check;"]


def lay(root: Path, files: dict[str, str]) -> Path:
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    return root


def build(root: Path, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["./build.sh"],
        cwd=root,
        env=os.environ | env,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )


def assert_valid(script: str) -> None:
    done = subprocess.run(["bash", "-n"], input=script, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


PACKAGE = '{"scripts": {"build": "tsc", "test": "jest"}, "devDependencies": {"jest": "*"}}'

# Files of a project, then commands of its script in their order; "!" before one that must not be there.
KINDS = {
    "pytest or unittest": (
        {"pyproject.toml": ""},
        ["if [ -x .venv/bin/python ]", "PYTHONPATH=src", '"$python" -m pytest -q', "unittests discover"],
    ),
    "uv": (
        {"pyproject.toml": '[dependency-groups]\ndev = ["pytest"]\n', "uv.lock": ""},
        ["uv run python -m pytest -q", "!$python"],
    ),
    "Django": ({"requirements.txt": "django", "manage.py": ""}, ["manage.py test", "!pytest"]),
    "Python without a description": ({"tests/test_a.py": ""}, ["-m pytest -q"]),
    "Python files alone": ({"a.py": ""}, ["-m compileall"]),
    "npm": (
        {"package.json": PACKAGE, "package-lock.json": ""},
        ["if [ ! -d node_modules ]; then npm ci; fi", "npm run build", "CI=true npm run test"],
    ),
    "npm without a lock": ({"package.json": PACKAGE}, ["npm install --no-package-lock", "npm run test"]),
    "npm without dependencies": ({"package.json": '{"scripts": {"test": "x"}}'}, ["npm run test", "!npm install"]),
    "pnpm": ({"package.json": PACKAGE, "pnpm-lock.yaml": ""}, ["pnpm install --frozen-lockfile", "pnpm run test"]),
    "yarn": ({"package.json": PACKAGE, "yarn.lock": ""}, ["yarn install --frozen-lockfile", "yarn run test"]),
    "modern yarn": ({"package.json": PACKAGE, "yarn.lock": "", ".yarnrc.yml": ""}, ["yarn install --immutable"]),
    "npm init's test script": (
        {"package.json": '{"scripts": {"build": "x", "test": "echo \\"Error: no test specified\\" && exit 1"}}'},
        ["npm run build", "!run test"],
    ),
    "Node's own tests": ({"package.json": "{}", "a.test.js": "test('a')"}, ["node --test"]),
    "broken package.json beside Go": ({"package.json": "{", "go.mod": ""}, ["!npm", "go test ./..."]),
    "Go workspace": ({"go.work": "", "go.mod": ""}, ["xargs go build", "xargs go test", "!./..."]),
    "Maven wrapper": ({"pom.xml": "", "mvnw": ""}, ["sh ./mvnw ", "!\nmvn "]),
    "Gradle": ({"build.gradle.kts": ""}, ["gradle --no-daemon"]),
    ".NET": ({"My App.sln": "", "b.csproj": ""}, ["# .NET (My App.sln)", "dotnet test", "!b.csproj"]),
    "RSpec": ({"Gemfile": "", "spec/a_spec.rb": ""}, ["bundle install", "$run rspec"]),
    "Rake": ({"Rakefile": "Rake::TestTask.new"}, ["$run rake test"]),
    "Rake's default": ({"Rakefile": "task default: %i[build spec]"}, ["$run rake\n"]),
    "Composer script": ({"composer.json": '{"scripts": {"test": "x"}}'}, ["composer run-script test"]),
    "PHPUnit": ({"composer.json": "{}", "phpunit.xml.dist": ""}, ["composer install", "vendor/bin/phpunit"]),
    "Flutter": ({"pubspec.yaml": "dependencies:\n  flutter:\n    sdk: flutter\n"}, ["flutter test", "!dart"]),
    "CMake": ({"CMakeLists.txt": "enable_testing()\n"}, ["cmake -S . -B build", "cmake --build build", "ctest"]),
    "CMake without tests": (
        {"CMakeLists.txt": "", "Makefile": "test:\n"},
        ["cmake --build build", "!ctest", "!make test"],
    ),
    "make": ({"Makefile": ".PHONY: all test\nall: a\ntest: a\n"}, ["\nmake all\n", "\nmake test\n", "!make check"]),
    "make whose first target is check": (
        {"Makefile": "X := a:b\n.PHONY: check\ncheck: a\n\ttrue\n"},
        ["\nmake check\n", "!make all"],
    ),
    "make whose first target is a variable's": ({"Makefile": "$(BIN): a.c\ncheck:\n"}, ["else make check", "!make\n"]),
    "a make beside Rust": ({"Cargo.toml": "", "Makefile": "test:\n"}, ["cargo test", "!make test"]),
    "several at once": (
        {"pyproject.toml": "", "package.json": PACKAGE, "Cargo.toml": "", "go.mod": "", "test_a.py": ""},
        ["cargo test", "-m pytest", "npm run test", "go test"],
    ),
    "pre-commit's hooks before folders": (
        {".pre-commit-config.yaml": "", "a/go.mod": ""},
        ["hooks || hooks", "cd ./a"],
    ),
    "in folders": (
        {"web app/package.json": PACKAGE, "api/go.mod": "", "node_modules/x/package.json": PACKAGE, ".x/go.mod": ""},
        ["cd ./api\ngo build", "cd './web app'", "npm run test", "!node_modules/x", "!.x"],
    ),
}


@pytest.mark.parametrize(("files", "expected"), KINDS.values(), ids=KINDS.keys())
def test_the_script_fits_the_project(files, expected, tmp_path: Path):
    found = build_script_for(lay(tmp_path, files))
    assert found is not None
    script = found.text
    assert_valid(script)
    assert script.startswith("#!/usr/bin/env bash\n")
    assert "set -euo pipefail\n" in script
    position = 0
    for command in expected:
        if command.startswith("!"):
            assert command[1:] not in script
        else:
            assert command in script[position:], script
            position = script.index(command, position)


WRITTEN = ("agent-config.example/*", "build.sh.example", "docs/ci-examples/*", "system_prompts/[!e_]*.txt")


def test_what_is_written_fits_into_80_columns(tmp_path: Path, run_code_commit: Run):
    root = Path(__file__).parents[2]
    texts = [build_script_for(lay(tmp_path / str(n), files)).text for n, (files, _) in enumerate(KINDS.values())]
    texts += [path.read_text() for name in WRITTEN for path in root.glob(name)]
    assert [line for text in texts for line in text.split("\n") if len(line) > 80] == []


@pytest.mark.parametrize("files", [{}, {"notes.txt": "x"}, {"package.json": "{}"}, {".hidden/go.mod": ""}])
def test_nothing_recognised_gives_the_example(files, tmp_path: Path, run_code_commit: Run):
    assert build_script_for(lay(tmp_path, files)) is None
    done = run_code_commit(tmp_path, "init")
    assert done.returncode == 0
    assert "put your build and test commands into it" in done.stdout
    assert build(tmp_path).returncode == 1, "a build that builds nothing must not pass"
    assert_valid((tmp_path / "build.sh").read_text())
    assert "build.sh is still the example" in run_code_commit(tmp_path, "check").stdout
    (tmp_path / "build.sh").write_text("true\n")
    assert "build.sh is still the example" not in run_code_commit(tmp_path, "check").stdout


@pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")
def test_names_of_a_hostile_project_give_no_commands(tmp_path: Path):
    names = ["a\ntouch HACKED\n", "$(touch HACKED)", "`touch HACKED`", "'; touch HACKED; '", "-rf", "\x1b[2J"]
    for name in names:
        (tmp_path / name).mkdir()
        lay(tmp_path / name, {"Makefile": "test:\n\t[ . ]\n"})
    found = build_script_for(tmp_path)
    assert found is not None
    lay(tmp_path, {"build.sh": found.text})
    assert subprocess.run(["bash", "build.sh"], cwd=tmp_path, capture_output=True, check=False).returncode == 0
    assert not list(tmp_path.rglob("HACKED"))
    assert "\x1b" not in found.text


def test_descriptions_that_cannot_be_read_are_passed_over(tmp_path: Path):
    os.mkfifo(tmp_path / "package.json")
    (tmp_path / "go.mod").mkdir()
    (tmp_path / "pyproject.toml").symlink_to("nowhere")
    (tmp_path / "Makefile").write_bytes(b"\xff\x00" * 1000 + b"\ntest:\n" + b"a" * 3_000_000)
    found = build_script_for(tmp_path)
    assert found is not None
    assert "make test" in found.text


@pytest.mark.slow
def test_a_description_of_pathological_text_takes_no_time(tmp_path: Path):
    long = "a" * 1_000_000
    lay(
        tmp_path,
        {"Makefile": long, "CMakeLists.txt": "\n" * 1_000_000, "pubspec.yaml": "\n \n" * 300_000},
    )
    lay(
        tmp_path,
        {"Rakefile": "task" + " " * 1_000_000, "package.json": "[" * 1_000_000, "pyproject.toml": "a.b=" * 250_000},
    )
    assert build_script_for(tmp_path) is not None
    lines = dict.fromkeys(["Gemfile", "go.work", "pnpm-workspace.yaml", "a_test.py"], "\n" * 1_000_000)
    scripts = '{"scripts": {"test": "echo' + " " * 500_000 + '&"}}'
    lay(tmp_path, {**lines, "pom.xml": "<!--" * 250_000, "a/pom.xml": "", "a.csproj": "<!--" * 250_000})
    lay(tmp_path, {"package.json": scripts, "b/package.json": "{}", "b/go.mod": "", "Rakefile": "task " * 200_000})
    assert build_script_for(tmp_path) is not None


PRE_COMMIT = """#!/usr/bin/env bash
[ "$1 $2" = "run --files" ] || exit 9
shift 2
printf '%s\\n' "$@" >>../seen
sed -i.old 's/ *$//' new.txt
if cmp -s new.txt new.txt.old; then [ ! -e bad.txt ]; else exit 1; fi
"""


def test_hooks_see_new_files_may_rewrite_them_and_can_fail(tmp_path: Path, run_code_commit: Run):
    root = lay(tmp_path / "a", {".pre-commit-config.yaml": "", ".gitignore": "*.old\n", "tracked.txt": "x\n"})
    lay(tmp_path, {"bin/pre-commit": PRE_COMMIT})
    (tmp_path / "bin" / "pre-commit").chmod(0o755)
    git(root, "init", "-q")
    git(root, "add", "-A")
    assert "wrote build.sh for pre-commit" in run_code_commit(root, "init").stdout
    lay(root, {"new.txt": "blanks at the end   \n"})
    path = f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}"
    assert build(root, PATH=path).returncode == 0
    assert (root / "new.txt").read_text() == "blanks at the end\n"
    assert {"new.txt", "tracked.txt"} <= set((tmp_path / "seen").read_text().split())
    assert "agent-config/query.txt" not in (tmp_path / "seen").read_text()
    lay(root, {"bad.txt": ""})
    assert build(root, PATH=path).returncode != 0


def test_init_writes_what_is_missing_and_says_what_is_next(tmp_path: Path, run_code_commit: Run):
    lay(tmp_path, {"Cargo.toml": "", ".gitignore": "/target"})
    git(tmp_path, "init", "-q")
    done = run_code_commit(tmp_path, "init")
    assert done.returncode == 0, done.stderr
    assert "wrote build.sh for Rust (Cargo.toml)" in done.stdout
    places = [done.stdout.index(word, done.stdout.index("Next:")) for word in NEXT]
    assert places == sorted(places)
    assert (tmp_path / ".gitignore").read_text() == "/target\n/agent-config\n"
    assert stat.S_IMODE((tmp_path / "agent-config").stat().st_mode) == 0o700
    for path in tmp_path.rglob("*.sh"):
        assert os.access(path, os.X_OK), path
    assert "agent-config" not in git(tmp_path, "status", "--porcelain")
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file() and ".git/" not in str(path)}
    assert "git init" not in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 80
    again = run_code_commit(tmp_path, "init")
    assert "nothing was written" in again.stdout
    assert "Next:" not in again.stdout
    settings = tomllib.loads((tmp_path / "agent-config/config.toml").read_text())
    assert set(settings) == {
        "answer_format",
        "prompt_layout",
        "build_first",
        "codebase_additions",
        "file_replacements",
    }  # as its first lines say
    head = (tmp_path / "agent-config/config.toml").read_text()[:330]
    assert all(name in head for name in settings)
    assert before == {path: path.read_bytes() for path in before}


def test_what_init_says_of_many_parts_breaks_no_word(tmp_path: Path, run_code_commit: Run):
    lay(tmp_path, {f"a_part_of_the_project_{number}/Cargo.toml": "" for number in range(4)})
    done = run_code_commit(tmp_path, "init")
    assert max(map(len, done.stdout.splitlines())) <= 80
    assert all(f"a_part_of_the_project_{number}/Cargo.toml" in done.stdout for number in range(4)), done.stdout


def test_a_build_script_that_git_ignores_is_told(tmp_path: Path, run_code_commit: Run):
    git(lay(tmp_path, {"go.mod": "", ".gitignore": "/*build*\n"}), "init")
    assert "\ngit ignores build.sh: add it with git add -f build.sh\n" in run_code_commit(tmp_path, "init").stdout
    git(tmp_path, "add", "-f", "build.sh")
    assert git(tmp_path, "ls-files") == "build.sh\n"


def test_outside_git_init_says_what_is_missing(tmp_path: Path, run_code_commit: Run):
    assert "This is not a git repository: git init makes one" in run_code_commit(tmp_path, "init").stdout


def test_init_touches_nothing_that_exists(tmp_path: Path, run_code_commit: Run):
    mine = {
        ".gitignore": "/agent-config/\r\n",
        "build.sh": "mine\n",
        "agent-config/query.txt": "my task\n",
        "go.mod": "",
    }
    lay(tmp_path, mine)
    (tmp_path / "build.sh").chmod(0o640)
    (tmp_path / "agent-config").chmod(0o755)
    assert run_code_commit(tmp_path, "init").returncode == 0
    assert {name: (tmp_path / name).read_bytes().decode() for name in mine} == mine
    assert stat.S_IMODE((tmp_path / "build.sh").stat().st_mode) == 0o640
    assert stat.S_IMODE((tmp_path / "agent-config").stat().st_mode) == 0o755


def test_installed_packages_are_ignored(tmp_path: Path, run_code_commit: Run):
    files = {
        "pyproject.toml": "",
        "web/package.json": PACKAGE,
        "env/pyvenv.cfg": "",
        "own/pyvenv.cfg": "",
        "src/a.py": "",
    }
    lay(tmp_path, {**files, "own/.gitignore": "*\n", "node_modules/a/index.js": "", ".gitignore": "dist\n"})
    git(tmp_path, "init", "-q")
    done = run_code_commit(tmp_path, "init")
    assert "added the line .venv/ to .gitignore\nadded the line /env/ to .gitignore\n" in done.stdout
    assert (tmp_path / ".gitignore").read_text() == "dist\n/agent-config\n.venv/\n/env/\n/node_modules/\n"
    again = run_code_commit(tmp_path, "init")
    assert "Nothing was missing" in again.stdout
    lay(tmp_path / "js", {"package.json": PACKAGE})
    git(tmp_path / "js", "init", "-q")
    run_code_commit(tmp_path / "js", "init")
    assert (tmp_path / "js/.gitignore").read_text() == "/agent-config\nnode_modules/\ndist/\n"


def test_a_run_after_init_sends_no_environment(tmp_path: Path, run_code_commit: Run):
    lay(
        tmp_path, {"pyproject.toml": "", "test_a.py": "", "lib/b.js": "", "lib/node_modules/c/index.js": "of another\n"}
    )
    venv.create(tmp_path / "env", with_pip=False)
    (tmp_path / "env" / ".gitignore").unlink(missing_ok=True)
    (tmp_path / "env" / "lib" / "d.py").write_text("of another\n")
    git(tmp_path, "init", "-q")
    (tmp_path / ".gitignore").write_text("/agent-config\n")
    done = run_code_commit(tmp_path, "rollup", "--json")
    told = json.loads(done.stdout)
    packages = [each["path"] for each in told["left_out"] if each["reason"] == "installed packages"]
    assert packages == ["env/", "lib/node_modules/"]
    rollup = (tmp_path / "agent-config/codeRollup.txt").read_text()
    assert ("of another" in rollup, "installed packages: env/, lib/node_modules/\n" in rollup) == (False, True)
    assert "left out (installed packages): env/, lib/node_modules/" in run_code_commit(tmp_path, "rollup").stderr
    run_code_commit(tmp_path, "rollup", "env/lib/d.py", "lib")
    rollup = (tmp_path / "agent-config/codeRollup.txt").read_text()
    assert ("--- env/lib/d.py ---" in rollup, "index.js" in rollup) == (True, False)


def test_init_follows_no_link_out_of_the_project(tmp_path: Path, run_code_commit: Run):
    root, outside = tmp_path / "project", tmp_path / "outside"
    root.mkdir()
    outside.write_text("outside\n")
    (root / "build.sh").symlink_to("../not-there")
    assert run_code_commit(root, "init").returncode == 0
    assert not (tmp_path / "not-there").exists()
    (root / ".gitignore").unlink()
    (root / ".gitignore").symlink_to("../outside")
    done = run_code_commit(root, "init")
    assert (done.returncode, outside.read_text()) == (2, "outside\n")
    assert ".gitignore is not a regular file" in done.stderr


PASSING = {
    "pytest": {"pyproject.toml": "[tool.pytest.ini_options]\n", "test_a.py": "def test_a():\n    assert 1 + 1 == 2\n"},
    "unittest": {
        "setup.py": "",
        "src/counting.py": "two = 2\n",
        "tests/test_a.py": (
            "import unittest, counting\n\n"
            "class Counts(unittest.TestCase):\n    def test(self):\n        self.assertEqual(1 + 1, counting.two)\n"
        ),
    },
    "python files": {"a.py": "assert True\n"},
    "npm": {
        "package.json": '{"name": "a", "scripts": {"build": "node --check a.js", "test": "node a.js"}}',
        "a.js": "if (1 + 1 !== 2) process.exit(1)\n",
    },
    "node": {
        "package.json": '{"name": "a", "version": "1.0.0"}',
        "a.test.js": "require('node:test')('counts', () => require('node:assert').equal(1 + 1, 2))\n",
    },
    "cargo": {
        "Cargo.toml": '[package]\nname = "a"\nversion = "0.1.0"\nedition = "2021"\n',
        "src/lib.rs": "#[test]\nfn counts() {\n    assert_eq!(1 + 1, 2);\n}\n",
    },
    "make": {
        "Makefile": "CC ?= cc\nall: a\na: a.c\n\t$(CC) -o a a.c\ntest: a\n\t./a\n",
        "a.c": "int main(void) { return 1 + 1 != 2; }\n",
    },
    "make below": {"one/Makefile": "test:\n\ttest 2 = 2\n", "two/Makefile": "test:\n\ttest $$((1 + 1)) = 2\n"},
}
NEEDS = {"npm": "npm", "node": "node", "cargo": "cargo", "make": "cc", "make below": "make", "pytest": "pytest"}
FAILING = {
    "pytest": ("test_a.py", "== 2", "== 3"),
    "unittest": ("src/counting.py", "2", "3"),
    "python files": ("a.py", "assert", "assert assert"),
    "npm": ("a.js", "!== 2", "!== 3"),
    "node": ("a.test.js", "1, 2", "1, 3"),
    "cargo": ("src/lib.rs", "1, 2", "1, 3"),
    "make": ("a.c", "!= 2", "!= 3"),
    "make below": ("one/Makefile", "2 = 2", "2 = 3"),
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", PASSING)
def test_the_script_builds_the_project_and_fails_with_its_test(kind, tmp_path: Path, run_code_commit: Run):
    if kind in NEEDS and shutil.which(NEEDS[kind]) is None:
        pytest.skip(f"{NEEDS[kind]} is not installed")
    lay(tmp_path, PASSING[kind])
    assert run_code_commit(tmp_path, "init").returncode == 0
    home = pwd.getpwuid(os.getuid()).pw_dir  # rustup keeps its toolchains there
    environment = {"RUSTUP_HOME": f"{home}/.rustup", "CARGO_HOME": f"{home}/.cargo"} | dict(os.environ)
    passed = build(tmp_path, **environment)
    assert passed.returncode == 0, passed.stdout + passed.stderr
    name, right, wrong = FAILING[kind]
    text = (tmp_path / name).read_text()
    assert right in text
    (tmp_path / name).write_text(text.replace(right, wrong))
    os.utime(tmp_path / name, (2**31, 2**31))  # make goes by the second on some file systems
    failed = build(tmp_path, **environment)
    assert failed.returncode != 0, failed.stdout + failed.stderr


def test_without_pytest_tests_of_pytest_are_no_build_that_passes(tmp_path: Path, run_code_commit: Run):
    lay(tmp_path, {"setup.py": "", "tests/test_a.py": "def test_a():\n    assert True\n"})
    lay(tmp_path, {"tests/test_b.py": PASSING["unittest"]["tests/test_a.py"], "src/counting.py": "two = 2\n"})
    venv.create(tmp_path / ".venv")
    assert run_code_commit(tmp_path, "init").returncode == 0
    done = build(tmp_path)
    assert (done.returncode, "No module named pytest" in done.stdout) == (1, True), done.stdout + done.stderr


def test_without_pytest_the_tests_of_unittest_run(tmp_path: Path, run_code_commit: Run):
    lay(tmp_path, {"setup.py": "", "tests/test_a.py": ""})
    venv.create(tmp_path / ".venv")
    assert run_code_commit(tmp_path, "init").returncode == 0
    for text, code in {"": 5, PASSING["unittest"]["tests/test_a.py"]: 1}.items():
        (tmp_path / "tests/test_b.py").write_text(text)
        done = build(tmp_path)
        assert done.returncode == code, done.stdout + done.stderr
    lay(tmp_path, {"src/counting.py": "two = 2\n"})
    assert build(tmp_path).returncode == 0


KEY = "test-key-0123456789"
CHAT = (
    "2. The key from {} is for a server that you name: add\n     --model chat:NAME --base-url URL to the next command."
)
NEXT_FOR_KEYS = {
    "none": ({}, {}, "2. Put an API key into agent-config/gemini-key.txt"),
    "a variable": (
        {"OPENAI_API_KEY": KEY},
        {},
        "2. The LLM is set up: openai:gpt-6.2-sol,\n     with the key from OPENAI_API_KEY.\n",
    ),
    "a file": ({}, {"anthropic-key.txt": KEY}, "\n     with the key from agent-config/anthropic-key.txt.\n"),
    "a model": (
        {},
        {"config.toml": 'model = "replay:answers"'},
        "2. The LLM is set up: replay:answers,\n     which needs no key.\n",
    ),
    "a model without its key": ({"OPENAI_API_KEY": KEY}, {"config.toml": 'model = "gemini"'}, "2. Put an API key into"),
    "a chat key": ({"CODE_COMMIT_CHAT_API_KEY": KEY}, {}, CHAT.format("CODE_COMMIT_CHAT_API_KEY")),
    "a file with a chat key": ({}, {"chat-key.txt": KEY}, CHAT.format("agent-config/chat-key.txt")),
}


@pytest.mark.parametrize(("env", "files", "told"), NEXT_FOR_KEYS.values(), ids=NEXT_FOR_KEYS)
def test_init_knows_the_key_and_the_model_that_are_there(env, files, told, tmp_path: Path, run_code_commit: Run):
    lay(tmp_path, {f"agent-config/{name}": content for name, content in files.items()})
    for key in tmp_path.glob("agent-config/*-key.txt"):
        key.chmod(0o600)
    done = run_code_commit(tmp_path, "init", env=env)
    assert (done.returncode, told in done.stdout) == (0, True), done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 80


def test_a_check_asks_no_server_on_this_machine(project_folder: Path, monkeypatch: pytest.MonkeyPatch):
    asked: list[str] = []
    monkeypatch.setattr(local, "_ask", lambda *request: asked.append(request[2]))
    local.find_server()
    looked_at = len(asked)
    assert "no API key" in "".join(api.check(project_folder))
    assert (looked_at, len(asked)) == (3, 3)


def test_a_server_on_this_machine_is_named_where_there_is_no_key(project_folder: Path, run_code_commit: Run):
    models = {"/v1/models": {"data": [{"id": "qwen2.5-coder:7b"}]}}
    try:
        server = FakeServer(port=11434, facts=models)
    except OSError:
        pytest.skip("the port of Ollama is taken")
    lines = 'model = "chat:qwen2.5-coder:7b"\nbase_url = "http://127.0.0.1:11434/v1"\n'
    with server:
        assert lines not in run_code_commit(project_folder, "check").stdout
        refused = run_code_commit(project_folder)
        assert (refused.returncode, lines in refused.stderr.replace("\n  ", "\n")) == (2, True), refused.stderr
        (project_folder / "build.sh").unlink()
        unready = run_code_commit(project_folder).stderr.replace("\n  ", "\n")
        assert ("2 problems to solve:" in unready, "- model =" in unready, lines in unready) == (True, False, True), (
            unready
        )
        assert lines in run_code_commit(project_folder, "init").stdout
        again = run_code_commit(project_folder, "init").stdout
        assert ("Nothing was missing" in again, lines in again) == (True, True), again
        (project_folder / "agent-config/config.toml").write_text(lines)
        (project_folder / "build.sh").unlink()
        assert "Or without" not in run_code_commit(project_folder, "init").stdout
    assert not server.requests


def test_a_part_of_a_repository_is_told(tmp_path: Path, run_code_commit: Run):
    git(tmp_path, "init", "-q")
    (tmp_path / "part").mkdir()
    done = run_code_commit(tmp_path / "part", "init")
    assert f"only this folder, not the rest of the repository {tmp_path}." in done.stdout
    assert "only this folder" not in run_code_commit(tmp_path, "init").stdout
