"""`code-commit rollup`: write agent-config/codeRollup.txt from the files that git tracks or would track.

It takes no lock: a run has read the rollup before it changes a file, and the new one takes its place at once.
"""

import os
import re
from argparse import ArgumentParser, ArgumentTypeError
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from code_commit.apply import recover
from code_commit.codebase.fit import UNLIMITED, Room
from code_commit.codebase.select import (
    CONFIDENTIAL,
    EXCLUDED,
    MARKED,
    NO_ROOM,
    NOT_CHOSEN,
    REVEALS_KEY,
    UNREADABLE,
    Rollup,
    find_marked,
    fit_names,
    in_order,
    list_files,
    make_codebase,
    write_rollup,
)
from code_commit.commands.output import answering, print_bytes, redactor_of, wants_json
from code_commit.errors import EXIT_SUCCESS, NotSetUpError
from code_commit.llm.keys import find_secrets, load_keys
from code_commit.llm.vendor import CHARACTERS_PER_TOKEN, estimate_tokens
from code_commit.project import AGENT_CONFIG, Project, read_codebase, read_query
from code_commit.redaction import Redactor
from code_commit.runs.progress import Progress
from code_commit.runs.record import RunRecord
from code_commit.runs.words import count, listed
from code_commit.settings import Settings, add_settings, load_settings
from code_commit.terminal import shown

if TYPE_CHECKING:
    from code_commit.commands.chooser import FileChooser

_WARNED = (REVEALS_KEY, CONFIDENTIAL, UNREADABLE)
_NAMES_SHOWN = 5

DESCRIPTION = """\
Writes agent-config/codeRollup.txt, the codebase as one text: every file that
git tracks, and untracked ones that it does not ignore (it names these): first
LLMInstructions.md, AGENTS.md, CLAUDE.md and README, the rest by path. Left out
are agent-config, files that are no UTF-8 text, lock files, minified files, what
.gitattributes calls linguist-vendored or linguist-generated, files over 256 kB
that no PATHSPEC names, and what looks like a secret by its name (.env, *.pem
...) or content (private keys, keys of the large vendors). Says what it left out
(the file does so too, at its end), and about how many tokens the rest is.
With --fit it holds whole what agent-config/query.txt needs most, and of the
others outlines, then names. With --select an LLM chooses what is whole: one
call, logged as a run of its own."""

EXAMPLES = """\
code-commit rollup
code-commit rollup src 'tests/*.py'
code-commit rollup --exclude 'docs/' --exclude '*.svg' --verbose
code-commit rollup --include tests/cert.pem
code-commit rollup --fit 50000
code-commit rollup --select --select-model gemini:gemini-3.8-flash"""


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("pathspecs", nargs="*", metavar="PATHSPEC", help="only these, as `git ls-files` takes them")
    parser.add_argument(
        "--exclude", action="append", metavar="GLOB", help="leave these out (.gitignore syntax, repeatable)"
    )
    parser.add_argument(
        "--include", action="append", metavar="PATHSPEC", help="take these, whatever speaks against it (repeatable)"
    )
    parser.add_argument(
        "--fit",
        nargs="?",
        type=_tokens_given,
        const=ALL_THAT_IS_LEFT,
        metavar="TOKENS",
        help="make it fit into so many tokens, or what the model reads: what the task needs most stays whole",
    )
    parser.add_argument(
        "--select",
        action="store_true",
        help="let an LLM choose which files the task needs whole, as a run would ask it",
    )
    names = ["model", "select_model", "base_url", "max_cost", "llm_timeout", "json", "quiet", "verbose"]
    add_settings(parser, names)


def _tokens_given(text: str) -> int:
    if not re.fullmatch(r"[1-9][0-9_]*", text):
        raise ArgumentTypeError("must be a number of tokens; a PATHSPEC stands before it")
    return int(text)


ALL_THAT_IS_LEFT = 0


def run(options: dict[str, Any]) -> int:
    files = FileSelection(**{name: options.pop(name) for name in FileSelection._fields if name in options})
    as_json = wants_json(options)
    with answering(as_json=as_json) as project:
        progress = Progress(redactor_of(project))
        rollup = make_rollup(project, options, files, progress)
        if as_json:
            print_bytes(progress.redactor.redact_json(_as_json(rollup)))
    return EXIT_SUCCESS


def make_rollup(
    project: Project,
    options: Mapping[str, Any],
    files: "FileSelection",
    progress: Progress,
    interrupted: tuple[Path, RunRecord] | None = None,
) -> Rollup:
    """Write codeRollup.txt as the options say, and return what is in it. Raises NotSetUpError, and as `FileChooser`.

    Where an LLM is to choose, all must be there that a run needs. `interrupted` is a choice to go on with.
    """
    settings = load_settings(project, options)
    progress.redactor = Redactor(find_secrets(project, os.environ, settings.base_url, settings.fallback_base_url))
    progress.quiet, progress.verbose = settings.quiet, settings.verbose
    if message := recover(project):
        progress.say(message)
    if not files.select:
        return roll_up(project, settings, files, progress)
    from code_commit.commands.chooser import FileChooser
    from code_commit.preflight import RollUp, inspect_project, require_ready

    chooser, made = FileChooser(project, progress, interrupted=interrupted), list[Rollup]()

    def write(settings: Settings, _: Redactor) -> str:
        made.append(roll_up(project, settings, files, progress, chooser))
        return read_codebase(project)

    require_ready(project, *inspect_project(project, options, roll_up=RollUp(write, always=True)))
    return made[0]


class FileSelection(NamedTuple):
    """Which files are rolled up: all where nothing is named.

    `fit` says into how many tokens (0: all that are left), `select` that an LLM chooses what is whole, `query` for
    which task (None: that of query.txt), `for_run` that the run of that task follows;
    `mentions` is a text whose files are worth as much as those that the task names.
    """

    pathspecs: Sequence[str] = ()
    exclude: Sequence[str] = ()
    include: Sequence[str] = ()
    fit: int | None = None
    select: bool = False
    query: str | None = None
    mentions: str = ""
    for_run: bool = False


def roll_up(
    project: Project,
    settings: Settings,
    files: FileSelection,
    progress: Progress,
    chooser: "FileChooser | None" = None,
) -> Rollup:
    """Write agent-config/codeRollup.txt, say what is in it and what is not, and return that.

    Raises NotSetUpError, and what the `chooser` raises where files are to be selected.
    """
    rollup = Rollup()
    names, warnings = _select(project, settings, files, rollup)
    room = _room(project, settings, files)
    if files.select and chooser and room:
        room = room._replace(chosen=chooser.choose(settings, files, names, rollup, room))
    write_rollup(project, names, progress.redactor, rollup, room)
    if chooser:
        chooser.finish()
    rollup.untracked = [name for name in rollup.untracked if name in rollup.sizes]
    rollup.warnings = [*warnings, *_file_warnings(rollup)]
    for line in _lines(rollup, verbose=progress.verbose):
        progress.say(line)
    return rollup


def codebase_of(project: Project, settings: Settings, redactor: Redactor, files: FileSelection) -> str:
    """Return what `roll_up` would write, and write nothing. Raises NotSetUpError."""
    rollup = Rollup()
    names, _ = _select(project, settings, files, rollup)
    return "".join(make_codebase(project.root, names, redactor, rollup, _room(project, settings, files)))


def _room(project: Project, settings: Settings, files: FileSelection) -> Room | None:
    """Return how much room the codebase has, None where it need not fit.

    Where no number is given that is what the model reads, less its answer, the rest of the prompt, and what a repair
    adds: the build's output and the changed files.
    """
    if files.fit is None and not files.select:
        return None
    from code_commit.llm.models import choose_model, longest_prompt
    from code_commit.prompts import initial_prompt, load_system_prompts, make_task

    query, tokens = read_query(project) if files.query is None else files.query, files.fit or ALL_THAT_IS_LEFT
    if tokens == ALL_THAT_IS_LEFT:
        keys = load_keys(project)
        choice = choose_model(settings.model, keys, keys.unfit)
        longest = longest_prompt(choice, settings) or (UNLIMITED if files.select else 0)
        if not longest:
            raise NotSetUpError(
                f"it is not known how much {choice} reads: say it, as in --fit 100000, or set context_window"
            )
        prompts = load_system_prompts(project.system_prompts)
        task = make_task(project.root, settings._replace(answer_format="edits"), prompts, query, "")
        repair = longest // 4 if settings.max_repairs else 0
        tokens = max(longest - repair - estimate_tokens(initial_prompt(task).text), 1)
    return Room(tokens, int(tokens * CHARACTERS_PER_TOKEN), query, files.mentions)


def _select(project: Project, settings: Settings, files: FileSelection, rollup: Rollup) -> tuple[list[str], list[str]]:
    """Return the files to roll up and git's warnings; those that stay out go into `rollup`."""
    from code_commit.verify.ignored import match_patterns, repository_options

    with repository_options(project) as options:
        paths, warnings = list_files(project.root, files.pathspecs, options)
        if files.pathspecs and not paths:
            raise NotSetUpError(f"{shown(' '.join(files.pathspecs))}: no file that git does not ignore is there")
        if files.include:
            rollup.included, _ = list_files(project.root, files.include, options)
            if not rollup.included:
                raise NotSetUpError(f"--include {shown(files.include[0])}: no file that git does not ignore is there")
            paths |= rollup.included
        rollup.named = {os.path.normpath(pathspec) for pathspec in files.pathspecs}
        names = fit_names(paths, rollup)
        unwanted = [name for name in names if not rollup.is_wanted(name)]
        dropped = dict.fromkeys(find_marked(project.root, unwanted, options), MARKED)
    if exclude := [*settings.rollup_exclude, *files.exclude]:
        dropped |= dict.fromkeys(match_patterns(exclude, names), EXCLUDED)
    for name in sorted(dropped):
        rollup.leave_out(dropped[name], name)
    names = in_order(name for name in names if name not in dropped)
    if project.git is not None:
        rollup.untracked = [name for name in names if not paths[name]]
    return names, warnings


def _file_warnings(rollup: Rollup) -> Iterator[str]:
    for reason in _WARNED:
        if files := rollup.left_out.get(reason):
            mend = "; --include takes them" if reason == CONFIDENTIAL else ""
            yield f"left out: {reason}: {listed(_with_details(files))}{mend}"


def _with_details(files: Mapping[str, str]) -> list[str]:
    return [f"{shown(name)} ({detail})" if detail else shown(name) for name, detail in files.items()]


def _lines(rollup: Rollup, *, verbose: bool) -> Iterator[str]:
    yield from (f"warning: {warning}" for warning in rollup.warnings)
    files = count(len(rollup.sizes), "file")
    yield f"{AGENT_CONFIG}/codeRollup.txt: {files}, {rollup.bytes:,} bytes, about {_tokens(rollup):,} tokens"
    if rollup.outlined or {NO_ROOM, NOT_CHOSEN} & rollup.left_out.keys():
        whole, outlines = count(len(rollup.sizes), "file"), count(len(rollup.outlined), "outline")
        shown_names = listed(rollup.sizes, len(rollup.sizes) if verbose else _NAMES_SHOWN)
        yield f"made to fit: {outlines}, {whole} whole{': ' if shown_names else ''}{shown_names}"
    if rollup.untracked:
        yield f"{len(rollup.untracked):,} of them git does not track: {listed(rollup.untracked)}"
    shares = [f"{shown(name)} {size / rollup.bytes:.0%}" for name, size in rollup.largest]
    if shares:
        yield f"the largest, and their share of it: {', '.join(shares)}"
    for reason, left_out in sorted(rollup.left_out.items()):
        names = _with_details(left_out)
        if verbose:
            yield from (f"left out: {reason}: {name}" for name in names)
        elif reason not in _WARNED:
            yield f"left out: {reason}: {listed(names)}"


def _tokens(rollup: Rollup) -> int:
    return round(rollup.characters / CHARACTERS_PER_TOKEN)


def _as_json(rollup: Rollup) -> dict[str, Any]:
    return {
        "path": f"{AGENT_CONFIG}/codeRollup.txt",
        "files": len(rollup.sizes),
        "bytes": rollup.bytes,
        "tokens": _tokens(rollup),
        "largest": [{"path": name, "bytes": size, "share": size / rollup.bytes} for name, size in rollup.largest],
        "outlines": list(rollup.outlined),
        "untracked": rollup.untracked,
        "left_out": [
            {"path": os.fsencode(name).decode("utf-8", "replace"), "reason": reason, "detail": detail}
            for reason, files in sorted(rollup.left_out.items())
            for name, detail in files.items()
        ],
        "warnings": list(rollup.warnings),
    }
