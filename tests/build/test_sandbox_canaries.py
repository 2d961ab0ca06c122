"""Real builds work in every sandbox: a sandbox in which nothing works would pass every probe."""

import json
import os
import pwd
import shlex
import shutil
import subprocess
import sys
import time
import zipfile
from pathlib import Path

import pytest
from build_watch import alive, run_build

from code_commit.build import choose_sandbox
from code_commit.errors import NotSetUpError
from code_commit.project import find_project
from code_commit.settings import Settings

HOME = Path(pwd.getpwuid(os.geteuid()).pw_dir)
PYTHON = shlex.quote(os.path.realpath(sys.executable))  # a virtual environment in /tmp is not there in strict
PIP = f"{PYTHON} -m pip install -q --no-index --disable-pip-version-check --root-user-action=ignore"
MODES = ("off", "guard", "strict")


def write_c(root):
    (root / "Makefile").write_text("all: hello\n\t./hello\nhello: hello.c\n\t$(CC) -o hello hello.c\n")
    (root / "hello.c").write_text('#include <stdio.h>\nint main(void) { puts("hello from C"); return 0; }\n')


def write_crate(root):
    (root / "src").mkdir()
    (root / "Cargo.toml").write_text('[package]\nname = "hello"\nversion = "0.1.0"\nedition = "2021"\n')
    (root / "src" / "main.rs").write_text('fn main() { println!("hello from Rust"); }\n')


def write_npm(root):
    (root / "lib").mkdir()
    (root / "lib" / "package.json").write_text(json.dumps({"name": "lib", "version": "1.0.0", "main": "index.js"}))
    (root / "lib" / "index.js").write_text("module.exports = 'hello from npm';\n")
    scripts = {"check": "echo x > checked"}
    (root / "package.json").write_text(json.dumps({"name": "app", "version": "1.0.0", "scripts": scripts}))


def write_wheel(root):
    with zipfile.ZipFile(root / "hello-1.0-py3-none-any.whl", "w") as wheel:
        wheel.writestr("hello.py", "text = 'hello from pip'\n")
        wheel.writestr("hello-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: hello\nVersion: 1.0\n")
        wheel.writestr("hello-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr("hello-1.0.dist-info/RECORD", "")


BUILDS = {
    # name: (programs, what writes the sources, build.sh, the last line of its output)
    "make and C": (("make", "cc"), write_c, "make", "hello from C"),
    "cargo": (("cargo",), write_crate, "cargo build --offline -q && ./target/debug/hello", "hello from Rust"),
    "npm": (
        ("npm", "node"),
        write_npm,
        "npm install --offline --no-audit --no-fund --no-update-notifier ./lib && npm run -s check && node -p 'require(`lib`)'",
        "hello from npm",
    ),
    "pip": (
        (),
        write_wheel,
        f"{PIP} --target site ./hello-1.0-py3-none-any.whl && PYTHONPATH=site {PYTHON} -c 'import hello; print(hello.text)'",
        "hello from pip",
    ),
    "git": (("git",), lambda root: (root / "new").touch(), "git status --short && git log --oneline | wc -l", "1"),
    "a pipeline of processes": ((), lambda _: None, "seq 100000 | sort -n | tail -n 1 | tee last", "100000"),
    "python with processes": (
        (),
        lambda _: None,
        f"{PYTHON} -c 'import multiprocessing as m; print(m.Pool(2).map(abs, [-1, -2]))'",
        "[1, 2]",
    ),
}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", BUILDS)
def test_a_real_build_works(build, project_folder, request, whole, mode, name):
    if name in ("npm", "pip", "cargo") and mode != "guard" and not whole:
        pytest.skip("part of the long sweep")
    if mode != "off":
        request.getfixturevalue("needs_bwrap")
    programs, write, script, last_line = BUILDS[name]
    missing = [program for program in programs if shutil.which(program) is None]
    has_pip = f"{PYTHON} -c 'import pip'"
    if name == "pip" and subprocess.run(shlex.split(has_pip), check=False, capture_output=True).returncode:
        missing.append("pip")
    if missing:
        pytest.skip(f"{', '.join(missing)} not installed")
    if name == "cargo" and os.access(HOME, os.R_OK) is False:
        pytest.skip("the toolchain is another user's")
    write(project_folder)
    tools = {"RUSTUP_HOME": str(HOME / ".rustup"), "CARGO_HOME": str(HOME / ".cargo")}
    built = build(f"#!/bin/bash\nset -e\n{script}\n", mode=mode, timeout=120, environment={**tools, **os.environ})
    assert built.error is None
    assert built.result.passed, built.output
    assert built.output.splitlines()[-1].strip() == last_line


def test_a_server_that_the_build_starts_lives_on_in_guard(build, needs_bwrap, project_folder, mark):
    script = "#!/bin/bash\nnohup sh -c 'sleep 0.5; echo still here > proof; sleep 60' > /dev/null 2>&1 &\n"
    built = build(script, mode="guard", environment={**os.environ, "MARK": mark})
    assert built.result.passed
    assert built.seconds < 20
    until = time.monotonic() + 10
    while not (project_folder / "proof").exists() and time.monotonic() < until:
        time.sleep(0.02)
    assert alive(mark)


def project_with_path(project_folder, tmp_path, monkeypatch, programs):
    """Let nothing be found by PATH but git and the programs given: {name: script}."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "git").symlink_to(shutil.which("git"))
    for name, script in programs.items():
        (tmp_path / "bin" / name).write_text(script)
        (tmp_path / "bin" / name).chmod(0o755)
    project = find_project(project_folder)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    return project


BROKEN = {
    "not installed": ({}, "bubblewrap (bwrap, Linux only) is not installed"),
    "forbidden": (
        {"bwrap": "#!/bin/sh\necho 'bwrap: setting up uid map: Permission denied' >&2; exit 1\n"},
        "setting up uid map: Permission denied",
    ),
    "silent": ({"bwrap": "#!/bin/sh\nexit 9\n"}, "exit code 9"),
    "no program": ({"bwrap": "#!/no/such/thing\n"}, "cannot be run"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_without_a_working_bubblewrap_auto_says_so_and_the_others_end(project_folder, tmp_path, monkeypatch, name):
    programs, reason = BROKEN[name]
    project = project_with_path(project_folder, tmp_path, monkeypatch, programs)
    sandbox, line = choose_sandbox("auto", project, Settings())
    assert sandbox is None
    assert reason in line
    assert line.startswith("no sandbox: ")
    assert "\n" not in line
    for mode in ("guard", "strict"):
        with pytest.raises(NotSetUpError) as caught:
            choose_sandbox(mode, project, Settings())
        message = str(caught.value)
        assert message.startswith(f"--sandbox {mode} cannot be set up")
        assert all(
            word in message for word in (reason, "Debian", "Fedora", "Ubuntu", "AppArmor", "container", "--sandbox off")
        )


def test_off_asks_for_nothing(project_folder, tmp_path, monkeypatch):
    project = project_with_path(project_folder, tmp_path, monkeypatch, {"bwrap": "#!/bin/sh\ntouch asked\n"})
    assert choose_sandbox("off", project, Settings(sandbox="off")) == (None, None)
    assert not (tmp_path / "asked").exists()


def test_auto_is_guard_where_it_works(project_folder, needs_bwrap):
    sandbox, line = choose_sandbox("auto", find_project(project_folder), Settings())
    assert (sandbox.mode, line) == ("guard", None)


def test_a_sandbox_that_stops_working_is_an_error_and_no_failed_build(
    build, project_folder, needs_bwrap, monkeypatch, tmp_path
):
    real = shutil.which("bwrap")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "bwrap").write_text(
        f'#!/bin/sh\ncase " $* " in *" ./build.sh "*) echo "bwrap: no more" >&2; exit 1;; esac\nexec {real} "$@"\n'
    )
    (tmp_path / "bin" / "bwrap").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    built = build("#!/bin/sh\nexit 0\n", mode="guard")
    assert "the sandbox cannot be set up: bwrap: no more" in str(built.error)
    assert built.seconds < 20


def link_git(root):
    (root / ".git").rename(root.parent / "elsewhere")
    (root / ".git").symlink_to(root.parent / "elsewhere")


def git_file(root):
    (root / ".git").rename(root.parent / "elsewhere")
    (root / ".git").write_text("gitdir: ../elsewhere\n")


def link_agent_config(root):
    (root / "agent-config").rename(root.parent / "elsewhere")
    (root / "agent-config").symlink_to(root.parent / "elsewhere")


def hooks_path(value):
    return lambda root: subprocess.run(["git", "config", "core.hooksPath", value], cwd=root, check=True)


ODD = {
    "a link for .git": link_git,
    "a file for .git": git_file,
    "a link for agent-config": link_agent_config,
    "no hooks": hooks_path("/dev/null"),
    "hooks that are not there": hooks_path("no/such/folder"),
    "hooks in the project": hooks_path("docs"),
    "hooks everywhere": hooks_path("."),
    "no agent-config": lambda root: shutil.rmtree(root / "agent-config"),
    "a name to quote": lambda root: root.rename(root.parent / 'odd "name"\n  日本 $x'),
}


@pytest.mark.parametrize("mode", ["guard", "strict"])
@pytest.mark.parametrize("name", ODD)
def test_an_odd_project_is_guarded_all_the_same(project_folder, needs_bwrap, mode, name):
    script = "git status --short >&2 || exit 3; echo x > new; ls agent-config; (: >> .gitignore) 2>&- && exit 4; exit 0"
    (project_folder / "build.sh").write_text(f"#!/bin/bash\n{script}\n")
    ODD[name](project_folder)
    root = next(path for path in project_folder.parent.iterdir() if (path / "build.sh").exists())
    project = find_project(root)
    sandbox, _ = choose_sandbox(mode, project, Settings())
    pieces = []
    result = run_build(project, pieces.append, timeout=20, environment=dict(os.environ), sandbox=sandbox)
    assert result.exit_code == 0, pieces
    assert b"query.txt" not in b"".join(pieces)
