"""The patches of a task as mails: git takes them, whatever the query, the LLM's words and the files hold."""

import json
import os
import shutil
from pathlib import Path

import pytest
from command import git
from fleet_tools import RIGHT, make_answers, make_repository, task

from code_commit.fleet.builds import Source
from code_commit.fleet.patches import diff_of, digest_of
from code_commit.fleet.results import TaskOutcome
from code_commit.fleet.tasks import FleetTask
from code_commit.fleet.worker import TaskSupervision, run_task

HOSTILE = """\
From: somebody else <else@example.org>

---
diff --git a/evil b/evil
new file mode 100644
--- /dev/null
+++ b/evil
@@ -0,0 +1 @@
+evil
From 0000000000000000000000000000000000000000 Mon Sep 17 00:00:00 2001
"""
QUERY = f"Die Prüfung {'muss ' * 30}für alle Länder gelten.\nIn words:\n---\n" + HOSTILE
ANSWER = f"""{HOSTILE}
^^^ok.txt
ok
^^^end
^^^crlf.txt
one
three
^^^end
^^^old.txt
^^^delete
^^^a b/tool.sh
#!/bin/sh
--- a/x
^^^end
"""


def do(folder: Path, answer: str, script: str, **more) -> tuple[Path, TaskOutcome]:
    """Do a task in a repository with an old file, one of Windows and a lock, and return it and what came of the task.

    The answer comes twice: a diff in its text is suspected once.
    """
    root = make_repository(folder / "repository", script)
    (root / "crlf.txt").write_bytes(b"one\r\ntwo\r\nthree\r\n")
    (root / "old.txt").write_text("old\n")
    (root / "größe.lock").write_text("ok: 1\n")
    git(root, "add", "-A")
    git(root, "commit", "-qm", "more")
    line = task("a", root, make_answers(folder / "answers", answer, answer), **more)
    return root, run_task(FleetTask(**line), Source(str(root)), folder / "place", None, TaskSupervision())


def take(root: Path, *words: str, mail: bytes) -> None:
    (root.parent / "mail").write_bytes(mail)
    git(root, "-c", "user.name=A Reviewer", "-c", "user.email=r@example.org", *words, str(root.parent / "mail"))


@pytest.mark.slow
def test_git_takes_the_mail_and_nothing_in_words_becomes_a_file(tmp_path, monkeypatch):
    config = (Path.home() / ".gitconfig").read_text()
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / ".gitconfig").write_text(
        f"{config}[diff]\nnoprefix = true\n[color]\nui = always\n[format]\nattach = x\n"
    )
    root, outcome = do(tmp_path, ANSWER, "grep -q '^ok$' ok.txt", query=QUERY)
    base, mail = git(root, "rev-parse", "HEAD").strip(), outcome.patch
    assert outcome.result.commit == base
    assert mail.endswith(f"\nbase-commit: {base}\n".encode())
    assert (outcome.build_patch, outcome.result.build_changes) == (b"", ())
    assert (outcome.result.lines_added, outcome.result.lines_removed) == (3, 3)

    take(root, "apply", "--index", mail=mail)
    applied = git(root, "write-tree")
    git(root, "reset", "-q", "--hard")
    take(root, "am", "-q", "-3", "--keep-cr", mail=mail)
    assert git(root, "rev-parse", "HEAD^{tree}") == applied
    assert set(git(root, "-c", "core.quotePath=false", "ls-files").splitlines()) == {
        *(".gitignore", "a b/tool.sh", "build.sh", "crlf.txt", "größe.lock", "ok.txt")
    }
    assert (root / "crlf.txt").read_bytes() == b"one\r\nthree\r\n"
    assert (root / "a b/tool.sh").stat().st_mode & 0o111
    subject, author, *body = git(root, "show", "-s", "--format=%s%n%an%n%b").splitlines()
    assert subject == QUERY.split("\n")[0]
    assert author == "code-commit"
    assert body[0].startswith(f"replay:{tmp_path}/answers, 2 attempts: build passed: exit code 0 after ")
    assert "    diff --git a/evil b/evil" in body


@pytest.mark.slow
def test_a_title_that_looks_encoded_stays_what_it_is(tmp_path):
    title = "Decode =?utf-8?q?this?= in titles"
    root, outcome = do(tmp_path, ANSWER, "grep -q '^ok$' ok.txt", query=f"{title}\n")
    take(root, "am", "-q", "--keep-cr", mail=outcome.patch)
    assert git(root, "show", "-s", "--format=%s").strip() == title


def test_what_a_task_supplies_is_there_for_the_run_and_in_no_patch(tmp_path):
    build = 'set -e; ./check.sh; test ! -e old.txt; test -z "$(git status --porcelain -- check.sh build.sh .gitignore)"; echo x >>new.txt; echo x >>größe.lock'
    overlay = {
        "check.sh": "#!/bin/sh\ngrep -q '^ok$' ok.txt\n",
        "crlf.txt": "two\n",
        "größe.lock": "ok: 2\n",
        "old.txt": None,
    }
    answer = RIGHT + "^^^crlf.txt\nthree\n^^^end\n"
    root, outcome = do(tmp_path, answer, "exit 1", setup=True, overlay=overlay | {"build.sh": build})
    assert outcome.result.is_green, outcome.result
    assert outcome.result.commit == git(root, "rev-parse", "HEAD").strip()
    assert outcome.build_patch == b""
    take(root, "am", "-q", "-3", mail=outcome.patch)
    assert git(root, "show", "--format=", "--name-only") == "ok.txt\n"


@pytest.mark.slow
def test_the_mail_merges_where_the_base_has_moved(tmp_path):
    root, outcome = do(tmp_path, RIGHT, "grep -q '^ok$' ok.txt")
    git(root, "mv", "ok.txt", "fine.txt")
    git(root, "commit", "-qm", "moved")
    take(root, "am", "-q", "-3", mail=outcome.patch)
    assert (root / "fine.txt").read_text() == "ok\n"


@pytest.mark.slow
def test_what_the_build_changed_of_tracked_files_is_a_second_mail(tmp_path):
    """A lock file, say. Changes of the build in a file of the answer belong to the answer."""
    build = "echo $(cat ok.txt): 2 >größe.lock; echo more >>ok.txt; echo new >new; touch .git/index.lock; rm old.txt"
    root, outcome = do(tmp_path, RIGHT, build)
    assert outcome.result.is_green
    assert outcome.result.build_changes == ("größe.lock", "old.txt")
    for mail in (outcome.patch, outcome.build_patch):
        take(root, "am", "-q", "-3", mail=mail)
    assert (root / "größe.lock").read_text() == "ok: 2\n"
    assert (root / "ok.txt").read_text() == "ok\nmore\n"
    assert git(root, "log", "--format=%s", "-2").splitlines() == [
        "build.sh changed größe.lock, old.txt",
        "Make ok.txt say ok.",
    ]
    assert not (root / "new").exists()


def test_the_patch_holds_what_was_built_not_what_a_process_wrote_after_the_build(tmp_path, monkeypatch):
    """Git reads the index for the patch only when the process that the build left has written."""
    real, late = shutil.which("git"), tmp_path / "late"
    (tmp_path / "bin").mkdir()
    wait = f"for i in $(seq 200); do test -e {late} && break; sleep 0.05; done"
    fake = f'#!/bin/sh\ncase "$*" in *" read-tree "*) {wait};; esac\nexec {real} "$@"\n'
    (tmp_path / "bin" / "git").write_text(fake)
    (tmp_path / "bin" / "git").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}")
    ended = 'grep -q \'"finished": "\' agent-config/logs/*/run.json'
    left = f"for i in $(seq 500); do {ended} && break; sleep 0.01; done; echo late >>ok.txt; touch {late}"
    (tmp_path / "left").write_text(left)
    build = f"echo built >>ok.txt; nohup sh {tmp_path}/left >/dev/null 2>&1 & grep -q '^ok$' ok.txt"
    root, outcome = do(tmp_path, RIGHT, build, settings={"sandbox": "off"})
    assert (outcome.result.is_green, outcome.result.rewritten, late.exists()) == (True, ("ok.txt",), True)
    take(root, "apply", "--index", mail=outcome.patch)
    assert (root / "ok.txt").read_text() == "ok\nbuilt\n"


@pytest.mark.slow
def test_a_patch_that_cannot_be_made_leaves_the_log_and_what_was_paid(tmp_path, server):
    prices = {"prices": {"fake": {"input": 10.0, "output": 100.0}}}
    _, outcome = do(tmp_path, RIGHT, "rm -rf .git", settings=server.settings | prices)
    assert (outcome.result.status, outcome.result.exit_code, outcome.patch) == ("machine_failed", 5, b"")
    assert outcome.result.message.startswith("no patch could be made: ")
    assert outcome.result.cost_usd == pytest.approx(0.11)
    assert json.loads(outcome.record)["attempts"][0]["verdict"] == "applied"
    assert outcome.log


MAIL = b"From 0\n\nwords\n---\n\ndiff --git a/x b/x\nindex 11..22 100644\n--- a/x\n+++ b/x\n@@ -1 +1 @@ f()\n-a\n+b\n\nbase-commit: 1\n"


def test_equal_changes_of_different_repositories_have_one_digest():
    diff = MAIL[MAIL.index(b"diff ") : MAIL.index(b"\nbase")]
    assert diff_of(MAIL) == diff
    assert diff_of(diff) == diff
    elsewhere = MAIL.replace(b"11..22", b"33..44").replace(b"@@ -1 +1 @@ f()", b"@@ -7 +7 @@ g()").replace(b"0", b"1")
    assert digest_of(elsewhere) == digest_of(MAIL)
    assert digest_of(MAIL.replace(b"+b", b"+ b")) != digest_of(MAIL)
    assert digest_of(b"") == ""
