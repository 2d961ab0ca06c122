"""Lists that name parts of files: what their lines ask for, where that stands, and where it stands after a change."""

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from code_commit.codebase.outline import LONG, outline, read_definitions
from code_commit.codebase.parts import FileRequest, carried_ranges, find_part, read_requests
from code_commit.codebase.text import parse_codebase, part_of, part_section
from code_commit.views import Part, Passage, Unsure, lines_of

PATHS = ("src/core.py", "a:b.txt", "src/x.cc", "docs/my notes.md")
LISTS = {
    "a file": ("src/core.py", FileRequest("src/core.py")),
    "definitions": ("src/core.py: Command.run, main", FileRequest("src/core.py", ("Command.run", "main"))),
    "lines": ("src/core.py:120-180", FileRequest("src/core.py", (), ((120, 180),))),
    "a line": ("src/core.py: line 7", FileRequest("src/core.py", (), ((7, 7),))),
    "lines in the wrong order": ("src/core.py:L9-L2", FileRequest("src/core.py", (), ((2, 9),))),
    "both": ("- `src/core.py`: `main`, 3-4", FileRequest("src/core.py", ("main",), ((3, 4),))),
    "arguments": ("src/core.py: main(a, b), run()", FileRequest("src/core.py", ("main", "run"))),
    "types and nested parentheses": ("src/x.cc: A<int, B<C>>::f(void (*g)(int, int)), h", FileRequest("src/x.cc", ("A::f", "h"))),
    "a test as an outline has it": ("src/core.py: it('runs (x)'), 3", FileRequest("src/core.py", ("runs",), ((3, 3),))),
    "the name of a test of pytest": ("src/core.py::A::run", FileRequest("src/core.py", ("A::run",))),
    "a link to lines": ("src/core.py#L3-L9", FileRequest("src/core.py", (), ((3, 9),))),
    "other languages": ("src/x.cc: Foo::bar", FileRequest("src/x.cc", ("Foo::bar",))),
    "a header": ("--- src/core.py (lines 1-14, 310-352 of 3,520) ---", FileRequest("src/core.py", (), ((1, 14), (310, 352)))),
    "nothing after the colon": ("src/core.py:", FileRequest("src/core.py")),
    "a colon in a path": ("a:b.txt", FileRequest("a:b.txt")),
    "lines of it": ("a:b.txt:1-2", FileRequest("a:b.txt", (), ((1, 2),))),
    "blanks in a path": ("docs/my notes.md: First steps", FileRequest("docs/my notes.md", ("First steps",))),
    "no file": ("src/nosuch.py: f", FileRequest("src/nosuch.py", ("f",))),
    "a folder": ("src/", FileRequest("src/")),
}  # fmt: skip


@pytest.mark.parametrize(("line", "request_"), LISTS.values(), ids=LISTS)
def test_a_line_of_a_list_names_a_file_definitions_or_lines(line: str, request_: FileRequest):
    assert read_requests([line], PATHS) == {request_.path: request_}


def test_lines_of_one_file_are_joined_and_the_whole_file_takes_precedence():
    lines = ["src/core.py: f", "src/x.cc", "src/core.py:3-4", "src/core.py: f, g", "src/x.cc: a"]
    assert read_requests(lines, PATHS) == {
        "src/core.py": FileRequest("src/core.py", ("f", "f", "g"), ((3, 4),)),
        "src/x.cc": FileRequest("src/x.cc"),
    }
    assert read_requests([*lines, "src/core.py"], PATHS)["src/core.py"].is_whole


SOURCE = '''\
"""A module."""

import os
from a import (
    b,
)

LIMIT = 3


# Runs.
@cached
def run(x):
    return x


class A:
    """A class."""

    def run(self):
        return 1

    def stop(self):
        return 2


class B:
    def stop(self):
        return 3
'''.replace(" = 3", f" = 3  # {'long ' * 60}").replace("A class", f"A class{' long' * 60}")
FOUND = {
    "run": ([(1, 6), (11, 14)], []),
    "def run(x)": ([(1, 6), (11, 14)], []),
    "A.run": ([(1, 6), (17, 21)], []),
    "A": ([(1, 6), (17, 24)], []),
    "LIMIT": ([(1, 8)], []),
    "stop": ([(1, 6), (17, 17), (23, 29)], []),
    "A.rum": (None, ["A.rum: no definition of it; nearest: A.run"]),
    "zzz": (None, ["zzz: no definition of it"]),
    "8": ([(1, 8)], []),
    "30-40": (None, ["lines 30-40: the file has 29"]),
    "0-2, 28-99": ([(1, 6), (28, 29)], []),
}


@pytest.mark.parametrize(("items", "expected"), FOUND.items(), ids=FOUND)
def test_definitions_and_lines_are_found_with_the_imports(items: str, expected: tuple[object, list[str]]):
    ranges, missing = expected
    part = find_part("a.py", SOURCE, read_requests([f"a.py: {items}"], ["a.py"])["a.py"])
    assert (part.part and part.part.ranges, part.missing) == (ranges, missing)


QUALIFIED = {
    "C++ with macros": (
        "a.cc",
        "NODISCARD INLINE std::string Option::name(bool all) const {\n    return name_;\n}\n",
        ["Option::name", "CLI::Option::name(bool all, void (*f)(int))", "std::string Option::name", "name()"],
    ),
    "Rust": (
        "a.rs",
        "impl<T> Stack<T> {\n    pub fn push(&mut self) {\n    }\n}\n",
        ["Stack<T>::push", "crate::stack::Stack::push"],
    ),
    "Go": (
        "a.go",
        "package a\n\nfunc (c *Command) Run(ctx Context) error {\n\treturn nil\n}\n",
        ["Command.Run", "(*Command).Run", "cli.Command.Run(ctx Context)"],
    ),
    "Java": (
        "A.java",
        "class A {\n    int size(List<String> a) {\n        return 1;\n    }\n}\n",
        ["A#size", "org.a.A.size(List<String>)", "A::size"],
    ),
    "Ruby": (
        "a.rb",
        "module M\n  class A\n    def full?\n      true\n    end\n  end\nend\n",
        ["M::A#full?", "A.full?", "A#full"],
    ),
    "Elixir": ("a.ex", "defmodule A.B do\n  def run(x) do\n    x\n  end\nend\n", ["A.B.run/1", "run/1", "B.run"]),
    "PHP": (
        "a.php",
        "<?php\nnamespace N;\nclass A {\n    function run($x) {\n        return $x;\n    }\n}\n",
        ["N\\A::run", "A->run($x)"],
    ),
    "a module": ("a.js", "class A {\n  run() {\n    return 1\n  }\n}\n", ["module/A.run", "lib/a/A#run", "def A.run"]),
    "a test": (
        "a.test.js",
        "describe('A (x)', () => {\n  it('is b', () => {\n    expect(1)\n  })\n})\n",
        ["it('is b')", "A (x).is b", "describe('A (x)') > it('is b')"],
    ),
}


@pytest.mark.parametrize(
    ("path", "source", "name"),
    [(path, source, name) for path, source, names in QUALIFIED.values() for name in names],
    ids=[f"{language}: {name}" for language, (*_, names) in QUALIFIED.items() for name in names],
)
def test_a_qualified_name_is_found_in_the_spelling_of_any_language(path: str, source: str, name: str):
    found = find_part(path, source, read_requests([f"{path}: {name}"], [path])[path])
    assert (found.part is not None, found.missing) == (True, [])


@pytest.mark.parametrize("name", ["B::run", "A.ruin", "module/B.run"])
def test_a_name_of_another_owner_is_told_with_the_nearest_one(name: str):
    source = "class A:\n    def run(self):\n        return 1\n"
    assert find_part("a.py", source, FileRequest("a.py", (name,))).missing == [
        f"{name}: no definition of it; nearest: A.run"
    ]


def test_all_definitions_of_one_full_name_are_found_however_many():
    source = "\n".join(f"int A::f(char (*a)[{number}]) {{\n  return {number};\n}}" for number in range(1, 9)) + "\n"
    found = find_part("a.cc", source, FileRequest("a.cc", ("A::f",)))
    assert (found.part and found.part.ranges, found.missing) == ([(1, 24)], [])


def test_a_name_that_many_definitions_have_is_told_with_some_of_them():
    source = "".join(f"class C{number}:\n    def f(self):\n        return '{'long' * 60}'\n" for number in range(6))
    part = find_part("a.py", source, FileRequest("a.py", ("f", "C2.f")))
    assert part.missing == ["f: 6 definitions have this name: C0.f, C1.f, C2.f and 3 more"]
    assert part.part is not None
    assert part.part.ranges == [(1, 1), (7, 9)], "with the file's first line and that of the class"
    assert find_part("a.txt", "a\n", FileRequest("a.txt", ("f",))).missing == [
        "f: the definitions of this file cannot be found: name lines instead"
    ]


def test_a_part_has_the_comment_above_a_definition_and_the_modules_that_are_required():
    source = "var a = require('a')\nvar b = 1\n\n/**\n * Sends.\n */\n\nresponse.send = function send(body) {\n  a(body)\n}\n"
    part = find_part("a.js", source, FileRequest("a.js", ("response.send",)))
    assert part.part is not None
    assert part.part.ranges == [(1, 10)], "a short gap is shown"
    far = source.replace("var b = 1\n", f"var b = '{'b' * 40}'\n" * 9)
    part = find_part("a.js", far, FileRequest("a.js", ("response.send",)))
    assert part.part is not None
    assert part.part.ranges == [(1, 1), (12, 18)]


def test_the_line_of_the_class_and_long_decorators_stand_with_a_method():
    decorators = "    @cases(\n" + "        'a long case of it',\n" * 12 + "    )\n"
    filler = "".join(f"    def f{number}(self):\n        return {number}\n\n" for number in range(90))
    source = f"#!/usr/bin/env python3\nimport os\n\n\n@final\nclass A(\n    B\n):\n{filler}{decorators}    def run(self): pass\n"
    part = find_part("a.py", source, FileRequest("a.py", ("run",)))
    assert part.part is not None
    assert part.part.content.startswith("#!/usr/bin/env python3\nimport os\n")
    assert "@final\nclass A(\n" in part.part.content
    assert part.part.content.endswith(f"{decorators}    def run(self): pass\n")
    text = part_section(
        "a.py", part.part, hidden=[(each.first, each.name) for each in read_definitions("a.py", source)]
    )
    assert "not shown here: A.f0, A.f1, " in text


def test_the_constants_that_a_part_uses_stand_with_it_and_no_bare_declaration():
    filler = "".join(f"static int other_{number}(void) {{\n    return 1;\n}}\n" for number in range(90))
    heads = {
        "#define LIMIT 3": True,
        "#define UNUSED 4": False,
        "int later(int);": False,
        "int later(int x) { return x; }": False,
        "static int seen = 0;": True,
    }
    for head, is_shown in heads.items():
        source = (
            f"#include <a.h>\n{filler}{head}\n{filler}int run(int x) {{\n    seen += later(x);\n    return LIMIT;\n}}\n"
        )
        part = find_part("a.c", source, FileRequest("a.c", ("run",))).part
        assert part is not None
        assert (f"{head}\n" in part.content) == is_shown, head


def test_of_constants_only_so_many_stand_with_a_part():
    filler = "".join(f"def other_{number}():\n    return 1\n\n\n" for number in range(90))
    limits = "".join(f"LIMIT_{number} = {number}\n" for number in range(90))
    used = ", ".join(f"LIMIT_{number}" for number in range(90))
    part = find_part("a.py", f"{limits}{filler}def run():\n    return {used}\n", FileRequest("a.py", ("run",))).part
    assert part is not None
    assert part.ranges == [(1, 30), (451, 452)]


def test_a_gap_that_is_as_short_as_what_tells_of_it_is_shown():
    for long, ranges in ((17, [(1, 12)]), (18, [(1, 2), (11, 12)])):
        assert part_of(f"{'a' * long}\n" * 12, [(1, 2), (11, 12)]).ranges == ranges


def test_a_gap_names_the_definitions_that_it_hides():
    source = "import os\n" + "".join(f"def f{number}():\n    return '{'a' * 90}'\n\n\n" for number in range(200))
    part = find_part("a.py", source, FileRequest("a.py", ("f3", "f150"))).part
    assert part is not None
    text = part_section("a.py", part, hidden=[(each.first, each.name) for each in read_definitions("a.py", source)])
    assert "\n[... lines 2-13 are not shown here: f0, f1, f2 ...]\n" in text
    assert re.search(r"\n\[\.\.\. lines 16-601 are not shown here: f4, .*, f\d+, and \d+ more \.\.\.]\n", text)
    assert max(map(len, text.splitlines())) < 500


def test_an_outline_of_a_long_file_says_the_lines_of_its_long_definitions():
    source = "import os\n\n" + "".join(
        f"@cached\ndef f_{lines}(x):\n" + "    pass\n" * (lines - 2) for lines in (LONG - 1, LONG)
    )
    assert outline("a.py", source, numbered=True).split("\n")[:3] == [
        "import os",
        "@cached def f_9(x):",
        "@cached def f_10(x): L12-21",
    ]
    names = [found.name for found in read_definitions("a.md", "# A\n\ntext\n\n## B\nx\n# C\n")]
    assert names == ["A", "A.B", "C"]


def test_a_part_stands_under_one_header_and_is_read_back(tmp_path: Path):
    (tmp_path / "a b.txt").write_text("")
    text = "".join(f"{number}\n" for number in range(1, 2001))
    part = part_of(text, [(300, 310), (1, 3), (314, 320), (1998, 5000), (7, 5)])
    assert part.where == "1-3, 300-320, 1998-2000"
    section = part_section("a b.txt", part)
    assert section.startswith("--- a b.txt (lines 1-3, 300-320, 1998-2000 of 2,000) ---\n1\n2\n3\n[... lines 4-299 are")
    assert parse_codebase(f"--- x ---\n\n{section}--- y ---\n", tmp_path).views == {
        "x": Unsure(),
        "y": Unsure(),
        "a b.txt": part,
    }
    lines = part_of("--- x ---\n\n--- FILES ---\na\n" * 9, [(2, 3), (20, 36)])
    assert parse_codebase(part_section("a b.txt", lines), tmp_path).views["a b.txt"] == lines
    assert parse_codebase("--- a b.txt (lines 1-2) ---\n1\n2\n\n", tmp_path).views == {
        "a b.txt": Part((Passage(1, "1\n2\n"),), 0)
    }


line = st.sampled_from(["a", "b", "", "  c", "[... lines 1-2 are not shown here ...]"])
files = st.lists(line, max_size=30).map(lambda lines: "".join(f"{each}\n" for each in lines))
spans = st.lists(st.tuples(st.integers(-2, 35), st.integers(-2, 35)), max_size=4)


@given(files, spans)
def test_every_passage_is_that_of_the_file(text: str, ranges: list[tuple[int, int]]):
    part, lines = part_of(text, ranges), lines_of(text)
    shown = {number for first, last in part.ranges for number in range(first, last + 1)}
    asked = {number for first, last in ranges for number in range(max(first, 1), min(last, len(lines)) + 1)}
    assert asked <= shown
    for (first, last), (_, passage) in zip(part.ranges, part.passages, strict=True):
        assert passage == "".join(f"{each}\n" for each in lines[first - 1 : last])


@pytest.mark.slow
@given(files, spans, st.integers(0, 30), st.integers(0, 5), st.lists(st.sampled_from(["new", "a"]), max_size=5))
def test_what_was_shown_and_what_was_put_in_are_carried(text, ranges, at, gone, new):
    lines = lines_of(text)
    at = min(at, len(lines))
    after = [*lines[:at], *new, *lines[at + gone :]]
    now = "".join(f"{each}\n" for each in after)
    part = part_of(text, ranges)
    carried = part_of(now, carried_ranges(part, text, now))
    shown = {number for first, last in carried.ranges for number in range(first, last + 1)}
    if any(first <= at + 1 and at + gone <= last for first, last in part.ranges) and gone:
        assert set(range(at + 1, at + len(new) + 1)) <= shown | set(range(len(after) + 1, at + len(new) + 9))


def test_lines_of_a_file_that_somebody_changed_are_found_where_they_stand_once():
    part = part_of("a\nb\nc\nd\ne\nf\ng\n", [(6, 7)])
    assert carried_ranges(part, None, "new\na\nb\nc\nd\ne\nf\ng\n") == [(7, 8)]
    assert carried_ranges(part, None, "f\ng\nf\ng\n") == [(6, 7)]


def test_of_a_type_that_implements_much_its_definition_and_its_own_methods_are_meant():
    text = "pub struct Range {\n    start: usize,\n}\n\nimpl Range {\n    fn start(&self) {}\n}\n\n"
    text += "".join(f"impl From<u{number}> for Range {{\n    fn from() {{}}\n}}\n\n" for number in range(9))
    found = find_part("range.rs", text, FileRequest("range.rs", ("Range",)))
    assert (found.missing, found.part and found.part.ranges) == ([], [(1, 7)])


items = st.one_of(
    st.sampled_from(
        ["run", "A.run", "A", "nosuch", "0", "9-3", "1-5", "4-9", "99999999-999999999", "::", "(", ".", "\0"]
    ),
    st.text(max_size=9),
)
forms = st.sampled_from(["{}: {}", "{}:{}", "- `{}`: {}", "--- {} (lines {} of 3,520) ---", "{} {}"])
names = st.sampled_from(["a.py", "a.c", "a.md", "a.txt", "nosuch", ""])


@pytest.mark.slow
@given(st.lists(st.tuples(forms, names, st.lists(items, max_size=3).map(", ".join)), max_size=4))
def test_no_list_fails_and_what_is_shown_is_the_file_s(rows: list[tuple[str, str, str]]):
    requests = read_requests([form.format(name, items) for form, name, items in rows], ["a.py", "a.c", "a.md", "a.txt"])
    for path, request in requests.items():
        part = find_part(path, SOURCE, request)
        assert part.part is None or part.part == part_of(SOURCE, part.part.ranges)
        assert request.is_whole or part.part or part.missing
