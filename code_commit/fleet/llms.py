"""The LLMs of a fleet's tasks, as far as this machine knows of them before a task starts."""

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeVar

from code_commit.api import count_missing_keys
from code_commit.errors import NotSetUpError
from code_commit.files import is_folder
from code_commit.fleet.builds import link_keys
from code_commit.fleet.tasks import FleetTask
from code_commit.llm.keys import KEY_VARIABLES
from code_commit.project import AGENT_CONFIG
from code_commit.runs.words import count
from code_commit.settings import ENVIRONMENT_PREFIX, KEYS_VARIABLE, Facet, settings_for
from code_commit.terminal import shown

T = TypeVar("T")


@contextmanager
def _linked_keys() -> Iterator[str]:
    """Give a folder of a project that has nothing but links to the keys of this machine."""
    with TemporaryDirectory() as folder:
        config = Path(folder, AGENT_CONFIG)
        config.mkdir(mode=0o700)
        link_keys(config)
        yield folder


def ask_of_each(runs: Iterable[Mapping[str, Any]], question: Callable[..., T], *, is_elsewhere: bool) -> Iterator[T]:
    """Yield the answer to a question about the settings of each run, which is asked once about equal ones."""
    known: dict[str, T] = {}
    with _linked_keys() as folder:
        for settings in runs:
            key = json.dumps(settings, sort_keys=True)
            if key not in known:
                known[key] = question(folder, settings, is_elsewhere=is_elsewhere)
            yield known[key]


def require_keys(tasks: Sequence[FleetTask]) -> None:
    """Raise NotSetUpError, once for all tasks, where they name models on this machine that it has no key for."""
    with _linked_keys() as folder:
        lacking = count_missing_keys(folder, [task.settings for task in tasks])
    place = os.environ.get(KEYS_VARIABLE, "")
    if lacking and place and not is_folder(place):
        raise NotSetUpError(f"{KEYS_VARIABLE} names {shown(place)}, which is not a folder: name the one with your keys")
    told = [
        f"no key for {provider or 'any provider'} ({count(number, 'task')}): set "
        f"{KEY_VARIABLES.get(provider) or ' or '.join(KEY_VARIABLES.values())}, or "
        + (f"write it into {shown(place)}/" if place else f"{KEYS_VARIABLE} to a folder with ")
        + f"{provider or 'PROVIDER'}-key.txt"
        for provider, number in lacking.items()
    ]
    if told:
        raise NotSetUpError("\n".join(told))


def ways_left_out(tasks: Sequence[FleetTask], own: Mapping[str, Any]) -> str:
    """Return which of the user's own settings of the way to an address reach no task that lacks them, "" for none."""
    given = {"key_command"} if os.environ.get(f"{ENVIRONMENT_PREFIX}KEY_COMMAND") else set()
    names = [name for name in settings_for(Facet.REACH) if own.get(name) and name not in given]
    lacking = [name for name in names if any(name not in task.settings for task in tasks)]
    if not lacking:
        return ""
    way = "put headers as text into a task's settings, and CODE_COMMIT_KEY_COMMAND into a worker's environment"
    return f"the tasks of a fleet do not use {' and '.join(lacking)} from your own settings: {way}"
