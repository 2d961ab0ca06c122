"""What an LLM saw of a file: the one question about it, and its form in the log."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from code_commit.codebase.text import Codebase, file_section, part_of
from code_commit.views import (
    Hidden,
    Name,
    Outline,
    Part,
    Passage,
    Removed,
    Seen,
    Sight,
    Unsure,
    beyond,
    digest_of,
    dump_sight,
    find_current,
    find_unseen,
    is_current,
    load_sight,
    whole_of,
)

TEXT = "one\ntwo\nthree\nfour\n"
PART = Part((Passage(2, "two\nthree\n"),), 4)
SEEN = {
    "whole": (whole_of(TEXT), TEXT, Seen.SEEN),
    "whole, with other line ends": (whole_of(TEXT), "\ufeff" + TEXT.replace("\n", "\r\n"), Seen.SEEN),
    "whole, without a last line end": (whole_of(TEXT), TEXT.rstrip("\n"), Seen.SEEN),
    "whole, and longer now": (whole_of(TEXT), TEXT + "five\n", Seen.STALE),
    "whole, and the beginning of it now": (whole_of(TEXT), "one\n", Seen.STALE),
    "in part": (PART, TEXT, Seen.OUTSIDE_PART),
    "in part, of which blanks changed": (PART, TEXT.replace("two", "two  "), Seen.OUTSIDE_PART),
    "in part, and changed outside of it": (PART, TEXT.replace("four", "4"), Seen.OUTSIDE_PART),
    "in part, and changed in it": (PART, TEXT.replace("two", "2"), Seen.STALE),
    "in part, and longer now": (PART, TEXT + "five\n", Seen.STALE),
    "all lines of it in parts": (part_of(TEXT, [(1, 2), (3, 4)]), TEXT, Seen.SEEN),
    "all lines of it, side by side": (
        Part((Passage(1, "one\ntwo\n"), Passage(3, "three\nfour\n")), 4),
        TEXT,
        Seen.SEEN,
    ),
    "all lines of it, some twice": (Part((Passage(1, TEXT), Passage(2, "two\n")), 4), TEXT, Seen.SEEN),
    "an outline": (Outline(9), TEXT, Seen.UNSEEN),
    "a name": (Name(9), TEXT, Seen.UNSEEN),
    "hidden": (Hidden("binary"), TEXT, Seen.UNSEEN),
    "removed": (Removed(), TEXT, Seen.UNSEEN),
    "empty": (Name(0), "", Seen.SEEN),
    "a line before a text": (Unsure(), TEXT, Seen.UNKNOWN),
    "no view": (None, TEXT, Seen.UNKNOWN),
}


@pytest.mark.parametrize(("view", "text", "seen"), SEEN.values(), ids=SEEN)
def test_whether_a_view_shows_the_file_as_it_is_now(view, text, seen):
    assert is_current(view, text) is seen


ranges = st.lists(st.tuples(st.integers(1, 40), st.integers(0, 9)).map(lambda pair: (pair[0], sum(pair))), max_size=4)


@given(ranges, ranges)
def test_what_a_part_has_beyond_another_is_the_rest_of_its_lines(shown, known):
    text = "".join(f"line {number}\n" for number in range(1, 41))
    part, other = part_of(text, shown), part_of(text, known)
    rest, lines = beyond(part, other), set[str].union(*[set()], *[set(p.text.split("\n")) for p in other.passages])
    assert rest.content == "".join(f"{line}\n" for line in part.content.split("\n")[:-1] if line not in lines)
    assert all(text.split("\n")[passage.first - 1] == passage.text.split("\n")[0] for passage in rest.passages)
    assert beyond(part, part_of(text.replace("line", "row"), [(1, 40)])) == part or not part.passages
    assert all(beyond(part, view) == part for view in (None, Outline(9), part_of(f"{text}more\n", known)))


def test_a_codebase_of_our_own_is_not_searched_for_a_text():
    """A line of another file begins as this one does."""
    texts, codebase = {"a.txt": "one\n", "b.txt": TEXT, "new.txt": "two\n"}, file_section("b.txt", TEXT)
    views = {"a.txt": whole_of("old\n"), "b.txt": whole_of(TEXT)}
    assert find_unseen(texts, Codebase([codebase], views, "made").shown) == {"a.txt", "new.txt"}
    assert find_unseen(texts, Codebase([codebase], {"a.txt": Unsure()}).shown) == set()
    assert find_unseen(texts, Codebase([codebase], {"a.txt": whole_of("old\n")}).shown) == {"a.txt"}, "shown beside it"


paths, sizes, texts = st.text("ab/.\udce4é", min_size=1, max_size=4), st.integers(0, 10**12), st.text(max_size=9)
numbers = st.integers(0, 9)
views = st.one_of(
    st.builds(whole_of, texts),
    st.builds(part_of, st.text("ab\n", max_size=20), st.lists(st.tuples(numbers, numbers), max_size=3)),
    st.builds(Outline, sizes),
    st.builds(Name, sizes),
    st.builds(Hidden, texts),
    st.just(Removed()),
    st.just(Unsure()),
)


@given(st.dictionaries(paths, views, max_size=5), st.sampled_from(["made", "read"]), st.booleans())
def test_a_sight_is_read_back_from_the_log_as_it_was(views, basis, is_partial):
    sight = Sight(views, "the prompt", (), basis, is_partial)
    assert load_sight(json.dumps(dump_sight(sight)).encode(), "the prompt") == sight


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{",
        b"[]",
        b"{}",
        b'{"basis": "made", "is_partial": false, "files": [{"path": "a", "kind": "other"}]}',
        b'{"basis": "made", "is_partial": false, "files": [{"path": "a", "kind": "whole", "digest": 1, "size": 1}]}',
        b'{"basis": "made", "is_partial": false, "files": [{"path": "a", "kind": "part", "passages": [1], "lines": 1}]}',
        b'{"basis": "made", "is_partial": false, "files": {"path": "a", "kind": "removed"}}',
    ],
)
def test_what_is_no_sight_is_none(data):
    assert load_sight(data, "") is None


@given(
    st.text("a\n\r ", max_size=20), st.sampled_from(["", "\ufeff"]), st.lists(st.tuples(numbers, numbers), max_size=3)
)
def test_a_part_is_current_in_the_text_of_which_it_was_made(text, bom, ranges):
    text = bom + text
    assert find_current(part_of(text, ranges), text) is not None


def test_the_digest_is_the_one_of_sha256sum_without_the_last_line_end():
    assert digest_of("ok\n") == "2689367b205c16ce32ed4200942b8b8b1e262dfc70d9bc9fbc77c49699a4f1df"
