import pytest

from code_commit.marks import fenced_mark, find_marks, may_have_marks

OPENING = [
    "<think>",
    "<Thinking>",
    '<thought duration="3">',
    "<thoughts>",
    "<REASONING >",
    "<seed:think>",
    "<chain_of_reasoning>",
    "<mm:think>",
    "<|begin_of_thought|>",
    "<|START_THINKING|>",
    "◁think▷",
    "[THINK]",
    "<|channel|>analysis<|message|>",
    "<|channel>",
]
CLOSING = [
    "</think>",
    "</Thinking>",
    "</my-thoughts>",
    "<//think>",
    "</seed:think>",
    "<|end_of_thought|>",
    "<|END_THINKING|>",
    "◁/think▷",
    "[/THINK]",
    "<|channel|>final<|message|>",
    "<channel|>",
    "<|channel|>final <|constrain|>json<|message|>",
]
NONE = [
    "<thinker>",
    "<rethink>",
    "<b>",
    "<think/>",
    "< think>",
    "<think",
    "[thinking]",
    "<bethink>",
    "<reasoning.py>",
    "think",
    "<|channel|>other<|message|>",
    "<a href='x'>think</a>",
]


@pytest.mark.parametrize(("marks", "opens"), [(OPENING, True), (CLOSING, False)])
def test_marks_of_many_models_are_known(marks, opens):
    for mark in marks:
        for text in (f"{mark}\nx\n", f"x\n  {mark} \r\n", f"x {mark}", f"{mark}x"):
            assert may_have_marks(text)
            (found,) = find_marks(text)
            assert (text[found.start : found.end], found.opens, found.is_firm) == (mark, opens, True)
        text = f"x^^^a\n{mark}^^^a\n^^^{mark}\n"
        assert [fenced_mark(text, "^^^", 0, end) for end in (len(text), 9)] == [len(mark) + 6, 9]


@pytest.mark.parametrize("text", NONE)
def test_what_is_no_mark(text):
    assert not list(find_marks(text))


QUOTED = [
    "All before `</think>`",
    "`</think>` ends it",
    'END = "</think>"',
    "'</think>'",
    "“</think>”",
    "It is `a </think>\nb`",
    "> </think>",
    "    </think>",
    "\t</think>",
    "```html\n<think>\nx\n</think>\n```\n",
    "~~~~\n<think>\n```\n</think>\n~~~~\n",
]


@pytest.mark.parametrize("text", QUOTED)
def test_a_mark_that_is_quoted_is_none(text):
    assert not list(find_marks(text))


LOOSE = ["before </think> it", "before <think> it", "```\nx\n</think>\n```\n"]


@pytest.mark.parametrize("text", LOOSE)
def test_a_mark_inside_a_line_or_alone_in_a_markdown_fence_may_be_prose(text):
    (mark,) = find_marks(text)
    assert not mark.is_firm


def test_marks_after_marks_stand_at_the_beginning_of_a_line():
    assert [mark.is_firm for mark in find_marks("<think></think> Done.\n")] == [True, True]
    assert [mark.is_firm for mark in find_marks("<think>hm</think> Done.\n")] == [True, False]


def test_a_markdown_fence_that_encloses_more_than_the_span_quotes_nothing():
    text = "```\n^^^\n```\n</think>\n```\n^^^\n```\n"
    spans = [(0, 4), (8, 25), (29, len(text))]
    assert [mark.is_firm for mark in find_marks(text, spans)] == [True]
