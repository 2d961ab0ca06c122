"""Macros of the C family, in heads and in sources; tests/codebase/outlines has whole files."""

import pytest

from code_commit.codebase.macros import defined_by_macro, without_body, without_macros

DEFINED = {
    "TEST(cart, adds)": ("TEST(cart, adds)", "cart.adds"),
    "  START_TEST(adds)": ("  START_TEST(adds)", "adds"),
    'TEST_CASE("it adds (twice)", "[cart]")': ('TEST_CASE("it adds (twice)")', "it adds (twice)"),
    'CORE_FN(box_new, "(box/new n)", "Makes a box.")': ("CORE_FN(box_new)", "box_new"),
}


@pytest.mark.parametrize(("head", "defined"), DEFINED.items(), ids=DEFINED)
def test_a_macro_may_define_what_its_arguments_name(head, defined):
    assert defined_by_macro(head) == defined


@pytest.mark.parametrize("head", ["int area(int a)", "Box::Box(int a)", "NOT_A_CALL", "Area(a, b)", "#define AREA(a)"])
def test_other_heads_name_themselves(head):
    assert defined_by_macro(head) is None


HEADS = {
    "class A : public B { int x; void f() {": "class A : public B",
    "void f(A a = {1, 2})": "void f(A a = {1, 2})",
    "#define RUN(x) do { x; } while (0)": "#define RUN(x) do { x; } while (0)",
    "int f() const": "int f() const",
}


@pytest.mark.parametrize(("head", "without"), HEADS.items(), ids=HEADS)
def test_a_head_has_no_body(head, without):
    assert without_body(head) == without


@pytest.mark.parametrize(
    "source",
    [
        b'CORE_FN(box_new,\n  "(box/new n)",\n  "Makes "\n  "a box.") {\n}\n',
        b"UI_EXPORT\n/* a\n b */\ntemplate <typename T> T area(T a);\n",
        b"UI_API(const char *) name_of(int x);\n",
    ],
)
def test_each_place_and_line_of_a_source_stays(source: bytes):
    known = without_macros(source)
    assert known != source
    assert (len(known), known.count(b"\n")) == (len(source), source.count(b"\n"))
