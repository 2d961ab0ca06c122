"""The head of a change log: the section for what is not released."""

from code_commit.codebase.change_logs import heads_of_logs
from code_commit.codebase.text import Section, file_section


def test_the_section_for_unreleased_changes_ends_at_a_heading_of_its_level():
    new = "unreleased\n==========\n\n## Improvements\n\n- one\n\n## Fixes\n\n- two\n\n5.0.0\n=====\n\n## Fixes\n"
    text = new + "\n- old\n" * 99
    heads, told = heads_of_logs([Section("HISTORY.md", len(text), file_section("HISTORY.md", text))])
    (head,) = heads.values()
    assert head.content == new.removesuffix("\n## Fixes\n")
    assert told == ["HISTORY.md has a section for changes that are not released: what users notice is entered there\n"]
