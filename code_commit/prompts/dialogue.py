"""The short layout: an exchange of messages without labels, for small models.

Each answer stands in it as the LLM's own message, and what came of it as the next one of the user.
"""

import re
from collections.abc import Sequence
from typing import NamedTuple

from code_commit.codebase.text import header, read_sections, render
from code_commit.regex import regex
from code_commit.terminal import shown
from code_commit.views import FileView

BUILD = "build.sh"
_ROLE = regex(r"^\[(user|assistant)\]\n", re.MULTILINE)  # before each message
_FAILS_ALREADY = "{}\n\nThe script fails already, before any change:\n\n{}\n\nMake it pass as well."
_NOTHING = "(It prints nothing.)"
_FAILED = "The script fails:\n\n{}\n\nFind the cause in the project's files and repair it."
_REJECTED = "This answer cannot be used:\n\n{}\n\nSend it again without these faults."
_ADDED = "These files of the project were not shown so far:\n\n{}"
_CHANGED = "These files were changed since, and are now:\n\n{}"
_ENDS_ALONE = (
    "Your answer differs from these files in line ends or the last newline alone. They stayed as they were. Send one"
    " again only if its ends have to change:\n\n{}"
)
_COPIED = (
    "{} is there now, so {old} has to go if it was renamed. Send only these two lines, which delete it:\n\n"
    "^^^{old}\n^^^delete"
)
_LEFT_OUT = "(This answer was too long to be shown again.)"
_UNKNOWN = "(It is not among the files.)"


class Turn(NamedTuple):
    """An answer, "" if it is too long to be repeated, and what came of it: the output of the build that it failed, or
    the reasons why it was rejected. `files` are those that were shown after it for the first time, `ends_alone` those
    that it would have changed in their line ends alone, `copies` its new files that hold what an old one holds, each
    with the old one.
    """

    response: str
    output: str | None = None
    reasons: Sequence[str] = ()
    files: str = ""
    ends_alone: Sequence[str] = ()
    copies: Sequence[tuple[str, str]] = ()


class Dialogue(NamedTuple):
    """A prompt as messages: the system's, those before the last one, each with its role, and the last one."""

    system: str
    earlier: list[tuple[str, str]]
    last: str


def lay_out_dialogue(
    instructions: str, codebase: str, query: str, turns: Sequence[Turn] = (), changed: str = ""
) -> Dialogue:
    """Return the messages of a prompt. `changed` are files whose text now is in no answer."""
    system, *messages = _ROLE.split(instructions)
    build, files = _apart(codebase)
    values = {"build": build, "codebase": files, "query": query}
    *roles, _ = messages[::2]
    *texts, ask = messages[1::2]
    earlier = [(role, _put_in(text, values)) for role, text in zip(roles, texts, strict=True)]
    last = _put_in(ask, values)
    for turn in turns:
        earlier += [("user", last), ("assistant", f"{turn.response.strip() or _LEFT_OUT}\n")]
        told = [(_ADDED, turn.files), (_CHANGED, changed if turn is turns[-1] else "")]
        told += [(_ENDS_ALONE, "\n".join(map(shown, turn.ends_alone))), _result(turn)]
        said = [sentence.format(text.strip()) for sentence, text in told if text]
        said += [_COPIED.format(shown(new), old=shown(old)) for new, old in turn.copies]
        text = "\n\n".join(said)
        last = f"{text}\n" if turn.copies else _put_in(ask, values | {"query": text})
    return Dialogue(system, earlier, last)


def with_output(query: str, output: str, named: Sequence[FileView], *, repairs: bool) -> str:
    """Return a task with the output of the build that failed before the run, and the files that it names beside the
    codebase; with `repairs` to mend that is all.
    """
    frame = f"{{}}\n\n{_FAILED}" if repairs else _FAILS_ALREADY
    files = "".join(map(render, named)).strip()
    added = f"\n\n{_ADDED.format(files)}" if files else ""
    return frame.format(query.strip() + added, output.strip() or _NOTHING)


def _apart(codebase: str) -> tuple[str, str]:
    """Return the text of build.sh, which no answer may change, and the codebase without it."""
    sections = list(read_sections(codebase))
    build = next((content for path, content in sections if path == BUILD), _UNKNOWN)
    files = "".join(f"{header(path)}{content}\n" for path, content in sections if path != BUILD)
    return build.strip("\n"), files.strip("\n")


def _put_in(text: str, values: dict[str, str]) -> str:
    return re.sub(r"\{(build|codebase|query)\}", lambda name: values[name[1]].strip("\n"), text)


def _result(turn: Turn) -> tuple[str, str]:
    if turn.output is not None:
        return _FAILED, turn.output.strip() or _NOTHING
    return _REJECTED, "\n".join(f"- {reason}" for reason in turn.reasons)
