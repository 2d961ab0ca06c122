"""The worth of files to a task: by words, by names, by earlier commits; and what is told of the query's names."""

from pathlib import Path

import pytest
from command import git

from code_commit.codebase.mentions import show_mentions
from code_commit.codebase.rank import add_files, rank, survey_files, within
from code_commit.codebase.select import Commit, Selection, read_commits, read_files
from code_commit.codebase.task import read_task, with_names_of
from code_commit.codebase.text import Section, file_section
from code_commit.errors import NotSetUpError
from code_commit.project import Project, find_project
from code_commit.redaction import Redactor


def sections(**texts: str) -> list[Section]:
    files = {name.replace("__", "/") + ".py": text for name, text in texts.items()}
    return [Section(name, len(text), file_section(name, text)) for name, text in files.items()]


def order(files: list[Section], query: str, *commits: Commit) -> list[str]:
    return [file.name for file in rank(survey_files(files, query, commits))]


def test_a_file_that_commits_with_such_messages_changed_goes_before_one_that_shares_words():
    files = sections(a="the width of a column\n" * 9, b="x = 1\n", c="x = 2\n")
    query = "Wrap long lines at the width of the terminal"
    assert order(files, query)[0] == "a.py"
    told = [Commit("Wrap lines at the terminal's width", ["c.py"]), Commit("Wrap lines of the terminal", ["c.py"])]
    others = [Commit(f"Mend thing {number}", ["a.py", "b.py"]) for number in range(20)]
    assert order(files, query, *told, *others).index("c.py") < order(files, query).index("c.py")


def test_the_messages_are_those_of_the_project_s_own_commits(project_folder: Path):
    (project_folder / "sub").mkdir()
    for number in range(3):
        (project_folder / "sub/ü.py").write_text(f"x = {number}\n")
        (project_folder / "ok.txt").write_text(f"{number}\n")
        git(project_folder, "add", "-A")
        git(project_folder, "commit", "-qm", f"Change it\n\nMore on {number}")
    commits = read_commits(find_project(project_folder))
    assert (commits[0].message.strip(), commits[0].paths) == ("Change it\n\nMore on 2", ["ok.txt", "sub/ü.py"])
    (project_folder / "sub/agent-config").mkdir()
    assert read_commits(find_project(project_folder / "sub"))[0].paths == ["ü.py"]
    for number in range(31):
        (project_folder / f"{number}.txt").write_text("")
    git(project_folder, "add", "-A")
    git(project_folder, "commit", "-qm", "Add many files, which tells nothing of one")
    assert read_commits(find_project(project_folder)) == commits
    assert read_commits(Project(project_folder)) == []


@pytest.mark.parametrize(
    ("query", "told"),
    [
        ("Sort the help option names", "help_option_names: 1 line\na.py:2:x = help_option_names()\n"),
        ("Say what HELP OPTION NAMES are", "help_option_names: 1 line\n"),
        ("Mind `common`", ""),
    ],
)
def test_words_that_stand_together_are_looked_for_as_one_name(query: str, told: str):
    files = sections(a="x = 1\nx = help_option_names()\n", b="common\n" * 101)
    assert show_mentions(survey_files(files, query).mentions).startswith(told)
    assert told or not show_mentions(survey_files(files, query).mentions)


def test_of_files_that_are_shown_no_line_is_told_and_cuts_are_marked():
    files = sections(a="width = 1\n", b=f"width = {'1' * 200}\n")
    survey = survey_files(files, "Let `width` be 2")
    assert show_mentions(survey.mentions, ["a.py"]) == f"width: 2 lines, 1 shown\nb.py:1:width = {'1' * 112} ...\n"
    assert show_mentions(survey.mentions, ["a.py", "b.py"]) == ""


def test_names_of_the_task_that_a_test_of_the_build_uses_and_the_code_lacks_are_told():
    test = "from m import wrapped\nassert m.known(m.fresh_name) == wrapped\nmock.assert_called_once()\n"
    files, query = sections(t=test, m="def known(): ...\n"), "Give what is wrapped a fresh name"
    told = show_mentions(survey_files(files, query, judges=["t.py"]).mentions)
    assert told.startswith("used in t.py, in no other file: fresh_name, wrapped\n")
    assert show_mentions(survey_files(files, "Do it", judges=["t.py"]).mentions) == ""
    assert "used in" not in show_mentions(survey_files(files, query).mentions)


@pytest.mark.parametrize(
    ("query", "scope", "words"),
    [
        ("fix(jsx/dom): keep focus", {"jsx", "dom"}, " keep focus"),
        ("feat!: keep focus", set(), " keep focus"),
        ("refactor(cli)!: x\n\nCo-authored-by: A B <a@b.c>\nSigned-off-by: C <c@d.e>\n", {"cli"}, " x"),
        ("net/http: keep the focus", {"net", "http"}, "net/http: keep the focus"),
        ("Note: it is late", {"note"}, "Note: it is late"),
        ("Keep it\n\nWhy: it is so.\n", set(), "Keep it\n\nWhy: it is so.\n"),
        ("x\n\nFixes #12\nReported-by: A <a@b.c>\n(cherry picked from commit 12ab)", set(), "x"),
    ],
)
def test_the_form_of_a_commit_s_message_is_no_word_and_its_scope_ranks(query: str, scope: set[str], words: str):
    assert read_task(query) == (words, scope)
    files = sections(src__jsx__dom__focus="a focus\n", src__dom="a focus\n", fix="fix focus\n")
    if query.startswith("fix(jsx/dom)"):
        assert order(files, query)[0] == "src/jsx/dom/focus.py"


def test_a_part_of_a_survey_and_files_that_came_later_keep_their_worth():
    files = sections(src__net__a="wrap\n", src__b="wrap lines\n", c="lines\n")
    survey = survey_files(files, "Wrap lines")
    assert [file.name for file in rank(within(survey, ["src"]))] == ["src/b.py", "src/net/a.py"]
    assert [file.name for file in rank(add_files(survey, sections(d="wrap lines\n")))][-1] == "d.py"


def test_many_texts_are_not_held_but_read_again_and_what_changed_meanwhile_is_told(tmp_path: Path):
    names = [f"{number}.txt" for number in range(4)]
    for name in names:
        (tmp_path / name).write_text("x" * 5_000_000)
    selection = Selection(takes_large=True)
    files = list(read_files(tmp_path, names, Redactor([]), selection))
    assert [bool(file._text) for file in files] == [True, True, False, False]
    assert all(file.text == file_section(file.name, "x" * 5_000_000) for file in files)
    (tmp_path / "3.txt").write_bytes(b"\0")
    with pytest.raises(NotSetUpError, match=r"3\.txt was changed while the codebase was made"):
        _ = files[3].text


def test_the_names_of_what_failed_come_before_those_that_a_build_prints_most():
    output = "-DOF_AN_OPTION\n" + "while in go_round, within go_round\n" * 9 + "a.py:1: error: no 'best_name'\n"
    query = with_names_of("Make it pass.", output, ["a.py"], "a.py:1: error: no 'best_name'\n")
    assert query == "Make it pass.\n\n`best_name` `go_round`"


def test_names_that_a_build_prints_are_looked_for_and_their_words_are_not():
    files = sections(a="def wide_column():\n", b="def best_name():\n", c="def wide_name():\n", d="def is_at_start():\n")
    query = with_names_of("Is it wide at the start?", "error: best_name, best_column\n", ["a.py"])
    told = show_mentions(survey_files(files, query).mentions)
    assert told == "best_name: 1 line\nb.py:1:def best_name():\n"
    told = show_mentions(survey_files(files, "Is it a wide column at the start?").mentions)
    assert "wide_column" in told
    assert "is_at_start" not in told
