"""`code-commit mcp` as an agent uses it: the official SDK's client over standard input and output."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager
from pathlib import Path
from threading import Timer
from typing import Any

import pytest
from command import CODE_COMMIT, Run, git, recorded, wait_for
from fake_server import FakeServer, Fault

RIGHT = "^^^ok.txt\nok\n^^^end\n"
KEY = "test-key-0123456789"
REPLAY = "replay:agent-config/recorded"
HOLDING = "#!/bin/sh\ntouch started\nsleep 600\n"


class Agent:
    """Calls tools of a server that runs in a project."""

    def __init__(self, start: Callable[..., Future], client: Any) -> None:
        self._start, self.client = start, client

    def start(self, tool: str, arguments: Mapping[str, object], on_progress=None) -> Future:
        return self._start(self.client.call_tool, tool, dict(arguments), None, on_progress)

    def call(self, tool: str, on_progress=None, **arguments: object) -> Any:
        return self.start(tool, arguments, on_progress).result(timeout=120)

    def tools(self) -> dict:
        return {tool.name: tool for tool in self._start(self.client.list_tools).result(timeout=120).tools}


@contextmanager
def agent(root: Path, *options: str, cwd: Path | None = None, **environment: str) -> Iterator[Agent]:
    from anyio.from_thread import start_blocking_portal
    from mcp.client import Client
    from mcp.client.stdio import StdioServerParameters, stdio_client

    server = StdioServerParameters(
        command=CODE_COMMIT[0], args=[*CODE_COMMIT[1:], *options, "mcp"], cwd=cwd or root, env=os.environ | environment
    )
    with start_blocking_portal() as portal:
        with portal.wrap_async_context_manager(Client(stdio_client(server))) as client:
            yield Agent(portal.start_task_soon, client)


def line_of(message: Mapping[str, object], query: bytes) -> bytes:
    """Return a message as the line that is sent, with `query` in it for QUERY."""
    return json.dumps({"jsonrpc": "2.0", **message}).encode().replace(b"QUERY", query) + b"\n"


@contextmanager
def asked(call: Mapping[str, object], root: Path, query: bytes = b"") -> Iterator[subprocess.Popen[bytes]]:
    """Give a server that was sent the call in raw lines, with `query` in it for QUERY."""
    hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "raw", "version": "1"}}
    messages = [
        {"id": 1, "method": "initialize", "params": hello},
        {"method": "notifications/initialized"},
        {"id": 2, "method": "tools/call", "params": call},
    ]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen([*CODE_COMMIT, "mcp"], cwd=root, **pipes) as server:
        for message in messages:
            server.stdin.write(line_of(message, query))
        server.stdin.flush()
        yield server


@pytest.fixture
def root(project_folder: Path) -> Path:
    recorded(project_folder, RIGHT)
    (project_folder / "agent-config" / "openai-key.txt").write_text(KEY)
    (project_folder / "agent-config" / "openai-key.txt").chmod(0o600)
    return project_folder


def lay_build(root: Path, script: str) -> None:
    (root / "build.sh").write_text(script)
    git(root, "commit", "-qam", "another build")


def text_of(result: Any) -> str:
    return "\n".join(part.text for part in result.content)


def latest(root: Path) -> dict:
    return json.loads((max((root / "agent-config" / "logs").iterdir()) / "run.json").read_text())


@pytest.mark.slow
def test_each_tool_returns_what_its_command_prints(root: Path, run_code_commit: Run):
    lay_build(root, "#!/bin/sh\nsleep 4.5\ngrep -qx ok ok.txt\n")
    told = []

    async def on_progress(progress: float, total: float | None, message: str | None) -> None:
        told.append((progress, message.partition(": ")[2]))

    with agent(root) as host:
        hints = {name: tool.annotations for name, tool in host.tools().items()}
        arguments = {name for tool in host.tools().values() for name in tool.input_schema["properties"]}
        assert not any({"title", "description"} & {*tool.input_schema} for tool in host.tools().values())
        named = {"query", "output", "allow", "protect", "model", "max_cost", "run", "text", "dry_run"}
        assert arguments == named, "no address"
        assert {name for name, hint in hints.items() if hint.read_only_hint} == {"check", "diff", "log"}
        assert {name for name, hint in hints.items() if hint.destructive_hint} == {"run", "repair", "undo", "apply"}
        assert {name for name, hint in hints.items() if hint.open_world_hint} == {"run", "repair"}
        ready = host.call("check")
        assert ready.structured_content == json.loads(run_code_commit(root, "check", "--json").stdout)
        assert not ready.is_error
        assert host.call("rollup").structured_content["files"] == 3
        done = host.call("run", on_progress, query="- say -- ok", model=REPLAY, allow=["ok.txt"], max_cost=1)
        assert (done.is_error, done.structured_content["exit_code"]) == (False, 0)
        record = latest(root)
        assert (record["query"], record["options"]["allow"]) == ("- say -- ok", ["ok.txt"])
        assert text_of(done).split("\n") == [
            "The build passes: exit code 0, 1 attempt.",
            "replace ok.txt  +1 -1",
            "warning: ok.txt shrinks to under half: from 8 to 3 bytes",
            f'The tools diff and log have more, with run = "{record["run"]}".',
        ]
        assert len(json.dumps(done.structured_content)) < 1000
        assert [each["path"] for each in done.structured_content["changes"]] == ["ok.txt"]
        assert told == sorted(dict(told).items())
        building = "attempt 1 of 4: 1 file changed, +1 -1: ok.txt; running build.sh"
        assert [line for _, line in told].count(building) > 1, "what it waits for"
        assert len(told) <= told[-1][0] / 2, "every two seconds, not at each line"
        diff = host.call("diff")
        assert text_of(diff) == run_code_commit(root, "diff").stdout != ""
        assert text_of(host.call("diff", run=done.structured_content["run"])) == text_of(diff)
        assert diff.structured_content == json.loads(run_code_commit(root, "diff", "--json").stdout)
        assert host.call("log", run="latest").structured_content == record
        undone = host.call("undo", run="-1")
        assert undone.structured_content["undoes"] == record["run"]
        assert text_of(undone).startswith(f"Undid {record['run']}: exit code 0.\nreplace ok.txt  +1 -1\n")
        named = [host.call("diff", run=name).structured_content["diff"] for name in (record["run"], "-2")]
        assert named == [text_of(diff)] * 2
        assert (root / "ok.txt").read_text() == "not yet\n"


@pytest.mark.slow
def test_an_answer_is_applied_and_what_was_done_is_told_in_short(root: Path):
    with agent(root) as host:
        assert not host.call("run", model=REPLAY).is_error
        record = latest(root)
        assert not host.call("undo").is_error
        (root / "key.txt").write_text(f"{KEY}\n")
        answer = f"{RIGHT}^^^key.txt\n^^^delete\n"
        assert "\nreplace ok.txt  +1 -1\n" in text_of(host.call("apply", text=answer, dry_run=True))
        assert (root / "ok.txt").read_text() == "not yet\n"
        assert not host.call("apply", text=answer).is_error
        assert (root / "ok.txt").read_text() == "ok\n"
        shown = [host.call("diff"), host.call("log")]
        assert "key.txt" in text_of(shown[0])
        assert KEY not in "".join(map(text_of, shown))
        runs = shown[1].structured_content["runs"]
        assert [(run["command"], run["undone"]) for run in runs] == [
            ("run", True),
            ("undo", False),
            ("apply", False),
            ("apply", False),
        ]
        assert max(len(json.dumps(run)) for run in runs) < 500
        assert {name: record[name] for name in runs[0] if name not in ("undone", "totals")}.items() <= runs[0].items()
        assert runs[0]["totals"].items() <= record["totals"].items()
        assert {"cost_usd", "unsettled_usd"} <= runs[0]["totals"].keys()


@pytest.mark.slow
def test_a_failing_build_is_repaired_and_a_passing_one_left_alone(root: Path):
    with agent(root) as host:
        done = host.call("repair", model=REPLAY, query="Say ok.", output="CI says no\n", protect=["tests/"])
        assert not done.is_error, text_of(done)
        assert (done.structured_content["command"], done.structured_content["status"]) == ("repair", "success")
        assert text_of(done).startswith("The build passes (it failed before the run): exit code 0, 1 attempt")
        (log,) = (root / "agent-config/logs").iterdir()
        assert "CI says no" in (log / "1-query.txt").read_text()
        again = host.call("repair")
        assert (again.is_error, latest(root)["attempts"]) == (False, [])
        assert again.structured_content["message"] == "nothing to repair: build.sh passes"


@pytest.mark.slow
def test_check_is_ready_for_a_run_with_a_query(root: Path):
    query = root / "agent-config" / "query.txt"
    (root / "agent-config" / "codeRollup.txt").unlink()
    with agent(root) as host:
        for lay_query in (lambda: query.write_text(""), query.unlink):
            lay_query()
            checked = host.call("check")
            assert (checked.is_error, checked.structured_content["ready"]) == (False, True)
        refused = host.call("run", model=REPLAY)
        assert (refused.is_error, "or give it with run(query)" in text_of(refused).split("{")[0]) == (True, True)
        (root / "agent-config" / "config.toml").write_text('model = "chat:m"\n')
        nowhere = text_of(host.call("run", query="x"))
        (root / "agent-config" / "config.toml").write_text('base_url = "ftp://x"\nrequire_clean = true\n')
        (root / "ok.txt").write_text("edited\n")
        checked = text_of(host.call("check"))
    assert "needs base_url (in config.toml)" in nowhere
    assert "config.toml's base_url must be an address" in checked
    assert "require_clean (in config.toml) is set" in checked
    assert "--" not in checked
    assert "code-commit" not in checked


@pytest.mark.slow
def test_an_agent_chooses_no_provider_that_the_project_does_not_use(root: Path, monkeypatch):
    monkeypatch.setenv("ANTHROPIC_API_KEY", "test-key-of-somebody-else")
    config = root / "agent-config" / "config.toml"
    with FakeServer(faults=[Fault("status", status=401, times=99)]) as server, agent(root) as host:
        for model in ("anthropic", "claude-opus-5-5", "gemini:x", "chat:x"):
            refused = host.call("run", query="x", model=model)
            assert (refused.is_error, "the project does not use" in text_of(refused)) == (True, True), model
        config.write_text('model = "openai"\nbase_url = "https://127.0.0.1:1"\nfallback_model = "anthropic:x"\n')
        elsewhere = host.call("run", query="x", model="anthropic")
        assert "exit code 2" in text_of(elsewhere)
        assert "base_url is for openai, but the model is anthropic:" in text_of(elsewhere)
        assert server.requests == []
        config.write_text(f'model = "openai"\nbase_url = "{server.url}"\n')
        asked = host.call("run", query="x", model="openai:gpt-6.2-astra")
    assert asked.structured_content["exit_code"] == 3
    assert len(server.requests) == 1


@pytest.mark.slow
@pytest.mark.skipif(not shutil.which("setpriv"), reason="it ends what a server that is killed had started")
def test_a_run_ends_with_a_server_that_is_killed(root: Path):
    lay_build(root, HOLDING)
    with asked({"name": "run", "arguments": {"model": REPLAY}}, root) as server:
        wait_for((root / "started").exists)
        server.kill()
        wait_for(lambda: latest(root)["status"] != "running")
    assert (latest(root)["status"], latest(root)["exit_code"]) == ("interrupted", 143)


@pytest.mark.slow
def test_a_query_that_looks_like_an_option_is_a_query(root: Path):
    with agent(root) as host:
        for query in ("--", "-- say ok", "--json", "-C/nowhere"):
            done = host.call("run", query=query, model=REPLAY)
            assert (done.is_error, latest(root)["query"]) == (False, query)
        assert not host.call("apply", text=RIGHT, dry_run=True).is_error
        (root / "empty").mkdir()
        ended = text_of(host.call("run", query="x", model="replay:empty"))
        assert "\n  code-commit resume continues this run." in ended
        rejected = text_of(host.call("apply", text="no block"))
        assert "See: code-commit log --open." in rejected
        refused = host.call("run", query="x", model="--")
        assert (refused.is_error, "unknown model '--'" in text_of(refused)) == (True, True)


@pytest.mark.sweep
def test_a_query_with_half_a_character_is_answered(root: Path):
    """In raw lines: the SDK's client does not send it."""
    queries = [
        (b"half \\udc80 of one", "half \ufffd of one"),
        (b"\\ud83d at the end \\uD83D", "\ufffd at the end \ufffd"),
        (b"raw \xed\xa0\xbd bytes", "raw \ufffd\ufffd\ufffd bytes"),
        (b"a whole one \\ud83d\\ude00 and \xf0\x9f\x98\x80", "a whole one \U0001f600 and \U0001f600"),
        (rb"a backslash \\udc80", r"a backslash \udc80"),
    ]
    call = {"name": "run", "arguments": {"query": "QUERY", "model": REPLAY}}
    with asked(call, root, queries[0][0]) as server:
        late = Timer(60, server.kill)
        late.start()
        server.stdout.readline()
        for number, (query, taken) in enumerate(queries, start=2):
            if number > 2:
                server.stdin.write(line_of({"id": number, "method": "tools/call", "params": call}, query))
                server.stdin.flush()
            answer = json.loads(server.stdout.readline())
            assert (answer["id"], answer["result"]["structuredContent"]["status"]) == (number, "success")
            assert latest(root)["query"] == taken
        late.cancel()
        server.stdin.close()


@pytest.mark.slow
def test_what_is_asked_at_once_or_called_off(root: Path):
    lay_build(root, HOLDING)
    with agent(root) as host:
        running = host.start("run", {"model": REPLAY})
        wait_for((root / "started").exists)
        refused = host.call("apply", text=RIGHT)
        assert refused.is_error
        assert "exit code 2\ncode-commit: another code-commit is running here (process " in text_of(refused)
        running.cancel()
        wait_for(lambda: latest(root)["status"] != "running")
        assert (latest(root)["status"], latest(root)["exit_code"]) == ("interrupted", 130)
        assert not host.call("undo").is_error, "the tree is whole, and free"
        (root / "started").unlink()
        host.start("run", {"model": REPLAY})
        wait_for((root / "started").exists)
        assert latest(root)["status"] == "running"
    assert latest(root)["status"] == "interrupted", "its client has gone"


HOSTILE = {
    "a run elsewhere": ("diff", {"run": "../../../etc"}, "there is no run ../../../etc"),
    "a run that is an option": ("undo", {"run": "--force"}, "there is no run --force"),
    "a model that is an option": ("run", {"query": "x", "model": "--base-url=http://127.0.0.1:1"}, "unknown model"),
    "a model elsewhere": ("run", {"query": "x", "model": "replay:../../etc"}, "must lie in the project"),
    "a path elsewhere": ("apply", {"text": "^^^../out.txt\nx\n^^^end\n"}, "exit code 4"),
    "a query of 10 MB": (
        "run",
        {"query": "x" * 10_000_000},
        "query is too long: write the task into agent-config/query.txt",
    ),
    "patterns of 10 MB": ("run", {"query": "x", "allow": ["x" * 10_000_000]}, "Argument list too long"),
    "a query that no argument holds": ("run", {"query": "a\0b"}, "null byte"),
    "an argument that there is not": (
        "run",
        {"max_costs": 1},
        "run takes no max_costs: it takes query, allow, protect, model, max_cost",
    ),
    "an empty pattern": ("run", {"query": "x", "allow": ["a", ""]}, "allow.1 must not be empty"),
    "no budget": ("run", {"query": "x", "max_cost": 0}, "max_cost must be more than 0"),
    "an empty query": ("run", {"query": ""}, "empty"),
    "a query that is no text": ("run", {"query": 3}, "query must be a string"),
    "no text": ("apply", {}, "text is missing"),
    "an unknown tool": ("init", {}, "there is no tool init"),
}


@pytest.mark.slow
def test_hostile_arguments_are_told_and_change_nothing(root: Path):
    with agent(root) as host:
        told = {name: host.call(tool, **arguments) for name, (tool, arguments, _) in HOSTILE.items()}
    assert [
        name for name, result in told.items() if not result.is_error or HOSTILE[name][2] not in text_of(result)
    ] == []
    assert git(root, "status", "--porcelain") == ""
    assert not (root.parent / "out.txt").exists()


@pytest.mark.slow
def test_what_the_project_forbids_no_agent_allows(root: Path):
    config = root / "agent-config" / "config.toml"
    config.write_text('allow = ["src/"]\nprotect = ["ok.txt"]\nmax_cost = 2\n')
    with agent(root) as host:
        for loosened in ({"allow": ["*"]}, {"protect": ["docs/"]}, {"max_cost": 3}):
            refused = host.call("run", model=REPLAY, **loosened)
            assert refused.is_error
            assert f"arguments: {next(iter(loosened))}: " in text_of(refused)
        done = host.call("run", model=REPLAY, max_cost=1)
        assert (done.is_error, "No file changed." in text_of(done)) == (True, True)
        assert latest(root)["options"]["max_cost"] == 1
        assert "is protected by --protect" in latest(root)["attempts"][0]["rejections"][0]["message"]

        config.write_text("approve = true\n")
        for refused in (host.call("run", model=REPLAY), host.call("apply", text=RIGHT)):
            assert refused.is_error
            assert "approve" in text_of(refused)
        assert not host.call("apply", text=RIGHT, dry_run=True).is_error
    assert (root / "ok.txt").read_text() == "not yet\n"


@pytest.mark.slow
def test_a_client_that_nobody_hears_leaves_no_server_and_no_run(root: Path):
    lay_build(root, HOLDING)
    call = {"name": "run", "arguments": {"model": REPLAY}, "_meta": {"progressToken": 1}}
    with asked(call, root) as server:
        wait_for((root / "started").exists)
        server.stdout.close()  # standard input stays open
        assert (server.wait(timeout=120), server.stderr.read()) == (0, b"")
    assert latest(root)["status"] == "interrupted"


@pytest.mark.slow
def test_on_a_terminal_it_says_what_it_waits_for(root: Path):
    ours, theirs = os.openpty()
    command = [*CODE_COMMIT, "mcp"]
    with subprocess.Popen(command, cwd=root, stdin=theirs, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as server:
        assert server.stderr
        assert server.stderr.readline() == b"waiting for an agent on standard input; Ctrl-C ends it\n"
        server.terminate()
    os.close(ours)
    os.close(theirs)


@pytest.mark.slow
def test_without_its_extra_it_says_what_to_install(root: Path):
    script = "import sys; sys.modules['mcp'] = None; from code_commit.cli import main; sys.exit(main(['mcp']))"
    done = subprocess.run([sys.executable, "-c", script], cwd=root, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert "in the clone of code-commit, pip install '.[mcp]'" in done.stderr


@pytest.mark.slow
def test_no_module_of_the_project_is_imported(root: Path, tmp_path: Path):
    """A relative PYTHONPATH would lead there from the folder in which each command runs."""
    (root / "code_commit").mkdir()
    for name in ("__init__", "__main__"):
        (root / "code_commit" / f"{name}.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\n")
    (tmp_path / "elsewhere").mkdir()
    with agent(root, "-C", str(root), cwd=tmp_path / "elsewhere", PYTHONPATH=".:") as it:
        assert "query.txt" in text_of(it.call("check"))
    assert not (tmp_path / "ran").exists()


@pytest.mark.slow
def test_no_secret_of_the_users_own_settings_shows_in_a_result(project_folder: Path, tmp_path: Path):
    """A server that quotes a header's value and the key that a program printed, and a build that prints both."""
    user, token, printed = (
        Path(os.environ["HOME"], ".config", "code-commit"),
        "tok-header-0123456",
        "tok-printed-9876543",
    )
    user.mkdir(parents=True, mode=0o700)
    (tmp_path / "print-key").write_text(f"#!/bin/sh\necho {printed}\n")
    (tmp_path / "print-key").chmod(0o755)
    (project_folder / "build.sh").write_text(f"#!/bin/sh\necho {token} {printed}\ngrep -q '^ok$' ok.txt\n")
    git(project_folder, "commit", "-qam", "print")
    fault = Fault("status", status=400, body={"error": {"message": f"not {token} {printed}"}})
    with FakeServer([f"{token} {printed}\n\n{RIGHT}"], [fault]) as server:
        lines = [f'model = "chat:m"\nbase_url = "{server.url}/v1"\nkey_command = "{tmp_path}/print-key"', "[headers]"]
        (user / "config.toml").write_text("\n".join([*lines, 'X-Token = {env = "TOKEN"}\n']))
        with agent(project_folder, TOKEN=token) as its:
            results = [its.call("run", query="Make ok.txt say ok.") for _ in range(2)]
            results += [its.call(tool) for tool in ("check", "log", "diff")]
    told = "".join(result.model_dump_json() for result in results)
    assert ("build_failed" in told or "success" in told, token in told, printed in told) == (True, False, False)
    sent = server.requests[-1].headers
    assert (sent["x-token"], sent["authorization"]) == (token, f"Bearer {printed}")


@pytest.mark.parametrize(
    ("tool", "arguments", "said"),
    [
        ("run", {}, "run(query)"),
        ("repair", {"output": " "}, "the build output that was given is empty"),
        ("undo", {"run": "2020"}, "there is no run 2020"),
        ("apply", {"text": ""}, "is empty"),
    ],
)
def test_what_could_not_begin_is_told_in_a_few_lines_for_an_agent(tool, arguments, said, root: Path):
    (root / "agent-config/query.txt").write_text("")
    with agent(root) as host:
        result = host.call(tool, **arguments)
    (told,) = (part.text for part in result.content)
    fields = result.structured_content
    assert (result.is_error, fields["exit_code"], fields["run"]) == (True, 2, "")
    assert told.startswith("exit code 2\n")
    assert said in told
    assert said in fields["message"]
    assert len(json.dumps(fields)) < 1000
    assert "-m TEXT" not in str(result)
    assert "attempts" not in fields
