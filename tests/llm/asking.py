"""How the tests ask an LLM: a clock that jumps, a listener that remembers, and one table of all the ways to ask."""

import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fake_server import FakeServer

from code_commit.exchange import Prompt, Response, Settlement
from code_commit.llm import NetworkLLM
from code_commit.llm.endpoint import Timing
from code_commit.llm.keys import ApiKey
from code_commit.llm.ledger import Ledger
from code_commit.llm.vendor import LlmConfig, ModelChoice
from code_commit.project import Project
from code_commit.settings import Settings

KEY = "sk-test-4f9a8b7c6d5e"
ROOT = Path("/work tree/project")
PROMPT = Prompt("SYSTEM PROMPT\n", "", "QUERY AND CODEBASE\n")
CACHED_PROMPT = Prompt("SYSTEM PROMPT\n", "CODEBASE AND QUERY\n", "BUILD OUTPUT\n")


@dataclass(frozen=True)
class Way:
    """One API and how it is chosen."""

    provider: Any
    model: str
    settings: dict[str, Any] = field(default_factory=dict)

    @property
    def is_background(self) -> bool:
        return self.provider in ("openai", "gemini")


WAYS = {
    "responses": Way("openai", "gpt-6.2-sol"),
    "interactions": Way("gemini", "gemini-4-argon"),
    "messages": Way("anthropic", "claude-opus-5-5"),
    "chat": Way("chat", "some-model"),
}


class Clock:
    """Time that sleeping moves on at once, of a machine that has just booted. `waits` holds what was slept.

    Its wall clock does nothing but sleep: no load of the machine moves it on.
    """

    def __init__(self) -> None:
        self.ahead = 0.0
        self.waits: list[float] = []
        self._booted = time.monotonic()

    def now(self) -> float:
        return time.monotonic() - self._booted + self.ahead

    def wall_clock(self) -> float:
        return 1_800_000_000 + self.ahead

    def sleep(self, seconds: float) -> None:
        self.waits.append(seconds)
        self.ahead += seconds

    def timing(self, **more: Any) -> Timing:
        """Times on this clock, whose jitter is always its upper end."""
        times: dict[str, Any] = {"read": 10.0, "connect": 2.0, "cancel": 1.0}
        clocks: dict[str, Any] = {"now": self.now, "wall_clock": self.wall_clock, "sleep": self.sleep}
        return Timing(random=lambda: 1.0, **(clocks | times | more))


class Listener:
    """Remembers what it is told; `steps` in order."""

    def __init__(self) -> None:
        self.steps: list[str] = []
        self.rooms: list[int] = []
        self.request: tuple[str, dict[str, str], Any] = ("", {}, None)
        self.jobs: list[str] = []
        self.retries: list[tuple[str, float]] = []
        self.limits: list[float] = []
        self.unsettled: list[float] = []
        self.unpriced = 0
        self.settlements: list[Settlement] = []
        self.states: list[str] = []
        self.warnings: list[str] = []
        self.kept_texts: list[tuple[str, bool]] = []
        self.replies: list[tuple[int, dict[str, str], Any]] = []

    def make_room(self, size: int) -> None:
        self.rooms.append(size)

    def requested(self, url: str, headers: Any, body: Any) -> None:
        self.steps.append("requested")
        self.request = (url, dict(headers), body)

    def job_created(self, job_id: str) -> None:
        self.steps.append("job_created")
        self.jobs.append(job_id)

    def progressed(self, state: str) -> None:
        self.steps.append("progressed")
        self.states.append(state)

    def reserved(self, usd: float | None) -> None:
        self.unsettled += [] if usd is None else [usd]
        self.unpriced += usd is None

    def settled(self, settlement: Settlement) -> None:
        self.settlements.append(settlement)
        if settlement.reserved in self.unsettled:
            self.released(settlement.reserved)
        self.unsettled += [settlement.unsettled_usd] if settlement.unsettled_usd else []

    def released(self, reserved: float) -> None:
        if reserved:
            self.unsettled.remove(reserved)
        else:
            self.unpriced -= 1

    def warned(self, message: str) -> None:
        self.warnings.append(message)

    def kept(self, text: str, *, is_whole: bool) -> str:
        self.kept_texts.append((text, is_whole))
        return "LOG/1-response.txt"

    def retrying(self, reason: str, _status: int | None, delay: float, limit: float) -> None:
        self.steps.append("retrying")
        self.retries.append((reason, delay))
        self.limits.append(limit)

    def replied(self, status: int, headers: Any, body: Any) -> None:
        self.steps.append("replied")
        self.replies.append((status, dict(headers), body))

    def answered(self, response: Response) -> None:
        self.unpriced -= response.settlement.reserved not in self.unsettled and self.unpriced > 0
        self.settled(response.settlement)

    @property
    def heard(self) -> str:
        """Everything but the request's headers, whose key the run's log censors."""
        return repr((self.request[0], self.request[2], self.jobs, self.retries, self.states, self.replies))


def open_way(
    way: Way,
    base_url: str,
    timing: Timing | None = None,
    *,
    key: str | None = KEY,
    timeout: float = 600,
    **settings: Any,
) -> NetworkLLM:
    """The LLM that one way asks."""
    choice = ModelChoice(way.provider, way.model)
    all_settings = Settings(base_url=base_url, llm_timeout=timeout, **(way.settings | settings))
    api_key = ApiKey(way.provider, key, "agent-config/test-key.txt") if key else None
    ledger = Ledger(all_settings.max_cost)
    return NetworkLLM(LlmConfig(choice, api_key, all_settings), Project(ROOT), ledger, timing)


def ask(
    way: Way, server: FakeServer, prompt: Prompt = PROMPT, clock: Clock | None = None, **more: Any
) -> tuple[Response, Listener]:
    """Ask once, on a clock that jumps."""
    listener = Listener()
    timing = more.pop("timing", None) or (clock or Clock()).timing()
    with open_way(way, server.base_url(way.provider), timing, **more) as llm:
        return llm.complete(prompt, listener), listener
