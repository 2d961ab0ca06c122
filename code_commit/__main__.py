"""`python -m code_commit`, the same as `code-commit`."""

from code_commit.cli import command

command()
