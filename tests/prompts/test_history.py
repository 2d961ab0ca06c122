"""What a prompt tells of earlier attempts."""

from dataclasses import replace

import pytest

from code_commit.changes import AppliedChange, Violation
from code_commit.prompts.history import AttemptSummary, comparable, tell_attempt, tell_history
from code_commit.runs.record import Attempt, BuildResult


def attempt_of(**fields: object) -> Attempt:
    return Attempt(3, "repair", verdict="applied", **fields)


FAILURE = BuildResult(exit_code=2, signal=None, timed_out=False, seconds=1.25, output_bytes=9)


CHANGED = [AppliedChange(f"{name}.c", "replace", 9, 2, 1) for name in "ihgfedcba"]


TOLD = {
    "applied": (attempt_of(changes=CHANGED[-2:], build=FAILURE), "changed a.c, b.c (+4 -2); the build failed: exit code 2 after 1.2 s\n"),
    "many files": (attempt_of(changes=CHANGED), "changed a.c, b.c, c.c, d.c, e.c, f.c, g.c, h.c and 1 more (+18 -9)\n"),
    "as before": (attempt_of(build=FAILURE, same_failure_as=1), "changed nothing, every file held that already; the build failed: exit code 2 after 1.2 s, just as after attempt 1: if the cause lies in the project, take another way now; if outside, send ^^^cannot\n"),
    "another change": (attempt_of(changes=CHANGED[-1:], build=FAILURE, same_failure_as=1), "changed a.c (+2 -1); the build failed: exit code 2 after 1.2 s, just as after attempt 1: if the cause lies in the project, take another way now; if outside, send ^^^cannot\n"),
    "rejected": (Attempt(3, "repair", verdict="rejected", rejections=[Violation("a", 2, "link", "is a link")], more_rejections=4), "was rejected, none of it was written: line 2: a: is a link (and more)\n"),
    "notes": (attempt_of(notes="One.\n\n [query] two", changes=CHANGED[:1]), "changed i.c (+2 -1)\n  Its notes: One. [query] two\n"),
    "long notes": (attempt_of(notes="x" * 9_000, changes=CHANGED[:1]), f"changed i.c (+2 -1)\n  Its notes: {'x' * 600} ...\n"),
    "the same change": (attempt_of(changes=CHANGED[-1:], build=FAILURE, same_change_as=1), "sent the change of attempt 1 again and changed a.c (+2 -1); the build failed: exit code 2 after 1.2 s: if the cause lies in the project, take another way now; if outside, send ^^^cannot\n"),
    "rejected again": (Attempt(3, "repair", verdict="rejected", rejections=[Violation("", 0, "x", "odd")], same_change_as=2), "sent the change of attempt 2 again and was rejected, none of it was written: odd\n"),
}  # fmt: skip


@pytest.mark.parametrize(("attempt", "told"), TOLD.values(), ids=TOLD)
def test_each_earlier_attempt_is_told_in_a_line_with_its_notes(attempt, told):
    assert str(tell_attempt(attempt)) == f"Attempt 3 {told}"


def test_the_same_notes_of_two_attempts_are_told_once():
    notes = {"1 a": "One.", "2 b": "Same.", "3 c": "Same.", "4 d": ""}
    told = [AttemptSummary(f"Attempt {number}", "", said) for number, said in notes.items()]
    assert tell_history(told, last_is_told_apart=False) == [
        "Attempt 1 a\n  Its notes: One.\n",
        "Attempt 2 b\n",
        "Attempt 3 c\n  Its notes: Same.\n",
        "Attempt 4 d\n",
    ]


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("1 failed in 0.31s\n", "1 failed in 12.02s\n", True),
        ("built in 900 ms", "built in 1.2 s", True),
        ("at 12:31:07.201 <T at 0x7fca>", "at 12:32:09.999 <T at 0x7f09>", True),
        ("expected 3, got 4", "expected 3, got 5", True),
        ("src/a.rs:10:31: error", "src/a.rs:12:31: error", True),
        ("src/a.rs:10: error", "src/b.rs:10: error", False),
        ("FAILED test_case_1", "FAILED test_case_2", False),
        ("".join(f"compiled {name}\n" for name in "abc") + "error\n" * 20, "error\n" * 20, True),
        ("error: x\n\n", "error: x\n", True),
    ],
)
def test_failures_are_compared_by_their_last_lines_without_numbers_and_times(one, other, same):
    assert (comparable(FAILURE, one) == comparable(FAILURE, other)) == same


@pytest.mark.parametrize("ending", [{"exit_code": 1}, {"exit_code": None, "signal": 9}, {"timed_out": True}])
def test_builds_that_end_in_other_ways_did_not_fail_alike(ending):
    assert comparable(FAILURE, "error\n") != comparable(replace(FAILURE, **ending), "error\n")
    assert comparable(FAILURE, "error\n") == comparable(replace(FAILURE, seconds=9), "error\n")


def test_a_long_history_has_a_line_for_each_attempt_where_the_last_is_told_apart():
    told = [AttemptSummary(f"Attempt {number} " + "x" * 700, "; it failed", "notes") for number in (1, 2, 3)]
    lines = tell_history(told, last_is_told_apart=True)
    assert len(lines) == 3
    assert "".join(lines).endswith(f"{told[-1].start}: see [rejected response].\n")
