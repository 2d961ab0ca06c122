"""Outlines: `outlines` has a small file of each language, and after it what its outline shall be."""

import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from measure import is_linear

from code_commit.codebase import grammars, languages, patterns
from code_commit.codebase.outline import beside, brief, outline, read_definitions, tell_left_out, without_fields

SAMPLES = {path.stem: path.read_text().split("==== its outline\n") for path in Path(__file__).parent.glob("outlines/*")}


@pytest.fixture
def no_extra(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setitem(sys.modules, "tree_sitter", None)
    grammars._parser.cache_clear()
    yield
    grammars._parser.cache_clear()


@pytest.mark.parametrize("name", SAMPLES)
def test_the_outline_of_each_language(name):
    source, expected = SAMPLES[name]
    assert outline(f"src/{name}", source) == expected


def test_every_language_has_its_grammar():
    assert all(grammars._parser(language) for language in grammars._SUFFIXES)
    assert {Path(name).suffix[1:] for name in SAMPLES} >= grammars._LANGUAGE_OF.keys() & {
        suffixes.split()[0] for suffixes in grammars._SUFFIXES.values() if suffixes != "h cc cpp cxx hh hpp hxx"
    }


PYTHON_BY_AST = """\
from __future__ import annotations
import os
from b import c, d
from e import F
K: int = 1
@dataclass(frozen=True) class A(B, metaclass=C):
  x: int = 1
  RED = 'r'
  @overload async def f(self, a, /, *, b: int=1, **k) -> int:
def test_it(tmp_path):
import orjson
HAS_ORJSON = True
HAS_ORJSON = False
def dumps(value):
"""


def test_without_the_extra_python_is_whole_and_the_others_have_names(no_extra):
    assert outline("a.py", SAMPLES["a.py"][0]) == PYTHON_BY_AST
    assert outline("a.md", SAMPLES["a.md"][0]) == SAMPLES["a.md"][1]
    for name, words in {
        "a.rs": ["use std::{fs, io};", "pub fn f(&self, a: i32)", "fn works()"],
        "a.go": ["type A struct", "func (a *A) F(x int, y ...string) (int, error)"],
        "a.kt": ["import x.y", "fun <T> f(a: Int = 1, b: List<T>): Int = 2"],
        "A.java": ["public class A<T> extends B implements I", "interface I"],
    }.items():
        lines = outline(name, SAMPLES[name][0])
        assert all(any(word in line for line in lines.split("\n")) for word in words), lines


UNKNOWN_SYNTAX = """\
package a
fun kindOf(x: Any): Int = when (x) {
    is Int if x > 3 -> 1
    else -> 2
}
/* fun commented() {} */
class After {
    fun deepWithin() {}
}
"""


def test_patterns_read_a_file_whose_syntax_its_grammar_does_not_know():
    assert outline("a.kt", UNKNOWN_SYNTAX) == (
        "package a\nfun kindOf(x: Any): Int = when (x)\nclass After\n    fun deepWithin() {}\n"
    )
    assert "def f(x)" in outline("a.py", "def f(x):\n    return 1\nclass A(:\n  def g(self) -> 1 2:\n")


def test_patterns_read_a_file_that_nests_too_deeply():
    source = "#if A\n" + "".join(f"#elif A{number}\nint v{number};\n" for number in range(1500)) + "#endif\n"
    assert outline("a.h", f"{source}struct last_table {{ int rows; }};\nint count(int x) {{\n}}\n") == (
        "struct last_table { int rows; };\nint count(int x)\n"
    )


def test_one_unknown_place_costs_no_definition_around_it():
    source = "class A {\n  void f() { x @@ y; }\n  int g(int a) { return 1; }\n};\nint h(int a) {\n  return 1;\n}\n"
    lines = outline("a.cpp", source)
    assert lines.startswith("class A\n  void f()\n  int g(int a)\n"), lines
    assert "int h(int a)" in lines


@pytest.mark.parametrize(
    ("path", "text", "line"),
    [
        (
            "a.rs",
            "rejections! {\n    /// Too long.\n    pub struct Rejected(Error);\n}\n",
            "pub struct Rejected(Error);",
        ),
        ("a.py", "match platform:\n    case 'linux':\n        def pick(): ...\n", "def pick(): ..."),
        ("a.php", "<?php\nif (x):\n    class Plugin {\n        function boot() {}\n    }\nendif;\n", "class Plugin"),
        ("a.cs", "var app = Make();\nstatic int Score(string s) => 1;\n", "static int Score(string s) => 1;"),
        ("a.scala", "extension (x: Int)\n  def one = x\n  def two = x\n", "def two"),
        (
            "a.rb",
            "namespace :db do\n  task seed: :environment do\n    run :it\n  end\nend\n",
            "task seed: :environment do",
        ),
        ("a.d.ts", "declare const VERSION: string;\n", "declare const VERSION: string"),
        ("a.py", "Point = namedtuple('Point', 'x y')\nlimit = int(x)\n", "Point = namedtuple('Point', 'x y')"),
        ("a.rs", "lazy_static! {\n    static ref CONFIG: Config = load();\n}\n", "static ref CONFIG: Config = load();"),
        ("a.js", "const api = {\n  get base() {},\n};\nconst limit = { a: 1 };\n", "const api"),
        ("a.rb", "describe X do\n  let!(:item) { 1 }\nend\n", "let!(:item)"),
        ("module-info.java", "open module a.b {\n}\n", "open module a.b"),
        ("a.scala", "package object util { type Id = Long }\n", "package object util"),
        ("a.py", "twice = lambda x: 2 * x\n", "twice = lambda x: 2 * x"),
    ],
)
def test_patterns_read_what_a_grammar_leaves_unread(path, text, line):
    found = [each.strip() for each in outline(path, text).splitlines()]
    assert line in found
    assert not [each for each in found if each.startswith(("run", "limit"))]


def test_code_in_a_function_and_in_an_import_is_not_unread():
    assert outline("a.py", "def f():\n    for x in y:\n        def g(): ...\n") == "def f():\n"
    assert outline("a.ts", "import {\n  type Left,\n} from 'x';\n").count("Left") == 1


@pytest.mark.parametrize(
    ("path", "first", "text", "line"),
    [
        ("bin/tool", "#!/usr/bin/env python3", "def go(): ...\n", "def go():"),
        ("bin/tool", "#!/usr/bin/env -S node --test", "class Go {}\n", "class Go"),
        ("bin/tool", "#!/bin/bash -e", "go() {\n  :\n}\n", "go()"),
        ("bin/tool", "#!/usr/local/bin/perl5.36 -w", "sub go {\n", "sub go"),
        ("Rakefile", "", "def go\n  1\nend\n", "def go"),
        ("CMakeLists.txt", "", "function(go x)\n", "function(go x)"),
        ("Makefile", "", "go: all\n", "go: all"),
        ("justfile", "", "go target='x': all\n", "go target='x': all"),
        ("docker/Dockerfile.prod", "", "FROM x AS go\n", "FROM x AS go"),
        ("docker/Dockerfile", "", "FROM x AS go\n", "FROM x AS go"),
        ("ci/Jenkinsfile", "", "def go() {\n", "def go()"),
        ("rules/a.bzl", "", "def go(): ...\n", "def go():"),
        ("notes.txt", "", "def go(): ...\n", ""),
        ("bin/data", "#!", "def go(): ...\n", ""),
    ],
)
def test_the_language_is_told_by_the_name_of_a_file_and_by_its_first_line(path, first, text, line):
    assert outline(path, f"{first}\n{text}").strip() == line


@pytest.mark.parametrize(
    ("path", "text", "beginning"),
    [
        ("a.md", f"# a{' ' * 200_000}b\n# C #\n", "# a "),
        ("a.adoc", f"= a{'=' * 200_000}b\n", "= a=="),
        ("a.org", "* a\n" + "#+begin_src\n" * 20_000, "* a"),
        ("a.sh", "go() {\n" + "<<EOF\n" * 33_000, "go()"),
        ("a.sql", "create table a (\n" + "".join(f"$t{number}$ \n" for number in range(20_000)), "create table a"),
        ("a.html", "<script>let a = 1;\nfunction go() {}\n" + "<script>" * 50_000, "function go"),
    ],
)
def test_long_and_unclosed_text_is_read_once(path, text, beginning):
    assert outline(path, text).strip().startswith(beginning)


def test_definitions_of_a_notebook_have_its_lines():
    source, _ = SAMPLES["a.ipynb"]
    assert [(found.name, found.first, found.last) for found in read_definitions("a.ipynb", source)] == [
        ("load", 15, 16)
    ]


def test_definitions_of_a_page_have_its_lines():
    source = "<template>\n</template>\n<script>\nfunction save() {\n}\n</script>\n"
    assert [(found.name, found.first, found.last) for found in read_definitions("a.vue", source)] == [("save", 4, 5)]


def test_without_the_extra_a_page_and_a_class_of_c_have_names(no_extra):
    assert outline("a.vue", "<script>\nfunction save() {\n}\n</script>\n") == "function save()\n"
    assert outline("a.hpp", "class UI_API Panel : Base {\n  void f(int x) {\n    if (x) {\n") == (
        "class UI_API Panel : Base\n  void f(int x)\n"
    )


@pytest.mark.slow
@pytest.mark.parametrize("extra", ["with the extra", "without it"])
def test_what_cannot_be_parsed_has_an_outline_or_none_and_is_no_error(extra, request: pytest.FixtureRequest):
    if extra == "without it":
        request.getfixturevalue("no_extra")
    texts = [
        "",
        "\0",
        "(" * 5_000,
        "{" * 5_000,
        "class A:\n" + " " * 10_000,
        os.urandom(9000).decode("latin-1"),
        "é" * 9,
    ]
    texts += [
        "#ifdef A\n" * 500,
        "class A { " * 300,
        "def f(" + "a, " * 900,
        "```\n" * 901,
        "a\n" * 900 + "=" * 900,
    ]
    began = time.process_time()
    for suffix in [*(row.split()[0] for row in languages._ROWS), *grammars._LANGUAGE_OF, "md", "rst", "json", ""]:
        for text in texts:
            assert len(outline(f"a.{suffix}", text)) <= 2 * len(text) + 9
    assert time.process_time() - began < 60
    assert outline("a.json", '{"class A": 1}') == outline("LICENSE", "class A:") == ""


def test_no_head_is_longer_than_its_limit_and_no_parameter_is_lost_below_it():
    parameters = ", ".join(f"argument_{number}: int = 1" for number in range(60))
    assert outline("a.py", f"def f({parameters}) -> int:\n    pass\n") == f"def f({parameters}) -> int:\n"
    assert len(outline("a.py", f"def f({parameters * 9}) -> int:\n    pass\n")) < 2100


def test_a_file_with_a_line_of_data_has_the_simple_outline():
    data = f"DATA = '{'x' * 10_000}'\n"
    assert outline("test_a.py", f"{data}\ndef test_a():\n    pass\n") == "def test_a():\n"
    assert outline("a.rs", f"// {data}\nfn f() {{\n") == "fn f()\n"


@pytest.mark.slow
@pytest.mark.parametrize("text", ["=" * 90_000, "=\n" * 60_000])
def test_a_file_that_takes_minutes_has_no_outline(text: str):
    began = time.process_time()
    for name in ("a.kt", "a.java"):
        outline(name, text)
    assert time.process_time() - began < 5
    assert outline("a.kt", "fun f(): Int { return 1 }\n") == "fun f(): Int\n"


def test_a_long_type_of_c_has_its_name_and_a_constant_stands_where_patterns_read():
    fields = "".join(f"  int field_{number};\n" for number in range(30))
    assert outline("a.c", f"typedef struct {{\n{fields}}} row_t;\n").endswith(" ... } row_t\n")
    unknown = "#define MOST 3\n" + "@@ } %\n" * 9 + "#define SEEN\nint f(int a) {\n"
    assert outline("a.c", unknown) == "#define MOST 3\nint f(int a)\n"
    assert brief("#define MOST 3\n#define LESS(a, b) ((a) < (b))\n") == "#define MOST\n#define LESS(a, b)\n"


def test_a_short_outline_names_definitions_and_whatever_is_imported():
    lines = "from . import a, b\nfrom .c import d\nimport os\nclass E(F):\n  def g(self, h: int = 1) -> str:\n"
    lines += "pub use crate::a::{b, c}\nuse x::y\nimpl std::fmt::Display for A<B>\n  pub(crate) b: C<D>\n  pub(super) fn f(e: G)\n"
    assert brief(lines) == (
        "from . import a, b\nfrom .c\nimport os\nclass E\n  def g\n"
        "use crate::a\nuse x::y\nimpl std::fmt::Display for A<B>\n  b\n  fn f\n"
    )
    lines = "export default async function f(x)\npublic static final int A = 1\n  it('is public static data')\n  default\n  async(x)\n"
    assert brief(lines) == "function f\nint A\n  it('is public static data')\n  default\n  async\n"


def test_a_short_outline_of_c_names_what_macros_define_and_no_bodies():
    assert brief(outline("a.c", SAMPLES["a.c"][0])).endswith(
        "#define AREA(a, b)\n#define DEFINE_LIST(NAME, T)\ntypedef struct Point\ntypedef struct Box\n"
        "CORE_FN(box_new)\nSTART_TEST(test_area)\n"
    )
    lines = brief(outline("a.hpp", SAMPLES["a.hpp"][0]))
    assert lines.startswith('#include "b.h"\nnamespace n\n  class A\n    explicit A\n    int f\n')
    assert lines.endswith(
        "struct Options final\n  bool is_valid\nint level_of\nvoid CALLBACK on_level\nname_of\nauto area\n"
        'TEST(Foo, Baz)\nTEST_CASE("areas are added")\nclass Broken\n'
    )


def test_what_a_macro_defines_has_the_name_in_its_arguments():
    names = [each.name for path in ("a.c", "a.hpp") for each in read_definitions(path, SAMPLES[path][0])]
    assert {"box_new", "test_area", "Foo.Bar", "Foo.Baz", "areas are added", "Box"} <= {*names}
    box = next(each for each in read_definitions("a.c", SAMPLES["a.c"][0]) if each.name == "box_new")
    assert box.last - box.first == 5, "strings over several lines keep their lines"


@pytest.mark.parametrize("values", ["(('a', (1, (2, 3))), {'b': f(g(h(1)))})", "['(', \")\", 'it\\'s (']", ""])
def test_a_short_outline_names_what_has_decorators_whatever_these_hold(values: str):
    source = f"@mark.parametrize('x', {values})\n@mark.slow\ndef test_x(x):\n    pass\n"
    assert brief(outline("test_x.py", source)) == "def test_x\n"


def test_beside_other_files_there_are_no_imports_and_of_tests_the_helpers():
    lines = (
        "import os\nfrom . import a\n@pytest.fixture def root(path):\nasync def test_it(root):\nclass TestIt(Base):\n"
    )
    lines += "  def test_more(self):\nfunc TestGo(t *testing.T)\nfunc performRequest(r http.Handler) *Recorder\ndescribe('a')\n"
    assert beside(lines, tests=False) == "".join(lines.splitlines(keepends=True)[2:])
    assert (
        beside(lines, tests=True) == "@pytest.fixture def root(path):\nfunc performRequest(r http.Handler) *Recorder\n"
    )


def test_the_comments_of_lines_are_left_out_of_a_value():
    source = 'class A:\n    SHOWN = {  # all of them\n        "off",  # none\n        # more\n        "on",\n    }\n'
    assert brief(outline("a.py", source)) == "class A\n  SHOWN\n"


def test_a_member_that_several_types_have_is_shown_where_its_type_is_named():
    source = "".join(f"struct {name} {{ int flags; int of_{name}; }};\n" for name in ("box", "row", "cell"))
    assert outline("a.c", source, names={"flags", "row"}) == "struct row\n  int flags\n"
    assert outline("a.c", source, names={"of_box", "flags"}) == "struct box\n  int of_box\n"
    assert outline("a.c", source, names={"of_box"}) == "struct box\n  int of_box\n"


def test_a_template_stays_in_an_outline_without_fields():
    lines = "namespace a\n  template <typename T> class B\n    int x\n    void f()\n"
    assert without_fields(lines) == lines.replace("    int x\n", "")


def test_what_is_left_out_of_an_outline_is_counted_where_it_stands():
    lines = "class A:\n  x\n  class B:\n    y\n    z\n  def f(self):\nclass C:\n  x\ndef f():\n"
    kept = "class A:\n  class B:\n    z\n  def f(self):\n"
    told = "class A:\n  class B:\n    z\n    ... and 1 more\n  def f(self):\n  ... and 1 more\n"
    assert tell_left_out(lines, kept) == f"{told}... and 3 definitions more\n"
    assert tell_left_out(lines, "class A:\n  x\n").endswith("  x\n  ... and 4 more\n... and 3 definitions more\n")
    assert (tell_left_out(lines, lines), tell_left_out(lines, "")) == (lines, "")


def test_the_imports_of_c_and_ruby_are_no_definitions():
    for path, text in (
        ("a.rb", "require_relative 'b'\nrequire 'c'\n\nclass D\nend\n"),
        ("a.h", "#  include <b>\nstruct D {};\n"),
    ):
        assert "D" in (short := brief(beside(outline(path, text), tests=False)))
        assert not {"require", "require_relative", "include"} & set(short.replace("#", " ").split())


def test_short_outlines_of_tests_in_a_block_keep_them():
    lines = 'describe Thing\n  attr_reader :a\n  it "does this"\n  test "that"\n'
    assert without_fields(lines) == 'describe Thing\n  it "does this"\n  test "that"\n'


def test_what_is_in_a_class_is_told_only_where_the_class_is_named():
    text = "class A:\n    def get(self): ...\n\nclass B:\n    def get(self): ...\n\ndef get(): ...\n"
    assert outline("a.py", text, names={"B", "get"}) == "class B:\n  def get(self):\ndef get():\n"
    assert outline("a.cc", "namespace n {\nvoid get();\n}\n", names={"get"}).count("get") == 1


@pytest.mark.parametrize(
    ("suffix", "opener"),
    [("hs", "{-"), ("ml", "(*"), ("pas", "{"), ("jl", "#="), ("ps1", "<#"), ("nobody-knows", "/-")],
)
def test_the_end_of_a_comment_that_nothing_ends_is_looked_for_once(suffix: str, opener: str):
    """A table of numbers in another language has thousands of `{-`; what stands between them is code."""

    known = suffix if languages.is_language(suffix) else languages.ANY
    skipped, _ = languages.compiled(known)
    closer = languages.CLOSERS[opener].replace("\\", "")

    def blanked(text: str) -> str:
        return "".join(patterns._blanked(text, skipped))

    assert blanked(f"{opener} note\nmore {closer}\n" + f"{opener} a\n" * 500) == "\n\n" + f"{opener} a\n" * 500
    assert is_linear(lambda size: blanked(f"{opener} a\n" * size), 5_000)
