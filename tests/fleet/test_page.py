"""The page of a fleet and those of its tasks, without a browser."""

import re

import pytest
from command import git
from fleet_out import EVIL, PATCH, RECORD, store, write_fleet

from code_commit.commands import parse
from code_commit.commands.log import run
from code_commit.commands.results import Result
from code_commit.errors import LogError
from code_commit.fleet.page import write_pages
from code_commit.fleet.results import load_results, results_folder


@pytest.fixture
def out(tmp_path):
    return write_fleet(tmp_path / "out", "abfgh")


def test_each_task_has_a_row_the_failed_ones_first(out):
    page = (out / "index.html").read_text()
    rows = re.findall(r"<tr><td>.*?</tr>", page, re.DOTALL)
    text = [" ".join(re.sub("<.*?>", " ", row).split()) for row in rows]
    assert text[0].startswith("build failed b 4 - $1.50 9.5 s no &#34;&gt;&lt;img src=x")
    assert text[1:3] == ["not set up c 0 - - 0.0 s it cannot be cloned", "not set up d 0 - - 0.0 s exit code 2"]
    assert text[4] == "green e 1 - $0.50 8.0 s"
    assert re.findall(r'href="(.*?)"', page) == ["./b/index.html", "./a/index.html", "./e/index.html"]
    assert "2 of 8 tasks green" in page
    assert "7 attempts · $2.25" in page
    assert "3 not done: rerun the same command to continue with them" in page


def test_a_cost_of_more_runs_than_the_latest_is_told_to_be_that(out):
    again = Result("e", "d", "success", 0, attempts=1, run="r").with_runs({"r": (0.5, 0.0), "s": (1.0, 0.0)})
    write_pages(out, "abfgh", load_results(out) | {"e": again})
    text = " ".join(re.sub("<.*?>", " ", (out / "index.html").read_text()).split())
    assert "7 attempts · $3.25 in all runs" in text
    assert "green e 1 - $1.50 in all runs 0.0 s" in text
    assert text.count("in all runs") == 2
    write_pages(out, "e", {"e": again.with_runs({"r": (None, 0.0), "s": (None, 0.0)})})
    assert "in all runs" not in (out / "index.html").read_text(), "of an unknown cost"


def test_equal_patches_of_repositories_stand_together_and_each_names_the_one_to_read(tmp_path):
    out = tmp_path / "out"
    with results_folder(out):
        for name, patch, built in (("a", "1", ()), ("b", "2", ()), ("c", "2", ("x.lock",)), ("d", "2", ())):
            more = {"patch": patch, "lines_added": 3, "lines_removed": 1, "model": "chat:fake", "cost_usd": 0.00002}
            store(
                out,
                Result(name, "d", "success", 0, repository=f"../{name}", build_changes=built, rewritten=built, **more),
                b"",
                PATCH,
                b"",
            )
        store(out, Result("e", "d", "not_set_up", 2, repository="../e"), b"", b"", b"")
        write_pages(out, "abcde", load_results(out))
    page = (out / "index.html").read_text()
    rows = [" ".join(re.sub("<.*?>", " ", row).split()) for row in re.findall(r"<tr><td>.*?</tr>", page, re.DOTALL)]
    assert [row.split(" ../")[0].split()[-1] for row in rows] == ["e", "b", "c", "d", "a"]
    hint = f"To land them: code-commit fleet --land {out} --group 2"
    assert rows[1] == f"green b ../b 0 +3 -1 &lt;$0.0001 0.0 s chat:fake {hint} 3 repositories, the same patch"
    told = "The build changed x.lock after the answer: changes.patch includes that The build also changed x.lock: build.patch"
    assert rows[2].endswith(f"3 repositories, the same patch: b {told}")
    assert rows[4].endswith(f"chat:fake To land it: code-commit fleet --land {out} --only a")
    assert "&lt;$0.0001</span>" in page


def test_foreign_text_is_text(out):
    page = (out / "index.html").read_text()
    assert page.count("<script>") == 1
    assert "<img" not in page
    assert EVIL.replace("<", "&lt;").replace(">", "&gt;") in page


def test_the_page_of_a_task_shows_its_patch_and_no_tree(out):
    page = (out / "a" / "index.html").read_text()
    assert "of the patch" in page
    assert 'href="./changes.patch"' in page
    assert 'href="../index.html"' in page
    assert "code-commit undo" not in page
    killed = (out / "b" / "index.html").read_text()
    assert "Killed while running" in killed
    assert "code-commit resume" not in killed


def test_the_page_of_a_task_is_made_once_and_anew_with_another_result(out):
    page = out / "a" / "index.html"
    page.write_text("kept")
    write_pages(out, "abfgh", load_results(out))
    assert page.read_text() == "kept"
    store(out, Result("a", "d2", "success", 0, attempts=1), RECORD, PATCH.replace(b"the patch", b"another"), b"")
    write_pages(out, "abfgh", load_results(out))
    assert "of another" in page.read_text()
    assert set(load_results(out)) == set("abcde")


def test_a_page_that_cannot_be_written_is_told(out):
    (out / "index.html").unlink()
    (out / "index.html").mkdir()
    with pytest.raises(LogError, match=r"index\.html cannot be used: Is a directory"):
        write_pages(out, "abfgh", load_results(out))


def test_a_task_is_a_summary_for_a_ci_job_too(out, capsys, monkeypatch):
    git(out, "init", "-q")
    monkeypatch.chdir(out)
    assert run(parse(["log", "a", "--markdown"]).arguments) == 0
    told = capsys.readouterr().out
    assert "new.txt" in told
    assert told.startswith("## ")
