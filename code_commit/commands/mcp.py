"""`code-commit mcp`: the commands as tools for an agent, over standard input and output."""

import sys

from code_commit.commands import NoArguments
from code_commit.commands.output import answering
from code_commit.errors import CODEBASE, EXIT_SUCCESS, TASK, Named, NotSetUpError

DESCRIPTION = """\
Serves the commands check, rollup, run, repair, diff, log, undo and apply as
tools for an agent, using the Model Context Protocol over standard input and
output. It works only in the folder where it was started, until its client
disconnects. The agent starts it: docs/mcp.md shows how to set that up. It needs
extra packages: run pip install '.[mcp]' in the clone of code-commit."""

EXAMPLES = "code-commit mcp"
SETTINGS_OF_RUN = ("allow", "protect", "model", "max_cost")  # those that are arguments of the tool `run`


def as_argument(named: Named) -> str:
    """Word it for an agent, which calls tools and reads config.toml."""
    if named in (TASK, CODEBASE):
        return "run(query)" if named == TASK else "rollup"
    name = named.setting if named.setting in SETTINGS_OF_RUN else f"{named.setting} (in config.toml)"
    return f"{name} {named.value}".rstrip()


def run(_: NoArguments) -> int:
    with answering(as_json=False):
        try:
            from code_commit.commands.mcp_server import serve
        except ModuleNotFoundError as error:
            ways = "pip install '.[mcp]', or pipx install --force '.[mcp]'"
            message = f"the module {error.name} is not installed: in the clone of code-commit, {ways}"
            raise NotSetUpError(message) from error
        if sys.stdin.isatty():
            sys.stderr.write("waiting for an agent on standard input; Ctrl-C ends it\n")
        serve()
    return EXIT_SUCCESS
