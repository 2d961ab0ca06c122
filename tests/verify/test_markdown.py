"""Markdown's fences that stand around a file, or around a part of an edit, and those that belong there."""

import fnmatch

import pytest
from pygments.lexers import get_all_lexers

from code_commit.changes import Edit, EditBlock, FileReplacement
from code_commit.verify.formats import Surroundings, find_formats
from code_commit.verify.markdown import _matcher, without_fences


@pytest.mark.parametrize(
    ("path", "info"),
    [
        *[
            ("a.proto", "proto"),
            ("a.proto", "protobuf"),
            ("a.bat", "bat"),
            ("a.zzz", ""),
            ("a.zzz", "zzz"),
            ("a.h", "cpp"),
        ],
        *[("Jenkinsfile", "groovy"), ("lib/CMakeLists.txt", "cmake"), ("go.mod", "go"), (".env.example", "bash")],
        *[
            ("a.yaml.j2", "yaml"),
            ("tests/test_a.py", "python"),
            ("a.tsx", "typescript"),
            ("a.py", "a.py"),
            ("a.py", "text"),
        ],
        *[
            ("a.py", "python:a.py"),
            ("a.py", '{.python title="a.py"}'),
            ("Dockerfile.dev", "dockerfile"),
            ("a.nix", "Nix"),
        ],
    ],
)
def test_a_fence_that_fits_is_taken_off_a_file_and_off_an_edit(path, info):
    for mark in ("```", "~~~~"):
        whole = FileReplacement(path, f"\n{mark}{info}\n  x\n\n{mark}\n", 7)
        bare = without_fences(whole, None)
        assert (bare.content, bare.line) == ("  x\n\n", 9)
        block = EditBlock(path, (Edit(f"{mark}{info}\n  a\n{mark}\n", f"{mark}\n  b\n{mark}\n", 8),), 7)
        assert without_fences(block, "  a\n").edits == (Edit("  a\n", "  b\n"),)
        assert without_fences(block, f"  a\n{mark}\n") == block


@pytest.mark.parametrize(
    ("path", "content"),
    [
        ("a.py", "```rust\nx\n```\n"),
        ("a.py", "```\nx\n```\ny\n```\nz\n```\n"),
        ("a.py", "````\nx\n```\n"),
        ("a.py", "```\n```\n"),
        ("a.md", "```md\nx\n```\n"),
        ("README", "```\nx\n```\n"),
        ("prompt.j2", "```\nx\n```\n"),
        ("testdata/a.json", "```json\n{}\n```\n"),
    ],
)
def test_a_fence_that_may_be_content_stays(path, content):
    assert without_fences(FileReplacement(path, content, 1), None).content == content


def test_a_fence_stays_in_a_file_that_began_with_one():
    change = FileReplacement("a.zzz", "```\nx\n```\n", 1)
    assert without_fences(change, "```\ny\n```\n") == change
    assert without_fences(change, "y\n").content == "x\n"


IN_TEXT = {
    "a docstring": ("a.py", 'def f():\n    """Add.\n\n    Example\n    """\n', "    Example\n"),
    "a docstring of a module": ("a.py", '"""Add.\n\nExample\n"""\nx = 1\n', "Example\n"),
    "a comment": ("a.js", "/**\nExample\n*/\nlet x = 1\n", "Example\n"),
    "a comment of documentation": ("a.rs", "/*!\nExample\n*/\nfn f() {}\n", "Example\n"),
    "a string": ("a.toml", 'x = """\nExample\n"""\n', "Example\n"),
    "a document in a shell script": ("a.sh", "cat <<'END'\nExample\nEND\n", "Example\n"),
    "a block of YAML": ("a.yml", "x: |\n  Text.\n  Example\ny: 1\n", "  Example\n"),
}


@pytest.mark.parametrize(("path", "old", "find"), IN_TEXT.values(), ids=IN_TEXT)
@pytest.mark.parametrize("info", ["", "text"])
def test_a_fence_that_an_edit_puts_into_a_text_of_the_file_is_content(path, old, find, info):
    blank = find[: len(find) - len(find.lstrip())]
    new = f"{blank}```{info}\n{blank}f()\n{blank}```\n"
    for edit in (Edit(find, new, 3), Edit(find, new, 3, find)):
        change = EditBlock(path, (edit,), 1)
        assert without_fences(change, old) == change
        assert list(find_formats(change, old, Surroundings(lambda _: False))) == []
    wrapped = EditBlock(path, (Edit(f"```\n{find}```\n", new, 3),), 1)
    assert without_fences(wrapped, old).edits == (Edit(find, f"{blank}f()\n"),)


@pytest.mark.parametrize(("path", "old"), [each[:2] for each in IN_TEXT.values()], ids=IN_TEXT)
def test_a_fence_beside_the_texts_of_a_file_is_taken_off(path, old):
    change = EditBlock(path, (Edit("z = 1\n", "```\nz = 2\n```\n", 3),), 1)
    assert without_fences(change, f"{old}z = 1\n").edits == (Edit("z = 1\n", "z = 2\n"),)


def test_names_match_patterns_of_pygments_as_fnmatch_says():
    patterns = {pattern for _, _, patterns, _ in get_all_lexers(plugins=False) for pattern in patterns}
    names = [pattern.replace("*", star).replace("?", "x") for pattern in patterns for star in ("", "a.")]
    for pattern in patterns:
        assert [*filter(_matcher(["*.none", pattern]), names)] == fnmatch.filter(names, pattern)
