"""The progress of a fleet on the terminal: lines that stay, and a live table below them."""

import shlex
import shutil
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from terminal import Terminal

from code_commit.commands.results import Result
from code_commit.fleet.table import FleetTable

GREEN = Result("a", "d", "success", 0, attempts=2, cost_usd=0.5, seconds=61)
RED = Result("b", "d", "build_failed", 1, attempts=4, seconds=2, message="the build \x1b[31mstill fails\nmore")
NOT_CLONED = Result("c", "d", "not_set_up", 2, message="2 problems to solve:\n- one\n- two")
LINES = [
    "1 of 4: a: green after 2 attempts in 1 min 1 s, $0.50",
    "2 of 4: b: build failed after 4 attempts in 2.0 s: the build \\x1b[31mstill fails",
    "3 of 4: c: not set up in 0.0 s: 2 problems to solve: - one - two",
]


def test_without_a_terminal_each_result_is_a_line_and_the_end_has_the_sums(capsys):
    with FleetTable(4) as table:
        for result in (GREEN, RED, NOT_CLONED):
            table.report(result)
    table.close(Path("out"))
    *lines, end = capsys.readouterr().err.splitlines()
    assert lines == LINES
    sums = "1 of 4 tasks green, 1 build failed, 1 not set up, 1 not done"
    assert end == f"{sums}: $0.50 and 1 task of unknown cost, 0.0 s. Page: out/index.html"


def test_a_cost_of_more_runs_than_the_attempts_are_of_is_told_to_be_that(capsys):
    again = replace(GREEN, run="r")
    with FleetTable(3) as table:
        table.report(again.with_runs({"r": (0.5, 0.0), "earlier version": (0.0, 0.0)}))
        table.report(again.with_runs({"r": (0.5, 0.0), "s": (0.25, 0.0)}))
        table.report(again.with_runs({"r": (0.5, 0.0), "lost": (0.0, None)}))
    table.close(Path("out"))
    *lines, end = capsys.readouterr().err.splitlines()
    assert [line.rpartition(", ")[2] for line in lines] == ["$0.50", "$0.75 in all runs", "$0.50 in all runs"]
    assert ": $1.75 in all runs and 1 task of unknown cost, " in end


def test_small_costs_are_not_printed_as_0_and_changing_builds_are_told(capsys):
    with FleetTable(3) as table:
        for cost, built in ((0.00001, ("a.lock",)), (0.004, ()), (0.0, ())):
            table.report(Result("a", "d", "success", 0, cost_usd=cost, build_changes=built))
    table.close(Path("out"))
    *lines, built, end = capsys.readouterr().err.splitlines()
    assert [line.rpartition(", ")[2] for line in lines] == ["<$0.0001", "$0.0040", "$0.00"]
    assert built == "1 build also changed tracked files that no answer touched: see build.patch"
    assert ": $0.0040, " in end


def test_a_cost_that_is_not_known_is_no_0(capsys):
    with FleetTable(1, [RED]) as table:
        table.close(Path("out"))
    assert "0 of 1 task green, 1 build failed: cost unknown, 1 task kept" in capsys.readouterr().err


def test_results_of_before_are_counted_and_not_printed_again_and_quiet_prints_nothing(capsys):
    with FleetTable(4, [GREEN, NOT_CLONED]) as table:
        table.report(RED)
    assert capsys.readouterr().err.startswith("3 of 4: b: ")
    assert (table.totals.green, table.totals.attempts, table.totals.cost_usd) == (1, 6, 0.5)
    with FleetTable(1, quiet=True) as table:
        table.report(GREEN)
    assert capsys.readouterr().err == ""


def test_a_fleet_with_nothing_left_to_do_says_so(capsys):
    with FleetTable(2, [GREEN, RED]) as table:
        table.close(Path("out"))
    sums = "1 of 2 tasks green, 1 build failed: $0.50 and 1 task of unknown cost"
    again = "(--failed runs those that are not green)"
    assert capsys.readouterr().err == f"{sums}, 2 tasks kept, none ran {again}. Page: out/index.html\n"
    with FleetTable(1, [GREEN]) as table:
        table.close(Path("out"))
    assert capsys.readouterr().err.endswith(", 1 task kept, none ran. Page: out/index.html\n")


def test_what_no_reply_confirmed_is_told_beside_the_cost(capsys):
    with FleetTable(1) as table:
        table.report(Result("a", "d", "success", 0, cost_usd=0.01, unsettled_usd=0.32))
        table.close(Path("out"))
    line, end = capsys.readouterr().err.splitlines()
    assert line.endswith(", $0.01 and at most $0.32 unsettled")
    assert ": $0.01 and at most $0.32 unsettled, " in end


WATCHED = """
import time
from pathlib import Path
from code_commit.commands.results import Result
from code_commit.fleet.table import FleetTable
with FleetTable(10, [Result("z", "d", "success", 0)]) as table:
    table.running = 3
    table.report(Result("a", "d", "success", 0, attempts=1, cost_usd=0.25))
    while not Path("gate").exists():
        time.sleep(0.02)
"""


@pytest.mark.skipif(not shutil.which("tmux"), reason="there is no tmux here")
def test_a_terminal_shows_the_table_while_it_runs_and_the_lines_alone_after_it(tmp_path):
    command = shlex.join([sys.executable, "-c", WATCHED])
    with Terminal(tmp_path, command, 50, 10, {}) as terminal:
        *_, line, heads, cells = [row for row in terminal.wait_for(r"^ *5 +3 ") if row.strip()]
        assert line == "2 of 10: a: green after 1 attempt in 0.0 s, $0.25"
        assert heads.split() == ["waiting", "running", "done", "green", "cost", "time", "left"]
        assert cells.split()[:5] == ["5", "3", "2", "2", "$0.25"]
        (tmp_path / "gate").touch()
        assert terminal.end() == 0
        assert [row for row in terminal.screen() if row.strip()] == [line, "[exit code 0]"]
        assert terminal.shows_cursor


def test_an_attempt_without_an_answer_has_not_ended(capsys):
    with FleetTable(1) as table:
        table.report(Result("d", "d", "interrupted", 130, attempts=2, message="interrupted by SIGINT"))
    assert capsys.readouterr().err == "1 of 1: d: interrupted in attempt 2 after 0.0 s: interrupted by SIGINT\n"
