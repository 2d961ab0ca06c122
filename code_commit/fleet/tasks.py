"""The list of a fleet's tasks: JSON Lines, every mistake in them named with its line before anything starts."""

import hashlib
import os
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError, ValidationInfo, field_validator

from code_commit.errors import NotSetUpError
from code_commit.fleet.results import NAME, RESERVED
from code_commit.git import ask_git
from code_commit.llm.models import choose_model
from code_commit.project import read_text
from code_commit.runs.words import count
from code_commit.settings import validate_settings
from code_commit.terminal import shown

_NOT_AN_OPTION = r"^[^-\x00-\x1f][^\x00-\x1f]*$"
_MOST_SHOWN = 50


class FleetTask(BaseModel):
    """One line of the list. Equal tasks have equal digests: a task that changed runs again."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, hide_input_in_errors=True)

    id: Annotated[str, Field(pattern=NAME, description="the name of the folder for what comes of it")]
    repository: Annotated[str, Field(pattern=_NOT_AN_OPTION, description="a path, or whatever git clone takes")]
    commit: Annotated[str, Field(pattern=_NOT_AN_OPTION, description="a commit, tag or branch of it")]
    query: Annotated[str, Field(pattern=r"\S", description="the task, as query.txt holds it")]
    rollup: Annotated[list[str], Field(description="the pathspecs of code-commit rollup")] = []
    settings: Annotated[dict[str, Any], Field(description="keys of config.toml")] = {}
    timeout: Annotated[float | None, Field(gt=0, description="seconds for all of it")] = None

    @field_validator("repository")
    @classmethod
    def _has_no_password(cls, repository: str) -> str:
        if re.match(r"(?i)[a-z+]+://([^/@]*:[^/@]*|[^/@]{32,})@", repository):  # so long a name is a token
            raise ValueError("holds a password: leave it to git's credential helper on the workers")
        if re.match(r"(?i)(ext|fd)::", repository):
            raise ValueError("names a program or an open file of a worker: name a URL or a path")
        return repository

    @field_validator("settings")
    @classmethod
    def _are_known(cls, settings: dict[str, Any], others: ValidationInfo) -> dict[str, Any]:
        try:
            values = validate_settings(settings)
            for name in filter(settings.get, ("model", "select_model", "fallback_model")):
                choose_model(settings[name], ())
        except NotSetUpError as error:
            raise ValueError(str(error).replace("\n", "; ")) from error
        if settings.get("approve"):
            raise ValueError("approve asks on a terminal, which a task has not")
        if others.data.get("rollup") and settings.get("rollup", "file") != "file":
            raise ValueError("rollup takes all files anew, not the task's pathspecs alone: use rollup_exclude instead")
        return settings | {name: value for name, value in values.items() if isinstance(value, float)}

    @property
    def digest(self) -> str:
        return hashlib.sha256(self.model_dump_json().encode()).hexdigest()

    @property
    def title(self) -> str:
        """The first line of the query."""
        return self.query.strip().split("\n")[0]

    @property
    def path(self) -> Path | None:
        """The repository where it is a folder of this machine, None where git finds it by a URL."""
        is_url = "://" in self.repository or ":" in self.repository.split("/")[0]
        return None if is_url else Path(os.path.realpath(Path(self.repository).expanduser()))

    @property
    def provider(self) -> str:
        """Whose limits it counts against, "" where the worker's keys decide."""
        return choose_model(self.settings["model"], ()).provider if self.settings.get("model") else ""


def read_tasks(path: Path) -> list[FleetTask]:
    """Return the tasks of the list, in its order. Raises NotSetUpError with every mistake and its line."""
    lines = (
        read_text(path, "write the tasks into it, as code-commit fleet --schema says", str(path))
        .removeprefix("\ufeff")
        .split("\n")
    )
    tasks: dict[int, FleetTask] = {}
    names: dict[int, str] = {}
    mistakes: list[tuple[int, str]] = []
    for number, line in enumerate(lines, start=1):
        if name := _ID.search(line):
            names[number] = name[1]
        try:
            if line.strip():
                tasks[number] = FleetTask.model_validate_json(line)
        except ValidationError as error:
            mistakes += [(number, _explained(details)) for details in error.errors()]
    mistakes += [*_taken(names), *_missing(tasks)]
    if mistakes:
        more = [f"and {len(mistakes) - _MOST_SHOWN:,} more"] if len(mistakes) > _MOST_SHOWN else []
        told = [f"{path}:{number}: {mistake}" for number, mistake in sorted(mistakes)[:_MOST_SHOWN]]
        raise NotSetUpError("\n".join([f"{count(len(mistakes), 'mistake')} in the list of tasks:", *told, *more]))
    return list(tasks.values())


def _explained(details: Mapping[str, Any]) -> str:
    name = ".".join(map(str, details["loc"]))
    if details["type"] == "string_pattern_mismatch":
        return f"{name}: {_PATTERNS[name]}"
    return f"{name + ': ' if name else ''}{details['msg'].removeprefix('Value error, ')}"


_PATTERNS = {
    "id": "must be a name of letters, digits, '.', '_' and '-', the first a letter or digit, 100 at most",
    "repository": "must not be empty, begin with '-' or hold control characters",
    "commit": "must not be empty, begin with '-' or hold control characters",
    "query": "says nothing",
}


_ID = re.compile(r'"id"\s*:\s*"([^"]*)"')
"""The id of a line, also of one that has other mistakes."""


def _taken(names: Mapping[int, str]) -> Iterator[tuple[int, str]]:
    """Yield the ids that are there twice, or would be on a file system without regard to case."""
    counts = Counter(map(str.lower, names.values()))
    for number, name in names.items():
        if counts[name.lower()] > 1:
            yield number, f"id: {shown(name)} is the name of more than one task"
        elif name.lower() in RESERVED:
            yield number, f"id: {name} is the name of a file of the results"


def _missing(tasks: Mapping[int, FleetTask]) -> Iterator[tuple[int, str]]:
    """Yield the repositories that are not here, and the commits that a repository here does not have."""
    here: dict[Path, list[int]] = {}
    for number, task in tasks.items():
        if path := task.path:
            here.setdefault(path, []).append(number)
    for path, numbers in here.items():
        asked = "".join(f"{tasks[number].commit}^{{commit}}\n" for number in numbers).encode()
        answer = ask_git(["cat-file", "--batch-check"], path, asked) if path.is_dir() else None
        if answer is None or answer.returncode != 0:
            yield from ((number, f"repository: {tasks[number].repository} is no git repository") for number in numbers)
            continue
        for number, line in zip(numbers, answer.stdout.split(b"\n"), strict=False):
            if line.endswith(b" missing") or b" commit " not in line:
                yield number, f"commit: {tasks[number].repository} has no {tasks[number].commit}"
