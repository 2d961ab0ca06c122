"""The head of a change log: the section for what is not released."""

import string

import pytest

from code_commit.codebase.change_logs import heads_of_logs, is_change_log, logs_of, tell_logs
from code_commit.codebase.text import Section, file_section

LAYOUTS = [
    (
        "CHANGELOG.md",
        "# Changelog\n\nAll notable changes.\n\nThe format is based on [Keep a Changelog](https://k.com/en/1.1.0/),\nand this project adheres to Semantic Versioning 2.0.0.\n\n## [Unreleased]\n\n### Added\n\n- new entry\n\n## [1.2.0] - 2024-01-02\n",
        True,
    ),
    ("CHANGES.md", "# Changes\n\n## Next\n\n- new entry\n\n## 1.2.0\n", True),
    ("CHANGELOG.md", "## master (unreleased)\n\n- new entry\n\n## 1.2.0 (2024-01-02)\n", True),
    (
        "CHANGES.rst",
        "Changelog\n=========\n\nUnreleased\n----------\n\n- new entry\n\n1.2.0 (2024-01-01)\n------------------\n\n- fix\n\n1.1.0\n-----\n\n",
        True,
    ),
    (
        "HISTORY.rst",
        "=======\nHistory\n=======\n\n1.3.0 (unreleased)\n==================\n\n- new entry\n\n1.2.0 (2024-01-01)\n==================\n\n- fix\n\n1.1.0\n=====\n\n",
        True,
    ),
    (
        "CHANGES.rst",
        ".. currentmodule:: click\n\nVersion 1.3.0\n-------------\n\nUnreleased\n\n-   new entry\n\nVersion 1.2.0\n-------------\n\nReleased 2023-01-01\n\n-   fix\n\nVersion 8.0.0\n-------------\n\n",
        True,
    ),
    (
        "CHANGELOG.adoc",
        "= Changelog\n\n== Unreleased\n\n* new entry\n\n== 1.2.0 (2024-01-01)\n\n* fix\n\n== 1.1.0\n\n",
        True,
    ),
    ("CHANGELOG.rdoc", "= 1.3.0 (unreleased)\n\n* new entry\n\n= 1.2.0\n\n* fix\n\n= 1.1.0\n\n", True),
    (
        "CHANGELOG.md",
        "# Changelog\n\n**Unreleased**\n\n- new entry\n\n**1.2.0** (2024-01-01)\n\n- fix\n\n**1.1.0**\n\n",
        True,
    ),
    (
        "Changes",
        "Revision history for Foo\n\n{{$NEXT}}\n    - new entry\n\n1.20  2024-01-01\n    - fix\n\n1.10  2023-01-01\n    - fix\n\n",
        True,
    ),
    ("CHANGES.txt", "Unreleased\n\n  * new entry\n\n1.2.0 (2024-01-01)\n\n  * fix\n\n1.1.0 (2023-01-01)\n\n", True),
    (
        "NEWS",
        "Version 1.3.0 (unreleased):\n- new entry\n\nVersion 1.2.0 (1 May 2020):\n- fix\n\nVersion 1.1.0 (1 May 2019):\n",
        True,
    ),
    (
        "NEWS",
        "GNU grep NEWS                                    -*- outline -*-\n\n* Noteworthy changes in release ?.? (????-??-??) [?]\n\n** Bug fixes\n\n  new entry\n\n* Noteworthy changes in release 1.2 (2023-05-13) [stable]\n\n** Bug fixes\n\n",
        True,
    ),
    (
        "CHANGES.rst",
        "Changelog\n=========\n\n1.2.1.dev0\n----------\n\n- new entry\n\n1.2.0 (2020-01-01)\n------------------\n\n- fix\n\n1.9\n---\n\n",
        True,
    ),
    ("CHANGELOG.md", "# Changelog\n\n## 2.0.0 (TBD)\n\n- new entry\n\n## [1.2.0] - 2024-01-02\n", True),
    (
        "CHANGELOG.md",
        "<h1>Changes</h1>\n\n<h2>Unreleased</h2>\n\n- new entry\n\n<h2>1.2.0</h2>\n\n- fix\n\n<h2>1.1.0</h2>\n\n",
        True,
    ),
    (
        "CHANGELOG.md",
        "# Unreleased\n\n# Added\n\n- a\n\n# Fixed\n\n- new entry\n\n# 1.2.0\n\n- fix\n\n# 1.1.0\n\n",
        True,
    ),
    (
        "CHANGELOG.md",
        "# Changelog\n\nA long text.\nA long text.\nA long text.\nA long text.\nA long text.\nA long text.\nA long text.\nA long text.\nA long text.\nA long text.\nA long text.\nA long text.\nA long text.\nA long text.\nA long text.\nA long text.\nA long text.\nA long text.\nA long text.\nA long text.\nA long text.\nA long text.\nA long text.\nA long text.\nA long text.\nA long text.\nA long text.\nA long text.\nA long text.\nA long text.\nA long text.\nA long text.\nA long text.\nA long text.\nA long text.\nA long text.\nA long text.\nA long text.\nA long text.\nA long text.\nA long text.\nA long text.\nA long text.\nA long text.\nA long text.\nA long text.\nA long text.\nA long text.\nA long text.\nA long text.\nA long text.\nA long text.\nA long text.\nA long text.\nA long text.\nA long text.\nA long text.\nA long text.\nA long text.\nA long text.\nA long text.\nA long text.\nA long text.\nA long text.\nA long text.\nA long text.\nA long text.\nA long text.\nA long text.\nA long text.\n\n## Unreleased\n\n- new entry\n\n## [1.2.0] - 2024-01-02\n",
        True,
    ),
    (
        "CHANGELOG.md",
        "# Changelog\n\n## Unreleased (1.3.0)\n\n### Bug fixes for 1.2.9\n\n- a\n\n### Features\n\n- new entry\n\n## [1.2.0] - 2024-01-02\n",
        True,
    ),
    (
        "HISTORY.md",
        "unreleased\n==========\n\n  * new entry\n\n1.2.0 / 2024-01-01\n==================\n\n  * deps: foo@1.2.3\n    - perf\n\n1.1.0 / 2023\n============\n\n",
        True,
    ),
    ("CHANGELOG.org", "* Unreleased\n\n- new entry\n\n* 1.2.0\n\n- fix\n\n* 1.1.0\n\n", True),
    (
        "NEWS.txt",
        "What's New in Foo 1.3?\n======================\n\n*Release date: XXXX-XX-XX*\n\n- new entry\n\nWhat's New in Foo 1.2?\n======================\n\n- fix\n\nWhat's New in 1.1?\n=======\n\n",
        True,
    ),
    (
        "CHANGELOG.rst",
        "#####\n Log\n#####\n\n.. draft:: Unreleased\n\n*****\n 1.2.0 (2024-01-02)\n*****\n\n- x\n\n***\n 1.1.0\n***\n\n",
        False,
    ),
    (
        "CHANGELOG.md",
        "# Changelog\n\nAll.\n\n## [1.2.0] - 2024-01-02\n\n\n- x\n\n## 1.1.0\n\n- y\n\n## 1.0.0\n\n",
        False,
    ),
    (
        "CHANGELOG.md",
        "# Changelog\n\nUnreleased changes are in changes/.\n\n## [1.2.0] - 2024-01-02\n\n\n- x\n\n## 1.1.0\n\n- y\n\n## 1.0.0\n\n",
        False,
    ),
    (
        "NEWS",
        "Version 1.3.0 (1 May 2021):\n- x\n\nVersion 1.2.0 (1 May 2020):\n- fix\n\nVersion 1.1.0 (1 May 2019):\n",
        False,
    ),
    (
        "CHANGELOG.md",
        "# Changelog\n\n<!--\n## Unreleased\n- template\n-->\n\n## [1.2.0] - 2024-01-02\n\n\n- x\n\n## 1.1.0\n\n- y\n\n## 1.0.0\n\n",
        False,
    ),
    (
        "CHANGELOG.md",
        "# Changelog\n\n## 1.3.0 - 2024-05-05\n\n- x\n\n## 1.2.9 (never released)\n\n- y\n\n## [1.2.0] - 2024-01-02\n\n\n- x\n\n## 1.1.0\n\n- y\n\n## 1.0.0\n\n",
        False,
    ),
    (
        "CHANGELOG.md",
        "# [1.3.0](https://x/compare/v1.2.0...v1.3.0) (2024-01-01)\n\n### Bug Fixes\n\n* a\n\n# [1.2.0](https://x) (2023-01-01)\n\n### Bug Fixes\n\n* b\n\n",
        False,
    ),
    ("CHANGELOG.md", "# Changelog\n\n## Coming soon\n\n- new entry\n\n## [1.2.0] - 2024-01-02\n", None),
    (
        "CHANGELOG.md",
        "# Changelog\n\n## 1.3.0 - 2024-05-05\n\n- x\n\n## 1.2.9 (unreleased)\n\n- y\n\n## [1.2.0] - 2024-01-02\n",
        None,
    ),
    (
        "CHANGES.md",
        "## 1.3.0 (pending)\n\n- new entry\n\n## 1.2.0 (2024-Jan-01)\n\n- fix\n\n## 1.1.0 (2023-Jan-01)\n",
        None,
    ),
]


@pytest.mark.parametrize(("name", "text", "opens"), LAYOUTS)
def test_the_unreleased_section_is_found_in_every_layout(name: str, text: str, *, opens: bool | None):
    """It is shown with the heading after it, and only what is sure is told."""
    text += "- old entry\n" * 300
    heads, wants = heads_of_logs([Section(name, len(text), file_section(name, text))])
    shown = heads[name].content
    assert wants.get(name) is opens
    assert ("new entry" in shown) == ("new entry" in text)
    assert shown.count("old entry") < 70
    assert not opens or "1.2" in shown
    assert opens is not False or "\n- x" not in shown, "of what is released only the heading"


def test_release_notes_are_a_change_log_whatever_their_name():
    notes = "# Notes\n\n" + "".join(f"## Version 1.{number}: all\n\n- an entry\n\n" for number in range(9))
    guide = "# Guide\n\n" + "".join(f"## Step {number}\n\nSince version 1.2.\n\n" for number in range(9))
    texts = {"doc/relnotes_v1.md": notes, "doc/guide.md": guide, "doc/releases.md": guide, "a.py": notes}
    found = [name for name, text in texts.items() if is_change_log(Section(name, 1, file_section(name, text)))]
    assert found == ["doc/relnotes_v1.md", "doc/releases.md"]


def test_the_change_logs_beside_a_choice_are_those_of_its_folders_and_of_the_root_or_the_only_one():
    names = ["docs/changelog.rst", "a/b/NEWS.md", "a/c.py"]
    assert logs_of(names) == {"docs/changelog.rst"}
    assert logs_of([*names, "etc/CHANGES"]) == set(), "nobody knows which one"
    assert logs_of([*names, "CHANGES"]) == {"CHANGES"}
    assert logs_of([*names, "CHANGES"], {"a", "a/b"}) == {"CHANGES", "a/b/NEWS.md"}


def test_a_section_that_is_not_shown_is_not_promised():
    assert tell_logs({"NEWS": True}, set()) == ""
    assert tell_logs({"NEWS": True}, {"NEWS"}).startswith("NEWS has a section for changes")
    assert tell_logs({"NEWS": False}, set()).startswith("NEWS has no section")


def test_the_section_for_unreleased_changes_ends_at_a_heading_of_its_level():
    new = "unreleased\n==========\n\n## Improvements\n\n- one\n\n## Fixes\n\n- two\n\n5.0.0\n=====\n\n## Fixes\n"
    text = new + "\n- old\n" * 99
    heads, wants = heads_of_logs([Section("HISTORY.md", len(text), file_section("HISTORY.md", text))])
    (head,) = heads.values()
    assert head.content == new.removesuffix("\n## Fixes\n")
    assert wants == {"HISTORY.md": True}


@pytest.mark.parametrize("sign", string.printable.split(" ")[0], ids=ascii)
def test_any_line_of_one_sign_is_read(sign: str):
    text = f"Version 1.2.0\n{sign * 13}\n\n- x\n\nVersion 1.1.0\n{sign * 13}\n\n- y\n"
    assert is_change_log(Section("docs/notes.md", len(text), file_section("docs/notes.md", text))) in (True, False)
