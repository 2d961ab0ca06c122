"""A background job: created, polled until it is final, cancelled when nobody waits for it any longer.

A connection that is lost while polling costs nothing: the job goes on, and the next poll fetches its answer.
"""

import re
from functools import partial
from typing import Any
from urllib.parse import quote

from code_commit.errors import LLMError
from code_commit.llm.call import Call
from code_commit.llm.http import FailureKind, PassingFailure, Reply, member, text_of
from code_commit.llm.refusals import asked_delay

_FINAL_STATES = """
    completed incomplete failed cancelled canceled expired budget_exceeded requires_action requires_continuation
"""
FINAL_STATES = frozenset(_FINAL_STATES.split())


def run_job(call: Call, path: str) -> Reply:
    """Create a job at the path and return the reply that holds its final state.

    Raises PassingFailure where creating failed in a way that can pass, LLMError at the deadline.
    """
    reply = call.connection.send("POST", path, call.body, call.timing.read)
    _check_job(call, reply)
    if is_final(reply):
        return reply
    job_id = text_of(reply.body, "id")
    if not re.fullmatch(r"[\x21-\x7e]{1,512}", job_id) or set(job_id) == {"."}:
        raise call.garbage(reply)
    return _follow(call, _path_of(path, job_id), job_id, reply)


def fetch_job(call: Call, path: str, job_id: str) -> Reply:
    """Return the reply that holds the final state of a job which an earlier call had created.

    Raises LLMError at the deadline, and where the job is no longer known.
    """
    job_path = _path_of(path, job_id)
    reply = call.retried(partial(_fetch, call, job_path, "gone"), longest_wait=call.timing.longest_poll)
    return reply if is_final(reply) else _follow(call, job_path, job_id, reply)


def _path_of(path: str, job_id: str) -> str:
    return f"{path}/{quote(job_id, safe='')}"


def _follow(call: Call, job_path: str, job_id: str, reply: Reply) -> Reply:
    try:
        call.listener.job_created(job_id)
        return _poll(call, job_path, reply)
    except LLMError:
        final = _cancel(call, job_path)
        if final is None:
            raise
        return final
    except BaseException:
        _cancel(call, job_path)
        raise


def is_final(reply: Reply) -> bool:
    """Tell whether a job has ended. A state that nobody knows yet is one on the way, unless an answer is there."""
    state = text_of(reply.body, "status")
    return state in FINAL_STATES or (state not in ("queued", "in_progress") and _has_answer(reply.body))


def _has_answer(body: Any) -> bool:
    return any(member(body, name) for name in ("output", "steps", "error", "errors"))


def _poll(call: Call, job_path: str, reply: Reply) -> Reply:
    pause = call.timing.first_poll
    missing: FailureKind = "early"
    while True:
        call.progressed(text_of(reply.body, "status") or "waiting", always=True)
        _pause(call, _asked_pause(call, reply) or pause)
        pause = min(pause * call.timing.poll_growth, call.timing.longest_poll)
        reply = call.retried(partial(_fetch, call, job_path, missing), longest_wait=call.timing.longest_poll)
        missing = "gone"
        if is_final(reply):
            return reply


def _fetch(call: Call, job_path: str, missing: FailureKind) -> Reply:
    """Ask once for the state of the job; `missing` is what it means when it is not found.

    Asking again is free, so whatever comes in place of the state can pass: a lost connection, a captive portal's page.
    """
    try:
        reply = call.connection.send("GET", job_path, None, call.timing.read)
        if reply.status != 404:
            _check_job(call, reply)
            return reply
    except PassingFailure as failure:
        if failure.kind in ("lost", "garbage"):
            failure.kind = "busy"
        raise
    raise PassingFailure(f"{call.connection.host} does not find the job", missing, None, reply)


def _check_job(call: Call, reply: Reply) -> None:
    """A failed job may carry its error in a member of the same name: the job's state decides then."""
    if not (reply.is_success and text_of(reply.body, "status")):
        call.check(reply)


def _pause(call: Call, seconds: float) -> None:
    remaining = call.connection.remaining
    if seconds < remaining:
        call.timing.sleep(seconds)
        return
    call.timing.sleep(max(remaining, 0.0))
    raise LLMError(f"{call.connection.host} has not finished the answer in time (--llm-timeout): its job is cancelled")


def _asked_pause(call: Call, reply: Reply) -> float | None:
    milliseconds = reply.headers.get("openai-poll-after-ms")
    asked = asked_delay(reply.headers if milliseconds is None else {"retry-after-ms": milliseconds}, None)
    return None if asked is None else min(max(asked, call.timing.shortest_poll), call.timing.longest_poll)


def _cancel(call: Call, job_path: str) -> Reply | None:
    """Cancel the job; return its final reply where it was finished all the same."""
    call.connection.deadline = call.timing.now() + call.timing.cancel
    try:
        reply = call.connection.send("POST", f"{job_path}/cancel", {}, call.timing.cancel)
    except (LLMError, PassingFailure):
        return None
    return reply if reply.is_success and text_of(reply.body, "status") in ("completed", "incomplete") else None
