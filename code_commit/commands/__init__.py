"""The commands, a module each, and the command line.

A command's module has `DESCRIPTION` and `EXAMPLES`, which its `--help` shows, `Arguments` if it takes some, and
`run(arguments)`, which returns the exit code. It is loaded when it is called.

`Arguments` declare the command line too: `Annotated[TYPE, METAVAR, HELP, MORE]`. MORE are further words for argparse;
beside them `flag` is how an option is written, if not as its name, "" for what is no option, and those with `alone`
exclude one another. `add_arguments(parser)` adds what else there is, and `SETTINGS` names the settings among the
options.

A command is the first word, before each option; without one it is the main job. Each has a parser of its own. `-C` is
no part of the words here: `__main__` has gone to its folder.
"""

import argparse
import importlib
import re
import sys
from collections.abc import Mapping, Sequence
from functools import partial
from itertools import takewhile
from types import ModuleType
from typing import Any, NamedTuple, NoReturn, Self, TypeVar

from code_commit.errors import NotSetUpError, Word
from code_commit.settings import OPTIONS, SETTINGS, add_settings, did_you_mean
from code_commit.version import __version__

COMMANDS = {
    "run": "do the main job, like code-commit without a command",
    "repair": "make a failing build pass; if build.sh passes already, this costs nothing",
    "init": "create what is missing: agent-config/, build.sh, the .gitignore line",
    "rollup": "write agent-config/codeRollup.txt from the files that git does not ignore",
    "check": "run every preflight check, without sending anything; --build also builds",
    "prompt": "print the initial prompt, to paste into any chat",
    "apply": "verify and apply a saved response, without an LLM",
    "undo": "restore the files that the latest run (or RUN) changed",
    "diff": "print everything that the latest run (or RUN) changed",
    "resume": "continue an interrupted run at its next step, with its original settings",
    "log": "list the runs, or show one attempt by attempt",
    "fleet": "run many tasks over many trees, on this machine or a cluster",
    "mcp": "serve the commands as tools for an agent, over stdio",
    "demo": "watch the whole loop on a sample project: no key, no network",
    "completion": "print the completion script for your shell",
}  # each command and its help. The name is that of its module here, or, above the commands, of its package.
_COLUMNS, _LONGEST_USAGE = 78, 4
T = TypeVar("T")
_DESCRIPTION = """\
Ask an LLM for a code change, apply its answer whole or not at all, run
build.sh, and let the LLM repair a failing build up to three times.

The task is the text after -m, or agent-config/query.txt. The codebase is
agent-config/codeRollup.txt. Nothing is committed: review with git status and
git diff."""
_EPILOG = """\
exit codes:
  0  the build passes after the last change
  1  the build fails after the last repair
  2  not set up, or wrong usage: nothing was sent or changed
  3  the LLM could not be called (network, key, quota, budget)
  4  no usable response: rejected, not approved, or the LLM cannot do the task
  5  the machine failed: build.sh could not be run, exited with 75, lacked a
     program or disk space, or was blocked by the sandbox; or a write failed
  70 a bug in code-commit; 129, 130, 143 interrupted

a first run:
  code-commit demo                      watch the whole loop: no key, no network
  code-commit init                      create what your project lacks
  code-commit check -m 'What to do.'    see what is left to set up
  code-commit -m 'What to do.'          ask, apply, build, repair
  code-commit diff                      review"""


class NoArguments(NamedTuple):
    """The arguments of a command that takes none."""


class Call(NamedTuple):
    """A command with its arguments, which are the `Arguments` of its module."""

    command: str
    arguments: Any

    def run(self) -> int:
        code: int = load_command(self.command).run(self.arguments)
        return code

    def worded(self, word: Word) -> Self:
        """Return the call with messages that name settings so, as far as the command words them itself."""
        from dataclasses import replace  # `--help` takes a fifth longer with it

        has_words = "word" in type(self.arguments).__annotations__
        return self._replace(arguments=replace(self.arguments, word=word)) if has_words else self


def load_command(name: str) -> ModuleType:
    return importlib.import_module(f"{'code_commit' if name == 'fleet' else __name__}.{name}")


def parse(words: Sequence[str]) -> Call:
    """Return the call that the words of a command line are. Raises NotSetUpError, and SystemExit after `--help`."""
    name = words[0] if words and words[0] in COMMANDS else ""
    parser = make_command_parser(name) if name else make_parser()
    found = vars(parser.parse_args(words[1:] if name else words))
    name = name or "run"
    return Call(name, _arguments(getattr(load_command(name), "Arguments", NoArguments), found))


def _arguments(kind: type[T], found: Mapping[str, object]) -> T:
    """Return what a parser found as a command's arguments; what is none of them is a setting."""
    given = {name: tuple(value) if isinstance(value, list) else value for name, value in found.items()}
    own = {name: value for name, value in given.items() if name in kind.__annotations__}
    settings = {name: value for name, value in given.items() if name not in own}
    return kind(**own, **({"options": settings} if settings else {}))


def make_command_parser(name: str) -> "CommandParser":
    parser = CommandParser(prog=f"code-commit {name}")
    _describe(parser, name)
    return parser


def _describe(parser: argparse.ArgumentParser, name: str) -> None:
    """Give a parser the texts and the arguments of a command."""
    module = load_command(name)
    examples = module.EXAMPLES.replace("\n", "\n  ")
    parser.description, parser.epilog = module.DESCRIPTION, f"examples:\n  {examples}"
    _add_declared(parser, getattr(module, "Arguments", NoArguments).__annotations__)
    if hasattr(module, "add_arguments"):
        module.add_arguments(parser)
    if hasattr(module, "SETTINGS"):
        add_settings(parser, module.SETTINGS)


def _add_declared(parser: argparse.ArgumentParser, annotations: Mapping[str, Any]) -> None:
    alone: Any = None
    declared = {name: each for name, each in annotations.items() if hasattr(each, "__metadata__")}
    for name, annotation in declared.items():
        kind, (metavar, help_text, *more) = annotation.__origin__, annotation.__metadata__
        form: dict[str, Any] = {"metavar": metavar, "help": help_text, **(more[0] if more else {})}
        flag = form.pop("flag", f"--{name.replace('_', '-')}")
        if kind is bool:
            del form["metavar"]
            form["action"] = "store_true"
        elif flag and kind in (Sequence[str], tuple[str, ...]) and "nargs" not in form:
            form["action"] = "append"
        place: Any = parser
        if form.pop("alone", False):
            place = alone = alone or parser.add_mutually_exclusive_group()
        place.add_argument(*filter(None, [flag]), dest=name, **form)


def make_parser(*, whole: bool = False) -> "CommandParser":
    """Return the parser of a command line without a command, whose help lists them.

    `whole` loads all commands, for who reads their parsers.
    """
    parser = CommandParser(
        prog="code-commit",
        usage="code-commit [OPTIONS]\n       code-commit COMMAND [ARGUMENTS]",
        description=_DESCRIPTION,
        epilog=_EPILOG,
    )
    parser.add_argument(
        "--version", action="version", version=f"code-commit {__version__}", help="show the version and exit"
    )
    listed = argparse.ArgumentParser(add_help=False)  # stands for each: a parser takes 0.2 ms
    parser_class: Any = CommandParser if whole else lambda **_: listed
    commands = parser.add_subparsers(
        title="commands", metavar="COMMAND", prog="code-commit", parser_class=parser_class, action=_Misplaced
    )
    add_main_job(parser)
    for name, help_text in COMMANDS.items():
        command = commands.add_parser(name, help=help_text)
        if whole:
            _describe(command, name)
    return parser


def add_main_job(parser: argparse.ArgumentParser) -> None:
    add_task(parser)
    add_settings(parser)


def add_task(parser: argparse.ArgumentParser) -> None:
    task = parser.add_mutually_exclusive_group()
    words = (
        "the task, instead of query.txt, with a new rollup; each further -m adds a paragraph; - reads standard input"
    )
    task.add_argument("-m", action=_Paragraph, dest="task", metavar="TEXT", help=words)
    file = "read the task from FILE instead of query.txt; - is standard input"
    task.add_argument("--query", metavar="FILE", help=file)


class _Gone(argparse.Action):
    """Stands in the help for `-C`."""

    def __call__(self, parser: Any, _: argparse.Namespace, folder: Any, __: Any = None) -> None:
        parser.error(f"-C {folder}", " is for the whole process: go to the folder first")


class _Paragraph(argparse.Action):
    """Joins the texts of several `-m` with a blank line between them, as git commit does."""

    def __call__(self, _parser: argparse.ArgumentParser, found: argparse.Namespace, text: Any, _: Any = None) -> None:
        earlier = getattr(found, self.dest, None)
        if earlier is not None and not (earlier.strip() and text.strip()):
            raise argparse.ArgumentError(self, "one of the texts is empty: give it words, or leave it out")
        if earlier is not None and "-" in (earlier, text):
            raise argparse.ArgumentError(self, "- reads the task from standard input: give it alone")
        setattr(found, self.dest, text if earlier is None else f"{earlier}\n\n{text}")


PARAGRAPHS = {"flag": "-m", "action": _Paragraph}
RUN = {"flag": "", "nargs": "?"}
HOW_NAMED = "the beginning of its name, latest, or -1 (newest), -2 ..."  # as `find_run_folders` reads it


def _as_fleet_settings(names: Sequence[str]) -> str:
    """Return the options of the main job as a fleet takes them; "" where it takes none of them."""
    settings = [name[2:].replace("-", "_") for name in names]
    return " ".join(f"--setting {setting}=VALUE" for setting in settings if setting in SETTINGS)


class _Misplaced(argparse._SubParsersAction):  # type: ignore[type-arg] # noqa: SLF001 - the action of add_subparsers
    """Refuses a command that is not the first word."""

    def __call__(self, parser: Any, found: argparse.Namespace, words: Any, _: Any = None) -> None:
        parser.refuse_command(found, words)


class CommandParser(argparse.ArgumentParser):
    """An argument parser that names the nearest known word for an unknown one."""

    _rest = ""

    def __init__(self, **options: Any) -> None:
        options |= {"allow_abbrev": False, "argument_default": argparse.SUPPRESS}
        # of these columns, or argparse would import shutil to ask the terminal
        super().__init__(formatter_class=partial(argparse.RawDescriptionHelpFormatter, width=_COLUMNS), **options)
        self.add_argument("-C", action=_Gone, metavar="DIR", help="change to DIR first, like git -C")

    def set_rest(self, name: str, usage: str) -> None:
        """Let the words after `--` be the argument of this name, which the usage tells."""
        self._rest, self.usage = name, usage

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        self._words = arguments = sys.argv[1:] if args is None else list(args)
        rest: list[str] = []
        if self._rest and "--" in arguments:
            place = arguments.index("--")
            arguments, rest = arguments[:place], arguments[place + 1 :]
        for argument in arguments:
            if argument in COMMANDS or argument == "--":
                break
            name = argument.partition("=")[0]
            if re.match("--|-[A-Za-z]$", name) and " " not in name and name not in self._option_string_actions:
                self.error(f"unrecognized arguments: {argument}", self._hint_at_option(name))
            if name != argument and (known := self._option_string_actions.get(name)) and known.nargs == 0:
                self.error(f"{name} takes no value", f": write {name} alone, or leave it out")
        found, others = super().parse_known_args(arguments, namespace)
        if rest:
            setattr(found, self._rest, rest)
        if others and self._subparsers is None:  # of a command, whose usage helps more than that of all
            is_task = "-m" in self._option_string_actions and not any(word.startswith("-") for word in others)
            hint = f"; for a task: {self.prog} -m {' '.join(others)!r}" if is_task else self._with_rest(others, rest)
            self.error(f"unrecognized arguments: {' '.join(others)}", hint)
        return found, others

    def _with_rest(self, others: Sequence[str], rest: Sequence[str]) -> str:
        """Return how the words that are left are given after `--`; "" where this command takes none there."""
        if not self._rest or rest or any(word.startswith("-") for word in others):
            return ""
        import shlex  # `--help` does without

        kept = [word for word in self._words if word not in others]
        return f"; put -- before paths: {shlex.join([*self.prog.split(), *kept, '--', *others])}"

    def has_option(self, name: str) -> bool:
        return name in self._option_string_actions

    def refuse_command(self, found: argparse.Namespace, words: Sequence[str]) -> NoReturn:
        """Raise NotSetUpError for what stands before a command, the first of the words left."""
        before, given = self._words[: -len(words)], [action for action in self._actions if action.dest in found]
        names, command = [action.option_strings[0] for action in given], make_command_parser(words[0])
        if "--" in before:  # which argparse keeps or drops, by its version
            self.error("-- stands before the command", "; leave it out")
        if foreign := [name for name in names if not command.has_option(name)]:
            are = "are options" if len(foreign) > 1 else "is an option"
            way = _as_fleet_settings(foreign) if words[0] == "fleet" else ""
            self.error(f"{' and '.join(foreign)} {are} of `run`, not of `{words[0]}`", way and f"; there use {way}")
        import shlex  # `--help` does without

        moved = shlex.join(["code-commit", words[0], *before, *words[1:]])
        self.error(f"put {' and '.join(names)} after {words[0]}", f": {moved}")

    def _hint_at_option(self, name: str) -> str:
        commands = [word for word in self._words if word in COMMANDS and self._subparsers is not None]
        if command := next((word for word in commands if make_command_parser(word).has_option(name)), ""):
            return f"; put it after {command}"
        if name == "--last" and any(action.dest == "run" for action in self._actions):
            return f"; for the latest run, use {self.prog} latest"
        own, setting = self.prog.partition(" ")[2], name[2:].replace("-", "_")
        if setting in SETTINGS and setting not in OPTIONS:
            place = f"here use {_as_fleet_settings([name])}"
            return f"; {place if own == 'fleet' else f'{setting} can be set only in config.toml'}"
        if own and make_command_parser("run").has_option(name):
            way = _as_fleet_settings([name]) if own == "fleet" else ""
            return f", an option of `run`{f': here use {way}' if way else f', not of `{own}`'}"
        return did_you_mean("-m" if name == "--message" else name, self._option_string_actions)

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        is_command = action.metavar == "COMMAND" and not action.option_strings
        task = self._unquoted_task(value) if is_command else []
        if action.choices is None or (value in action.choices and not task):
            return
        if not is_command:
            problem = argparse.ArgumentError(action, f"must be one of {', '.join(action.choices)}")
            self.error(str(problem), did_you_mean(value, action.choices, cutoff=0.7))
        if value == "--":  # before Python 3.13 argparse keeps it
            self.error("-- stands before the command", "; leave it out")
        if task:
            self.error("the task after -m has several words", f"; put it in quotes: {self._quoted(task, 1)}")
        if value in ("help", "version"):
            of_command = [word for word in self._words if word in COMMANDS and value == "help"][:1]
            meant = " ".join([self.prog, *of_command, f"--{value}"])
            self.error(f"there is no command {value!r}", f"; did you mean {meant!r}?")
        hint = "" if " " in value else did_you_mean(value, action.choices)
        task = self._task_from(self._words.index(value))
        self.error(f"there is no command {value!r}", hint or f"; for a task: {self._quoted(task)}")

    def _task_from(self, place: int) -> list[str]:
        """Return the words from there on up to the next option."""
        return list(takewhile(lambda word: not word.startswith("-"), self._words[place:]))

    def _quoted(self, task: list[str], options: int = 0) -> str:
        """Return the command with the task in quotes after `-m`, and dots if more than that and `options` was given."""
        more = len(self._words) > len(task) + options
        return f"code-commit -m {' '.join(task)!r}{' ...' if more else ''}"

    def _unquoted_task(self, word: str) -> list[str]:
        """Return the words after `-m` where this is the second of them, or none. It may be the name of a command."""
        place = self._words.index(word) - 2
        if place < 0 or self._words[place] != "-m" or word == "run":
            return []
        return self._task_from(place + 1)

    def _get_values(self, action: argparse.Action, words: list[str]) -> Any:
        """Return the value of an option, also `--` where it stands in the same word (`-m=--`): argparse drops that."""
        if not action.option_strings or words != ["--"]:
            return super()._get_values(action, words)
        value = self._get_value(action, "--")
        self._check_value(action, value)
        return value

    def _match_argument(self, action: argparse.Action, arg_strings_pattern: str) -> int:
        """Return how many words an option takes; refuse one whose value is missing."""
        try:
            return super()._match_argument(action, arg_strings_pattern)
        except argparse.ArgumentError:
            if not action.option_strings:
                raise
            value = "|".join(action.choices or [str(action.metavar)])
            self.error(f"{action.option_strings[0]} needs a value: {action.option_strings[0]} {value}")

    def _print_message(self, message: str, file: Any = None) -> None:
        """Print the help or the version at once. Raises OutputError, but not for standard error."""
        try:
            (file or sys.stdout).write(message)
            (file or sys.stdout).flush()
        except OSError:
            if file is not sys.stderr:
                from code_commit.commands.output import print_text  # it reports the failure

                print_text(message)

    def error(self, message: str, hint: str = "") -> NoReturn:
        """Raise NotSetUpError for wrong usage, as for every other error. A long usage would hide it."""
        if self.format_usage().count("\n") <= _LONGEST_USAGE:
            self.print_usage(sys.stderr)
        raise NotSetUpError(message + (hint or f"; see {self.prog} --help"))
