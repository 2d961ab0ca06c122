"""`code-commit log --markdown`: a run as GitHub-flavoured Markdown, for the step summary of a CI job.

Foreign text is in code spans and fenced blocks alone, each with more backticks around it than in it.
"""

import re
from collections.abc import Iterator, Sequence
from contextlib import suppress

from code_commit.commands.page.changes import FileDiff
from code_commit.commands.page.logged_run import LoggedRun
from code_commit.files import read_ends
from code_commit.outputs import telling
from code_commit.runs import words
from code_commit.runs.record import FIRST_BUILD, Attempt
from code_commit.terminal import TAIL_BYTES, render, shown

TAIL_LINES = 60
MOST_ITEMS = 50
MOST_CHARACTERS = 500


def markdown_summary(run: LoggedRun) -> str:
    """Return the summary of a run, with the last lines of a failed build at its end."""
    return run.redactor.redact_text("\n".join(_lines(run)))


def _lines(run: LoggedRun) -> Iterator[str]:
    record, headline, changes = run.record, run.headline, run.changes()
    attempts = record.attempts[:MOST_ITEMS] if record.command != "undo" else []
    yield f"## {headline.sign} code-commit: {headline.text}"
    yield from ("", run.numbers(changes.in_words), "")
    yield from _items([code(line) for line in run.message])
    model = [f"Model: {code(record.model)}"] if record.model else []
    choice = [f"Choice of files: {code(words.choice_in_words(record.choice))}"] if record.choice else []
    yield from _items([f"Run: {code(record.run)}", *model, *choice])
    yield from _block("The task", run.task)
    for attempt in attempts:
        said = attempt.notes.split("\n") if attempt.notes else []
        yield from _block(f"What the LLM said in attempt {attempt.number}", said)
    yield from _section("Changed tests, CI files and build files", [code(line) for line in run.checks(changes)])
    yield from _section("Warnings", [code(warning) for warning in run.warnings])
    if done := words.done_by_build(record):
        yield from ("", f"{words.who_changed(record)} also {code(done)}")
    if rewritten := words.rewritten_by_build(record):
        yield from ("", f"The build also {code(rewritten)}")
    files = [_change(file) for file in changes.files] + [f"{code(path)}, not known" for path in changes.unknown]
    why = f"{changes.reason} {code(changes.error)}" if changes.error else changes.reason
    yield from _section("Changes" if changes.is_made else "Would change", files or [why])
    ends = [words.joined(_summary(attempt), words.spent(attempt)) for attempt in attempts]
    if before := words.first_build_of(record):
        yield from ("", f"Before the run: {before}")
    yield from _section("Attempts", ends)
    for attempt in attempts:
        yield from _section(f"Attempt {attempt.number} was rejected", [code(reason) for reason in attempt.reasons])
    built = {FIRST_BUILD: record.first_build} if record.first_build else {}
    built |= {f"{attempt.number}-build.txt": attempt.build for attempt in record.attempts if attempt.build}
    if built and not [*built.values()][-1].passed:
        name = [*built][-1]
        with suppress(OSError):
            output = run.redactor.redact_cut(render(read_ends(run.folder / name, 0, TAIL_BYTES).tail))
            lines = output.rstrip("\n").split("\n")
            yield from _block(f"From {name}", [lines[number] for number in telling(lines, TAIL_LINES)])


def _summary(attempt: Attempt) -> str:
    said = words.summary_of(attempt)
    return code(said) if attempt.asked else said  # paths may hold any character


def _change(file: FileDiff) -> str:
    action = "create" if file.is_new else "delete" if file.is_deleted else "replace"
    action = f"rename {code(file.renamed_from)} to" if file.renamed_from else action
    return f"{action} {code(file.path)} +{file.count('+')} -{file.count('-')}"


def _section(title: str, items: Sequence[str]) -> Iterator[str]:
    if items:
        yield from ("", f"### {title}", "", *_items(items))


def _items(items: Sequence[str]) -> list[str]:
    more = [f"- and {len(items) - MOST_ITEMS:,} more, in the log"] if len(items) > MOST_ITEMS else []
    return [*(f"- {item}" for item in items[:MOST_ITEMS]), *more]


def _block(title: str, lines: Sequence[str]) -> Iterator[str]:
    """Yield lines as a fenced block that none of them can close."""
    texts = [shown(line[:MOST_CHARACTERS].replace("\t", "    ")) for line in lines[: 2 * MOST_ITEMS]]
    fence = "`" * max(3, _longest_backticks("\n".join(texts)) + 1)
    if lines:
        yield from ("", f"### {title}", "", f"{fence}text", *texts, fence)


def code(text: str) -> str:
    """Return a text as a code span of one line, with nothing in it read as Markdown or HTML."""
    text = shown(text if len(text) <= MOST_CHARACTERS else text[:MOST_CHARACTERS] + " …")
    ticks = "`" * (_longest_backticks(text) + 1)
    pad = " " if not text.strip() or text.startswith(("`", " ")) or text.endswith(("`", " ")) else ""
    return f"{ticks}{pad}{text}{pad}{ticks}"


def _longest_backticks(text: str) -> int:
    return max(map(len, re.findall("`+", text)), default=0)
