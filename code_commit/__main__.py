"""The command `code-commit`, and `python -m code_commit`: what it may import comes first."""

from code_commit.trust import clean_import_path


def command() -> None:
    """Run the command of this process and end it at once."""
    clean_import_path()
    from code_commit.cli import command

    command()


if __name__ == "__main__":
    command()
