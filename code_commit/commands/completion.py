"""`code-commit completion`: a script by which a shell completes the commands and their options."""

from argparse import ArgumentParser
from typing import Any

import shtab

from code_commit.commands import COMMANDS, make_parser
from code_commit.commands.output import print_text
from code_commit.errors import EXIT_SUCCESS

DESCRIPTION = """\
Prints a script that completes the commands and options of code-commit. Put it
where your shell looks for such scripts."""

EXAMPLES = """\
code-commit completion bash >>~/.bash_completion
code-commit completion zsh >~/.zfunc/_code-commit
code-commit completion fish >~/.config/fish/completions/code-commit.fish"""


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("shell", choices=("bash", "zsh", "fish"), metavar="SHELL", help="bash, zsh or fish")


def run(options: dict[str, Any]) -> int:
    print_text(shtab.complete(make_parser(["", *COMMANDS]), options["shell"]))
    return EXIT_SUCCESS
