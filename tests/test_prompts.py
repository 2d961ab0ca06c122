from pathlib import Path

import pytest

from code_commit.changes import FileRemoval, FileReplacement, RejectedResponseError, Violation
from code_commit.errors import NotSetUpError
from code_commit.prompts import (
    SystemPrompts,
    Task,
    initial_prompt,
    load_system_prompts,
    read_build_output,
    rejected_prompt,
    repair_prompt,
)

PROMPTS = SystemPrompts("STRUCTURE\n", "INSTRUCTIONS\n", "INITIAL\n", "REPAIR\n", "Rejected:\n{reasons}\n")
TASK = Task(PROMPTS, "the query", "the codebase\n")
CHANGES = [
    FileReplacement("b.txt", "new b\n"),
    FileRemoval("a.txt"),
    FileReplacement("c", ""),
    FileReplacement("d", "x"),
]


def test_the_initial_prompt_has_the_specification_s_order():
    prompt = initial_prompt(TASK)
    assert prompt.system == "STRUCTURE\nINSTRUCTIONS\nINITIAL\n"
    assert prompt.user == "[query]\nthe query\n\n[codebase]\nthe codebase\n\n"
    assert prompt.text == prompt.system + prompt.user
    assert prompt.stable == ""


def test_the_repair_prompt_has_the_specification_s_order():
    prompt = repair_prompt(TASK, "error: x\n", CHANGES)
    assert prompt.system == "STRUCTURE\nINSTRUCTIONS\nREPAIR\n"
    assert prompt.user == (
        "[build.sh output]\nerror: x\n\n[query]\nthe query\n\n[codebase]\nthe codebase\n\n[file replacements]\n"
        "--- FILE REMOVED a.txt ---\n--- FILE REPLACEMENT b.txt ---\nnew b\n--- FILE REPLACEMENT c ---\n"
        "--- FILE REPLACEMENT d ---\nx\n\n"
    )


def test_the_cached_layout_keeps_one_prefix_over_all_calls():
    task = Task(PROMPTS, "the query", "the codebase\n", "cached")
    first, repair = initial_prompt(task), repair_prompt(task, "error\n", CHANGES)
    assert (first.system, first.stable) == (repair.system, repair.stable)
    assert first.stable == "[codebase]\nthe codebase\n\n[query]\nthe query\n\n"
    assert first.rest == "INITIAL\n"
    assert repair.rest.startswith("REPAIR\n[build.sh output]\nerror\n\n[file replacements]\n")


def test_query_and_codebase_are_sent_unchanged():
    query = "  \n^^^a\n[codebase]\r\n\n \n"
    assert f"[query]\n{query}\n[codebase]\n" in initial_prompt(Task(PROMPTS, query, "x")).user


def test_a_rejected_prompt_is_the_same_prompt_with_the_reasons_behind_it():
    prompt = repair_prompt(TASK, "error\n", CHANGES)
    violations = [Violation("a", 3, "protected", "is protected"), Violation("", 0, "no-block", "no block")]
    rejected = rejected_prompt(prompt, PROMPTS.rejected_response, RejectedResponseError(violations, 12_345).reasons)
    reasons = "- no block\n- line 3: a: is protected\n- and 12,345 more\n"
    assert rejected.text == f"{prompt.text}[rejected response]\nRejected:\n{reasons}\n"


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
