"""The command: the list of tasks, what of it is left to do, and what came of it in words."""

import importlib
import json
import os
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, replace
from fnmatch import fnmatchcase
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

from code_commit.api import compare, find_llm_problems, price_answers
from code_commit.commands.output import print_failure, print_json, print_text
from code_commit.commands.results import RESULTS, Result
from code_commit.errors import (
    EXIT_BUILD_FAILED,
    EXIT_SUCCESS,
    ClusterError,
    CodeCommitError,
    Interrupted,
    LLMError,
    NotSetUpError,
)
from code_commit.files import is_folder
from code_commit.fleet import FleetOptions, in_fleet_words
from code_commit.fleet.baseline import RED, Baselines, ask_of_each, require_keys, ways_left_out
from code_commit.fleet.history import EnoughError, Sieve, read_history, tasks_of
from code_commit.fleet.land import NOTHING, ON_ITS_BASE, THERE, find_moved, land_results, load_landings
from code_commit.fleet.limits import Budget, Failures
from code_commit.fleet.page import Pages, write_pages
from code_commit.fleet.repositories import find_unfit, list_repositories
from code_commit.fleet.results import load_lines, load_results, results_folder
from code_commit.fleet.table import FleetTable
from code_commit.fleet.tasks import FleetTask, make_matrix, parse_tasks, read_tasks, with_defaults_of_user
from code_commit.fleet.unfinished import ResultStore, Unfinished, log_path
from code_commit.project import BUILD_SCRIPT, read_text, require_text
from code_commit.redaction import Redactor
from code_commit.runs.progress import Progress
from code_commit.runs.words import count, listed
from code_commit.sources import read_environment, read_user_settings
from code_commit.terminal import shown, terminal_width

_LANDED_BEFORE = "landed before"
_HOPELESS = 5  # commits of one history that fail for one reason before any fits


def is_wanted(task: FleetTask, earlier: Result | None, options: FleetOptions) -> bool:
    """Tell whether the task is to be done; `earlier` is its result of before."""
    if earlier is None or not task.is_of(earlier) or earlier.is_open or options.only:
        return True
    return options.failed and not earlier.is_green


def _plan(
    options: FleetOptions, tasks: Sequence[FleetTask], out: Path
) -> tuple[dict[str, Result], list[FleetTask], list[FleetTask], set[str]]:
    """Return the results of before, the tasks that keep theirs, those to do, and the green ones to be built again."""
    earlier = load_results(out)
    moved = find_moved(earlier, load_landings(out, earlier)) if options.moved else set[str]()
    wanted = {task.id for task in tasks if task.id in moved or is_wanted(task, earlier.get(task.id), options)}
    kept, left = ([task for task in tasks if (task.id in wanted) == each] for each in (False, True))
    left = left[: options.first]
    green = [task for task in left if task.id in earlier and earlier[task.id].is_green]
    changed = [task for task in green if task.id in moved or not task.is_of(earlier[task.id])]
    return earlier, kept, left, {task.id for task in changed if earlier[task.id].identity == task.identity}


def run(options: FleetOptions) -> int:
    try:
        if options.schema:
            print_json(json.dumps(FleetTask.model_json_schema(), indent=2))
            return EXIT_SUCCESS
        _require_command(options)
        if options.land:
            return _land(options, Path(os.path.realpath(options.land)))
        return _print_history(options, options.from_history) if options.from_history else _carry_out(options)
    except (CodeCommitError, Interrupted) as error:
        if options.json:
            print_failure(error)
        raise


_OWN: dict[str, set[str]] = {
    "land": {"group", "branch", "author", "pull_request"},
    "from_history": {"tests", "commits", "limit", "hidden", "validate"},
}
"""The options that mean something with this command alone."""
_SHARED: dict[str, set[str]] = {
    "land": {"only"},
    "from_history": {"build", "build_instead", "at_once", "scheduler", "wait", "insecure", "max_failures"},
}
"""The other options that the command takes."""


def _require_command(options: FleetOptions) -> None:
    """Raise NotSetUpError with the options that what the others ask for would ignore."""
    given = [name for name, default in FleetOptions._field_defaults.items() if getattr(options, name) != default]
    if command := next((name for name in _OWN if name in given), ""):
        taken = {command, "json", "quiet"} | _OWN[command] | _SHARED[command]
        ignored = {f"not with {_flag(command)}": [name for name in given if name not in taken]}
    else:
        ignored = {f"only with {_flag(name)}": [each for each in given if each in own] for name, own in _OWN.items()}
    told = [f"{', '.join(map(_flag, names))}: {why}" for why, names in ignored.items() if names]
    if told:
        raise NotSetUpError("\n".join(told))


def _flag(name: str) -> str:
    return {"tasks": "TASKS", "task": "-m"}.get(name, f"--{name.replace('_', '-')}")


def _carry_out(options: FleetOptions) -> int:
    faults: list[str] = []
    read_environment(os.environ, faults)  # or each task of this machine would end by it
    own = read_user_settings(None, os.environ, faults)
    if faults:
        raise NotSetUpError("\n".join(faults))
    tasks = with_defaults_of_user(_in_each_way(options, _listed(options)), own)
    ids = {task.id for task in tasks}  # of a matrix: ID.VALUES
    if unknown := set(options.only) - ids:
        raise NotSetUpError(f"--only {listed(unknown)} names no task; the tasks are {listed(ids)}")
    if unmatched := [name for name in options.exclude if not any(fnmatchcase(task.id, name) for task in tasks)]:
        raise NotSetUpError(f"--exclude {', '.join(map(shown, unmatched))} matches no task")
    chosen = [
        task
        for task in tasks
        if task.id in (options.only or {task.id}) and not any(fnmatchcase(task.id, name) for name in options.exclude)
    ]
    if options.check:
        return _check(options, chosen, ways_left_out(chosen, own))
    _require_safe_cluster(options, tasks)
    if options.out is None:
        raise NotSetUpError("name the folder for the results: --out OUT")
    out = Path(os.path.realpath(options.out))  # it may be a link
    _cluster()
    if options.scheduler is None and not (out / RESULTS).exists():  # else only the keys of what is left to do count
        require_keys(chosen[: options.first])
    with results_folder(out):
        return _do(options, chosen, ids, out)


def _in_each_way(options: FleetOptions, tasks: list[FleetTask]) -> list[FleetTask]:
    """Return the tasks in each combination of the options' settings. Raises NotSetUpError."""
    settings = [*(f"model={model}" for model in options.model), *options.setting]
    return make_matrix(tasks, settings, options.trials) if settings or options.trials > 1 else tasks


def _check(options: FleetOptions, tasks: Sequence[FleetTask], left_out: str) -> int:
    """Print that the tasks have no mistake; beside OUT also what would be done of them. Raises NotSetUpError."""
    lines = [f"{count(len(tasks), 'task')}: no mistakes", *([left_out] if left_out else [])]
    left = list(tasks)
    if options.out and not is_folder(options.out):
        lines.append(f"{len(tasks):,} would start")
    elif options.out:
        _, kept, left, again = _plan(options, tasks, options.out)
        begun = len({task.id for task in left if log_path(options.out, task).exists()} - again)
        rebuilt = f"{len(again):,} would be built again, " if again else ""
        begin = len(left) - begun - len(again)
        lines.append(f"{len(kept):,} kept, {begun:,} would continue, {rebuilt}{begin:,} would start")
    if options.scheduler is None:
        require_keys(left)
    print_text("\n".join(lines))
    return EXIT_SUCCESS


def _require_safe_cluster(options: FleetOptions, tasks: list[FleetTask]) -> None:
    """Raise NotSetUpError for a cluster that a task's build could command: with it the workers, and their keys."""
    if options.scheduler is None or options.insecure:
        return
    sandboxes = [(task.settings.get("sandbox"), task.settings.get("sandbox_network", False)) for task in tasks]
    if all(sandbox == ("strict", False) for sandbox in sandboxes):
        return
    if not options.scheduler.startswith(("tls://", "wss://")):
        why = f"{options.scheduler} is not encrypted"
        instead = 'use tls://, or sandbox = "strict" without sandbox_network in every task'
    elif any(mode == "off" for mode, _ in sandboxes):
        why, instead = 'a task with sandbox = "off" can read the TLS key', "use another sandbox for it"
    else:
        return
    message = "whoever reaches the scheduler, such as a task's build, can run code on the workers with their keys"
    raise NotSetUpError(f"{why}: {message}; {instead}, or accept this with --insecure")


def _find_mistakes(options: FleetOptions, tasks: Mapping[int, FleetTask]) -> Iterator[tuple[int, str]]:
    """Yield what a run would refuse of each task: of its commit, and of its LLMs in each combination of settings."""
    yield from find_unfit(tasks)
    limit = {} if options.max_cost is None else {"max_cost": options.max_cost}
    own, runs = read_user_settings(None, os.environ, []), list[tuple[int, dict[str, Any]]]()
    for number, task in tasks.items():
        ways = with_defaults_of_user(_in_each_way(options._replace(trials=1), [task]), own)
        runs += [(0 if options.task else number, limit | way.settings) for way in ways]  # no line has settings then
    found = ask_of_each(runs, find_llm_problems, is_elsewhere=options.scheduler is not None)
    yield from dict.fromkeys((number, each) for number, told in found for each in map(in_fleet_words, told))


def _print_history(options: FleetOptions, repository: Path) -> int:
    """Print the tasks that a repository's commits make. Raises NotSetUpError and ClusterError."""
    if not options.tests:
        raise NotSetUpError("name the tests: --tests GLOB, as in --tests 'tests/**'")
    root, unfit = Path(os.path.realpath(repository)), Counter[str]()
    commits = read_history(root, options.commits)
    kind = "verify" if options.hidden else "overlay"
    defaults: dict[str, Any] = {"repository": str(root), "setup": True, "sealed": True}
    defaults |= _builds_of(options)
    if not options.hidden:
        defaults["settings"] = {"protect": options.tests}
    made = tasks_of(root, commits, options.tests, kind, unfit)
    found = list(made if options.validate else islice(made, options.limit))
    lines, number = [json.dumps({"defaults": defaults}), *(json.dumps(line) for line, _ in found)], len(found)
    if options.validate and found:
        tasks = parse_tasks(lines, str(repository))
        _require_safe_cluster(options, tasks)
        for task, (_, solution) in zip(tasks, found, strict=True):
            task._solution = solution  # noqa: SLF001 - no line has it
        print_json(lines[0])
        number = _validate(options, tasks, lines[1:], unfit)
    else:
        print_json("\n".join(lines))
    out = ", ".join(f"{number} ({why})" for why, number in unfit.most_common())
    told = f"{count(len(commits), 'commit')}: {count(number, 'task')}{out and f'; left out: {out}'}"
    Progress(Redactor([]), quiet=options.quiet).say(told)
    return EXIT_SUCCESS if number else EXIT_BUILD_FAILED


def _land(options: FleetOptions, out: Path) -> int:
    """Make the branches, print the state of each result, and return 0 where each has landed. Raises NotSetUpError."""
    load_results(out)  # raises where there are none, before the folder is made
    with results_folder(out):
        results, states, spent = load_results(out), Counter[str](), Unfinished(out, load_lines(out)).spent
        try:
            before = load_landings(out, results)
            for landing in land_results(out, results, options, before):
                state = landing.state
                if state == ON_ITS_BASE and before.get(landing.id) is landing:
                    state = _LANDED_BEFORE
                states[state] += 1
                told = f"{landing.id}: {replace(landing, state=state).in_words}"
                print_json(json.dumps(asdict(landing))) if options.json else print_text(told)
        finally:
            write_pages(out, results, results, spent)
    told = ", ".join(f"{number} {state}" for state, number in states.most_common())
    Progress(Redactor([]), quiet=options.quiet).say(f"{count(states.total(), 'green result')}: {told}")
    is_all = states.keys() <= {ON_ITS_BASE, _LANDED_BEFORE, THERE, NOTHING}
    return EXIT_SUCCESS if is_all else EXIT_BUILD_FAILED


def _cluster() -> Any:
    """Return the module of the cluster, without which all that only looks at lists does. Raises NotSetUpError."""
    try:
        return importlib.import_module("code_commit.fleet.dispatcher")
    except ImportError as error:
        raise NotSetUpError(
            f"fleet needs Dask ({error}): in the clone of code-commit, pip install '.[fleet]', "
            "or pipx install --force '.[fleet]'"
        ) from error


def _validate(options: FleetOptions, tasks: Sequence[FleetTask], lines: Sequence[str], unfit: Counter[str]) -> int:
    """Print the line of each task whose tests detect its solution; return their number, and count why others do not."""
    dask = _cluster()
    with FleetTable(len(tasks), quiet=options.quiet) as table:
        of_tasks = {task.id: line for task, line in zip(tasks, lines, strict=True)}
        sieve = Sieve(table, of_tasks, options.limit or len(lines), unfit, options.max_failures or _HOPELESS)
        with suppress(EnoughError), dask.Dispatcher(options, table, "builds") as dispatcher:
            dispatcher.run(tasks, sieve, Budget(None))
    if sieve.hopeless:
        first = count(options.max_failures or _HOPELESS, "commit")
        why = f"gave up after {first}: all were skipped for the same reason (see --max-failures):\n{sieve.hopeless}"
        Progress(Redactor([]), quiet=options.quiet).error(why)
    return sieve.fit


def _builds_of(options: FleetOptions) -> dict[str, Any]:
    """Return the members of the defaults for --build and --build-instead. Raises NotSetUpError."""
    files = (options.build, options.build_instead)
    build, instead = (file and read_text(Path(file), "write the build into it", file) for file in files)
    return ({"build": build} if build else {}) | ({"overlay": {BUILD_SCRIPT: instead}} if instead else {})


def _listed(options: FleetOptions) -> list[FleetTask]:
    """Return the tasks that the options name. Raises NotSetUpError."""
    task = "\n\n".join(options.task)  # paragraphs, as of a run
    if bool(options.tasks) == bool(task) or bool(task) != bool(options.repositories):
        of_list, of_task = "code-commit fleet TASKS --out OUT", "-m TEXT --repositories FILE"
        raise NotSetUpError(f"name either a list of tasks ({of_list}), or a task and its repositories ({of_task})")
    if (options.build or options.build_instead) and not task:
        raise NotSetUpError('--build is only for -m: in a list write it into a first line {"defaults": {"build": ...}}')
    look = partial(_find_mistakes, options) if options.check else None
    if options.tasks:
        return read_tasks(Path(options.tasks), look)
    file, purpose = options.repositories, "write a path or URL on each line"
    is_stdin = file == "-"
    text = require_text(sys.stdin.buffer.read(), "-", purpose) if is_stdin else read_text(Path(file), purpose, file)
    values = {"query": task, "setup": True, **_builds_of(options)}
    return parse_tasks(list_repositories(text.split("\n"), Path(file).parent, values), file, look)


def _do(options: FleetOptions, chosen: list[FleetTask], listed: set[str], out: Path) -> int:
    """Do what is to be done of the chosen tasks of a list, tell what came of all of them, and return the exit code."""
    earlier, kept, left, again = _plan(options, chosen, out)
    tasks = [*kept, *left]
    if options.scheduler is None:
        require_keys(left)
    unfinished = Unfinished(out, load_lines(out), again)
    budget = Budget(options.max_cost, unfinished.spent.highest, _dearest(chosen, earlier), _price(options, left))
    failures = Failures(options.max_failures)
    pages = Pages(out, listed, earlier)
    with FleetTable(len(tasks), (earlier[task.id] for task in kept), quiet=options.quiet) as table:
        begun = {task.id for task in left if unfinished.log_of(task)[0]}
        left.sort(key=lambda task: task.id not in begun)
        baselines = Baselines(out, [] if options.no_baseline else [task for task in left if task.id not in begun])
        store = ResultStore(unfinished, table, failures, pages, baselines)
        if any(result.is_of_earlier_version for result in earlier.values()):
            table.say("some results are from an earlier version: their costs include what may have been paid")
        try:
            pages.catch_up()
            if left:
                _run_tasks(options, left, store, baselines, budget)
        except (ClusterError, Interrupted) as error:
            pages.write()
            table.close(out)
            if isinstance(error, Interrupted):
                table.say("rerun the same command to continue, each task at its next step")
            raise
        pages.write()
        labels = compare(earlier.values())
        if any(task.label or task.verify or task.task for task in tasks):
            table.say(labels.table(terminal_width(sys.stderr) or 80))
        table.close(out)
    for why in filter(None, (budget.complaint, failures.complaint)):
        Progress(Redactor([]), quiet=options.quiet).error(why)
    if options.json:
        totals = {name: getattr(table.totals, name) for name in table.totals.__slots__}
        print_json(json.dumps({**totals, "labels": labels.as_json}))
    if budget.is_used_up:
        return LLMError.exit_code
    return EXIT_SUCCESS if table.totals.green == len(tasks) else EXIT_BUILD_FAILED


def _price(options: FleetOptions, tasks: Sequence[FleetTask]) -> dict[str, tuple[float, int]]:
    """Return by task what `Budget` takes as the cost of answers, none without a limit."""
    runs = ((task.id, task.settings) for task in tasks)
    answers = ask_of_each(runs, price_answers, is_elsewhere=options.scheduler is not None)
    return {} if options.max_cost is None else dict(answers)


def _dearest(tasks: Sequence[FleetTask], earlier: Mapping[str, Result]) -> dict[str, float]:
    """Return by host the cost of the dearest task that is done, in US dollars."""
    dearest = dict[str, float]()
    for task in tasks:
        if (result := earlier.get(task.id)) and not result.is_open:
            dearest[task.host] = max(dearest.get(task.host, 0.0), result.cost_usd or 0.0)
    return dearest


def _run_tasks(
    options: FleetOptions, left: list[FleetTask], store: ResultStore, baselines: Baselines, budget: Budget
) -> None:
    """Run the builds, then the tasks that can begin, on one cluster. Raises ClusterError and Interrupted."""
    with _cluster().Dispatcher(options, store.table, store.name) as dispatcher:
        dispatcher.take_up_logs(store, budget)
        dispatcher.run(baselines.builds, baselines, Budget(None), left)
        store.table.say(baselines.in_words)
        if skipped := sum(baselines.of(task).state == RED for task in left) if options.skip_red else 0:
            store.table.say(f"{count(skipped, 'task')} skipped: the baseline build fails (--skip-red)")
        dispatcher.run(baselines.fit(left, skip_red=options.skip_red), store, budget)
    store.refuse(left)
