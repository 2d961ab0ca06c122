"""The next prompt, and the build's output in it."""

import pytest
from command import git, replay, the_log

from code_commit.changes import FilesAskedError, RejectedResponseError, Violation
from code_commit.codebase.text import Codebase
from code_commit.project import find_project
from code_commit.prompts.history import AttemptSummary
from code_commit.prompts.layout import FailedBuild, load_system_prompts, make_task
from code_commit.prompts.next import Answer, Conversation, Outcome, Room, _shown_since, next_prompt
from code_commit.redaction import Redactor
from code_commit.runs.attempt_log import AttemptLog
from code_commit.runs.log import open_run_log
from code_commit.runs.progress import Progress
from code_commit.runs.record import BuildResult
from code_commit.settings import Settings
from code_commit.views import FileView, Outline, Part, Passage, whole


@pytest.mark.parametrize(("answer_format", "paths"), [("auto", ["short.py", "both.py"]), ("edits", [])])
def test_short_files_whose_edits_did_not_fit_are_to_be_sent_whole(project_folder, answer_format, paths):
    for name, size in {"short.py": 19_999, "long.py": 20_000, "both.py": 1, "other.py": 1}.items():
        (project_folder / name).write_bytes(b"x" * size)
    project, settings = find_project(project_folder), Settings(answer_format=answer_format)
    task = make_task(settings, load_system_prompts(project.system_prompts), "Do it.", Codebase([""]))
    conversation = Conversation(project, settings, Redactor([]), task, Room())
    rules = [("short.py", "no-match"), ("long.py", "no-match"), ("both.py", "ambiguous"), ("both.py", "no-match")]
    rules += [("other.py", "omission"), ("gone.py", "no-match")]
    rejection = RejectedResponseError([Violation(path, 1, rule, "x") for path, rule in rules])
    with open_run_log(project, "run", settings, Progress(Redactor([]))) as log:
        attempt = AttemptLog(log, 1)
        attempt.rejected(rejection)
        conversation.was_rejected(attempt, Answer("", ""), rejection)
    assert conversation._outcomes[0].send_whole == paths


def test_files_that_either_output_of_a_first_build_names_are_shown(project_folder):
    for name in ("own.py", "given.py", "other.py"):
        (project_folder / name).write_text(f"{name[:-3]} = 1\n")
    project, settings = find_project(project_folder), Settings(codebase_additions=True)
    task = make_task(settings, load_system_prompts(project.system_prompts), "Do it.", Codebase([""], {}, "made"))
    first = FailedBuild("own.py:1: wrong\n", given="given.py:1: wrong\n")
    prompt = Conversation(project, settings, Redactor([]), task._replace(first=first), Room()).next_prompt()
    assert {"own.py", "given.py"} == prompt.shows.views.keys()


@pytest.mark.parametrize(
    ("cut_off", "limit", "text"), [(False, 0, "abc"), (False, 3, "abc"), (False, 2, ""), (True, 0, "")]
)
def test_a_rejected_answer_is_shown_again_unless_it_is_too_long(cut_off, limit, text, project_folder):
    project, settings = find_project(project_folder), Settings(build_output_limit=limit)
    task = make_task(settings, load_system_prompts(project.system_prompts), "Do it.", Codebase([""]))
    conversation = Conversation(project, settings, Redactor([]), task, Room())
    with open_run_log(project, "run", settings, Progress(Redactor([]), quiet=True)) as log:
        attempt = AttemptLog(log, 1)
        attempt.record.cut_off = cut_off
        conversation.was_rejected(
            attempt, Answer("abc", ""), RejectedResponseError([Violation("", 0, "no-block", "x")])
        )
    assert conversation._outcomes[0].response == text


@pytest.mark.parametrize(
    ("room", "shrinks", "is_shown"), [(5_999, False, False), (6_999, False, True), (1_999, True, True)]
)
def test_a_file_that_is_asked_for_is_shown_if_half_of_a_codebase_that_shrinks_makes_room(
    room, shrinks, is_shown, project_folder
):
    (project_folder / "long.py").write_text("x" * 6_000)
    project, settings = find_project(project_folder), Settings()
    codebase = Codebase(["x" * 10_000], {}, "made")
    task = make_task(settings, load_system_prompts(project.system_prompts), "Do it.", codebase)
    longest = len(next_prompt(task, ()).text) + room
    shrink = (lambda *_: codebase) if shrinks else None
    conversation = Conversation(project, settings, Redactor([]), task, Room(longest, shrink))
    with open_run_log(project, "run", settings, Progress(Redactor([]), quiet=True)) as log:
        conversation.was_rejected(AttemptLog(log, 1), Answer("", ""), FilesAskedError(["long.py"], 1))
    assert [file.path for file in conversation._outcomes[0].unseen] == ["long.py"] * is_shown


@pytest.mark.parametrize(("more", "shrinks"), [(0, False), (-1, True)])
def test_a_codebase_shrinks_only_where_the_prompt_does_not_fit(more, shrinks, project_folder):
    project, settings, asked = find_project(project_folder), Settings(), []

    def shrink(characters: int, mentions: str) -> Codebase:
        asked.append((characters, mentions))
        return Codebase(["x" * characters])

    task = make_task(settings, load_system_prompts(project.system_prompts), "Do it.", Codebase(["x" * 20_000]))
    task = task._replace(first=FailedBuild("a.py:1: wrong\n", given="b.py:1: wrong\n"))
    size = len(next_prompt(task, ()).text)
    conversation = Conversation(project, settings, Redactor([]), task, Room(size + more, shrink))
    prompt = conversation.next_prompt()
    mentions = "a.py:1: wrong\nb.py:1: wrong\n"
    assert (asked, len(prompt.text)) == ([(19_999, mentions)] if shrinks else [], size + more)


def test_a_codebase_that_shrinks_after_a_repair_has_what_the_given_output_names_first_too(project_folder):
    project, settings, asked = find_project(project_folder), Settings(), []

    def shrink(characters: int, mentions: str) -> Codebase:
        asked.append(mentions)
        return Codebase(["x" * characters])

    task = make_task(settings, load_system_prompts(project.system_prompts), "Do it.", Codebase(["x" * 20_000]))
    task = task._replace(first=FailedBuild("a.py:1: wrong\n", given="b.py:1: wrong\n"))
    conversation = Conversation(project, settings, Redactor([]), task, Room(20_000, shrink))
    with open_run_log(project, "run", settings, Progress(Redactor([]), quiet=True)) as log:
        attempt = AttemptLog(log, 1)
        attempt.build_file.write_text("c.py:1: wrong\n")
        conversation.build_failed(attempt, Answer("", ""), BuildResult(1, None, False, 0.1, 14), (), {})
        conversation.next_prompt()
    assert asked == ["c.py:1: wrong\nb.py:1: wrong\n"]


def test_lines_that_were_shown_are_followed_through_each_repair(project_folder):
    """Each answer puts ten lines before them, and the second repair shows them where they stand then."""
    project, settings = find_project(project_folder), Settings(answer_format="edits")
    before = "".join(f"value_{number} = 0\n" for number in range(1, 61))
    part = Part((Passage(50, "value_50 = 0\nvalue_51 = 0\n"),), 60)
    codebase = Codebase([f"--- a.py (lines 50-51) ---\n{part.content}"], {"a.py": part})
    task = make_task(settings, load_system_prompts(project.system_prompts), "Do it.", codebase)
    conversation = Conversation(project, settings, Redactor([]), task, Room())
    failure, seen = BuildResult(1, None, False, 0.1, 5), []
    with open_run_log(project, "run", settings, Progress(Redactor([]), quiet=True)) as log:
        for number in (1, 2):
            attempt, _ = AttemptLog(log, number), conversation.next_prompt()
            attempt.build_file.write_text("wrong\n")
            new = "".join(f"new_{line} = 0\n" for line in range(10 * number))
            (project_folder / "a.py").write_text(new + before)
            conversation.build_failed(attempt, Answer("", ""), failure, {"a.py"}, {"a.py": before.encode()})
            seen.append(conversation.next_prompt().shows.views["a.py"].where)
    assert seen == ["60-61", "70-71"]


def test_a_prompt_shows_what_answers_asked_for_and_what_the_latest_failed_build_names():
    """What an earlier build named is in no prompt; a file has one place, and its outline stays beside its lines."""

    def seen(path, text, view):
        return FileView(path, view, text)

    def outcome(number, *files, failed=None):
        return Outcome(AttemptSummary(f"{number}", "", ""), failed=failed, unseen=files)

    first, latest = FailedBuild("first"), FailedBuild("latest")
    outline, part, later = (
        seen("a", "outline", Outline(9)),
        seen("a", "part", Part((), 9)),
        seen("a", "later part", Part((), 8)),
    )
    asked, old, new = (whole(name, name) for name in ("asked", "old", "new"))
    outcomes = [
        outcome(1, outline, part),
        outcome(2, old, failed=first),
        outcome(3, asked, later),
        outcome(4, new, failed=latest),
    ]
    assert _shown_since(outcomes, latest) == [outline, later, asked, new]
    assert _shown_since(outcomes[:3], first) == [outline, later, old, asked]


def test_what_is_known_of_a_file_is_handed_to_what_shows_it(project_folder, monkeypatch):
    """The lines of a file are followed from the text that the last prompt showed, and its definitions are its own."""
    given = []
    monkeypatch.setattr("code_commit.prompts.next.find_additions", lambda _, *more: given.append(more) or [])
    project, settings = find_project(project_folder), Settings(codebase_additions=True, answer_format="edits")
    text = "".join(f"def function_{number}():\n    pass\n" for number in range(1, 31))
    part = Part((Passage(3, "def function_2():\n    pass\n"),), 60)
    codebase = Codebase(["a codebase"], {"a.py": part}, "made")
    task = make_task(settings, load_system_prompts(project.system_prompts), "Do it.", codebase)
    first = FailedBuild("a.py:3: wrong\n", given="of elsewhere\n", replacements=[whole("a.py", text)])
    conversation = Conversation(project, settings, Redactor([]), task._replace(first=first), Room())
    assert given[0][:3] == (codebase.shown, "a.py:3: wrong\nof elsewhere\n", set())
    (named,) = conversation._task.first.named
    assert (named.path, named.hidden[:2]) == ("a.py", ((1, "function_1"), (3, "function_2")))
    shown = [whole("asked.py", ""), FileView("outline.py", Outline(1), ""), FileView("a.py", part, "")]
    conversation._outcomes = [
        Outcome(AttemptSummary("1", "", ""), unseen=shown),
        Outcome(AttemptSummary("2", "", ""), failed=first, unseen=[whole("of an old build.py", "")]),
    ]
    now = {"a.py": f"{text}def more():\n    pass\n", "b.py": "def new():\n    pass\n"}
    failed = FailedBuild("wrong", [*map(whole, now, now.values())], {"a.py": text})
    assert [file.path for file in conversation._named_by(failed, {"a.py", "b.py"})] == ["a.py"]
    assert given[-1] == (codebase.shown, "wrong", {"b.py", "asked.py"}, {"more", "new"})


@pytest.mark.parametrize(
    ("task", "new", "printed", "is_told"),
    [
        ("Rename ok.txt to fine.txt.", "not yet", "ok.txt is there", True),
        ("Add it.", "not yet", "ok.txt is there", False),
        ("Rename ok.txt.", "not yet.", "ok.txt is there", False),
        ("Rename ok.txt.", "not yet", "no", False),
    ],
)
def test_a_copy_of_a_file_that_the_task_names_is_told_with_the_way_to_delete_the_old_one(
    task, new, printed, is_told, project_folder, run_code_commit
):
    answers = replay(project_folder, f"^^^fine.txt\n{new}\n^^^end\n", "^^^ok.txt\n^^^delete\n")
    (project_folder / "build.sh").write_text(f"#!/bin/sh\n[ ! -e ok.txt ] || {{ echo {printed}; exit 1; }}\n")
    git(project_folder, "commit", "-qam", "build")
    done = run_code_commit(project_folder, "-m", task, "--prompt-layout", "short", *answers)
    assert done.returncode == 0, done.stderr
    last = (the_log(project_folder) / "2-query.txt").read_text().rpartition("[user]\n")[2]
    told = "repair it.\n\nfine.txt is there now, so ok.txt has to go if it was renamed. Send only these two lines,"
    is_last = last.endswith(f"{told} which delete it:\n\n^^^ok.txt\n^^^delete\n")
    assert (is_last, "To change a file" in last) == (is_told, not is_told), last


def test_a_file_that_an_answer_sends_as_it_is_is_no_copy_to_be_deleted(project_folder, run_code_commit):
    answers = replay(project_folder, "^^^ok.txt\nnot yet\n^^^end\n", "^^^fine.txt\n^^^end\n")
    (project_folder / "build.sh").write_text("#!/bin/sh\n[ -e fine.txt ] || { echo ok.txt is alone; exit 1; }\n")
    git(project_folder, "commit", "-qam", "build")
    done = run_code_commit(project_folder, "-m", "Read ok.txt.", "--prompt-layout", "short", *answers)
    assert done.returncode == 0, done.stderr
    assert "^^^delete" not in (the_log(project_folder) / "2-query.txt").read_text().rpartition("[user]\n")[2]
