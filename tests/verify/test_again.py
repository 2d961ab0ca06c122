"""Lines of a file that come again with a loss, and changes that people make."""

import time

import pytest

from code_commit.changes import Edit, EditBlock, FileReplacement
from code_commit.verify.again import find_doubling, find_loss, find_lost_letters


def found(path: str, old: str | None, new: str) -> tuple[str, str]:
    """Return the rule and the fact of what a whole file has lost."""
    lost = find_loss(FileReplacement(path, new, 1), old)
    return (lost.rule, lost.fact) if lost else ("", "")


def found_in_edit(path: str, old: str, find: str, new: str) -> str:
    lost = find_loss(EditBlock(path, (Edit(find, new, 3),), 1), old)
    return lost.rule if lost else ""


PATTERNS = "import re\n\nDAY = re.compile(r'\\d+')\nWORD = re.compile(r'\\w+')\nEND = re.compile(r'\\Z')\nN = 1\n"
KEYWORDS = "def f(*args):\n    g(*args)\n\n\ndef h(**options):\n    f(**options)\n\n\nN = 1\n"
CLASS = "class A:\n    def __init__(self):\n        self.a = 1\n    def __repr__(self):\n        x()\n    def __len__(self):\n"
TYPES = "let a: Map<string> = m\nlet b: Set<string> = s\nlet c: Box<number> = x\nlet n = 1\n"
CALLS = "function f() {\n    if (a) {\n        get(1);\n        put(2);\n        cut(3);\n    }\n}\n"
MAKEFILE = "all:\n\techo $$HOME\n\techo $$PATH\n\techo $$USER\n\techo all\n"
QUOTED = "a = 'l\u2019une'\nb = 'l\u2019autre'\nc = 'd\u2019où'\nn = 1\n"
TICKS = "Run `make`.\nRead `a.md`.\nSay `no`.\n\nAnd more.\n"
PAGE = "<li>A &amp; B</li>\n<li>a &lt; b</li>\n<li>&#39;x&#39;</li>\n<p>end</p>\n"

ACCENTS = "Tu\u0308r\nKu\u0308he\nMu\u0308he\nvier\n"

LOST = {
    # the file, its old content, the new one
    "backslashes": ("a.py", PATTERNS, PATTERNS.replace("\\", "").replace("N = 1", "N = 2")),
    "stars": ("a.py", KEYWORDS, KEYWORDS.replace("*", "").replace("N = 1", "N = 2")),
    "underscores": ("a.py", CLASS, CLASS.replace("__", "").replace("1", "2")),
    "tags": ("a.ts", TYPES, TYPES.replace("<string>", "").replace("<number>", "").replace("1", "2")),
    "backticks": ("a.md", TICKS, TICKS.replace("`", "").replace("more", "much more")),
    "dollars": ("Makefile", MAKEFILE, MAKEFILE.replace("$$", "$").replace("echo all", "echo none")),
    "entities": ("a.html", PAGE, "<li>A & B</li>\n<li>a < b</li>\n<li>'x'</li>\n<p>The end</p>\n"),
    "typeset": ("a.py", QUOTED, QUOTED.replace("\u2019", "'").replace("1", "2")),
    "a normal form": ("a.md", ACCENTS, ACCENTS.replace("u\u0308", "\u00fc").replace("vier", "drei")),
    "indentation": ("a.js", CALLS, CALLS.replace("    ", "").replace("cut(3)", "cut(3);\nend(4)")),
    "line ends in a string": ("a.js", "x = 1\nput(`a\\n`)\n", "x = 2\nput(`a\n`)\n"),
    "an escape that was read": ("a.c", "x = 1;\nput(\"a\\n\\t'b\\'\");\n", "x = 2;\nput(\"a\n\t'b'\");\n"),
    "control characters": ("a.py", "x = 1\n", "x = 1\x06\n"),
    "no width": ("a.cs", "class A {}\n", "class A\u200b {}\n"),
    "private use": ("a.md", "One.\n", "One \ue001.\n"),
    "a lost character": ("a.md", "Un.\n", "D\ufffdux.\n"),
}


@pytest.mark.parametrize(("path", "old", "new"), LOST.values(), ids=LOST)
def test_lines_that_lost_what_something_took_off_are_found(path, old, new):
    assert found(path, old, new)[0] == "damaged"
    assert found(path, old.replace("\n", "\r\n"), new)[0] == "damaged"
    assert found(path, None, new) == ("", "")
    assert found(path, new, new) == ("", "")


KEPT = {
    "some are left": ("a.py", PATTERNS, PATTERNS.replace("\\d", "d").replace("\\w", "w").replace("\\Z", "$\\Z")),
    "two lines": ("a.py", KEYWORDS, "def f(args):\n    g(args)\n\n\nN = 1\n"),
    "most are changed": ("a.ts", TYPES + TYPES.replace("let", "var"), TYPES.replace("<string>", "") + "let d\n"),
    "other lines": ("a.md", TICKS, "Run it.\nRead it.\nSay it.\n"),
    "tabs for blanks": ("a.js", CALLS, CALLS.replace("    ", "\t")),
    "a level less": ("a.js", CALLS, "if (a) {\n    get(1);\n    put(2);\n    cut(3);\n}\n"),
    "a block of a document": ("a.md", "Text.\n\n    f()\n    g()\n    h()\n", "Text.\n\n```\nf()\ng()\nh()\n```\n"),
    "a literal of several lines": ("a.js", "put('a\\nb')\n", "put(`a\nb`)\n"),
    "a line of code that ends": ("a.js", "put('a\\n')\n", "put('a')\nput('\\n')\n"),
    "such characters before": ("a.py", "x = '\u200b'\n", "x = '\u200b'\ny = '\u2060'\n"),
    "an escape of an escape": ("a.Rd", "f('a\\\\n')\n", "f('a\\n')\n"),
    "what a test expects": ("t/__snapshots__/a.snap", PATTERNS, PATTERNS.replace("\\", "") + "\x1b[0m\n"),
    "signs of emoji": ("a.md", "x\n", "\u2764\ufe0f \U0001f468\u200d\U0001f469 x\n"),
}


@pytest.mark.parametrize(("path", "old", "new"), KEPT.values(), ids=KEPT)
def test_what_people_change_so_is_no_loss(path, old, new):
    assert found(path, old, new) == ("", "")


REMARKED = "".join(f"    // step {n} is why\n    call({n}, value);\n" for n in range(5))


@pytest.mark.parametrize(("path", "mark"), [("a.c", "//"), ("a.py", "#"), ("a.lua", "--"), ("a.java", " *")])
def test_a_file_whose_comments_are_all_gone_is_found(path, mark):
    old = REMARKED.replace("//", mark)
    bare = "".join(line for line in old.splitlines(keepends=True) if "why" not in line)
    assert found(path, old, bare.replace("call(4", "call(5"))[0] == "omission"
    assert found(path, old, f"{bare}{mark} and so on\n") == ("", "")
    assert found(path, old, bare.replace("value", "other")) == ("", ""), "most lines are others"
    assert found(path, old.replace("    " + mark + " step 0 is why\n", ""), bare) == ("", ""), "they were four"
    assert found("a.md", old, bare) == found("a.yml", old, bare) == ("", "")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"secret": "local-value"', '"secret": "***"'),
        ('"secret": "local-value"', '"secret": "***REDACTED***"'),
        ("url = 'db://app:local@example.org'", "url = 'db://app:***@example.org'"),
        ("token: local-value-of-tests", "token: [REDACTED: a token]"),
        ("token: local-value-of-tests", "token: \u00abredacted:lo-\u2026\u00bb"),
        ("token: local-value-of-tests", "token: loc...ests"),
        ("token: local-value-of-tests", "token: \u2022\u2022\u2022\u2022"),
        ("    total = compute(first, second, third)", "    total = compute(first, \u2026)"),
        ("from a import one, two, three, four", "from a import one, two..."),
    ],
)
def test_a_sign_in_place_of_a_part_of_a_line_is_found(old, new):
    files = [f"x = 1\n{line}\ny = 2\n" for line in (old, new)]
    assert found("a.py", *files)[0] == "omission"
    assert found("a.py", files[1], files[1].replace("x = 1", "x = 3")) == ("", "")
    assert found_in_edit("a.py", files[0], f"{old}\n", f"{new}\n") == "omission"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("f(a, b)", "f(*a, ...b)"),
        ("print('Loading files')", "print('Waiting...')"),
        ("int f(int first, int second);", "int f(int first, ...);"),
        ("x = y", "x = y  # and so on..."),
        ("say('...', first)", "say('...')"),
        ("pattern = 'abc'", "pattern = '***'"),
    ],
)
def test_other_dots_and_stars_stand_for_nothing(old, new):
    if new == "pattern = '***'":
        old = "pattern = '*'"
    assert found("a.py", f"x\n{old}\n", f"x\n{new}\n") == ("", "")


def test_the_lines_of_an_edit_lose_their_indentation_and_characters_alone():
    block = "        get(1);\n        put(2);\n        cut(3);\n"
    assert found_in_edit("a.js", CALLS, block, "get(1);\nput(2);\ncut(3);\nend(4);\n") == "damaged"
    assert found_in_edit("a.md", CALLS, block, "get(1);\nput(2);\ncut(3);\n") == ""
    assert found_in_edit("a.js", CALLS, block, "\tget(1);\n\tput(2);\n\tcut(3);\n") == ""
    assert found_in_edit("a.js", CALLS, f"    if (a) {{\n{block}", "get(1);\nput(2);\n") == ""
    assert found_in_edit("a.py", PATTERNS, PATTERNS[11:], PATTERNS[11:].replace("\\", "")) == ""
    assert found_in_edit("a.py", PATTERNS, "N = 1\n", "N\u2060 = 1\n") == "damaged"


def test_the_line_of_a_character_is_told():
    lost = find_loss(FileReplacement("a.md", "one\ntw\ufffd\n", 5), "one\n")
    assert lost is not None
    assert (lost.line, "contains U+FFFD in place of a character" in lost.fact) == (7, True)


@pytest.mark.parametrize("line", ["a\\n ", "x ... y\n", "***", "<a>b\n", "  a\n", "\u2026\n", "`a`\n", "f(1...2)\n"])
def test_the_time_is_linear_in_the_size(line, whole):
    size = 2_000_000 if whole else 400_000
    old, new = (f"{first}\n{line * (size // len(line))}" for first in ("x", "y"))
    start = time.process_time()
    found("a.py", old, new.replace("a", "c"))
    found("a.py", f"{old}\\n <a> ` *", new.replace("a", "c").replace("*", "").replace("`", ""))
    assert time.process_time() - start < 4 * size / 400_000


FRENCH = "Le café est fermé.\nL\u2019été arrive \u2014 déjà.\nx = 1\nÀ bientôt, dit-elle.\n"


@pytest.mark.parametrize(
    "new",
    [
        FRENCH.encode("ascii", "replace").decode(),
        FRENCH.encode("ascii", "backslashreplace").decode(),
        FRENCH.encode("ascii", "xmlcharrefreplace").decode(),
        FRENCH.encode().decode("ascii", "replace").replace("\ufffd", "?"),
        FRENCH.translate(str.maketrans("éôàÀ\u2019\u2014", "eoaA'-")),
        FRENCH.encode("ascii", "ignore").decode() + "y = 2\n",
    ],
)
def test_lines_that_come_again_in_ascii_are_suspected(new):
    for old in (FRENCH, FRENCH.replace("\n", "\r\n")):
        found = find_lost_letters(FileReplacement("a.txt", new, 3), old)
        assert found is not None
        assert (found.rule, found.line, "ASCII" in found.fact) == ("damaged", 4, True)


@pytest.mark.parametrize("encoding", ["cp1252", "latin-1", "cp437", "mac-roman"])
def test_lines_that_come_again_in_a_wrong_encoding_are_suspected(encoding):
    found = find_lost_letters(FileReplacement("a.txt", FRENCH.encode().decode(encoding, "replace"), 3), FRENCH)
    assert found is not None
    assert (found.rule, found.line) == ("damaged", 4)
    mended = FRENCH.encode().decode(encoding, "replace").replace("x = 1", FRENCH[: FRENCH.index("\n")])
    assert find_lost_letters(FileReplacement("a.txt", mended, 3), FRENCH) is None, "a line is as it was"


SIXTEEN = "".join(f"def f{number}():\n    return {number}\n\n" for number in range(8))


@pytest.mark.parametrize(
    "new",
    [
        SIXTEEN.replace("f3", "g") * 2,
        SIXTEEN.replace("n 5", "n 8") + SIXTEEN,
        f"{SIXTEEN}x = 1\n{SIXTEEN}\n{SIXTEEN}",
        3 * SIXTEEN.replace("\n", "\r\n"),
    ],
)
def test_a_file_that_comes_twice_is_suspected(new):
    found = find_doubling(FileReplacement("a.py", new, 3), SIXTEEN)
    assert found is not None
    assert (found.rule, "twice" in found.fact) == ("repeated", True)
    assert find_doubling(FileReplacement("a.py", new, 3), new) is None, "it was so before"
    assert find_doubling(FileReplacement("a.py", new, 3), None) is None
    assert find_doubling(EditBlock("a.py", (Edit("x\n", new, 3),), 3), SIXTEEN) is None


def test_lines_that_come_twice_one_by_one_or_in_part_are_no_file_that_comes_twice():
    lines = SIXTEEN.split("\n")
    for new in (
        "\n".join(line for line in lines for _ in range(2)),
        SIXTEEN + SIXTEEN[: len(SIXTEEN) // 2],
        "\n".join(lines[:3]) * 2,
    ):
        old = SIXTEEN if len(new) > 100 else "\n".join(lines[:3])
        assert find_doubling(FileReplacement("a.py", new, 3), old) is None


KIND = "".join(f"  field{number}: {number}\n" for number in range(20))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (f"kind: A\nname: a\n{KIND}", "{old}---\nkind: A\nname: b\n" + KIND),
        (f"services:\n a:\n{KIND}", "{old} b:\n" + KIND),
    ],
)
def test_a_part_that_is_copied_below_a_file_s_head_or_as_another_document_is_no_file_that_comes_twice(old, new):
    assert find_doubling(FileReplacement("a.yaml", new.format(old=old), 3), old) is None
    assert find_doubling(FileReplacement("a.yaml", f"---\n{old}---\n{old}", 3), f"---\n{old}") is not None


@pytest.mark.parametrize("line", ["\u00e9 a" * 30, "\u00e9 a" * 300_000])
def test_ascii_letters_that_are_alike_take_no_time(line):
    old, new = f"{line}\n{line}b\nfoo \u00e9\n", " a" * 500_000 + "\nfoo e\n"
    start = time.process_time()
    assert find_lost_letters(FileReplacement("a.txt", new, 3), old) is None
    assert time.process_time() - start < 5


def test_other_losses_of_characters_are_none():
    turned = FRENCH.translate(str.maketrans("éôàÀ\u2019\u2014", "èöáÁ\u2018\u2013"))
    for new in (turned, FRENCH.replace("é", "e"), "The coffee\nis closed.\nx = 1\n", "Le cafe est ferme.\nx = 1\n"):
        assert find_lost_letters(FileReplacement("a.txt", new, 3), FRENCH) is None
    assert find_lost_letters(FileReplacement("a.txt", "x\n", 3), None) is None
