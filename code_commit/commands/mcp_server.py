"""The server of `code-commit mcp`: its tools, and the calls of them.

Each call runs the command as a process of its own, which can be interrupted and takes its memory with it. Every value
is in one word with its option, or after `--`, so that no value can be an option.
"""

import asyncio
import json
import signal
import sys
import time
from asyncio.subprocess import PIPE
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryFile
from threading import Thread
from typing import IO, Annotated, Any, NamedTuple, cast

import anyio
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp_types import (
    CallToolRequestParams,
    CallToolResult,
    ListToolsResult,
    PaginatedRequestParams,
    TextContent,
    Tool,
    ToolAnnotations,
)
from pydantic import BaseModel, Field, ValidationError
from pydantic_core import to_jsonable_python

from code_commit.api import diff, list_runs, provider_of, read_record, uses_provider
from code_commit.commands.mcp import as_argument
from code_commit.errors import FAULTS, CodeCommitError, Interrupted, NotSetUpError, in_words
from code_commit.files import read_regular_file
from code_commit.interrupts import ENDING_SIGNALS
from code_commit.project import AGENT_CONFIG, CONFIG_FILE, find_project
from code_commit.regex import regex
from code_commit.runs import words
from code_commit.runs.record import RunRecord, load_run_record
from code_commit.settings import FILE, PROGRAM, Settings
from code_commit.sources import load_settings
from code_commit.terminal import shown
from code_commit.trust import own_command, with_parent_death_signal
from code_commit.version import __version__

_INSTRUCTIONS = """\
Another LLM writes a change of this project, build.sh checks it, and the LLM repairs a failing build, three times at \
most. Nothing is committed. Call check first, then run with the task as query (it needs neither query.txt nor \
codeRollup.txt then), or repair if build.sh fails already, then look at diff; undo takes a run back; log has the \
record of a run. Messages may name commands: code-commit diff is the tool diff, and a command that is not a tool, such \
as code-commit resume, runs in a shell."""
_READS = ToolAnnotations(read_only_hint=True, open_world_hint=False)
_RENEWS = ToolAnnotations(read_only_hint=False, destructive_hint=False, idempotent_hint=True, open_world_hint=False)
_CHANGES = ToolAnnotations(read_only_hint=False, destructive_hint=True, idempotent_hint=False, open_world_hint=False)
_ASKS = _CHANGES.model_copy(update={"open_world_hint": True})
_NEWEST = 10  # runs that `log` lists where none is named, each with these fields
_LISTED = ("run", "command", "started", "model", "query", "status", "exit_code", "undone", "undoes")
_LISTED_TOTALS = ("seconds", "attempts", "cost_usd", "unsettled_usd", "files_changed")
_OF_VERDICT = ("run", "command", "status", "exit_code", "message", "error", "undoes")
_SAID_BYTES = 4000  # of the end of a command's stderr
_CHUNK = 1 << 16
_SECONDS_BETWEEN_REPORTS = 2
_LONGEST_NAME = 100
_FAULTS = FAULTS | {
    "string_pattern_mismatch": "must not be empty",
    "string_too_long": "is too long: write the task into agent-config/query.txt",
}
_ESCAPES = regex(r"\\(?:u[dD][89abAB]..\\u[dD][c-fC-F]..|(?P<half>u[dD][89a-fA-F]..)|.)")
"""Escapes in JSON (RFC 8259, section 7): a pair of surrogates is a character, one alone is half of one."""


_Glob = Annotated[str, Field(pattern=r"\S")]


class _Arguments(BaseModel, extra="forbid"):
    """The arguments of a tool."""

    def words(self) -> list[str]:
        """Return the words of the command line. Raises ValueError for values that are not allowed."""
        return []

    def standard_input(self) -> bytes:
        return b""


class _CheckArguments(_Arguments):
    def words(self) -> list[str]:
        """Check a run with a query where query.txt is missing or empty, as `init` leaves it."""
        file = find_project().query_file
        return [] if file.exists() and read_regular_file(file).strip() else ["-m=(the query)"]


class _RunArguments(_Arguments):
    query: str | None = Field(
        None,
        max_length=30_000,
        description="the task; the codebase is rolled up first. Default: agent-config/query.txt",
    )
    allow: list[_Glob] = Field([], description="only paths that match may change (.gitignore syntax)")
    protect: list[_Glob] = Field([], description="paths that match must not change (.gitignore syntax)")
    model: str = Field("", description="PROVIDER:NAME, of a provider that the project uses. Default: the project's")
    max_cost: float | None = Field(None, gt=0, description="US dollars: stop before a call that could exceed it")

    def words(self) -> list[str]:
        folder = self.model.removeprefix("replay:")
        if folder != self.model and not Path(folder).resolve().is_relative_to(Path.cwd()):
            raise ValueError("model: recorded responses must lie in the project")
        if self.model.startswith(PROGRAM):
            raise ValueError("model: a program runs only where the user's own settings name it; omit it")
        project = find_project()
        own = load_settings(project, {})
        if self.model and folder == self.model:
            provider = provider_of(self.model)
            if not uses_provider(project.root, provider):
                raise NotSetUpError(
                    f"model: the project does not use {provider}: its settings name no model of it, and"
                    f" {AGENT_CONFIG} has no key for it"
                )
        for name in ("allow", "protect"):
            if getattr(self, name) and getattr(own, name):
                raise ValueError(f"{name}: {_place_of(own, name)} sets it and takes precedence; omit it")
        if self.max_cost and own.max_cost and self.max_cost > own.max_cost:
            raise ValueError(f"max_cost: {_place_of(own, 'max_cost')} grants {own.max_cost:g} at most")
        words = [] if self.query is None else [f"-m={self.query}"]
        words += [f"--model={self.model}"] if self.model else []
        words += [f"--max-cost={self.max_cost}"] if self.max_cost is not None else []
        return [*words, *(f"--allow={glob}" for glob in self.allow), *(f"--protect={glob}" for glob in self.protect)]


def _place_of(own: Settings, name: str) -> str:
    source = own.source_of(name)
    return f"{AGENT_CONFIG}/{CONFIG_FILE}" if source == FILE else source


class _RepairArguments(_RunArguments):
    query: str | None = Field(
        None, max_length=30_000, description="what the LLM should know of the failure. Default: nothing"
    )
    output: str = Field("", description="what a build printed that failed elsewhere, such as the log of a CI job")

    def words(self) -> list[str]:
        return [*super().words(), *(["--output=-"] if self.output else [])]

    def standard_input(self) -> bytes:
        return self.output.encode()


class _RunName(_Arguments):
    run: str = Field("", description="the beginning of its name, latest, or -1, -2 from the end")

    def words(self) -> list[str]:
        if self.run.startswith("-") and not self.run[1:].isdecimal():  # an option
            raise NotSetUpError(f"there is no run {shown(self.run)}")
        return [self.run] if self.run else []


class _Answer(_Arguments):
    text: str = Field(description="the LLM's response: a block for each file, from ^^^PATH to ^^^end")
    dry_run: bool = Field(default=False, description="verify it only, change nothing")

    def words(self) -> list[str]:
        if not self.dry_run and load_settings(find_project(), {}).approve:
            raise ValueError("approve = true: nobody can be asked here; dry_run shows what it would change")
        return ["--dry-run", "-"] if self.dry_run else ["-"]

    def standard_input(self) -> bytes:
        return self.text.encode()


class _Tool(NamedTuple):
    description: str
    arguments: type[_Arguments]
    hints: ToolAnnotations


_TOOLS = {
    "check": _Tool("Tell whether a run could start here, and what is missing for it.", _CheckArguments, _READS),
    "rollup": _Tool("Write codeRollup.txt, the codebase as the LLM sees it; tell what is in it.", _Arguments, _RENEWS),
    "run": _Tool(
        "Let the LLM make a change: apply its answer whole or not at all, run build.sh, let it repair what fails."
        " Takes minutes and costs money. exit_code is 0 only if the build passes after the last change. Returns the"
        " verdict and what changed in brief; diff and log have the rest.",
        _RunArguments,
        _ASKS,
    ),
    "repair": _Tool(
        "Make a failing build pass: run build.sh, and if it fails let the LLM repair it as run does. If it passes,"
        " nothing is sent.",
        _RepairArguments,
        _ASKS,
    ),
    "diff": _Tool(
        "Return what the latest run, or the named one, changed, as one diff that git apply reads.", _RunName, _READS
    ),
    "log": _Tool("Return the record of the named run, or a list of the newest runs.", _RunName, _READS),
    "undo": _Tool("Put back what the latest run, or the named one, changed. It is a run itself.", _RunName, _CHANGES),
    "apply": _Tool("Verify a response and apply it, whole or not at all; no LLM, no build.", _Answer, _CHANGES),
}  # the commands that are tools, by their names
_RUNS = ("run", "repair", "undo", "apply")  # those that return what a run came to


def serve() -> None:
    """Serve the current folder to the client on standard input and output until it disconnects. Raises Interrupted."""
    signals: list[int] = []
    try:
        asyncio.run(_serve(signals))
    except* BrokenPipeError:
        pass  # the client has gone
    if signals:
        raise Interrupted(signals[0])


async def _serve(signals: list[int]) -> None:
    server = Server(
        "code-commit",
        version=__version__,
        instructions=_INSTRUCTIONS,
        on_list_tools=_list_tools,
        on_call_tool=_call_tool,
    )
    requests: Any = _requests(signals)
    async with stdio_server(requests) as (incoming, outgoing):
        await server.run(incoming, outgoing, server.create_initialization_options())


def _requests(signals: list[int]) -> asyncio.StreamReader:
    """Return the lines of standard input, which end with it or at a signal; the signal is added to the list."""
    loop, lines = asyncio.get_running_loop(), asyncio.StreamReader(limit=sys.maxsize)

    def read() -> None:
        with open(0, "rb", closefd=False) as standard_input:
            for line in standard_input:
                loop.call_soon_threadsafe(lines.feed_data, _without_half_characters(line))
        loop.call_soon_threadsafe(lines.feed_eof)

    def end(number: int) -> None:
        signals.append(number)
        lines.feed_eof()

    for number in ENDING_SIGNALS:
        loop.add_signal_handler(number, end, number)
    Thread(target=read, daemon=True).start()
    return lines


def _without_half_characters(line: bytes) -> bytes:
    """Return a line of JSON with U+FFFD for half characters: the SDK leaves a call with one unanswered."""
    text = line.decode("utf-8", "replace")
    return _ESCAPES.sub(lambda escape: r"\ufffd" if escape["half"] else escape[0], text).encode()


async def _list_tools(_: ServerRequestContext, __: PaginatedRequestParams | None) -> ListToolsResult:
    tools = []
    for name, tool in _TOOLS.items():
        schema = tool.arguments.model_json_schema()
        for told in ("title", "description"):  # the names and docstrings of classes tell an agent nothing
            schema.pop(told, None)
        tools.append(Tool(name=name, description=tool.description, input_schema=schema, annotations=tool.hints))
    return ListToolsResult(tools=tools)


async def _call_tool(context: ServerRequestContext, call: CallToolRequestParams) -> CallToolResult:
    if call.name not in _TOOLS:
        return _result(f"there is no tool {shown(call.name[:_LONGEST_NAME])}: there are {', '.join(_TOOLS)}")
    with TemporaryFile() as given, TemporaryFile() as printed:
        try:
            arguments = _TOOLS[call.name].arguments.model_validate(call.arguments or {})
            given.write(arguments.standard_input())
            given.seek(0)
            exit_code, said = await _run_command([call.name, "--json", *arguments.words()], given, printed, context)
        except ValidationError as error:
            return _result("\n".join(_explain(call.name, fault) for fault in error.errors()))
        except (NotSetUpError, OSError, ValueError) as error:
            said = in_words(error.message, as_argument) if isinstance(error, NotSetUpError) else ""
            reason = said or getattr(error, "strerror", None) or error
            return _result(f"{call.name} cannot be called with these arguments: {reason}")
        printed.seek(0)
        output = printed.read().decode("utf-8", "replace")
    if exit_code:
        said = f"exit code {exit_code}\n{said}"
    if not output:
        return _result(said, is_error=exit_code != 0)
    value = json.loads(output)
    if isinstance(value, list):
        value = {"runs": list(map(_in_short, value[-_NEWEST:]))}
    if call.name in _RUNS:
        return _end_of(load_run_record(output), exit_code, said)
    text = value["diff"] if "diff" in value else json.dumps(value, ensure_ascii=False)
    return _result(said if exit_code or "diff" in value else "", text, structured=value, is_error=exit_code != 0)


def _end_of(record: RunRecord, exit_code: int, said: str) -> CallToolResult:
    """Return what a run came to; one that could not begin has its reason, in the agent's words, and no more."""
    if record.run:
        verdict, fields = _verdict_of(record)
        return _result(verdict, said if exit_code else "", structured=fields, is_error=exit_code != 0)
    fields = {name: getattr(record, name) for name in _OF_VERDICT} | {"message": said.partition("\n")[2]}
    return _result(said, structured=to_jsonable_python(fields))


def _verdict_of(record: RunRecord) -> tuple[str, dict[str, Any]]:
    """Return the end of a run and its changes as lines and as fields; the tool `log` has the whole record."""
    is_dry = bool(record.options.get("dry_run"))
    changes = record.attempts[-1].changes if is_dry and record.attempts else []
    unknown: list[str] = []
    if record.totals.files_changed and not record.rolled_back:
        with suppress(CodeCommitError):  # of a damaged snapshot: the tool diff says so
            _, unknown, changes = diff(run=record.run)
    end = words.headline_of(record) + words.result_before(record)
    told = record.message if record.message and record.exit_code == 0 else end
    attempts = words.count(record.totals.attempts, "attempt") if record.asks else ""
    done = words.joined(f"exit code {record.exit_code}", attempts, words.total_cost(record.totals))
    rows = [*words.change_rows(changes), *(f"{path}, no longer known" for path in unknown)] or ["No file changed."]
    where = f'The tools diff and log have more, with run = "{record.run}".'
    warnings = list(map(str, record.warnings))
    lines = [f"{told[0].upper()}{told[1:]}: {done}.", *rows, *words.check_lines(changes)]
    lines += [*(f"warning: {warning}" for warning in warnings), where]
    fields = {name: getattr(record, name) for name in _OF_VERDICT}
    fields |= {"changes": changes, "unknown": unknown, "warnings": warnings}
    fields["totals"] = {name: getattr(record.totals, name) for name in _LISTED_TOTALS}
    return "\n".join(lines), to_jsonable_python(fields)


def _explain(tool: str, fault: Mapping[str, Any]) -> str:
    """Return an argument's fault, as pydantic tells it, in words."""
    name = shown(".".join(map(str, fault["loc"]))[:_LONGEST_NAME])
    if fault["type"] == "extra_forbidden":
        taken = ", ".join(_TOOLS[tool].arguments.model_fields) or "no arguments"
        return f"{tool} takes no {name}: it takes {taken}"
    return f"{name} {_FAULTS.get(fault['type'], fault['msg'])}"


def _in_short(record: dict[str, Any]) -> dict[str, Any]:
    totals = {name: record["totals"][name] for name in _LISTED_TOTALS}
    return {name: record[name] for name in _LISTED} | {"totals": totals}


def _result(*texts: str, structured: Any = None, is_error: bool = True) -> CallToolResult:
    content = [TextContent(text=text) for text in texts if text]
    return CallToolResult(content=list(content), structured_content=structured, is_error=is_error)


async def _run_command(
    words: list[str], given: IO[bytes], printed: IO[bytes], context: ServerRequestContext
) -> tuple[int, str]:
    """Run a command of ours to its end; return its exit code and the end of its stderr.

    If the request is cancelled or the client disconnects, the command is interrupted and leaves the tree whole.
    """
    process = await asyncio.create_subprocess_exec(
        *with_parent_death_signal(own_command(entry="tool"), Path.cwd()),
        *words,
        stdin=given,
        stdout=printed,
        stderr=PIPE,
        start_new_session=True,
    )
    try:
        said = await _follow(process, context)
        return await process.wait(), said
    finally:
        if process.returncode is None:
            process.send_signal(signal.SIGINT)
            with anyio.CancelScope(shield=True):
                await process.communicate()


async def _follow(process: asyncio.subprocess.Process, context: ServerRequestContext) -> str:
    """Report the last line of stderr and the current wait every few seconds; return the end of stderr."""
    stream, started, said, is_open = cast(asyncio.StreamReader, process.stderr), time.monotonic(), b"", True
    while is_open:
        with anyio.move_on_after(_SECONDS_BETWEEN_REPORTS):
            while piece := await stream.read(_CHUNK):
                said = (said + piece)[-_SAID_BYTES:]
            is_open = False
        if is_open:
            elapsed, line = time.monotonic() - started, said.rstrip().rpartition(b"\n")[2].decode("utf-8", "replace")
            told = filter(None, [line, _awaited_by(process.pid)])
            await context.session.report_progress(elapsed, message=f"{words.duration(elapsed)}: {'; '.join(told)}")
    return said.decode("utf-8", "replace").rstrip()


def _awaited_by(process: int) -> str:
    """Return the current wait of this process's run, by its record; "" where there is none."""
    with suppress(NotSetUpError):
        latest = [read_record(folder) for folder in list_runs()[-1:]]
        return "".join(words.awaited(run) for run in latest if run.pid == process)
    return ""
