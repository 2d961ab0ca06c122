"""What is told of the query's names: which lines, in which order."""

import pytest

from code_commit.codebase.mentions import find_uses, show_mentions
from code_commit.codebase.rank import survey_files
from code_commit.codebase.text import Section, file_section

TRANSFORM = """\
def transform(self, rename=None):
    # rename
    return create_index()
"""
TEST = "def test_transform_rename_column_with_index():\n    pass\n\n\ndef test_rename_alone():\n    pass\n"


def sections(**texts: str) -> list[Section]:
    files = {name.replace("__", "/").replace("_DOT_", "."): text for name, text in texts.items()}
    return [Section(name, len(text), file_section(name, text)) for name, text in files.items()]


def mentions_of(query: str, files: list[Section], **more: object) -> str:
    return show_mentions(survey_files(files, query, **more).mentions)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("path", "text", "name"),
    [
        ("tests/a.py", TEST, "test_transform_rename_column_with_index"),
        ("a.py", "x = 1\nasync def renameTheIndex():\n", "renameTheIndex"),
        ("a.c", "static int rename_db_index(struct db *db)\n{\n", "rename_db_index"),
        ("a.go", "func (t *Table) RenameIndex(name string) error {\n", "RenameIndex"),
        ("a.ts", "export const renamedIndexes = () => 1\n", "renamedIndexes"),
    ],
)
def test_definitions_that_hold_two_words_come_first(path: str, text: str, name: str):
    files = [*sections(b_DOT_py=TRANSFORM), Section(path, len(text), file_section(path, text))]
    told = mentions_of("fix: renaming a column must not lose its index in `transform`", files)
    assert told.startswith("definitions that share two words with the query:\n")
    assert name in told.split("\n")[1]
    assert "test_rename_alone" not in told


@pytest.mark.parametrize(
    "line",
    [
        "return rename_db_index(db);",
        "  x = rename_index(1)",
        "rename_index(db);",
        "#: rename the index",
        "with_the_index = 1",
        "if (rename_index(db)) {",
    ],
)
def test_what_no_line_defines_is_no_definition(line: str):
    assert mentions_of("Renaming must not lose the index", sections(a_DOT_c=f"x\n{line}\n")) == ""


def test_a_word_on_many_lines_is_none_and_a_name_only_where_it_is_defined():
    files = sections(a_DOT_py="def refresh(): ...\n" + "refresh()\n" * 21, b_DOT_py="def fix(): ...\n")
    assert mentions_of("Let it refresh later", files) == ""
    assert mentions_of("fix: let it be", files) == ""
    assert mentions_of("Let `refresh` be", files) == "refresh: 22 lines, 1 shown\na.py:1:def refresh(): ...\n"


def test_a_word_counts_as_a_name_only_where_the_query_writes_it_as_one():
    files = sections(a_DOT_py="def split(): ...\n" + "split()\n" * 3, b_DOT_py="book = split()\n")
    (told,) = {mentions_of(f"Let {name} be", files) for name in ("`split`", "`split()`", "lib.split", "`a.split`")}
    assert told.startswith("split: 5 lines\n")
    assert mentions_of("Let split(x) be", files) == "split: 5 lines, 1 shown\na.py:1:def split(): ...\n"
    assert mentions_of("See `book/x`", files) == ""
    assert mentions_of("Let `Run` be\n\n* split(core): a form, no name", files) == ""
    many = [*files, *sections(**{f"c{number}": "def split(): ...\n" + "split()\n" * 9 for number in range(3)})]
    assert mentions_of("Let `split` be", many) == ""


def test_one_line_of_each_source_comes_first_then_tests_and_documents_last():
    files = sections(
        README_DOT_md="width\n",
        a_DOT_py="x = width\ny = width\n",
        b_DOT_py="use(width)\ndef width(): ...\n",
        tests__test_a_DOT_py="width\n",
    )
    lines = mentions_of("Let `width` be", files).split("\n")[1:-1]
    where = [":".join(line.split(":")[:2]) for line in lines]
    assert where == ["b.py:2", "a.py:1", "tests/test_a.py:1", "b.py:1", "a.py:2", "README.md:1"]


def test_uses_of_names_are_those_in_files_that_are_not_seen():
    many = "refresh()\n" * 30
    files = sections(a_DOT_py="x.run_all()\n", b_DOT_py="run_all()\n", c_DOT_py=many, d_DOT_md="run_all()\n")
    told = show_mentions(find_uses(["Table.run_all", "Table.refresh", "of", "operator +"], files, {"b.py"}))
    assert told == "run_all: 1 line\na.py:1:x.run_all()\n"


def test_a_query_without_names_has_those_of_the_tests_of_the_build_and_of_its_output():
    test = "from m import fetch_rows\n\n\ndef test_rows():\n    assert m.sorted_rows() == m.other_name()\n"
    files = sections(t_DOT_py=test, m_DOT_py="def sorted_rows():\n    pass\ndef other_name(): ...\nx = row_limit\n")
    told = mentions_of("Let all rows be in order", files, judges=["t.py"])
    assert "sorted_rows: 1 line" in told or "m.py:1:def sorted_rows" in told
    assert "other_name" not in told
    assert "row_limit: 1 line\nm.py:4" in mentions_of("Let all rows be in order", files, output="no row_limit here")
    output = "lib/fetch_rows.py:3: no row_limit\nlib/t.py::a.other_name FAILED"
    told = mentions_of("Make it pass", files, output=output)
    assert ("m.py:3:def other_name" in told, "m.py:4:x = row_limit" in told, "fetch_rows" in told) == (
        True,
        True,
        False,
    )
    assert "sorted_rows: " not in mentions_of("Mend `other_name` of all rows", files, judges=["t.py"])


def test_a_scope_or_a_type_of_another_name_is_not_defined_there():
    text = "const scoped::other& x = y;\nconst scoped& z = y;\nstruct scoped { int a; };\n"
    told = mentions_of("Let `scoped` be", sections(a_DOT_h=text * 7))
    assert set(told.split("\n")[1:]) == {f"a.h:{line}:struct scoped {{ int a; }};" for line in range(3, 24, 3)} | {""}


def test_what_many_files_define_tells_nothing():
    many = sections(**{f"a{number}": f"class Plugin: ...\n{'Plugin()' * 3}\n" * 3 for number in range(9)})
    assert mentions_of("Let `Plugin` be", many) == ""
    assert "3 shown" in mentions_of("Let `Plugin` be", [*sections(b="Plugin()\n" * 40), many[0]])


def test_words_that_stand_together_begin_a_piece_of_a_name():
    files = sections(a="subtypeArray = 1\n", b="a_typeArray = anyTypeArray\n")
    assert mentions_of("Make a type array", files).count("subtypeArray") == 0
    assert "b:1:a_typeArray" in mentions_of("Make a type array", files).replace(".py", "")


def test_what_a_choice_has_seen_is_told_again_in_short():
    survey = survey_files(
        sections(a="def keep_slug_dots(): ...\n", b="many_of_it\n" * 30), "Keep dots of a slug, `many_of_it`"
    )
    told = show_mentions(survey.mentions)
    assert ("keep_slug_dots" in told, "b: 1, 2, 3" in told) == (True, True)
    assert show_mentions(survey.mentions, again=True) == ""
