"""`code-commit completion`: a script by which a shell completes the commands and their options."""

from argparse import ArgumentParser
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated

import shtab

from code_commit.commands import make_parser
from code_commit.commands.output import print_document
from code_commit.errors import EXIT_SUCCESS

DESCRIPTION = """\
Prints a script that completes the commands and options of code-commit. Put it
where your shell looks for such scripts."""

EXAMPLES = """\
code-commit completion bash >>~/.bash_completion
code-commit completion zsh >~/.zfunc/_code-commit
code-commit completion fish >~/.config/fish/completions/code-commit.fish"""
_FILE_NAMES = ("FILE", "GLOB", "OUT", "PATHSPEC", "REPOSITORY", "TASKS")
_FILES = {"DIR": shtab.DIRECTORY} | dict.fromkeys(_FILE_NAMES, shtab.FILE)
"""The kind of a value by its name in `--help`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Arguments:
    shell: Annotated[str, "SHELL", "bash, zsh or fish", {"flag": "", "choices": ("bash", "zsh", "fish")}]


def run(arguments: Arguments) -> int:
    parser = make_parser(whole=True)
    _complete_files([parser])
    print_document(f"{shtab.complete(parser, arguments.shell)}\n".encode())
    return EXIT_SUCCESS


def _complete_files(parsers: Iterable[ArgumentParser]) -> None:
    for parser in parsers:
        for action in parser._actions:  # noqa: SLF001 - argparse tells them in no other way
            if kind := _FILES.get(str(action.metavar)):
                action.complete = kind  # type: ignore[attr-defined] # where shtab looks for it
            if isinstance(action.choices, dict):  # a parser for each command
                _complete_files(action.choices.values())
