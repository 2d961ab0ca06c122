"""A proxy on 127.0.0.1 in front of a server of Chat Completions: it sets the sampling and records every answer."""

import json
import re
import tempfile
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

import httpx

CALL_TIMEOUT = 600.0
"""Seconds without a byte from the server."""
_SECONDS = re.compile(r"(?<![\d.])\d+\.\d+(?= ?s\b)")
_TEMPORARY = re.compile(rf"{re.escape(tempfile.gettempdir())}/[\w.-]+")
_SAME_SECONDS, _SAME_FOLDER = "0.2", "/tmp/tmp12345678"


@dataclass(frozen=True, slots=True)
class Call:
    """One answer: its tokens, of which `cached` of the input were not read anew, and its text."""

    input: int
    cached: int
    output: int
    seconds: float
    finish: str
    text: str


class Proxy:
    """Answers one run after the other. `lock` is held while an answer is under way; `failure` says why one is missing.

    `before_call` is called before each call of a run but the first. A run that has had its calls gets an error.
    `model` is what the server calls its model; httpx.HTTPError is raised where no server answers.
    """

    def __init__(self, server: str) -> None:
        self.server = server.rstrip("/").removesuffix("/v1")
        self.model = self._model_name()
        self.lock = threading.Lock()
        self.start_run(0, {}, lambda: None)
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (_Handler,), {"proxy": self}))
        self.url = f"http://127.0.0.1:{self._http.server_address[1]}/v1"

    def __enter__(self) -> Self:
        threading.Thread(target=self._http.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._http.shutdown()
        self._http.server_close()

    def start_run(self, most_calls: int, sampling: Mapping[str, Any], before_call: Callable[[], object]) -> None:
        """Forget the last run. Every request of this one gets the members of `sampling`."""
        with self.lock:
            self.most_calls, self.sampling, self.before_call = most_calls, sampling, before_call
            self.calls: list[Call] = []
            self.failure = ""

    def _model_name(self) -> str:
        reply = httpx.get(f"{self.server}/v1/models", timeout=10)
        models = reply.json().get("data") if reply.is_success else None
        return str(models[0]["id"]) if models else "model"


class _Handler(BaseHTTPRequestHandler):
    proxy: Proxy

    def log_message(self, *_: object) -> None:
        """Silent."""

    def do_GET(self) -> None:
        """Pass on what the server tells of itself."""
        try:
            reply = httpx.get(f"{self.proxy.server}{self.path}", timeout=10)
        except httpx.HTTPError:
            self.send_error(502)
            return
        self._head(reply.status_code, reply.headers.get("content-type", "application/json"))
        self.wfile.write(reply.content)

    def do_POST(self) -> None:
        proxy = self.proxy
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        if not self.path.endswith("/chat/completions"):
            self.send_error(404)
            return
        with proxy.lock:
            if len(proxy.calls) >= proxy.most_calls:
                self._head(400, "application/json")
                self.wfile.write(b'{"error": {"message": "this run has had its calls"}}')
                return
            if proxy.calls:
                proxy.before_call()
            try:
                self._pass_on(proxy, body)
            except (httpx.HTTPError, OSError, ValueError, LookupError) as error:
                proxy.failure = f"{type(error).__name__}: {error}"

    def _pass_on(self, proxy: Proxy, body: dict[str, Any]) -> None:
        body.pop("max_completion_tokens", None)
        body |= proxy.sampling | {"messages": without_accidents(body["messages"])}
        if body.get("stream"):
            body["stream_options"] = {"include_usage": True}
        began, received = time.monotonic(), b""
        address = f"{proxy.server}/v1/chat/completions"
        with httpx.stream("POST", address, json=body, timeout=httpx.Timeout(CALL_TIMEOUT, connect=10)) as reply:
            self._head(reply.status_code, reply.headers.get("content-type", "application/json"))
            for piece in reply.iter_bytes():
                self.wfile.write(piece)
                received += piece
        if reply.is_success:
            proxy.calls.append(read_call(received, time.monotonic() - began))
        else:
            proxy.failure = f"HTTP {reply.status_code}: {received[:500].decode(errors='replace')}"

    def _head(self, status: int, content_type: str) -> None:
        self.send_response(status)
        self.send_header("content-type", content_type)
        self.end_headers()


def without_accidents(messages: Any) -> Any:
    """Return messages with the same times and temporary folders in each run: at temperature 0 these turn answers."""
    text = _TEMPORARY.sub(_SAME_FOLDER, _SECONDS.sub(_SAME_SECONDS, json.dumps(messages)))
    return json.loads(text)


def read_call(reply: bytes, seconds: float) -> Call:
    """Return the answer that a reply holds, streamed or not."""
    lines = reply.decode(errors="replace").split("\n")
    streamed = [line.removeprefix("data: ") for line in lines if line.startswith("data: {")]
    chunks = [json.loads(text) for text in streamed or [reply]]
    choices = [choice for chunk in chunks for choice in chunk.get("choices", [])]
    text = "".join((choice.get("delta") or choice.get("message") or {}).get("content") or "" for choice in choices)
    usage = next((chunk["usage"] for chunk in reversed(chunks) if chunk.get("usage")), {})
    cached = (usage.get("prompt_tokens_details") or {}).get("cached_tokens") or 0
    finish = next((choice["finish_reason"] for choice in reversed(choices) if choice.get("finish_reason")), "")
    tokens = usage.get("prompt_tokens", 0), cached, usage.get("completion_tokens", 0)
    return Call(*tokens, round(seconds, 2), finish, text)
