"""A failure that the sandbox made is told by the end of the output, and no repair is paid for."""

import json
from pathlib import Path

import pytest
from command import Run, recorded, the_log

from code_commit.build.refusals import _CATALOGS, Places, _messages, find_full, find_missing, find_refusal

ROOT = Path("/home/me/p")
KEPT = [ROOT / "build.sh", ROOT / ".git/hooks", ROOT / ".git/config", ROOT / "agent-config", Path("/home/me")]
PLACES = Places(ROOT, KEPT, [ROOT, Path("/home/me/.cache")])
REFUSED = [
    "chmod: changing permissions of './build.sh': Read-only file system",
    "./build.sh: line 3: .git/hooks/pre-commit: Read-only file system",
    "./build.sh: 3: cannot create .git/hooks/pre-commit: Read-only file system",
    "mv: cannot move 'new.sh' to 'build.sh': Device or resource busy",
    "sed: cannot rename ./sed1OckSM: Device or resource busy",
    "error: could not write config file /home/me/p/.git/config: Device or resource busy",
    "Error: EROFS: read-only file system, open '/home/me/.npmrc'",
    "FAILED tests/test_a.py::test_a - OSError: [Errno 30] Read-only file system: '/home/me/.config/a'",
    "a_test.go:12: open build.sh: read-only file system",
    "truncate: cannot open 'build.sh' for writing: Read-only file system",
    "chattr: Read-only file system while setting flags on build.sh",
    "mkdir: cannot create directory agent-config: Read-only file system",
    "PHP Warning:  file_put_contents(build.sh): Failed to open stream: Read-only file system in /x/a.php on line 3",
]
OTHERS = [
    "OSError: [Errno 30] Read-only file system: '/mnt/data/out.csv'",
    "./build.sh: line 3: /mnt/x: Read-only file system",
    "chown /srv/data: Operation not permitted",
    "rebuild.sh: Read-only file system",
    "build.sh.in: Read-only file system",
    "build.sh: line 9: 4 tests failed",
    "curl: (6) Could not resolve host: example.org",
    "cp: cannot copy build.sh to /mnt/ro: Read-only file system",
    "OSError: [Errno 30] Read-only file system: '/mnt/out' (build.sh wanted it)",
    "tests/test_a.py: /home/me/p/out: Read-only file system",
    "touch: cannot touch '/home/me/.cache/x': Read-only file system",
    "umount: /home/me/p/mnt: Device or resource busy",
    "rm: cannot remove '/home/me/x': Device or resource busy",
    "chown: changing ownership of 'build.sh': Operation not permitted",
    "PermissionError: [Errno 1] Operation not permitted: 'build.sh'",
    "sub/build.sh: Read-only file system",
    "Read-only file system (os error 30)",
]


def refusal(output: str, files: dict[str, str] | None = None, *, network: bool = True) -> str:
    return find_refusal(output.encode(), PLACES._replace(network=network), lambda _: files or {})


@pytest.mark.parametrize("line", REFUSED)
def test_a_kept_path_that_was_refused_is_found(line):
    assert (said := refusal(f"first\n{line}\n\nmake: *** Error 1\n"))
    assert said in line


@pytest.mark.parametrize("line", OTHERS)
def test_what_the_code_itself_does_is_none(line):
    assert refusal(f"{line}\n") == ""


def test_a_path_above_the_cause_that_names_none_was_refused():
    cause = "Caused by:\n    Read-only file system (os error 30)"
    assert refusal(f"error: failed to write `{ROOT}/.git/hooks/pre-push`\n\n{cause}\n").startswith("error: failed to")
    assert refusal(f"error: failed to write `/mnt/out`\n\n{cause}\n") == ""
    assert refusal(f"compiles build.sh\nlinks\nerror: failed to write\n{cause}\n") == ""


@pytest.mark.skipif(not Path(_CATALOGS, "de/LC_MESSAGES/libc.mo").is_file(), reason="no messages in German are here")
def test_a_refusal_is_known_in_the_users_language(monkeypatch: pytest.MonkeyPatch):
    said = "touch: 'build.sh' kann nicht berührt werden: Das Dateisystem ist nur lesbar"
    assert refusal(said) == ""
    monkeypatch.setenv("LANGUAGE", "de")
    _messages.cache_clear()
    try:
        assert refusal(said).endswith("Read-only file system")
    finally:
        _messages.cache_clear()


def test_words_that_a_file_of_the_project_has_are_its_own():
    source = "raise OSError(errno.EROFS, 'Read-only file system', 'build.sh')\n"
    line = "E   OSError: [Errno 30] Read-only file system: 'build.sh'"
    assert refusal(f"tests/test_ro.py:12: in test_ro\n{line}\n", {"tests/test_ro.py": source}) == ""
    assert refusal(f"--- FAIL: TestA\n    a_test.go:3: {line}\n", {"pkg/a_test.go": source}) == ""
    assert refusal(f"tests/test_other.py:12: in test\n{line}\n", {"tests/test_ro.py": source}) == line
    quoted = "expected: touch: cannot touch 'build.sh': Read-only file system"
    assert refusal(f"{quoted}\n", {"expected/out.txt": f"{quoted[10:]}\n"}) == ""
    assert refusal(f"{quoted}\n", {"docs/a.md": "Read-only file system"}) == quoted


def test_what_was_refused_long_before_the_end_did_not_end_the_build():
    assert refusal(REFUSED[0] + "\nmore" * 20) == ""
    trace = "\tat java.base/java.io.FileOutputStream.open0(Native Method)\n" * 40 + "\t... 12 more\n"
    assert refusal(f"{REFUSED[0]}\n{trace}BUILD FAILED\n") == REFUSED[0]
    assert refusal(trace) == ""
    source = {"tests/a.test.js": "throw new Error('Read-only file system')"}
    assert refusal(f"{REFUSED[0]}\n at Object.<anonymous> (tests/a.test.js:3)\n{trace}", source) == ""


def test_without_a_network_a_name_that_is_looked_up_is_refused():
    for line in (
        "curl: (6) Could not resolve host: deb.debian.org",
        "dial tcp 192.0.2.7:443: connect: network is unreachable",
        "wget: unable to resolve host address 'registry.acme.io'",
        "W: Failed to fetch http://deb.debian.org/debian/dists/x  Temporary failure resolving 'deb.debian.org'",
        '{:failed_connect, [{:to_address, {~c"builds.hex.pm", 443}}, {:inet, [:inet], :nxdomain}]}',
        "Could not reach host index.rubygems.org. Check your network connection and try again.",
        "Error accessing registry https://bcr.bazel.build/: Unknown host: bcr.bazel.build",
        "unable to download 'https://cache.nixos.org/nix-cache-info': Couldn't resolve host name (6)",
        "dial tcp: lookup registry-1.docker.io on 127.0.0.11:53: server misbehaving",
        "error NU1301:   Resource temporarily unavailable (api.nuget.org:443)",
        "Failed host lookup: 'pub.dev'",
        "/x/build.zig.zon:8:20: error: unable to connect to server: TemporaryNameServerFailure",
        "error: unable to connect to server: NetworkUnreachable",
        "FailedToOpenSocket downloading package manifest vitest",
    ):
        assert refusal(line, network=False) == line
    for other in (
        "connect to 127.0.0.1: Connection refused",
        'Could not resolve "./missing" in src/main.ts',
        "Error: Could not resolve dependency: react@18",
        "Module not found: Error: Can't resolve 'lodash.get' in '/x/src'",
        "lookup of a host: 3 tests failed",
        "getaddrinfo ENOTFOUND no-such-host.invalid",
    ):
        assert refusal(other, network=False) == ""
    mocked = {"tests/net.test.js": "reject(new Error('getaddrinfo ENOTFOUND api.acme.io'))"}
    said = "at tests/net.test.js:4:5\nError: getaddrinfo ENOTFOUND api.acme.io"
    assert (refusal(said, mocked, network=False), refusal(said, network=False)) == ("", said.split("\n")[1])


@pytest.mark.usefixtures("needs_bwrap")
def test_no_repair_is_paid_for_and_resume_builds_again(project_folder: Path, run_code_commit: Run):
    build = project_folder / "build.sh"
    build.write_text("#!/bin/sh\nset -e\ntouch build.sh\ngrep -q '^ok$' ok.txt\n")
    answers = recorded(project_folder, *["^^^ok.txt\nok\n^^^end\n"] * 2)
    done = run_code_commit(project_folder, *answers, "--sandbox", "guard")
    assert done.returncode == 5, done.stderr
    assert "the sandbox made build.sh fail, so no repair was asked for: touch:" in done.stderr
    assert "--sandbox off" in done.stderr
    (attempt,) = json.loads((the_log(project_folder) / "run.json").read_text())["attempts"]
    assert attempt["build"]["refused"].startswith("touch:")
    done = run_code_commit(project_folder, "resume", "--sandbox", "off")
    assert (done.returncode, "attempt 2" in done.stderr) == (0, False), done.stderr


@pytest.mark.usefixtures("needs_bwrap")
@pytest.mark.parametrize("command", ["git add -A", "touch /usr/x"])
def test_strict_tells_what_it_keeps_beside_the_protected_files(
    command: str, project_folder: Path, run_code_commit: Run
):
    (project_folder / "build.sh").write_text(f"#!/bin/sh\nset -e\n{command}\ngrep -q '^ok$' ok.txt\n")
    answers = recorded(project_folder, *["^^^ok.txt\nok\n^^^end\n"] * 2)
    done = run_code_commit(project_folder, *answers, "--sandbox", "strict")
    assert (done.returncode, "the sandbox made build.sh fail" in done.stderr) == (5, True), done.stderr


@pytest.mark.usefixtures("needs_bwrap")
def test_a_test_that_prints_the_words_is_repaired(project_folder: Path, run_code_commit: Run):
    (project_folder / "build.sh").write_text("#!/bin/sh\nset -e\nsh ./test.sh\ngrep -q '^ok$' ok.txt\n")
    (project_folder / "test.sh").write_text(
        "grep -q ok ok.txt || { touch build.sh; echo Read-only file system; exit 1; }\n"
    )
    answers = recorded(project_folder, "^^^ok.txt\nno\n^^^end\n", "^^^ok.txt\nok\n^^^end\n")
    done = run_code_commit(project_folder, *answers, "--sandbox", "guard")
    assert done.returncode == 5, "build.sh was refused, and no line names test.sh"
    (project_folder / "test.sh").write_text(
        "grep -q ok ok.txt || { echo test.sh: build.sh: Read-only file system; exit 1; }\n"
    )
    done = run_code_commit(project_folder, *answers, "--sandbox", "guard")
    assert done.returncode == 0, done.stderr


@pytest.mark.usefixtures("needs_bwrap")
def test_a_build_cannot_hit_the_sandbox_by_the_projects_name(project_folder: Path, run_code_commit: Run):
    (project_folder / "build.sh").write_text('#!/bin/sh\ntr "\\0" " " </proc/$PPID/cmdline\nexit 1\n')
    answers = recorded(project_folder, "^^^ok.txt\nok\n^^^end\n")
    run_code_commit(project_folder, *answers, "--sandbox", "guard", "--max-repairs", "0")
    output = (the_log(project_folder) / "1-build.txt").read_text()
    assert "bwrap" in output
    assert str(project_folder) not in output.partition(" -- ")[0]


PYTEST = "/usr/bin/python3: No module named pytest\nbuild.sh: no test passed\n"


@pytest.mark.parametrize(
    "line",
    [
        "OSError: [Errno 28] No space left on device",
        "compile: writing output: write $WORK/b164/_pkg_.a: no space left on device",
        "rustc-LLVM ERROR: IO failure on output stream: No space left on device",
        "tar: out: Cannot write: Disk quota exceeded",
        "g++: fatal error: Killed signal terminated program cc1plus",
        "g++: internal compiler error: Killed (program cc1plus)",
        "collect2: fatal error: ld terminated with signal 9 [Killed]",
        "virtual memory exhausted: Cannot allocate memory",
    ],
)
def test_a_full_disk_or_memory_is_told_in_words_that_the_project_has_not(line: str):
    output = f"first\n{line}\nmake: *** Error 1\n".encode()
    assert find_full(output, lambda _: {}) == line
    assert find_full(output, lambda words: {"a.c": words}) == ""
    assert find_full(output + b"more\n" * 20, lambda _: {}) == ""
    assert find_full(b"ENOSPC: System limit for number of file watchers reached\n", lambda _: {}) == ""
    assert find_full(b"process didn't exit successfully: `deps/a-12` (signal: 9, SIGKILL: kill)\n", lambda _: {}) == ""


def test_nothing_is_paid_for_where_a_disk_is_full(project_folder: Path, run_code_commit: Run):
    (project_folder / "build.sh").write_text("#!/bin/sh\necho 'ld: No space left on device'\nexit 1\n")
    replay = recorded(project_folder, "^^^ok.txt\nok\n^^^end\n", "^^^ok.txt\nno\n^^^end\n")
    checked = run_code_commit(project_folder, "check", "--build", *replay)
    assert (checked.returncode, "no space is left for build.sh: ld: No" in checked.stdout) == (1, True), checked.stdout
    done = run_code_commit(project_folder, *replay)
    assert done.returncode == 5
    assert "no space is left for build.sh, so no repair was asked for: ld: No" in " ".join(done.stderr.split())
    run = json.loads((the_log(project_folder) / "run.json").read_text())
    assert [attempt["build"]["full"] for attempt in run["attempts"]] == ["ld: No space left on device"]
    (project_folder / "build.sh").write_text("#!/bin/sh\ntrue\n")
    assert run_code_commit(project_folder, "resume").returncode == 0


MISSING = {
    # the build.sh, the end of its output, what is missing
    "bash": ("set -e\nnpm ci\n", "./build.sh: line 2: npm: command not found\n", "npm"),
    "sh": ("cargo test\n", "./build.sh: 1: cargo: not found\n", "cargo"),
    "by a function": ('counted() {\n"$@"\n}\ncounted go test\n', "./build.sh: line 2: go: command not found\n", "go"),
    "a module": ('# install it\npython=python3\n"$python" -m pytest -q\n', PYTEST, "pytest"),
    "one that the build installs": ("pip install -q -e .\npython3 -m pytest\n", PYTEST, ""),
    "one of an environment": (". .venv/bin/activate\ntsc\n", "./build.sh: line 2: tsc: command not found\n", ""),
    "one of the tool's": ("uv run python -m pytest\n", PYTEST, ""),
    "one of the project": ("python3 -m own.main\n", "/usr/bin/python3: No module named own\n", ""),
    "one that the code imports": ("python3 a.py\n", "ModuleNotFoundError: No module named 'yaml'\n", ""),
    "a script's": ("sh run.sh\n", "run.sh: 1: cargo: not found\n", ""),
    "one after tests": ("npm run test\ncargo test\n", "./build.sh: line 2: cargo: command not found\n", "cargo"),
    "one after an install into the project": (
        "if [ ! -d node_modules ]; then npm ci; fi\nenv CI=1 npm run test\ncargo test\n",
        "./build.sh: line 3: cargo: command not found\n",
        "cargo",
    ),
    "one that npm installs": ("npm install -g .\ntool\n", "./build.sh: line 2: tool: command not found\n", ""),
    "one of the project that npm links": ("npm link\ntool\n", "./build.sh: line 2: tool: command not found\n", ""),
    "one of npm's folder": (
        'npm ci\nexport PATH="$PWD/node_modules/.bin:$PATH"\ntsc\n',
        "./build.sh: line 3: tsc: command not found\n",
        "",
    ),
    "one that another file tells": (". ./env.sh\ntool\n", "./build.sh: line 2: tool: command not found\n", ""),
    "one of pip beside npm": ("npm ci\npip install .\nruff\n", "./build.sh: line 3: ruff: command not found\n", ""),
    "one that uv supplies in the next line": (
        "uv run \\\n    python -m pytest\n",
        "/a/.venv/bin/python: No module named pytest\n",
        "",
    ),
    "one that uv supplies in a shell": (
        "uv run sh -c 'cd api && python -m pytest'\n",
        "/a/.venv/bin/python: No module named pytest\n",
        "",
    ),
    "one of npm's own shell": ("npx sh -c 'cd api; npm exec -- sh -c \"x && tsc\"'\n", "sh: tsc: not found\n", ""),
    "the number of a line": ("sh check.sh 2>&1 | tee 1\n", "sh: 1: tsc: not found\n", ""),
    "in other words": ("set -e\ncargo test\n", "./build.sh: Zeile 2: cargo: Kommando nicht gefunden.\n", "cargo"),
    "behind a folder that is closed": ("cargo test\n", "./build.sh: 1: cargo: Permission denied\n", "cargo"),
    "zsh": ("cargo test\n", "./build.sh:1: command not found: cargo\n", "cargo"),
    "ksh": ("cargo test\n", "./build.sh[1]: cargo: not found\n", "cargo"),
    "called by another": ("env CI=1 cargo test\n", "/usr/bin/env: 'cargo': command not found\n", "cargo"),
    "called in a pipe": ("git ls-files | xargs tidy\n", "xargs: tidy: command not found\n", "tidy"),
    "called by nobody": ("xargs ls\ntidy .\n", "xargs: tidy: command not found\n", ""),
    "a file": ("./run.sh\n", "./build.sh: line 1: ./run.sh: No such file or directory\n", ""),
}


@pytest.mark.parametrize(("script", "output", "missing"), MISSING.values(), ids=MISSING)
def test_what_build_sh_calls_and_no_answer_can_supply_is_missing(script: str, output: str, missing: str):
    assert find_missing(output.encode(), 127, script, lambda name: name == "own") == missing
    in_words = missing if "ound" in output or "No module" in output else ""
    assert find_missing(output.encode(), 1, script, lambda name: name == "own") == in_words


def test_a_program_may_come_from_a_folder_of_the_project_in_path():
    said, script = b"./build.sh: line 2: tsc: command not found\n", "npm ci\ntsc\n"
    assert find_missing(said, 127, script, lambda _: False) == "tsc"
    assert find_missing(said, 127, script, lambda _: False, looks_in_project=True) == ""


@pytest.mark.parametrize("first", [True, False])
def test_nothing_is_paid_for_where_a_program_of_build_sh_is_missing(
    *, first: bool, project_folder: Path, run_code_commit: Run
):
    (project_folder / "build.sh").write_text("#!/bin/sh\nno-such-tool --all\n")
    option = ["--build-first"] if first else []
    replay = recorded(project_folder, "^^^ok.txt\nok\n^^^end\n", "^^^ok.txt\nno\n^^^end\n")
    done = run_code_commit(project_folder, *replay, *option)
    outcome = "nothing was sent" if first else "no repair was asked for"
    said = " ".join(done.stderr.split())
    assert done.returncode == 5, said
    assert f"build.sh calls no-such-tool, which is not installed, so {outcome}" in said
    run = json.loads((the_log(project_folder) / "run.json").read_text())
    assert len(run["attempts"]) == (0 if first else 1)
    checked = run_code_commit(project_folder, "check", "--build", *replay)
    assert (checked.returncode, "calls no-such-tool" in " ".join(checked.stdout.split())) == (1, True), checked.stdout
    (project_folder / "build.sh").write_text("#!/bin/sh\ntrue\n")
    assert run_code_commit(project_folder, "resume").returncode == 0
