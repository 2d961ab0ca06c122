"""`code-commit rollup`: write codeRollup.txt. It takes no lock: a run has read the file before it changes another."""

import os
import re
from argparse import ArgumentParser, ArgumentTypeError
from dataclasses import dataclass, field
from typing import Annotated, Any

from code_commit.apply.recover import recover
from code_commit.check import RunInputs, plan_run
from code_commit.check.codebase import codebase_for
from code_commit.check.tree import check_ignore_line
from code_commit.codebase.make import summary_of, tokens_of, warnings_of, write_codebase, write_parts
from code_commit.codebase.select import CodebaseRequest
from code_commit.codebase.text import Codebase
from code_commit.commands.output import answering, output_of, print_json, redactor_of
from code_commit.errors import EXIT_SUCCESS, NotSetUpError
from code_commit.llm.keys import find_secrets
from code_commit.project import AGENT_CONFIG, Project
from code_commit.redaction import Redactor
from code_commit.runs.progress import Progress
from code_commit.runs.record import RunEntry
from code_commit.settings import MOST, Facet, Options, settings_for
from code_commit.sources import load_settings
from code_commit.terminal import shown
from code_commit.views import Outline, Part, of_kind

DESCRIPTION = """\
Writes agent-config/codeRollup.txt, the codebase as one text file. It contains
every file that git tracks, and every untracked file that git does not ignore
(rollup prints their names). LLMInstructions.md, AGENTS.md, CLAUDE.md and README
come first, then the rest by path. It leaves out agent-config, files that are
not UTF-8 text, lock files, minified files, files that are generated (according
to .gitattributes or their own header), files over 256 kB unless a PATHSPEC
names them, and files that look secret by name (.env, *.pem ...) or by content
(private keys, vendors' keys, random values next to words such as password). At
its end is a list of what was left out. rollup prints that list too, and roughly
how many tokens the file has. With --fit, the files that agent-config/query.txt
needs most are included whole, the others as outlines, or only by name if those
do not fit either. With --select, an LLM chooses which files are included whole:
one call, logged as a run of its own. build.sh is included whole if there is
room."""

EXAMPLES = """\
code-commit rollup
code-commit rollup src 'tests/*.py'
code-commit rollup --exclude 'docs/' --exclude '*.svg' --verbose
code-commit rollup --include tests/cert.pem
code-commit rollup --fit 50000
code-commit rollup --select --select-model gemini:gemini-3.8-flash"""
SETTINGS = {*settings_for(Facet.ROLLUP, Facet.OUTPUT)} - {"json"}


def _tokens_given(text: str) -> int:
    if not re.fullmatch(r"[1-9][0-9_]*", text) or len(text) > len(f"{MOST:_}"):
        raise ArgumentTypeError("must be a number of tokens above 0; put PATHSPECs before --fit")
    return int(text)


@dataclass(frozen=True, slots=True, kw_only=True)
class Arguments:
    """The arguments of the command; `options` are the settings among them."""

    pathspecs: Annotated[
        tuple[str, ...],
        "PATHSPEC",
        "include only these files (as in `git ls-files PATHSPEC`)",
        {"flag": "", "nargs": "*"},
    ] = ()
    exclude: Annotated[tuple[str, ...], "GLOB", "leave these files out (.gitignore syntax, repeatable)"] = ()
    include: Annotated[
        tuple[str, ...], "PATHSPEC", "include these files even if a rule excludes them (repeatable)"
    ] = ()
    fit: Annotated[
        int | None,
        "TOKENS",
        "fit the rollup into TOKENS, or into the model's window; the files that the task needs most stay whole",
        {"nargs": "?", "type": _tokens_given, "const": 0},
    ] = None
    select: Annotated[bool, "", "let an LLM choose which files are whole, as in a run with --rollup select"] = False
    options: Options = field(default_factory=dict)

    @property
    def request(self) -> CodebaseRequest:
        return CodebaseRequest(self.pathspecs, self.exclude, self.include, self.fit, self.select)


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print a summary of the rollup as JSON on stdout")


def run(arguments: Arguments) -> int:
    output = output_of(arguments.options)
    with answering(as_json=output.json) as project:
        progress = Progress(redactor_of(project), quiet=output.quiet, verbose=output.verbose)
        codebase = make_rollup(project, arguments.options, arguments.request, progress)
        if output.json:
            print_json(progress.redactor.redact_json(_as_json(codebase)))
    return EXIT_SUCCESS


def make_rollup(
    project: Project,
    options: Options,
    request: CodebaseRequest,
    progress: Progress,
    resumed: RunEntry | None = None,
) -> Codebase:
    """Write codeRollup.txt and return its codebase. Raises NotSetUpError, and as `FileChooser`.

    A choice by an LLM needs all that a run needs. `resumed` is a choice to continue.
    """
    _look_at_project(project, progress)
    if request.fit is None and not request.select:
        settings = load_settings(project, options)
        secrets = find_secrets(project, os.environ, settings.base_url, settings.fallback_base_url)
        progress.redactor = Redactor(secrets)
        codebase = write_codebase(project, settings.rollup_exclude, request, progress.redactor)
    else:
        from code_commit.commands.choosing import FileChooser  # it imports what few runs need: all that outlines a file

        inputs = RunInputs(command="rollup", query=request.query or None, request=request, resumed=resumed)
        plan = plan_run(project, options, inputs)
        progress.redactor = plan.redactor
        with FileChooser(plan, progress) as chooser:
            codebase = codebase_for(plan, chooser.choose if request.select else None)
            write_parts(project, codebase.parts)
    for line in summary_of(codebase, verbose=progress.verbose):
        progress.say(line)
    return codebase


def _look_at_project(project: Project, progress: Progress) -> None:
    """Repair a tree that is half changed, and warn of a missing ignore line or repository."""
    progress.say(recover(project))
    if not project.agent_config.exists():
        try:
            check_ignore_line(project)
        except NotSetUpError as error:
            progress.say(f"warning: {error}")
    if project.git is None:
        progress.say(f"warning: not a git repository: the rollup includes every file in {shown(str(project.root))}")


def _as_json(codebase: Codebase) -> dict[str, Any]:
    return {
        "path": f"{AGENT_CONFIG}/codeRollup.txt",
        "files": len(codebase.sizes),
        "bytes": codebase.bytes,
        "tokens": tokens_of(codebase),
        "largest": [{"path": name, "bytes": size, "share": size / codebase.bytes} for name, size in codebase.largest],
        "outlines": list(of_kind(codebase.views, Outline)),
        "parts": list(of_kind(codebase.views, Part)),
        "untracked": list(codebase.untracked),
        "left_out": [
            {"path": os.fsencode(name).decode("utf-8", "replace"), "reason": reason, "detail": detail}
            for reason, files in sorted(codebase.left_out.items())
            for name, detail in files.items()
        ],
        "warnings": warnings_of(codebase),
    }
