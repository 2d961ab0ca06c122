"""Whatever a server answers and whoever is killed, what it bills is counted, and what is counted is within the limit."""

import json
import random
import re
import shutil
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from asking import KEY, PROMPT, WAYS, Clock
from fake_server import FakeServer, Fault

from code_commit.errors import LLMError
from code_commit.llm.asking import asking
from code_commit.llm.keys import ApiKey
from code_commit.llm.vendor import LlmConfig, ModelChoice
from code_commit.project import Project
from code_commit.redaction import Redactor
from code_commit.runs.attempt_log import AttemptLog
from code_commit.runs.log import RunLog, open_run_log, reopen_run_log
from code_commit.runs.progress import Progress
from code_commit.runs.record import RunEntry, load_run_record
from code_commit.settings import Price, Settings

PRICE, OUTPUT = Price(1.0, 10.0), 1_000
BOUND = (40 + OUTPUT * PRICE.output) / 1e6  # of one request: the prompt has 33 bytes
COUNTS = {  # each counts 25 tokens of the prompt and 500 of the answer
    "chat": [
        {"prompt_tokens": 25, "completion_tokens": 500, "total_tokens": 525},
        {"prompt_tokens": "25", "completion_tokens": 500.0},
        {"prompt_tokens": 5, "completion_tokens": 500, "prompt_tokens_details": {"cached_tokens": 20}},
        {"prompt_tokens": 15, "completion_tokens": 500, "total_tokens": 525, "cache_read_input_tokens": 10},
        {"prompt_tokens": 25, "completion_tokens": 20, "completion_tokens_details": {"reasoning_tokens": 480}},
        {"input_tokens": 25, "output_tokens": 500},
    ],
    "messages": [
        {"input_tokens": 25, "output_tokens": 500},
        {"input_tokens": 15, "cache_read_input_tokens": 10, "output_tokens": 500},
    ],
    "responses": [{"input_tokens": 25, "output_tokens": 500, "total_tokens": 525}],
    "interactions": [{"total_input_tokens": 25, "total_output_tokens": 20, "total_thought_tokens": 480}],
}
BILL = (25 * PRICE.input + 500 * PRICE.output) / 1e6
MAIN_COUNTS = re.compile(r"(total_)?(prompt|completion|input|output)_tokens")
OUTPUT_COUNTS = ("completion_tokens", "output_tokens")
ODD_COUNTS = (None, -5, True, "many", [500], {}, float("nan"), 10**30)
FREE_STATUSES = (400, 401, 404, 409, 413, 422, 429, 503, 529)
PAID_STATUSES = (408, 499, 500, 502, 504)


class Killed(BaseException):
    """The process has died."""


class Mortal:
    """The listener of a call, of which the call `dies_at` is the last one."""

    def __init__(self, listener: Any, dies_at: int) -> None:
        self._listener, self._left = listener, dies_at

    def __getattr__(self, name: str) -> Any:
        def call(*values: Any, **named: Any) -> Any:
            self._left -= 1
            if self._left == 0:
                raise Killed
            told = getattr(self._listener, name)(*values, **named)
            if self._left == 1:
                raise Killed
            return told

        return call


def usage_in(way: str, rng: random.Random) -> Any:
    """The counts of an answer in one of many shapes, of which each says the truth or nothing."""
    usage: Any = dict(rng.choice(COUNTS[way]))
    shape = rng.random()
    if shape < 0.1:
        return rng.choice([None, {}, [], "25"])
    if shape < 0.4:
        usage[rng.choice([name for name in usage if MAIN_COUNTS.fullmatch(name)])] = rng.choice(ODD_COUNTS)
    return usage


def events_of(way: str, usage: Any, rng: random.Random) -> bytes:
    """The events of an answer, of which some marks may be missing."""
    begun = {name: count for name, count in members(usage) if name != "total_tokens"}
    so_far = {name: min(count, 7) if name in OUTPUT_COUNTS else count for name, count in begun.items()}
    if way == "chat":
        pieces = [{"choices": [{"index": 0, "delta": {"content": text}}]} for text in ("o", "k")]
        if rng.random() < 0.3:
            pieces = [piece | {"usage": so_far} for piece in pieces]
        ends = [{"choices": [{"delta": {}, "finish_reason": "stop"}]}, {"choices": [], "usage": usage}, "[DONE]"]
    else:
        start = {"type": "message_start", "message": {"usage": so_far}}
        block = {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}
        delta = {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "ok"}}
        pieces = [start, block, delta]
        ends = [{"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": usage}]
        ends.append({"type": "message_stop"})
    kept = pieces + [end for end in ends if rng.random() < 0.8]
    line_end = rng.choice(["\n", "\r\n", "\r"])
    events = (event if isinstance(event, str) else json.dumps(event) for event in kept)
    return "".join(f"data: {event}{line_end * 2}" for event in events).encode()


def members(usage: Any) -> list[tuple[str, int]]:
    """The counts that are right."""
    counts = usage.items() if isinstance(usage, dict) else ()
    return [(name, count) for name, count in counts if type(count) is int and 0 <= count < 10**12]


def state_of(way: str, usage: Any, rng: random.Random) -> bytes:
    """The state of a job, finished or not."""
    state = rng.choice(["completed", "completed", "failed", "incomplete", "cancelled", "queued", "in_progress"])
    body: dict[str, Any] = {"id": "r", "status": state, "usage": usage}
    if rng.random() < 0.8:
        text = [{"type": "output_text" if way == "responses" else "text", "text": "ok"}]
        kind = "message" if way == "responses" else "model_output"
        body["output" if way == "responses" else "steps"] = [{"type": kind, "content": text}]
    if state == "failed":
        body["error"] = {"code": rng.choice(["server_error", "invalid_prompt", "quota"]), "message": "No."}
    return json.dumps(body).encode()


def reply_of(way: str, stage: str, rng: random.Random, cut: int | None) -> tuple[Fault, float]:
    """One reply of the server, and what it bills for the request."""
    bill = BILL if stage == "call" else 0.0
    if cut is None and rng.random() < 0.3:
        status = rng.choice([*FREE_STATUSES, *PAID_STATUSES])
        body = {"error": {"message": "No."}}
        return Fault("status", stage, status=status, body=body), bill if status in PAID_STATUSES else 0.0
    if cut is None and rng.random() < 0.1:
        return Fault(rng.choice(["drop", "reset", "garbage", "html"]), stage), bill
    usage = usage_in(way, rng)
    body = (events_of if way in ("chat", "messages") else state_of)(way, usage, rng)
    if cut is None and rng.random() < 0.3:
        cut = rng.randint(0, len(body))
    return Fault(rng.choice(["status", "cut"]), stage, body=body[:cut]), bill


def calls_of(llm: LlmConfig, project: Project, rng: random.Random, server: FakeServer) -> Iterator[RunLog]:
    """Ask, and after each end of the process continue from the log alone. Yield the log each time."""
    settings, entry = llm.settings, None
    for _ in range(4):
        progress, timing = Progress(Redactor([KEY]), quiet=True), Clock().timing()
        if entry is None:
            log = open_run_log(project, "run", settings, progress)
        else:
            log = reopen_run_log(project, entry, settings, progress)
        answered = None
        with suppress(LLMError), log:
            attempt = AttemptLog(log, 1)
            if answered := attempt.recorded_response():
                return
            attempt.asking(PROMPT)
            listener = Mortal(attempt, rng.randint(1, 12)) if rng.random() < 0.4 else attempt
            with suppress(Killed), asking(llm, project, log, timing) as complete:
                answered = complete(PROMPT, listener)
                if rng.random() < 0.5:  # else it dies between the reply and the record
                    attempt.responded(answered, "")
        yield log
        entry = RunEntry(log.folder, load_run_record((log.folder / "run.json").read_bytes()))
        if answered:
            asked = len(server.requests)
            yield from read_again(llm, project, entry)
            assert len(server.requests) == asked
            return


def read_again(llm: LlmConfig, project: Project, entry: RunEntry) -> Iterator[RunLog]:
    """An answer that is on disk is taken from there."""
    log = reopen_run_log(project, entry, llm.settings, Progress(Redactor([KEY]), quiet=True))
    attempt = AttemptLog(log, 1)
    if attempt.recorded_response() is None:
        with asking(llm, project, log, Clock().timing()) as complete:
            attempt.responded(complete(PROMPT, attempt), "")
    yield log


@pytest.mark.parametrize("share", [pytest.param(1, id="few"), pytest.param(15, id="many", marks=pytest.mark.slow)])
@pytest.mark.parametrize("way", COUNTS)
def test_what_is_billed_is_counted_and_within_the_limit(way: str, share: int, whole, tmp_path: Path):
    for seed in range(5_000 if whole and share > 1 else 6 * share):
        rng = random.Random(seed)
        first_cut = seed % 700 if seed % 2 else None  # at every byte of the first answer
        replies = [reply_of(way, "call", rng, None if number else first_cut) for number in range(rng.randint(1, 6))]
        polls = [reply_of(way, "poll", rng, None)[0] for _ in range(rng.randint(0, 8))]
        limit, choice = BOUND * rng.randint(1, 5), ModelChoice(WAYS[way].provider, WAYS[way].model)
        project = Project(tmp_path / f"{seed}")
        with FakeServer([], [*(fault for fault, _ in replies), *polls]) as server:
            settings = Settings(
                base_url=server.base_url(choice.provider),
                llm_timeout=900,
                max_output_tokens=OUTPUT,
                max_cost=limit,
                prices={choice.name: PRICE},
            )
            llm = LlmConfig(choice, ApiKey(choice.provider, KEY, "agent-config/test-key.txt"), settings)
            for log in calls_of(llm, project, rng, server):
                billed = sum(bill for fault, bill in replies if not fault.times)
                told = load_run_record((log.folder / "run.json").read_bytes()).cost.highest
                assert billed <= told + 1e-9 <= limit + 2e-9, seed
        shutil.rmtree(project.root)
