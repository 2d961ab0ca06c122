"""A real model, on tasks of a few lines: what it makes of our prompts, and of aider's, with as many calls."""

import argparse
import hashlib
import json
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import httpx

from bench.comparing import table
from bench.environments import CACHE, SOURCE, Tool, git, tool_at, tool_of
from bench.measuring import Command, CommandFailedError, UnavailableError
from bench.projects import make_repository, write_file
from bench.proxy import Proxy
from bench.whole_run import AGENT_MODEL, AIDER_METADATA, AIDER_OPTIONS, agent_environment

TASKS = Path(__file__).with_name("small_tasks")
HIDDEN = "checks"
JUDGES = ("build.sh", HIDDEN, "tests")
"""What is put back before a tree is judged."""
PROGRAMS = {"c": "cc", "javascript": "node"}
LONGEST_ANSWER = 900  # tokens
RUN_TIMEOUT, LLM_TIMEOUT, BUILD_TIMEOUT = 3600.0, 900, 60
JUDGED_EXIT = ("sh", "-c", '"$@"; code=$?; case $code in 1 | 4) exit 0 ;; esac; exit $code', "sh")
"""A build that still fails, or an answer that is rejected, is a result like any other."""
SAME, RED, GREEN, ERROR = "same", "red", "green", "error"
"""A tree after an answer: as it was before, or changed and judged; an error is no judgement of the model."""


@dataclass(frozen=True, slots=True)
class Task:
    """A folder with `before`, the project; `query.txt`; `answer.txt`, a right answer in our fences.

    The folder `checks` of a project is shown to no model. Where there is a `first.txt`, it is an answer that the query
    suggests and the checks refuse, so that the build's output has to be read.
    """

    folder: Path

    @property
    def name(self) -> str:
        return self.folder.name

    def digest(self) -> str:
        """Return a name for all that it holds."""
        files = sorted(path for path in self.folder.rglob("*") if path.is_file())
        text = "".join(f"{file.relative_to(TASKS)}\n{file.read_text()}" for file in files)
        return hashlib.sha256(text.encode()).hexdigest()

    def lay_out(self, folder: Path) -> Path:
        """Make the project, committed, with the query in agent-config."""
        root = make_repository(folder / self.name)
        shutil.copytree(self.folder / "before", root, dirs_exist_ok=True)
        git(root, "add", "-A")
        git(root, "commit", "-qm", "start")
        shutil.copy(self.folder / "query.txt", root / "agent-config")
        return root

    def judge(self, root: Path) -> str:
        """Return how the tree stands, by the task's own build and tests."""
        if not git(root, "status", "--porcelain"):
            return SAME
        before = self.folder / "before"
        with tempfile.TemporaryDirectory() as folder:
            ignore = shutil.ignore_patterns(".git", "agent-config", ".aider*")
            tree = shutil.copytree(root, Path(folder, self.name), symlinks=True, ignore=ignore)
            for path in (path for name in JUDGES for path in [*before.glob(name), *before.glob(f"{name}/*")]):
                if path.is_file():
                    shutil.copy(path, write_file(tree / path.relative_to(before), ""))
            try:
                Command(["./build.sh"], tree, build_environment(), timeout=BUILD_TIMEOUT).run()
            except CommandFailedError:
                return RED
        return GREEN


@dataclass(frozen=True, slots=True)
class Agent:
    """A tool that does tasks: its column in the table, what is installed, and what it does in a project."""

    name: str
    version: str
    work: Callable[[Path, Proxy], None]


def build_environment() -> dict[str, str]:
    """Return the variables that make `python3` of a build the one that runs this."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return {"PATH": path, "PYTHONDONTWRITEBYTECODE": "1"}


def call(root: Path, environment: dict[str, str], *argv: str | Path) -> None:
    """Run a command in the project. Raises CommandFailedError where it did not end, or could not do its work."""
    Command([*JUDGED_EXIT, *argv], root, build_environment() | environment, timeout=RUN_TIMEOUT).run()


def code_commit(tool: Tool, layout: str) -> Agent:
    """Return a code-commit with the settings that its `init` writes, but for the prompt's layout."""

    def work(root: Path, proxy: Proxy) -> None:
        call(root, {}, tool.command, "init")
        call(root, {}, tool.command, "rollup", "--quiet", "--exclude", HIDDEN)
        server = ["--model", f"chat:{proxy.model}", "--base-url", proxy.url, "--llm-timeout", str(LLM_TIMEOUT)]
        limits = ["--max-repairs", str(proxy.most_calls - 1), "--build-timeout", str(BUILD_TIMEOUT)]
        call(root, {}, tool.command, *server, *limits, "--prompt-layout", layout)

    return Agent(tool.name, tool.folder.name + (f" {layout}" if layout != "cached" else ""), work)


def aider(command: Path) -> Agent:
    """Return aider: whole files, its test command, and the files that ours are shown."""

    def work(root: Path, proxy: Proxy) -> None:
        with tempfile.TemporaryDirectory() as home:
            metadata = write_file(Path(home, "models.json"), json.dumps(AIDER_METADATA))
            options = ["--model", AGENT_MODEL, "--model-metadata-file", metadata, "--timeout", str(LLM_TIMEOUT)]
            files = git(root, "ls-files", "--", ":!build.sh", f":!{HIDDEN}", ":!.gitignore").decode().split()
            environment = agent_environment(Path(home), proxy.url)
            call(root, environment, command, *options, *AIDER_OPTIONS, "--read", "build.sh", *files)

    return Agent("aider", str(command), work)


def run_task(agent: Agent, task: Task, sampling: dict[str, Any], repairs: int, proxy: Proxy) -> dict[str, Any]:
    """Return what became of the task: how the tree stood after each answer, and what the answers were."""
    states: list[str] = []
    error, began = "", time.monotonic()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        root = task.lay_out(Path(folder))
        proxy.start_run(repairs + 1, sampling, lambda: states.append(task.judge(root)))
        try:
            agent.work(root, proxy)
        except CommandFailedError as failure:
            error = str(failure)
        with proxy.lock:
            calls, error = proxy.calls, proxy.failure or error or ("" if proxy.calls else "the LLM was not called")
        states.append(task.judge(root))
        records = [json.loads(path.read_text()) for path in root.glob("agent-config/logs/*/run.json")]
        attempts = [attempt for record in records for attempt in record["attempts"]]
    return {
        "states": states,
        "verdict": ERROR if error else states[-1],
        "error": error,
        "seconds": round(time.monotonic() - began, 1),
        "calls": [asdict(call) for call in calls],
        "logged": [[one["verdict"], *(reason["rule"] for reason in one["rejections"])] for one in attempts],
    }


def run_all(
    agents: Sequence[Agent], tasks: Sequence[Task], options: argparse.Namespace, proxy: Proxy
) -> Iterator[dict[str, Any]]:
    """Yield the result of each task of each agent. Those that the file of results has are not run again."""
    file: Path | None = options.json
    known = [json.loads(line) for line in file.read_text().splitlines()] if file and file.exists() else []
    results = {result["key"]: result for result in known if result["verdict"] != ERROR}
    samplings = [{"temperature": 0.2, "seed": seed} for seed in range(1, options.seeds + 1)] or [{"temperature": 0}]
    for chosen, task, agent in ((s, t, a) for s in samplings for t in tasks for a in agents):
        sampling = chosen | {"max_tokens": LONGEST_ANSWER}
        about = {"version": agent.version, "model": proxy.model, "task": task.name, "repairs": options.repairs}
        about |= sampling
        key = hashlib.sha256(json.dumps([about, task.digest()]).encode()).hexdigest()[:16]
        if key not in results:
            result = run_task(agent, task, sampling, options.repairs, proxy)
            results[key] = {"key": key, "agent": agent.name} | about | result
            if file:
                with file.open("a") as lines:
                    lines.write(json.dumps(results[key]) + "\n")
        yield results[key] | {"agent": agent.name}


def summary(results: Sequence[dict[str, Any]]) -> dict[str, str]:
    """Return the rows of an agent's column."""
    judged = [result["states"] if result["verdict"] != ERROR else [ERROR] for result in results]
    first = [states[0] for states in judged]
    failed = [states for states in judged if states[0] != GREEN]
    calls = [call for result in results for call in result["calls"]]
    tokens = {name: sum(call[name] for call in calls) for name in ("input", "cached", "output", "seconds")}
    return {
        "first answers that could be applied": f"{sum(state in (RED, GREEN) for state in first)} of {len(first)}",
        "green without repairs": str(first.count(GREEN)),
        "green": str(sum(states[-1] == GREEN for states in judged)),
        "turned green by repairs": f"{sum(states[-1] == GREEN for states in failed)} of {len(failed)}",
        "calls": str(len(calls)),
        "tokens in (cached)": f"{tokens['input']:,} ({tokens['cached']:,})",
        "tokens out": f"{tokens['output']:,}",
        "seconds of the LLM": f"{tokens['seconds']:,.0f}",
        "errors": str(first.count(ERROR)),
    }


def report(results: Sequence[dict[str, Any]]) -> str:
    """Return both tables: the sums, and how the tree of each task stood after each answer."""
    agents = list(dict.fromkeys(result["agent"] for result in results))
    sums = [summary([result for result in results if result["agent"] == agent]) for agent in agents]
    rows = [[name, *(column[name] for column in sums)] for name in sums[0]]
    states: dict[tuple[str, str], list[str]] = {}
    for result in results:
        shown = ERROR if result["verdict"] == ERROR else " ".join(result["states"])
        states.setdefault((result["task"], result["agent"]), []).append(shown)
    tasks = dict.fromkeys(result["task"] for result in results)
    each = [[task, *("; ".join(states.get((task, agent), ["-"])) for agent in agents)] for task in tasks]
    return "\n\n".join(table(["", *agents], rows) for rows in (rows, each))


def select_tasks(pattern: str) -> list[Task]:
    """Return the tasks whose names match. Raises UnavailableError for none, and where a program for one is missing."""
    tasks = [Task(folder) for folder in sorted(TASKS.iterdir()) if fnmatch(folder.name, pattern)]
    if not tasks:
        raise UnavailableError(f"no task matches {pattern}; their names are in {TASKS}")
    programs = {PROGRAMS.get(task.name.partition("-")[0], "sh") for task in tasks}
    if missing := sorted(program for program in programs if not shutil.which(program)):
        raise UnavailableError(f"{' and '.join(missing)} cannot be found; install that, or choose other --tasks")
    return tasks


def read_arguments(arguments: Sequence[str]) -> argparse.Namespace:
    """Return the options."""
    parser = argparse.ArgumentParser(prog="python -m bench small_model", description=__doc__)
    parser.add_argument("--server", required=True, metavar="URL", help="Chat Completions, for instance llama-server's")
    parser.add_argument("--tasks", default="*", metavar="GLOB", help="of the names in bench/small_tasks, default all")
    parser.add_argument("--seeds", type=int, default=0, metavar="N", help="N runs at temperature 0.2; default 1 at 0")
    parser.add_argument("--repairs", type=int, default=3, choices=(0, 3), help="default 3")
    parser.add_argument("--layout", default="cached", help="of our prompts, default cached, which init writes")
    parser.add_argument("--against", metavar="REVISION", help="measure a revision beside this tree")
    parser.add_argument("--aider", type=Path, metavar="COMMAND", help="measure this aider beside it")
    parser.add_argument("--json", type=Path, metavar="FILE", help="append results; do not repeat those that it has")
    parser.add_argument("--environment", type=Path, metavar="FOLDER", help="measure what is installed there")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str]) -> int:
    """Run the tasks and print the tables. The exit code is 1 where a run was disturbed, 2 where none could begin."""
    options = read_arguments(arguments)
    results = []
    try:
        tasks = select_tasks(options.tasks)
        with Proxy(options.server) as proxy:
            tool = Tool(options.environment.absolute()) if options.environment else tool_of(SOURCE, CACHE)
            agents = [code_commit(tool, options.layout)]
            agents += [code_commit(tool_at(options.against, CACHE), options.layout)] if options.against else []
            agents += [aider(options.aider.absolute())] if options.aider else []
            for result in run_all(agents, tasks, options, proxy):
                shown = f"{' '.join(result['states'])} {result['error']}".strip()
                print(f"{result['agent']} | {result['task']} | {shown}", file=sys.stderr, flush=True)
                results.append(result)
    except (UnavailableError, httpx.HTTPError) as error:
        print(f"nothing was measured: {error}", file=sys.stderr)
        return 2
    print(report(results))
    return int(any(result["verdict"] == ERROR for result in results))
