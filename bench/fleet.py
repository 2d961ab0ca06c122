"""Many tasks: a fleet against the same commands in a shell loop, sixteen at once against one, and very many tasks.

The LLM answers after a second, first wrong, then right; it runs on the same machine. The repository is small and the
build trivial: what is measured is the fleet itself.
"""

import json
import os
import shutil
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Self

from bench.measuring import Command, Cost, plain_environment
from bench.plan import SOURCE, Plan, make_environment
from bench.projects import commit_all, git, make_repository, sources, write_file
from bench.rows import Row, Skipped, Target, timed, weighed
from bench.steps import KEY
from bench.whole_run import RIGHT, TOKENS_READ, WRONG

sys.path.insert(0, str(SOURCE / "tests" / "llm"))

import fake_apis as apis

QUERY = "Write the line `right` into answer.txt, and nothing else."
FAILURE = "answer.txt is not right yet"
BUILD = f"grep -q '^right$' answer.txt || {{ echo '{FAILURE}'; exit 1; }}"
ANSWER_AFTER, AT_ONCE = 1.0, 16  # seconds; tasks
LOOP_TIME, SHARE_OF_TIME, IDLE_SHARE = Target(1.15), Target(0.1), 0.1
MOST_MEMORY = 500_000_000
MOST_SECONDS = 7200.0
NO_OPS, OF_ONE_REPOSITORY = 50, 5
"""Times the number of tasks of the other measurements."""

LOOP = """\
set -eu
for number in $(seq "$2"); do
    git clone -q --shared "$1" "clones/$number"
    mkdir -m 700 "clones/$number/agent-config"
    cp query.txt config.toml "clones/$number/agent-config/"
    cd "clones/$number"
    code-commit rollup --quiet
    code-commit run --json --quiet >"../$number.json"
    code-commit diff >"../$number.patch"
    cd ../..
done
"""


class SlowLLM:
    """A chat completions API that answers each call after a second: wrong, and right where a build has failed."""

    def __init__(self) -> None:
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
        self._server.daemon_threads = True

    def __enter__(self) -> Self:
        Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    @property
    def settings(self) -> dict[str, str]:
        """What config.toml has, for a run to ask it."""
        return {"model": "chat:bench", "base_url": f"http://127.0.0.1:{self._server.server_address[1]}/v1"}


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_: object) -> None:
        """Silent."""

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        time.sleep(ANSWER_AFTER)
        answer = apis.Answer(RIGHT if FAILURE.encode() in body.replace(BUILD.encode(), b"") else WRONG, pieces=1)
        chunks = apis.chat_chunks("bench", replace(answer, input_tokens=TOKENS_READ))
        events = b"".join(apis.data_events(chunks, done=True))
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("content-length", str(len(events)))
        self.end_headers()
        self.wfile.write(events)


class Fleets:
    """Fleets to measure, in a folder of their own."""

    def __init__(self, plan: Plan, folder: Path, llm: SlowLLM) -> None:
        environment = make_environment(plan.folder / "fleet", f"{SOURCE}[fleet]")
        self._scripts = environment / "bin"
        self._wrappers = plan.folder / "wrappers"  # outside of where the fleet runs: it takes no program from there
        self._folder = folder
        self._settings = llm.settings
        self.repository = folder / "repository"
        make_repository(self.repository, BUILD)
        for name, text in sources(files=20):
            write_file(self.repository / name, text)
        write_file(self.repository / "answer.txt", "not yet\n")
        commit_all(self.repository)

    def fleet(self, tasks: int, at_once: int, *arguments: str, exit_code: int = 0, **task: str) -> Command:
        """Return a fleet of so many tasks; `task` says what is other about them."""
        common = {"repository": str(self.repository), "commit": "HEAD", "query": QUERY, "settings": self._settings}
        lines = [json.dumps({"id": f"task-{number}", **common, **task}) for number in range(tasks)]
        write_file(self._folder / "tasks.jsonl", "\n".join(lines))
        options = ["--out", "out", "--at-once", str(at_once), "--quiet", *arguments]
        command = self._command([self._scripts / "code-commit", "fleet", "tasks.jsonl", *options], "out")
        return replace(command, exit_code=exit_code)

    def loop(self, tasks: int) -> Command:
        """Return the shell loop that does the same."""
        write_file(self._folder / "query.txt", QUERY)
        toml = "".join(f"{name} = {json.dumps(value)}\n" for name, value in self._settings.items())
        write_file(self._folder / "config.toml", toml)
        return self._command(["sh", "-c", LOOP, "sh", self.repository, str(tasks)], "clones")

    def counting_clones(self, tasks: int) -> Callable[[], int]:
        """Return what runs a fleet of one repository and says how often it was cloned from there.

        Its tasks end before they ask: their commit holds agent-config.
        """
        log, wrapper = self._folder / "clones.txt", self._wrappers / "git"
        write_file(self.repository / "agent-config" / "query.txt", "tracked")
        git(self.repository, "add", "-f", "agent-config")
        git(self.repository, "commit", "-qm", "tracked")
        url = self.repository.as_uri()
        write_file(
            wrapper, f'#!/bin/sh\ncase "$*" in *clone*{url}*) echo >>{log} ;; esac\nexec {shutil.which("git")} "$@"\n'
        )
        wrapper.chmod(0o755)
        fleet = self.fleet(tasks, AT_ONCE, "--max-failures", str(tasks + 1), exit_code=1, repository=url)
        path = f"{wrapper.parent}{os.pathsep}{fleet.environment['PATH']}"
        fleet = replace(fleet, environment={**fleet.environment, "PATH": path})

        def run() -> int:
            fleet.run()
            return len(log.read_text().splitlines())

        return run

    def _command(self, argv: Sequence[str | Path], made: str) -> Command:
        environment: Mapping[str, str] = plain_environment()
        path = f"{self._scripts}{os.pathsep}{environment['PATH']}"

        def prepare() -> None:
            shutil.rmtree(self._folder / made, ignore_errors=True)
            (self._folder / made).mkdir()

        more = {"PATH": path, "CODE_COMMIT_CHAT_API_KEY": KEY}
        return Command(argv, self._folder, more, prepare, timeout=MOST_SECONDS)


def measure(plan: Plan) -> Iterator[Row | Skipped]:
    """Yield the time of a fleet against a loop's, and of sixteen tasks at once against one."""
    tasks = 8 if plan.quick else plan.tasks
    with plan.work_folder() as folder, SlowLLM() as llm:
        fleets = Fleets(plan, folder, llm)
        loop, one = fleets.loop(tasks).run(), fleets.fleet(tasks, 1).run()
        yield timed(f"fleet of {tasks} tasks, 1 at once", "shell loop", [one], [loop], LOOP_TIME)
        own = time.process_time()
        many = fleets.fleet(tasks, AT_ONCE).run()
        yield from _at_once(tasks, many, one, time.process_time() - own)


def _at_once(tasks: int, many: Cost, one: Cost, own: float) -> Iterator[Row]:
    """Yield the time of many at once, and how idle the CPU was; one of the two targets is enough.

    `own` are the CPU seconds of this process, in which the LLM runs.
    """
    available = many.wall * (os.cpu_count() or 1)
    idle = available - many.cpu - own
    is_busy = idle <= IDLE_SHARE * available
    what = f"fleet of {tasks} tasks, {AT_ONCE} at once"
    yield timed(what, "1 at once", [many], [one], None if is_busy else SHARE_OF_TIME)
    idle_target = Target(1.0) if is_busy else None
    yield Row(f"{what}, idle CPU", "10 % of the CPU", [idle], [IDLE_SHARE * available], target=idle_target)


def measure_size(plan: Plan) -> Iterator[Row | Skipped]:
    """Yield the memory of a fleet of very many tasks that do nothing, and how often one repository is cloned."""
    tasks = 8 if plan.quick else plan.tasks
    with plan.work_folder() as folder, SlowLLM() as llm:
        fleets = Fleets(plan, folder, llm)
        number = NO_OPS * tasks
        nowhere = (folder / "nowhere").as_uri()
        empty = fleets.fleet(number, AT_ONCE, "--max-failures", str(number + 1), exit_code=1, repository=nowhere).run()
        limit = [replace(empty, peak=MOST_MEMORY)]
        yield weighed(f"fleet of {number:,} tasks that cannot be cloned", "500 MB", [empty], limit, Target(1.0))
        number, workers = OF_ONE_REPOSITORY * tasks, min(os.cpu_count() or 1, AT_ONCE)
        clones = fleets.counting_clones(number)()
        what = f"clones for {number:,} tasks of one repository"
        yield Row(what, "one for each worker", [clones], [workers], unit="clones", target=Target(1.0))
