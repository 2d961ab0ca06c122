"""The changes of a task as mails for `git am -3` and `git apply --index`: one of the answers, one of the build."""

from collections.abc import Collection, Iterable
from datetime import UTC, datetime
from email.header import Header
from email.utils import format_datetime
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

from code_commit.api import read_changes
from code_commit.git import Repository, UnansweredError
from code_commit.runs.diff import FileEdit
from code_commit.runs.record import RunRecord
from code_commit.runs.words import count, listed, summary_of
from code_commit.terminal import shown

_HEAD = """\
From 0000000000000000000000000000000000000000 Mon Sep 17 00:00:00 2001
From: code-commit <code-commit@localhost>
Date: {date}
Subject: {subject}
MIME-Version: 1.0
Content-Type: text/plain; charset=UTF-8
Content-Transfer-Encoding: 8bit

{body}
---
"""
_MOST_WORDS = 20_000  # characters
_DIFF, _TRAILER = b"\ndiff --git ", b"\nbase-commit: "


class Patches(NamedTuple):
    """The mails, b"" for no change, the git tree that holds both, and the numbers of lines in `changes`."""

    changes: bytes = b""
    build: bytes = b""
    tree: str = ""
    lines_added: int = 0
    lines_removed: int = 0


def make_patches(git: Repository, base: str, record: RunRecord, log: Path, apart: Collection[str] = ()) -> Patches:
    """Return what a run changed in its clone since the commit `base`, but for the files `apart`.

    The contents of the answers' files are those that its log folder holds: the tree may have changed after the build.
    The clone's index is made anew for it. Raises CodeCommitError and UnansweredError.
    """
    (git.git_dir / "index.lock").unlink(missing_ok=True)  # of a git that was ended with its build

    def ask(*words: str, stdin: bytes = b"") -> bytes:
        answer = git.ask_unfiltered(["-c", "core.hooksPath=/dev/null", *words], stdin)
        if answer.returncode != 0:
            raise UnansweredError(f"git {words[0]}", answer)
        return answer.stdout

    def add(edits: Iterable[FileEdit]) -> str:
        entries = b""
        for edit in edits:
            mode, blob = b"0", b"0" * len(base)
            if edit.new is not None:
                mode = b"100755" if edit.mode & 0o100 else b"100644"
                blob = ask("hash-object", "-w", "--stdin", f"--path={edit.path}", stdin=edit.new).strip()
            entries += b"%s %s\t%s\0" % (mode, blob, edit.path.encode())
        ask("update-index", "--replace", "-z", "--index-info", stdin=entries)
        return ask("write-tree").decode().strip()

    def mail(before: str, after: str, subject: str, body: str) -> tuple[bytes, list[bytes]]:
        """Return the mail of the changes, and git's line of each file, with its numbers of added and removed lines."""
        options = ("--full-index", "--binary", "--no-renames", "--no-ext-diff", "--no-textconv")
        counts, _, diff = ask("diff-tree", "-r", "-p", "--numstat", *options, before, after).partition(b"\n\n")
        return _mail(subject, body, diff + _TRAILER + base.encode() + b"\n") if diff else b"", counts.splitlines()

    ask("read-tree", base)
    tracked = ask("ls-files", "-z").decode("utf-8", "surrogateescape").split("\0") if record.build_changes else []
    built = [path for path in tracked if shown(path) in record.build_changes and not (git.root / path).is_dir()]
    edits, lost = ([], []) if record.rolled_back else read_changes(log, git.root)
    if lost:
        raise UnansweredError(f"the log has no content of {listed(lost)}")
    tree = add(edit for edit in edits if edit.path not in apart)
    changes, counts = mail(base, tree, record.query, _told(record))
    build, answered = b"", tree
    if built:
        ask("update-index", "--add", "--remove", "--replace", "--", *(path for path in built if path not in apart))
        tree = ask("write-tree").decode().strip()
        told = f"By the build of: {shown(record.query)}"
        build, _ = mail(answered, tree, f"build.sh changed {listed(built)}", told)
    pairs = [row.split(b"\t")[:2] for row in counts]
    added, removed = (sum(int(row[each]) for row in pairs if row[each].isdigit()) for each in (0, 1))
    return Patches(changes, build, tree, added, removed)


def diff_of(mail: bytes) -> bytes:
    """Return the diff of a mail, or the content itself if it is no mail."""
    begin, end = mail.find(_DIFF) + 1, mail.rfind(_TRAILER)
    return mail[begin:end] if begin and end > begin else mail


def digest_of(mail: bytes) -> str:
    """Return what patches share that change the same lines between the same ones, wherever in a file; "" for none."""
    apart = (b"index ", b"@@ ")
    lines = [line for line in diff_of(mail).split(b"\n") if not line.startswith(apart)]
    return sha256(b"\n".join(lines)).hexdigest() if mail else ""


def _told(record: RunRecord) -> str:
    """Return what came of a run, and the LLM's words: set in, so that nothing in them is taken for a patch."""
    attempts = count(len(record.attempts), "attempt")
    verdict = f"{shown(record.asked_model)}, {attempts}: {summary_of(record.attempts[-1])}"
    words = "\n".join(attempt.notes for attempt in record.attempts if attempt.changes)[:_MOST_WORDS]
    return "\n".join([verdict, *(["", *(f"    {shown(line)}" for line in words.split("\n"))] if words else [])])


def _mail(subject: str, body: str, diff: bytes) -> bytes:
    charset = "utf-8" if "=?" in subject else None  # or git would decode what looks encoded
    header = Header(f"[PATCH] {shown(subject)}", charset, header_name="Subject").encode()
    head = _HEAD.format(date=format_datetime(datetime.now(UTC)), subject=header, body=body)
    return head.encode("utf-8", "replace") + diff
