"""A background job: created, polled until it is final, cancelled when nobody waits for it any more.

A connection that is lost while polling costs nothing: the job goes on, and the next poll fetches its answer.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any
from urllib.parse import quote

from code_commit.errors import LLMError
from code_commit.llm.call import Call
from code_commit.llm.connection import FailureKind, PassingFailure, Reply
from code_commit.llm.json_values import member, text_of
from code_commit.llm.waiting import asked_delay

FINAL_STATES = frozenset(
    {
        "completed",
        "incomplete",
        "failed",
        "cancelled",
        "canceled",
        "expired",
        "budget_exceeded",
        "requires_action",
        "requires_continuation",
    }
)


@dataclass(frozen=True, slots=True)
class JobPaths:
    """Where an API keeps its jobs, below the base URL: `/responses`, `/interactions`."""

    jobs: str

    def job(self, job_id: str) -> str:
        return f"{self.jobs}/{quote(job_id, safe='')}"

    def cancel(self, job_id: str) -> str:
        return f"{self.job(job_id)}/cancel"


def run_job(call: Call, paths: JobPaths, body: Mapping[str, Any]) -> Reply:
    """Create a job and return the reply that holds its final state.

    Raises PassingFailure where creating failed in a way that can pass, LLMError at the deadline.
    """
    reply = call.connection.send("POST", paths.jobs, body, call.pace.read)
    _check_job(call, reply)
    if is_final(reply):
        return reply
    job_id = text_of(reply.body, "id")
    if not re.fullmatch(r"[\x21-\x7e]{1,512}", job_id) or set(job_id) == {"."}:
        raise call.garbage(reply)
    return _follow(call, paths, job_id, reply)


def fetch_job(call: Call, paths: JobPaths, job_id: str) -> Reply:
    """Return the reply that holds the final state of a job which an earlier call had created.

    Raises LLMError at the deadline, and where the job is not known any more.
    """
    reply = call.retried(partial(_fetch, call, paths.job(job_id), "gone"), longest_wait=call.pace.longest_poll)
    return reply if is_final(reply) else _follow(call, paths, job_id, reply)


def _follow(call: Call, paths: JobPaths, job_id: str, reply: Reply) -> Reply:
    final: Reply | None = None
    try:
        call.listener.job_created(job_id)
        final = _poll(call, paths.job(job_id), reply)
    except LLMError:
        final = _cancel(call, paths.cancel(job_id))
        if final is None:
            raise
    except BaseException:
        _cancel(call, paths.cancel(job_id))
        raise
    return final


def is_final(reply: Reply) -> bool:
    """Tell whether a job has ended. A state that nobody knows yet is one on the way, unless an answer is there."""
    state = text_of(reply.body, "status")
    return state in FINAL_STATES or (state not in ("queued", "in_progress") and _has_answer(reply.body))


def _has_answer(body: Any) -> bool:
    return any(member(body, name) for name in ("output", "steps", "error", "errors"))


def _poll(call: Call, path: str, reply: Reply) -> Reply:
    pause = call.pace.first_poll
    missing: FailureKind = "early"
    while True:
        call.progressed(text_of(reply.body, "status") or "waiting", always=True)
        _pause(call, _asked_pause(call, reply) or pause)
        pause = min(pause * call.pace.poll_growth, call.pace.longest_poll)
        reply = call.retried(partial(_fetch, call, path, missing), longest_wait=call.pace.longest_poll)
        missing = "gone"
        if is_final(reply):
            return reply


def _fetch(call: Call, path: str, missing: FailureKind) -> Reply:
    """Ask once for the state of the job; `missing` is what it means when it is not found.

    Asking again is free, so whatever comes in place of the state can pass: a lost connection, a captive portal's page.
    """
    try:
        reply = call.connection.send("GET", path, None, call.pace.read)
        if reply.status != 404:
            _check_job(call, reply)
            return reply
    except PassingFailure as failure:
        if failure.kind in ("lost", "garbage"):
            failure.kind = "busy"
        raise
    raise PassingFailure(f"{call.connection.host} does not find the job", missing, None, reply)


def _check_job(call: Call, answer: Reply) -> None:
    """A failed job may carry its error in a member of the same name: the job's state decides then."""
    if 200 <= answer.status < 300 and text_of(answer.body, "status"):
        return
    call.check(answer)


def _pause(call: Call, seconds: float) -> None:
    remaining = call.connection.deadline.remaining
    if seconds >= remaining:
        if remaining > 0:
            call.pace.sleep(remaining)
        raise LLMError(
            f"{call.connection.host} has not finished the answer in time (--llm-timeout): its job is cancelled"
        )
    call.pace.sleep(seconds)


def _asked_pause(call: Call, reply: Reply) -> float | None:
    milliseconds = reply.headers.get("openai-poll-after-ms")
    headers = reply.headers if milliseconds is None else {"retry-after-ms": milliseconds}
    asked = asked_delay(headers, None, call.pace)
    return None if asked is None else min(max(asked, call.pace.shortest_poll), call.pace.longest_poll)


def _cancel(call: Call, path: str) -> Reply | None:
    """Cancel the job; return its final reply where it was finished all the same."""
    try:
        with call.connection.deadline.within(call.pace.cancel):
            reply = call.connection.send("POST", path, {}, call.pace.cancel)
    except (LLMError, PassingFailure):
        return None
    done = 200 <= reply.status < 300 and text_of(reply.body, "status") in ("completed", "incomplete")
    return reply if done else None
