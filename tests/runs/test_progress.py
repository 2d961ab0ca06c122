"""What a person sees on a terminal while a run goes on, and what is left there afterwards."""

import re
import shlex
import shutil
from collections.abc import Mapping
from pathlib import Path

import pytest
from command import CODE_COMMIT, Run, git, recorded
from fake_server import FakeServer, Fault
from terminal import Terminal

pytestmark = pytest.mark.skipif(not shutil.which("tmux"), reason="there is no tmux here")

WRONG, RIGHT = "^^^ok.txt\nno\n^^^end\n", "^^^ok.txt\nok\n^^^end\n"
SIZES = [(80, 24), (40, 10)]
GATE = 'until [ -e "$(dirname "$0")/../gates/{name}" ]; do sleep 0.02; done\n'
BUILD = (
    "#!/bin/sh\necho compiling\nprintf 'step %s' 1\n"
    + GATE.format(name="built")
    + "echo; cat ok.txt; grep -qx ok ok.txt\n"
)


@pytest.fixture
def root(project_folder: Path) -> Path:
    lay_build(project_folder, BUILD)
    return project_folder


def lay_build(root: Path, script: str) -> None:
    (root.parent / "gates").mkdir(exist_ok=True)
    (root / "build.sh").write_text(script)
    git(root, "commit", "-qam", "another build")


def open_gate(root: Path, name: str = "built") -> None:
    (root.parent / "gates" / name).touch()


def recorded_bare(root: Path, *answers: str) -> list[str]:
    return [*recorded(root, *answers), "--sandbox", "off"]


def terminal(
    root: Path,
    *arguments: str,
    size: tuple[int, int] = (80, 24),
    env: Mapping[str, str] | None = None,
    behind: str = "",
) -> Terminal:
    return Terminal(root, f"{shlex.join([*CODE_COMMIT, *arguments])} {behind}", *size, env or {})


def timeless(lines: list[str]) -> list[str]:
    """Return the lines without what differs from run to run, and rows of one line together."""
    text = re.sub(r"\d+(-\d+){5}-", "DATE-", re.sub(r"\n +", " ", "\n".join(lines)))
    return re.sub(r"\d+\.\d s", "TIME", re.sub(r", \$0\.\d+", "", text)).split("\n")


LOG = "agent-config/logs/DATE-committing-code"
LINES = [
    "model: chat:m",
    f"log: {LOG}",
    "attempt 1 of 4: chat:m answered after TIME: 1,000 tokens in (100 cached), 40 out",
    "warning: ok.txt shrinks to under half: from 8 to 3 bytes",
    "attempt 1 of 4: 1 file changed, +1 -1: ok.txt",
    "attempt 1 of 4: build failed: exit code 1 after TIME",
    "attempt 2 of 4: chat:m answered after TIME: 1,000 tokens in (100 cached), 40 out",
    "attempt 2 of 4: 1 file changed, +1 -1: ok.txt",
    "attempt 2 of 4: build passed: exit code 0 after TIME",
    "The build passes after 2 attempts: 1 file changed in TIME, 2,080 tokens.",
    "Nothing is committed. Review: code-commit diff. Undo: code-commit undo.",
    "[exit code 0]",
]


@pytest.mark.slow
@pytest.mark.parametrize("size", SIZES)
def test_one_live_region_while_it_runs_and_only_lines_behind_it(size, root: Path):
    with FakeServer([WRONG, RIGHT], [Fault("pause")]) as server:
        chat = ["--model", "chat:m", "--base-url", server.base_url("chat"), "--sandbox", "off"]
        with terminal(root, *chat, size=size) as pane:
            rows = pane.wait_for(r"^  \d\.\d kB received$")
            assert re.fullmatch(r"attempt 1 of 4, \d+\.\d s: asking chat:m( \(until .*)?", rows[-2])
            server.resumed.set()
            rows = pane.wait_for("^  step 1$")
            until = r" \(until \d\d:\d\d:\d\d\)" if size[0] == 80 else ""
            assert re.fullmatch(r"attempt 1 of 4, \d+\.\d s: running build\.sh" + until, rows[-2])
            assert sum("attempt 1 of 4, " in row for row in rows) == 1
            assert not any("kB received" in row for row in rows)
            open_gate(root)
            assert pane.end() == 0
            assert timeless(pane.lines()) == LINES
            assert pane.shows_cursor
            behind_the_build = pane.raw.read_bytes().partition(b"build failed")[2]
    assert b"attempt 1 of 4, " not in behind_the_build, "a phase that is over is not drawn again"


@pytest.mark.slow
def test_the_state_of_a_polled_job(root: Path):
    open_gate(root)
    (root / "agent-config" / "openai-key.txt").write_text("sk-test-0123456789abcdef\n")
    (root / "agent-config" / "openai-key.txt").chmod(0o600)
    with FakeServer([RIGHT], polls=1_000_000) as server:
        openai = ["--model", "openai:gpt-6.2-sol", "--base-url", server.base_url("openai"), "--sandbox", "off"]
        with terminal(root, *openai, size=(40, 10)) as pane:
            rows = pane.wait_for("^  in_progress$")
            assert re.fullmatch(r"attempt 1 of 4, \d+\.\d s: asking openai:g…", rows[-2])
            server.polls = 0
            assert pane.end() == 0
            assert not any("in_progress" in row for row in pane.screen())


PLAIN = {
    "a terminal that cannot redraw": ({"TERM": "dumb"}, ""),
    "no TERM": ({"TERM": ""}, ""),
    "in CI": ({"CI": "true"}, ""),
    "into a pipe": ({}, "2>&1 | cat"),
}


@pytest.mark.parametrize(("env", "behind"), PLAIN.values(), ids=PLAIN)
def test_where_nothing_can_be_redrawn_there_are_lines_only(env, behind, root: Path):
    with terminal(root, *recorded_bare(root, RIGHT), env=env, behind=behind) as pane:
        pane.wait_for("^attempt 1 of 4: 1 file changed")
        open_gate(root)
        assert pane.end() == 0
        printed = pane.raw.read_bytes()
    assert b"\x1b" not in printed
    assert b"running build.sh" not in printed
    assert b"build passed" in printed


def test_no_color_is_heeded_the_region_stays(root: Path):
    with terminal(root, *recorded_bare(root, RIGHT), env={"NO_COLOR": "1"}) as pane:
        pane.wait_for("running build.sh")
        open_gate(root)
        assert pane.end() == 0
        assert re.findall(rb"\x1b\[[\d;]*(?:3|4|9|10)\d[\d;]*m", pane.raw.read_bytes()) == []


FAILING = (
    "#!/bin/sh\nfor n in $(seq 20); do printf '\\033[31mline %s\\tof the output, key: %s\\n' $n {key}; done\nexit 1\n"
)
LAST_LINES = [f"  | line {n} of the output, key: " for n in range(9, 21)]


@pytest.mark.parametrize("columns", [40, 80, 200])
def test_a_run_that_fails_ends_with_the_last_lines_of_its_build(columns, root: Path):
    key = "sk-test-0123456789abcdef"
    (root / "agent-config" / "openai-key.txt").write_text(key)
    (root / "agent-config" / "openai-key.txt").chmod(0o600)
    lay_build(root, FAILING.format(key=key))
    with terminal(root, *recorded_bare(root, WRONG), "--max-repairs", "0", size=(columns, 60)) as pane:
        assert pane.end() == 1
        rows, raw = pane.screen(), pane.raw.read_bytes()
    assert all(len(row) <= columns for row in rows)
    text = " ".join(" ".join(rows).split())
    assert all(" ".join(line.split()) in text for line in LAST_LINES)
    assert "line 8 " not in text
    assert "| [... the other lines are in 1-build.txt of the log ...] | line 9 " in text
    assert key not in text
    words = "The build fails after 1 attempt: 1 file changed in .* See: code-commit log --open."
    assert re.search(f"key: .* {words} The changes stay until code-commit undo. .exit code 1.$", text)
    assert text.count(f"{LOG[:18]}") == 1
    assert re.search(rb"\x1b\[31mThe build fails", raw)
    assert re.search(rb"\x1b\[33mwarning: ", raw)
    assert b"\x1b[31mline" not in raw


def test_verbose_shows_the_output_as_it_comes(root: Path, run_code_commit: Run):
    lay_build(root, "#!/bin/sh\nprintf 'one\\rtwo\\nthree'; sleep 0.1; printf ' four'; exit 1\n")
    done = run_code_commit(root, *recorded_bare(root, WRONG), "--max-repairs", "0", "--verbose")
    between = done.stderr.partition("  replace ok.txt  +1 -1\n")[2].partition("attempt 1 of 1: build failed")[0]
    assert between == "  | two\n  | three four\n"
    assert done.stderr.count("three four") == 1
    assert "See: code-commit log --open" in done.stderr


@pytest.mark.slow
def test_a_retry_says_until_when(root: Path, run_code_commit: Run):
    (root / "build.sh").write_text("#!/bin/sh\ntrue\n")
    with FakeServer([RIGHT], [Fault("status", status=429, headers={"retry-after": "1"})]) as server:
        done = run_code_commit(root, "--model", "chat:m", "--base-url", server.base_url("chat"))
    assert done.returncode == 0, done.stderr
    assert re.search(r"answered 429.*; retrying in 1\.0 s, until \d\d:\d\d:\d\d at the latest\n", done.stderr)


@pytest.mark.slow
def test_retries_for_one_reason_are_one_line_that_counts_them(root: Path, run_code_commit: Run):
    (root / "build.sh").write_text("#!/bin/sh\ntrue\n")
    busy = Fault("status", status=429, headers={"retry-after": "1"}, times=3)
    chat = ["--model", "chat:m", "--sandbox", "off", "--llm-timeout", "99999", "--base-url"]
    with FakeServer([RIGHT], [busy, Fault("status", status=503, headers={"retry-after": "1"})]) as server:
        with terminal(root, *chat, server.base_url("chat"), size=(160, 24)) as pane:
            rows = pane.wait_for(r"^  retrying in 1\.0 s, until .* \(2 times\): \S")
            assert sum("retrying in" in row for row in rows) == 1
            assert pane.end() == 0
            told = [line for line in pane.lines() if "; retrying in" in line]
    assert len(told) == 2
    assert re.fullmatch(
        r"attempt 1 of 4: .* answered 429.*; retrying in 1\.0 s, until .* at the latest \(3 times\)", told[0]
    )
    assert re.fullmatch(r"attempt 1 of 4: .* answered 503.*; retrying in 1\.0 s, until .* at the latest", told[1])
    logged = run_code_commit(root, "log", "latest").stdout
    retried = [line.removeprefix("  retried: ") for line in logged.split("\n") if line.startswith("  retried: ")]
    assert retried == [line.removeprefix("attempt 1 of 4: ") for line in told]
    page = run_code_commit(root, "log", "--html", "-").stdout
    assert page.count("at the latest (3 times)</li>") == page.count("answered 429") == 1


@pytest.mark.slow
def test_retries_are_told_one_by_one_where_no_line_can_be_redrawn(root: Path, run_code_commit: Run):
    (root / "build.sh").write_text("#!/bin/sh\ntrue\n")
    with FakeServer([RIGHT], [Fault("status", status=429, headers={"retry-after-ms": "10"}, times=3)]) as server:
        done = run_code_commit(root, "--model", "chat:m", "--base-url", server.base_url("chat"))
    assert (done.returncode, done.stderr.count("answered 429"), done.stderr.count("times)")) == (0, 3, 0)


def test_no_word_is_broken_at_the_end_of_a_row(root: Path):
    with terminal(root, "check", "--model", "replay:no-such-folder", size=(60, 40)) as pane:
        assert pane.end() == 2
        rows, raw = pane.screen(), pane.raw.read_bytes()
    (first,) = [number for number, row in enumerate(rows) if row.startswith("PROBLEM  replay")]
    assert rows[first].startswith("PROBLEM  replay          there is no folder no-such-folder")
    assert rows[first + 1] == " " * 25 + "with recorded responses"
    assert b"\x1b[31mPROBLEM\x1b[m" in raw
    (root / "agent-config/config.toml").write_text("keep_runs = 1\n")
    with terminal(root, "log", "--prune", size=(20, 10)) as pane:
        assert pane.end() == 0
        assert pane.screen()[:2] == ["removed 0 runs, 0", "  bytes"]


@pytest.mark.slow
def test_quiet_prints_nothing_but_errors(root: Path):
    open_gate(root)
    answered = recorded_bare(root, RIGHT)
    with terminal(root, "--quiet", *answered) as pane:
        assert pane.end() == 0
        assert pane.lines() == ["[exit code 0]"]
    (root / "ok.txt").write_text("not yet\n")
    with terminal(root, "--quiet", *answered, "--protect", "ok.txt") as pane:
        assert pane.end() == 3
        assert re.fullmatch(r"code-commit: .*", pane.lines()[0])


HOSTILE = {
    "orders to the terminal": (r"\033[2J\033[H\033[5A\033[?1049h\033]0;title\007\033[31mred\033[10B", "line 0: red"),
    "a very long line": ("x" * 5000, "xxxx"),
    "wide characters": ("日本語" * 100, "日本語"),
    "characters of doubtful width": ("☀️" * 60 + "👨‍👩‍👧" * 60 + "🏳️‍🌈" * 30, "☀|👨|\U0001f3f3"),
    "combining characters": ("é" * 100 + "Z͑ͫ̓ͪ̂ͫ̽͏̴̙̤̞͉͚̯̞̠͍A̴̵̜̰͔ͫ͗͢" * 20, "ZA|e"),
    "writing from right to left": ("שלום " * 30 + r"\342\200\256evil\342\200\254", "שלום"),
    "carriage returns": (r"\rabc\r" + "y" * 200 + r"\r", "yyyy"),
    "backspaces and bells": (r"\b\b\b\b\007\007\v\f", r"\\x08\\x08"),
    "broken UTF-8": (r"\377\376\200" * 50, "���"),
    "tabs": (r"\t" * 60 + "end", "line 9:"),
    "line separators": (r"\302\205a\342\200\250b\342\200\251c" * 20, r"\\x85a"),
}
"""What a build prints, as printf takes it, and what the region shows of it."""


@pytest.mark.slow
@pytest.mark.parametrize("size", SIZES)
def test_no_line_of_a_build_breaks_the_region(size, root: Path):
    script = ["#!/bin/sh"]
    for number, (line, _) in enumerate(HOSTILE.values()):
        script += [f"printf 'line {number}: {line}'", GATE.format(name=number), "echo"]
    lay_build(root, "\n".join([*script, ""]))
    with terminal(root, *recorded_bare(root, RIGHT), size=size) as pane:
        for number, (_, visible) in enumerate(HOSTILE.values()):
            rows = pane.wait_for(rf"^  (line {number}: .*)?.*({visible})")
            assert sum("running build.sh" in row for row in rows) == 1
            assert re.fullmatch(r"attempt 1 of 4, \d+\.\d s: running build\.sh( \(until .*)?", rows[-2])
            open_gate(root, str(number))
        assert pane.end() == 0
        assert timeless(pane.lines()) == [
            "model: replay:agent-config/recorded",
            f"log: {LOG}",
            "attempt 1 of 4: replay:agent-config/recorded answered after TIME",
            "warning: ok.txt shrinks to under half: from 8 to 3 bytes",
            "attempt 1 of 4: 1 file changed, +1 -1: ok.txt",
            "attempt 1 of 4: build passed: exit code 0 after TIME",
            "The build passes after 1 attempt: 1 file changed in TIME.",
            *LINES[-2:],
        ]


def test_a_command_to_copy_has_no_line_end_in_it(root: Path):
    with terminal(root, *recorded_bare(root, RIGHT), "--dry-run", "--answer-format", "auto") as pane:
        assert pane.end() == 0
        (line,) = (line for line in pane.lines() if line.startswith("To apply it: "))
    assert re.fullmatch(
        r"To apply it: code-commit apply --answer-format auto agent-config/logs/\S+/1-response\.txt", line
    )


def test_an_interrupt_leaves_a_whole_terminal(root: Path):
    with terminal(root, *recorded_bare(root, RIGHT)) as pane:
        pane.wait_for("^  step 1$")
        assert not pane.shows_cursor
        pane.press("C-c")
        assert pane.end() == 130
        assert pane.shows_cursor
        assert not any("running build.sh" in row or row == "  step 1" for row in pane.screen())
        assert "code-commit: interrupted by SIGINT; no file is half written" in pane.lines()


@pytest.mark.parametrize("size", [(100, 24), (60, 12)])
def test_a_terminal_that_changes_its_width(size, root: Path):
    with terminal(root, *recorded_bare(root, RIGHT)) as pane:
        pane.wait_for("^  step 1$")
        pane.resize(*size)
        open_gate(root)
        assert pane.end() == 0
        assert not any("running build.sh" in row for row in pane.screen())


@pytest.mark.parametrize(("length", "code"), [(4000, 0), (4095, 2), (6000, 2)])
def test_a_response_can_be_pasted_but_for_lines_that_the_terminal_cuts(length, code, root: Path):
    with terminal(root, "apply", "-") as pane:
        pane.wait_for("^Paste the response, then press Enter and Ctrl-D.$")
        pane.press("-l", f"^^^long.txt\n{'x' * length}\n^^^end\n")
        pane.press("C-d")
        assert pane.end() == code
    if code == 0:
        assert (root / "long.txt").read_text() == "x" * length + "\n"
    else:
        assert not (root / "long.txt").exists()
