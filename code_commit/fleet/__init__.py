"""`code-commit fleet`: many tasks over many trees. Its texts and options; `command` carries them out."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, NamedTuple

from code_commit import settings
from code_commit.regex import regex

DESCRIPTION = """\
Runs many tasks over many trees. Each line of TASKS is a JSON object (id,
repository, query, optionally commit, rollup, settings ...; --schema prints the
schema). Each task runs code-commit rollup, run and diff in a fresh clone. Its
results go to OUT/ID/, and one line goes to OUT/results.jsonl. To continue a
fleet, run the same command again: a task with a result is rerun only if its
line has changed. --model, --setting and --trials compare models, settings or
trials. --from-history prints tasks made from a repository's own commits. --land
makes branches from green results. A fleet runs on this machine or on any Dask
cluster; each worker uses its own API keys. Exits with 0 if every task is green,
1 if some are not, 3 if --max-cost ran out, and 5 if the cluster was lost."""

EXAMPLES = """\
code-commit fleet tasks.jsonl --check
code-commit fleet tasks.jsonl --out results --max-cost 20
code-commit fleet tasks.jsonl --out results --failed
code-commit fleet tasks.jsonl --out models --model openai --model gemini
code-commit fleet -m 'Upgrade httpx.' --repositories list --out results
code-commit fleet --land results --only api
code-commit fleet --from-history . --tests 'tests/**' --validate >tasks.jsonl
code-commit fleet tasks.jsonl --out results --scheduler tls://10.0.0.5:8786"""

_OF_A_RUN = regex(
    r"--(?P<option>[a-z]+(?:-[a-z]+)*)(?: (?P<value>[\w:/]+))?"
    r"|(?P<key>\w+)(?: = (?P<given>[\w\"]+))? in config\.toml\b"
)
"""How a message of a run names a setting: by its option, or by its key."""


_N, _PATH = settings.POSITIVE_NUMBER, {"type": Path}
_SECONDS, _USD = ({"type": settings.SETTINGS[name].parse} for name in ("llm_timeout", "max_cost"))


class FleetOptions(NamedTuple):
    """The options by their names, each with its metavar and its help."""

    tasks: Annotated[str, "TASKS", "the list of tasks, as JSON Lines", {"flag": "", "nargs": "?"}] = ""
    task: Annotated[Sequence[str], "TEXT", "use this task for each of --repositories, not TASKS", {"flag": "-m"}] = ()
    repositories: Annotated[str, "FILE", "one path or URL per line; - reads standard input"] = ""
    build: Annotated[str, "FILE", "with -m or --from-history: the build.sh for trees without one"] = ""
    build_instead: Annotated[str, "FILE", "like --build, but replaces every build.sh"] = ""
    model: Annotated[Sequence[str], "MODEL", "run each task with this model (repeatable)"] = ()
    setting: Annotated[Sequence[str], "NAME=VALUE", "run each task with this setting (repeatable)"] = ()
    trials: Annotated[int, "N", "run each task N times", _N] = 1
    from_history: Annotated[Path | None, "REPOSITORY", "print tasks made from its commits", _PATH] = None
    tests: Annotated[Sequence[str], "GLOB", "with --from-history: which files are tests", {"nargs": "+"}] = ()
    commits: Annotated[str, "RANGE", "with --from-history: these commits (default: HEAD)"] = "HEAD"
    limit: Annotated[int | None, "N", "with --from-history: at most N tasks", _N] = None
    hidden: Annotated[bool, "", "with --from-history: hide the tests from the run"] = False
    validate: Annotated[bool, "", "with --from-history: keep only tasks whose tests fail before and pass after"] = False
    out: Annotated[Path | None, "OUT", "the folder for the results", _PATH] = None
    at_once: Annotated[int | None, "N", "tasks at a time (default: 2 for each core)", _N] = None
    scheduler: Annotated[str | None, "ADDRESS", "use the Dask cluster with this scheduler"] = None
    wait: Annotated[
        float | None, "SECONDS", "wait this long for a worker (default: forever) or scheduler (default: 120)", _SECONDS
    ] = None
    insecure: Annotated[bool, "", "use a cluster even if a build could take it over"] = False
    max_cost: Annotated[float | None, "USD", "limit for all tasks together: start none that may exceed it", _USD] = None
    max_failures: Annotated[
        int | None, "N", "stop after N failures (default: if the first 20 all fail; 5 with --from-history)", _N
    ] = None
    only: Annotated[Sequence[str], "ID", "run this task, even if it has a result (repeatable)"] = ()
    exclude: Annotated[Sequence[str], "ID", "leave out this task, or all that match (repeatable)"] = ()
    first: Annotated[int | None, "N", "run only N of the remaining tasks", _N] = None
    failed: Annotated[bool, "", "rerun the tasks that did not end green"] = False
    moved: Annotated[bool, "", "rerun tasks that conflict or whose base has moved"] = False
    no_baseline: Annotated[bool, "", "skip the builds that run before anything is paid for"] = False
    skip_red: Annotated[bool, "", "skip tasks whose baseline build fails"] = False
    land: Annotated[Path | None, "OUT", "make a branch in your clones from each green result", _PATH] = None
    group: Annotated[Sequence[str], "PATCH", "with --land: results with this patch hash (repeatable)"] = ()
    branch: Annotated[str, "NAME", "with --land: name of each branch (default: fleet/{id})"] = "fleet/{id}"
    author: Annotated[str, "'NAME <MAIL>'", "with --land: the author of the commits, instead of git's"] = ""
    pull_request: Annotated[Path | None, "FILE", "with --land: your own template for a pull request", _PATH] = None
    check: Annotated[bool, "", "check TASKS and do nothing else"] = False
    schema: Annotated[bool, "", "print the JSON Schema of a task"] = False
    json: Annotated[bool, "", "print the totals on stdout at the end"] = False
    quiet: Annotated[bool, "", "print only errors"] = False


def in_fleet_words(message: str) -> str:
    """Word the options and the keys of config.toml that a message of a run names as a fleet takes them."""
    return _OF_A_RUN.sub(_as_setting, message).replace("config.toml's ", "the setting ")


def _as_setting(found: re.Match[str]) -> str:
    name = (found["option"] or found["key"] or "").replace("-", "_")
    if name not in settings.SETTINGS or (found["option"] and name in FleetOptions._fields):
        return found[0]
    setting, value = settings.SETTINGS[name], found["value"] or ""
    form = setting.metavar or "|".join(setting.choices) or ("true" if setting.kind is bool else "VALUE")
    if found["key"]:
        return f"--setting {name}={found['given'] or form}"
    if value in setting.choices or value.isupper() or ":" in value:
        return f"--setting {name}={value}"
    return f"--setting {name}={form}" + (f" {value}" if value else "")


Arguments = FleetOptions  # the name that every command has for them


def run(arguments: FleetOptions) -> int:
    from code_commit.fleet import command  # nothing of it is needed for `--help`, or by the process of a task

    return command.run(arguments)
