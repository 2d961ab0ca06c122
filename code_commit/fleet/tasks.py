"""The list of a fleet's tasks, as JSON Lines. Every mistake is told with its line before anything starts.

A first line may hold defaults for all tasks.
"""

import hashlib
import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import product
from pathlib import Path, PurePosixPath
from typing import Annotated, Any, NamedTuple

from pydantic import BaseModel, ConfigDict, Field, PrivateAttr, ValidationError, ValidationInfo, field_validator
from pydantic_core import from_json

from code_commit.api import check_settings, full_name_of, provider_of
from code_commit.commands.results import Result
from code_commit.errors import FAULTS, NotSetUpError
from code_commit.fleet.results import NAME, RESERVED
from code_commit.project import AGENT_CONFIG, BUILD_SCRIPT, read_text
from code_commit.runs.words import count
from code_commit.settings import PROGRAM, SETTINGS, Facet, did_you_mean, settings_for
from code_commit.sources import explain_what_is_the_users, merged_settings
from code_commit.status import Status
from code_commit.terminal import shown

_NOT_AN_OPTION = r"^[^-\x00-\x1f][^\x00-\x1f]*$"
_MOST_SHOWN = 50
_LONGEST_SLUG = 40  # characters of a label in an id
SUBMODULES = ".gitmodules"
NO_SUBMODULES = (
    f'the commit has submodules, which a fleet does not fetch; to run without them: "overlay": {{"{SUBMODULES}": null}}'
)
LIMITS = settings_for(Facet.LIMIT)  # settings that may change without making it another task: it continues
_NOT_IN_PROMPT = settings_for(Facet.LIMIT, Facet.BUILD, Facet.OUTPUT)
"""Settings that affect neither the prompt nor the answer."""

NO_BUILD = f'{BUILD_SCRIPT} is missing: supply it as "build" of the task or the defaults line (with -m: --build FILE)'

Files = dict[str, str | None]


class Solution(NamedTuple):
    """The commit that solved a task in the past, and the earlier texts of the tests that it changed."""

    commit: str
    tests_before: Files


BUILD_ALONE = Solution("", {})  # marks a task whose commit is built as it is, without an LLM


class FleetTask(BaseModel):
    """One line of the list. Equal tasks have equal digests: a task that changed runs again."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, hide_input_in_errors=True)

    id: Annotated[str, Field(pattern=NAME, description="the name of the folder for its results")]
    repository: Annotated[str, Field(pattern=_NOT_AN_OPTION, description="a path, or whatever git clone accepts")]
    commit: Annotated[str, Field(pattern=_NOT_AN_OPTION, description="a commit, tag or branch of it")] = "HEAD"
    query: Annotated[str, Field(pattern=r"\S", description="the task, as in query.txt")]
    rollup: Annotated[list[str], Field(description="the pathspecs of code-commit rollup")] = []
    settings: Annotated[dict[str, Any], Field(description="keys of config.toml")] = {}
    timeout: Annotated[float | None, Field(gt=0, description="seconds for the whole task")] = None
    build: Annotated[str, Field(description="the text of build.sh if the commit has none; never part of a patch")] = ""
    setup: Annotated[bool, Field(description="supply .gitignore's line /agent-config; never part of a patch")] = False
    overlay: Annotated[Files, Field(description="texts by path, null for a file to remove; never part of a patch")] = {}
    verify: Annotated[Files, Field(description="as overlay, but hidden: put over a green result and built again")] = {}
    sealed: Annotated[bool, Field(description="the clone holds nothing later than the commit")] = False
    task: Annotated[str, Field(description="the task of which this is one of several variants or trials")] = ""
    label: Annotated[str, Field(description="a name for these settings, whose results are summed up separately")] = ""
    _list: Path = PrivateAttr(Path())
    _words: str = PrivateAttr("")
    _solution: Solution | None = PrivateAttr(None)
    _baseline: tuple[bool, str] = PrivateAttr((False, ""))  # whether it passes, and what was told if not

    @field_validator("repository")
    @classmethod
    def _has_no_password(cls, repository: str) -> str:
        if re.match(r"(?i)[a-z+]+://([^/@]*:[^/@]*|[^/@]{32,})@", repository):  # so long a name is a token
            raise ValueError("contains a password: leave that to git's credential helper on the workers")
        if re.match(r"(?i)(ext|fd)::", repository):
            raise ValueError("names a program or an open file of a worker: name a URL or a path")
        return repository

    @field_validator("settings")
    @classmethod
    def _are_known(cls, settings: dict[str, Any], others: ValidationInfo) -> dict[str, Any]:
        values, problems = dict[str, Any](), list[str]()
        try:
            values = check_settings(settings)
        except NotSetUpError as error:
            problems += str(error).split("\n")
        problems += explain_what_is_the_users(settings, "settings")
        if settings.get("approve"):
            problems.append("approve needs a terminal, and a task has none")
        if settings.get("dry_run"):
            problems.append("dry_run changes nothing, so there would be no result")
        if others.data.get("rollup") and settings.get("rollup", "file") != "file":
            problems.append("rollup = fresh takes all files, not only the task's pathspecs: use rollup_exclude instead")
        if problems:
            raise ValueError("; ".join(problems))
        return settings | {name: value for name, value in values.items() if isinstance(value, float)}

    @field_validator("overlay", "verify")
    @classmethod
    def _are_inside(cls, files: Files) -> Files:
        for name in files:
            path = PurePosixPath(name)
            if str(path) != name or not path.name or {"..", ".git", AGENT_CONFIG, "/"} & {*path.parts} or "\0" in name:
                raise ValueError(f"{shown(name)} is not the path of a file in the project, such as a/b.txt")
        return files

    @property
    def list_file(self) -> Path:
        """The file of the list, whose hidden tests no build may read."""
        return self._list

    @property
    def solution(self) -> Solution | None:
        """The commit that solved the task, for --validate; no field of the line."""
        return self._solution

    @property
    def built(self) -> str:
        """The JSON of `check --build` on its baseline that failed, "" where its run has to build first itself."""
        return self._baseline[1] if self.settings.get("build_first") else ""

    @property
    def run_settings(self) -> dict[str, Any]:
        """The settings of its run: where the baseline passed, a first build would tell the LLM nothing."""
        return self.settings | ({"build_first": False} if self._baseline[0] and "build_first" in self.settings else {})

    @property
    def digest(self) -> str:
        """The hash of the line, without its limits of money and time, its label and the order of settings and files."""
        return self.digests[0]

    @property
    def digests(self) -> tuple[str, ...]:
        """The digest, and that of version 1.0.0, which depended on the label too."""
        settings = {name: value for name, value in self.settings.items() if name not in LIMITS}
        members = {"settings": settings, "overlay": self.overlay, "verify": self.verify}
        in_order = {name: dict(sorted(pairs.items())) for name, pairs in members.items()}
        labels = ("", self._words or self.label)
        lines = [self.model_copy(update={"timeout": None, "label": label, **in_order}) for label in labels]
        return tuple(_hash(line.model_dump_json()) for line in lines)

    @property
    def without_build(self) -> str:
        """The digest of the line without its build, which only counts where the commit has none."""
        return self.model_copy(update={"build": ""}).digest

    def is_of(self, result: Result) -> bool:
        """Tell whether a result is one of this line, or of one that had another build and needed none."""
        return result.digest in self.digests or result.without_build == self.without_build

    @property
    def identity(self) -> str:
        """The hash of what the LLM is asked: of the line without its build, its hidden files and its limits."""
        settings = {name: value for name, value in sorted(self.settings.items()) if name not in _NOT_IN_PROMPT}
        overlay = {name: text for name, text in sorted(self.overlay.items()) if name != BUILD_SCRIPT}
        asked = {"settings": settings, "overlay": overlay, "timeout": None, "build": "", "setup": False, "verify": {}}
        return _hash(self.model_copy(update=asked).model_dump_json())

    @property
    def path(self) -> Path | None:
        """The repository where it is a folder of this machine, None where git finds it by a URL."""
        is_url = "://" in self.repository or ":" in self.repository.split("/")[0]
        return None if is_url else Path(os.path.realpath(self._list.parent / Path(self.repository).expanduser()))

    def ended(self, status: Status, message: str = "", **facts: Any) -> Result:
        """Return a result of the task; `facts` are further members. Without a run it costs nothing."""
        model = self.settings.get("model")
        line: dict[str, Any] = {
            "exit_code": status.exit_code,
            "cost_usd": 0.0,
            "identity": self.identity,
            "model": full_name_of(model) if model else "",
            "repository": self.repository,
            "base": self.commit,
            "query": self.query.strip().split("\n")[0],
            "task": self.task or self.id,
            "label": self.label,
        }
        return Result(self.id, self.digest, status, message=message, **(line | facts))

    @property
    def place(self) -> str:
        return str(self.path or self.repository)

    @property
    def host(self) -> str:
        """The host whose rate limits apply: its base URL, else its provider, "" if the worker's keys decide."""
        model = self.settings.get("model")
        return str(self.settings.get("base_url") or (provider_of(model) if model else ""))


Look = Callable[[Mapping[int, "FleetTask"]], Iterable[tuple[int, str]]]


def read_tasks(path: Path, look: Look | None = None) -> list[FleetTask]:
    """Return the tasks of the list, in its order. Raises NotSetUpError with every mistake and its line."""
    text = read_text(path, "write the tasks into it, as code-commit fleet --schema says", str(path))
    return parse_tasks(text.removeprefix("\ufeff").split("\n"), str(path), look)


def make_matrix(tasks: Sequence[FleetTask], settings: Sequence[str], trials: int) -> list[FleetTask]:
    """Return each task `trials` times for each combination of settings (`NAME=VALUE`).

    Its label is the model and the values that differ, its id has all values. A single combination is in no id; with a
    single trial it has no label either. Raises NotSetUpError.
    """
    axes: dict[str, dict[str, Any]] = {}
    for name, sign, text in (setting.partition("=") for setting in settings):
        if not sign:
            raise NotSetUpError(f"--setting {shown(name)}: write NAME=VALUE, as in --setting max_repairs=1")
        try:
            axes.setdefault(name, {})[text if name == "model" else f"{name}={text}"] = SETTINGS[name].parse(text)
        except (KeyError, ValueError) as error:
            unknown = f"there is no setting '{shown(name)}'{did_you_mean(name, SETTINGS)}"
            raise NotSetUpError(f"--setting: {f'{name} {error}' if name in SETTINGS else unknown}") from error
    made, ways = [], list(product(*(axis.items() for axis in axes.values())))
    for task, way, trial in product(tasks, ways, range(1, trials + 1)):
        words, values = ",".join(word for word, _ in way), [value for _, value in way]
        own: dict[str, Any] = {"settings": {**_bound(task.settings), **dict(zip(axes, values, strict=True))}}
        slug = "" if len(ways) == 1 else re.sub(r"[^A-Za-z0-9._-]+", "-", words)
        short = slug if len(slug) <= _LONGEST_SLUG else f"{slug[-_LONGEST_SLUG:]}-{_hash(words)[:8]}"
        name = ".".join([task.id, *filter(None, [short]), *([str(trial)] if trial > 1 else [])])
        if trials > 1 or len(ways) > 1:
            differing = [word for name, (word, _) in zip(axes, way, strict=True) if len(axes[name]) > 1]
            label = ",".join(dict.fromkeys(filter(None, [str(own["settings"].get("model", "")), *differing])))
            own |= {"task": task.task or task.id, "label": label or task.label}
        made.append(_changed(task, name, {"id": name, **own}))
        made[-1]._words = words or task.label if "task" in own else ""  # noqa: SLF001 - no field of the line
    for _, mistake in _taken({number: task.id for number, task in enumerate(made)}):
        raise NotSetUpError(mistake)
    return made


def with_defaults_of_user(tasks: Sequence[FleetTask], own: Mapping[str, Any]) -> list[FleetTask]:
    """Return each task with the user's own settings as defaults of its own. Raises NotSetUpError.

    An address is left out where the task names another provider's model. So is what only a terminal needs, and the way
    to an address, with its secrets and programs.
    """
    left_out = {*settings_for(Facet.OUTPUT, Facet.REACH), "approve", "dry_run"}
    own = _bound({name: value for name, value in own.items() if name not in left_out})
    if "prices" in own:
        own["prices"] = {
            model: {name: part for name, part in price._asdict().items() if part is not None}
            for model, price in own["prices"].items()
        }
    if not own:
        return list(tasks)
    made, programs = [], [name for name in settings_for(Facet.MODEL) if str(own.get(name)).startswith(PROGRAM)]
    for task in tasks:
        given, defaults = _bound(task.settings), dict(own)
        if unnamed := [name for name in programs if name not in given]:
            why = f"your own settings name a program as {unnamed[0]}, which no worker runs: name another for the task"
            raise NotSetUpError(f"{task.id}: {why}")
        for role in ("", "fallback_"):
            model, url = given.get(f"{role}model"), defaults.get(f"{role}base_url", "")
            if model and not url.startswith(f"{provider_of(model)}:"):
                defaults.pop(f"{role}base_url", None)
        settings = defaults | given
        settings |= merged_settings(settings, defaults)
        made.append(_changed(task, f"{task.id}, with your own settings", {"settings": settings}))
    return made


def _changed(task: FleetTask, name: str, members: Mapping[str, Any]) -> FleetTask:
    """Return a task with other members. Raises NotSetUpError with each mistake of the task of this name."""
    try:
        changed = FleetTask.model_validate({**task.model_dump(), **members})
    except ValidationError as error:
        raise NotSetUpError("\n".join(f"{name}: {_explained(details)}" for details in error.errors())) from error
    return task.model_copy(update=dict(changed))


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def parse_tasks(lines: Sequence[str], name: str, look: Look | None = None) -> list[FleetTask]:
    """Return the tasks of the lines of the list `name`, unless there are mistakes, those that `look` finds included."""
    values, tasks, mistakes = dict[int, Any](), dict[int, FleetTask](), list[tuple[int, str]]()
    for number, line in enumerate(lines, start=1):
        try:
            if line.strip() and not line.lstrip().startswith("#"):
                values[number] = from_json(line)
        except ValueError as error:
            mistakes.append((number, f"not JSON: {str(error).replace(' at line 1 column', ' in column')}"))
    if not any(isinstance(each, dict) for each in values.values()):
        raise NotSetUpError(
            f'{name} is not JSON Lines; write a task per line: {{"id": "a", "repository": "../api", ...}}'
        )
    for number, each in _with_defaults(values):
        try:
            tasks[number] = FleetTask.model_validate(each)
            tasks[number]._list = Path(name).absolute()  # noqa: SLF001 - no field of the line
        except ValidationError as error:
            mistakes += [(number, _explained(details)) for details in error.errors()]
    names = {number: str(each["id"]) for number, each in values.items() if isinstance(each, dict) and "id" in each}
    mistakes += [*_taken(names), *(look(tasks) if look else ())]
    if mistakes:
        more = [f"and {len(mistakes) - _MOST_SHOWN:,} more"] if len(mistakes) > _MOST_SHOWN else []
        places = {number: f"{name}:{number}" if number else "--setting" for number, _ in mistakes}
        told = [f"{places[number]}: {mistake}" for number, mistake in sorted(mistakes)[:_MOST_SHOWN]]
        raise NotSetUpError("\n".join([f"{count(len(mistakes), 'mistake')} in the list of tasks:", *told, *more]))
    if not tasks:
        raise NotSetUpError(f"{name} has a line of defaults, but no tasks")
    return list(tasks.values())


def _with_defaults(values: Mapping[int, Any]) -> Iterator[tuple[int, Any]]:
    """Yield the lines of tasks with the defaults of a first line; that line alone if it has mistakes."""
    first = next(iter(values))
    defaults = values[first].get("defaults") if isinstance(values[first], dict) else None
    if not isinstance(defaults, dict):
        yield from values.items()
        return
    sample = {"id": "x", "repository": "x", "query": "x", **defaults}
    try:
        FleetTask.model_validate(sample)
    except ValidationError:
        yield first, sample
        return
    yield from ((number, _merged(defaults, each)) for number, each in values.items() if number != first)


def _merged(defaults: Mapping[str, Any], values: Any) -> Any:
    """Return the values of a line over the defaults, which are merged setting by setting and file by file."""
    if not isinstance(values, dict):
        return values
    both = [key for key in defaults.keys() & values.keys() if isinstance(defaults[key], dict)]
    inner = {key: _bound(defaults[key]) | _bound(values[key]) for key in both if isinstance(values[key], dict)}
    return {**defaults, **values, **inner}


def _bound(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings with each base URL bound to the provider of its model, before another model is added."""
    bound = dict(settings)
    for role in ("", "fallback_"):
        model, url = bound.get(f"{role}model"), bound.get(f"{role}base_url")
        if isinstance(model, str) and isinstance(url, str) and re.match(r"https?://", url, re.IGNORECASE):
            with suppress(NotSetUpError):  # the task tells it
                bound[f"{role}base_url"] = f"{provider_of(model)}:{url}"
    return bound


def _explained(details: Mapping[str, Any]) -> str:
    name = ".".join(map(str, details["loc"]))
    if details["type"] == "string_pattern_mismatch":
        return f"{name}: {_PATTERNS[name]}"
    if details["type"] == "extra_forbidden":
        return f"{shown(name)}: not a field of a task{did_you_mean(name, FleetTask.model_fields)}"
    if not name and details["type"] in ("model_type", "model_attributes_type"):
        return 'a task is an object: {"id": "a", "repository": "../api", ...}'
    return f"{name}: {FAULTS.get(details['type'], details['msg'].removeprefix('Value error, '))}"


_PATTERNS = dict.fromkeys(
    ("repository", "commit"), "must not be empty, begin with '-' or contain control characters"
) | {
    "id": "must be up to 100 letters, digits, '.', '_' and '-', beginning with a letter or digit",
    "query": "must not be empty",
}


def _taken(names: Mapping[int, str]) -> Iterator[tuple[int, str]]:
    """Yield the lines whose ids are reserved or used twice, also in other letter case, with the problem."""
    counts = Counter(map(str.lower, names.values()))
    for number, name in names.items():
        if counts[name.lower()] > 1:
            yield number, f"id: {shown(name)} is the id of more than one task (letter case does not count)"
        elif name.lower() in RESERVED:
            yield number, f"id: {name} is the name of one of the fleet's own files: choose another"
