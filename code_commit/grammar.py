r"""The words of the fences of an answer, one row each; the parser has the grammar in full.

A fence is a line that begins with `^^^` or more carets. After them stands a path, or one of these words.
"""

from enum import Enum, auto
from typing import NamedTuple

from code_commit.regex import regex

SHORTEST_FENCE = "^^^"


class Role(Enum):
    CLOSES = auto()  # ends the block of a path, and holds nothing
    EDITS = auto()  # stands in the block of a path; lines of the file follow, up to the next fence
    ALONE = auto()  # opens a block beside which no other may stand; words follow, up to `^^^end`


class Fence(NamedTuple):
    """A word, its role, and the system prompts that tell it.

    The others are for a fence that stands alone: `spelling` is the pattern of its word, `before` that of what follows
    in its line. `mixed` is the message about one beside other blocks. `empty` is that about one without words below it,
    or with some in its line, and `empty_rule` its rule.
    """

    word: str
    role: Role
    told_in: tuple[str, ...]
    spelling: str = ""
    before: str = ""
    mixed: str = ""
    empty_rule: str = ""
    empty: str = ""


_FILES_AND_EDITS = ("code_modification_instructions", "edit_instructions", "short_instructions")
_CLOSINGS = ("initial_query", "first_repair_query", "rejected_response", "repair_query")

END = Fence("end", Role.CLOSES, (*_FILES_AND_EDITS, *_CLOSINGS, "project_structure", "file_selection"))
DELETE = Fence("delete", Role.CLOSES, ("code_modification_instructions", "short_instructions"))
FIND = Fence("find", Role.EDITS, ("edit_instructions",))
TO = Fence("to", Role.EDITS, ("edit_instructions",))
REPLACE = Fence("replace", Role.EDITS, ("edit_instructions",))
FILES = Fence(
    "files",
    Role.ALONE,
    ("project_structure", "file_selection", "edit_instructions"),
    r"(?i:files):?",
    r"\Z",
    "^^^files stands beside other blocks: send it alone, or them without it (a file of this name: ^^^./files)",
    "no-list",
    "^^^files names no file: write the paths on the lines after it",
)
CANNOT = Fence(
    "cannot",
    Role.ALONE,
    ("code_modification_instructions", "first_repair_query", "repair_query"),
    r"(?i:cannot)",
    r"(?![\w/-]|\.\S)",
    "^^^cannot stands beside blocks of files: send it alone, or the files without it",
    "no-reason",
    "^^^cannot must stand alone on its line, with the reason on the lines after it",
)

FENCES = {fence.word: fence for fence in (END, DELETE, FIND, TO, REPLACE, FILES, CANNOT)}
CLOSING = tuple(word for word, fence in FENCES.items() if fence.role is Role.CLOSES)
EDITING = tuple(word for word, fence in FENCES.items() if fence.role is Role.EDITS)
INNER = (*CLOSING, *EDITING)  # the words that never open a block: a file of such a name is sent as `./end`
ALONE = tuple(word for word, fence in FENCES.items() if fence.role is Role.ALONE)
"""The first of them that an answer has is the one that is wrong beside others."""

OPENING_ALONE = regex("|".join(f"(?P<{word}>{FENCES[word].spelling}{FENCES[word].before})" for word in ALONE))
"""Matches what a fence line says if it opens a block that stands alone; a file of its name is sent as `./cannot`."""
