"""Content that is another format's, and real files that only look like it."""

import time

import pytest

from code_commit.verify.formats import find_wrong_format

CODE = "import os\n\n\ndef f():\n    return 1\n\n\ndef g():\n    return 2\n"
TEXT = "first line\nsecond line\nthird line\n"
PAGE = "# Title\n\nSome words.\n\n```sh\nmake\n```\n"

HUNK = "@@ -1,2 +1,2 @@\n-first line\n+1st line\n second line\n"
BOTH = "<<<<<<< HEAD\n    return 1\n=======\n    return 3\n>>>>>>> other\n"
SEARCH = "<<<<<<< SEARCH\n    return 1\n=======\n    return 3\n>>>>>>> REPLACE\n"
ANOTHER = "--- a/b.txt\n+++ b/b.txt\n" + HUNK


def numbered(text: str, form: str) -> str:
    return "".join(form.format(number, line) + "\n" for number, line in enumerate(text.split("\n")[:-1], 1))


WRONG = {
    # the file, its new content, its old content (None: there is none), the words of the message
    "diff of git": ("a.txt", "diff --git a/a.txt b/a.txt\nindex 1..2 100644\n--- a/a.txt\n" + HUNK, TEXT, "diff"),
    "unified diff": ("a.txt", "--- a/a.txt\n+++ b/a.txt\n" + HUNK, TEXT, "diff"),
    "hunk": ("a.txt", HUNK, TEXT, "diff"),
    "hunk without numbers": ("a.py", "@@ ... @@\n-    return 1\n+    return 3\n", CODE, "diff"),
    "patch of an agent": ("a.py", "*** Begin Patch\n*** Update File: a.py\n@@\n-x\n+y\n", CODE, "diff"),
    "body of a hunk": ("a.py", " def f():\n-    return 1\n+    return 3\n \n \n def g():\n", CODE, "diff"),
    "body in Markdown": ("README.md", " # Title\n \n-Some words.\n+Other words.\n", PAGE, "diff"),
    "body with other words": ("a.py", " def f():\n-    return 1.0\n+    return 3\n \n def h():\n", CODE, "diff"),
    "body with CRLF": ("a.txt", "-first line\r\n+1st\r\n second line\r\n", TEXT.replace("\n", "\r\n"), "diff"),
    "body of a number": ("VERSION", "-1.0\n+1.1\n", "1.0\n", "diff"),
    "signs in the whole file": ("a.py", CODE.replace("    return 1", "-    return 1\n+    return 3"), CODE, "diff"),
    "one plus sign": ("a.txt", TEXT.replace("second", "+another line\nsecond"), TEXT, "diff"),
    "diff of a new file": ("n.txt", "--- /dev/null\n+++ b/n.txt\n@@ -0,0 +1 @@\n+x\n", None, "diff"),
    "plus signs in new code": ("n.py", "+x = 1\n+y = 2\n", None, "diff"),
    "search and replace": ("a.txt", SEARCH, TEXT, "markers"),
    "two of them": ("a.py", f"{SEARCH}\n{SEARCH}", CODE, "markers"),
    "new code": ("n.py", "<<<<<<< SEARCH\n=======\nx = 1\n>>>>>>> REPLACE\n", None, "markers"),
    "signs as markers": (
        "a.py",
        "------- SEARCH\n    return 1\n=======\n    return 3\n+++++++ REPLACE\n",
        CODE,
        "markers",
    ),
    "conflict": ("a.py", "import sys\n" + CODE.replace("    return 1\n", BOTH), CODE, "markers"),
    "conflict at the top": ("a.txt", "<<<<<<< a\nfirst line\n=======\n1\n>>>>>>> b\nsecond line\nx\n", TEXT, "markers"),
    "conflict at the end": ("a.txt", "x\nsecond line\n<<<<<<< a\n3\n=======\nthird line\n>>>>>>> b\n", TEXT, "markers"),
    "conflict in Markdown": (
        "README.md",
        PAGE.replace("# Title\n", BOTH.replace("    return 1", "# Title")),
        PAGE,
        "markers",
    ),
    "1: ": ("a.py", numbered(CODE, "{}: {}"), CODE, "number"),
    "1 | ": ("a.txt", numbered(TEXT, "{:4} | {}"), TEXT, "number"),
    "cat -n": ("a.txt", numbered(TEXT, "{:6}\t{}"), TEXT, "number"),
    "arrows": ("a.md", numbered(PAGE, "{:6}\u2192{}"), PAGE, "number"),
    "numbers and CRLF": ("a.txt", numbered(TEXT, "{}: {}\r"), TEXT.replace("\n", "\r\n"), "number"),
    "some lines with numbers": ("a.py", "4: def f():\n5:     return 3\n", CODE, "number"),
    "numbers without blank lines": ("a.py", "1\timport os\n\n\n2\tdef f():\n3\t    return 1\n", CODE, "number"),
    "numbers in new code": ("n.py", "1: x = 1\n2: y = 2\n", None, "number"),
    "line of the codebase": ("src/a.txt", "--- src/a.txt ---\n" + TEXT, TEXT, "names the file"),
    "line of the codebase, new": ("n.py", "\n=== n.py ===\nx = 1\n", None, "names the file"),
    "fence": ("a.py", f"```python\n{CODE}```\n", CODE, "fence"),
    "fence around new code": ("n.py", "```\nx\n```", None, "fence"),
    "fence around text": ("a.txt", f"\n```text\n{TEXT}```\n\n", TEXT, "fence"),
    "fence without a suffix": ("Dockerfile", "```dockerfile\nFROM a\nRUN b\n```\n", "FROM a\nRUN c\n", "fence"),
    "fence around Markdown": ("README.md", f"```markdown\n{PAGE}```\n", PAGE, "fence"),
    "fence that is closed outside the block": ("n.css", "```css\na {}\n", None, "fence"),
    "fence that is opened outside the block": ("n.css", "a {}\n```\n\n", "a {}\nb {}\n", "fence"),
    "words after the fence": ("n.py", "```python\nx = 1\n```\nThat is all.\n", None, "fence"),
    "fence around new YAML": ("n.yml", "```yaml\na: 1\n```\n", None, "fence"),
    "fence around a new Makefile": ("lib/Makefile", "```make\nall:\n```\n", None, "fence"),
    "fence around new Markdown": ("new.md", f"````md\n{PAGE}````\n", None, "fence"),
}

RIGHT = {
    "list": ("a.md", "- a\n- b\n- c\n", "- a\n- b\n"),
    "lines that become a list": ("a.txt", "- first line\n- second line\n", TEXT),
    "new list": ("a.md", "+ a\n+ b\n", None),
    "another mark for a list": ("a.md", "+ a\n+ b\n", "- a\n- b\n"),
    "list in YAML": ("a.yml", "- a: 1\n- b: 2\n", "- a: 1\n"),
    "map of numbers": ("a.yml", "1: a\n2: b\n", None),
    "table of numbers": ("a.tsv", "1\ta\n2\tb\n", None),
    "more numbers": ("a.txt", "1: a\n2: b\n", "1: a\n"),
    "front matter": ("a.md", "---\ntitle: x\n---\n# Title\n", "# Title\n"),
    "front matter of plus signs": ("a.md", "+++\ntitle = 'x'\n+++\n# Title\n", "# Title\n"),
    "patch": ("fix.patch", HUNK, TEXT),
    "diff that is to be expected": ("expected.txt", ANOTHER, None),
    "data of a test": ("tests/a.out", ANOTHER, TEXT),
    "more of a diff": ("example.txt", ANOTHER + HUNK, ANOTHER),
    "semantic patch": ("a.cocci", "@@\nexpression e;\n@@\n- f(e)\n+ g(e)\n", "@ name @\nexpression e;\n@@\n- f(e)\n"),
    "diff in a tutorial": ("a.md", f"{PAGE}\n```diff\n{HUNK}```\n", PAGE),
    "signs in an example": ("a.md", "```diff\n+ some\n++ words\n```\n", "```diff\n- some\n-- words\n```\n"),
    "options": ("requirements.txt", "-r base.txt\nflask\n", "flask\n"),
    "option in documentation": ("a.txt", "--cc::\n\tcombined\n", "-cc::\n\tcombined\n"),
    "shorter rules": ("a.adoc", "----\n$ make\n----\n", "-----\n$ make\n-----\n"),
    "continued list": ("a.adoc", "So:\n+\n----\n$ make\n----\n", "So:\n----\n$ make\n----\n"),
    "negative number": ("a.csv", "-1\n2\n", "1\n2\n"),
    "empty item": ("a.md", "- a\n-\n- b\n\n", "- a\n- b\n\n"),
    "numbers in columns": ("a.py", "x = (1\n-2\n+3)\n", "x = (1\n-2)\n"),
    "class variable of Ruby": ("a.rb", "@@x = 2\n", "@@x = 1\n"),
    "grid": ("a.txt", "+---+---+\n| a | b |\n+---+---+\n", None),
    "conflict in a tutorial": ("a.md", f"{PAGE}\nA conflict:\n\n```\n{BOTH}```\n", PAGE),
    "conflict in a test": ("test_merge.py", f'{CODE}\nTEXT = """\n{BOTH}"""\n', CODE),
    "conflict that is to be expected": ("fixtures/a", BOTH, "    return 1\n"),
    "another conflict": ("merge.txt", BOTH.replace("3", "4"), BOTH),
    "headings": ("a.rst", "<<<<<<<\n=======\n>>>>>>>\n", "<<<<<<<\n=======\n"),
    "fences at both ends": ("README.md", f"```sh\nmake\n```\n\n{PAGE}", PAGE),
    "example alone": ("example.md", "```python\nx = 1\n```\n", None),
    "fenced data of a test": ("fixtures/n.yml", "```yaml\na: 1\n```\n", None),
    "fence in a string": ("a.py", 'X = """\n```\nx\n```\n"""\n', CODE),
    "another example": ("example.txt", "```\nb\n```\n", "```\na\n```\n"),
    "label of another file": ("a.txt", "--- b.txt ---\nx\n", None),
    "empty": ("a.py", "", CODE),
}


@pytest.mark.parametrize(("path", "new", "old", "words"), WRONG.values(), ids=WRONG)
def test_content_in_another_format_is_found(path, new, old, words):
    message = find_wrong_format(path, new, old)
    assert message is not None
    assert words in message


@pytest.mark.parametrize(("path", "new", "old"), RIGHT.values(), ids=RIGHT)
def test_what_real_files_hold_passes(path, new, old):
    assert find_wrong_format(path, new, old) is None


@pytest.mark.parametrize("case", WRONG.values(), ids=WRONG)
def test_a_file_that_was_like_that_may_stay_so(case):
    path, new, _, _ = case
    assert find_wrong_format(path, new, new) is None


@pytest.mark.parametrize(
    "line",
    ["<<<<<<< a\n", "<<<<<<<\n=======\n", "```\n", "```\n\n", "\n", " ", "1: x\n", "9", "+x\n", "-", "--- a ", "@@ -1", "=====\n", "------- SEARCH\n"],
    ids=ascii,
)  # fmt: skip
def test_the_time_is_linear_in_the_size(line, whole):
    size = 2_000_000 if whole else 400_000
    start = time.process_time()
    find_wrong_format("a.py", line * (size // len(line)) + "x", "old\n")
    assert time.process_time() - start < size / 400_000


@pytest.mark.parametrize("old", ["=" * 2_000_000, "x\n" * 1_000_000, "x\n=" * 600_000], ids=["line", "lines", "pairs"])
def test_many_blocks_between_markers_do_not_each_cost_the_old_file(old, whole):
    part = 1 if whole else 5
    start = time.process_time()
    find_wrong_format("a.py", "x\n<<<<<<< a\n=\n=======\n====\n>>>>>>> b\n" * (50_000 // part), old[: len(old) // part])
    assert time.process_time() - start < 5 / part
