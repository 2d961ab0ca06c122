"""Many tasks of two attempts each: what one costs beside git and the build, and how a fleet uses time and memory.

The LLM runs on the same machine. The repository is small and the build trivial: what is measured is the fleet itself.
"""

import json
import os
import shutil
import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count
from pathlib import Path

from bench.comparing import Comparison, Plan, growth, limit
from bench.environments import Tool
from bench.measuring import Command, Cost, plain_environment
from bench.projects import make_checkout, write_file
from bench.steps import KEY
from bench.whole_run import TOKENS_READ, Answer, FakeServer

QUERY = "Write a line into answer.txt, and nothing else."
BUILD = "test -e built || { touch built; echo 'answer.txt is not right yet'; exit 1; }"
OWN_CPU = 0.25  # seconds a task
LOOP_TIME = 1.15
WAITING, AT_ONCE = 1.0, 16  # seconds; tasks
CLONE = 'git clone -q --shared "$1" "clones/$number"; cd "clones/$number"'
GIT_AND_BUILD = "git ls-files; git status --porcelain; ./build.sh || ./build.sh; git diff"
OURS = """\
mkdir -m 700 agent-config; cp ../../query.txt ../../config.toml agent-config/
code-commit rollup --quiet; code-commit run --json --quiet; code-commit diff"""


class BusyLLM(FakeServer):
    """Answers everybody, after some seconds, each time with another line."""

    def __init__(self) -> None:
        super().__init__()
        self.seconds = 0.0
        self._numbers = count()

    def next_answer(self) -> Answer:
        time.sleep(self.seconds)
        return Answer(f"^^^answer.txt\n{next(self._numbers)}\n^^^end\n", input_tokens=TOKENS_READ)


@dataclass(frozen=True)
class Fleets:
    """Fleets of a repository, in a folder of their own."""

    folder: Path
    repository: Path
    llm: BusyLLM

    def fleet(self, tool: Tool, tasks: int, at_once: int, *arguments: str, exit_code: int = 0, **task: str) -> Command:
        """Return a fleet of so many tasks; `task` says what is other about them."""
        common = {"repository": str(self.repository), "commit": "HEAD", "query": QUERY, "settings": self._settings}

        def prepare() -> None:
            lines = (json.dumps({"id": f"task-{number}", **common, **task}) for number in range(tasks))
            write_file(self.folder / "tasks.jsonl", "\n".join(lines))
            if "--failed" not in arguments:
                shutil.rmtree(self.folder / out, ignore_errors=True)

        out = f"out-{tasks}"
        argv = [tool.with_fleet().command, "fleet", "tasks.jsonl", "--out", out, "--at-once", str(at_once), "--quiet"]
        environment = {"CODE_COMMIT_CHAT_API_KEY": KEY}
        return Command([*argv, *arguments], self.folder, environment, prepare, exit_code)

    def loop(self, tool: Tool, tasks: int, commands: str) -> Command:
        """Return the shell loop that runs the commands in as many clones."""
        script = f"set -eu\nfor number in $(seq {tasks}); do {CLONE}; {commands}; cd ../..; done"

        def prepare() -> None:
            write_file(self.folder / "query.txt", QUERY)
            toml = (f"{name} = {json.dumps(value)}\n" for name, value in self._settings.items())
            write_file(self.folder / "config.toml", "".join(toml))
            shutil.rmtree(self.folder / "clones", ignore_errors=True)
            (self.folder / "clones").mkdir()

        path = f"{tool.with_fleet().command.parent}{os.pathsep}{plain_environment()['PATH']}"
        address = f"chat:{self._settings['base_url']}"  # named here too, or no key goes to it
        environment = {"PATH": path, "CODE_COMMIT_CHAT_API_KEY": KEY, "CODE_COMMIT_BASE_URL": address}
        return Command(["sh", "-c", script, "sh", self.repository], self.folder, environment, prepare)

    @property
    def _settings(self) -> dict[str, str]:
        return {"model": "chat:bench", "base_url": self.llm.base_url("chat")}


def measure(plan: Plan) -> Iterator[Comparison]:
    """Yield what a task costs, how that grows, and what many at once gain and need."""
    few, many, cores = 4, 40, os.cpu_count() or 1
    taken: dict[tuple[Tool, int], Cost] = {}
    with plan.work_folder() as folder, BusyLLM() as llm:
        repository = make_checkout(folder / "repository", files=20, build=BUILD, answer="not yet\n")
        (folder / "fleets").mkdir()
        fleets = Fleets(folder / "fleets", repository, llm)

        def extra(tool: Tool, many: int, few: int, at_once: int) -> Cost:
            """Return what so many tasks cost more than so few."""
            for tasks in (many, few):
                taken[tool, tasks] = fleets.fleet(tool, tasks, at_once).run()
            large, small = taken[tool, many], taken[tool, few]
            return Cost(large.wall - small.wall, large.cpu - small.cpu)

        def beside(tool: Tool) -> Cost:
            """Return the CPU seconds of a task, beside git and the build."""
            plain = fleets.loop(tool, many, GIT_AND_BUILD).run()
            own = extra(tool, many, few, cores).cpu / (many - few) - plain.cpu / many
            return Cost(own, own)

        if plan.quick:
            small, loop = (lambda tool: fleets.fleet(tool, few, cores)), (lambda tool: fleets.loop(tool, few, OURS))
            yield Comparison(f"a fleet of {few} tasks", "the same in a shell loop", small, loop, 2)
            return
        yield Comparison("CPU of a task beside git and build", "250 ms", beside, limit(OWN_CPU), 1, time=1.0)
        yield growth(f"a fleet of {few} tasks", lambda tool: taken[tool, many], lambda tool: taken[tool, few], 1)
        one, loop = (lambda tool: extra(tool, 12, 2, 1)), (lambda tool: fleets.loop(tool, 10, OURS))
        yield Comparison("10 tasks more of a fleet, 1 at a time", "a shell loop of 10", one, loop, 1, LOOP_TIME)
        yield _waiting(fleets, 2 * AT_ONCE)
        task = {"repository": (folder / "nowhere").as_uri()}
        for words, again in (
            ("a fleet of 100 tasks that cannot be cloned", ()),
            ("the same with --failed", ("--failed",)),
        ):
            options = ("--max-failures", "1001", *again)
            large, small = (
                lambda tool, tasks=tasks, options=options: fleets.fleet(
                    tool, tasks, AT_ONCE, *options, exit_code=1, **task
                )
                for tasks in (1000, 100)
            )
            yield growth(words, large, small, 1, memory=1.1)


def _waiting(fleets: Fleets, tasks: int) -> Comparison:
    """Compare the time of many at once with that of the LLM and of the CPU, one after the other."""
    taken: list[Cost] = []

    def wait(tool: Tool) -> Cost:
        fleets.llm.seconds = WAITING
        taken.append(fleets.fleet(tool, tasks, AT_ONCE).run())
        fleets.llm.seconds = 0.0
        return taken[-1]

    def ideal(_: Tool) -> Cost:
        seconds = 2 * WAITING * tasks / AT_ONCE + taken[-1].cpu / (os.cpu_count() or 1)
        return Cost(seconds, seconds)

    what = f"a fleet of {tasks} tasks, {AT_ONCE} at a time, the LLM takes {WAITING:.0f} s"
    return Comparison(what, "its waiting and its CPU time, shared", wait, ideal, 1)
