"""`code-commit completion`: a script by which a shell completes the commands and their options."""

from argparse import ArgumentParser
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated

import shtab

from code_commit.commands import make_parser
from code_commit.commands.output import print_document
from code_commit.errors import EXIT_SUCCESS
from code_commit.project import AGENT_CONFIG

DESCRIPTION = """\
Prints a script that completes the commands and options of code-commit. Put it
where your shell looks for completion scripts."""

EXAMPLES = """\
code-commit completion bash >>~/.bash_completion
code-commit completion zsh >~/.zfunc/_code-commit
code-commit completion fish >~/.config/fish/completions/code-commit.fish"""
_FILE_NAMES = ("FILE", "GLOB", "OUT", "PATHSPEC", "REPOSITORY", "TASKS")
_RUNS = f"latest $(command ls {AGENT_CONFIG}/logs 2>/dev/null)"
_RUN = {
    "bash": "_code_commit_runs",
    "zsh": f"({_RUNS})",
    "fish": _RUNS,
    "preamble": {"bash": f'_code_commit_runs() {{ compgen -W "{_RUNS}" -- "$1"; }}'},
}
_VALUES = {"DIR": shtab.DIRECTORY, "RUN": _RUN} | dict.fromkeys(_FILE_NAMES, shtab.FILE)
"""How shtab completes a value, by its name in `--help`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Arguments:
    shell: Annotated[str, "SHELL", "bash, zsh or fish", {"flag": "", "choices": ("bash", "zsh", "fish")}]


def run(arguments: Arguments) -> int:
    parser = make_parser(whole=True)
    _complete_values([parser])
    print_document(f"{shtab.complete(parser, arguments.shell)}\n".encode())
    return EXIT_SUCCESS


def _complete_values(parsers: Iterable[ArgumentParser]) -> None:
    for parser in parsers:
        for action in parser._actions:  # noqa: SLF001 - argparse tells them in no other way
            if way := _VALUES.get(str(action.metavar)):
                action.complete = way  # type: ignore[attr-defined] # where shtab looks for it
            if isinstance(action.choices, dict):  # a parser for each command
                _complete_values(action.choices.values())
