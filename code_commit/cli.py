"""The command line: argv -> settings -> command; outcome -> exit code. The one place where errors become messages.

Nothing but argparse is imported before it is known what to do: `--help` and `--version` answer at once.
"""

import argparse
import os
import signal
import sys
from collections.abc import Callable, Sequence
from types import FrameType
from typing import TYPE_CHECKING, Any, Literal, get_args, get_origin

from code_commit.changes import RejectedResponseError
from code_commit.errors import EXIT_BUILD_FAILED, EXIT_INTERNAL_ERROR, EXIT_SUCCESS, CodeCommitError, Interrupted
from code_commit.version import __version__

if TYPE_CHECKING:
    from pathlib import Path

    from code_commit.progress import Progress
    from code_commit.project import Project

EXIT_NOT_SET_UP = 2
EXIT_BROKEN_PIPE = 128 + signal.SIGPIPE

DESCRIPTION = """\
Ask an LLM for a code change, apply its answer whole or not at all, run build.sh,
and let the LLM repair a failing build up to three times.

The task is agent-config/query.txt, the codebase agent-config/codeRollup.txt.
Nothing is committed: review with git status and git diff."""

EPILOG = """\
exit codes:
  0  the build passes after the last change
  1  the build still fails after the last repair
  2  not set up, or wrong usage: nothing was sent or changed
  3  the LLM could not be asked (network, key, quota, budget)
  4  no usable response: the last one was rejected
  5  build.sh could not be run, or the files could not be written
  70 a bug in code-commit; 130, 143 interrupted

a first run:
  code-commit demo        watch the whole loop: no key, no network
  code-commit init        write what your project lacks
  code-commit check       see what is left to do
  code-commit             run"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    arguments = sys.argv[1:] if argv is None else list(argv)
    if arguments == ["--version"]:
        print(f"code-commit {__version__}")
        return EXIT_SUCCESS
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    options = vars(_parser(arguments).parse_args(arguments))
    command: Callable[[dict[str, Any]], int] = options.pop("command", _run)
    try:
        _install_signal_handlers()
        return command(options)
    except RejectedResponseError as error:
        reasons = "" if not options.get("quiet") else f":\n{error}"  # its step has listed them already
        _complain(f"no usable response, the last one was rejected{reasons}", error)
        return error.exit_code
    except (CodeCommitError, Interrupted) as error:
        _complain(str(error), error)
        return error.exit_code
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return EXIT_BROKEN_PIPE
    except Exception as error:  # noqa: BLE001 - the last resort: a bug ends with its own exit code
        import traceback

        logged = bool(getattr(error, "__notes__", []))
        _complain("a bug in code-commit" if logged else "".join(traceback.format_exception(error)), error)
        return EXIT_INTERNAL_ERROR


def _complain(message: str, error: BaseException) -> None:
    """Print what went wrong, with whatever may be a key censored."""
    from code_commit.config import find_secrets
    from code_commit.progress import Progress
    from code_commit.project import Project
    from code_commit.redaction import Redactor

    secrets = find_secrets(Project(root=_current_folder()))
    Progress(Redactor(secrets)).error("\n".join([message, *getattr(error, "__notes__", [])]))


def _current_folder() -> "Path":
    from pathlib import Path

    try:
        return Path.cwd()
    except OSError:
        return Path(os.sep)


def _install_signal_handlers() -> None:
    def interrupt(number: int, _frame: FrameType | None) -> None:
        raise Interrupted(number)

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is not signal.SIG_IGN:  # nohup wants to be left alone
            signal.signal(number, interrupt)


class _Parser(argparse.ArgumentParser):
    """An argument parser that names an unknown option, where argparse would take its value for the command."""

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        arguments = sys.argv[1:] if args is None else list(args)
        for argument in arguments:
            if argument in _COMMANDS_BY_NAME or argument == "--":
                break
            name = argument.partition("=")[0]
            if name.startswith("--") and name not in self._option_string_actions:
                self.error(f"unrecognized arguments: {argument}")
        return super().parse_known_args(arguments, namespace)


def _parser(arguments: Sequence[str]) -> argparse.ArgumentParser:
    """Return the parser, with the arguments of those commands that may be meant: all of them cost start-up time."""
    parser = _Parser(
        prog="code-commit",
        usage="code-commit [OPTIONS]\n       code-commit COMMAND [ARGUMENTS]",
        description=DESCRIPTION,
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
        argument_default=argparse.SUPPRESS,
    )
    parser.add_argument(
        "--version", action="version", version=f"code-commit {__version__}", help="show the version and exit"
    )
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", prog="code-commit")
    if not arguments or arguments[0] not in _COMMANDS_BY_NAME:
        _add_settings(parser)
    for name, function, help_text, add_arguments in _COMMANDS:
        command = commands.add_parser(
            name,
            help=help_text,
            description=help_text[0].upper() + help_text[1:] + ".",
            allow_abbrev=False,
            argument_default=argparse.SUPPRESS,
        )
        if name in arguments:
            add_arguments(command)
        command.set_defaults(command=function)
    return parser


def _add_settings(parser: argparse.ArgumentParser, names: Sequence[str] = ()) -> None:
    """Add the options of the main job, all or those named.

    One that is not given is absent from the result and overrides nothing.
    """
    from code_commit.config import OPTIONS, parse_value

    group = parser.add_argument_group(
        "options of the main job", "each also a key of agent-config/config.toml and a variable CODE_COMMIT_..."
    )
    for name in names or OPTIONS:
        field = OPTIONS[name]
        flag, help_text = "--" + name.replace("_", "-"), field.metadata["help"]
        if field.type is bool:
            group.add_argument(flag, action="store_true", help=help_text)
        elif get_origin(field.type) is Literal:
            group.add_argument(flag, choices=get_args(field.type), help=help_text)
        elif field.default == ():
            group.add_argument(flag, action="append", metavar=field.metadata["metavar"], help=help_text)
        else:
            group.add_argument(flag, type=_Value(name, parse_value), metavar=field.metadata["metavar"], help=help_text)


class _Value:
    """An option's type for argparse: what does not fit is said in the setting's own words."""

    def __init__(self, name: str, parse: Callable[[str, str], Any]) -> None:
        self._name = name
        self._parse = parse

    def __call__(self, text: str) -> Any:
        try:
            return self._parse(self._name, text)
        except ValueError as error:
            raise argparse.ArgumentTypeError(str(error)) from error


def _add_log_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run", nargs="?", metavar="RUN", help="show this run; the beginning of its name is enough")
    forms = parser.add_mutually_exclusive_group()
    forms.add_argument("--schema", action="store_true", help="print the JSON Schema of run.json")
    forms.add_argument("--json", action="store_true", help="print the record of the run, or of all runs, as JSON")
    forms.add_argument("--markdown", action="store_true", help="print a CI summary of the run, the latest by default")
    forms.add_argument("--html", metavar="FILE", help="write a page of the run, the latest by default; - prints it")
    parser.add_argument("--open", action="store_true", help="write the page and open it in a browser")


def _add_prompt_arguments(parser: argparse.ArgumentParser) -> None:
    _add_settings(parser, ["prompt_layout"])


_LOG_FORMS = {"json", "markdown", "html", "open"}


def _add_apply_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("response", metavar="FILE", help="the saved response; - reads it from standard input")
    parser.add_argument("--build", action="store_true", help="then run build.sh")
    _add_settings(parser, [*_CHANGING, *_PRINTING])


def _add_resume_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run", nargs="?", metavar="RUN", help="resume this run; the beginning of its name is enough")
    _add_settings(parser, ["max_repairs", "max_cost", "llm_timeout", "build_timeout", "sandbox", *_PRINTING])


def _add_rollup_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("pathspecs", nargs="*", metavar="PATHSPEC", help="only these, as `git ls-files` takes them")
    parser.add_argument(
        "--exclude", action="append", metavar="GLOB", help="leave these out (.gitignore syntax, repeatable)"
    )
    parser.add_argument(
        "--lock-file-limit", type=int, metavar="BYTES", help="leave larger lock files out (default 65536)"
    )
    _add_settings(parser, ("model", *_PRINTING))


def _add_undo_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run", nargs="?", metavar="RUN", help="undo this run; the beginning of its name is enough")
    parser.add_argument("--force", action="store_true", help="restore files that changed since, too")
    _add_settings(parser, _PRINTING)


_CHANGING = ("allow", "protect", "strict", "dry_run", "rollback", "require_clean", "sandbox", "build_timeout")
_PRINTING = ("json", "quiet", "verbose")


def _add_nothing(parser: argparse.ArgumentParser) -> None:
    """A command without arguments."""


def _begin(options: dict[str, Any]) -> "tuple[Project, Progress]":
    """Return the project and the printer of a command that changes files."""
    from code_commit.build import harden_process
    from code_commit.config import find_secrets
    from code_commit.progress import Progress
    from code_commit.project import find_project
    from code_commit.redaction import Redactor

    harden_process()
    project = find_project()
    return project, Progress(Redactor(find_secrets(project)), quiet=options.get("quiet", False))


def _run(options: dict[str, Any]) -> int:
    from code_commit.commands.run import report_run

    project, progress = _begin(options)
    return report_run(project, options, progress)


def _apply(options: dict[str, Any]) -> int:
    from code_commit.commands.apply import report_apply

    source, build = options.pop("response"), options.pop("build", False)
    project, progress = _begin(options)
    return report_apply(project, source, options, progress, build=build)


def _prompt(options: dict[str, Any]) -> int:
    from code_commit.commands.prompt import prompt_command
    from code_commit.project import find_project

    sys.stdout.buffer.write(prompt_command(find_project(), options).encode("utf-8", "backslashreplace"))
    sys.stdout.flush()
    return EXIT_SUCCESS


def _resume(options: dict[str, Any]) -> int:
    from code_commit.commands.resume import report_resume

    run = options.pop("run", None) or ""
    project, progress = _begin(options)
    return report_resume(project, run, options, progress)


def _rollup(options: dict[str, Any]) -> int:
    from code_commit.commands.rollup import Selection, report_rollup
    from code_commit.project import find_project

    names = ("pathspecs", "exclude", "lock_file_limit")
    selection = Selection(**{name: options.pop(name) for name in names if name in options})
    return report_rollup(find_project(), selection, options)


def _undo(options: dict[str, Any]) -> int:
    from code_commit.commands.undo import report_undo

    run, force = options.pop("run", None) or "", options.pop("force", False)
    project, progress = _begin(options)
    return report_undo(project, run, options, progress, force=force)


def _check(options: dict[str, Any]) -> int:
    from code_commit.commands.check import check_command
    from code_commit.project import find_project

    report, ready = check_command(find_project(), options)
    print(report)
    return EXIT_SUCCESS if ready else EXIT_NOT_SET_UP


def _init(_options: dict[str, Any]) -> int:
    from code_commit.commands.init import NEXT_STEPS, init_command
    from code_commit.project import find_project

    written = init_command(find_project())
    print("\n".join(written or ["Nothing is missing; nothing was written."]))
    print(NEXT_STEPS)
    return EXIT_SUCCESS


def _log(options: dict[str, Any]) -> int:
    from code_commit.commands.log import log_command
    from code_commit.project import find_project

    if _LOG_FORMS & options.keys():
        from code_commit.commands.page.export import export_log

        sys.stdout.buffer.write(export_log(find_project(), options))
        return EXIT_SUCCESS
    print(log_command(find_project(), options.get("run"), schema=options.get("schema", False)))
    return EXIT_SUCCESS


def _demo(_options: dict[str, Any]) -> int:
    from code_commit.commands.demo import demo_result, make_demo_project, run_demo
    from code_commit.progress import Progress
    from code_commit.redaction import Redactor

    project = make_demo_project()
    record = run_demo(project, Progress(Redactor([])))
    sys.stderr.flush()
    print(demo_result(project, record))
    return EXIT_SUCCESS if record.exit_code == EXIT_SUCCESS else EXIT_BUILD_FAILED


_COMMANDS: tuple[tuple[str, Callable[[dict[str, Any]], int], str, Callable[[argparse.ArgumentParser], None]], ...] = (
    ("run", _run, "the main job, the same as no command", _add_settings),
    ("init", _init, "write what is missing: agent-config/, build.sh, the .gitignore line", _add_nothing),
    ("rollup", _rollup, "write agent-config/codeRollup.txt from the files git tracks", _add_rollup_arguments),
    ("check", _check, "make every preflight check; no network, nothing written", _add_settings),
    ("prompt", _prompt, "print the initial prompt, to paste into any chat", _add_prompt_arguments),
    ("apply", _apply, "verify and apply a saved response; no LLM", _add_apply_arguments),
    ("undo", _undo, "put back what the latest, or the named, run changed", _add_undo_arguments),
    ("resume", _resume, "go on with an interrupted run; nothing is paid for twice", _add_resume_arguments),
    ("log", _log, "list the runs, or show one attempt by attempt", _add_log_arguments),
    ("demo", _demo, "watch the whole loop on a sample project: no key, no network", _add_nothing),
)
_COMMANDS_BY_NAME = {name for name, *_ in _COMMANDS}
