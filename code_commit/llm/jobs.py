"""Background jobs: create one, poll it, and cancel it if the user or the time limit ends the wait."""

import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import Any
from urllib.parse import quote

from code_commit.errors import CodeCommitError, LLMError
from code_commit.exchange import RequestBody
from code_commit.llm.call import Call
from code_commit.llm.endpoint import Reply
from code_commit.llm.events import LONGEST_BEGIN, begins_stream, read_events
from code_commit.llm.failures import PassingFailure
from code_commit.llm.refusals import RefusedRequestError
from code_commit.llm.values import json_or_text, list_of, member, text_of
from code_commit.llm.vendor import end_of
from code_commit.llm.waits import asked_wait
from code_commit.llm.words import is_error, members_with_words, unwrapped

_FINAL = """
    completed incomplete failed cancelled canceled expired budget_exceeded requires_action requires_continuation
"""
_FINAL_STATES = frozenset(_FINAL.split())


def run_job(call: Call, path: str) -> Reply:
    """Create a job at the path and return its final reply. Raises PassingFailure, and LLMError at the deadline."""
    with call.start(path) as opened:
        reply = _with_job(opened.read())
    call.check(reply, is_job)
    if _is_final(reply):
        return reply
    if not is_job(reply.body):
        raise call.broken("no status", reply)
    job_id = text_of(reply.body, "id")
    if not re.fullmatch(r"[\x21-\x7e]{1,512}", job_id) or set(job_id) == {"."}:
        raise call.garbage(reply)
    job_path = _path_of(path, job_id)
    with _cancelled_by_interrupts(call, job_path):
        call.listener.job_created(job_id)
    return _follow(call, job_path, reply)


def fetch_job(call: Call, path: str, job_id: str) -> Reply:
    """Return the final reply of an earlier call's job. Raises LLMError at the deadline, or if the job is unknown."""
    job_path = _path_of(path, job_id)
    call.connection.is_proven = True  # by the job
    return _follow(call, job_path, _fetch(call, job_path))


def failure_of(call: Call, reply: Reply, errors: Iterable[Any]) -> RefusedRequestError | PassingFailure:
    """Return what a job without an answer comes to. It is made again only if it failed, for a reason that can pass."""
    state, errors = text_of(reply.body, "status"), [error for error in errors if error]
    errors = errors or members_with_words(reply.body)
    failure = call.refusal(reply, f"the job ended as '{state}' at {call.endpoint.host}", errors)
    if isinstance(failure, PassingFailure) and not (state == "failed" and errors):
        return RefusedRequestError(failure.reason, "to send it again: code-commit resume", "refused", reply)
    return failure


def _path_of(path: str, job_id: str) -> str:
    return f"{path}/{quote(job_id, safe='')}"


def _is_final(reply: Reply) -> bool:
    """Tell whether a job has ended. An unknown state counts as unfinished."""
    return text_of(reply.body, "status") in _FINAL_STATES


def _follow(call: Call, job_path: str, reply: Reply) -> Reply:
    pause = call.timing.first_poll
    with _cancelled_by_interrupts(call, job_path):
        while not _is_final(reply):
            call.listener.progressed(text_of(reply.body, "status") or "waiting")
            asked = {"retry-after-ms": reply.headers.get("openai-poll-after-ms", ""), **reply.headers}
            wait = asked_wait(asked, None, "", call.timing.wall_clock())
            _pause(call, min(wait or pause, call.timing.longest_poll))
            pause = min(pause * call.timing.poll_growth, call.timing.longest_poll)
            reply = _fetch(call, job_path)
    return reply


@contextmanager
def _cancelled_by_interrupts(call: Call, job_path: str) -> Iterator[None]:
    """Cancel the job if the user or the time limit ends the block; after any other failure a later call fetches it."""
    try:
        yield
    except BaseException as error:
        if not isinstance(error, CodeCommitError) or (isinstance(error, LLMError) and error.kind == "timeout"):
            call.connection.deadline = call.timing.now() + call.timing.cancel
            with suppress(LLMError, PassingFailure):
                call.connection.reconnect()
                call.connection.send("POST", f"{job_path}/cancel", RequestBody(), call.timing.cancel)
        raise


def _fetch(call: Call, job_path: str) -> Reply:
    """Return the state of the job. Polling is free, so any other reply, such as a web page, is retried."""

    def ask() -> Reply:
        reply = _with_job(call.connection.send("GET", job_path, None, call.timing.read))
        if reply.status == 404:
            raise PassingFailure(f"{call.endpoint.host} does not find the job", "missing", reply=reply)
        try:
            call.check(reply, is_job)
        except RefusedRequestError as refusal:
            if refusal.kind == "refused" and reply.status >= 400:  # not of the request, since that has made the job
                raise RefusedRequestError(refusal.said, call.way_without_jobs, "refused", reply) from None
            raise
        return reply

    return call.retry(ask, longest_wait=call.timing.longest_poll)


def _with_job(reply: Reply) -> Reply:
    """Return a reply with the job alone, as the API writes it: out of a list, or the last one of a stream's events.

    A job that has what only an answer has, and no state or one of another API, has ended.
    """
    body = unwrapped(reply.body)
    if isinstance(body, str) and begins_stream(body[:LONGEST_BEGIN].encode()):
        body = _last_job([json_or_text(data) for _, data in read_events([body.encode()])]) or body
    is_answer = any(list_of(body, name) for name in ("output", "steps"))
    if state := text_of(body, "status").lower() or ("completed" if is_answer else ""):
        if is_answer and state not in _FINAL_STATES:
            state = {"complete": "completed", "cut off": "incomplete"}.get(end_of(state), state)
        body = body | {"status": state}
    return reply._replace(body=body)


def _last_job(events: list[Any]) -> dict[str, Any]:
    """Return the last job of a stream, {} without one. If it lacks an answer, that stands in the events before it.

    An error ends a job that has not ended, and is returned in its place.
    """
    parts = (part for event in events for part in (event, member(event, "response")))
    jobs: list[dict[str, Any]] = [part for part in parts if is_job(part)]
    items = [member(event, "item") for event in events if text_of(event, "type") == "response.output_item.done"]
    errors: list[dict[str, Any]] = [event for event in events if is_error(event)]
    if errors and not (jobs and text_of(jobs[-1], "status").lower() in _FINAL_STATES):
        return errors[-1]
    if jobs and items and not list_of(jobs[-1], "output"):
        return jobs[-1] | {"output": items}
    return jobs[-1] if jobs else {}


def is_job(body: Any) -> bool:
    """Tell whether a reply has a job's state. A failed job may have an `error` member too."""
    state = text_of(body, "status")
    return state in _FINAL_STATES or bool(state and text_of(body, "id"))


def _pause(call: Call, seconds: float) -> None:
    remaining = call.connection.remaining
    if seconds < remaining:
        call.timing.sleep(seconds)
        return
    call.timing.sleep(max(remaining, 0.0))
    limit = call.connection.limit
    message = f"{call.endpoint.host} has not finished the answer within {limit}: its job is canceled"
    raise LLMError(message, "timeout")
