"""What stands around a path, told by the text alone."""

import pytest
from path_table import ACCEPTED

from code_commit.paths.decoration import bare_path, is_word, pieces

BARE = {
    "quotes": ('"src/a.rs"', "src/a.rs"),
    "backticks": ("`a.rs`", "a.rs"),
    "brackets": ("[src/a.rs]", "src/a.rs"),
    "other quotes": ("\u300csrc/a.rs\u300d", "src/a.rs"),
    "a link": ("[src/a.rs](src/a.rs)", "src/a.rs"),
    "bold": ("**src/a.rs**", "src/a.rs"),
    "a label": ("File:src/a.rs", "src/a.rs"),
    "a label of words": ("New file: a.rs", "a.rs"),
    "a label in another language": ("\u6587\u4ef6: a.rs", "a.rs"),
    "a label with a blank before": ("path = a.rs", "a.rs"),
    "the word of the instructions": ("PATH new.c", "new.c"),
    "a heading": ("### a.rs", "a.rs"),
    "a heading with code": ("### `src/a.rs`", "src/a.rs"),
    "a point of a list": ("* a.rs", "a.rs"),
    "a diff's line": ("+++ b/a.rs", "b/a.rs"),
    "a colon behind": ("src/a.rs:", "src/a.rs"),
    "a colon behind a name without a suffix": ("LICENSE:", "LICENSE"),
    "a comma behind": ("src/a.rs,", "src/a.rs"),
    "a line": ("src/a.rs:12", "src/a.rs"),
    "lines": ("a.py:3-10", "a.py"),
    "a comment": ("src/a.py (new file)", "src/a.py"),
    "a comment with a mark": ("a.rs # the parser", "a.rs"),
    "an arrow": ("lib/a.js <- changed", "lib/a.js"),
    "dashes": ("a.go -- rewritten", "a.go"),
    "a word": ("src/new.py modified", "src/new.py"),
    "two paths": ("a.txt => b.txt", "a.txt"),
    "two paths and a comma": ("a.txt, lib/b.txt", "a.txt"),
}

PLAIN = (
    *("My file (1).txt", "notes (draft)", "a # b.txt", "Foo - bar.swift", "v1.2 release/a.txt", "docs/my notes.md"),
    *("My Project/src/x.c", "a - b/c.txt", "Read me", "src/my lib/b.h", "node.js guide.md", "icons/logo@2x.png"),
    *("year=2020/part.csv", "St. John", "Release 1.2", "src/a.py.orig", "src/a.pyi", "{{ name }}/setup.py"),
)


@pytest.mark.parametrize(("path", "bare"), BARE.values(), ids=BARE)
def test_the_path_in_what_is_around_it_is_found(path, bare):
    assert bare_path(path) == bare


def test_names_of_real_projects_are_no_decorated_paths():
    assert {path: bare_path(path) for path in (*ACCEPTED, *PLAIN) if bare_path(path) or is_word(path)} == {}


@pytest.mark.parametrize(
    "path",
    [
        *("python", "Bash", "c++", "C#", "tsx", "file", "code", "diff", "main", "[file]", "**python**"),
        *("python code", "2. New file for the worker", ".py", "src/.TSX"),
    ],
)
def test_a_language_and_a_word_of_the_format_are_no_names(path):
    assert is_word(path)


@pytest.mark.parametrize(
    "path",
    [
        *(
            "Makefile",
            "makefile",
            "Dockerfile",
            "LICENSE",
            "Kconfig",
            "control",
            "go.mod",
            "docs/python",
            "gradlew",
            "1",
        ),
        *(".bashrc", ".editorconfig", "conf/.htaccess", ".dockerignore", ".eslintrc", ".nvmrc", ".travis.yml", "..py"),
    ],
)
def test_names_without_a_suffix_are_names(path):
    assert not is_word(path)


def test_the_pieces_of_a_path_have_a_boundary_on_both_sides():
    assert list(pieces("(src/a.py.orig) b")) == [
        *("(src/a.py.orig) b", "(src/a.py.orig)", "(src/a.py.orig", "src/a.py.orig) b", "src/a.py.orig)"),
        *("src/a.py.orig", " b", "b"),
    ]
    assert "\u0939\u093f\u0928\u094d\u0926\u0940.md" in pieces("(\u0939\u093f\u0928\u094d\u0926\u0940.md)")


def test_of_a_long_line_few_pieces_are_looked_at():
    found = list(pieces("src/a.py " + "and some more words " * 100 + "lib/b.py"))
    assert len(found) < 300
    assert {"src/a.py", "lib/b.py"} <= set(found)
