"""The page of a fleet and those of its tasks, without a browser."""

import re

import pytest
from fleet_out import EVIL, PATCH, RECORD, write_fleet

from code_commit.errors import LogError
from code_commit.fleet.page import write_pages
from code_commit.fleet.results import Result, land, load_results


@pytest.fixture
def out(tmp_path):
    return write_fleet(tmp_path / "out", "abfgh")


def test_every_task_has_its_row_the_failed_ones_first_and_a_link_where_a_run_began(out):
    page = (out / "index.html").read_text()
    rows = re.findall(r"<tr><td>.*?</tr>", page, re.DOTALL)
    text = [" ".join(re.sub("<.*?>", " ", row).split()) for row in rows]
    assert text[0].startswith("build failed b 4 $1.5000 9.5 s no &#34;&gt;&lt;img src=x")
    assert text[1:3] == ["not set up c 0 - 0.0 s it cannot be cloned", "not set up d 0 - 0.0 s exit code 2"]
    assert text[4] == "green e 1 $0.5000 8.0 s"
    assert re.findall(r'href="(.*?)"', page) == ["./b/index.html", "./a/index.html", "./e/index.html"]
    assert "2 of 8 tasks green" in page
    assert "7 attempts · $2.25" in page
    assert "3 not done: the same command goes on with them" in page


def test_foreign_text_is_text(out):
    page = (out / "index.html").read_text()
    assert page.count("<script>") == 1
    assert "<img" not in page
    assert EVIL.replace("<", "&lt;").replace(">", "&gt;") in page


def test_the_page_of_a_task_shows_its_patch_and_says_nothing_of_a_tree_that_is_gone(out):
    page = (out / "a" / "index.html").read_text()
    assert "of the patch" in page
    assert 'href="./changes.patch"' in page
    assert 'href="../index.html"' in page
    assert "code-commit undo" not in page
    killed = (out / "b" / "index.html").read_text()
    assert "Killed while it ran" in killed
    assert "code-commit resume" not in killed


def test_the_page_of_a_task_is_made_once_and_anew_with_another_result(out):
    page = out / "a" / "index.html"
    page.write_text("kept")
    write_pages(out, "abfgh")
    assert page.read_text() == "kept"
    land(out, Result("a", "d2", "success", 0, attempts=1), RECORD, PATCH.replace(b"the patch", b"another"), b"")
    write_pages(out, "abfgh")
    assert "of another" in page.read_text()
    assert set(load_results(out)) == set("abcde")


def test_a_page_that_cannot_be_written_is_told(out):
    (out / "index.html").unlink()
    (out / "index.html").mkdir()
    with pytest.raises(LogError, match=r"index\.html cannot be used: Is a directory"):
        write_pages(out, "abfgh")
