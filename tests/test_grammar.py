"""The words of the fences: what the table says of each is what the parser does and what the system prompts tell."""

import re
from importlib.resources import files
from pathlib import Path

import pytest

from code_commit.changes import DeclinedError, FilesAskedError, RejectedResponseError
from code_commit.grammar import FENCES, INNER, OPENING_ALONE, Role
from code_commit.parse import parse_response

PROMPTS = {path.name.removesuffix(".txt"): path.read_text() for path in files("system_prompts").iterdir() if path.name.endswith(".txt")}  # fmt: skip
ALONE = [fence for fence in FENCES.values() if fence.role is Role.ALONE]


def rules_of(text: str) -> set[str]:
    with pytest.raises(RejectedResponseError) as caught:
        parse_response(text)
    return {violation.rule for violation in caught.value.violations}


@pytest.mark.parametrize("fence", FENCES.values(), ids=FENCES)
def test_the_system_prompts_that_name_a_fence_are_those_of_its_row(fence):
    named = {name for name, text in PROMPTS.items() if re.search(rf"\^\^\^{fence.word}\b", text)}
    assert named == set(fence.told_in)


def test_the_document_of_the_response_format_names_each_fence():
    text = (Path(__file__).parents[1] / "docs" / "response-format.md").read_text("utf-8")
    names = text.partition("A new file of that name")[2].partition("\n\n")[0]
    for word in FENCES:
        assert f"^^^{word}" in text
        assert f"`{word}`" in names or f"`^^^./{word}`" in names


def test_the_prompts_show_no_fence_in_a_block_but_those_of_the_table():
    for text in PROMPTS.values():
        opened = re.findall(r"^\^\^\^+(\w+)$", text, re.MULTILINE)
        assert set(opened) <= FENCES.keys()


@pytest.mark.parametrize("word", INNER)
def test_an_inner_fence_opens_no_block_and_a_file_of_its_name_can_be_sent(word):
    assert "stray-fence" in rules_of(f"^^^{word}\nx\n^^^end\n")
    assert parse_response(f"^^^./{word}\nx\n^^^end\n")[0].path == word


@pytest.mark.parametrize("fence", ALONE, ids=lambda fence: fence.word)
def test_a_fence_that_stands_alone_ends_the_response_without_a_change(fence):
    text = f"^^^{fence.word}\nwords\n^^^end\n"
    with pytest.raises((DeclinedError, FilesAskedError)):
        parse_response(text)
    assert rules_of(f"{text}^^^a\nx\n^^^end\n") == {"mixed"}
    assert rules_of(f"^^^{fence.word}\n^^^end\n") == {fence.empty_rule}
    assert parse_response(f"^^^./{fence.word}\nx\n^^^end\n")[0].path == fence.word


@pytest.mark.parametrize("name", ["cannot", "Cannot:", "cannot do it", "files", "FILES:"])
def test_these_spellings_open_a_block_that_stands_alone(name):
    match = OPENING_ALONE.match(name)
    assert match
    assert match.lastgroup == name[:6].lower().rstrip(":")


@pytest.mark.parametrize("name", ["cannot.py", "cannot/a", "cannot-do", "cannots", "files.txt", "files/a", "files x"])
def test_these_names_are_paths(name):
    assert not OPENING_ALONE.match(name)
