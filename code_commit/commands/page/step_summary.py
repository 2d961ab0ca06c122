"""`code-commit log --markdown`: a run as GitHub-flavoured Markdown, for the step summary of a CI job.

Foreign text stands in code spans and in one fenced block only, each with more backticks around it than in it.
"""

import re
from collections.abc import Iterator, Sequence

from code_commit.commands.page.excerpt import read_excerpt
from code_commit.commands.page.logged_run import LoggedRun
from code_commit.commands.page.outcome import headline_of, outcome_of, summary_of
from code_commit.commands.page.result import read_result
from code_commit.commands.page.terminal import terminal_lines
from code_commit.diff import diff_files
from code_commit.run_record import Attempt, RunRecord
from code_commit.summary import dollars, spent
from code_commit.terminal import shown

TAIL_LINES = 60
TAIL_BYTES = 16_000
MOST_ITEMS = 50
MOST_CHARACTERS = 500


def markdown_summary(run: LoggedRun) -> str:
    """Return the summary of a run; it ends with the last lines of a build that failed."""
    return run.redactor.redact_text("\n".join(_lines(run)))


def _lines(run: LoggedRun) -> Iterator[str]:
    record = run.record
    headline = headline_of(record, run.status)
    yield f"## {headline.sign} code-commit: {headline.text}"
    yield ""
    yield f"- Run: {code(record.run)}"
    if record.model:
        yield f"- Model: {code(record.model)}"
    yield f"- {_totals(record)}"
    if record.rolled_back:
        yield "- Rolled back: every file is as it was before."
    yield from (f"- {code(line)}" for line in _first((record.message or "").split("\n")) if line)
    yield from _list("Warnings", [code(warning) for warning in record.warnings])
    if record.attempts:
        yield from _attempts(record.attempts)
    yield from _list("Changed files", list(_changes(run)))
    for attempt in record.attempts[:MOST_ITEMS]:
        reasons = [code(reason) for reason in attempt.reasons]
        yield from _list(f"Attempt {attempt.number} was rejected", reasons)
    yield from _failing_build(run)


def _totals(record: RunRecord) -> str:
    totals = record.totals
    return ", ".join(filter(None, [f"{totals.seconds:.1f} s", spent(totals.usage, totals.cost_usd)]))


def _attempts(attempts: Sequence[Attempt]) -> Iterator[str]:
    """A table; nothing in it is foreign text."""
    yield from ("", "| Attempt | LLM | Build | Tokens in | Tokens out | Cost | Outcome |")
    yield "| ---: | ---: | ---: | ---: | ---: | ---: | :--- |"
    for attempt in attempts[:MOST_ITEMS]:
        usage = attempt.usage
        cells = (
            str(attempt.number),
            _seconds(attempt.seconds),
            _seconds(attempt.build.seconds if attempt.build else None),
            f"{usage.input:,}" if usage else "-",
            f"{usage.output:,}" if usage else "-",
            dollars(attempt.cost_usd),
            summary_of(attempt),
        )
        yield f"| {' | '.join(cells)} |"


def _seconds(seconds: float | None) -> str:
    return "-" if seconds is None else f"{seconds:.1f} s"


def _changes(run: LoggedRun) -> Iterator[str]:
    """Say what the run changed in all; without its snapshot, which files its attempts changed."""
    result = read_result(run) if not run.record.rolled_back else "rolled back"
    if isinstance(result, str):
        applied = [attempt for attempt in run.record.attempts if attempt.verdict == "applied"]
        yield from sorted({code(change.path) for attempt in applied for change in attempt.changes})
        return
    for change in sorted(diff_files(result.edits)[0], key=lambda change: change.path):
        yield f"{change.action} {code(change.path)} +{change.lines_added} -{change.lines_removed}"
    yield from (f"{code(path)}, changed again since" for path in result.unknown)


def _list(title: str, items: Sequence[str]) -> Iterator[str]:
    if items:
        yield from ("", f"### {title}", "")
        yield from (f"- {item}" for item in _first(items))


def _first(items: Sequence[str]) -> list[str]:
    more = [f"and {len(items) - MOST_ITEMS:,} more, in run.json"] if len(items) > MOST_ITEMS else []
    return [*items[:MOST_ITEMS], *more]


def _failing_build(run: LoggedRun) -> Iterator[str]:
    failed = [attempt for attempt in run.record.attempts if attempt.build]
    if not failed or outcome_of(failed[-1]) != "failed":
        return
    number = failed[-1].number
    try:
        excerpt = read_excerpt(run.folder / f"{number}-build.txt", 0, TAIL_BYTES)
    except OSError:
        return
    output = run.redactor.redact(excerpt.head + excerpt.tail).decode("utf-8", "replace")
    lines = [shown("".join(text for text, _ in runs).replace("\t", "    ")) for runs in terminal_lines(output)]
    yield from ("", f"### The end of {number}-build.txt", "")
    yield from fenced(lines[-TAIL_LINES:])


def fenced(lines: Sequence[str]) -> list[str]:
    """Return lines as a fenced block that none of them can close."""
    fence = "`" * max(3, _longest_backticks("\n".join(lines)) + 1)
    return [f"{fence}text", *lines, fence]


def code(text: str) -> str:
    """Return a text as a code span: one line, nothing in it is read as Markdown or HTML."""
    text = shown(text if len(text) <= MOST_CHARACTERS else text[:MOST_CHARACTERS] + " …")
    ticks = "`" * (_longest_backticks(text) + 1)
    pad = " " if not text.strip() or text.startswith(("`", " ")) or text.endswith(("`", " ")) else ""
    return f"{ticks}{pad}{text}{pad}{ticks}"


def _longest_backticks(text: str) -> int:
    return max(map(len, re.findall("`+", text)), default=0)
