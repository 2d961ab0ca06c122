"""Changes that stand outside of the blocks, in another format, and notes that only speak of files."""

import time

import pytest
from command import git

from code_commit.changes import Reasons
from code_commit.parse import read_notes, read_response
from code_commit.project import find_project
from code_commit.redaction import Redactor
from code_commit.settings import Settings
from code_commit.verify import capture_rules
from code_commit.verify.notes import suspect_notes

FILES = {
    "a.md": "one\n",
    "lib/b.py": "def b():\n    return 1\n\n\ndef c():\n    return 2\n",
    "lib/long.py": "".join(f"value_{number} = {number} * unit\n" for number in range(40)),
    "keys/prod.env": "TOKEN=1\n",
}
BLOCK = "^^^a.md\ntwo\n^^^end\n"
NEW = "def b():\n    return 3\n"
FENCE = f"```python\n{NEW}```\n"
SEARCH = "<<<<<<< SEARCH\n    return 1\n=======\n    return 3\n>>>>>>> REPLACE\n"
HUNK = "@@ -1,2 +1,2 @@\n def b():\n-    return 1\n+    return 3\n"
TEN = "".join(f"value_{number} = {number} * {'unit' if number else 'size'}\n" for number in range(10))


@pytest.fixture
def root(project_folder):
    for name, text in FILES.items():
        (project_folder / name).parent.mkdir(exist_ok=True)
        (project_folder / name).write_text(text)
    git(project_folder, "add", "-f", *FILES)
    return project_folder


def suspected(root, answer, **options) -> list[tuple[str, int]]:
    project, reasons = find_project(root), Reasons()
    rules = capture_rules(project, Settings(**options), Redactor([]))
    suspect_notes(read_notes(answer), read_response(answer, reasons, project.has), project, rules, reasons)
    assert all(reason.rule == "mixed-format" and reason.may_be_meant for reason in reasons.kept)
    return [(reason.path, reason.line) for reason in reasons.kept]


LOST = {
    # the notes, and the line that is told
    "path": (f"lib/b.py\n{FENCE}", 3),
    "bold path and a blank line": (f"**`lib/b.py`**\n\n{FENCE}", 4),
    "heading": (f"### File: `./lib/b.py`:\n{FENCE}", 3),
    "path and a fence of no language": (f"lib/b.py\n```\n{NEW}```\n", 3),
    "path in the info": (f"```python:lib/b.py\n{NEW}```\n", 2),
    "path as a title": (f'```python title="lib/b.py"\n{NEW}```\n', 2),
    "path in a comment": (f"~~~python\n# lib/b.py\n{NEW}~~~\n", 2),
    "most of a file": (f"It becomes:\n\n```python\n{FILES['lib/b.py'].replace('1', '3')}```\n", 4),
    "part of a file": (f"```\n{TEN}```\n", 2),
    "apply_patch": (f"*** Begin Patch\n*** Update File: lib/b.py\n{HUNK}*** End Patch\n", 2),
    "apply_patch of a removal": ("*** Begin Patch\n*** Delete File: lib/b.py\n*** End Patch\n", 2),
    "diff": (f"--- a/lib/b.py\n+++ b/lib/b.py\n{HUNK}", 2),
    "diff of git": (f"```diff\ndiff --git a/lib/b.py b/lib/b.py\n--- a/lib/b.py\n+++ b/lib/b.py\n{HUNK}```\n", 4),
    "diff of a removal": ("--- a/lib/b.py\n+++ /dev/null\n@@ -1,2 +0,0 @@\n-def b():\n-    return 1\n", 1),
    "diff below a path": (f"lib/b.py:\n```diff\n{HUNK}```\n", 3),
    "search and replace": (f"lib/b.py\n```python\n{SEARCH}```\n", 3),
    "search and replace in a file that nothing names": (SEARCH, 1),
    "prose with the path": (f"In `lib/b.py`, change b() to:\n\n{FENCE}", 4),
    "a heredoc": ("```sh\ncat > lib/b.py <<'EOF'\nx = 1\nEOF\n```\n", 2),
    "a tag inside": (f"<write_to_file>\n<path>lib/b.py</path>\n<content>\n{NEW}</content>\n", 2),
    "markers with other words": (
        "lib/b.py\n<<<<<<< ORIGINAL\n    return 1\n=======\n    return 3\n>>>>>>> UPDATED\n",
        2,
    ),
    "tag": (f'<file path="lib/b.py">\n{NEW}</file>\n', 1),
    "label": (f"--- lib/b.py ---\n{NEW}", 1),
}


def test_the_users_settings_of_git_hide_nothing(root):
    for name in ("color.ui", "color.grep", "grep.fullName", "grep.lineNumber", "grep.column"):
        git(root, "config", name, "always" if name.startswith("color") else "true")
    assert suspected(root, f"```\n{TEN}```\n{BLOCK}") == [("lib/long.py", 2)]


NOTHING_LOST = {
    "command": "```sh\npython lib/b.py\n```\n",
    "usage": "```python\nfrom lib import b\nb.b()\n```\n",
    "output": "The failure in lib/b.py is\n```\nAssertionError: 1 != 2\n```\n",
    "another language below a path": "lib/b.py\n```sh\npytest -q\n```\n",
    "listing": "lib/b.py\n\n```\n-rw-r--r-- 1 u u 50 lib/b.py\n```\n",
    "session": "See `lib/b.py`:\n\n```python\n>>> b()\n1\n```\n",
    "prose about a call": "With two calls of `lib/b.py` it is:\n```sh\npython -m b\n```\n",
    "quotation": "lib/b.py\n```python\ndef c():\n    return 2\n```\n",
    "quotation with dots": "lib/b.py\n```python\ndef b():\n    # ... more ...\ndef c():\n```\n",
    "long quotation": f"```python\n{FILES['lib/long.py']}```\n",
    "list of files": "```\nlib/b.py\nlib/long.py\n```\n",
    "diff of the file of a block": "```diff\n--- a/a.md\n+++ b/a.md\n@@ -1 +1 @@\n-one\n+two\n```\n",
    "code of a block": "a.md:\n```\ntwo\n```\n",
    "diff that was applied before": "--- a/lib/b.py\n+++ b/lib/b.py\n@@ -1 +1 @@\n-    return 0\n+    return 1\n",
    "protected": "build.sh\n```sh\n#!/bin/sh\nmake all\n```\n",
    "secret": "keys/prod.env\n```\nTOKEN=2\n```\n",
    "rule": "One\n---\n\n+++ more\n",
    "list": "- a\n- b\n\n*** done\n",
}


@pytest.mark.parametrize(("notes", "line"), LOST.values(), ids=LOST)
def test_a_change_that_no_block_makes_is_suspected(root, notes, line):
    assert suspected(root, notes + BLOCK) == [
        ("lib/b.py" if notes != LOST["part of a file"][0] else "lib/long.py", line)
    ]
    assert [path for path, _ in suspected(root, f"{BLOCK}So:\n\n{notes}")] != []


@pytest.mark.parametrize("notes", NOTHING_LOST.values(), ids=NOTHING_LOST)
def test_notes_that_change_nothing_pass(root, notes):
    assert suspected(root, notes + BLOCK) == []
    assert suspected(root, f"{BLOCK}So:\n\n{notes}") == []


@pytest.mark.parametrize("notes", [notes for notes, _ in LOST.values()], ids=LOST)
def test_what_may_not_be_changed_may_be_spoken_of(root, notes):
    assert suspected(root, notes + BLOCK, protect=("lib/",)) == suspected(root, notes + BLOCK, allow=("*.md",)) == []
    (root / ".gitignore").write_text("/lib/\n")
    assert suspected(root, notes + BLOCK) == []


def test_a_new_file_of_a_patch_is_missed(root):
    assert suspected(root, f"*** Add File: lib/new.py\n+x = 1\n{BLOCK}") == [("lib/new.py", 1)]
    assert suspected(root, f"--- /dev/null\n+++ b/lib/new.py\n@@ -0,0 +1 @@\n+x = 1\n{BLOCK}") == [("lib/new.py", 2)]
    assert suspected(root, "*** Add File: lib/new.py\n+x = 1\n^^^lib/new.py\nx = 1\n^^^end\n") == []


def test_blocks_in_a_markdown_fence_are_examples_where_others_stand_in_none(root):
    removal, new = "```\n^^^lib/b.py\n^^^delete\n```\n", "```text\n^^^path/to/x.py\nx\n^^^end\n```\n"
    assert suspected(root, f"{BLOCK}For example:\n{removal}") == [("lib/b.py", 6)]
    assert suspected(root, f"{new}{BLOCK}") == [("path/to/x.py", 2)]
    assert suspected(root, f"{removal}{new}") == suspected(root, f"```\n^^^lib/x.py\nx\n^^^end\n```\n{BLOCK}") == []


@pytest.mark.parametrize(
    "line",
    ["```\n", "~~~py\n", "--- a\n", "+++ a\n", "<<<<<<< SEARCH\n", "=======\n", "lib/b.py\n", "x\n```\n"],
    ids=ascii,
)
def test_the_time_is_linear_in_the_size(root, line, whole):
    size = 2_000_000 if whole else 200_000
    start = time.process_time()
    suspected(root, line * (size // len(line)) + f"\n```\n{BLOCK}")
    assert time.process_time() - start < max(1, size / 200_000)
