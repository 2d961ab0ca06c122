"""Helpers of the fleet's tests: a repository that is ready, recorded answers, and a list of tasks."""

import contextlib
import json
import os
import socket
import subprocess
import tarfile
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from command import git, wait_for
from distributed import Client
from forked_command import ForkedCommand, ForkedProcess

WRONG, RIGHT = "^^^ok.txt\nno\n^^^end\n", "^^^ok.txt\nok\n^^^end\n"
PRICES = {"prices": {"fake": {"input": 0.0, "output": 500.0}}}
"""An answer of the server costs 5 cents, one that is lost may have cost 50."""


def make_repository(root: Path, build: str = "grep -q '^ok$' ok.txt") -> Path:
    """Make a repository whose build passes when ok.txt says ok."""
    root.mkdir()
    git(root, "init", "-q")
    (root / ".gitignore").write_text("/agent-config\n")
    (root / "build.sh").write_text(f"#!/bin/sh\n{build}\n")
    (root / "build.sh").chmod(0o755)
    (root / "ok.txt").write_text("not yet\n")
    git(root, "add", "-A")
    git(root, "commit", "-qm", "start")
    return root


def add_submodule(root: Path) -> None:
    """Let the repository have another one as its submodule `lib`."""
    other = make_repository(root.with_name(f"{root.name}-lib"))
    git(root, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", "--", str(other), "lib")
    git(root, "commit", "-qm", "add lib")


def make_answers(folder: Path, *answers: str) -> str:
    """Record an LLM's answers and return the model that gives them."""
    folder.mkdir()
    for number, answer in enumerate(answers, start=1):
        (folder / f"{number}-response.txt").write_text(answer)
    return f"replay:{folder}"


def make_list(path: Path, *tasks: dict) -> Path:
    path.write_text("".join(json.dumps(task) + "\n" for task in tasks))
    return path


def task(name: str, repository: Path | str, model: str = "", **more) -> dict:
    settings = ({"model": model} if model else {}) | more.pop("settings", {})
    line = {"id": name, "repository": str(repository), "commit": "HEAD", "query": "Make ok.txt say ok.\nPlease."}
    return {**line, "settings": settings, **more}


def fleet_words(tasks: Path, *arguments: str) -> list[str]:
    """Return the words after `code-commit` for a fleet whose results go to the folder `out` beside its list."""
    return ["fleet", str(tasks), "--no-baseline", "--out", str(tasks.parent / "out"), *arguments]


def results(folder: Path) -> dict[str, dict]:
    """Return the latest result of each task of the list in the folder."""
    lines = (folder / "out" / "results.jsonl").read_text().splitlines()
    return {line["id"]: line for line in map(json.loads, lines)}


def pending(out: Path) -> list[float]:
    """Return what the calls under way can cost, by the logs that are kept of unfinished tasks."""
    found = []
    for log in out.glob(".*.log"):
        with contextlib.suppress(OSError), tarfile.open(log) as tar, tar.extractfile("run.json") as file:
            found += [usd for attempt in json.load(file)["attempts"] for usd in attempt["unsettled_usd"]]
    return found


def processes_with(text: str) -> list[int]:
    """Return the processes, but this one, in whose command line or working folder the text stands."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and int(entry.name) != os.getpid():
                words = (entry / "cmdline").read_bytes().decode(errors="replace")
                if text in words or text in str((entry / "cwd").readlink()):
                    found.append(int(entry.name))
        except OSError:
            continue
    return found


def descendants_of(ancestor: int) -> list[int]:
    """Return the processes that it began, and those that they did: also the ones that hide their folder."""
    parents = {}
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            if entry.name.isdigit():
                parents[int(entry.name)] = int(
                    (entry / "stat").read_text(errors="replace").rpartition(")")[2].split()[1]
                )
    found = [ancestor]
    for parent in found:
        found += [pid for pid, above in parents.items() if above == parent]
    return found[1:]


def is_running(pid: int) -> bool:
    """Tell whether there is such a process that has not ended."""
    try:
        return bool(Path(f"/proc/{pid}/cmdline").read_bytes())
    except OSError:
        return False


class Server:
    """An LLM on this machine, `chat:` at `url`: each call is answered as `answer` says, `hold` holds the answers back."""

    def __init__(self) -> None:
        self.answer: Callable[[int], tuple[int, str]] = lambda _: (200, RIGHT)
        """Return the status and the text that answer the call of this number, from 1 on."""
        self.calls: list[float] = []
        self.keys: set[str] = set()
        self.go = threading.Event()
        self.go.set()
        self.held = 0
        fleet = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                self.rfile.read(int(self.headers["content-length"]))
                if not self.path.endswith("/chat/completions"):  # a question about the server
                    self.send_error(404)
                    return
                fleet.keys.add(self.headers.get("authorization", ""))
                fleet.calls.append(time.monotonic())
                status, text = fleet.answer(len(fleet.calls))
                if len(fleet.calls) == fleet.held:
                    fleet.go.clear()
                fleet.go.wait(timeout=600)
                message = {"role": "assistant", "content": text}
                usage = {"prompt_tokens": 10_000, "completion_tokens": 100, "total_tokens": 10_100}
                body = {"choices": [{"index": 0, "message": message, "finish_reason": "stop"}], "usage": usage}
                content = json.dumps(body if status == 200 else {"error": {"message": "slower"}}).encode()
                with contextlib.suppress(OSError):
                    self.send_response(status)
                    self.send_header("content-type", "application/json")
                    self.send_header("content-length", str(len(content)))
                    self.send_header("retry-after", "1")
                    self.end_headers()
                    self.wfile.write(content)

            def log_message(self, *_: object) -> None:
                """Silent."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}/v1"
        self.settings = {"model": "chat:fake", "base_url": self.url, "max_output_tokens": 1000}
        threading.Thread(target=self._server.serve_forever, args=[0.01], daemon=True).start()

    def hold_from(self, call: int) -> None:
        """Hold the answers back from the call of this number on, until `go`."""
        self.held = call

    def close(self) -> None:
        self.go.set()
        self._server.shutdown()
        self._server.server_close()


class Wire:
    """Hands on what comes at `port` to another port of this machine, and back, while it is `open`; keeps all of it."""

    def __init__(self, target: int) -> None:
        self.bytes = bytearray()
        self.open = threading.Event()
        self.open.set()
        self._target = target
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                caller, _ = self._listener.accept()
            except OSError:
                return
            try:
                called = socket.create_connection(("127.0.0.1", self._target))
            except OSError:
                caller.close()
                continue
            for ends in ((caller, called), (called, caller)):
                threading.Thread(target=self._hand_on, args=ends, daemon=True).start()

    def _hand_on(self, source: socket.socket, target: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while piece := source.recv(1 << 16):
                self.bytes += piece
                self.open.wait(timeout=600)
                target.sendall(piece)
        for end in (source, target):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()


def is_open(port: int) -> bool:
    with socket.socket() as caller:
        return caller.connect_ex(("127.0.0.1", port)) == 0


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


class Cluster:
    """A scheduler and two workers of two threads, processes of their own, each with a root of its own; all that they say goes by wire.

    If the tests may mount, `hidden` is a folder that only the client sees.
    """

    def __init__(self, root: Path, forked: ForkedCommand, workers: str = "ab") -> None:
        self.root = root
        self.hidden = root / "hidden"
        self.hidden.mkdir()
        self._forked = forked
        self.dashboard, self._port = free_port(), free_port()
        self.wires = [Wire(self._port)]
        self.address = f"tcp://127.0.0.1:{self.wires[0].port}"
        self.start_scheduler()
        self.workers: dict[str, ForkedProcess] = {}
        for name in workers:
            self.start_worker(name)

    def start_scheduler(self) -> None:
        pages = ("--dashboard-address", f"127.0.0.1:{self.dashboard}", "--no-show")
        self.scheduler = self._dask("scheduler", "--host", "127.0.0.1", "--port", str(self._port), *pages)
        wait_for(lambda: is_open(self._port))

    def start_worker(self, name: str) -> None:
        folder = self.root / name
        folder.mkdir(exist_ok=True)
        port = free_port()
        self.wires.append(Wire(port))
        places = ("--listen-address", f"tcp://127.0.0.1:{port}", "--local-directory", str(folder))
        contact = ("--contact-address", f"tcp://127.0.0.1:{self.wires[-1].port}")
        options = ("--no-nanny", "--nthreads", "2", "--no-dashboard", *places, *contact)
        self.workers[name] = self._dask("worker", self.address, *options, "--name", name)

    def wait_for_workers(self) -> None:
        """Return when the scheduler knows all workers: a fleet begins with those that are there."""
        with Client(self.address) as client:
            client.wait_for_workers(len(self.workers), timeout=120)

    def kill_worker(self, name: str) -> None:
        with self.workers[name] as worker:
            worker.kill()

    def _dask(self, *words: str) -> ForkedProcess:
        environment = {**os.environ, "CODE_COMMIT_CHAT_API_KEY": KEY}
        return self._forked.start(["dask-" + words[0], *words[1:]], self.root, environment, hidden=str(self.hidden))

    def start_fleet(self, tasks: Path, *arguments: str, listed: bool = True) -> ForkedProcess:
        """Start a fleet on the cluster; its results go to the folder `out` beside its list, if it is one."""
        of_list = fleet_words(tasks) if listed else ["fleet"]
        words = ["code-commit", *of_list, "--scheduler", self.address, "--insecure", *arguments]
        return self._forked.start(words, tasks.parent, os.environ)

    def run_fleet(self, tasks: Path, *arguments: str, listed: bool = True) -> subprocess.CompletedProcess[str]:
        with self.start_fleet(tasks, *arguments, listed=listed) as fleet:
            output, complaint = fleet.communicate(timeout=300)
        return subprocess.CompletedProcess(fleet.args, fleet.wait(), output, complaint)

    @contextlib.contextmanager
    def unreachable_workers(self) -> Iterator[None]:
        """Hold back what the workers are asked, and what they answer; what they tell by themselves arrives."""
        for wire in self.wires[1:]:
            wire.open.clear()
        try:
            yield
        finally:
            for wire in self.wires[1:]:
                wire.open.set()

    def close(self) -> None:
        for process in (self.scheduler, *self.workers.values()):
            with process:
                process.kill()
        for wire in self.wires:
            wire.close()


KEY = "sk-fleet-test-0123456789abcdef"
