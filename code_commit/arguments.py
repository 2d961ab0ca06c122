"""The command line's words: the options, the commands and their arguments, and what `--help` says of them."""

from __future__ import annotations  # types cost no time at start-up

import argparse
import os
import sys

from code_commit.errors import NotSetUpError
from code_commit.options import OPTIONS
from code_commit.terminal import terminal_width
from code_commit.version import __version__

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any, NoReturn

    from code_commit.options import Option

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


class _HelpFormatter(argparse.RawDescriptionHelpFormatter):
    """As wide as the terminal; asking for it as argparse does would load the archive formats of `shutil`."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, width=_terminal_width() - 2)


def _terminal_width() -> int:
    columns = os.environ.get("COLUMNS", "")
    if columns.isdecimal() and int(columns):
        return int(columns)
    return terminal_width() or 80


class _Parser(argparse.ArgumentParser):
    """An argument parser that names an unknown option, where argparse would take its value for the command."""

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        arguments = sys.argv[1:] if args is None else list(args)
        for argument in arguments:
            if argument in COMMAND_NAMES or argument == "--":
                break
            name = argument.partition("=")[0]
            if name.startswith("--") and name not in self._option_string_actions:
                self.error(f"unrecognized arguments: {argument}")
        return super().parse_known_args(arguments, namespace)

    def error(self, message: str) -> NoReturn:
        """Raise NotSetUpError for wrong usage: the one who parses says it as every error is said."""
        self.print_usage(sys.stderr)
        raise NotSetUpError(f"{message}; {self.prog} --help tells more")


def make_parser(arguments: Sequence[str]) -> argparse.ArgumentParser:
    """Return the parser, with the arguments of those commands that may be meant: all of them cost start-up time."""
    parser = _Parser(
        prog="code-commit",
        usage="code-commit [OPTIONS]\n       code-commit COMMAND [ARGUMENTS]",
        description=DESCRIPTION,
        epilog=EPILOG,
        formatter_class=_HelpFormatter,
        allow_abbrev=False,
        argument_default=argparse.SUPPRESS,
    )
    parser.add_argument(
        "--version", action="version", version=f"code-commit {__version__}", help="show the version and exit"
    )
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", prog="code-commit")
    if not arguments or arguments[0] not in COMMAND_NAMES:
        _add_settings(parser)
    for name, help_text, add_arguments in _COMMANDS:
        command = commands.add_parser(
            name,
            help=help_text,
            formatter_class=_HelpFormatter,
            allow_abbrev=False,
            argument_default=argparse.SUPPRESS,
        )
        if name in arguments:
            add_arguments(command)
            if "-h" in arguments or "--help" in arguments:
                _add_help_text(command, name)
        command.set_defaults(command=name)
    return parser


def _add_help_text(parser: argparse.ArgumentParser, name: str) -> None:
    from code_commit.help_texts import describe_command

    parser.description, parser.epilog = describe_command(name)


def _add_settings(parser: argparse.ArgumentParser, names: Sequence[str] = ()) -> None:
    """Add the options of the main job, all or those named.

    One that is not given is absent from the result and overrides nothing.
    """
    group = parser.add_argument_group(
        "options of the main job", "each also a key of agent-config/config.toml and a variable CODE_COMMIT_..."
    )
    for name in names or OPTIONS:
        option = OPTIONS[name]
        flag = "--" + name.replace("_", "-")
        if option.kind is bool:
            group.add_argument(flag, action="store_true", help=option.help)
        elif option.choices:
            group.add_argument(flag, choices=option.choices, help=option.help)
        elif option.kind is tuple:
            group.add_argument(flag, action="append", metavar=option.metavar, help=option.help)
        else:
            group.add_argument(flag, type=_Value(option), metavar=option.metavar, help=option.help)


class _Value:
    """An option's type for argparse: what does not fit is said in the setting's own words."""

    def __init__(self, option: Option) -> None:
        self._option = option

    def __call__(self, text: str) -> Any:
        try:
            return self._option.parse(text)
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


LOG_FORMS = {"json", "markdown", "html", "open"}


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


def _add_completion_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("shell", choices=("bash", "zsh", "fish"), help="for this shell")


def _add_nothing(parser: argparse.ArgumentParser) -> None:
    """A command without arguments."""


_COMMANDS: tuple[tuple[str, str, Callable[[argparse.ArgumentParser], None]], ...] = (
    ("run", "the main job, the same as no command", _add_settings),
    ("init", "write what is missing: agent-config/, build.sh, the .gitignore line", _add_nothing),
    ("rollup", "write agent-config/codeRollup.txt from the files git tracks", _add_rollup_arguments),
    ("check", "make every preflight check; no network, nothing written", _add_settings),
    ("prompt", "print the initial prompt, to paste into any chat", _add_prompt_arguments),
    ("apply", "verify and apply a saved response; no LLM", _add_apply_arguments),
    ("undo", "put back what the latest, or the named, run changed", _add_undo_arguments),
    ("resume", "go on with an interrupted run; nothing is paid for twice", _add_resume_arguments),
    ("log", "list the runs, or show one attempt by attempt", _add_log_arguments),
    ("demo", "watch the whole loop on a sample project: no key, no network", _add_nothing),
    ("completion", "print the shell's completion script, for its start-up file", _add_completion_arguments),
)
COMMAND_NAMES = tuple(name for name, *_ in _COMMANDS)
