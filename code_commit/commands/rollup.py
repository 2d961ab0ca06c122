"""`code-commit rollup`: write agent-config/codeRollup.txt from the files that git tracks or would track.

It takes no lock: a run has read the rollup before it changes a file, and the new one takes its place at once.
"""

import os
import re
from argparse import ArgumentParser, ArgumentTypeError
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from code_commit.codebase.make import Choose, write_codebase
from code_commit.codebase.select import CONFIDENTIAL, NO_ROOM, NOT_CHOSEN, REVEALS_KEY, UNREADABLE, CodebaseRequest
from code_commit.codebase.text import Codebase
from code_commit.commands.output import answering, print_bytes, redactor_of, wants
from code_commit.errors import EXIT_SUCCESS, NoKeyError, NotSetUpError
from code_commit.llm.keys import find_secrets, load_keys
from code_commit.llm.vendor import CHARACTERS_PER_TOKEN
from code_commit.project import AGENT_CONFIG, TRANSACTION_FOLDER, Project, read_query
from code_commit.redaction import Redactor
from code_commit.runs.progress import Progress
from code_commit.runs.record import RunRecord
from code_commit.runs.words import count, listed
from code_commit.settings import MOST, Settings, add_settings, load_settings
from code_commit.terminal import shown

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
call, logged as a run of its own. build.sh is whole wherever it has room."""

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
        "--include", action="append", metavar="PATHSPEC", help="include these even if a rule excludes them (repeatable)"
    )
    parser.add_argument(
        "--fit",
        nargs="?",
        type=_tokens_given,
        const=0,
        metavar="TOKENS",
        help="make it fit into so many tokens, or what the model reads: what the task needs most stays whole",
    )
    parser.add_argument(
        "--select",
        action="store_true",
        help="let an LLM choose which files the task needs whole, as a run would ask it",
    )
    parser.add_argument("--json", action="store_true", help="print what is in it as JSON on stdout")
    names = ["model", "select_model", "base_url", "max_cost", "llm_timeout", "quiet", "verbose"]
    add_settings(parser, names)


def _tokens_given(text: str) -> int:
    if not re.fullmatch(r"[1-9][0-9_]*", text) or len(text) > len(f"{MOST:_}"):
        raise ArgumentTypeError("must be a number of tokens above 0; a PATHSPEC stands before --fit")
    return int(text)


def run(options: dict[str, Any]) -> int:
    named = {name: options.pop(name) for name in CodebaseRequest._fields if name in options}
    as_json = wants("json", options)
    with answering(as_json=as_json) as project:
        progress = Progress(redactor_of(project))
        codebase = make_rollup(project, options, CodebaseRequest(**named), progress)
        if as_json:
            print_bytes(progress.redactor.redact_json(_as_json(codebase)))
    return EXIT_SUCCESS


def make_rollup(
    project: Project,
    options: Mapping[str, Any],
    request: CodebaseRequest,
    progress: Progress,
    interrupted: tuple[Path, RunRecord] | None = None,
) -> Codebase:
    """Write codeRollup.txt as the options say, and return what is in it. Raises NotSetUpError, and as `FileChooser`.

    Where an LLM is to choose, all must be there that a run needs. `interrupted` is a choice to go on with.
    """
    settings = load_settings(project, options)
    progress.redactor = Redactor(find_secrets(project, os.environ, settings.base_url, settings.fallback_base_url))
    progress.quiet, progress.verbose = settings.quiet, settings.verbose
    if os.path.lexists(project.agent_config / TRANSACTION_FOLDER):
        from code_commit.apply import recover  # a tree is seldom half changed

        if message := recover(project):
            progress.say(message)
    if not project.agent_config.exists():
        from code_commit.check.tree import check_ignore_line  # it is made but once

        try:
            check_ignore_line(project)
        except NotSetUpError as error:
            progress.say(f"warning: {error}")
    if project.git is None:
        progress.say(f"warning: this is no git repository: all that is in {shown(str(project.root))} counts")
    if not request.select:
        request = with_room(project, settings, request)
        return roll_up(project, settings, request, progress)
    from code_commit.check import Given, check_run
    from code_commit.commands.choosing import FileChooser

    checked, _ = check_run(project, options, Given(request.query or None, fresh=True))
    request = with_room(project, settings, request._replace(query=checked.query))
    with FileChooser(project, checked, progress, interrupted=interrupted) as chooser:
        return roll_up(project, settings, request, progress, chooser.choose)


def with_room(project: Project, settings: Settings, request: CodebaseRequest) -> CodebaseRequest:
    """Return the request with its task, and with how many tokens the codebase may have. Raises NotSetUpError."""
    if request.fit is None and not request.select:
        return request
    request = request._replace(query=request.query or read_query(project), edits=settings.answer_format != "files")
    if request.fit:
        return request
    from code_commit.check import BY_NUMBER, tokens_left
    from code_commit.llm.models import choose_model

    keys = load_keys(project)
    try:
        choice = choose_model(settings.model, keys, keys.unfit)
    except NoKeyError as error:
        how = f"name a --model (no key is needed here), or {BY_NUMBER}"
        raise NotSetUpError(f"how much fits depends on the model: {how}") from error
    return request._replace(fit=tokens_left(project, choice, settings, request))


def roll_up(
    project: Project,
    settings: Settings,
    request: CodebaseRequest,
    progress: Progress,
    choose: Choose | None = None,
) -> Codebase:
    """Write agent-config/codeRollup.txt, say what is in it and what is not, and return that.

    Raises NotSetUpError, and what `choose` raises where files are to be selected.
    """
    codebase = write_codebase(project, settings.rollup_exclude, request, progress.redactor, choose)
    for line in _lines(codebase, verbose=progress.verbose):
        progress.say(line)
    return codebase


def _warnings(codebase: Codebase) -> list[str]:
    return [*codebase.warnings, *_file_warnings(codebase)]


def _file_warnings(codebase: Codebase) -> Iterator[str]:
    for reason in _WARNED:
        if files := codebase.left_out.get(reason):
            mend = f"; --include takes {'it' if len(files) == 1 else 'them'}" if reason == CONFIDENTIAL else ""
            yield f"left out ({reason}): {listed(_with_details(files))}{mend}"


def _with_details(files: Mapping[str, str]) -> list[str]:
    return [f"{shown(name)} ({detail})" if detail else shown(name) for name, detail in files.items()]


def _lines(codebase: Codebase, *, verbose: bool) -> Iterator[str]:
    yield from (f"warning: {warning}" for warning in _warnings(codebase))
    files = count(len(codebase.sizes), "file")
    size = f"{count(codebase.bytes, 'byte')}, about {count(_tokens(codebase), 'token')}"
    yield f"{AGENT_CONFIG}/codeRollup.txt: {files}, {size}"
    if codebase.outlined or codebase.windows or {NO_ROOM, NOT_CHOSEN} & codebase.left_out.keys():
        whole, outlines = count(len(codebase.sizes), "file"), count(len(codebase.outlined), "outline")
        shown_names = listed(codebase.sizes, len(codebase.sizes) if verbose else _NAMES_SHOWN)
        yield f"made to fit: {outlines}, {whole} whole{': ' if shown_names else ''}{shown_names}"
        yield from (f"shown in part: {shown(at.path)}, lines {at.first} to {at.last}" for at in codebase.windows)
    if codebase.untracked:
        yield f"{len(codebase.untracked):,} of them git does not track: {listed(codebase.untracked)}"
    shares = [f"{shown(name)} {size / codebase.bytes:.0%}" for name, size in codebase.largest]
    if shares:
        yield f"the largest, and their share of it: {', '.join(shares)}"
    for reason, left_out in sorted(codebase.left_out.items()):
        names = _with_details(left_out)
        if verbose:
            yield from (f"left out ({reason}): {name}" for name in names)
        elif reason not in _WARNED:
            yield f"left out ({reason}): {listed(names)}"


def _tokens(codebase: Codebase) -> int:
    return round(codebase.characters / CHARACTERS_PER_TOKEN)


def _as_json(codebase: Codebase) -> dict[str, Any]:
    return {
        "path": f"{AGENT_CONFIG}/codeRollup.txt",
        "files": len(codebase.sizes),
        "bytes": codebase.bytes,
        "tokens": _tokens(codebase),
        "largest": [{"path": name, "bytes": size, "share": size / codebase.bytes} for name, size in codebase.largest],
        "outlines": list(codebase.outlined),
        "parts": [part.path for part in codebase.windows],
        "untracked": list(codebase.untracked),
        "left_out": [
            {"path": os.fsencode(name).decode("utf-8", "replace"), "reason": reason, "detail": detail}
            for reason, files in sorted(codebase.left_out.items())
            for name, detail in files.items()
        ],
        "warnings": _warnings(codebase),
    }
