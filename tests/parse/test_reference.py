"""What the parser reads without a lenience is what a reader reads that knows the specification's words alone."""

import io
import random
from pathlib import PurePosixPath

import pytest
from trees import Files

from code_commit.changes import DeclinedError, EditBlock, FilesAskedError, Reasons
from code_commit.parse import read_response


def read_by_the_specification(text: str) -> dict[str, str | None]:
    """Return the content of each file between `^^^[file]` and `^^^end`, None for one before `^^^delete`."""
    files: dict[str, str | None] = {}
    path, content = "", list[str]()
    for line in io.StringIO(text, newline="\n"):
        word = line[3:].strip() if line.startswith("^^^") and not line.startswith("^^^^") else ""
        if not path:
            is_fence = word and word not in ("end", "delete")
            path, content = (str(PurePosixPath(word)), []) if is_fence else ("", [])
        elif word == "end":
            files[path], path = "".join(content), ""
        elif word == "delete" and not content:
            files[path], path = None, ""
        else:
            content.append(line)
    return files


PATHS = ["a.py", "src/a.py", "./src//b.py", "Makefile", "my notes.md", "d.rst", "files.txt", "PATH a.py", "a.py:", "-", "x/y/z", "../a", "end.txt", "src/a.py modified", "files", "FILES", "cannot", "delete it"]  # fmt: skip
CONTENTS = ["x = 1\n", "", "\n", "delete\n", "<think>\nhm\n</think>\n", "^^\n", "    ^^^ here\n", "```python\nx\n```\n", "^^^^\n", "^^^\n", "+ x\n- y\n", "x\r\n", "^^^^b\ny\n^^^^end\n", "</think>\n", "a\u2028b\n"]  # fmt: skip
ENDS = ["^^^end\n"] * 30 + ["^^^end", "^^^\n", "", "^^^END\n", "^^^end \r\n", "^^^end a.py\n", "^^end\n", "^^^^end\n", "```\n", " ^^^end\n"]  # fmt: skip
NOISE = [
    "Sure, here it is.\n", "\n", "```\n", "```python\n", "<think>\n", "</think>\n", "<think>Only b.</think>\n", "[THINK]", "[/THINK]\n", "<plan>\n", "</plan>\n", "The tag `</think>` ends it.\n",
    "<|channel|>final<|message|>", "import fs from 'fs';\n^^^^^^\n", "int a = b\n^^^^^^^ expected ;\n", "^^^ expected ;\n", "^^^\n", "    ^^^^ help\n", "^^^~~~\n", "\ufeff", "> ^^^a.py\n", "^^^end\n", "^^^delete\n", "^^^delete\na.py\n^^^end\n",
    "*** Update File: a.py\n+x\n", "<<<<<<< SEARCH\nx\n=======\ny\n>>>>>>> REPLACE\n", "--- a/a.py\n+++ b/a.py\n@@ -1 +1 @@\n-x\n+y\n", "**a.py**\n```python\nx\n```\n", "^^^files\na.py\n^^^end\n", "^^^cannot\nno gcc\n^^^end\n",
    "^^^^a.md\n^^^b\nx\n^^^end\n^^^^end\n", "^^^a.py\n^^^find\nx\n^^^replace\ny\n^^^end\n",
]  # fmt: skip
TREE = Files("src/a.py", "Makefile", **{"a.py": "x = 0\n", "d.rst": "API\n^^^\n"})


def write_answer(chance: random.Random) -> str:
    """Return blocks in noise, most of them right."""
    parts = []
    for path in chance.sample(PATHS, chance.randint(1, 4)):
        parts += chance.choices(NOISE, k=chance.choice((0, 0, 0, 0, 0, 1)))
        blank = chance.choice(("", "", "", " ", "\t", "\r"))
        content = "".join(chance.choices(CONTENTS, k=chance.choice((0, 1, 1, 1, 2))))
        removal = "^^^delete\n" if chance.random() < 0.2 else ""
        parts.append(f"^^^{path}{blank}\n{removal or content}{'' if removal else chance.choice(ENDS)}")
    return "".join([*parts, *chance.choices(NOISE, k=chance.choice((0, 0, 1)))])


@pytest.mark.parametrize("is_short", [False, True])
def test_what_is_read_without_a_lenience_is_what_the_specification_says(is_short, whole):
    chance = random.Random(is_short)
    strict = 0
    for _ in range(10_000 if whole else 300):
        text, reasons = write_answer(chance), Reasons()
        try:
            changes = read_response(text, reasons, TREE, is_short=is_short)
        except (FilesAskedError, DeclinedError):
            continue
        if reasons.kept or reasons.leniences or any(isinstance(change, EditBlock) for change in changes):
            continue
        strict += 1
        read = {change.path: getattr(change, "content", None) for change in changes}
        assert read == read_by_the_specification(text), text
    assert strict > (1_500 if whole else 30)
