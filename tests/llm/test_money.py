"""Whatever a server answers, what it bills is counted, and what is counted stays below the limit."""

import json
import random
from contextlib import suppress

import pytest
from asking import PROMPT, WAYS, Clock, Listener, open_way
from fake_server import FakeServer, Fault

from code_commit.errors import LLMError
from code_commit.settings import Price

PRICE, OUTPUT = Price(1.0, 10.0), 1_000
BOUND = (40 + OUTPUT * PRICE.output) / 1e6  # of one request: the prompt has 33 bytes
COUNTS = {  # each counts 25 tokens of the prompt and 500 of the answer
    "chat": [
        {"prompt_tokens": 25, "completion_tokens": 500, "total_tokens": 525},
        {"prompt_tokens": "25", "completion_tokens": 500.0},
        {"prompt_tokens": 5, "completion_tokens": 500, "prompt_tokens_details": {"cached_tokens": 20}},
        {"prompt_tokens": 15, "completion_tokens": 500, "total_tokens": 525, "cache_read_input_tokens": 10},
        {"prompt_tokens": 25, "completion_tokens": 20, "completion_tokens_details": {"reasoning_tokens": 480}},
    ],
    "messages": [
        {"input_tokens": 25, "output_tokens": 500},
        {"input_tokens": 15, "cache_read_input_tokens": 10, "output_tokens": 500},
    ],
    "responses": [{"input_tokens": 25, "output_tokens": 500, "total_tokens": 525}],
    "interactions": [{"total_input_tokens": 25, "total_output_tokens": 20, "total_thought_tokens": 480}],
}
BILL = (25 * PRICE.input + 500 * PRICE.output) / 1e6


def events_of(way, usage, rng):
    """The events of an answer, of which some marks may be missing."""
    if way == "chat":
        pieces = [{"choices": [{"index": 0, "delta": {"content": text}}]} for text in ("o", "k")]
        ends = [{"choices": [{"delta": {}, "finish_reason": "stop"}]}, {"choices": [], "usage": usage}, "[DONE]"]
    else:
        start = {"type": "message_start", "message": {"usage": {**usage, "output_tokens": 1}}}
        block = {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": "ok"}}
        pieces = [start, block]
        ends = [{"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": usage}]
        ends.append({"type": "message_stop"})
    kept = pieces + [end for end in ends if rng.random() < 0.8]
    line_end = rng.choice(["\n", "\r\n", "\r"])
    events = (event if isinstance(event, str) else json.dumps(event) for event in kept)
    return "".join(f"data: {event}{line_end * 2}" for event in events).encode()


def reply_of(way, rng):
    """One reply of the server, and the most that it bills for it."""
    if rng.random() < 0.3:
        status = rng.choice([400, 401, 404, 408, 409, 413, 422, 429, 499, 500, 502, 503, 504, 529])
        is_free = status not in (408, 499, 500, 502, 504)
        return Fault("status", status=status, body={"error": {"message": "No."}}), 0.0 if is_free else BILL
    usage = rng.choice(COUNTS[way])
    if way in ("chat", "messages"):
        body = events_of(way, usage, rng)
        return Fault("status", body=body[: rng.randint(0, len(body))] if rng.random() < 0.5 else body), BILL
    state = rng.choice(["completed", "failed", "incomplete", "cancelled"])
    text = json.dumps({"id": "r", "status": state, "usage": usage}).encode()
    return Fault("status", body=text[: rng.randint(0, len(text))] if rng.random() < 0.3 else text), BILL


@pytest.mark.parametrize("way", COUNTS)
def test_what_is_billed_is_counted_and_within_the_limit(way, whole):
    for seed in range(5_000 if whole else 6):
        rng = random.Random(seed)
        replies = [reply_of(way, rng) for _ in range(rng.randint(1, 6))]
        faults, bills = [fault for fault, _ in replies], [bill for _, bill in replies]
        limit, listener = BOUND * rng.randint(1, 5), Listener()
        money = {"max_output_tokens": OUTPUT, "max_cost": limit, "prices": {WAYS[way].model: PRICE}}
        with FakeServer([], faults) as server:
            url = server.base_url(WAYS[way].provider)
            with open_way(WAYS[way], url, Clock().timing(), timeout=900, **money) as llm:
                for _ in range(3):
                    with suppress(LLMError):
                        llm.complete(PROMPT, listener)
        used = len(bills) - sum(fault.times for fault in faults)
        counted = sum(each.cost_usd or 0.0 for each in listener.settlements) + sum(listener.unsettled)
        assert sum(bills[:used]) <= counted + 1e-9 <= limit + 2e-9, seed
