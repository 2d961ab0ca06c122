"""The output of a build as prompts show it: without the lines that only say what passed, and within its limit."""

import re
from collections import Counter

import pytest
from command import replay, the_log
from hypothesis import given, settings
from hypothesis import strategies as st

from code_commit.prompts.output import read_build_output, shown_output
from code_commit.settings import Settings

LEFT_OUT = re.compile(r"\[\.\.\. ([\d,]+) lines that only say what passed.* are left out here \.\.\.\]")
RUNNERS = {
    "pytest": ("tests/test_a.py::test_n{0}[{0}] PASSED      [ {0}%]", "tests/test_a.py::test_bad FAILED      [ 50%]"),
    "pytest, captured": ("tests/test_a.py {1} [ {0}%]", "tests/test_a.py ..F... [ 50%]"),
    "pytest-xdist": (
        "tests/test_a.py::test_n{0} \n[gw1] [ {0}%] PASSED tests/test_a.py::test_n{0} ",
        "tests/test_a.py::test_bad \n[gw0] [ 50%] FAILED tests/test_a.py::test_bad ",
    ),
    "unittest": ("test_n{0} (a.Case.test_n{0}) ... ok", "test_bad (a.Case.test_bad) ... FAIL"),
    "go": (
        "=== RUN   TestN{0}\n=== RUN   TestN{0}/a_b\n--- PASS: TestN{0} (0.0{0}s)\n    --- PASS: TestN{0}/a_b (0.00s)",
        "=== RUN   TestBad\n    a_test.go:7: got 3, want 4\n--- FAIL: TestBad (0.00s)",
    ),
    "cargo": ("test tests::n{0} ... ok", "test tests::bad ... FAILED"),
    "ctest": (
        "      Start {0}: n{0}\n{0}/60 Test  #{0}: n{0} ..............   Passed    0.0{0} sec",
        "      Start 99: bad\n50/60 Test  #99: bad ..............***Failed    0.00 sec",
    ),
    "googletest": (
        "[ RUN      ] A.N{0}\n[       OK ] A.N{0} ({0} ms)",
        "[ RUN      ] A.Bad\na.cc:12: Failure\nExpected equality of these values:\n[  FAILED  ] A.Bad (0 ms)",
    ),
    "jest": (
        "  group {0}\n    \u2713 does {0} ({0} ms)\n    \u2713 a\n    \u2713 b\n    \u2713 c\n    \u2713 d",
        "  bad\n    \u2715 does not (7 ms)",
    ),
    "vitest": (" \u2713 a.test.ts > group > does {0} {0}ms", " \u00d7 a.test.ts > group > does not 7ms"),
    "mocha": (
        "\n  group {0}\n    \u2714 does {0}\n    \u2714 a\n    \u2714 b\n    \u2714 c\n    \u2714 d",
        "\n  bad\n    1) does not",
    ),
    "node": (
        "# Subtest: does {0}\nok {0} - does {0}\n  ---\n  duration_ms: 0.{0}\n  ...",
        "# Subtest: does not\nnot ok 50 - does not\n  ---\n  duration_ms: 0.1\n  error: |-\n    3 == 4\n  ...",
    ),
    "node, for people": (
        "  \u2714 does {0} (0.{0}ms)\n  \u2139 'only' needs an option.",
        "  \u2716 does not (1.1ms)\n    Error: 3 == 4\n  \u2139 'only' needs an option.",
    ),
    "prove": ("ok {0} - does {0}", "not ok 50 - does not\n#   Failed test 'does not'\n#   at t/a.t line 7."),
    "maven": (
        "[INFO] Running x.N{0}\n[INFO] Tests run: 4, Failures: 0, Errors: 0, Skipped: 0, Time elapsed: 0.{0} s -- in x.N{0}",
        "[INFO] Running x.Bad\n[ERROR] Tests run: 4, Failures: 1, Errors: 0, Skipped: 0 <<< FAILURE! -- in x.Bad",
    ),
    "gradle": ("\nATest > does{0}() PASSED", "\nBTest > bad() FAILED\n    AssertionFailedError: expected: <1>"),
}
GROUPED = ("jest", "mocha")
"""What a runner prints of a test that passes, {0} being its number, and of one that fails."""


def numbered(pattern: str, first: int, last: int) -> list[str]:
    return "\n".join(pattern.format(number, "." * number) for number in range(first, last)).split("\n")


FAILURES = [
    "E         -     {0},",
    "E         test_a.py::test_n{0} PASSED [ {0}%]",
    '-   "n{0}": "ok",',
    "+ ok {0}",
    "    at f{0} (a.js:{0}:7)",
    '  File "a.py", line {0}, in test_n{0}',
    "src/a{0}.c:{0}:5: warning: unused variable 'a{0}' [-Wunused-variable]",
    "src/a{0}.py:{0}:80: E501 line too long ({0} > 79)",
    "would reformat src/a{0}.py",
    "value {0}",
    "    value {0}",
    "        leaked {0} bytes",
    "BAD n{0}",
    "[{0}/99] n{0}: WRONG",
    "leak in n{0}",
    "ok {0} - does {0} # leaks",
    "ok {0} - warns",
    "panic: {0}",
    "a{0}.c: Errors: 0, Leaks: {0}",
    "Tests run: 4, Failures: 0, Leaks: {0}",
    "Passed: {0}, Broken: 3",
    "passed {0} of 99 checks",
    "{0} of 99 checks passed",
    "PASSED {0} of 99",
    "a{0}.c ... {0} ok",
    "xpassed",
    "ok  \tpkg{0}\t0.1s\tcoverage: {0}.0% of statements",
    "ok  \tpkg{0}\t0.1s [no tests to run]",
    "PASS a{0} leaks: {0}",
    "a{0}.c: 1 of {0} ... ok",
    "- ok {0} - does",
]
"""Lines that may be about a failure, {0} being a number."""
KINDS = st.tuples(st.sampled_from(FAILURES), st.sampled_from([1, 1, 2, 7, 300]))
TEXTS = st.text(st.characters(exclude_characters="\n\r", codec="utf-8"), max_size=30)


def left_out(output: str, shown: str) -> list[str]:
    """Return the lines that are not shown; all others are, in their order."""
    rest, hidden = iter(output.split("\n")), list[str]()
    for line in shown.split("\n"):
        if found := LEFT_OUT.fullmatch(line):
            hidden += [next(rest) for _ in range(int(found[1].replace(",", "")))]
        else:
            assert line == next(rest)
    assert not list(rest)
    return hidden


@pytest.mark.parametrize("runner", RUNNERS)
def test_of_many_tests_that_pass_the_first_and_the_last_stay(runner):
    passing, failing = RUNNERS[runner]
    before, after, failure = numbered(passing, 10, 40), numbered(passing, 60, 90), failing.split("\n")
    output = "\n".join(["start", *before, *failure, *after, "", "1 failed"])
    shown = shown_output(output, "cached")
    hidden = left_out(output, shown)
    assert {*hidden} <= {*before, *after}
    assert len(hidden) > (0.5 if runner in GROUPED else 0.8) * len([*before, *after])
    assert shown_output(output, "spec") == output


@pytest.mark.parametrize("runner", RUNNERS)
def test_lines_that_may_be_about_a_failure_stay_wherever_they_stand(runner):
    passing, failing = RUNNERS[runner]
    tests = numbered(passing, 10, 40)
    for line in FAILURES:
        some, many = numbered(line, 1, 8), numbered(line, 1, 99)
        output = "\n".join([*some, *tests, *some, *tests, failing, *many, *tests, *some])
        hidden = left_out(output, shown_output(output, "cached"))
        assert {each for each in hidden if each.strip()} <= {*tests}, line


@settings(max_examples=150, deadline=None)
@given(
    st.sampled_from([*RUNNERS]),
    st.booleans(),
    st.lists(st.one_of(st.none(), KINDS, TEXTS), min_size=1, max_size=12),
)
def test_a_line_that_may_be_about_a_failure_stays(runner, fails_first, pieces):
    passing, failing = RUNNERS[runner]
    own, lines = set(), [*failing.split("\n")] if fails_first else []
    for number, piece in enumerate([None, None, None, *pieces, None]):
        if piece is None:
            tests = numbered(passing, 10 * number + 10, 10 * number + 20)
            own.update(tests)
            lines += tests
        elif isinstance(piece, str):
            lines.append(piece)
        else:
            lines += [piece[0].format(index) for index in range(piece[1])]
    output = "\n".join([*lines, *failing.split("\n")])
    shown = shown_output(output, "short")
    assert {line for line in left_out(output, shown) if line.strip()} <= own
    assert shown_output(shown, "short") == shown


@pytest.mark.parametrize("runner", ["pytest", "unittest", "cargo", "ctest", "go", "gradle", "maven"])
@pytest.mark.parametrize(
    "line", ["row {0} ok", "row {0} ... ok", "read a{0}.c ... ok", "ok {0}", "\u2713 row {0}", "row {0}: PASSED"]
)
def test_what_a_test_that_fails_prints_of_its_own_success_stays(runner, line):
    passing, failing = RUNNERS[runner]
    printed = [line.format(number) for number in range(1_000)]
    tests = numbered(passing, 10, 60)
    output = "\n".join([*tests, failing, *tests, "Output of what failed:", *printed, "assert 3 == 4"])
    assert {*left_out(output, shown_output(output, "cached"))} <= {*tests}


def test_a_line_that_names_what_passes_is_left_out_only_if_nearly_all_that_pass_have_one():
    def output_of(most: int) -> str:
        leaks = {n: f"leak in n{n}\n" for n in range(most)}
        return "\n".join(f"{leaks.get(n, '')}test n{n} ... ok" for n in range(40))

    assert "leak in n7\n" in shown_output(output_of(30), "cached")
    assert "leak in n7\n" not in shown_output(output_of(40), "cached")


@pytest.mark.parametrize(("below", "stay"), [("value {0}", "value 40"), ("warning: {0}", "warning: 7")])
def test_what_stands_under_what_passed_stays_if_it_tells_more_or_a_failure_follows(below, stay):
    """The test that fails has printed the last of these lines, or what it tells may be why."""
    tests = [f"ok {n} - does {n}\n  {below.format(n)}" for n in range(41)]
    shown = shown_output("\n".join([*tests, "not ok 41 - does not"]), "cached").split("\n")
    assert f"  {stay}" in shown
    assert ("  value 7" in shown) == (stay == "value 7")


def test_what_a_form_has_under_it_is_told_by_its_indentation():
    """In TAP a suite is told as its tests are."""
    suite = "".join(f"    ok {n} - does {n}\n      ---\n      duration_ms: {n}\n" for n in range(9))
    output = "\n".join(f"{suite}ok {n} - suite {n}\n  ---\n  type: 'suite'" for n in range(9))
    assert shown_output(output, "cached").count("\n") == 3


def test_a_form_counts_without_a_failure_in_it_only_where_it_began_before_the_first():
    tests, error = "\n".join(f"test_n{n} ... ok" for n in range(40)), "a.c:1: error: x"
    assert left_out(f"{tests}\n{error}", shown_output(f"{tests}\n{error}", "cached"))
    assert shown_output(f"{error}\n{tests}", "cached") == f"{error}\n{tests}"


def test_the_whole_output_is_kept_up_to_the_limit(tmp_path):
    log = tmp_path / "1-build.txt"
    log.write_bytes(b"x" * 100 + b"\n")
    assert read_build_output(log, Settings(build_output_limit=101), "log") == "x" * 100 + "\n"
    assert read_build_output(log, Settings(build_output_limit=0), "log") == "x" * 100 + "\n"


@pytest.mark.parametrize("lines", [1_000, 200_000])
def test_a_longer_output_keeps_whole_lines_of_its_head_and_tail(tmp_path, lines):
    log = tmp_path / "1-build.txt"
    log.write_bytes(b"".join(b"line %d\n" % number for number in range(lines)))
    text = read_build_output(log, Settings(build_output_limit=4_000), "agent-config/logs/run/1-build.txt")
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
    assert read_build_output(log, Settings(build_output_limit=2_000), "log") == "1999%\nok\n"


@pytest.mark.parametrize("layout", ["spec", "cached", "short"])
def test_the_limit_counts_what_a_prompt_shows(tmp_path, layout):
    log, tests = tmp_path / "1-build.txt", [f"test n{number} ... ok\n" for number in range(1_000)]
    output = "".join([*tests, "test bad ... FAILED\n", *tests])
    log.write_text(output)
    text = read_build_output(log, Settings(build_output_limit=1_000, prompt_layout=layout), "log")
    assert (text == output, "bad" in text) == ((layout != "spec",) * 2)
    assert len(shown_output(text, layout)) < 1_100
    log.write_text("".join([*tests, *(f"line {number}\n" for number in range(1_000))]))
    text = read_build_output(log, Settings(build_output_limit=1_000, prompt_layout=layout), "log")
    assert ("[... at least 7," in text) == (layout != "spec")


PRINTED = st.sampled_from(
    ["", "cc -c a.c", "a.c:1: warning: x", "[1/9] cc a.o", "[2/9] cc a.o", "x 1", "x 2", "row 1 ok"]
)


@settings(max_examples=100, deadline=None)
@given(st.lists(PRINTED, max_size=60), st.lists(PRINTED, max_size=200))
def test_of_what_a_build_printed_when_it_passed_a_prompt_has_what_is_there_more_often(printed, before):
    output, known = "\n".join(printed), Counter(re.sub(r"\d/9", "", line) for line in before)
    shown = shown_output(output, "cached", "\n".join(before))
    assert not Counter(re.sub(r"\d/9", "", line) for line in left_out(output, shown) if line) - known
    assert all(int(number) >= 10 for number in LEFT_OUT.findall(shown))
    assert shown_output(output, "spec", "\n".join(before)) == output
    if not Counter(re.sub(r"\d/9", "", line) for line in printed) - known:
        assert shown.count("\n") <= 10 or not printed[-1]


def test_a_repair_shows_what_a_build_prints_since_it_fails(project_folder, run_code_commit):
    noise = "".join(f"cc -c n{number}.c\n" for number in range(50))
    (project_folder / "noise.txt").write_text(noise)
    (project_folder / "build.sh").write_text(
        "#!/bin/bash\ncat noise.txt\n! cat bad.txt\ncat noise.txt\n! test -e bad.txt\n"
    )
    answers = replay(project_folder, "^^^bad.txt\na.c:1: error\n^^^end\n", "^^^bad.txt\n^^^delete\n")
    result = run_code_commit(project_folder, *answers, "--prompt-layout", "cached", "--build-first")
    assert result.returncode == 0
    marker = "[... 49 lines that only say what passed, or that build.sh also printed when it passed before, are left out here ...]"
    shown = f"{marker}\ncc -c n49.c\na.c:1: error\n{marker}\ncc -c n49.c\n[build.sh: exit code 1"
    assert f"[build.sh output]\n{shown}" in (the_log(project_folder) / "2-query.txt").read_text()
    assert noise in (the_log(project_folder) / "1-build.txt").read_text()


@pytest.mark.parametrize("layout", ["spec", "cached", "short"])
def test_the_log_keeps_what_a_prompt_leaves_out(layout, project_folder, run_code_commit):
    passed = "".join(f"test n{number} ... ok\n" for number in range(100))
    (project_folder / "long.txt").write_text(f"{passed}test bad ... FAILED\n{passed}")
    (project_folder / "build.sh").write_text("#!/bin/bash\ncat long.txt\ntest -e done\n")
    answers = replay(project_folder, "^^^a.txt\na\n^^^end\n", "^^^done\n^^^end\n")
    code_commit = [*answers, "--prompt-layout", layout, "--build-first"]
    assert run_code_commit(project_folder, *code_commit).returncode == 0
    log = the_log(project_folder)
    assert passed in (log / "0-build.txt").read_text()
    assert passed in (log / "1-build.txt").read_text()
    prompt = (log / "2-query.txt").read_text()
    assert (passed in prompt) == (layout == "spec")
    assert prompt.count("[... 99 lines that only say what passed are left out here ...]") == (
        0 if layout == "spec" else 2
    )
    assert "test bad ... FAILED\n" in prompt
