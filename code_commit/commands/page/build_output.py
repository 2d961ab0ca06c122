"""A build's output for the page: its first and last lines in their colours."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from markupsafe import Markup

from code_commit.commands.page.excerpt import Excerpt, read_excerpt
from code_commit.commands.page.logged_run import LoggedRun
from code_commit.commands.page.terminal import TerminalMarkup, terminal_lines

MOST_HEAD = 64_000
MOST_TAIL = 192_000
"""Bytes of an output that are read from its beginning and its end: what went wrong stands near the end."""


@dataclass(frozen=True, slots=True)
class BuildView:
    """An output as markup; `left_out` says, in words, what of it is missing between `head` and `tail`."""

    head: Markup
    left_out: str
    tail: Markup
    lines: int


def build_view(run: LoggedRun, name: str, room: int, terminal: TerminalMarkup) -> BuildView | None:
    """Return the view of a build log in at most about `room` characters; None where there is no such file."""
    try:
        excerpt = read_excerpt(run.folder / name, MOST_HEAD, MOST_TAIL)
    except OSError:
        return None
    excerpt = _whole_lines(excerpt)
    first = list(_rendered(run.redactor.redact(excerpt.head), terminal))
    last = list(_rendered(run.redactor.redact(excerpt.tail), terminal))
    if excerpt.left_out:
        head, tail = _fit(first, room // 4), _fit(reversed(last), room * 3 // 4)[::-1]
    elif sum(map(len, first)) > room:
        head, tail = _fit(first, room // 4), _fit(reversed(first), room * 3 // 4)[::-1]
    else:
        head, tail = first, []
    return BuildView(_joined(head), _left_out(excerpt, first, last, head, tail), _joined(tail), len(head) + len(tail))


def _whole_lines(excerpt: Excerpt) -> Excerpt:
    """Move what is left of lines at the gap into the gap, where a line end is near."""
    if not excerpt.left_out:
        return excerpt
    head = excerpt.head[: excerpt.head.rfind(b"\n") + 1] or excerpt.head
    tail = excerpt.tail[excerpt.tail.find(b"\n") + 1 :] or excerpt.tail
    missing = excerpt.left_out + len(excerpt.head) - len(head) + len(excerpt.tail) - len(tail)
    return Excerpt(head, missing, tail)


def _rendered(output: bytes, terminal: TerminalMarkup) -> Iterator[Markup]:
    for runs in terminal_lines(output.decode("utf-8", "replace")):
        yield terminal.line(runs)


def _fit(lines: Iterable[Markup], room: int) -> list[Markup]:
    fitting = []
    for line in lines:
        room -= len(line) + 1
        if room < 0:
            break
        fitting.append(line)
    return fitting


def _joined(lines: list[Markup]) -> Markup:
    return Markup("").join(line + Markup("\n") for line in lines)


def _left_out(excerpt: Excerpt, first: list[Markup], last: list[Markup], head: list[Markup], tail: list[Markup]) -> str:
    lines = len(first) + len(last) - len(head) - len(tail)
    said = [f"{excerpt.left_out:,} bytes"] if excerpt.left_out else []
    said += [f"{lines:,} lines"] if lines else []
    return " and ".join(said)
