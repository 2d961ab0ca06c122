"""The command line: argv -> settings -> command; outcome -> exit code. The one place where errors become messages.

Nothing but argparse is imported before it is known what to do: `--help` and `--version` answer at once.
"""

from __future__ import annotations  # types cost no time at start-up

import gc
import os
import sys

from code_commit.errors import (
    EXIT_BUILD_FAILED,
    EXIT_INTERNAL_ERROR,
    EXIT_SUCCESS,
    CodeCommitError,
    Interrupted,
    NotSetUpError,
)
from code_commit.version import __version__

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path
    from types import FrameType
    from typing import Any, NoReturn

    from code_commit.progress import Progress
    from code_commit.project import Project
    from code_commit.redaction import Redactor
    from code_commit.run_record import Command

EXIT_NOT_SET_UP = 2
EXIT_BROKEN_PIPE = 128 + 13  # SIGPIPE

_OBJECTS_BETWEEN_COLLECTIONS = 50_000
"""Python's own 700 have it look for garbage some 300 times while modules load, a twentieth of a short run's time."""


def command() -> NoReturn:
    """Run the command of this process and end it, without taking down some 300 modules one by one: 15 ms."""
    code = main()
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except (OSError, ValueError, AttributeError):
        sys.exit(code)  # closed or full: the interpreter's own end says so
    os._exit(code)


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    arguments = sys.argv[1:] if argv is None else list(argv)
    gc.set_threshold(_OBJECTS_BETWEEN_COLLECTIONS)
    _open_standard_streams()
    try:
        if arguments == ["--version"]:
            return _print_version()
        _install_signal_handlers()
        return _run_command(arguments)
    except (CodeCommitError, Interrupted) as error:
        _complain(getattr(error, "complaint", str(error)), error)
        return error.exit_code
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return EXIT_BROKEN_PIPE
    except Exception as error:  # noqa: BLE001 - the last resort: a bug ends with its own exit code
        import traceback

        logged = bool(getattr(error, "__notes__", []))
        _complain("a bug in code-commit" if logged else "".join(traceback.format_exception(error)), error)
        return EXIT_INTERNAL_ERROR


def _print_version() -> int:
    try:
        print(f"code-commit {__version__}", flush=True)
    except BrokenPipeError:
        raise
    except OSError as error:
        raise NotSetUpError(f"standard output cannot be written: {error.strerror}") from error
    return EXIT_SUCCESS


def _run_command(arguments: Sequence[str]) -> int:
    from code_commit.arguments import make_parser

    try:
        options = vars(make_parser(arguments).parse_args(arguments))
    except NotSetUpError as error:
        _complain(str(error), error)
        return _fail(error, as_json="--json" in arguments)
    return _FUNCTIONS[options.pop("command", "run")](options)


def _open_standard_streams() -> None:
    """Make sure that there are all three, and that they take any text: whoever started us may have closed them."""
    sys.stdin = sys.stdin or open(os.devnull)  # noqa: PTH123, SIM115 - as long as the process
    sys.stdout = sys.stdout or open(os.devnull, "w")  # noqa: PTH123, SIM115 - the same
    sys.stderr = sys.stderr or open(os.devnull, "w")  # noqa: PTH123, SIM115 - the same
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]


def _print(text: str) -> None:
    """Write a command's result on stdout."""
    from code_commit.commands.report import print_bytes

    print_bytes(f"{text}\n".encode(sys.stdout.encoding or "utf-8", "backslashreplace"))


def _complain(message: str, error: BaseException) -> None:
    """Print what went wrong, with whatever may be a key censored."""
    from code_commit.progress import Progress

    Progress(_redactor(_folder())).error("\n".join([message, *getattr(error, "__notes__", [])]))


def _fail(error: CodeCommitError, *, as_json: bool) -> int:
    """Return the exit code of a command that ends with an error and has no record; print it in JSON if asked to."""
    if as_json:
        from code_commit.commands.report import print_failure

        print_failure(error, _redactor(_folder()))
    return error.exit_code


def _redactor(project: Project) -> Redactor:
    from code_commit.keys import find_secrets
    from code_commit.redaction import Redactor

    return Redactor(find_secrets(project))


def _folder() -> Project:
    """Return the current folder as a project of which nothing is known yet."""
    from code_commit.project import Project

    return Project(root=_current_folder())


def _current_folder() -> Path:
    from pathlib import Path

    try:
        return Path.cwd()
    except OSError:
        return Path(os.sep)


def _install_signal_handlers() -> None:
    import signal

    def interrupt(number: int, _frame: FrameType | None) -> None:
        raise Interrupted(number)

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is not signal.SIG_IGN:  # nohup wants to be left alone
            signal.signal(number, interrupt)


def _reported(command: Command, options: dict[str, Any], act: Callable[[Project, Progress], int]) -> int:
    """Run a command that changes files; with `--json` its record is printed, whatever its end."""
    from code_commit.build import harden_process
    from code_commit.commands.report import reported
    from code_commit.progress import Progress
    from code_commit.project import find_project

    harden_process()
    folder = _folder()
    progress = Progress(_redactor(folder), quiet=options.get("quiet", False))
    with reported(folder, command, options, progress):
        return act(find_project(), progress)


def _plain(act: Callable[[Project], int], wants_json: Callable[[], bool]) -> int:
    """Run a command that is no run and has no record; with `--json` its failure is printed."""
    from code_commit.project import find_project

    try:
        return act(find_project())
    except CodeCommitError as error:
        _complain(str(error), error)
        return _fail(error, as_json=wants_json())


def _run(options: dict[str, Any]) -> int:
    from code_commit.commands.run import report_run

    return _reported("run", options, lambda project, progress: report_run(project, options, progress))


def _apply(options: dict[str, Any]) -> int:
    from code_commit.commands.apply import report_apply

    source, build = options.pop("response"), options.pop("build", False)
    return _reported(
        "apply", options, lambda project, progress: report_apply(project, source, options, progress, build=build)
    )


def _prompt(options: dict[str, Any]) -> int:
    from code_commit.commands.prompt import prompt_command
    from code_commit.commands.report import print_bytes
    from code_commit.project import find_project

    print_bytes(prompt_command(find_project(), options).encode("utf-8", "backslashreplace"))
    return EXIT_SUCCESS


def _resume(options: dict[str, Any]) -> int:
    from code_commit.commands.resume import report_resume

    run = options.pop("run", None) or ""
    return _reported("run", options, lambda project, progress: report_resume(project, run, options, progress))


def _undo(options: dict[str, Any]) -> int:
    from code_commit.commands.undo import report_undo

    run, force = options.pop("run", None) or "", options.pop("force", False)
    return _reported(
        "undo", options, lambda project, progress: report_undo(project, run, options, progress, force=force)
    )


def _rollup(options: dict[str, Any]) -> int:
    from code_commit.commands.report import wants_json
    from code_commit.commands.rollup import Selection, report_rollup

    names = ("pathspecs", "exclude", "lock_file_limit")
    selection = Selection(**{name: options.pop(name) for name in names if name in options})
    return _plain(lambda project: report_rollup(project, selection, options), lambda: wants_json(_folder(), options))


def _check(options: dict[str, Any]) -> int:
    from code_commit.commands.check import report_check
    from code_commit.commands.report import wants_json

    as_json = wants_json(_folder(), options)
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
        from code_commit.commands.report import print_bytes

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


_FUNCTIONS: dict[str, Callable[[dict[str, Any]], int]] = {
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
