"""`code-commit check`: every preflight check with its verdict; nothing leaves the machine or is written."""

import sys
from argparse import ArgumentParser
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from typing import Annotated, Any

from code_commit.apply.lock import lock_tree
from code_commit.build import Builder, build_environment, harden_process
from code_commit.check import RunInputs, RunPlan, inputs_of, inspect_run
from code_commit.check.codebase import check_codebase
from code_commit.check.plan import Check, Report, hint_at_init
from code_commit.check.tree import note_lost_failures
from code_commit.commands import add_task
from code_commit.commands.output import answering, output_of, print_coloured, print_json
from code_commit.errors import EXIT_BUILD_FAILED, EXIT_SUCCESS, NoKeyError, NotSetUpError, Word, as_option
from code_commit.outputs import telling_lines
from code_commit.project import Project
from code_commit.runs.progress import Progress
from code_commit.runs.record import BuildResult
from code_commit.runs.words import count, ending_of
from code_commit.settings import OPTIONS, Options, add_settings
from code_commit.terminal import coloured, shown, terminal_width, wrapped

DESCRIPTION = """\
Runs every check that a run makes before it starts, with the same options, and
prints each check with its verdict, problems first. The codebase is assembled
and measured only if nothing else is wrong. Nothing is written, and nothing
leaves this machine. (An LLM server on this machine is asked for its models and
its context window.) Exits with 0 if a run could start, and with 2 if not. With
--build it then runs build.sh once, even without a task or a key, and exits with
1 if only the build fails. --json prints {"ready", "checks", "warnings"}; with
--build also "build" and "build_output"."""

EXAMPLES = """\
code-commit check
code-commit check --build
code-commit check --model openai --sandbox strict"""
_MOST_KEPT = 1 << 17  # bytes of the output, at each end
_COLOURS = {"ok": "green", "PROBLEM": "red", "note": "yellow", "": ""}


@dataclass(frozen=True, slots=True, kw_only=True)
class Arguments:
    """The arguments of the command; `options` are the settings among them, and `word` names settings in problems."""

    task: str | None = None
    query: str | None = None
    build: Annotated[bool, "", "also run build.sh once, on the tree as it is"] = False
    options: Options = field(default_factory=dict)
    word: Word = as_option


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print the results as JSON on stdout")
    add_task(parser)
    add_settings(parser, OPTIONS.keys() - {"json"})


def run(arguments: Arguments) -> int:
    output, build = output_of(arguments.options), arguments.build
    with answering(as_json=output.json) as project:
        inputs = inputs_of(project, arguments.task, arguments.query)
        report = inspect_run(project, arguments.options, inputs, arguments.word)
        if report.problems:
            report.warn("codebase: not checked; solve the problems first")
        elif plan := report.plan:
            check_codebase(report, plan)
        note_lost_failures(report, project)
        ready, blamed, result, printed = None if report.problems else report.plan, "", None, ""
        if build and (buildable := ready or _plan_build(project, arguments.options)):
            progress = Progress(report.redactor, quiet=output.quiet, verbose=output.verbose)
            check, result, printed = _build(project, buildable, report.warn, progress)
            report.checks.append(check)
            blamed = _blamed(buildable, result)
        elif build:
            report.warn("build: not run; solve the problems first")
        if output.json:
            print_json(report.redactor.redact_json(_as_json(report, result, printed, is_ready=ready is not None)))
        else:
            rows = list(_rows(report, quiet=output.quiet))
            if report.problems or not output.quiet:
                end = _end(report, project, is_ready=ready is not None, blamed=blamed)
                rows += [("", row) for row in wrapped(end, terminal_width(), 0)]
            if rows:
                lines = report.redactor.redact_text("\n".join(shown(row) for _, row in rows)).split("\n")
                print_coloured(
                    coloured(verdict, _COLOURS[verdict], sys.stdout) + line.removeprefix(verdict)
                    for (verdict, _), line in zip(rows, lines, strict=True)
                )
        if report.problems:
            return EXIT_BUILD_FAILED if ready else NotSetUpError.exit_code
        return EXIT_SUCCESS


def _end(report: Report, project: Project, *, is_ready: bool, blamed: str) -> str:
    if not is_ready:
        return "; ".join([f"{count(len(report.problems), 'problem')} to solve", *hint_at_init(project)]) + "."
    if report.problems:
        if blamed:
            return f"Ready, but {blamed}: a run would end after its first build."
        return "Ready, but the build fails: a run has to repair that too; code-commit repair does so without a task."
    if any(warning.kind == "server" for warning in report.warnings):
        return "Ready, except for the server: see the note. A run would still try it."
    return "Ready: run code-commit with these options."


def _blamed(plan: RunPlan, build: BuildResult) -> str:
    """Return what made a build fail if no change of the project can mend it, "" otherwise."""
    if build.shell_code in plan.settings.infrastructure_exit_codes:
        return "build.sh says that the machine failed, not the code"
    if build.missing:
        return f"build.sh calls {build.missing}, which is not installed"
    if build.full:
        return f"no space is left for build.sh: {build.full}"
    return "the sandbox made build.sh fail" if build.refused else ""


def _plan_build(project: Project, options: Options) -> RunPlan | None:
    """Return the plan of a build alone, which needs no task and no LLM; None where even that has a problem."""
    report = inspect_run(project, options, RunInputs(command="apply"))
    return None if report.problems else report.plan


def _build(
    project: Project, ready: RunPlan, warn: Callable[[str], object], progress: Progress
) -> tuple[Check, BuildResult, str]:
    """Run build.sh and return its result, as a check too, and its output. Raises BuildError if it cannot be run."""
    head, tail, size = bytearray(), bytearray(), 0

    def keep(piece: bytes) -> None:
        nonlocal size
        size += len(piece)
        room = _MOST_KEPT - len(head)
        head.extend(piece[:room])
        tail.extend(piece[room:])
        del tail[:-_MOST_KEPT]
        progress.output(piece)

    harden_process()
    stream = ready.redactor.stream(keep)
    environment = build_environment(ready.inputs.environment, ready.keys.texts, 1, "check")
    with lock_tree(project), Builder(project, ready.sandbox) as builder:
        timeout = ready.settings.build_timeout
        result = builder.run(stream.write, timeout=timeout, environment=environment, warn=warn)
    stream.close()
    if size and not (head + tail).endswith(b"\n"):
        progress.output(b"\n")
    lost = size - len(head) - len(tail)
    gap = f"\n[... {lost:,} bytes of the output are left out here ...]\n".encode() if lost else b""
    printed = (head + gap + tail).decode("utf-8", "replace")
    if result.passed:
        return Check("build", None, ending_of(result)), result, printed
    output = [f"| {line}" for line in telling_lines(bytes(head + tail))]
    return Check("build", f"fails: {ending_of(result)}", output=output), result, printed


def _as_json(report: Report, build: BuildResult | None, printed: str, *, is_ready: bool) -> dict[str, Any]:
    checks = [
        {"name": check.name, "problem": check.problem and "\n".join([check.problem, *check.output]), "note": check.note}
        for check in report.checks
    ]
    found = {"ready": is_ready, "checks": checks, "warnings": list(map(str, report.warnings))}
    if not build:
        return found
    return found | {"build_exit_code": build.shell_code, "build": asdict(build), "build_output": printed}


def _rows(report: Report, *, quiet: bool) -> Iterator[tuple[str, str]]:
    """Yield the rows of checks, problems first, and warnings, each with its verdict; with `quiet`, of problems alone.

    If a key is missing, the keys that are there are no "ok".
    """
    lacks_key = any(isinstance(check.error, NoKeyError) for check in report.checks)
    width = max(len(check.name) for check in report.checks)
    for check in sorted(report.checks, key=lambda check: check.problem is None):
        if check.problem is not None:
            yield from _row("PROBLEM", f"{check.name:{width}}", check.problem.split("\n"), check.output)
        elif not quiet and not (lacks_key and check.name == "keys"):
            yield from _row("ok", f"{check.name:{width}}", [check.note])
    for warning in dict.fromkeys(() if quiet else report.warnings):
        yield from _row("note", " " * width, str(warning).split("\n"))


def _row(verdict: str, name: str, said: Sequence[str], output: Sequence[str] = ()) -> Iterator[tuple[str, str]]:
    """Yield the terminal's rows of a check, indented as its first one; each of several problems is marked.

    A build's output has the room that it has in a run.
    """
    lead, mark = f"{verdict:7}  {name}  ", "- " if len(said) > 1 else ""
    for line in said:
        for row in wrapped(f"{lead}{mark}{line}".rstrip(), terminal_width(), len(lead) + len(mark)):
            yield verdict, row
            verdict = ""
        lead = " " * len(lead)
    for line in output:
        yield from (("", row) for row in wrapped(f"  {line}", terminal_width()))
