"""From the words of the command line to the command.

Nothing but argparse is loaded before it is known what to do, then only what that needs: `--help` answers at once.
"""

from __future__ import annotations  # types cost no time at start-up

import sys

from code_commit.complaints import complain, fail, redactor_of, unknown_project
from code_commit.errors import EXIT_BUILD_FAILED, EXIT_SUCCESS, CodeCommitError, NotSetUpError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from code_commit.progress import Progress
    from code_commit.project import Project
    from code_commit.run_record import Command


def run_command(arguments: Sequence[str]) -> int:
    """Run the command that the words name and return its exit code. Raises CodeCommitError and Interrupted."""
    from code_commit.arguments import make_parser

    try:
        options = vars(make_parser(arguments).parse_args(arguments))
    except NotSetUpError as error:
        complain(str(error), error)
        return fail(error, as_json="--json" in arguments)
    return _COMMANDS[options.pop("command", "run")](options)


def _print(text: str) -> None:
    """Write a command's result on stdout."""
    from code_commit.commands.standard_output import print_bytes

    print_bytes(f"{text}\n".encode(sys.stdout.encoding or "utf-8", "backslashreplace"))


def _reported(command: Command, options: dict[str, Any], act: Callable[[Project, Progress], int]) -> int:
    """Run a command that changes files; with `--json` its record is printed, whatever its end."""
    from code_commit.build import harden_process
    from code_commit.commands.report import reported
    from code_commit.progress import Progress
    from code_commit.project import find_project

    harden_process()
    folder = unknown_project()
    progress = Progress(redactor_of(folder), quiet=options.get("quiet", False))
    with reported(folder, command, options, progress):
        return act(find_project(), progress)


def _plain(act: Callable[[Project], int], wants_json: Callable[[], bool]) -> int:
    """Run a command that is no run and has no record; with `--json` its failure is printed."""
    from code_commit.project import find_project

    try:
        return act(find_project())
    except CodeCommitError as error:
        complain(str(error), error)
        return fail(error, as_json=wants_json())


def _run(options: dict[str, Any]) -> int:
    def act(project: Project, progress: Progress) -> int:  # loads when a signal's end can be reported
        from code_commit.commands.run import report_run

        return report_run(project, options, progress)

    return _reported("run", options, act)


def _apply(options: dict[str, Any]) -> int:
    from code_commit.commands.apply import report_apply

    source, build = options.pop("response"), options.pop("build", False)
    return _reported(
        "apply", options, lambda project, progress: report_apply(project, source, options, progress, build=build)
    )


def _prompt(options: dict[str, Any]) -> int:
    from code_commit.commands.prompt import prompt_command
    from code_commit.commands.standard_output import print_bytes
    from code_commit.project import find_project

    print_bytes(prompt_command(find_project(), options).encode("utf-8", "backslashreplace"))
    return EXIT_SUCCESS


def _resume(options: dict[str, Any]) -> int:
    run = options.pop("run", None) or ""

    def act(project: Project, progress: Progress) -> int:
        from code_commit.commands.resume import report_resume

        return report_resume(project, run, options, progress)

    return _reported("run", options, act)


def _undo(options: dict[str, Any]) -> int:
    from code_commit.commands.undo import report_undo

    run, force = options.pop("run", None) or "", options.pop("force", False)
    return _reported(
        "undo", options, lambda project, progress: report_undo(project, run, options, progress, force=force)
    )


def _rollup(options: dict[str, Any]) -> int:
    from code_commit.commands.rollup import Selection, report_rollup
    from code_commit.commands.standard_output import wants_json

    names = ("pathspecs", "exclude", "lock_file_limit")
    selection = Selection(**{name: options.pop(name) for name in names if name in options})
    return _plain(
        lambda project: report_rollup(project, selection, options), lambda: wants_json(unknown_project(), options)
    )


def _check(options: dict[str, Any]) -> int:
    from code_commit.commands.check import report_check
    from code_commit.commands.standard_output import wants_json

    as_json = wants_json(unknown_project(), options)
    return _plain(lambda project: report_check(project, options, as_json=as_json), lambda: as_json)


def _init(_options: dict[str, Any]) -> int:
    from code_commit.commands.init import init_command, next_steps
    from code_commit.project import find_project

    project = find_project()
    written = init_command(project)
    _print("\n".join(written or ["Nothing is missing; nothing was written."]))
    _print(next_steps(project))
    return EXIT_SUCCESS


def _log(options: dict[str, Any]) -> int:
    return _plain(lambda project: _print_log(project, options), lambda: "json" in options)


def _print_log(project: Project, options: dict[str, Any]) -> int:
    from code_commit.arguments import LOG_FORMS
    from code_commit.commands.log import log_command

    if LOG_FORMS & options.keys():
        from code_commit.commands.page.export import export_log
        from code_commit.commands.standard_output import print_bytes

        print_bytes(export_log(project, options))
    else:
        _print(log_command(project, options.get("run"), schema=options.get("schema", False)))
    return EXIT_SUCCESS


def _demo(_options: dict[str, Any]) -> int:
    from code_commit.commands.demo import demo_result, make_demo_project, run_demo
    from code_commit.progress import Progress
    from code_commit.redaction import Redactor

    project = make_demo_project()
    record = run_demo(project, Progress(Redactor([])))
    sys.stderr.flush()
    _print(demo_result(project, record))
    return EXIT_SUCCESS if record.exit_code == EXIT_SUCCESS else EXIT_BUILD_FAILED


def _completion(options: dict[str, Any]) -> int:
    import shtab

    from code_commit.arguments import COMMAND_NAMES, make_parser

    _print(shtab.complete(make_parser(["", *COMMAND_NAMES]), options["shell"]))
    return EXIT_SUCCESS


_COMMANDS: dict[str, Callable[[dict[str, Any]], int]] = {
    "run": _run,
    "init": _init,
    "rollup": _rollup,
    "check": _check,
    "prompt": _prompt,
    "apply": _apply,
    "undo": _undo,
    "resume": _resume,
    "log": _log,
    "demo": _demo,
    "completion": _completion,
}
