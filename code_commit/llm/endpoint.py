"""Values of each request: where it goes, how long it may take, and what comes back."""

import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from code_commit.llm.proxies import is_this_machine
from code_commit.settings import Settings
from code_commit.terminal import shown


def at(base_url: str, path: str) -> str:
    """Return the address of a path below a base URL, whose query goes with every request."""
    base, _, query = base_url.partition("?")
    return f"{base}{path}" + (f"{'&' if '?' in path else '?'}{query}" if query else "")


class Endpoint(NamedTuple):
    """The model, its address, and the settings of its requests."""

    model: str
    base_url: str
    settings: Settings
    root: Path
    key_source: str  # the place of the key, "" without a key
    censor: Callable[[str], str]  # takes the key out of the API's words: some quote it
    tells_progress: bool = False
    path: str = ""  # of the requests, below the address
    is_vendors: bool = False  # whether the address is the vendor's own
    role: str = ""  # "fallback" or "select", as in LlmConfig

    @property
    def host(self) -> str:
        return shown(urlsplit(self.base_url).hostname or "")

    @property
    def netloc(self) -> str:
        """The host with its port."""
        return shown(urlsplit(self.base_url).netloc)

    @property
    def address_option(self) -> str:
        return f"--{'fallback-' * (self.role == 'fallback')}base-url"

    @property
    def model_option(self) -> str:
        return f"--{self.role and f'{self.role}-'}model"

    @property
    def is_local(self) -> bool:
        return is_this_machine(urlsplit(self.base_url).hostname or "")


class Timing(NamedTuple):
    """The clock of a call, its timeouts and its pauses, in seconds."""

    now: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep
    wall_clock: Callable[[], float] = time.time
    random: Callable[[], float] = lambda: time.time() % 1  # from 0 to 1, for jitter

    connect: float = 15.0
    read: float = 60.0  # the longest silence in the answer to a request that can be repeated for free: a poll, a count
    cancel: float = 10.0  # for cancelling a job in all: the user waits for the tool to end
    after_end: float = 15.0  # for what a stream has behind the end of its answer, such as counts

    alive: tuple[int, int, int] = (60, 15, 4)
    """When TCP asks whether a silent host is there: first, then every, and how often before it is not."""
    largest_reply: int = 512 * 1024 * 1024  # in bytes; no model writes that much

    first_poll: float = 0.5
    longest_poll: float = 15.0
    poll_growth: float = 1.6

    first_backoff: float = 1.0
    longest_backoff: float = 60.0


class Reply(NamedTuple):
    """A whole reply. Header names are in lower case; the body is the parsed JSON, else the text."""

    status: int
    headers: Mapping[str, str]
    body: Any

    @property
    def is_success(self) -> bool:
        return 200 <= self.status < 300
