"""`code-commit fleet`: many tasks over many trees."""

import importlib
import json
import math
import os
import sys
from argparse import ArgumentParser, ArgumentTypeError
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, NamedTuple

from code_commit.commands.output import print_failure, print_text
from code_commit.errors import (
    EXIT_BUILD_FAILED,
    EXIT_SUCCESS,
    ClusterError,
    CodeCommitError,
    Interrupted,
    LLMError,
    NotSetUpError,
)
from code_commit.llm.keys import KEY_VARIABLES
from code_commit.project import AGENT_CONFIG, read_text, text_of
from code_commit.redaction import Redactor
from code_commit.runs.progress import Progress
from code_commit.runs.words import count
from code_commit.settings import KEYS_VARIABLE, read_environment
from code_commit.terminal import shown, terminal_width

if TYPE_CHECKING:
    from code_commit.fleet.results import Result
    from code_commit.fleet.tasks import FleetTask

DESCRIPTION = """\
Runs many tasks over many trees: TASKS has a JSON object per line (id,
repository, query, and if need be commit, rollup, settings ...; --schema prints
the schema). Each gets a fresh clone, code-commit rollup, run and diff. Its
results go to OUT/ID/, a line to OUT/results.jsonl. Started again, it goes on:
a task that has a result runs again only when its line has changed. With
--model, --setting and --trials it compares; --from-history prints tasks that
a repository's own commits make.
It runs on this machine, or on any Dask cluster. API keys are the workers' own.
Exits with 0 if every task is green, 1 if some are not, 3 if
--max-cost ran out, 5 if the cluster was lost."""

EXAMPLES = """\
code-commit fleet tasks.jsonl --check
code-commit fleet tasks.jsonl --out results --max-cost 20
code-commit fleet tasks.jsonl --out results --failed
code-commit fleet tasks.jsonl --out models --model openai --model gemini
code-commit fleet -m 'Raise httpx.' --repositories list --out results
code-commit fleet --from-history . --tests 'tests/**' --validate >tasks.jsonl
code-commit fleet tasks.jsonl --out results --scheduler tls://10.0.0.5:8786"""


def add_arguments(parser: ArgumentParser) -> None:
    whole, number = _number(int, "a whole number"), _number(float, "a number")
    parser.add_argument("tasks", nargs="?", metavar="TASKS", help="the list of tasks, JSON Lines")
    parser.add_argument(
        "-m", dest="task", metavar="TEXT", help="this task for each of --repositories, in place of TASKS"
    )
    parser.add_argument("--repositories", metavar="FILE", help="a path or URL a line; - reads standard input")
    parser.add_argument("--build", metavar="FILE", help="with -m or --from-history: the build.sh of all tasks")
    parser.add_argument("--model", action="append", metavar="MODEL", help="do each task with this model (repeatable)")
    parser.add_argument("--setting", action="append", metavar="NAME=VALUE", help="and with this setting (repeatable)")
    parser.add_argument("--trials", type=whole, metavar="N", help="do each so many times")
    parser.add_argument("--from-history", type=Path, metavar="REPOSITORY", help="print tasks made of its commits")
    parser.add_argument("--tests", nargs="+", metavar="GLOB", help="with --from-history: which files are tests")
    parser.add_argument("--commits", metavar="RANGE", help="with --from-history: of these commits (default: HEAD)")
    parser.add_argument("--limit", type=whole, metavar="N", help="with --from-history: so many tasks at most")
    parser.add_argument("--hidden", action="store_true", help="with --from-history: the run does not see the tests")
    parser.add_argument("--validate", action="store_true", help="with --from-history: those that tests tell apart")
    parser.add_argument("--out", type=Path, metavar="OUT", help="the folder for the results")
    parser.add_argument("--predictions", type=Path, metavar="FILE", help="write the patches as SWE-bench takes them")
    parser.add_argument("--at-once", type=whole, metavar="N", help="tasks at a time (default: 2 for each core)")
    parser.add_argument("--scheduler", metavar="ADDRESS", help="use the Dask cluster with this scheduler")
    parser.add_argument(
        "--wait", type=number, metavar="SECONDS", help="for a worker, and a lost scheduler (default: for ever, 120)"
    )
    parser.add_argument("--insecure", action="store_true", help="take a cluster that builds can command too")
    parser.add_argument("--max-cost", type=number, metavar="USD", help="for all tasks together: begin none beyond it")
    parser.add_argument(
        "--max-failures", type=whole, metavar="N", help="begin no more after N (default: when the first 20 all fail)"
    )
    parser.add_argument("--only", action="append", metavar="ID", help="do this task, again if need be (repeatable)")
    parser.add_argument("--failed", action="store_true", help="rerun the tasks that did not end green")
    parser.add_argument("--check", action="store_true", help="check TASKS, and do nothing else")
    parser.add_argument("--schema", action="store_true", help="print the JSON Schema of a task")
    parser.add_argument("--json", action="store_true", help="print the totals on stdout at the end")
    parser.add_argument("--quiet", action="store_true", help="print only errors")


def _number(kind: Callable[[str], float], name: str) -> Callable[[str], float]:
    def parse(text: str) -> float:
        try:
            if 0 < (number := kind(text)) < math.inf:
                return number
        except ValueError:
            pass
        raise ArgumentTypeError(f"must be {name}, more than 0")

    return parse


class Order(NamedTuple):
    """What is asked for: the options, by their names."""

    tasks: str = ""
    task: str = ""
    repositories: str = ""
    build: str = ""
    from_history: Path | None = None
    tests: Sequence[str] = ()
    commits: str = "HEAD"
    limit: int | None = None
    hidden: bool = False
    validate: bool = False
    model: Sequence[str] = ()
    setting: Sequence[str] = ()
    trials: int = 1
    predictions: Path | None = None
    out: Path | None = None
    at_once: int | None = None
    scheduler: str | None = None
    wait: float | None = None
    insecure: bool = False
    max_cost: float | None = None
    max_failures: int | None = None
    only: Sequence[str] = ()
    failed: bool = False
    check: bool = False
    schema: bool = False
    json: bool = False
    quiet: bool = False

    def wants(self, task: "FleetTask", earlier: "Result | None") -> bool:
        """Tell whether the task is to be done; `earlier` is its result of before."""
        if earlier is None or earlier.digest not in task.digests or earlier.is_open or self.only:
            return True
        return self.failed and not earlier.is_green


def run(options: dict[str, Any]) -> int:
    order = Order(**options)
    try:
        if order.schema:
            from code_commit.fleet.tasks import FleetTask

            print_text(json.dumps(FleetTask.model_json_schema(), indent=2))
            return EXIT_SUCCESS
        return _print_history(order, order.from_history) if order.from_history else _carry_out(order)
    except (CodeCommitError, Interrupted) as error:
        if order.json:
            print_failure(error)
        raise


def _carry_out(order: Order) -> int:
    from code_commit.fleet.results import results_folder
    from code_commit.fleet.tasks import make_matrix

    faults: list[str] = []
    read_environment(os.environ, faults)  # or each task of this machine would end by it
    if faults:
        raise NotSetUpError("\n".join(faults))
    tasks = _listed(order)
    if order.model or order.setting or order.trials > 1:
        settings = [*(f"model={model}" for model in order.model), *order.setting]
        tasks = make_matrix(tasks, settings, order.trials)
    if unknown := set(order.only) - {task.id for task in tasks}:
        raise NotSetUpError(f"{order.tasks or order.repositories} has no task {', '.join(map(shown, sorted(unknown)))}")
    if order.check:
        return _check(order, tasks)
    _require_safe_cluster(order, tasks)
    if order.out is None:
        raise NotSetUpError("name the folder for the results: --out OUT")
    out = Path(os.path.realpath(order.out))  # it may be a link
    with results_folder(out):
        return _do(order, tasks, out)


def _check(order: Order, tasks: "Sequence[FleetTask]") -> int:
    """Print what is known of the tasks without doing them; beside OUT also what would be done. Raises NotSetUpError."""
    from code_commit.fleet.results import load_results
    from code_commit.fleet.tasks import find_unfit

    if unfit := list(find_unfit(tasks)):
        raise NotSetUpError("\n".join([f"{count(len(unfit), 'mistake')} in the repositories of the tasks:", *unfit]))
    lines = [f"{count(len(tasks), 'task')}: no mistake"]
    if order.out and order.out.is_dir():
        from code_commit.fleet.unfinished import log_path

        earlier = load_results(order.out)
        wanted = [task for task in tasks if order.wants(task, earlier.get(task.id))]
        begun = sum(log_path(order.out, task).exists() for task in wanted)
        lines.append(f"{len(tasks) - len(wanted):,} kept, {begun:,} would go on, {len(wanted) - begun:,} would begin")
    print_text("\n".join(lines))
    return EXIT_SUCCESS


def _require_safe_cluster(order: Order, tasks: "list[FleetTask]") -> None:
    """Raise NotSetUpError for a cluster that a task's build could command: with it the workers, and their keys."""
    if order.scheduler is None or order.insecure:
        return
    sandboxes = [(task.settings.get("sandbox"), task.settings.get("sandbox_network", False)) for task in tasks]
    if all(sandbox == ("strict", False) for sandbox in sandboxes):
        return
    why = "" if order.scheduler.startswith(("tls://", "wss://")) else f"{order.scheduler} is not encrypted"
    if why or any(mode == "off" for mode, _ in sandboxes):
        why = why or 'a task with sandbox = "off" can read the key of the encryption'
        message = "whoever reaches the scheduler, such as a task's build, can run code on the workers with their keys"
        raise NotSetUpError(f'{why}: {message}; use tls://, or sandbox = "strict" in each task, or --insecure')


def _require_keys(tasks: "Sequence[FleetTask]") -> None:
    """Raise NotSetUpError, once for all tasks, where they name models on this machine that it has no key for."""
    from code_commit import api
    from code_commit.fleet.worker import link_keys

    with TemporaryDirectory() as folder:
        config = Path(folder, AGENT_CONFIG)
        config.mkdir(mode=0o700)
        link_keys(config)
        lacking = api.count_missing_keys(folder, [task.settings for task in tasks])
    told = [
        f"no key for {provider or 'any provider'} ({count(number, 'task')}): set "
        f"{KEY_VARIABLES.get(provider) or ' or '.join(KEY_VARIABLES.values())}, or {KEYS_VARIABLE} to a folder with "
        f"{provider or 'PROVIDER'}-key.txt"
        for provider, number in lacking.items()
    ]
    if told:
        raise NotSetUpError("\n".join(told))


def _print_history(order: Order, repository: Path) -> int:
    """Print the tasks that a repository's commits make. Raises NotSetUpError and ClusterError."""
    from code_commit.fleet.history import read_history, tasks_of
    from code_commit.fleet.tasks import parse_tasks

    if not order.tests:
        raise NotSetUpError("name the tests: --tests GLOB, as in --tests 'tests/**'")
    root, unfit = Path(os.path.realpath(repository)), Counter[str]()
    commits = read_history(root, order.commits)
    kind = "verify" if order.hidden else "overlay"
    defaults: dict[str, Any] = {"repository": str(root), "setup": True, "sealed": True}
    if order.build:
        defaults["build"] = _build_of(order)
    if not order.hidden:
        defaults["settings"] = {"protect": order.tests}
    made = tasks_of(root, commits, order.tests, kind, unfit)
    found = list(made if order.validate else islice(made, order.limit))
    lines, number = [json.dumps({"defaults": defaults}), *(json.dumps(line) for line, _ in found)], len(found)
    if order.validate and found:
        tasks = parse_tasks(lines, str(repository))
        _require_safe_cluster(order, tasks)
        for task, (_, solution) in zip(tasks, found, strict=True):
            task._solution = solution  # noqa: SLF001 - no line has it
        print_text(lines[0])
        number = _validate(order, tasks, lines[1:], unfit)
    else:
        print_text("\n".join(lines))
    told = [count(number, "task"), *(f"{why}: {number}" for why, number in unfit.most_common())]
    Progress(Redactor([]), quiet=order.quiet).say(f"{count(len(commits), 'commit')}: {', '.join(told)}")
    return EXIT_SUCCESS if number else EXIT_BUILD_FAILED


def _cluster() -> Any:
    """Return the module of the cluster, without which all that only looks at lists does. Raises NotSetUpError."""
    try:
        return importlib.import_module("code_commit.fleet.cluster")
    except ImportError as error:
        raise NotSetUpError(
            f"fleet needs Dask ({error}): in the clone of code-commit, pip install '.[fleet]', "
            "or pipx install --force '.[fleet]'"
        ) from error


def _validate(order: Order, tasks: "Sequence[FleetTask]", lines: Sequence[str], unfit: Counter[str]) -> int:
    """Print the lines of the tasks whose solutions tests tell from what was before, each as soon as that is known.

    Return how many they are; count why others are none.
    """
    dask = _cluster()
    from code_commit.fleet.history import Sieve
    from code_commit.fleet.limits import Budget
    from code_commit.fleet.table import FleetTable

    with FleetTable(len(tasks), quiet=order.quiet) as table:
        of_tasks = {task.id: line for task, line in zip(tasks, lines, strict=True)}
        sieve = Sieve(table, of_tasks, order.limit or len(lines), unfit)
        dask.run_tasks(order, tasks, Budget(None), table, sieve)
    return sieve.fit


def _build_of(order: Order) -> str:
    return read_text(Path(order.build), "write the build into it", order.build) if order.build else ""


def _listed(order: Order) -> "list[FleetTask]":
    """Return the tasks that the options name. Raises NotSetUpError."""
    from code_commit.fleet.tasks import list_repositories, parse_tasks, read_tasks

    if bool(order.task) != bool(order.repositories) or bool(order.task) == bool(order.tasks):
        lists = "code-commit fleet TASKS --out OUT, or -m TEXT --repositories FILE"
        raise NotSetUpError(f"name the list of tasks: {lists}")
    if order.build and not order.task:
        raise NotSetUpError('--build is for -m: a list has a first line {"defaults": {"build": ...}}')
    if order.tasks:
        return read_tasks(Path(order.tasks))
    file, purpose = order.repositories, "write a path or URL into each line"
    is_stdin = file == "-"
    text = text_of(sys.stdin.buffer.read(), "-", purpose) if is_stdin else read_text(Path(file), purpose, file)
    folder = Path() if is_stdin else Path(file).parent
    values = {"query": order.task, "build": _build_of(order), "setup": True}
    return parse_tasks(list_repositories(text.split("\n"), folder, values), file)


def _do(order: Order, listed: "list[FleetTask]", out: Path) -> int:
    """Do what is to be done of the tasks, tell what came of all of them, and return the exit code."""
    dask = _cluster()
    from code_commit import api
    from code_commit.fleet.limits import Budget, Failures
    from code_commit.fleet.page import Pages
    from code_commit.fleet.patches import write_predictions
    from code_commit.fleet.results import load_lines, load_results
    from code_commit.fleet.table import FleetTable
    from code_commit.fleet.unfinished import Desk, Unfinished

    earlier, tasks = load_results(out), [task for task in listed if task.id in (order.only or {task.id})]
    left = [task for task in tasks if order.wants(task, earlier.get(task.id))]
    if order.scheduler is None:
        _require_keys(left)
    done = {task.id for task in tasks} - {task.id for task in left}
    unfinished = Unfinished(out, load_lines(out))
    costs = [result.cost_usd or 0.0 for result in earlier.values() if not result.is_open]
    budget, failures = Budget(order.max_cost, unfinished.spent, costs), Failures(order.max_failures)
    pages = Pages(out, {task.id for task in listed}, earlier)
    with FleetTable(len(tasks), (earlier[name] for name in done), quiet=order.quiet) as table:
        desk = Desk(unfinished, table, failures, pages)
        left.sort(key=lambda task: not desk.log_of(task)[0])
        try:
            pages.write()
            if left:
                dask.run_tasks(order, left, budget, table, desk)
        except (ClusterError, Interrupted) as error:
            pages.write(at_once=True)
            table.close(out)
            if isinstance(error, Interrupted):
                table.say("the same command goes on, each task at its next step")
            raise
        pages.write(at_once=True)
        labels = api.compare(map(asdict, earlier.values()))
        if any(task.label or task.verify or task.task for task in tasks):
            table.say(labels.table(terminal_width(sys.stderr) or 80))
        table.close(out)
    if order.predictions:
        write_predictions(order.predictions, out, earlier.values())
    for why in filter(None, (budget.complaint, failures.complaint)):
        Progress(Redactor([]), quiet=order.quiet).error(why)
    if order.json:
        totals = {name: getattr(table.totals, name) for name in table.totals.__slots__}
        print_text(json.dumps({**totals, "labels": labels.as_json}))
    if budget.is_used_up:
        return LLMError.exit_code
    return EXIT_SUCCESS if table.totals.green == len(tasks) else EXIT_BUILD_FAILED
