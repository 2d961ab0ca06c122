"""The next prompt, and the build's output in it."""

import pytest

from code_commit.prompts.next import read_build_output


def test_the_whole_output_is_kept_up_to_the_limit(tmp_path):
    log = tmp_path / "1-build.txt"
    log.write_bytes(b"x" * 100 + b"\n")
    assert read_build_output(log, 101, "log") == "x" * 100 + "\n"
    assert read_build_output(log, 0, "log") == "x" * 100 + "\n"


@pytest.mark.parametrize("lines", [1_000, 200_000])
def test_a_longer_output_keeps_whole_lines_of_its_head_and_tail(tmp_path, lines):
    log = tmp_path / "1-build.txt"
    log.write_bytes(b"".join(b"line %d\n" % number for number in range(lines)))
    text = read_build_output(log, 4_000, "agent-config/logs/run/1-build.txt")
    rows = text.splitlines()
    gap = next(index for index, row in enumerate(rows) if row.startswith("[..."))
    assert rows[:3] == ["line 0", "line 1", "line 2"]
    assert rows[-1] == f"line {lines - 1}"
    kept = [int(row.removeprefix("line ")) for row in rows[:gap] + rows[gap + 1 :]]
    assert kept == [*range(gap), *range(lines - (len(rows) - gap - 1), lines)]
    assert len(text.encode()) < 4_200
    missing = log.stat().st_size - sum(len(row) + 1 for row in rows[:gap] + rows[gap + 1 :])
    assert rows[gap] == (
        f"[... {missing:,} bytes of the output are left out here; all of it is in agent-config/logs/run/1-build.txt ...]"
    )


def test_a_progress_bar_over_the_limit_counts_as_what_it_shows(tmp_path):
    log = tmp_path / "1-build.txt"
    log.write_bytes(b"".join(b"\r%d%%" % number for number in range(2_000)) + b"\nok\n")
    assert read_build_output(log, 2_000, "log") == "1999%\nok\n"
