"""`code-commit diff`: what a run changed in all, from the originals of its snapshot to the files that it left."""

import os
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from fnmatch import fnmatchcase
from hashlib import sha256
from pathlib import Path
from typing import Annotated, NamedTuple

from code_commit.apply.restore import changed_since, find_changed
from code_commit.apply.snapshot import first_states, left_states, load_contents, load_layers, read_original
from code_commit.changes import AppliedChange
from code_commit.commands import HOW_NAMED, RUN, CommandParser
from code_commit.commands.output import (
    answering,
    coloured_diff,
    print_bytes,
    print_json,
    print_text,
    redactor_of,
    tell_if_half_changed,
)
from code_commit.errors import EXIT_SUCCESS, NotSetUpError
from code_commit.files import read_regular_file
from code_commit.git import Repository, UnansweredError
from code_commit.project import Project
from code_commit.runs.diff import FileEdit, diff_files, known_text
from code_commit.runs.list import find_run_folders, name_idle, pass_over_idle, read_run, short_name
from code_commit.runs.progress import Progress
from code_commit.runs.record import BUILT_DIFF, RunRecord
from code_commit.runs.words import change_rows, check_lines, listed, rewritten_by_build
from code_commit.terminal import shown
from code_commit.trust import find_program, find_top, is_inside, outside_environment

DESCRIPTION = """\
Prints everything that the latest run (or the named one) changed, including new
and removed files, as one diff that git apply --whitespace=nowarn can read.
Later changes to the tree do not affect it. Without RUN, runs that applied
nothing are skipped. After --, name the files, folders or patterns to show,
relative to the project's root. On a terminal, the diff is colored and shown in
git's pager. Standard error lists the tests, CI files and build files in the
diff. Exits with 1 if the log no longer has the content of a file. With --json,
such files are "unknown", and files that changed after the run are
"changed_since"."""

EXAMPLES = """\
code-commit diff
code-commit diff -2 --stat
code-commit diff latest -- src/ 'tests/*.py'
code-commit diff latest >change.patch"""

_EXIT_INCOMPLETE = 1
_NOT_FOUND = 127


class NetDiff(NamedTuple):
    """A run's whole change as a diff that `git apply` reads, its numbers, and the files whose content is lost."""

    diff: bytes
    unknown: list[str]
    changes: list[AppliedChange]


def net_diff(
    folder: Path, root: Path, prefix: str = "", git: Repository | None = None, paths: Sequence[str] = ()
) -> NetDiff:
    """Return the changes of this log folder's run, and of its builds, below `root`. Raises ApplyError.

    `prefix` stands before every path. The diff is of what `git` would store, where that is given. `paths` are
    files, folders or patterns of them (`*` matches `/` too, as in git's pathspecs); without any the diff is of all.
    Raises NotSetUpError for one that can match nothing.
    """
    edits, unknown = net_edits(folder, root)
    if paths:
        paths = [_from_root(path, root) for path in paths]
        edits = [edit for edit in edits if _matches(edit.path, paths)]
        unknown = [path for path in unknown if _matches(path, paths)]
    changes, diff = diff_files(edits, git, prefix, lambda: known_text(folder))
    return NetDiff(diff, unknown, changes)


def _from_root(path: str, root: Path) -> str:
    """Return a path or a pattern as it counts from the root. Raises NotSetUpError for one that no change can meet."""
    if re.match(r":[(!^/]", path):
        raise NotSetUpError(
            f"{shown(path)} uses git's pathspec magic, which is not supported here: name paths or patterns"
        )
    places = (os.path.relpath(place, root) for place in (root / path, os.path.realpath(root / path)))
    place = next((place for place in places if place.split("/")[0] != os.pardir), None)
    if place is None:
        raise NotSetUpError(f"{shown(path)} is outside the project: paths are relative to its root")
    return place


def _matches(path: str, patterns: Sequence[str]) -> bool:
    return any(each in (path, ".") or path.startswith(f"{each}/") or fnmatchcase(path, each) for each in patterns)


def net_edits(folder: Path, root: Path) -> tuple[list[FileEdit], list[str]]:
    """Return each file that the run changed, before and after, and the files whose content of then is lost.

    The tree may still have a content that the snapshot lacks, since the disk was full. Raises ApplyError.
    """
    snapshot = folder / "snapshot"
    layers = load_layers(snapshot)
    left, contents = left_states(snapshot, layers), load_contents(snapshot)
    edits, unknown = [], []
    for path, before in first_states(layers).items():
        after = left[path]
        if before == after:
            continue
        new = contents.get(path, b"") if after else None
        if after and sha256(new or b"").hexdigest() != after.sha256:
            with suppress(OSError, ValueError):  # a name that no file can have, in a log that was tampered with
                new = read_regular_file(root / path, follow_link=False)
            if sha256(new or b"").hexdigest() != after.sha256:
                unknown.append(path)
                continue
        old = read_original(snapshot, path, before) if before else None
        modes = (before.mode if before else 0o644, after.mode if after else 0o644)
        edits.append(FileEdit(path, old, new, *modes))
    return edits, unknown


@dataclass(frozen=True, slots=True, kw_only=True)
class Arguments:
    run: Annotated[str, "RUN", f"show this run: {HOW_NAMED}", RUN] = ""
    stat: Annotated[bool, "", "print each file and how many lines were added and removed", {"alone": True}] = False
    json: Annotated[bool, "", "print the diff and details about it as JSON", {"alone": True}] = False
    paths: tuple[str, ...] = ()


def add_arguments(parser: CommandParser) -> None:
    parser.set_rest("paths", "code-commit diff [-h] [-C DIR] [--stat | --json] [RUN] [-- PATH ...]")


def run(arguments: Arguments) -> int:
    with answering(as_json=arguments.json) as project:
        tell_if_half_changed(project)
        folder, idle = _find_named(project, arguments.run)
        # git apply counts from the top
        found = net_diff(folder, project.root, project.prefix, project.git, arguments.paths)
        progress = Progress(redactor_of(project))
        diff = progress.redactor.redact(found.diff)
        changed = changed_since(folder / "snapshot", project)
        if idle:
            progress.say(f"diff of {short_name(folder.name)}; skipped (nothing applied): {name_idle(idle)}")
        if found.unknown:
            progress.error(
                f"missing from the diff because the log no longer has their content: {', '.join(found.unknown)}"
            )
        elif not found.changes:
            unknown = [path for path in arguments.paths if not (project.has(path) or re.search(r"[*?[]", path))]
            nowhere = f"; there is no file at {listed(unknown)}" if unknown else ""
            progress.say(f"{folder.name} changed nothing{' there' if arguments.paths else ''}{nowhere}")
        elif changed:
            record = read_run(folder)
            end = record.taken_back if isinstance(record, RunRecord) else ""
            since = f"it was {end}" if end else f"changed since: {', '.join(changed)}"
            progress.say(f"the diff shows what {short_name(folder.name)} wrote; {since}")
        progress.say("\n".join(check_lines(found.changes)))
        _tell_rewritten(folder, progress)
        _tell_filtered(folder, project, progress)
        if diff != found.diff:
            progress.say("git apply may refuse the diff: an API key in it is censored")
        if arguments.json:
            told = {"run": folder.name, "unknown": found.unknown, "changed_since": changed, "changes": found.changes}
            print_json(progress.redactor.redact_json(told | {"diff": diff.decode("utf-8", "replace")}))
        elif arguments.stat:
            print_text("\n".join(change_rows(found.changes))) if found.changes else None
        elif not sys.stdout.isatty():
            print_bytes(diff)
        elif diff:
            _page(coloured_diff(diff), project)
        return _EXIT_INCOMPLETE if found.unknown else EXIT_SUCCESS


def find_compared(project: Project, name: str) -> tuple[Path, list[RunRecord]]:
    """Return the log folder of the named run, or of the latest one that applied something with those after it.

    Raises NotSetUpError.
    """
    named = find_run_folders(project, name or "latest")[-1]
    return (None if name else pass_over_idle(find_run_folders(project))) or (named, [])


def _find_named(project: Project, name: str) -> tuple[Path, list[RunRecord]]:
    """Find what to compare, and tell a file that is named as a run how paths are given."""
    try:
        return find_compared(project, name)
    except NotSetUpError as error:
        if not name or not project.has(name):
            raise
        raise NotSetUpError(*error.message, f"; for a path: code-commit diff -- {shown(shlex.quote(name))}") from error


def _tell_rewritten(folder: Path, progress: Progress) -> None:
    """Say which part of the diff the last build made, not an answer."""
    record = read_run(folder)
    if isinstance(record, RunRecord) and (rewritten := rewritten_by_build(record)):
        progress.say(f"after the answer the build {rewritten}: {record.log_dir}/{BUILT_DIFF} shows only that")


def _tell_filtered(folder: Path, project: Project, progress: Progress) -> None:
    with suppress(UnansweredError):
        if project.git and (paths := project.git.filtered(find_changed(folder / "snapshot"))):
            names = listed(paths)
            progress.say(
                f"git apply may refuse the diff of {names}: code-commit does not run the filters that git has for them"
            )


def _page(text: bytes, project: Project) -> None:
    """Show the text in git's pager, unless that is a program inside the project. Raises NotSetUpError."""
    variable = os.environ.get("GIT_PAGER")
    pager = os.fsdecode(project.ask(["var", "GIT_PAGER"]).stdout).strip() if variable is None else variable
    shell, top = find_program("sh", project.root), find_top(str(project.root))
    try:
        words = [str(Path(word).expanduser()) for word in shlex.split(pager) if word.startswith(("/", "~"))]
    except (ValueError, RuntimeError) as error:
        raise NotSetUpError(
            f"the pager {shown(pager)} cannot be started: {str(error).rstrip('.')}; fix GIT_PAGER, or else"
            " git's core.pager or PAGER; GIT_PAGER=cat disables paging"
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
