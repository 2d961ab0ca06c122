"""Code that an answer leaves out, by what its files lose; the words of what stands there are tried beside it."""

import pytest
from hypothesis import event, example, given
from hypothesis import settings as examples
from hypothesis import strategies as st
from measure import cpu_seconds, least

from code_commit.changes import Edit
from code_commit.verify.omission import ChangedFile, Omission, _only_replace, find_omissions

FUNCTIONS = [f"def f{number}(x):\n    y = x * {number}\n    return y + {number}\n\n" for number in range(20)]
OLD = "".join(FUNCTIONS)


def omitted(new: str, old: str | None = OLD, path: str = "src/a.py", *others: ChangedFile) -> list[Omission]:
    return list(find_omissions([ChangedFile(path, old, new), *others]))


def cut(instead: str, first: int = 6, last: int = 20, **changed: str) -> str:
    text = "".join(FUNCTIONS[:first]) + instead + "".join(FUNCTIONS[last:])
    for old, new in changed.items():
        text = text.replace(f"def {old}(", f"def {new}(")
    return text


@pytest.mark.parametrize(
    "instead",
    [
        "# ... 其余代码保持不变 ...\n",
        "# los demás quedan igual\n\n",
        "    # f6 and others\n    # as they\n    # were\n",
        "...其余代码...\n",
        "[... f6 bis f19 ...]\n",
        "(las otras funciones)\n",
        "Der Rest bleibt gleich.\n",
        "    El resto sin cambios\n",
        "\u2026\n",
        "# f6 to f19 had no caller\n",
    ],
)
@pytest.mark.parametrize("last", [20, 18, 8])
def test_a_comment_dots_or_prose_in_brackets_in_place_of_many_lines_is_told_with_the_lines(instead, last):
    (found,) = omitted(cut(instead, last=last, f3="g3"))
    assert (found.path, found.at, found.first, found.last) == ("src/a.py", 24, 25, 4 * last - 1)
    assert found.text == instead.split("\n")[0].strip()


def test_the_lines_beside_it_may_be_changed_ones():
    for changed in ("def f5(x, z):\n    y = x * 5 + z\n", ""):
        text = cut("# resto igual\n", first=5 if changed else 6).replace("# resto", f"{changed}# resto")
        assert [found.text for found in omitted(text)] == ["# resto igual"]


@pytest.mark.parametrize(
    ("path", "line"),
    [
        ("a.bat", ":: Rest des Skripts unverändert"),
        ("a.json", '"...": "the entries from before"'),
        ("a.md", "(El resto del documento no cambia)"),
        ("a.sql", "-- lo demás"),
        ("a.html", "<!-- le reste -->"),
        ("a.hs", "{- wie zuvor -}"),
        ("a.unheard-of", "# wie zuvor"),
        ("a.pl", "# lo demás"),
        ("a.m", "% lo demás"),
        ("a.fs", "// lo demás"),
        ("a.haml", "-# lo demás"),
        ("a.py", "\u22ee"),
        ("a.py", "[unchanged]"),
        ("a.py", "[Showing lines 1-20 of 60. Use :21 to continue]"),
        ("a.py", "rest of the file stays the same."),
        ("a.py", "{{ unchanged }}"),
    ],
)
def test_a_comment_is_what_the_files_language_says(path, line):
    old = "".join(f"word {number} of it\n" for number in range(40))
    kept = "".join(f"word {number} of it\n" for number in range(20))
    assert [found.text for found in omitted(f"{kept}{line}\n", old, path)] == [line]


@pytest.mark.parametrize(
    ("path", "start", "line"),
    [
        ("a.scss", "nav {\n  h4 {\n    padding: 1px;\n", "    // lo demás sigue igual"),
        ("a.yml", "script: |\n  set -e\n", "  # wie zuvor"),
        ("a.py", '"""The text.\n\n', "# le reste"),
    ],
)
def test_a_comment_inside_of_what_is_no_code_is_one_too(path, start, line):
    kept, lost = start + "  color: red;\n", "".join(f"  size-{number}: {number}px;\n" for number in "abcdefgh")
    assert [found.text for found in omitted(f"{kept}{line}\n", f"{kept}{lost}", path)] == [line.strip()]


SHORT = "const a = 1;\nfunction f() {\n  const b = a + 1;\n  return b;\n}\nrun();\n"


@pytest.mark.parametrize("line", ["// ... wie gehabt ...", "// \u2026", "  ...el resto...", "/* ... (f) */"])
def test_dots_stand_for_two_lines_too(line):
    new = SHORT.replace("  const b = a + 1;\n  return b;", line).replace("a = 1", "a = 2")
    assert [(found.first, found.last) for found in omitted(new, SHORT, "a.js")] == [(3, 4)]
    edit = Edit("  const b = a + 1;\n  return b;\n", f"{line}\n")
    edited = ChangedFile("a.js", SHORT, SHORT.replace(edit.find, edit.replacement), (edit,))
    assert [found.text for found in find_omissions([edited])] == [line.strip()]


@pytest.mark.parametrize(
    "line", ["  // nothing to add", "  return [...rest];", "  return sum(...args);", "  log('waiting...');"]
)
def test_two_lines_may_become_a_comment_or_code_with_dots(line):
    assert omitted(SHORT.replace("  const b = a + 1;\n  return b;", line), SHORT, "a.js") == []


INNOCENT = {
    "lines that are deleted": cut(""),
    "a comment and code": cut("# the others come from a loop\nF = {i: make(i) for i in range(6, 20)}\n"),
    "five lines with words": cut("# unido\n", first=18, last=19).replace("    return y + 19\n\n", "", 1),
    "four lines": cut("# a\n# b\n# c\n# d\n"),
    "a body of dots": cut("def f6(x): ...\n").replace("def f6(x): ...", "class F(Protocol):\n    ...\n    ..."),
    "code with dots": cut("call(*args, ...)\n"),
    "code in brackets": cut("(a, b) = c\n"),
}


@pytest.mark.parametrize("new", INNOCENT.values(), ids=INNOCENT)
def test_other_changes_leave_nothing_out(new):
    assert omitted(new) == []


REMARKS = """
The file is unchanged.|See above.|Same as before|same as before|No changes were made to `src/a.py`.|Keep as is
(see the previous response)|*unchanged*|Datei unverändert.|Wie oben|Pas de changement.|Sin cambios|文件未更改|同上
ファイルは変更されていません。|변경 없음|Без изменений.|لا تغيير|# wie oben|N/A
"""
WHOLE = {
    "a.py": "import os\n\n\ndef f(a):\n    return a + 1\n",
    "a.js": "const a = 1;\nfunction f() {\n  return a;\n}\n",
    "a.go": 'package a\n\nimport "fmt"\n\nfunc F() {\n\tfmt.Println(1)\n}\n',
    "a.html": "<html>\n<body>\n<p>Hi</p>\n</body>\n</html>\n",
    "a.css": "a {\n  color: red;\n}\nb {\n  color: blue;\n}\n",
    "Dockerfile": "FROM debian\nRUN apt update\nCOPY a /b\n",
    "README.txt": "".join(f"Line {number} of it.\n" for number in range(6)),
}


@pytest.mark.parametrize("path", WHOLE)
def test_a_remark_in_place_of_all_of_a_file_is_told(path):
    for remark in REMARKS.replace("\n", "|").strip("|").split("|"):
        if not (path == "README.txt" and remark.startswith("#")):
            assert [found.text for found in omitted(f"{remark}\n", WHOLE[path], path)] == [remark]
    moved = ChangedFile("new", None, WHOLE[path])
    assert omitted("The file is unchanged.\n", WHOLE[path], path, moved) == []


@pytest.mark.parametrize("path", ["a.js", "a.py", "a.go"])
@pytest.mark.parametrize("word", ["undefined", "null", "None"])
def test_a_constant_in_place_of_all_of_a_file_is_told(path, word):
    assert [found.text for found in omitted(f"{word}\n", WHOLE[path], path)] == [word]


def test_of_one_line_of_code_a_sentence_is_told_too():
    assert [found.text for found in omitted("The file is unchanged.\n", "x = 1\n")] == ["The file is unchanged."]
    assert omitted("two\n", "one\n", "a.txt") == omitted("The end.\n", "one\n", "a.zzz") == []


@pytest.mark.parametrize(
    ("path", "new"),
    [
        *[("a.py", line) for line in ("from .core import run", "import new", "pass", "x = 1", '"""Helpers."""')],
        *[
            ("a.js", line)
            for line in ("module.exports = require('./b')", "'use strict'", "debugger", "export * from 'b'")
        ],
        *[("Dockerfile", line) for line in ("FROM scratch", "FROM debian\nRUN apt update")],
        *[("a.go", line) for line in ("package a", "package a // see b")],
        *[("a.html", line) for line in ("<p>Gone</p>", "{% include 'b.html' %}")],
        *[("README.txt", line) for line in ("One line.\nAnother one.",)],
    ],
)
def test_what_a_file_becomes_in_its_own_language_is_no_remark(path, new):
    assert omitted(f"{new}\n", WHOLE[path], path) == []


def test_lines_like_those_that_the_file_had_are_no_remark():
    assert omitted("web: npm start\n", "web: npm run\nworker: npm work\nclock: npm tick\n", "Procfile") == []
    assert omitted("make check\n", "set -e\nmake all\nmake test\n", "a.sh") == []
    assert omitted("Run it.\n", "Open a page.\nClick on it.\nClose it.\n", "a.robot-steps") == []
    assert omitted("fixed\n", "a = 1\nb = 2\nc = 3\n", "tests/fixtures/a.py") == []


def test_a_file_that_is_sent_empty_has_lost_its_lines():
    code = WHOLE["a.py"]
    assert [(place.text, place.first, place.last) for place in omitted("\n", code, "a.py")] == [("", 1, 5)]
    assert omitted("", code, "a.py", ChangedFile("b.py", None, code)) == []
    assert omitted("", "# one\n# two\n# three\nimport os\n", "__init__.py") == []


def test_the_marks_around_a_comment_stand_for_nothing():
    page = "".join(f'<link rel="{number}">\n' for number in range(20)) + "<p>\n"
    assert omitted(f"<!--\n{page[-4:]}-->\n", f"{page}-->\n", "a.html") == []
    assert omitted(f"<!-- the links -->\n{page[-4:]}-->\n", f"{page}-->\n", "a.html")


@pytest.mark.parametrize(
    ("path", "line"), [("a.ts", "...base,"), ("a.html", "schema,"), ("a.php", "' Wait...'.PHP_EOL.")]
)
def test_an_item_or_a_string_is_code(path, line):
    old = "".join(f"  option{number}: {number},\n" for number in range(9))
    assert omitted(f"a({{\n  {line}\n{old[-13:]}", f"a({{\n{old}", path) == []
    assert omitted(f"a({{\n  ...\n{old[-13:]}", f"a({{\n{old}", path)


def test_moved_code_is_not_lost():
    moved = ChangedFile("src/b.py", None, "".join(FUNCTIONS[6:]))
    assert omitted(cut("# see b.py for the others\n"), OLD, "src/a.py", moved) == []
    assert len(omitted(cut("# see b.py for the others\n"))) == 1


def test_a_licence_may_become_a_line():
    old = "".join(f"# Line {number} of a long licence\n" for number in range(20)) + OLD
    assert omitted("# SPDX-License-Identifier: MIT\n" + OLD, old) == []
    block = "/*\n" + "".join(f" * Line {number} of a long licence\n" for number in range(20)) + " */\nint a;\n"
    assert omitted("// SPDX\nint a;\n", block, "a.c") == []


def test_a_comment_that_gets_shorter_stands_for_nothing():
    old = OLD.replace("def f6(", "# the others; they add and multiply, each by its own number\n# in turn\ndef f6(")
    assert omitted(cut("# the others\n"), old) == []


def test_what_the_old_file_has_itself_is_no_sign():
    old = "(defn one [])\n" + "".join(f"(defn f-{number} [x] (+ x {number}))\n" for number in range(20)) + "(run all)\n"
    assert omitted("(defn one [])\n(run each)\n", old, "a.clj") == []


def test_words_count_at_any_length_but_where_no_line_is_lost():
    old = "def pick(a, b):\n    if a == b:\n        return None\n    return a\n"
    grown = old.replace("        return None", "        # unchanged\n        return None")
    assert omitted(grown, old) == []
    assert [found.text for found in omitted("def pick(a, b):\n    # ... rest of the function ...\n", old)] != []
    assert len(omitted("# ... existing code ...\n", None)) == 1


@pytest.mark.parametrize(
    "text",
    [
        "x = 1\n" * 50_000,
        "".join(f"x{number} = {number}\n" for number in range(50_000)),
        "." * 25_000 + "\n" + "a b c\n" * 25_000,
        "".join(f"{number % 7} {number % 11}\n" for number in range(50_000)),
    ],
    ids=["equal", "different", "dots", "few"],
)
def test_the_time_is_linear_in_the_size(text):
    half = text[: len(text) // 2]
    cut, in_order = half + "\n# ...\n" + text[-1000:], "".join(sorted(text.splitlines(keepends=True)))
    assert least(lambda: cpu_seconds(lambda: (omitted(cut, text, "a.py"), omitted(in_order, text, "a.py"))), 2.5) < 2.5


def test_a_line_of_a_bundle_is_not_lexed():
    """Pygments takes two seconds for it."""
    begin = "x = 1;\n" * 20 + "a<b/c.d;" * 30_000 + "\n"
    old, new = begin + "".join(f"let y{number} = {number};\n" for number in range(20)), f"{begin}// ...\n"
    found: list[Omission] = []
    assert cpu_seconds(lambda: found.extend(omitted(new, old, "a.js"))) < 1
    assert [each.text for each in found] == ["// ..."]


WORK = [*(f"    work{number}()" for number in range(18)), "pass", "", "# note", "pass"]
PUT = st.sampled_from(["# ...", "# ... existing code ...", "# und so weiter", "", "new()"]) | st.sampled_from(WORK)
CUTS = st.lists(st.integers(1, len(WORK)), min_size=1, max_size=5, unique=True)
KEPT, REST = None, ["# und so weiter"]


@given(CUTS, st.lists(st.none() | st.lists(PUT, max_size=8), min_size=6, max_size=6))
@example([6, 7], [REST, KEPT, [*WORK[7:], *"abcde"]] + [KEPT] * 3)
@example([1, 7], [KEPT, ["# und", "# so", "# weiter"], KEPT, KEPT, KEPT, KEPT])
@example([1, 8], [KEPT, [*REST, WORK[7], *"abcdef"], KEPT, KEPT, KEPT, KEPT])
@examples(max_examples=400)
def test_of_edits_the_same_is_told_as_of_the_whole_file_that_they_make(cuts, puts):
    old, new, edits = "", "", []
    ends = sorted({*cuts, len(WORK)})
    for start, end, put in zip([0, *ends], ends, puts, strict=False):
        find, text = ("".join(f"{line}\n" for line in lines) for lines in (WORK[start:end], put or ()))
        old, new = old + find, new + (find if put is None else text)
        edits += [] if put is None else [Edit(find, text)]
    told = [list(find_omissions([ChangedFile("a.py", old, new, given)])) for given in ((), edits)]
    assert told[0] == told[1]
    event(f"{told[0] != []}, {_only_replace(edits)}")
