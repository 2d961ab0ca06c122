"""The choice of files: an LLM reads the query and the outlines, and lists the files that the task needs whole."""

import re
from collections.abc import Callable, Collection, Iterator, Sequence
from itertools import chain
from operator import itemgetter

from code_commit.changes import RejectedResponseError, Violation, quoted
from code_commit.codebase.fit import CHANGE_LOG, DEFINITION, beginning, identifiers, names_in
from code_commit.codebase.text import Section, path_of
from code_commit.exchange import Prompt, Response, labelled
from code_commit.runs.log import AttemptLog, RunLog
from code_commit.runs.words import count, listed
from code_commit.settings import did_you_mean

_FENCE = re.compile(r"\^{3,}[ \t]*(files|end)")
_THINKING = re.compile(r"\A\s*<think>.*?</think>", re.DOTALL)
_ONE_BEFORE = "the last answer has no list: the files of the one before it are taken"
_NO_LIST = "there is no list: send the paths, one a line, between ^^^files and ^^^end"
# of commit messages
_NO_NAMES = re.compile(r"\b\w+://\S+|(?<!\S)[^\s@]+@\S+|^\w+\(\w+\)!?:|^[A-Z][\w-]+-by:.*", re.MULTILINE)
_MENTIONS, _LONGEST_MENTION, _MENTIONS_OF_ONE = 4_000, 120, 8  # characters of all, and of a line; lines of a name
_MANY_LINES, _DEFINES = 40, 0
_MOST_UNKNOWN, _MOST_HINTS = 20, 5
_UNKNOWN = "no file of [codebase] that can be chosen"


class NothingChosenError(RejectedResponseError):
    complaint = "the LLM named no files to roll up: try another --select-model, or code-commit rollup --fit without one"


def selection_prompt(instructions: str, query: str, mentions: str, outlines: str) -> Prompt:
    """Return the prompt that asks which files are needed whole; the task comes last, after the long text."""
    parts = {"codebase": labelled("codebase", outlines), "query": labelled("query", query)}
    parts["mentions"] = labelled("mentions", mentions) if mentions else ""
    return Prompt(instructions, "", "".join(parts.values()), parts)


def find_mentions(files: Sequence[Section], query: str) -> str:
    """Return the lines that hold names from the query's code, or words of its first paragraph, rare names first."""
    found = []
    files = [file for file in files if not CHANGE_LOG.fullmatch(file.name)]
    query = _NO_NAMES.sub("", query)
    for name in identifiers(query, files) or names_in(beginning(query), 6):
        lines = [line for file in files if name in file.content for line in _lines_with(name, file)]
        telling = [line for line in lines if len(lines) <= _MANY_LINES or line[0] == _DEFINES]
        told = [line for *_, line in sorted(telling, key=itemgetter(0, 1))[:_MENTIONS_OF_ONE]]
        more = f", {len(told)} shown" if len(told) < len(lines) else ""
        found += [(len(lines), f"{name}: {count(len(lines), 'line')}{more}\n{''.join(told)}")] if told else []
    mentions = ""
    for _, text in sorted(found):
        mentions += text if len(mentions) + len(text) <= _MENTIONS else ""
    return mentions


def _lines_with(name: str, file: Section) -> Iterator[tuple[int, int, str]]:
    """Yield the lines that hold a name: whether each is a definition, its place among them, and its text."""
    numbered = enumerate(file.content.split("\n"), 1)
    holding = ((number, line) for number, line in numbered if re.search(rf"\b{name}\b", line))
    for place, (number, line) in enumerate(holding):
        is_definition = re.search(DEFINITION % name, line)
        text = f"{file.name}:{number}:{line.strip()[:_LONGEST_MENTION]}\n"
        yield _DEFINES if is_definition else _DEFINES + 1, place, text


def choose_files(
    prompt: Prompt, files: Collection[str], ask: Callable[[Prompt, AttemptLog], Response], log: RunLog
) -> list[str]:
    """Return the files that the LLM chose in two answers at most. Raises NothingChosenError and LLMError."""
    chosen: list[str] | None = None
    attempt, reasons = log.attempt(1), list[Violation]()
    for number in (1, 2):
        attempt = log.attempt(number)
        named, reasons = _read_list(attempt.recorded_response() or ask(prompt, attempt), files)
        chosen = named if named or not reasons else chosen
        if not reasons or (named and number > 1):
            break
        attempt.rejected(rejection := RejectedResponseError(reasons))
        told = "\n".join(f"- {reason}" for reason in rejection.reasons)
        prompt = prompt._replace(rest=prompt.rest + labelled("rejected response", told))
    if chosen is None:
        raise NothingChosenError(reasons)
    if reasons:
        unknown = listed({reason.path for reason in reasons if reason.path})
        log.add_warning("codebase", f"no files of the codebase, not taken: {unknown}" if unknown else _ONE_BEFORE)
    attempt.chose(chosen)
    return chosen


def _read_list(response: Response, files: Collection[str]) -> tuple[list[str], list[Violation]]:
    try:
        lines = _lines_of(_THINKING.sub("", response.complete_text()))
    except RejectedResponseError as rejection:
        return [], list(rejection.violations)
    if lines is None:
        return [], [Violation("", 0, "no-list", _NO_LIST)]
    names = dict.fromkeys(path_of(line, files) for line in lines if line)
    unknown = [name for name in names if name not in files]
    reasons = [
        Violation(quoted(name), 0, "unknown-file", _UNKNOWN + did_you_mean(name, files if number < _MOST_HINTS else ()))
        for number, name in enumerate(unknown[:_MOST_UNKNOWN])
    ]
    return [name for name in names if name in files], reasons


def _lines_of(text: str) -> list[str] | None:
    lists: list[list[str]] = []
    opened: list[str] | None = None
    for line in map(str.strip, text.split("\n")):
        if fence := _FENCE.fullmatch(line):
            if fence[1] == "end" and opened is not None:
                lists.append(opened)
            opened = [] if fence[1] == "files" else None
        elif opened is not None:
            opened.append(line)
    return list(chain.from_iterable(lists)) if lists else None
