"""A real HTTP server that answers like the vendors' LLM APIs, with faults on demand.

    with FakeServer(answers=["^^^a\\nx\\n^^^end\\n"]) as server:
        run_code_commit(folder, "--model", "openai:gpt-6.2-sol", "--base-url", server.base_url("openai"))
        server.requests[0].body

From a shell: `python tests/llm/fake_server.py --port 0 --answers FOLDER` prints its URL and answers with the
FOLDER's 1-response.txt, 2-response.txt ... until it is killed.
"""

import argparse
import contextlib
import json
import re
import socket
import struct
import sys
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Self

import fake_apis as apis
from fake_apis import Answer

QUICK_POLL = {"openai-poll-after-ms": "10", "retry-after-ms": "10"}


@dataclass
class Fault:
    """One thing that goes wrong, at the next request of its stage; `times` says how often.

    stage: `call` (the request that asks for the answer), `poll`, `cancel`.
    kind, in place of a reply: status (with `status`, `headers`, `body`) cut open html drop reset garbage silence
        dribble_headers; the body of `cut` ends before its length, silence follows that of `open`
    kind, in the middle of it: drop_mid_body reset_after_headers stall dribble wrong_length short_length bad_json
    kind, in a stream: split duplicate error_event early_end
    pause: the rest of a stream, or all of a job's state, comes when `resumed` is set
    """

    kind: str
    stage: str = "call"
    times: int = 1
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    body: Any = None


@dataclass(frozen=True)
class Request:
    method: str
    path: str
    headers: Mapping[str, str]
    body: Any


@dataclass
class Job:
    answer: Answer
    model: str
    polls: int = 0


class FakeServer:
    """Runs in a thread of its own. `requests` holds every request in the order of arrival."""

    def __init__(
        self,
        answers: Iterable[str | Answer] = (),
        faults: Sequence[Fault] = (),
        *,
        port: int = 0,
        polls: int = 1,
        poll_headers: Mapping[str, str] = QUICK_POLL,
        tokens: int | None = None,
        facts: Mapping[str, Any] | None = None,
    ) -> None:
        """`tokens` is what it counts a prompt as; None, and it has no such path. `facts` are what it tells of itself."""
        self.facts = facts or {}
        self.questions: list[str] = []
        self.answers = [Answer(answer) if isinstance(answer, str) else answer for answer in answers]
        self.faults = list(faults)
        self.requests: list[Request] = []
        self.jobs: dict[str, Job] = {}
        self.cancelled: list[str] = []
        self.delivered = 0
        self.polls = polls
        self.tokens = tokens
        self.poll_headers = poll_headers
        self.closing = threading.Event()
        self.resumed = threading.Event()
        self.lock = threading.Lock()
        self._server = _Server(("127.0.0.1", port), _Handler)
        self._server.fake = self
        self.port = self._server.server_address[1]
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.005}, daemon=True)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def base_url(self, provider: str) -> str:
        """This server's address, as the vendor's SDK takes it."""
        return self.url + ("/v1" if provider in ("openai", "chat") else "")

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.closing.set()
        self.resumed.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def next_fault(self, stage: str) -> Fault | None:
        with self.lock:
            fault = next((fault for fault in self.faults if fault.stage == stage and fault.times > 0), None)
            if fault is not None:
                fault.times -= 1
            return fault

    def next_answer(self) -> Answer | None:
        return self.answers[self.delivered] if self.delivered < len(self.answers) else None


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    fake: FakeServer

    def handle_error(self, *_: object) -> None:
        """A client that goes away is what many tests are about."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: _Server

    def log_message(self, *_: object) -> None:
        """Silent."""

    def do_GET(self) -> None:
        self._serve(None)

    def do_POST(self) -> None:
        data = self.rfile.read(int(self.headers.get("content-length", 0)))
        self._serve(json.loads(data) if data else None)

    def _serve(self, body: Any) -> None:
        fake = self.server.fake
        path = self.path.partition("?")[0]
        if path in ABOUT:
            fake.questions.append(self.path)
            self._send_json(200 if path in fake.facts else 404, fake.facts.get(path, {}))
            return
        fake.requests.append(Request(self.command, self.path, {k.lower(): v for k, v in self.headers.items()}, body))
        if re.search(COUNTERS, path):
            self._count_tokens()
            return
        stage = (
            "cancel" if self.path.partition("?")[0].endswith("/cancel") else "poll" if self.command == "GET" else "call"
        )
        fault = fake.next_fault(stage)
        if fault is not None and self._fails_at_once(fault):
            return
        route = next((route for pattern, route in ROUTES if re.fullmatch(pattern, self.path.partition("?")[0])), None)
        if route is None:
            self._send_json(404, {"error": {"message": f"no such path: {self.path}", "code": "not_found"}})
            return
        route(self, body, fault)

    def _fails_at_once(self, fault: Fault) -> bool:
        if fault.kind == "status":
            self._send_json(fault.status, fault.body, fault.headers)
        elif fault.kind == "cut":
            self._head(fault.status, {"content-length": str(len(fault.body) + 1)})
            self.wfile.write(fault.body)
            self._end()
        elif fault.kind == "open":
            self._head(fault.status, {"content-type": "text/event-stream"})
            self.wfile.write(fault.body)
            self._wait_for_the_end()
        elif fault.kind == "html":
            page = b"<html><head><title>Bad gateway</title></head><body>Oops</body></html>"
            self._send(fault.status, {"content-type": "text/html"}, page)
        elif fault.kind == "drop":
            self._end()
        elif fault.kind == "reset":
            self._reset()
        elif fault.kind == "garbage":
            self.wfile.write(b"\x00\x01\xff this is not HTTP\r\n\r\n")
            self._end()
        elif fault.kind == "dribble_headers":
            self._dribble(b"HTTP/1.1 200 OK\r\n" + b"x-padding: " + b"x" * 100_000)
        elif fault.kind == "silence":
            self._wait_for_the_end()
        else:
            return False
        return True

    def _count_tokens(self) -> None:
        tokens = self.server.fake.tokens
        error = {"error": {"message": f"no such path: {self.path}", "code": "not_found"}}
        member = "totalTokens" if self.path.endswith(":countTokens") else "input_tokens"
        self._send_json(404 if tokens is None else 200, error if tokens is None else {member: tokens})

    def _create_job(self, body: Any, fault: Fault | None) -> None:
        fake = self.server.fake
        answer = fake.next_answer()
        if answer is None:
            self._send_json(400, {"error": {"message": "the test has no answer left", "type": "invalid_request_error"}})
            return
        with fake.lock:
            job_id = f"resp_{len(fake.jobs) + 1}"
            fake.jobs[job_id] = Job(answer, body["model"])
        self._send_job(job_id, "queued", fault)

    def _poll_job(self, _: Any, fault: Fault | None) -> None:
        fake = self.server.fake
        job_id = self.path.partition("?")[0].rpartition("/")[2]
        job = fake.jobs.get(job_id)
        if job is None or (job.answer.ending == "expires" and job.polls >= 1):
            self._send_json(404, {"error": {"message": f"no job {job_id}", "code": "not_found"}})
            return
        job.polls += 1
        if job.answer.ending == "stays_queued":
            self._send_job(job_id, "queued", fault)
        elif job.polls <= fake.polls or job.answer.ending == "expires":
            self._send_job(job_id, "in_progress", fault)
        else:
            statuses = apis.OPENAI_STATUS if "/responses" in self.path else apis.GEMINI_STATUS
            if fault is None:
                fake.delivered += 1
            self._send_job(job_id, statuses.get(job.answer.ending, "completed"), fault)

    def _cancel_job(self, _: Any, fault: Fault | None) -> None:
        fake = self.server.fake
        job_id = self.path.split("/")[-2]
        fake.cancelled.append(job_id)
        self._send_job(job_id, "cancelled", fault)

    def _send_job(self, job_id: str, status: str, fault: Fault | None) -> None:
        fake = self.server.fake
        job = fake.jobs[job_id]
        make = apis.openai_response if "/responses" in self.path else apis.interaction
        headers = dict(fake.poll_headers) if status in ("queued", "in_progress") else {}
        if "/responses" in self.path:
            headers["x-request-id"] = f"req_{len(fake.requests)}"
        data = json.dumps(make(job_id, job.model, status, job.answer)).encode()
        self._deliver(headers | {"content-type": "application/json"}, [data], fault)

    def _send_message(self, body: Any, fault: Fault | None) -> None:
        error = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}, "request_id": "req_1"}
        self._send_stream(
            lambda answer: apis.named_events(apis.messages_events(body["model"], answer)),
            b"event: error\ndata: " + json.dumps(error).encode() + b"\n\n",
            fault,
        )

    def _send_chat(self, body: Any, fault: Fault | None) -> None:
        fake = self.server.fake
        if fault is None and not body.get("stream") and (answer := fake.next_answer()) is not None:
            fake.delivered += 1
            self._send_json(200, apis.chat_completion(body["model"], answer))
            return
        error = {"error": {"code": 502, "message": "The upstream is gone."}}
        self._send_stream(
            lambda answer: apis.data_events(apis.chat_chunks(body["model"], answer), done=True),
            b"data: " + json.dumps(error).encode() + b"\n\n",
            fault,
        )

    def _send_stream(self, make_events: Any, error_event: bytes, fault: Fault | None) -> None:
        fake = self.server.fake
        answer = fake.next_answer()
        if answer is None:
            self._send_json(400, {"error": {"message": "the test has no answer left", "type": "invalid_request_error"}})
            return
        events = make_events(answer)
        if fault is None or fault.kind in ("split", "duplicate", "pause"):
            fake.delivered += 1
        if fault is not None and fault.kind == "error_event":
            events = [*events[: len(events) // 2], error_event]
        if fault is not None and fault.kind == "early_end":
            events = events[: len(events) // 2]
        if fault is not None and fault.kind == "bad_json":
            events = [*events[:3], b'data: {"choices": [{"del\n\n', *events[3:]]
        if fault is not None and fault.kind == "duplicate":
            events = [events[0], *events, *events[-3:]]
        headers = {"content-type": "text/event-stream", "request-id": "req_s", "x-request-id": "req_s"}
        self._deliver(headers, events, fault)

    def _deliver(self, headers: Mapping[str, str], pieces: list[bytes], fault: Fault | None) -> None:
        whole = b"".join(pieces)
        kind = fault.kind if fault else ""
        if kind == "bad_json" and len(pieces) == 1:
            whole = whole[: len(whole) // 2]
        if kind == "split":
            pieces = [whole[start : start + 1] for start in range(len(whole))]
        elif kind in ("wrong_length", "drop_mid_body", "reset_after_headers", "stall", "dribble"):
            self._head(200, dict(headers) | {"content-length": str(len(whole) + 10)})
            self._fail_in_body(kind, whole)
            return
        if kind == "short_length":
            self._head(200, dict(headers) | {"content-length": str(len(whole) // 2)})
            self.wfile.write(whole)
            self._end()
        elif headers["content-type"] == "application/json":
            if kind == "pause":
                self.server.fake.resumed.wait()
            self._send(200, headers, whole)
        else:
            self._head(200, dict(headers) | {"transfer-encoding": "chunked"})
            for number, piece in enumerate(pieces):
                if kind == "pause" and number == len(pieces) // 2:
                    self.server.fake.resumed.wait()
                self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
            self.wfile.write(b"0\r\n\r\n")

    def _fail_in_body(self, kind: str, whole: bytes) -> None:
        if kind == "reset_after_headers":
            self._reset()
        elif kind == "wrong_length":
            self.wfile.write(whole)
            self._end()
        elif kind == "dribble":
            self._dribble(whole)
        else:
            self.wfile.write(whole[: len(whole) // 2])
            if kind == "stall":
                self._wait_for_the_end()
            self._end()

    def _dribble(self, data: bytes) -> None:
        for start in range(len(data)):
            self.wfile.write(data[start : start + 1])
            if self.server.fake.closing.wait(0.02):
                break
        self._end()

    def _wait_for_the_end(self) -> None:
        """Stay silent until the client goes away or the test is over."""
        self.connection.settimeout(0.05)
        while not self.server.fake.closing.is_set():
            with contextlib.suppress(TimeoutError):
                if not self.connection.recv(1):
                    break
        self._end()

    def _send_json(self, status: int, body: Any, headers: Mapping[str, str] | None = None) -> None:
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        self._send(status, {"content-type": "application/json"} | dict(headers or {}), data)

    def _send(self, status: int, headers: Mapping[str, str], data: bytes) -> None:
        self._head(status, dict(headers) | {"content-length": str(len(data))})
        self.wfile.write(data)

    def _head(self, status: int, headers: Mapping[str, str]) -> None:
        self.send_response_only(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.flush()

    def _end(self) -> None:
        self.close_connection = True

    def _reset(self) -> None:
        self.wfile.flush()
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.close_connection = True
        self.connection.close()


ABOUT = ("/props", "/v1/models", "/api/show", "/api/ps")  # what servers tell of themselves
COUNTERS = r"/responses/input_tokens$|/messages/count_tokens$|:countTokens$"

ROUTES = (
    (r".*/(responses|interactions)", _Handler._create_job),
    (r".*/(responses|interactions)/[^/]+", _Handler._poll_job),
    (r".*/(responses|interactions)/[^/]+/cancel", _Handler._cancel_job),
    (r".*/v1/messages", _Handler._send_message),
    (r".*/chat/completions", _Handler._send_chat),
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--answers", type=Path, required=True, help="a folder of 1-response.txt, 2-response.txt ...")
    arguments = parser.parse_args()
    files = sorted(arguments.answers.glob("*-response.txt"), key=lambda path: int(path.name.partition("-")[0]))
    with FakeServer([path.read_text("utf-8") for path in files], port=arguments.port) as server:
        sys.stdout.write(server.url + "\n")
        sys.stdout.flush()
        while True:
            time.sleep(3600)


if __name__ == "__main__":
    main()
