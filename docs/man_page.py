"""Make the manual page from the texts of `--help`, for the wheel that is built; `python docs/man_page.py` prints it."""

import argparse
import sys
import tomllib
from collections.abc import Iterable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from textwrap import dedent
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

ROOT = Path(__file__).parents[1]
_ESCAPES = str.maketrans({"\\": r"\e", "-": r"\-", "~": r"\(ti", "^": r"\(ha", "`": r"\(ga", "'": r"\(aq"})


def man_page() -> str:
    """Return the page in the macros of man(7)."""
    sys.path.insert(0, str(ROOT))  # the build has not installed it
    from code_commit.commands import make_parser
    from code_commit.version import __version__

    parser = make_parser(whole=True)
    (commands,) = (action for action in parser._actions if not action.option_strings)
    about = tomllib.loads(ROOT.joinpath("pyproject.toml").read_text())["project"]["description"]
    lines = [f'.TH CODE\\-COMMIT 1 "" "code\\-commit {__version__}"', ".nh", ".ad l"]
    lines += [".SH NAME", f"code\\-commit \\- {text(about[0].lower() + about[1:].rstrip('.'))}"]
    lines += [".SH SYNOPSIS", ".nf", text(parser.usage).replace("\n       ", "\n"), ".fi"]
    lines += [".SH DESCRIPTION", text(parser.description), ".SH OPTIONS"]
    lines += options(action for action in parser._actions if action is not commands)
    lines.append(".SH COMMANDS")
    for name, command in commands.choices.items():
        lines += section(name, command, parser._actions)
    for part in parser.epilog.split("\n\n"):
        head, body = part.split(":\n", 1)
        lines += [f".SH {head.upper()}", *as_it_is(dedent(body))]
    return "\n".join([*lines, ""])


def section(name: str, command: argparse.ArgumentParser, main: Iterable[argparse.Action]) -> Iterator[str]:
    """Yield what the page says of a command; the options that are those of the main job are only named."""
    arguments = [action for action in command._actions if not action.option_strings]
    words = [f"[{action.metavar}]" if action.nargs else action.metavar for action in arguments]
    yield from (f".SS code\\-commit {text(' '.join([name, *words]))}", text(command.description))
    above = {(*action.option_strings, action.help) for action in main}
    shared = [action for action in command._actions if (*action.option_strings, action.help) in above]
    yield from options(action for action in command._actions if action not in shared)
    yield from (".TP", text(", ".join(action.option_strings[0] for action in shared)), "as above")
    yield from (".PP", "Examples:", ".PP", *as_it_is(dedent(command.epilog.removeprefix("examples:\n"))))


def options(actions: Iterable[argparse.Action]) -> Iterator[str]:
    """Yield arguments and options, a tagged paragraph each."""
    formatter = argparse.HelpFormatter("")
    for action in actions:
        value = f" {formatter._format_args(action, '')}" if action.option_strings and action.nargs != 0 else ""
        names = ", ".join(action.option_strings) or action.metavar
        yield from (".TP", text(names + value), text(formatter._expand_help(action)))


def as_it_is(plain: str) -> list[str]:
    """Return lines that are not filled, indented so little that what fits a terminal as `--help` fits it here."""
    return [".in 2n", ".nf", text(plain), ".fi", ".in"]


def text(plain: str) -> str:
    """Return lines as troff takes them literally, an empty one as the end of a paragraph."""
    lines = plain.translate(_ESCAPES).split("\n")
    return "\n".join(rf"\&{line}" if line.startswith(".") else line or ".PP" for line in lines)


class ManPage(BuildHookInterface[Any]):
    """The hook by which hatchling has the page made for a wheel."""

    def initialize(self, _version: str, build_data: dict[str, Any]) -> None:
        self._folder = TemporaryDirectory()
        page = Path(self._folder.name, "code-commit.1")
        page.write_text(man_page(), encoding="utf-8")
        build_data["shared_data"][str(page)] = "share/man/man1/code-commit.1"

    def finalize(self, *_: object) -> None:
        self._folder.cleanup()


if __name__ == "__main__":
    sys.stdout.write(man_page())
