"""`code-commit repair`: make a red build pass. build.sh runs first, and nothing is sent where it passes."""

from dataclasses import dataclass, field
from typing import Annotated

from code_commit.check import repair_inputs_of
from code_commit.commands import PARAGRAPHS
from code_commit.commands.output import recording, show_end
from code_commit.commands.run import run_main_job
from code_commit.settings import OPTIONS, Options

DESCRIPTION = """\
Makes a failing build pass. Runs build.sh first: if it passes, there is nothing
to repair, no key is needed, and the exit code is 0. If it fails, the LLM gets
the build's output and a new rollup. Its answers are applied and built as in the
main job, with up to three more repairs. query.txt is not read. With --output
the LLM also sees a failure from elsewhere, such as the log of a CI job, even if
build.sh passes here."""

EXAMPLES = """\
code-commit repair
code-commit repair -m 'The parser was renamed on purpose.' --protect tests/
code-commit repair --output ci.log --max-cost 2"""
SETTINGS = OPTIONS.keys() - {"build_first"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Arguments:
    """Words on the failure, the file with the output of a build that failed elsewhere, and settings."""

    task: Annotated[
        str | None,
        "TEXT",
        "what the LLM should know about the failure; each further -m adds a paragraph; - reads standard input",
        PARAGRAPHS,
    ] = None
    output: Annotated[str | None, "FILE", "the output of a build that failed elsewhere; - is standard input"] = None
    options: Options = field(default_factory=dict)


def run(arguments: Arguments) -> int:
    options = arguments.options
    with recording("repair", options) as (project, progress):
        inputs = repair_inputs_of(project, arguments.task, arguments.output)
        return show_end(project, run_main_job(project, options, progress, inputs))
