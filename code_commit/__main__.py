"""The command `code-commit`, and `python -m code_commit`: what it may import comes first."""

import os
import sys

from code_commit.trust import clean_import_path


def command() -> None:
    """Run the command of this process and end it at once."""
    clean_import_path()
    _go_where_told(sys.argv)
    clean_import_path()
    from code_commit.cli import command

    command()


def _go_where_told(arguments: list[str]) -> None:
    """Go to the folders of `-C DIR` and take them from the arguments; what is wrong with one the parser tells."""
    place = 1
    while place < len(arguments) - 1 and arguments[place] != "--":
        if arguments[place] == "-C":
            try:
                os.chdir(arguments[place + 1])
            except OSError:
                return
            del arguments[place : place + 2]
        else:
            place += 1


if __name__ == "__main__":
    command()
