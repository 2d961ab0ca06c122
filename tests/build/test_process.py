"""How build.sh ends, what is kept of its output, and what is told apart."""

import ctypes
import os
import resource
import signal
import stat
import subprocess
import threading
import time
from pathlib import Path

import pytest
from build_watch import alive_after, open_files, run_build
from command import CODE_COMMIT, chess_board

from code_commit.errors import BuildError, Interrupted
from code_commit.project import find_project
from code_commit.runs.words import ending_of

ENDS = [
    # build.sh, its exit code, the signal that ended it
    ("#!/bin/sh\nexit 0\n", 0, None),
    ("#!/bin/sh\nexit 3\n", 3, None),
    ("#!/bin/sh\nexit 256\n", 0, None),
    ("#!/bin/sh\nfalse | true\n", 0, None),
    ("#!/bin/sh\nno-such-command\n", 127, None),
    ("#!/bin/sh\n/etc/passwd\n", 126, None),
    ("#!/bin/sh\nexit 127\n", 127, None),
    ("#!/bin/sh\nexit 255\n", 255, None),
    ("#!/bin/bash\n(kill -SEGV $BASHPID)\nexit $?\n", 139, None),
    ("#!/bin/sh\nkill -KILL $$\n", None, 9),
    ("#!/bin/sh\nkill -SEGV $$\n", None, 11),
    ("", 0, None),
    ("exit 5\n", 5, None),
    ("echo hello", 0, None),
]
MODES = ["off", "guard", "strict"]


@pytest.mark.parametrize(("end", "mode"), chess_board(ENDS, MODES))
def test_the_end_of_build_sh_is_reported_as_it_was(build, request, mode, end):
    script, exit_code, signal_number = end
    if mode != "off":
        request.getfixturevalue("needs_bwrap")
    built = build(script, mode=mode)
    if mode != "off" and exit_code == 139:  # bubblewrap reports signals as a shell does
        exit_code, signal_number = None, exit_code - 128
    assert built.error is None
    assert (built.result.exit_code, built.result.signal) == (exit_code, signal_number)
    assert built.result.passed is (exit_code == 0)
    assert not built.result.timed_out


@pytest.mark.parametrize("mode", MODES)
def test_a_signal_that_ended_build_sh_is_named(build, request, mode):
    if mode != "off":
        request.getfixturevalue("needs_bwrap")
    result = build("#!/bin/sh\nkill -KILL $$\n", mode=mode).result
    assert ending_of(result).startswith("killed by signal 9 (SIGKILL) after ")
    assert result.shell_code == 137


UNABLE = [
    # build.sh, what is said of it
    ("#!/no/such/shell\n", "/no/such/shell does not exist"),
    ("#!/usr/bin/env no-such-shell\n", "no-such-shell is not on the PATH"),
    ("#!/usr/bin/env -S no-such-shell -e\n", "no-such-shell is not on the PATH"),
    ("#!/bin/sh\r\nexit 0\r\n", "Windows line endings"),
    ("#!/bin/sh -e\r\nexit 0\r\n", "Windows line endings"),
    ("#!/bin/sh\nset -e\r\ntrue\r\n", "Windows line endings"),
    ("set -e\r\ntrue\r\n", "Windows line endings"),
    ("#!/etc/passwd\n", "not executable"),
    ("#!/etc\n", "does not exist"),
    (b"\0\0\0\0no program\n", "it is binary"),
]


@pytest.mark.parametrize(("unable", "mode"), chess_board(UNABLE, MODES))
def test_a_build_sh_that_cannot_start_is_no_failed_build(build, request, mode, unable):
    script, message = unable
    if mode != "off":
        request.getfixturevalue("needs_bwrap")
    built = build(script, mode=mode)
    assert isinstance(built.error, BuildError), built
    assert message in str(built.error)
    assert "\n" not in str(built.error)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda path: path.unlink(), "is missing"),
        (lambda path: (path.rename(path.with_name("real.sh")), path.symlink_to("real.sh")), "is a link"),
        (lambda path: (path.unlink(), os.mkfifo(path)), "a device"),
        (lambda path: (path.unlink(), path.mkdir()), "a folder"),
        (lambda path: (path.write_bytes(b"\x7fELF\0\0"), path.chmod(0o755)), "it is binary"),
    ],
    ids=["missing", "link", "fifo", "folder", "binary"],
)
def test_a_build_sh_that_is_no_script_is_an_error(build, project_folder, make, message):
    make(project_folder / "build.sh")
    built = build(None)
    assert isinstance(built.error, BuildError)
    assert message in str(built.error)
    assert built.seconds < 20


def test_a_build_sh_without_a_run_bit_goes_through_bash_with_a_warning(build):
    built = build("echo ${BASH_VERSION:+bash} $0; exit 4", run_bit=False)
    assert (built.output, built.result.exit_code) == ("bash ./build.sh\n", 4)
    assert len(built.warnings) == 1
    assert "chmod +x build.sh" in built.warnings[0]


def test_a_build_sh_without_a_shebang_goes_through_bash_without_one(build):
    built = build("echo ${BASH_VERSION:+bash}")
    assert (built.output, built.warnings) == ("bash\n", [])


def test_without_bash_a_script_that_needs_it_is_an_error(build, tmp_path):
    built = build("echo hi", environment={"PATH": str(tmp_path)})
    assert isinstance(built.error, BuildError)
    assert "bash is not on the PATH" in str(built.error)


def test_build_sh_of_the_root_is_run_and_not_one_on_the_path(build, tmp_path):
    other = tmp_path / "bin" / "build.sh"
    other.parent.mkdir()
    other.write_text("#!/bin/sh\necho other\n")
    other.chmod(0o755)
    built = build("#!/bin/sh\necho own; pwd\n", environment={"PATH": f"{other.parent}:{os.environ['PATH']}"})
    assert built.output.splitlines() == ["own", str(tmp_path / "project")]


@pytest.mark.parametrize("mode", MODES)
def test_build_sh_has_three_descriptors_no_terminal_and_a_session_of_its_own(build, request, mode):
    if mode != "off":
        request.getfixturevalue("needs_bwrap")
    script = """#!/bin/bash
    ls -C /proc/self/fd
    read line || echo no input
    [ -t 1 ] || [ -t 2 ] || (: < /dev/tty) 2>/dev/null || echo no terminal
    set -- $(cut -d')' -f2 /proc/$$/stat); [ $3 = $4 ] && echo leads its group
    grep -E 'Sig(Ign|Blk)' /proc/self/status
    """
    os.set_inheritable(inherited := os.open("/dev/null", os.O_RDONLY), True)
    built = build(script, mode=mode)
    os.close(inherited)
    lines = built.output.splitlines()
    assert lines[0].split() == ["0", "1", "2", "3"]  # the last is the folder that ls reads
    assert lines[1:4] == ["no input", "no terminal", "leads its group"]
    blocked, ignored = (int(line.split()[1], 16) for line in lines[4:])
    of_libc = 1 << (32 - 1)  # the C library's own signal, ignored where posix_spawn started the tests
    assert (blocked, ignored & ~of_libc) == (0, 0)


def test_stdout_and_stderr_keep_their_order(build):
    built = build("#!/bin/bash\nfor i in {1..200}; do echo out $i; echo err $i >&2; done\n")
    assert built.output.splitlines() == [f"{stream} {i}" for i in range(1, 201) for stream in ("out", "err")]


def test_every_byte_of_the_output_comes_through(build, project_folder):
    content = bytes(range(256)) * 5000 + "é\r50%\r100%\x1b[1m\x1b]52;c;x\x07".encode()[:-1] + b"no final newline\xc3"
    (project_folder / "bytes").write_bytes(content)
    built = build("#!/bin/sh\ncat bytes\n")
    assert b"".join(built.pieces) == content
    assert built.result.output_bytes == len(content)


def test_output_comes_while_the_build_runs(project_folder):
    (project_folder / "build.sh").write_text("#!/bin/sh\necho early\nwhile [ ! -e seen ]; do sleep 0.01; done\n")
    result = run_build(
        find_project(project_folder),
        (project_folder / "seen").write_bytes,
        timeout=20,
        environment=dict(os.environ),
    )
    assert result.passed
    assert (project_folder / "seen").read_bytes() == b"early\n"


def test_memory_stays_flat_however_much_comes(project_folder, whole):
    size = 1_000_000_000 if whole else 200_000_000
    (project_folder / "build.sh").write_text(f"#!/bin/sh\nhead -c {size} /dev/zero\n")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    longest = 0

    def measure(piece):
        nonlocal longest
        longest = max(longest, len(piece))

    result = run_build(find_project(project_folder), measure, timeout=0, environment=dict(os.environ))
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert result.output_bytes == size
    assert longest <= 1 << 20
    assert grown < 16_000  # kB


def test_an_error_of_the_sink_ends_the_build_and_is_raised(project_folder, mark):
    (project_folder / "build.sh").write_text("#!/bin/sh\necho one\nsleep 60 & sleep 60\n")

    def full(piece):
        raise OSError(28, "No space left on device")

    with pytest.raises(OSError, match="No space"):
        run_build(find_project(project_folder), full, timeout=0, environment={**os.environ, "MARK": mark})
    assert alive_after(mark, 0) == []


def test_an_interruption_inside_the_sink_ends_the_build(project_folder, mark):
    (project_folder / "build.sh").write_text("#!/bin/sh\ntrap 'echo ended; exit' TERM\necho one\nsleep 60 &\nwait\n")
    pieces = []

    def stop(piece):
        pieces.append(piece)
        if len(pieces) == 1:
            raise Interrupted(signal.SIGINT)

    with pytest.raises(Interrupted):
        run_build(find_project(project_folder), stop, timeout=0, environment={**os.environ, "MARK": mark})
    assert b"".join(pieces) == b"one\nended\n"
    assert alive_after(mark, 0) == []


def test_run_build_works_outside_the_main_thread(build):
    done = []
    thread = threading.Thread(target=lambda: done.append(build("#!/bin/sh\nexit 7\n").result))
    thread.start()
    thread.join(20)
    assert done[0].exit_code == 7


def test_the_tool_is_left_as_it_was(build):
    def children():
        return {pid for task in Path("/proc/self/task").iterdir() for pid in (task / "children").read_text().split()}

    def handlers():
        return [signal.getsignal(number) for number in range(1, 65)]

    before = open_files(), handlers(), children()
    for script in ("#!/bin/sh\nsleep 60 & exit 3\n", "#!/no/such/shell\n", "#!/bin/sh\nexec sleep 60\n"):
        build(script, timeout=0.1)
    assert open_files() - before[0] == set()
    assert (handlers(), children()) == before[1:]
    value = ctypes.c_int(7)
    ctypes.CDLL(None).prctl(37, ctypes.byref(value), 0, 0, 0)
    assert value.value == 0


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_a_build_sh_that_cannot_be_read_is_an_error(build, project_folder):
    (project_folder / "build.sh").chmod(stat.S_IXUSR)
    assert "cannot be read" in str(build(None).error)


def test_the_result_tells_how_long_it_took(build):
    begun = time.monotonic()
    built = build("#!/bin/sh\nsleep 0.3\n")
    assert 0.3 <= built.result.seconds <= time.monotonic() - begun


@pytest.mark.parametrize(("taken", "mode"), chess_board([1, 30, 60], MODES))
def test_it_does_not_matter_which_descriptors_are_free(build, request, mode, taken):
    if mode != "off":
        request.getfixturevalue("needs_bwrap")
    held = [os.open("/dev/null", os.O_RDONLY) for _ in range(taken)]
    built = build("#!/bin/sh\necho out; ls /proc/self/fd | wc -l\n", mode=mode, timeout=10)
    for descriptor in held:
        os.close(descriptor)
    assert built.output == "out\n4\n"


@pytest.mark.slow
@pytest.mark.parametrize(("closing", "mode"), chess_board(["<&-", "<&- >&- 2>&-"], MODES))
def test_a_tool_that_was_started_without_stdin_or_stdout_builds_all_the_same(project_folder, request, mode, closing):
    if mode != "off":
        request.getfixturevalue("needs_bwrap")
    (project_folder / "build.sh").write_text("#!/bin/sh\necho out; echo err >&2\n")
    (project_folder / "agent-config" / "response.txt").write_text("^^^ok.txt\nok\n^^^end\n")
    command = [*CODE_COMMIT, "apply", "agent-config/response.txt", "--build", "--sandbox", mode]
    subprocess.run(["sh", "-c", f'exec "$@" {closing}', "sh", *command], cwd=project_folder, check=True, timeout=30)
    (output,) = project_folder.glob("agent-config/logs/*/*-build.txt")
    assert output.read_text().startswith("out\nerr\n[build.sh: exit code 0")
