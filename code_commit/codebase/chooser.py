"""The choice of files: an LLM reads the query and the outlines, and lists the files that the task needs whole."""

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import chain, islice
from typing import NamedTuple

from code_commit.changes import RejectedResponseError, Violation, quoted
from code_commit.codebase.parts import FileRequest, read_requests
from code_commit.exchange import Prompt, Response, labelled
from code_commit.files import folders_of
from code_commit.grammar import END, FILES
from code_commit.marks import find_marks
from code_commit.regex import regex
from code_commit.runs.attempt_log import AttemptLog
from code_commit.runs.log import RunLog
from code_commit.runs.words import listed
from code_commit.settings import did_you_mean

_FENCE = regex(rf"\^{{3,}}[ \t]*(?:({FILES.spelling})|{END.word})")
_LIST = regex(rf"^\s*\^{{3,}}[ \t]*{FILES.spelling}", re.MULTILINE)
_ONE_BEFORE = "the last answer has no list: the files of the one before it are taken"
_NO_LIST = "the answer has no list: send the paths, one a line, between ^^^files and ^^^end"
_ANSWER = "answer"
_MOST_UNKNOWN, _MOST_HINTS = 20, 5
_ONLY_OPEN = "Send a list with what is open alone: files of the folders shown now, and right paths for wrong ones."
_UNKNOWN = "no file of [codebase] that can be chosen"


class Choice(NamedTuple):
    """The files that an LLM chose, whole or in part, and its words about them."""

    files: Mapping[str, FileRequest]
    words: str = ""


class NothingChosenError(RejectedResponseError):
    complaint = "the LLM named no files to roll up: try another --select-model, or code-commit rollup --fit without one"


def selection_prompt(instructions: str, outlines: str, told: Mapping[str, str], closing: str) -> Prompt:
    """Return the prompt that asks which files are needed; the task and the `closing` lines follow the long text.

    `told` are the sections beside the codebase by their labels: the query, and others that are not empty.
    """
    parts = {"codebase": labelled("codebase", outlines)}
    parts |= {label: labelled(label, text) if text or label == "query" else "" for label, text in told.items()}
    parts[_ANSWER] = labelled(_ANSWER, closing) if closing else ""
    return Prompt(instructions, "", "".join(parts.values()), parts)


class Shape(NamedTuple):
    """The files that can be chosen; functions that show outlines of folders, and tell what a request lacks."""

    files: Collection[str]
    show: Callable[[Collection[str]], str]
    find_missing: Callable[[FileRequest], Sequence[str]]


def choose_files(prompt: Prompt, shape: Shape, ask: Callable[[Prompt, AttemptLog], Response], log: RunLog) -> Choice:
    """Return the files that the LLM chose in two answers at most. Raises NothingChosenError and LLMError.

    The second answer corrects lines of the first that name nothing, and chooses in folders; only where the first has
    no list is all of it asked for again.
    """
    attempt = AttemptLog(log, 1)
    answer = _read_list(attempt.recorded_response() or ask(prompt, attempt), shape)
    if answer.reasons or answer.folders:
        attempt.rejected(answer.rejection) if answer.reasons else attempt.asked(answer.folders)
        attempt = AttemptLog(log, 2)
        again = _ask_again(prompt, answer, shape.show(answer.folders) if answer.folders else "")
        second = _read_list(attempt.recorded_response() or ask(again, attempt), shape)
        if not (answer.has_list and (answer.requests or answer.folders)) and not second.requests and second.reasons:
            raise NothingChosenError(second.reasons)
        unknown = listed({reason.path for reason in second.reasons if reason.path} | set(second.folders))
        if unknown or second.reasons:
            log.add_warning("codebase", f"ignored, not in the codebase: {unknown}" if unknown else _ONE_BEFORE)
        answer = second._replace(requests=answer.requests | second.requests)
    attempt.chose(list(answer.requests))
    return Choice(answer.requests, "\n".join(done.notes for done in log.record.attempts if done.notes))


class _Answer(NamedTuple):
    requests: dict[str, FileRequest]
    folders: Sequence[str]
    reasons: list[Violation]
    has_list: bool = True

    @property
    def rejection(self) -> RejectedResponseError:
        return RejectedResponseError(self.reasons)


def _ask_again(prompt: Prompt, answer: _Answer, outlines: str) -> Prompt:
    """Return the prompt for what an answer left open: with a list in it the codebase is not sent again."""
    told = "\n".join(f"- {reason}" for reason in answer.rejection.reasons) if answer.reasons else ""
    if not answer.has_list:
        parts = {**prompt.parts, "rejected response": labelled("rejected response", told)}
        parts[_ANSWER] = parts.pop(_ANSWER)  # stays the end
        return prompt._replace(rest="".join(parts.values()), parts=parts)
    done = f"Taken from your last list: {', '.join(answer.requests) or 'nothing'}. {_ONLY_OPEN}"
    parts = {"codebase": labelled("codebase", outlines) if outlines else "", "query": prompt.parts["query"]}
    parts["rejected response"] = labelled("rejected response", f"{told}\n{done}".strip())
    return prompt._replace(rest="".join(parts.values()), parts=parts)


def _read_list(response: Response, shape: Shape) -> _Answer:
    try:
        lines = _lines_of(_after_thoughts(response.complete_text()))
    except RejectedResponseError as rejection:
        return _Answer({}, [], list(rejection.violations), has_list=False)
    if lines is None:
        return _Answer({}, [], [Violation("", 0, "no-list", _NO_LIST)], has_list=False)
    files = shape.files
    requests = read_requests((line for line in lines if line), files)
    others, known = [name for name in requests if name not in files], folders_of(files)
    folders = [name.rstrip("/") for name in others if name.rstrip("/") in known][:_MOST_UNKNOWN]
    unknown = [name for name in others if name.rstrip("/") not in known][:_MOST_UNKNOWN]
    reasons = [
        Violation(quoted(name), 0, "unknown-file", _UNKNOWN + did_you_mean(name, files if number < _MOST_HINTS else ()))
        for number, name in enumerate(unknown)
    ]
    taken = {name: request for name, request in requests.items() if name in files}
    lacking = (
        (name, what) for name, request in taken.items() if not request.is_whole for what in shape.find_missing(request)
    )
    reasons += [Violation(name, 0, "unknown-part", what) for name, what in islice(lacking, _MOST_UNKNOWN)]
    return _Answer(taken, folders, reasons)


def _after_thoughts(text: str) -> str:
    """Return the text after the last mark that ends thoughts before a list."""
    ends = [mark.end for mark in find_marks(text) if not mark.opens]
    return next((text[end:] for end in reversed(ends) if _LIST.search(text[end:])), text)


def _lines_of(text: str) -> list[str] | None:
    lists: list[list[str]] = []
    opened: list[str] | None = None
    for line in map(str.strip, text.split("\n")):
        if fence := _FENCE.fullmatch(line):
            if not fence[1] and opened is not None:
                lists.append(opened)
            opened = [] if fence[1] else None
        elif opened is not None:
            opened.append(line)
    return list(chain.from_iterable(lists)) if lists else None
