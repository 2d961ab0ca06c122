"""Programs that the user names: what they may do, and that nothing of them is left."""

import os
import sys
from pathlib import Path

import pytest
from command import wait_for

from code_commit.errors import NotSetUpError
from code_commit.llm.programs import KeyProgram, run_program, words_of
from code_commit.redaction import Redactor

TOKEN = "tok-0123456789abcdef"


def run(tmp_path: Path, script: str, given: bytes = b"", timeout: float = 20, longest: int = 1 << 20):
    return run_program(["/bin/sh", "-c", script], tmp_path, given=given, timeout=timeout, longest=longest)


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


ENDS = {
    "an answer": ("cat; echo said >&2", b"in\n", b"in\n", 0, "said"),
    "no output": ("exit 0", b"in\n", b"", 0, ""),
    "a failure": ("echo out; echo why >&2; exit 3", b"", b"out\n", 3, "why"),
    "killed": ("echo out; kill -9 $$", b"", b"out\n", -9, ""),
    "reads nothing": ("echo out", b"x" * 5_000_000, b"out\n", 0, ""),
}


@pytest.mark.parametrize(("script", "given", "output", "code", "said"), ENDS.values(), ids=ENDS)
def test_how_a_program_ends(script, given, output, code, said, tmp_path):
    done = run(tmp_path, script, given)
    assert (done.code, done.output, done.said) == (code, output, said)


def test_much_goes_in_while_much_comes_out(tmp_path):
    given = os.urandom(4_000_000)
    assert run(tmp_path, "cat", given, longest=len(given)).output == given


def test_a_program_that_hangs_is_ended_with_its_children(tmp_path):
    done = run(tmp_path, f"sleep 300 & echo $! >{tmp_path}/pid; sleep 300", timeout=0.5)
    assert (done.code, done.is_late, done.how) == (None, True, "has not ended in time")
    wait_for(lambda: not is_alive(int((tmp_path / "pid").read_text())))


def test_one_that_leaves_a_child_with_its_output_is_not_waited_for(tmp_path):
    done = run(tmp_path, f"sleep 300 & echo $! >{tmp_path}/pid; echo out")
    assert (done.code, done.output, done.is_late) == (0, b"out\n", False)
    wait_for(lambda: not is_alive(int((tmp_path / "pid").read_text())))


def test_one_that_closes_its_output_is_waited_for(tmp_path):
    assert run(tmp_path, "exec >&- 2>&-; sleep 0.3; exit 7").code == 7


def test_one_that_prints_without_end_is_ended(tmp_path):
    done = run(tmp_path, "yes", longest=1 << 20)
    assert (done.is_too_long, done.how) == (True, "printed too much")


def test_it_runs_in_an_empty_folder_that_is_gone_afterwards(tmp_path):
    done = run(tmp_path, "pwd; ls -A; touch x")
    folder = done.output.decode().strip()
    assert Path(folder) != Path.cwd()
    assert not Path(folder).exists()


def test_a_program_of_the_project_is_never_run(tmp_path, monkeypatch):
    program = tmp_path / "bin" / "tool"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\necho evil\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:.:{os.environ['PATH']}")
    monkeypatch.chdir(program.parent)
    for command in ("tool", "./tool", "bin/tool", str(program)):
        with pytest.raises(NotSetUpError, match="outside"):
            words_of(command, tmp_path)
    assert str(program.parent) not in run(tmp_path, "echo $PATH").output.decode(), "nor by a program of it"


def test_a_command_is_split_as_a_shell_does_without_a_shell(tmp_path):
    words = words_of("sh -c 'echo $HOME; $(x)' \"a b\"", tmp_path)
    assert (Path(words[0]).name, words[1:]) == ("sh", ["-c", "echo $HOME; $(x)", "a b"])
    for command in ("'", "", "no-such-program-anywhere", "/no/such/program", "/tmp"):
        with pytest.raises(NotSetUpError):
            words_of(command, tmp_path)


def key_program(tmp_path: Path, script: str) -> KeyProgram:
    file = tmp_path / "program" / "key"
    file.parent.mkdir()
    file.write_text(f"#!{sys.executable}\n{script}\n")
    file.chmod(0o755)
    project = tmp_path / "project"
    project.mkdir()
    return KeyProgram(str(file), project, lambda value: None if len(value) >= 8 else "is no key: put it there")


def test_a_key_program_runs_once_and_again_when_asked_and_all_its_keys_are_censored(tmp_path):
    script = (
        f"import pathlib; f = pathlib.Path('{tmp_path}/n'); n = len(f.read_bytes()) if f.exists() else 0; "
        f"f.write_bytes(b'x' * (n + 1)); print('{TOKEN}' + str(n))"
    )
    program, redactor = key_program(tmp_path, script), Redactor([])
    program.share(redactor)
    assert (program.key(), program.key(), program.renew(), program.key()) == (
        f"{TOKEN}0",
        f"{TOKEN}0",
        *[f"{TOKEN}1"] * 2,
    )
    for each in (redactor, program.censor):
        assert TOKEN not in each.redact_text(f"{TOKEN}0 {TOKEN}1")
    assert TOKEN not in repr(program)


FAILURES = {
    "a failure": ("import sys; sys.exit('not logged in')", "key ended with exit code 1: not logged in"),
    "nothing": ("", "what key_command prints is no key: run key by hand, and log in if it asks"),
    "its own token in the complaint": (f"import sys; print('{TOKEN}'); sys.exit('bad {TOKEN}')", "exit code 1: bad "),
}


@pytest.mark.parametrize(("script", "told"), FAILURES.values(), ids=FAILURES)
def test_a_key_program_that_fails_is_named_without_its_output(script, told, tmp_path):
    with pytest.raises(NotSetUpError) as caught:
        key_program(tmp_path, script).key()
    assert told in str(caught.value)
    assert TOKEN not in str(caught.value)
