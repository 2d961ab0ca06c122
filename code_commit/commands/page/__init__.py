"""`code-commit log --html`, `--open` and `--markdown`: a run for its reviewer, as one page or as Markdown.

The page runs no script and uses no style but its own, named by their hashes in its content security policy.
Everything from the log is foreign text: it is escaped by the template, or by the modules that make markup of it.
"""

import base64
import os
from collections.abc import Mapping, Sequence
from functools import cache
from hashlib import sha256
from importlib import resources
from itertools import accumulate, zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from markupsafe import Markup

from code_commit.commands.page.logged_run import LoggedRun, RunChanges
from code_commit.commands.page.markup import build_view, diff_view
from code_commit.errors import NotSetUpError
from code_commit.files import NotAFileError, read_regular_file, replacing
from code_commit.runs import words
from code_commit.runs.record import BUILT_DIFF, FIRST_BUILD, GIVEN_BUILD, Attempt
from code_commit.terminal import shown

if TYPE_CHECKING:
    from jinja2 import Template

PAGE = "page.html"  # in the run's log folder, where no other file was asked for
BEGINNING = b"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'sha256-"""
"""The beginning of every page: a file without it is not ours."""

RESULT_ROOM = 2_500_000
DIFFS_ROOM = 3_000_000
"""Characters of markup for the result, and for the diffs of all attempts: the page stays under 10 MB."""
_FILES_OF_RUN = ("run.json", FIRST_BUILD, GIVEN_BUILD, BUILT_DIFF, "traceback.txt")
MOST_ATTEMPTS = 100
MOST_LINES = 200  # of a text, reasons, warnings
MOST_CHARACTERS = 2_000  # of each


def write_page(logged: LoggedRun, path: Path) -> Path:
    """Write the page of a run, and return its path.

    Raises NotSetUpError if the file cannot be written, or exists and is not a page of a run.
    """
    target = Path(os.path.realpath(path))
    try:
        there = read_regular_file(target) if target.exists() else b""
        if there and not there.startswith(BEGINNING):
            raise NotSetUpError(f"{path} exists and is not a page of a run; name another file, or remove it")
        with replacing(target) as file:
            file.write(render_page(logged, target.parent))
    except OSError as error:
        advice = "; name a file" if isinstance(error, NotAFileError) else ""
        if isinstance(error, FileNotFoundError):
            advice = f"; create {path.parent} first"
        raise NotSetUpError(f"the page {path} cannot be written: {error.strerror}{advice}") from error
    return target


def render_page(logged: LoggedRun, start: Path) -> bytes:
    """Return the page of a run; its links begin at the folder `start`."""
    return logged.redactor.redact(render_template(__name__, _page_values(logged, start)))


def render_template(package: str, values: Mapping[str, Any]) -> bytes:
    """Return a package's page.html.j2 with the values, its page.js, and its page.css after the one that is here."""
    template, style, script = _template(package)
    return template.render(values, style=style, script=script).encode("utf-8", "replace")


@cache
def _template(package: str) -> tuple["Template", Markup, Markup]:
    """Return a package's compiled page, its style and its script."""
    from jinja2 import Environment, StrictUndefined

    def one_line(value: object) -> object:
        """Return a text with invisible characters escaped, and our own markup as it is."""
        return shown(value) if isinstance(value, str) and not isinstance(value, Markup) else value

    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, finalize=one_line
    )
    environment.filters |= {"count": "{:,}".format, "counted": words.count, "shortened": _shortened}
    in_words = words.duration, words.dollars, words.cost_in_cell, words.choice_in_words
    for said in (*in_words, words.done_by_build, words.rewritten_by_build, words.first_build_of):
        environment.filters[said.__name__] = said
    style = "".join(_text(each, "page.css") for each in dict.fromkeys((__name__, package)))
    script = _text(package, "page.js")
    environment.globals |= {"style_hash": _hash(style), "script_hash": _hash(script)}
    template = environment.from_string(_text(package, "page.html.j2"))
    return template, Markup(style), Markup(script)  # noqa: S704 - our own, and no foreign text in it


def _text(package: str, name: str) -> str:
    return (resources.files(package) / name).read_text("utf-8")


def _hash(text: str) -> str:
    return base64.b64encode(sha256(text.encode()).digest()).decode()


def _page_values(run: LoggedRun, start: Path) -> dict[str, Any]:
    """Return the values of a run's page; its links begin at the folder `start`."""
    record, changes = run.record, run.changes()
    of_build = run.diff(BUILT_DIFF) if record.rewritten else []
    stands = run.applied and changes.in_words and not (record.taken_back or run.patch is not None)
    attempts = record.attempts[:MOST_ATTEMPTS] if record.command != "undo" else []
    built = record.first_build.seconds if record.first_build and not record.choice else 0.0
    starts = list(accumulate((sum(seconds for _, seconds in _times(attempt)) for attempt in attempts), initial=built))
    usages = [call.usage for call in [record.choice, *attempts] if call and call.usage]
    return {
        "run": run,
        "task": run.task,
        "changes": changes,
        "files": diff_view(changes.files, "N-changes.diff of each attempt", RESULT_ROOM),
        "built_files": diff_view(of_build, BUILT_DIFF, RESULT_ROOM // 5),
        "built_changes": of_build,
        "undo": run.name if stands else "",
        "first_build": build_view(run, FIRST_BUILD, min(len(record.attempts) + 1, MOST_ATTEMPTS)),
        "attempts": [_attempt_values(run, *each, changes, start) for each in zip(attempts, starts, strict=False)],
        "seconds": max(record.totals.seconds - record.seconds_before, starts[-1], 0.001),
        "tokens": max((usage.input + usage.output for usage in usages), default=0),
        "files_of_log": [
            *(link for name in _FILES_OF_RUN for link in _links(run.folder, start, name)),
            *(_links(run.root, start, "changes.patch") if run.patch else ()),
        ],
    }


def _attempt_values(
    run: LoggedRun, attempt: Attempt, started: float, changes: RunChanges, start: Path
) -> dict[str, Any]:
    number, share = attempt.number, min(len(run.record.attempts), MOST_ATTEMPTS)
    is_whole = bool(changes.files) and not changes.unknown and not run.record.rewritten
    is_result = is_whole and run.applied in ([number], [])
    files = [] if is_result else run.diff(f"{number}-changes.diff")
    return {
        "attempt": attempt,
        "outcome": words.outcome_of(attempt),
        "summary": words.summary_of(attempt),
        "said": attempt.notes.split("\n") if attempt.notes else [],
        "retries": words.retries_in_words(attempt.retries),
        "started": started,
        "times": _times(attempt),
        "rejections": _rejections(run, attempt),
        "is_result": is_result,
        "changed": files,
        "files": diff_view(files, f"{number}-changes.diff", DIFFS_ROOM // share),
        "build": build_view(run, f"{number}-build.txt", share),
        "links": _links(run.folder, start, f"{number}-*"),
    }


def _rejections(run: LoggedRun, attempt: Attempt) -> list[tuple[str, str]]:
    """Return the reasons of an attempt's rejection, each with its line of the response."""
    response = run.read(f"{attempt.number}-response.txt").split("\n") if attempt.rejections else []
    lines = dict(enumerate(response, start=1))
    sources = [lines.get(violation.line, "")[:MOST_CHARACTERS] for violation in attempt.rejections[:MOST_LINES]]
    return list(zip_longest(_shortened(attempt.reasons), sources, fillvalue=""))


def _times(attempt: Attempt) -> list[tuple[str, float]]:
    """Return the parts of an attempt's time, by their names in the chart."""
    build = "build-failed" if words.outcome_of(attempt) == "failed" else "build"
    seconds = (attempt.seconds, attempt.change_seconds, attempt.build.seconds if attempt.build else 0)
    return [(kind, max(each or 0, 0)) for kind, each in zip(("llm", "change", build), seconds, strict=True)]


def _shortened(lines: Sequence[str]) -> list[str]:
    """Return the first lines of a long text or list, and the beginning of each."""
    first = [line if len(line) <= MOST_CHARACTERS else f"{line[:MOST_CHARACTERS]} …" for line in lines[:MOST_LINES]]
    return first if len(lines) <= MOST_LINES else [*first, f"{len(lines) - MOST_LINES:,} more are in the log"]


def _links(folder: Path, start: Path, pattern: str) -> list[tuple[str, str]]:
    """Return the names and addresses of the log files that match the pattern."""
    names = sorted(path.name for path in folder.glob(pattern) if path.is_file())
    return [(name, f"./{quote(os.path.relpath(folder / name, start))}") for name in names]
