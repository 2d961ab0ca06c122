import re

import pytest

from code_commit.changes import DeclinedError, FilesAskedError, Reasons, RejectedResponseError
from code_commit.parse import blocks_of, end_thoughts, notes_of, parse_response, read_response

DRAFT = "^^^a\nDRAFT\n^^^end\n"
B = "^^^b\nx\n^^^end\n"

DROPPED = {
    # a response whose answer is the file b alone, and how many blocks do not count
    "between marks": (f"<think>\n{DRAFT}</think>\n{B}", 1),
    "no opening mark": (f"Perhaps:\n{DRAFT}No.\n</think>\n\n{B}", 1),
    "a second round": (f"<think>hm</think>\n<think>\n{DRAFT}</think>\n{B}", 1),
    "two drafts": (f"<think>\n{DRAFT}{DRAFT}</think>\n{B}", 2),
    "another name": (f"<seed:Think budget='3'>\n{DRAFT}</seed:Think>\n{B}", 1),
    "brackets": (f"[THINK]Perhaps\n{DRAFT}[/THINK]{B}", 1),
    "special tokens": (f"<|begin_of_thought|>\n{DRAFT}<|end_of_thought|>\n{B}", 1),
    "harmony": (
        f"<|channel|>analysis<|message|>Perhaps\n{DRAFT}No.<|end|><|start|>assistant<|channel|>final<|message|>{B}",
        1,
    ),
    "the channel of Gemma": (f"<|channel>thought\n{DRAFT}<channel|>\n{B}", 1),
    "the channel of Gemma, and a fence": (f"<|channel>\n{DRAFT}<channel|>{B}", 1),
    "harmony without its tokens": (f"analysisIt is a:\n{DRAFT}No.assistantfinal{B}", 1),
    "a draft behind a token": (f"<|im_start|>assistant{DRAFT}No.\n</think>\n{B}", 1),
    "the mark at a line's end": (f"<think>{DRAFT}No, only b.</think>\n{B}", 1),
    "the fence at once after the mark": (f"<think>\n{DRAFT}No, only b.</think>{B}", 1),
    "a draft that is not closed": (f"<think>\n^^^a\nhalf a dra\n</think>\n{B}", 1),
    "a draft that is not closed, before a removal": (f"<think>\n^^^a\n^^^find\nx\n</think>\n{B}", 1),
    "the mark is named in the thoughts": (f"<think>\nI may not write </think> too early.\n{DRAFT}</think>\n{B}", 1),
    "marks in drafts": (f"<think>\n^^^a\n<think>\n</think>\n^^^end\n</think>\n{B}", 1),
    "Markdown fences": (f"<think>\n```\n{DRAFT}```\nNo.\n</think>\n```\n{B}```\n", 1),
    "a Markdown fence in the thoughts": (f"<think>\n```\n{DRAFT}</think>\n```\n{B}```\n", 1),
    "a removal": (f"<think>\n^^^a\n^^^delete\n^^^c\n^^^find\nx\n^^^replace\n^^^end\n</think>\n{B}", 2),
    "a stray fence": (f"<think>\nfoo\n^^^end\n^^^^ expected ;\n{DRAFT}</think>\n{B}", 1),
    "a bare end": (f"<think>\n^^^a\nDRAFT\n^^^\n^^^c\n^^^end\n</think>\n{B}", 2),
    "words on the line of the mark": (f"<think>hm</think> Done.\n{B}", 0),
    "a byte order mark": (f"\ufeff<think>\n{DRAFT}</think>\n{B}", 1),
    "thoughts after the answer": (f"{B}<think>\nThat is it.\n</think>\n", 0),
    "an opening mark after the answer": (f"{B}<think>\nThat is it.\n", 0),
    "all of the answer in a tag of its own": (f"<think>\n{DRAFT}</think>\n<answer>\n{B}</answer>\n", 1),
}


@pytest.mark.parametrize(("text", "count"), DROPPED.values(), ids=DROPPED)
def test_blocks_in_thoughts_do_not_count_and_are_told(text, count):
    reasons = Reasons()
    assert [change.path for change in read_response(text, reasons)] == ["b"]
    assert not reasons.kept
    counted = "1 block in the model's thoughts does not count" if count == 1 else f"{count} blocks in the model's"
    assert [warning.kind for warning in reasons.warnings] == ["thoughts"] * bool(count)
    assert all(warning.message.startswith(counted) for warning in reasons.warnings)
    assert ("thoughts-dropped" in reasons.leniences) == (count > 0 or "</" in text.partition(B)[0])
    assert blocks_of(text) == B
    assert "DRAFT" not in notes_of(text)


COUNTED = {
    # a response whose files are a and b
    "backticks": f"{DRAFT}Now all before `</think>`\nand `<think>` is dropped.\n{B}",
    "an example": f"{DRAFT}So:\n```html\n<think>\nhm\n</think>\n```\n{B}",
    "a quotation": f"> <think>\n> hm\n> </think>\n{DRAFT}> </think>\n{B}",
    "a string": f'{DRAFT}END = "</think>"\n{B}',
    "code": f"{DRAFT}    </think>\n{B}",
    "inside of a file": f"^^^a\n<think>\nhm\n</think>\n^^^end\n{B}",
    "inside of an edit": f"^^^a\n^^^find\n</think>\n^^^replace\n<think>\n^^^end\n{B}",
    "a longer block": f"^^^^a\n</think>\n^^^b\n</think>\n^^^end\n^^^^end\n{B}",
    "a word of harmony": f"Its analysis: a.\n{DRAFT}assistantfinal\n{B}",
    "a word of harmony that is spoken of": f"analysis: a has 'assistantfinal'.\n{DRAFT}I look for assistantfinal in it.\n{B}",
    "a mark inside of a block behind a token": f"<|im_start|>assistant^^^a\n</think>\n^^^end\n{B}",
    "a user who is spoken of": f"{DRAFT}The user\nuser: x\n<user>\n{B}",
    "a name": f"{DRAFT}<thinker>\n{B}</thinker2>\n",
    "tags around no block": f"{DRAFT}<b>\nNow the other.\n</b>\n{B}",
    "tags on a line": f"<p>Both</p>\n{DRAFT}<br>\n{B}</p>",
}


@pytest.mark.parametrize("text", COUNTED.values(), ids=COUNTED)
def test_words_about_thoughts_are_not_mistaken_for_them(text):
    reasons = Reasons()
    assert [change.path for change in read_response(text, reasons)] == ["a", "b"]
    assert (reasons.kept, reasons.warnings) == ([], [])


SUSPECTED = {
    # a response, the line of the suspicion, and a word of it
    "all blocks before the mark": (f"{DRAFT}It stays.\n</think>\nNothing to do.\n", 5, "</think>"),
    "all blocks in thoughts": (f"<think>\n{DRAFT}</think>\n", 5, "</think>"),
    "a mark at the end": (f"<think>hm</think>\n{DRAFT}</think>\n", 5, "</think>"),
    "thoughts between blocks that never end": (f"{DRAFT}<think>\n{B}", 4, "<think>"),
    "a mark inside a line": (f"{DRAFT}No.</think> So:\n{B}", 4, "</think>"),
    "a mark alone in a Markdown fence": (f"{DRAFT}```\nx\n</think>\n```\n{B}", 6, "</think>"),
    "another tag": (f"<scratchpad>\n{DRAFT}</scratchpad>\n{B}", 5, "of scratchpad and"),
    "another tag with attributes": (f"Hm.\n<Plan step='1'>\n{DRAFT}</plan>\n{B}", 6, "of plan and"),
    "a part of the answer in a tag of its own": (f"{DRAFT}<answer>\n{B}</answer>\n", 8, "of answer and"),
    "a channel without a token": (f"\nthought\n{DRAFT}{B}", 2, "'thought'"),
    "a turn of another on one line": (f"{DRAFT}<|im_start|>user Now b.\n{B}", 4, "<|im_start|>user"),
    **{
        f"a turn of another, {turn.strip()}": (f"{DRAFT}{turn}Now b.\n{B}", 4, turn.strip())
        for turn in (
            "<|im_end|><|im_start|>user\n",
            "<|start_header_id|>user<|end_header_id|>\n",
            "<|user|>",
            "<|USER_TOKEN|>",
            "</s><s>[INST] ",
            "user\n",
            "### Human: ",
            "[INST]",
        )
    },
    **{
        f"the frame {opening}": (f"{opening}\n{DRAFT}{closing}\n{B}", 5, closing)
        for opening, closing in (
            ("[thinking]", "[/thinking]"),
            ("{thought}", "{/thought}"),
            ("\u3010\u601d\u8003\u3011", "\u3010/\u601d\u8003\u3011"),
            ("<|channel|>analysis", "<|channel|>final"),
            ("<\uff5cbegin\u2581of\u2581thinking\uff5c>", "<\uff5cend\u2581of\u2581thinking\uff5c>"),
            ("Thinking...", "...done thinking."),
        )
    },
}


@pytest.mark.parametrize(("text", "line", "word"), SUSPECTED.values(), ids=SUSPECTED)
def test_blocks_that_may_be_thoughts_are_rejected_once(text, line, word):
    with pytest.raises(RejectedResponseError) as caught:
        parse_response(text)
    (reason,) = caught.value.violations
    assert (reason.rule, reason.path, reason.line, reason.may_be_meant) == ("thoughts", "", line, True)
    assert word in reason.message
    known = Reasons(lambda known: known[:2] == ("thoughts", ""))
    assert read_response(text, known)
    assert not known.kept
    assert [warning.kind for warning in known.warnings] == ["thoughts"]


@pytest.mark.parametrize(
    "text", [f"<think>\n{DRAFT}", f"So.\n<Thinking>\nOnly b.\n\n{B}", f"<think>hm</think><think>\n{B}"]
)
def test_thoughts_that_never_end_hold_no_answer(text):
    for reasons in (Reasons(), Reasons(lambda _: True)):
        read_response(text, reasons)
        assert [(reason.rule, reason.may_be_meant) for reason in reasons.kept] == [("thoughts", False)]
        assert re.match(r"the thoughts that '<(?i:think|thinking)>' begins never end", reasons.kept[0].message)


@pytest.mark.parametrize(
    "text", ["<think>\nAll is fine.\n</think>\n", "<think>\nAll is", " hm\n[/THINK]", "<think>\n</think>"]
)
def test_an_answer_that_is_only_thoughts_says_so(text):
    with pytest.raises(RejectedResponseError, match=r"only thoughts, \d+ characters of them") as caught:
        parse_response(text)
    assert [reason.rule for reason in caught.value.violations] == ["thoughts"]
    assert not notes_of(text)


def test_a_forgotten_end_of_a_file_about_thoughts_drops_nothing():
    text = f"^^^a\nSome print\n<think>\nhm\n</think>\nbefore.\n{B}"
    reasons = Reasons()
    read_response(text, reasons)
    assert [reason.rule for reason in reasons.kept] == ["fence-in-block"]


def test_lists_and_reasons_follow_thoughts():
    with pytest.raises(FilesAskedError) as asked:
        parse_response("<think>\n^^^files\na\n^^^end\n</think>\n^^^files\nb\n^^^end\n")
    assert asked.value.names == ["b"]
    with pytest.raises(DeclinedError, match="no gcc"):
        parse_response(f"<think>\n{DRAFT}</think>\n^^^cannot\nno gcc\n^^^end\n")


THOUGHTS = f"Perhaps a first:\n{DRAFT}No, only b.\n"


def test_thoughts_that_a_text_repeats_end_with_a_mark():
    for repeated in (THOUGHTS, f"\n{THOUGHTS.strip()} ", THOUGHTS.replace("\n", "\r\n")):
        text = end_thoughts(f"{repeated}\n\n{B}", THOUGHTS)
        assert [change.path for change in parse_response(text)] == ["b"]
        assert notes_of(text) == ""


@pytest.mark.parametrize(
    ("text", "thoughts"),
    [
        (f"Only b.\n{B}", "Only b.\n"),
        (f"Only b.\n{B}", f"{THOUGHTS}Only b.\n"),
        (f"Only b.\n{B}", f"Only b.\n{B}"),
        (f"{B}{DRAFT}", B),
        (B, ""),
    ],
)
def test_a_text_that_repeats_no_draft_stays(text, thoughts):
    assert end_thoughts(text, thoughts) == text


@pytest.mark.parametrize("name", ["answer", "files", "changes", "code_changes"])
def test_a_tag_around_all_blocks_and_nothing_else_holds_the_answer(name):
    framed = f"Done:\n<{name}>\n{DRAFT}\n{B}</{name}>\n"
    assert [change.path for change in parse_response(framed)] == ["a", "b"]
    if name != "answer":
        with pytest.raises(RejectedResponseError):
            parse_response(f"<{name}>\nFirst I try this:\n{DRAFT}{B}</{name}>\n")
