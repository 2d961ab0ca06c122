"""What the tests of a fleet share: a repository that is ready, recorded answers, and a list of tasks."""

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from command import CODE_COMMIT, git, wait_for

WRONG, RIGHT = "^^^ok.txt\nno\n^^^end\n", "^^^ok.txt\nok\n^^^end\n"


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


def start_fleet(tasks: Path, *arguments: str, **more) -> subprocess.Popen[str]:
    """Start a fleet whose results go to the folder `out` beside its list."""
    words = [*CODE_COMMIT, "fleet", str(tasks), "--out", str(tasks.parent / "out"), *arguments]
    return subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=tasks.parent, **more)


def run_fleet(tasks: Path, *arguments: str, seconds: float = 60, **more) -> subprocess.CompletedProcess[str]:
    with start_fleet(tasks, *arguments, **more) as process:
        try:
            output, complaint = process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGTERM)
            raise
    return subprocess.CompletedProcess(process.args, process.returncode, output, complaint)


def results(folder: Path) -> dict[str, dict]:
    """Return the latest result of each task of the list in the folder."""
    lines = (folder / "out" / "results.jsonl").read_text().splitlines()
    return {line["id"]: line for line in map(json.loads, lines)}


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


class Server:
    """An LLM on this machine, `chat:` at `url`: each call is answered as `answer` says, `hold` holds the answers back."""

    def __init__(self) -> None:
        self.answer: Callable[[int], tuple[int, str]] = lambda _: (200, RIGHT)
        """What the call of this number, from 1 on, is answered with: status and text."""
        self.calls: list[float] = []
        self.keys: set[str] = set()
        self.go = threading.Event()
        self.go.set()
        fleet = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                self.rfile.read(int(self.headers["content-length"]))
                fleet.keys.add(self.headers.get("authorization", ""))
                fleet.calls.append(time.monotonic())
                status, text = fleet.answer(len(fleet.calls))
                fleet.go.wait(30)
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

    def close(self) -> None:
        self.go.set()
        self._server.shutdown()
        self._server.server_close()


class Wire:
    """Hands on what comes at `port` to another port of this machine, and back, and keeps all of it."""

    def __init__(self, target: int) -> None:
        self.bytes = bytearray()
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
    """A scheduler and two workers, processes of their own, each with a root of its own; all that they say goes by wire.

    Where the tests may mount, `hidden` is a folder that only the client sees.
    """

    def __init__(self, root: Path, workers: str = "ab") -> None:
        self.root = root
        self.hidden = root / "hidden"
        self.hidden.mkdir()
        hide = ["unshare", "-m", "sh", "-c", 'mount -t tmpfs none "$0" && exec "$@"', str(self.hidden)]
        self._hide = hide if subprocess.run([*hide, "true"], capture_output=True, check=False).returncode == 0 else []
        self._environment = {**os.environ, "CODE_COMMIT_CHAT_API_KEY": KEY}
        self.dashboard, port = free_port(), free_port()
        self.wires = [Wire(port)]
        self.address = f"tcp://127.0.0.1:{self.wires[0].port}"
        pages = ("--dashboard-address", f"127.0.0.1:{self.dashboard}", "--no-show")
        self.scheduler = self._dask("scheduler", "--host", "127.0.0.1", "--port", str(port), *pages)
        wait_for(lambda: is_open(port))
        self.workers: dict[str, subprocess.Popen[bytes]] = {}
        for name in workers:
            self.start_worker(name)

    def start_worker(self, name: str) -> None:
        folder = self.root / name
        folder.mkdir(exist_ok=True)
        port = free_port()
        self.wires.append(Wire(port))
        places = ("--listen-address", f"tcp://127.0.0.1:{port}", "--local-directory", str(folder))
        contact = ("--contact-address", f"tcp://127.0.0.1:{self.wires[-1].port}")
        options = ("--no-nanny", "--nthreads", "4", "--no-dashboard", *places, *contact)
        self.workers[name] = self._dask("worker", self.address, *options, "--name", name)

    def kill_worker(self, name: str) -> None:
        self.workers[name].kill()
        self.workers[name].wait()

    def _dask(self, *words: str) -> subprocess.Popen[bytes]:
        command = [*self._hide, sys.executable, "-P", "-m", "distributed.cli.dask_" + words[0], *words[1:]]
        with (self.root / "log.txt").open("ab") as log:
            return subprocess.Popen(command, cwd=self.root, env=self._environment, stdout=log, stderr=log)

    def run(self, tasks: Path, *arguments: str, **more) -> subprocess.CompletedProcess[str]:
        return run_fleet(tasks, "--scheduler", self.address, *arguments, **more)

    def close(self) -> None:
        for process in (self.scheduler, *self.workers.values()):
            process.kill()
            process.wait()
        for wire in self.wires:
            wire.close()


KEY = "sk-fleet-test-0123456789abcdef"
