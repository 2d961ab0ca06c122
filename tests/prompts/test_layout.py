from collections.abc import Sequence
from pathlib import Path

import pytest

from code_commit.changes import RejectedResponseError, Violation
from code_commit.codebase.text import Codebase, part_of, part_section
from code_commit.errors import NotSetUpError
from code_commit.parse import parse_response
from code_commit.prompts.history import AttemptSummary
from code_commit.prompts.layout import (
    FailedBuild,
    SystemPrompts,
    Task,
    lay_out,
    load_system_prompts,
    make_task,
)
from code_commit.prompts.next import Outcome, next_prompt
from code_commit.settings import Settings
from code_commit.verify.edits import edit_text
from code_commit.views import FileView, Name, Outline, Removed, Sight, whole, whole_of

PROMPTS = SystemPrompts("STRUCTURE\n", "INSTRUCTIONS\n", "INITIAL\n", "REPAIR\n", "Rejected:\n{reasons}\n", "EDITS\n")
TASK = Task(PROMPTS, "the query", Codebase(["the codebase\n"]))
CHANGES = [
    whole("b.txt", "new b\n"),
    FileView("a.txt", Removed(), ""),
    whole("c", ""),
    whole("d", "x"),
]
FAILED = FailedBuild("error: x\n", CHANGES)
HISTORY = ["Attempt 1 changed b.txt\n"]


def test_the_initial_prompt_has_the_specification_s_order():
    prompt = lay_out(TASK)
    assert prompt.system == "STRUCTURE\nINSTRUCTIONS\nINITIAL\n"
    assert prompt.user == "[query]\nthe query\n\n[codebase]\nthe codebase\n\n"
    assert prompt.text == prompt.system + prompt.user
    assert prompt.stable == ""


def test_the_repair_prompt_has_the_specification_s_order():
    prompt = lay_out(TASK, HISTORY, FAILED)
    told = "This is attempt 2 of 4. Before it:\nAttempt 1 changed b.txt\n\n"
    assert prompt.system == f"STRUCTURE\nINSTRUCTIONS\nREPAIR\n{told}"
    assert prompt.user == (
        "[build.sh output]\nerror: x\n\n[query]\nthe query\n\n[codebase]\nthe codebase\n\n[file replacements]\n"
        "--- FILE REMOVED a.txt ---\n--- FILE REPLACEMENT b.txt ---\nnew b\n--- FILE REPLACEMENT c ---\n"
        "--- FILE REPLACEMENT d ---\nx\n\n"
    )


def test_the_cached_layout_keeps_one_prefix_over_all_calls():
    task = Task(PROMPTS, "the query", Codebase(["the codebase\n"]), "cached")
    additions = [whole("e", "seen\n"), whole("f", "too")]
    first, repair = lay_out(task), lay_out(task, HISTORY, FailedBuild("error\n", CHANGES), additions)
    assert (first.system, first.stable) == (repair.system, repair.stable)
    assert first.stable == "[codebase]\nthe codebase\n\n[query]\nthe query\n\n"
    assert first.rest == "[answer]\nINITIAL\n\n"
    assert repair.rest.startswith(
        "[codebase additions]\n--- e ---\nseen\n\n--- f ---\ntoo\n\n\n[build.sh output]\nerror\n\n[file replacements]\n"
    )
    told = "REPAIR\nThis is attempt 2 of 4. Before it:\nAttempt 1 changed b.txt\n"
    assert repair.rest.endswith(f"\n\n[answer]\n{told}\n\n"), "no words of ours stand below a file"


ROWS = [f"line {number}\n" for number in range(100)]
OLD, NEW = "".join(ROWS), "".join([*ROWS[:50], "new\n", *ROWS[51:]])
HUNK = f"@@ -41,21 +41,21 @@ line 39\n{' '.join(['', *ROWS[40:50]])}-line 50\n+new\n{' '.join(['', *ROWS[51:61]])}"
CLOSED = PROMPTS._replace(
    initial_query="INITIAL\n\n[answer]\nDo it:\n\n{query}\n\nSend {form}.\n",
    repair_query="REPAIR\n\n[answer]\nRepair it:\n\n{query}\n\nSend {form}.\n",
    rejected_response="Rejected:\n{reasons}\n\n[answer]\nSend {form} anew:\n\n{query}\n\nNow.\n",
)
ENDS = {
    # the task, whether a build failed, the last outcome, whether edits are offered, the end of the prompt
    "a first prompt": ("q\n", False, None, False, "Do it:\n\nq\n\nSend whole.\n"),
    "edits": ("q", False, None, True, "Do it:\n\nq\n\nSend whole, or as edits where it is long.\n"),
    "a long task": ("q" * 1_001, False, None, False, "Do it. Send whole.\n"),
    "a task that it begins with": ("Do it.\n", False, None, False, "Do it. Send whole.\n"),
    "a repair": ("q", True, None, False, "Repair it:\n\nq\n\nSend whole.\n"),
    "a rejection": ("q", False, Outcome(AttemptSummary("", "", ""), reasons=["r"], response="[answer]\nx"), False, "Send whole anew:\n\nq\n\nNow.\n"),
    "a rejection after a failed build": ("q", True, Outcome(AttemptSummary("", "", ""), reasons=["r"]), False, "Send whole anew:\n\nq\n\nNow.\n"),
    "edits that did not fit": ("q", False, Outcome(AttemptSummary("", "", ""), reasons=["r"], send_whole=["a.py", "b"]), True, "Send a.py, b whole this time, without ^^^find.\nSend whole, or as edits where it is long anew:\n\nq\n\nNow.\n"),
}  # fmt: skip


@pytest.mark.parametrize(("query", "is_repair", "rejected", "edits", "end"), ENDS.values(), ids=ENDS)
def test_a_prompt_ends_with_what_to_send(query, is_repair, rejected, edits, end):
    outcomes = [Outcome(AttemptSummary("", "", ""), failed=FAILED)] if is_repair else []
    outcomes += [rejected] if rejected else []
    settings = {"answer_format": "edits" if edits else "files"}
    spec = next_prompt(make_task(Settings(**settings), CLOSED, query, Codebase(["c\n"])), outcomes)
    settings |= {"prompt_layout": "cached"}
    cached = next_prompt(make_task(Settings(**settings), CLOSED, query, Codebase(["c\n"])), outcomes)
    assert spec.user.endswith(f"\n\n[answer]\n{end}\n")
    assert cached.rest.endswith(f"{end}\n")
    assert cached.rest.count("[answer]\n") == 1 + cached.rest.count("from its line 1 on:\n[answer]\n")
    assert cached.rest.count("Send whole") == spec.user.count("Send whole") == end.count("Send whole")


PATHS = [".github/ci.yml", "a.c", "agent-config/x", "docs/a.md (outline, 9 bytes)", "lib/net/b.c", "target/x.c"]


@pytest.mark.parametrize(
    ("paths", "settings", "folder"),
    [
        (PATHS, {}, "docs/"),
        (PATHS, {"protect": ("docs/",)}, "lib/net/"),
        (PATHS, {"allow": ("lib/",)}, "lib/net/"),
        (PATHS, {"protect": ("docs/", "lib/")}, ".github/"),
        (PATHS, {"allow": ("*.c",), "protect": ("lib/",)}, ""),
        (["a.c"], {}, ""),
    ],
)
def test_the_examples_lie_in_a_folder_of_the_project_that_may_change(paths, settings, folder):
    prompts = PROMPTS._replace(code_modification_instructions="^^^{folder}x.py\n")
    codebase = Codebase(["".join(f"--- {path} ---\n\n" for path in paths)])
    assert f"^^^{folder}x.py\n" in lay_out(make_task(Settings(**settings), prompts, "q", codebase)).system


HELD = f"--- a.py ---\n{OLD}\n--- b.py ---\nb\n\n"
SHOWN_AS = {
    # the codebase, what the file was before the run, what it is now, what a repair shows of it
    "held whole": (HELD, OLD, NEW, f"a.py (diff) ---\n{HUNK}"),
    "held last": (f"--- a.py ---\n{OLD}\n", OLD, NEW, f"a.py (diff) ---\n{HUNK}"),
    "without a newline at the end": (HELD, OLD.rstrip(), NEW.rstrip(), f"a.py (diff) ---\n{HUNK}"),
    "as it was": (HELD, OLD, OLD, "a.py (diff) ---\n"),
    "not held": ("--- b.py ---\nb\n\n", OLD, NEW, f"a.py ---\n{NEW}"),
    "held in another version": (HELD.replace("line 9\n", "x\n"), OLD, NEW, f"a.py ---\n{NEW}"),
    "held in a longer version": (HELD.replace("line 99\n", "line 99\n\nx\n"), OLD, NEW, f"a.py ---\n{NEW}"),
    "held as an outline": (HELD.replace("a.py", "a.py (outline)"), OLD, NEW, f"a.py ---\n{NEW}"),
    "held by another name": (HELD.replace("a.py", "x/a.py"), OLD, NEW, f"a.py ---\n{NEW}"),
    "new": (HELD, None, NEW, f"a.py ---\n{NEW}"),
    "changed in many places": (HELD, OLD, NEW.replace("5\n", "x\n"), f"a.py ---\n{NEW.replace(f'5{chr(10)}', f'x{chr(10)}')}"),
}  # fmt: skip


def lay_out_diff(
    codebase: str | Codebase, original: str | None, now: str, asked: Sequence[FileView] = (), **options: str
):
    codebase = codebase if isinstance(codebase, Codebase) else Codebase([codebase])
    settings = Settings(**{"prompt_layout": "cached", "file_replacements": "diff"} | options)
    task = make_task(settings, PROMPTS, "q", codebase)
    originals = {} if original is None else {"a.py": original}
    return lay_out(task, [], FailedBuild("", [whole("a.py", now)], originals=originals), asked)


@pytest.mark.parametrize(("codebase", "original", "now", "shown"), SHOWN_AS.values(), ids=SHOWN_AS)
def test_a_changed_file_is_shown_as_a_diff_where_that_is_shorter(codebase, original, now, shown):
    prompt = lay_out_diff(codebase, original, now)
    assert f"[file replacements]\n--- FILE REPLACEMENT {shown}\n" in f"{prompt.rest}\n"
    assert prompt.shows.views["a.py"] == whole_of(now)
    told = "stands before a unified\ndiff of the file from [codebase]"
    assert told in prompt.system
    at_once = f"[file replacements]\n--- FILE REPLACEMENT a.py ---\n{now}"
    for options in ({"prompt_layout": "spec"}, {"file_replacements": "whole"}):
        prompt = lay_out_diff(codebase, original, now, **options)
        assert (at_once in prompt.rest, told in prompt.text) == (True, False)


def test_a_changed_file_that_is_shown_in_part_shows_these_lines_as_they_are_now():
    part, now = part_of(OLD, [(1, 40)]), part_of(NEW, [(70, 75), (1, 40)])
    codebase = Codebase([part_section("a.py", part)], {"a.py": part})
    prompt = lay_out_diff(codebase, OLD, NEW, [FileView("a.py", now, now.content)])
    head, rest = ("".join(NEW.splitlines(keepends=True)[a:b]) for a, b in ((0, 40), (69, 75)))
    assert prompt.rest.endswith(
        f"[file replacements]\n--- FILE REPLACEMENT a.py (lines 1-40, 70-75 of {len(ROWS)}) ---\n"
        f"{head}[... lines 41-69 are not shown here ...]\n{rest}\n[answer]\nREPAIR\n\n"
    )
    assert prompt.shows.views == {"a.py": now}
    assert "line 99\n" not in prompt.shows.text, "it is not shown"
    later = lay_out_diff(codebase, OLD, NEW)
    assert "[file replacements]\n--- FILE REPLACEMENT a.py ---\n" in later.rest
    assert later.shows.views == {"a.py": whole_of(NEW)}


def test_an_outline_that_was_asked_for_takes_no_shown_lines_away():
    part, asked = part_of(OLD, [(1, 60)]), FileView("a.py", Outline(9_000), "def a\n")
    codebase = Codebase([part_section("a.py", part)], {"a.py": part, "b.py": Name(9)}, "made")
    lines = FileView("a.py", part_of(OLD, [(1, 70)]), "")
    for added, view in (([asked], part), ([lines, asked], lines.view)):
        outcome = Outcome(AttemptSummary("Attempt 1", "", ""), unseen=added)
        prompt = next_prompt(TASK._replace(codebase=codebase), [outcome])
        assert prompt.shows.views["a.py"] == view
        assert "--- a.py (outline, 9,000 bytes) ---\ndef a\n" in prompt.user
    others = [asked._replace(path="b.py"), lines._replace(path="c.py"), asked._replace(path="c.py")]
    prompt = next_prompt(TASK._replace(codebase=codebase), [outcome._replace(unseen=others)])
    assert (prompt.shows.views["b.py"], prompt.shows.views["c.py"]) == (Outline(9_000), lines.view)


@pytest.mark.parametrize(
    ("known", "told"),
    [
        ([(10, 12), (40, 45), (88, 89)], ", [codebase] has 40-45, 88-89: f_20, f_60, f_80"),
        ([(2 * n, 2 * n) for n in range(11, 45, 3)], ", [codebase] has {} and others: f_20, f_60, f_80"),
        ([(4, 5), (98, 99)], ": f_20, f_40, f_60, f_80"),
    ],
)
def test_a_gap_among_added_lines_says_which_of_its_lines_the_codebase_has(known, told):
    rows = "".join(f"{'    ' if number % 20 else ''}line {number} {'x' * 600}\n" for number in range(1, 101))
    part = part_of(rows, known)
    codebase = Codebase([part_section("a.py", part)], {"a.py": part}, "made")
    now = part_of(rows, [*known, (14, 16), (95, 96)])
    hidden = tuple((number, f"f_{number}") for number in (12, 20, 40, 60, 80))
    added = FileView("a.py", now, now.content, hidden)
    prompt = lay_out(make_task(Settings(), PROMPTS, "q", codebase), failed=FailedBuild("", []), additions=[added])
    first = ", ".join(f"{2 * n}-{2 * n}" for n in range(11, 45, 3)[:10])
    assert f"\n[... lines 17-94 are not shown here{told.format(first)} ...]\nline 95" in prompt.text.replace(
        "    line", "line"
    )
    assert prompt.shows.views == {"a.py": now}
    other = Codebase([part_section("a.py", part)], {"a.py": part._replace(lines=99)}, "made")
    prompt = lay_out(make_task(Settings(), PROMPTS, "q", other), failed=FailedBuild("", []), additions=[added])
    assert "[codebase] has" not in prompt.text, "its lines are those of another text"


def test_a_changed_file_that_was_asked_for_is_shown_whole():
    prompt = lay_out_diff(HELD, OLD, NEW, [whole("a.py", NEW)])
    assert f"[file replacements]\n--- FILE REPLACEMENT a.py ---\n{NEW}" in prompt.rest
    assert "[codebase additions]\n-" not in prompt.text


def long_file(lines: int) -> Codebase:
    return Codebase(["--- a.py ---\nx = 1\n\n--- b.py ---\n", "y = 1\n" * lines, "\n--- c.py ---\n" + "z\n" * 9])


@pytest.mark.parametrize(
    ("answer_format", "lines", "offered"),
    [("files", 1000, False), ("edits", 1, True), ("auto", 200, False), ("auto", 201, True)],
)
def test_edits_are_offered_where_they_are_wanted(answer_format, lines, offered):
    settings = Settings(answer_format=answer_format)
    task = make_task(settings, PROMPTS, "the query", long_file(lines))
    for prompt in (lay_out(task), lay_out(task, failed=FailedBuild("", []))):
        assert ("INSTRUCTIONS\nEDITS\n" in prompt.system) == ("EDITS" in prompt.text) == offered


@pytest.mark.parametrize("layout", ["spec", "cached"])
@pytest.mark.parametrize(("answer_format", "lines", "offered"), [("files", 201, 0), ("auto", 200, 0), ("auto", 201, 1)])
def test_edits_are_offered_as_soon_as_an_answer_made_a_file_long(answer_format, lines, offered, layout):
    settings = Settings(answer_format=answer_format, prompt_layout=layout)
    task = make_task(settings, PROMPTS, "q", long_file(1))
    first, repair = lay_out(task), lay_out(task, failed=FailedBuild("", [whole("b", "y\n" * lines)]))
    assert "EDITS" not in first.text
    assert repair.text.count("EDITS\nREPAIR\n") == repair.text.count("EDITS") == offered
    if layout == "cached":
        assert (repair.system, repair.stable) == (first.system, first.stable)
    at_once = make_task(Settings(answer_format="auto"), PROMPTS, "q", long_file(201))
    assert lay_out(at_once, failed=FailedBuild("", [whole("b", "y\n" * lines)])).text.count("EDITS") == 1


def test_the_examples_of_edits_can_be_taken_as_they_are():
    text = load_system_prompts(Path("/nowhere")).edit_instructions
    (app,) = parse_response(text)
    old = (
        'import sys\n\ndef main() -> None:\n    args = parse()\n    print("debug", args)\n\n'
        'def old_report(rows):\n    for row in rows:\n        print(row)\n    return "old", len(rows)\n'
    )
    assert edit_text(old, app.edits) == (
        "import sys\nimport time\n\nVERBOSE = False\n\ndef main() -> None:\n    args = parse()\n\n",
        [],
    )


@pytest.mark.parametrize("failed", [None, FailedBuild("", [])])
def test_the_instructions_of_a_prompt_have_8000_characters_at_most(failed: FailedBuild | None):
    settings = Settings(answer_format="auto", prompt_layout="cached", file_replacements="diff")
    codebase = long_file(201)
    task = make_task(settings, load_system_prompts(Path("/nowhere")), "q", codebase)
    text = lay_out(task, failed=failed).text
    assert "^^^find" in text
    assert len(text) - len(codebase.text) <= 8_000


def test_query_and_codebase_are_sent_unchanged():
    query = "  \n^^^a\n[codebase]\r\n\n \n"
    assert f"[query]\n{query}\n[codebase]\n" in lay_out(Task(PROMPTS, query, Codebase(["x"]))).user


def test_additions_follow_the_codebase():
    prompt = lay_out(TASK, failed=FailedBuild("error\n", []), additions=[whole("e", "seen\n")])
    assert "[codebase]\nthe codebase\n\n[codebase additions]\n--- e ---\nseen\n\n\n[file replacements]\n" in prompt.user


BEFORE = Outcome(AttemptSummary("Attempt 1 changed a.c", "", ""), failed=FAILED)


@pytest.mark.parametrize("before", [[], [BEFORE]])
def test_a_rejected_prompt_adds_the_reasons_and_the_answer(before):
    number = len(before) + 1
    told = AttemptSummary(f"Attempt {number} was rejected", ", none of it was written: no block", "x")
    violations = [Violation("a", 3, "protected", "is protected"), Violation("", 0, "no-block", "no block")]
    reasons = RejectedResponseError(violations, 12_345).reasons
    history = [*(str(outcome.told) for outcome in before), f"Attempt {number} was rejected: see [rejected response].\n"]
    prompt = lay_out(TASK, history, before[0].failed if before else None)
    section = "[rejected response]\nRejected:\n- no block\n- line 3: a: is protected\n- and 12,345 more\n"
    assert next_prompt(TASK, [*before, Outcome(told, reasons=reasons)]).text == f"{prompt.text}{section}\n"
    shown = "\nThe rejected answer, from its line 1 on:\n^^^a\n\n"
    rejected = Outcome(told, reasons=reasons, response="^^^a")
    assert next_prompt(TASK, [*before, rejected]).text == f"{prompt.text}{section}{shown}"


def test_a_prompt_says_which_files_it_shows_and_in_which_version():
    unseen = [whole("a.c", "old\n"), whole("d", "seen\n")]
    rejected = Outcome(AttemptSummary("Attempt 1", "", ""), reasons=["x"], unseen=unseen)
    assert next_prompt(TASK, []).shows == Sight({}, "the codebase\n", [])
    assert next_prompt(TASK, [rejected]).shows.views == {"a.c": whole_of("old\n"), "d": whole_of("seen\n")}
    then = next_prompt(TASK, [rejected, BEFORE]).shows
    texts = {"a.c": "old\n", "b.txt": "new b\n", "c": "", "d": "x"}
    assert then.views == {path: whole_of(text) for path, text in texts.items()} | {"a.txt": Removed()}
    assert sorted(then.beside) == sorted([*texts.values(), ""])
    views = {"whole.c": whole_of("x"), "outlined.c": Outline(9)}
    partial = next_prompt(TASK._replace(codebase=Codebase(["x"], views, "made")), []).shows
    assert (partial.views, partial.is_partial, partial.basis) == (views, True, "made")


def test_the_prompts_say_what_holds_for_the_run():
    settings = Settings(allow=("src/", "*.md"), protect=("src/x",), build_timeout=90, max_repairs=1)
    task = make_task(settings, PROMPTS, "q", Codebase(["c"]))
    for prompt in (lay_out(task), lay_out(task, failed=FAILED)):
        told = prompt.system.removeprefix("STRUCTURE\nINSTRUCTIONS\n")
        assert told.startswith("You have 2 attempts: each answer is one, ")
        assert "\nbuild.sh is stopped after 1 min 30 s; that counts as a failure.\n" in told
        assert "may change: src/, *.md\nPaths that match one of these are protected as well: src/x\n\n" in told
    assert "attempt 2 of 2" in lay_out(task, HISTORY, FAILED).text
    assert "stopped" not in lay_out(make_task(Settings(build_timeout=0), PROMPTS, "q", Codebase(["c"]))).text


def test_the_history_has_2000_characters_and_loses_its_oldest_notes_first():
    outcomes = [
        Outcome(AttemptSummary(f"Attempt {number}", " changed a.c", f"{str(number) * 600} ..."), failed=FAILED)
        for number in range(1, 6)
    ]
    prompt = next_prompt(TASK, outcomes).system
    told = prompt[prompt.index("This is attempt 6 of 4.") :]
    assert 1_300 < len(told) <= 2_000
    assert [f"Attempt {number} changed a.c\n" in told for number in range(1, 6)] == [True] * 5
    assert [str(number) * 600 in told for number in range(1, 6)] == [False, False, False, True, True]
    long = Outcome(AttemptSummary("Attempt 1 changed ", "x" * 9_000, ""), failed=FAILED)
    short = Outcome(AttemptSummary("Attempt 2 changed a.c", "", ""), failed=FAILED)
    prompt = next_prompt(TASK, [long, short]).system
    told = prompt[prompt.index("This is attempt 3 of 4.") :]
    assert (len(told) <= 2_000, told.endswith("x\nAttempt 2 changed a.c\n\n")) == (True, True)


def test_the_project_s_own_system_prompt_replaces_the_packaged_one(tmp_path):
    packaged = load_system_prompts(tmp_path)
    (tmp_path / "repair_query.txt").write_text("My own words.\n")
    own = load_system_prompts(tmp_path)
    assert own.repair_query == "My own words.\n"
    assert own.initial_query == packaged.initial_query
    assert "^^^end" in packaged.code_modification_instructions
    (tmp_path / "repair_query.txt").write_bytes(b"\xff")
    with pytest.raises(NotSetUpError, match=r"repair_query\.txt"):
        load_system_prompts(tmp_path)


def test_the_packaged_prompts_name_every_protected_file_of_the_specification():
    text = load_system_prompts(Path("/nowhere")).code_modification_instructions
    names = [".gitignore", "Cargo.lock", "build.sh", "codeRollup.sh", "LLMInstructions.md", "UserSpecification.md"]
    for name in [*names, ".git", "agent-config", "target"]:
        assert name in text
