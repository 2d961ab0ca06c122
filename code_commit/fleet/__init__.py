"""`code-commit fleet`: many tasks over many trees."""

import importlib
import json
import math
import os
import sys
import tomllib
from argparse import ArgumentParser, ArgumentTypeError
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict
from fnmatch import fnmatchcase
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, get_args

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
from code_commit.project import AGENT_CONFIG, BUILD_SCRIPT, read_text, text_of
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
a repository's own commits make; --land makes branches of green results.
It runs on this machine, or on any Dask cluster. API keys are the workers' own.
Exits with 0 if every task is green, 1 if some are not, 3 if
--max-cost ran out, 5 if the cluster was lost."""

EXAMPLES = """\
code-commit fleet tasks.jsonl --check
code-commit fleet tasks.jsonl --out results --max-cost 20
code-commit fleet tasks.jsonl --out results --failed
code-commit fleet tasks.jsonl --out models --model openai --model gemini
code-commit fleet -m 'Raise httpx.' --repositories list --out results
code-commit fleet --land results --only api
code-commit fleet --from-history . --tests 'tests/**' --validate >tasks.jsonl
code-commit fleet tasks.jsonl --out results --scheduler tls://10.0.0.5:8786"""


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
    """The options by their names, each with its metavar and its help."""

    tasks: Annotated[str, "TASKS", "the list of tasks, JSON Lines"] = ""
    task: Annotated[str, "TEXT", "this task for each of --repositories, in place of TASKS"] = ""
    repositories: Annotated[str, "FILE", "a path or URL a line; - reads standard input"] = ""
    build: Annotated[str, "FILE", "with -m or --from-history: the build.sh of those without one"] = ""
    build_instead: Annotated[str, "FILE", "the same, in place of every build.sh"] = ""
    config: Annotated[Path | None, "FILE", "with -m: a config.toml for all tasks"] = None
    model: Annotated[Sequence[str], "MODEL", "do each task with this model (repeatable)"] = ()
    setting: Annotated[Sequence[str], "NAME=VALUE", "and with this setting (repeatable)"] = ()
    trials: Annotated[int, "N", "do each so many times"] = 1
    from_history: Annotated[Path | None, "REPOSITORY", "print tasks made of its commits"] = None
    tests: Annotated[Sequence[str], "GLOB", "with --from-history: which files are tests"] = ()
    commits: Annotated[str, "RANGE", "with --from-history: of these commits (default: HEAD)"] = "HEAD"
    limit: Annotated[int | None, "N", "with --from-history: so many tasks at most"] = None
    hidden: Annotated[bool, "", "with --from-history: the run does not see the tests"] = False
    validate: Annotated[bool, "", "with --from-history: those that tests tell apart"] = False
    out: Annotated[Path | None, "OUT", "the folder for the results"] = None
    predictions: Annotated[Path | None, "FILE", "write the patches as SWE-bench takes them"] = None
    at_once: Annotated[int | None, "N", "tasks at a time (default: 2 for each core)"] = None
    scheduler: Annotated[str | None, "ADDRESS", "use the Dask cluster with this scheduler"] = None
    wait: Annotated[float | None, "SECONDS", "for a worker, and a lost scheduler (default: for ever, 120)"] = None
    insecure: Annotated[bool, "", "take a cluster that builds can command too"] = False
    max_cost: Annotated[float | None, "USD", "for all tasks together: begin none beyond it"] = None
    max_failures: Annotated[int | None, "N", "begin no more after N (default: when the first 20 all fail)"] = None
    only: Annotated[Sequence[str], "ID", "do this task, again if need be (repeatable)"] = ()
    exclude: Annotated[Sequence[str], "ID", "leave out this task, or a.* (repeatable)"] = ()
    first: Annotated[int | None, "N", "do so many of what is left, look, then go on"] = None
    failed: Annotated[bool, "", "rerun the tasks that did not end green"] = False
    moved: Annotated[bool, "", "do again what conflicts, or whose base has moved on"] = False
    no_baseline: Annotated[bool, "", "do not run the builds before anything is paid for"] = False
    skip_red: Annotated[bool, "", "leave out the tasks whose build fails before that"] = False
    land: Annotated[Path | None, "OUT", "make a branch of each green result in your clones"] = None
    group: Annotated[Sequence[str], "PATCH", "with --land: these equal patches (repeatable)"] = ()
    branch: Annotated[str, "NAME", "with --land: its name (default: fleet/{id})"] = "fleet/{id}"
    author: Annotated[str, "'NAME <MAIL>'", "with --land: the author of the commits"] = ""
    pull_request: Annotated[Path | None, "FILE", "with --land: a template of your own"] = None
    check: Annotated[bool, "", "check TASKS, and do nothing else"] = False
    schema: Annotated[bool, "", "print the JSON Schema of a task"] = False
    json: Annotated[bool, "", "print the totals on stdout at the end"] = False
    quiet: Annotated[bool, "", "print only errors"] = False

    def wants(self, task: "FleetTask", earlier: "Result | None") -> bool:
        """Tell whether the task is to be done; `earlier` is its result of before."""
        if earlier is None or earlier.digest not in task.digests or earlier.is_open or self.only:
            return True
        return self.failed and not earlier.is_green


def add_arguments(parser: ArgumentParser) -> None:
    numbers = {int: _number(int, "a whole number"), float: _number(float, "a number")}
    parser.add_argument("tasks", nargs="?", metavar="TASKS", help=Order.__annotations__["tasks"].__metadata__[1])
    for name, annotation in list(Order.__annotations__.items())[1:]:
        kind, (metavar, help_text) = annotation.__origin__, annotation.__metadata__
        flag = "-m" if name == "task" else "--" + name.replace("_", "-")
        single = next(iter(get_args(kind)), kind)
        form: dict[str, Any] = {"metavar": metavar, "type": numbers.get(single, single)}
        if kind is bool:
            form = {"action": "store_true"}
        elif kind == Sequence[str]:
            form |= {"nargs": "+"} if name == "tests" else {"action": "append"}
        parser.add_argument(flag, dest=name, help=help_text, **form)


class Plan(NamedTuple):
    """The results of before, the tasks that keep theirs, those to do, and the ids of green ones to be built again."""

    earlier: "dict[str, Result]"
    kept: "list[FleetTask]"
    left: "list[FleetTask]"
    built_again: set[str]


def _plan(order: Order, tasks: "Sequence[FleetTask]", out: Path) -> Plan:
    from code_commit.fleet.results import load_results

    earlier = load_results(out)
    moved: set[str] = set()
    if order.moved:
        from code_commit.fleet.land import find_moved, load_landings

        moved = find_moved(earlier, load_landings(out, earlier))
    wanted = {task.id for task in tasks if task.id in moved or order.wants(task, earlier.get(task.id))}
    kept, left = ([task for task in tasks if (task.id in wanted) == each] for each in (False, True))
    left = left[: order.first]
    mine = {task.id: task for task in left if task.id in earlier}
    changed = {name: task for name, task in mine.items() if name in moved or earlier[name].digest not in task.digests}
    again = {name for name, task in changed.items() if earlier[name].is_green_for(task.identity)}
    return Plan(earlier, kept, left, again)


def run(options: dict[str, Any]) -> int:
    order = Order(**options)
    try:
        if order.schema:
            from code_commit.fleet.tasks import FleetTask

            print_text(json.dumps(FleetTask.model_json_schema(), indent=2))
            return EXIT_SUCCESS
        if order.land:
            return _land(order, Path(os.path.realpath(order.land)))
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
    chosen = [
        task
        for task in tasks
        if task.id in (order.only or {task.id}) and not any(fnmatchcase(task.id, name) for name in order.exclude)
    ]
    if order.check:
        return _check(order, chosen)
    _require_safe_cluster(order, tasks)
    if order.out is None:
        raise NotSetUpError("name the folder for the results: --out OUT")
    out = Path(os.path.realpath(order.out))  # it may be a link
    with results_folder(out):
        return _do(order, chosen, {task.id for task in tasks}, out)


def _check(order: Order, tasks: "Sequence[FleetTask]") -> int:
    """Print that the tasks have no mistake; beside OUT also what would be done of them."""
    lines = [f"{count(len(tasks), 'task')}: no mistake"]
    if order.out and order.out.is_dir():
        from code_commit.fleet.unfinished import log_path

        _, kept, left, again = _plan(order, tasks, order.out)
        begun = len({task.id for task in left if log_path(order.out, task).exists()} - again)
        rebuilt = f"{len(again):,} would be built again, " if again else ""
        begin = len(left) - begun - len(again)
        lines.append(f"{len(kept):,} kept, {begun:,} would go on, {rebuilt}{begin:,} would begin")
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
    defaults |= _builds_of(order)
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


def _land(order: Order, out: Path) -> int:
    """Make the branches, print the state of each result, and return 0 where each has landed. Raises NotSetUpError."""
    from code_commit.fleet.land import PULL_REQUEST, LandOptions, land_results
    from code_commit.fleet.page import write_pages
    from code_commit.fleet.results import load_results, results_folder

    text = read_text(order.pull_request, "write a template", "--pull-request") if order.pull_request else PULL_REQUEST
    options = LandOptions(order.only, order.group, order.branch, order.author, text)
    results, states = load_results(out), Counter[str]()
    with results_folder(out):
        try:
            for landing in land_results(out, results, options):
                states[landing.state] += 1
                print_text(json.dumps(asdict(landing)) if order.json else f"{landing.id}: {landing.in_words}")
        finally:
            write_pages(out, results, results)
    told = ", ".join(f"{number} {state}" for state, number in states.most_common())
    Progress(Redactor([]), quiet=order.quiet).say(f"{count(states.total(), 'green result')}: {told}")
    return EXIT_SUCCESS if states.keys() <= {"landed", "already there"} else EXIT_BUILD_FAILED


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
    from code_commit.fleet.history import EnoughError, Sieve
    from code_commit.fleet.limits import Budget
    from code_commit.fleet.table import FleetTable

    with FleetTable(len(tasks), quiet=order.quiet) as table:
        of_tasks = {task.id: line for task, line in zip(tasks, lines, strict=True)}
        sieve = Sieve(table, of_tasks, order.limit or len(lines), unfit, order.max_failures or _HOPELESS)
        with suppress(EnoughError), dask.Dispatcher(order, table, "builds") as dispatcher:
            dispatcher.run(tasks, sieve, Budget(None))
    if sieve.hopeless:
        why = f"the first {order.max_failures or _HOPELESS} are no tasks for one reason (see --max-failures):"
        Progress(Redactor([]), quiet=order.quiet).error(f"{why}\n{sieve.hopeless}")
    return sieve.fit


_HOPELESS = 5
"""Commits of one history that fail for one reason before any fits."""


def _builds_of(order: Order) -> dict[str, Any]:
    """Return the members of the defaults for --build and --build-instead. Raises NotSetUpError."""
    texts = {
        file: read_text(Path(file), "write the build into it", file)
        for file in filter(None, (order.build, order.build_instead))
    }
    build = {"build": texts[order.build]} if order.build else {}
    return build | ({"overlay": {BUILD_SCRIPT: texts[order.build_instead]}} if order.build_instead else {})


def _settings_in(config: Path | None) -> dict[str, Any]:
    """Return the settings of a file as config.toml. Raises NotSetUpError."""
    if config is None:
        return {}
    from code_commit.api import check_settings

    try:
        settings = tomllib.loads(read_text(config, "write settings into it, as in config.toml", str(config)))
        check_settings(settings)
    except (tomllib.TOMLDecodeError, NotSetUpError) as error:
        raise NotSetUpError(f"{config}: {error}") from error
    return settings


def _listed(order: Order) -> "list[FleetTask]":
    """Return the tasks that the options name. Raises NotSetUpError."""
    from code_commit.fleet.tasks import list_repositories, parse_tasks, read_tasks

    if bool(order.task) != bool(order.repositories) or bool(order.task) == bool(order.tasks):
        lists = "code-commit fleet TASKS --out OUT, or -m TEXT --repositories FILE"
        raise NotSetUpError(f"name the list of tasks: {lists}")
    if (order.build or order.build_instead) and not order.task:
        raise NotSetUpError('--build is for -m: a list has a first line {"defaults": {"build": ...}}')
    from code_commit.fleet.repositories import find_unfit

    look = find_unfit if order.check else None
    if order.tasks:
        return read_tasks(Path(order.tasks), look)
    file, purpose = order.repositories, "write a path or URL into each line"
    is_stdin = file == "-"
    text = text_of(sys.stdin.buffer.read(), "-", purpose) if is_stdin else read_text(Path(file), purpose, file)
    folder = Path() if is_stdin else Path(file).parent
    values = {"query": order.task, "setup": True, **_builds_of(order), "settings": _settings_in(order.config)}
    return parse_tasks(list_repositories(text.split("\n"), folder, values), file, look)


def _do(order: Order, chosen: "list[FleetTask]", listed: set[str], out: Path) -> int:
    """Do what is to be done of the chosen tasks of a list, tell what came of all of them, and return the exit code."""
    dask = _cluster()
    from code_commit import api
    from code_commit.fleet.baseline import Baselines
    from code_commit.fleet.limits import Budget, Failures
    from code_commit.fleet.page import Pages
    from code_commit.fleet.patches import write_predictions
    from code_commit.fleet.results import load_lines
    from code_commit.fleet.table import FleetTable
    from code_commit.fleet.unfinished import Desk, Unfinished

    earlier, kept, left, again = _plan(order, chosen, out)
    tasks = [*kept, *left]
    if order.scheduler is None:
        _require_keys(left)
    unfinished = Unfinished(out, load_lines(out), again)
    costs = [result.cost_usd or 0.0 for result in earlier.values() if not result.is_open]
    budget, failures = Budget(order.max_cost, unfinished.spent, costs), Failures(order.max_failures)
    pages = Pages(out, listed, earlier)
    with FleetTable(len(tasks), (earlier[task.id] for task in kept), quiet=order.quiet) as table:
        begun = {task.id for task in left if unfinished.log_of(task)[0]}
        left.sort(key=lambda task: task.id not in begun)
        baselines = Baselines(out, [] if order.no_baseline else [task for task in left if task.id not in begun])
        desk = Desk(unfinished, table, failures, pages, baselines)
        try:
            pages.write()
            if left:
                with dask.Dispatcher(order, table, desk.name) as dispatcher:
                    dispatcher.run(baselines.builds, baselines, Budget(None), left)
                    table.say(baselines.in_words)
                    dispatcher.run(baselines.fit(left, skip_red=order.skip_red), desk, budget)
                desk.refuse(left)
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
