"""`code-commit log`: the runs as a table, or one run attempt by attempt, from their run.json."""

import json
import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from code_commit.apply.lock import lock_tree
from code_commit.commands import HOW_NAMED, RUN
from code_commit.commands.diff import net_diff
from code_commit.commands.output import (
    answering,
    print_document,
    print_json,
    print_text,
    redactor_of,
    tell_if_half_changed,
)
from code_commit.commands.results import RESULTS, Result, counting, read_lines
from code_commit.commands.stats import Comparison, StatsRun, collect, runs_of_fleet, stats_table
from code_commit.errors import EXIT_SUCCESS, NotSetUpError
from code_commit.files import is_folder, read_ends, read_regular_file
from code_commit.outputs import telling_lines
from code_commit.project import Project
from code_commit.redaction import Redactor
from code_commit.runs import words
from code_commit.runs.list import (
    UnreadableRun,
    argument_of,
    find_run,
    find_run_folders,
    read_run,
    remove_old_runs,
    short_name,
    status_of,
)
from code_commit.runs.progress import Progress
from code_commit.runs.record import (
    BUILT_DIFF,
    FIRST_BUILD,
    Attempt,
    RunEntry,
    RunRecord,
    load_run_record,
    run_record_schema,
)
from code_commit.settings import POSITIVE_NUMBER
from code_commit.sources import load_settings
from code_commit.status import Status
from code_commit.terminal import TAIL_BYTES, aligned, shown, terminal_width, wrapped
from code_commit.trust import outside_environment

if TYPE_CHECKING:
    from code_commit.commands.page.logged_run import LoggedRun

DESCRIPTION = """\
Lists all runs, oldest first. With RUN (the beginning of its name is enough),
shows that run attempt by attempt, with its rejections, its changes, and the end
of each failed build. --markdown, --html and --open show the latest run if none
is named; --json without RUN prints all runs."""

EXAMPLES = """\
code-commit log
code-commit log -n 10
code-commit log 2026-11-21-19-51
code-commit log --open
code-commit log --stats
code-commit log --markdown >>summary.md"""

_HEAD = ("RUN (UTC)", "STATUS", "TRIES", "FILES", "COST", "TIME", "TASK")
_COST = _HEAD.index("COST")
_TEXTS = (0, 1, 6)  # columns that are no numbers
_LONGEST_TASK, _UNDO = 50, "(undo of "
_LABEL = len("warning   ")
_ALONE = {"alone": True}


@dataclass(frozen=True, slots=True, kw_only=True)
class Arguments:
    run: Annotated[str, "RUN", f"show this run: {HOW_NAMED}", RUN] = ""
    n: Annotated[
        int | None, "N", "list only the latest N runs (also with --json)", {"flag": "-n"} | POSITIVE_NUMBER
    ] = None
    schema: Annotated[bool, "", "print the JSON Schema of run.json", _ALONE] = False
    json: Annotated[bool, "", "print the record of the run, or of all runs, as JSON", _ALONE] = False
    markdown: Annotated[bool, "", "print a CI summary of the run, the latest by default", _ALONE] = False
    html: Annotated[str | None, "FILE", "write a page of the run, the latest by default; - prints it", _ALONE] = None
    prune: Annotated[bool, "", "delete the runs beyond keep_runs and keep_days", _ALONE] = False
    open: Annotated[bool, "", "write the page and open it in a browser"] = False
    stats: Annotated[
        str | None,
        "OUT",
        "print each model's passed runs and costs; with OUT, those of a fleet",
        {"nargs": "?", "const": ""},
    ] = None


def run(arguments: Arguments) -> int:
    with answering(as_json=arguments.json) as project:
        tell_if_half_changed(project)
        _require_fitting(arguments)
        if arguments.stats is not None:
            _print_stats(project, arguments.stats, as_json=arguments.json)
        elif arguments.json:
            print_json(_records_as_json(project, arguments))
        elif arguments.markdown or arguments.html is not None or arguments.open:
            print_document(export_log(project, arguments))
        elif arguments.schema:
            print_json(json.dumps(run_record_schema(), indent=2))
        elif arguments.prune:
            _prune(project)
        elif arguments.run:
            task = _find_task(arguments.run)
            folder, record = task or find_run(project, arguments.run)
            width = terminal_width()
            described = _description(folder, record, redactor_of(project), is_task=task is not None)
            lines = map(shown, described)  # escapes take room
            labels = ((line, _LABEL if line[:_LABEL].endswith("   ") else None) for line in lines)
            print_text("\n".join(row for line, indent in labels for row in wrapped(line, width, indent)))
        else:
            print_text(_table([read_run(folder) for folder in _listed(project, arguments)], terminal_width()))
        return EXIT_SUCCESS


def _require_fitting(arguments: Arguments) -> None:
    """Raise NotSetUpError for what covers several runs beside another argument than --json, and --open for no page."""
    others = replace(arguments, json=False)
    if others.n and others != Arguments(n=others.n):
        raise NotSetUpError("-n limits the list of runs: use it alone or with --json")
    if others.prune and others != Arguments(prune=True):
        raise NotSetUpError("--prune covers all runs: use it without RUN or other options")
    if others.stats is not None and others != Arguments(stats=others.stats):
        raise NotSetUpError("--stats covers all runs: use it without RUN or other options")
    if arguments.open and (arguments.json or arguments.markdown or arguments.html == "-"):
        raise NotSetUpError("--open opens a page: give it alone, or with --html FILE")


def _records_as_json(project: Project, arguments: Arguments) -> bytes:
    """Return the record of the named run, or of all runs. Raises NotSetUpError."""
    redactor = redactor_of(project)
    if run := arguments.run:
        _, record = _find_task(run) or find_run(project, run)
        return redactor.redact_json(record)
    runs = map(read_run, _listed(project, arguments))
    return redactor.redact_json([record for record in runs if isinstance(record, RunRecord)])


def _listed(project: Project, arguments: Arguments) -> list[Path]:
    """Return the log folders of the runs to list, the latest `-n` of them."""
    return find_run_folders(project)[-(arguments.n or 0) :]


def export_log(project: Project, arguments: Arguments) -> bytes:
    """Return the log as Markdown or as a page. Raises NotSetUpError."""
    redactor = redactor_of(project)
    task = _find_task(arguments.run)
    folder, record = task or find_run(project, arguments.run)
    logged = logged_run(folder, project.root, record, redactor)
    if task:
        logged = replace(logged, patch=_diff_in(Path(arguments.run, "changes.patch")))
    if arguments.markdown:
        from code_commit.commands.page.markdown import markdown_summary

        return f"{markdown_summary(logged)}\n".encode("utf-8", "replace")
    from code_commit.commands.page import PAGE, render_page, write_page

    if arguments.html == "-":
        return render_page(logged, Path.cwd())
    page = write_page(logged, Path(arguments.html or folder / PAGE))
    if arguments.open:
        import webbrowser  # a list of the runs does without

        os.environ |= outside_environment(Path.cwd())
        if not webbrowser.open(page.as_uri()):
            Progress(redactor).say("no browser could be started: open the page yourself")
    return f"{shown(str(page))}\n".encode("utf-8", "replace")


def _find_task(name: str) -> RunEntry | None:
    """Return the log folder and the record of a fleet's task, None if this is not the folder of one."""
    if not name or not is_folder(Path(name, "log")) or isinstance(record := read_run(Path(name)), UnreadableRun):
        return None
    return RunEntry(Path(name, "log"), record)


def _diff_in(mail: Path) -> bytes:
    """Return the diff of a task's patch, b"" if it has none."""
    with suppress(FileNotFoundError):
        _, begin, diff = read_regular_file(mail).partition(b"diff --git ")
        return begin + diff
    return b""


def logged_run(folder: Path, root: Path, record: RunRecord, redactor: Redactor) -> "LoggedRun":
    from code_commit.commands.page.logged_run import LoggedRun

    return LoggedRun(
        folder,
        root,
        load_run_record(redactor.redact_json(record)),
        status_of(record),
        redactor,
        name=short_name(record.run),
        argument=argument_of(folder),
        net_diff=lambda: net_diff(folder, root)[:2],
    )


def _print_stats(project: Project, out: str, *, as_json: bool) -> None:
    results = dict[str, Result]()
    with suppress(OSError):
        results = counting(read_lines(Path(out, RESULTS), Result)) if out else results
    unverified = {result.id for result in results.values() if result.status == Status.NOT_VERIFIED}
    runs = ((folder, read_run(folder)) for folder in (runs_of_fleet(Path(out)) if out else find_run_folders(project)))
    found = collect(
        StatsRun(
            run,
            Status.NOT_VERIFIED if folder.name in unverified else status_of(run),
            results[folder.name].cost if folder.name in results else run.cost,
            has_more_runs=folder.name in results and results[folder.name].has_more_runs,
        )
        for folder, run in runs
        if isinstance(run, RunRecord)
    )
    models, labels = [stats._asdict() for stats in found], Comparison.of(results.values())
    if as_json:
        of_fleet = {"models": models, "labels": labels.as_json}
        print_json(redactor_of(project).redact_json(of_fleet if out else models))
    else:
        columns = terminal_width() or 80
        print_text("\n\n".join([stats_table(found, columns), *([labels.table(columns)] if labels.labels else [])]))


def _prune(project: Project) -> None:
    """Remove the runs that are no longer kept, and print their names. Raises NotSetUpError, LogError."""
    settings = load_settings(project, {})
    if not settings.keep_runs and not settings.keep_days:
        raise NotSetUpError("all runs are kept: set keep_runs or keep_days in agent-config/config.toml")
    with lock_tree(project):
        removal = remove_old_runs(project, settings.keep_runs, settings.keep_days)
    said = [f"removed {words.count(len(removal.runs), 'run')}, {removal.size:,} bytes{_names(removal.runs)}"]
    said += [
        f"kept {words.count(len(kept), 'older run')} that {why}{_names(kept)}" for why, kept in removal.kept.items()
    ]
    columns = terminal_width()
    print_text("\n".join(row for line in said for row in wrapped(line, columns)))
    if removal.failures:
        raise removal.failures[0]


def _names(runs: Sequence[str]) -> str:
    return f": {words.listed([short_name(run) for run in runs])}" if runs else ""


def _description(folder: Path, record: RunRecord, redactor: Redactor, *, is_task: bool) -> Iterator[str]:
    """Yield the lines that tell a run; that of a fleet's task is no run of this project, to go on with or to undo."""
    record = replace(record, log_dir=str(folder)) if is_task else record  # its worker's folder is gone
    status = status_of(record)
    yield f"run       {record.run}" + (f" ({record.command})" if record.command != "run" else "")
    yield f"status    {_end(record)}" + (f" (exit code {record.exit_code})" if record.exit_code is not None else "")
    if record.message:
        yield from (f"          {line}" for line in record.message.split("\n"))
    if record.undone:
        yield "          undone since: its changes are no longer in the tree"
    if status != Status.RUNNING and record.has_next_step and not is_task:
        yield from (f"          {line}" for line in words.ways_on(record, f" {_name(record)}"))
    if record.query:
        yield f"task      {record.query}"
    yield f"started   {record.started}"
    if choice := record.choice:
        yield f"rollup    chosen by {choice.run}: {words.choice_in_words(choice)}"
    if record.model:
        yield f"model     {record.model}" + (f" at {record.base_url}" if record.base_url else "")
    yield f"log       {record.log_dir}"
    yield f"total     {words.done_in_all(record)}"
    yield from (f"warning   {warning}" for warning in record.warnings)
    yield from (f"build     {line}" for line in _done_by_builds(record))
    if record.first_build:
        yield from ("", f"before the run: {words.first_build_of(record)}")
        yield from () if record.first_build.passed else _build_tail(folder / FIRST_BUILD, redactor)
    for attempt in record.attempts:
        yield ""
        yield from _attempt_lines(folder, attempt, record, redactor)


def _done_by_builds(record: RunRecord) -> Iterator[str]:
    if rewritten := words.rewritten_by_build(record):
        yield f"also {rewritten}: {record.log_dir}/{BUILT_DIFF}"
    if done := words.done_by_build(record):
        yield f"also {done}"


def _attempt_lines(folder: Path, attempt: Attempt, record: RunRecord, redactor: Redactor) -> Iterator[str]:
    rows = [f"  {row}" for row in words.change_rows(attempt.changes)]
    if record.command == "undo":
        yield from rows
        return
    seconds = "no answer" if attempt.seconds is None else words.duration(attempt.seconds)
    title = words.joined(attempt.kind, "" if attempt.model == record.model else attempt.model)
    head = f"attempt {attempt.number} ({title}): {words.joined(seconds, words.spent(attempt))}"
    yield head if record.asks else "the saved response"
    yield from (f"  retried: {line}" for line in words.retries_in_words(attempt.retries))
    yield from (f"  > {line}" for line in attempt.notes.split("\n") if attempt.notes)
    yield from rows
    yield f"  {words.summary_of(attempt)}"
    yield from (f"    {reason}" for reason in attempt.reasons)
    if words.outcome_of(attempt) == "failed":
        yield from _build_tail(folder / f"{attempt.number}-build.txt", redactor)


def _build_tail(path: Path, redactor: Redactor) -> Iterator[str]:
    """Yield the lines of a failed build that tell most, as a terminal shows them: a key may be whole again in them."""
    try:
        lines = telling_lines(read_ends(path, 0, TAIL_BYTES).tail, f"{path.name} of the log")
    except OSError:
        lines = ["(the build's log is gone)"]
    yield from (f"    | {redactor.redact_text(line)}" for line in lines)


def _table(runs: Sequence[RunRecord | UnreadableRun], columns: int | None) -> str:
    """Return the runs as a table, oldest first, each row cut at the terminal's width (None: not cut)."""
    if not runs:
        return "No run yet."
    rows = [_HEAD, *map(_cells, runs)]
    if columns and max(map(len, aligned(rows, _TEXTS))) > columns:
        rows = [row for cells in rows for row in _with_cost_below(cells)]
    lines = [_cut(_without_date(line, columns), columns) for line in aligned(rows, _TEXTS)]
    notes = [f"{_name(run)} cannot be shown: {run.why}" for run in runs if isinstance(run, UnreadableRun)]
    return "\n".join([*lines, *notes])


def _with_cost_below(cells: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """Yield a row, and one below it for a second part of its cost: the task has the room then."""
    paid, plus, unsettled = cells[_COST].partition(" + ")
    yield (*cells[:_COST], paid, *cells[_COST + 1 :])
    if plus:
        yield (*[""] * _COST, f"+ {unsettled}", "", "")


def _without_date(row: str, width: int | None) -> str:
    """Cut the beginning of an undone run's name if the row is too long: its end distinguishes it."""
    start, undo, name = row.rpartition(_UNDO)
    over = len(row) - width + 1 if width and undo else 0
    return f"{start}{undo}…{name[over:]}" if over > 1 else row


def _cut(text: str, width: int | None) -> str:
    return text if width is None or len(text) <= width else f"{text[: width - 1]}…"


def _end(run: RunRecord) -> str:
    is_dry = run.status == Status.SUCCESS and run.options.get("dry_run")
    return (Status.DRY_RUN if is_dry else status_of(run)).words


def _name(run: RunRecord | UnreadableRun) -> str:
    return shown(short_name(run.run))


def _cells(run: RunRecord | UnreadableRun) -> tuple[str, ...]:
    if isinstance(run, UnreadableRun):
        return (_name(run), "unreadable", *["-"] * 5)
    totals = run.totals
    undoes = f"{_UNDO}{shown(short_name(run.undoes))})" if run.undoes else ""
    kind = f"({run.command}) " if run.command in ("rollup", "repair") else ""
    task = undoes or kind + shown(run.query) or (f"({run.command})" if run.command != "run" else "-")
    return (
        _name(run),
        "undone" if run.undone else _end(run),
        str(totals.attempts) if run.asks else "-",
        str(totals.files_changed),
        words.cost_in_cell(totals.cost, short=True),
        f"{totals.seconds:.1f} s",
        _cut(task, _LONGEST_TASK),
    )
