"""The lines of a failed build that a user is shown: a failure with its reason, as real test runners print them."""

from pathlib import Path

import pytest

from code_commit.outputs import failure_line, telling_lines
from code_commit.terminal import render

OUTPUTS = Path(__file__).parent / "build_outputs"
MOST = 12
REASONS = {
    "cargo": ("---- tests::adds_03 stdout ----", " right: 10"),
    "dotnet": ("  Failed Cart.Tests.CartTest.Adds [3 ms]", "Expected: 10"),
    "go": ("--- FAIL: TestAdds03 (0.00s)", "    cart_test.go:27: got 9, want 10"),
    "go-v": ("--- FAIL: TestAdds03 (0.00s)", "    cart_test.go:27: got 9, want 10"),
    "gradle": ("CartTest > adds() FAILED", "    org.opentest4j.AssertionFailedError at CartTest.java:9"),
    "gtest": ("[  FAILED  ] Cart.Adds03 (0 ms)", "    Which is: 9"),
    "gtest-many": ("[  FAILED  ] Cart.Adds03 (0 ms)", "    Which is: 9"),
    "jest": ("    expect(received).toBe(expected) // Object.is equality", "    Received: 9"),
    "mocha": ("  1) cart", "9 !== 10"),
    "mvn": (
        "[ERROR] org.example.CartTest.adds -- Time elapsed: 0.013 s <<< FAILURE!",
        "[ERROR]   CartTest.adds:9 expected: <10> but was: <9>",
    ),
    "node-spec": ("✖ adds case 3 (1.021447ms)", "  9 !== 10"),
    "node-tap": ("    not ok 4 - adds case 3", "        9 !== 10"),
    "phpunit": ("1) CartTest::testAdds", "Failed asserting that 9 matches expected 10."),
    "prove": ("#   Failed test 'adds 3'", "#     expected: '10'"),
    "pytest": (
        "E       AssertionError: 9 != 10",
        "FAILED test_cart.py::Cart::test_adds_03 - AssertionError: 9 != 10",
    ),
    "rspec": ("  1) Cart adds three", "       expected: 10"),
    "unittest": ("FAIL: test_adds_03 (test_cart.Cart.test_adds_03)", "AssertionError: 9 != 10"),
    "vitest": (" FAIL  vi.test.mjs > cart > adds case 3", "AssertionError: expected 9 to be 10 // Object.is equality"),
}


@pytest.mark.parametrize("runner", sorted(path.stem for path in OUTPUTS.iterdir()))
def test_a_failed_test_is_shown_with_its_reason(runner: str):
    output = (OUTPUTS / f"{runner}.txt").read_bytes()
    lines = render(output).expandtabs().rstrip().split("\n")
    above, *_ = rows = telling_lines(output, "1-build.txt")
    assert set(REASONS[runner]) <= {*rows}, "\n".join(rows)
    assert (above == "[... the other lines are in 1-build.txt ...]") == (len(list(filter(str.strip, lines))) > MOST)
    shown = [row for row in rows if not row.startswith("[...")]
    assert len(shown) == min(len(lines), MOST)
    assert shown[-1] in lines[-2:], "how the build ended stays"
    rest = iter(lines)
    assert all(row in rest for row in shown), "the order stays"


ENDS = {
    "a list of failures with their reasons": [f"FAILED a.py::test_{n} - assert {n} == 0" for n in range(20)],
    "no failure": [f"line {n}" for n in range(20)],
    "words of names and options": ["cc -Werror -c error.c", "cc -o fail-fast.o src/error/a.c", *["x y z"] * 20],
    "counts alone": ["3 errors, 2 failed", "fail 1", "failures=2", *["x y z"] * 20],
    "what passed alone": [f"ok {n} - case {n}" for n in range(30)],
    "an error at the end": [
        "error: first",
        *["the reason"] * 20,
        "ld: undefined reference to f",
        "collect2: error: ld",
        "b",
    ],
}


@pytest.mark.parametrize("lines", ENDS.values(), ids=ENDS)
def test_the_last_lines_are_shown_where_they_tell_a_reason_or_none_does(lines: list[str]):
    assert telling_lines("\n".join(lines).encode()) == lines[-MOST:]


def test_a_failure_far_above_the_end_is_found_and_half_a_line_is_none():
    passed = "".join(f"ok {number} - adds\n  ---\n  duration_ms: 0.1\n  ...\n" for number in range(2, 4_000))
    output = f"not ok 1 - adds\n  the sum is wrong:\n  it is three, and not four\n{passed}"
    assert telling_lines(output.encode(), "f")[1:4] == output.split("\n")[:3]
    assert telling_lines(b"x" * 300_000 + b"\n1\n2\n") == ["1", "2"]


def test_the_line_of_a_failure_is_its_first_or_the_last_one():
    output = (OUTPUTS / "node-tap.txt").read_bytes()
    assert failure_line(output) == "    not ok 4 - adds case 3"
    assert (failure_line(b"one\ntwo\n"), failure_line(b"\n")) == ("two", "")


def test_blank_lines_and_further_lines_of_a_stack_make_room():
    frames = [f"    at f{n} (a.js:{n})" for n in range(9)]
    lines = ["first", "", "AssertionError: 1", *frames, *["", "more"] * 9]
    assert telling_lines("\n".join(lines).encode()) == ["first", "AssertionError: 1", frames[0], *["more"] * 9]
    assert telling_lines(b"a\n\n\nb\n") == ["a", "", "", "b"]
    assert telling_lines(b"") == []


def test_the_lines_between_the_first_failure_and_the_end_are_left_out_aloud():
    counts = [f"# {word} 0" for word in ("tests", "pass", "cancelled", "skipped", "todo") * 4]
    lines = ["not ok 1 - adds", "  the sum is wrong:", "  it is three, and not four", *counts]
    rows = telling_lines("\n".join(lines).encode(), "f")
    assert rows == ["[... the other lines are in f ...]", *lines[:9], "[...]", *lines[-3:]]
