"""`code-commit diff`: what a run changed in all, as one diff that `git apply` reads."""

import os
import shlex
import signal
import subprocess
import sys
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from code_commit.apply import changed_since
from code_commit.commands.net_diff import net_diff
from code_commit.commands.output import answering, coloured, print_bytes, redactor_of, tell_if_half_changed
from code_commit.errors import EXIT_SUCCESS, NotSetUpError
from code_commit.project import Project
from code_commit.runs.list import add_run_argument, find_run_folder
from code_commit.runs.progress import Progress
from code_commit.terminal import shown
from code_commit.trust import find_program, find_top, is_inside, outside_environment

DESCRIPTION = """\
Prints what the latest run changed in all, or the named one: new files and those
removed included, as one diff that git apply reads, whatever became of the tree
since. On a terminal it comes in colours and in git's pager. Exits with 1 where
the log no longer tells what a file held then."""

EXAMPLES = """\
code-commit diff
code-commit diff -2
code-commit diff latest >change.patch"""

_EXIT_INCOMPLETE = 1


def add_arguments(parser: ArgumentParser) -> None:
    add_run_argument(parser, "show this run")


def run(options: dict[str, Any]) -> int:
    with answering(as_json=False) as project:
        tell_if_half_changed(project)
        folder = find_run_folder(project, options.get("run", ""))
        found = net_diff(folder, project.root, project.prefix)  # git apply counts from there
        progress = Progress(redactor_of(project))
        diff = progress.redactor.redact(found.diff)
        if found.unknown:
            progress.error(f"the log no longer has what these held, they are not here: {', '.join(found.unknown)}")
        elif not diff:
            progress.say(f"{folder.name} changed nothing")
        elif changed := changed_since(folder / "snapshot", project):
            progress.say(f"changed since the run wrote them, the diff is of what it wrote: {', '.join(changed)}")
        if not sys.stdout.isatty():
            print_bytes(diff)
        elif diff:
            _page(coloured(diff), project)
        return _EXIT_INCOMPLETE if found.unknown else EXIT_SUCCESS


def _page(text: bytes, project: Project) -> None:
    """Show the text in the pager that git would take, unless that is a program inside the project.

    Raises NotSetUpError for words that no shell could read.
    """
    variable = os.environ.get("GIT_PAGER")
    pager = os.fsdecode(project.ask(["var", "GIT_PAGER"]).stdout).strip() if variable is None else variable
    shell, top = find_program("sh", project.root), find_top(str(project.root))
    try:
        words = [str(Path(word).expanduser()) for word in shlex.split(pager) if word.startswith(("/", "~"))]
    except (ValueError, RuntimeError) as error:
        raise NotSetUpError(
            f"the pager {shown(pager)} cannot be started: {str(error).rstrip('.')}; put right what GIT_PAGER, or else"
            " git's core.pager or PAGER, says; GIT_PAGER=cat takes none"
        ) from error
    if pager in ("", "cat") or not shell or any(is_inside(word, top) for word in words):
        print_bytes(text)
        return
    environment = {"LESS": "FRX", "LV": "-c"} | outside_environment(project.root)
    with subprocess.Popen([shell, "-c", pager], stdin=subprocess.PIPE, cwd=os.sep, env=environment) as process:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # it is the pager's, as with git
        process.communicate(text)
    if process.returncode == _NOT_FOUND:
        print_bytes(text)


_NOT_FOUND = 127
