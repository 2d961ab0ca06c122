"""Servers on this machine: their windows, and that they are found."""

import json
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from fake_server import FakeServer
from measure import least

from code_commit.llm.endpoint import Endpoint
from code_commit.llm.local import find_server, loaded_window, with_window
from code_commit.llm.models import longest_prompt
from code_commit.llm.vendor import LlmConfig, ModelChoice
from code_commit.settings import Settings

MODEL = "qwen2.5-coder:7b"
OTHER = {"id": "other", "max_model_len": 1}
TOLD = {
    # what a server tells of itself, the window
    "llama.cpp": ({"/props": {"default_generation_settings": {"n_ctx": 16_384}}}, 16_384),
    "vLLM": ({"/v1/models": {"data": [OTHER, {"id": MODEL, "max_model_len": 32_768}]}}, 32_768),
    "LM Studio": (
        {"/v1/models": {"data": [{"id": MODEL, "loaded_context_length": 8_192, "max_context_length": 131_072}]}},
        8_192,
    ),
    "Ollama, of the Modelfile": (
        {
            "/v1/models": {"data": [{"id": MODEL}]},
            "/api/show": {"parameters": "stop    x\nnum_ctx    12000", "model_info": {"qwen2.context_length": 32_768}},
        },
        12_000,
    ),
    "Ollama, of the loaded model": (
        {
            "/api/show": {"model_info": {"qwen2.context_length": 32_768}},
            "/api/ps": {"models": [{"model": "other", "context_length": 1}, {"model": MODEL, "context_length": 4_096}]},
        },
        4_096,
    ),
    "Ollama, of the model": ({"/api/show": {"model_info": {"qwen2.context_length": 32_768}}}, 32_768),
    "nothing": ({}, None),
    "nonsense": (
        {"/props": ["n_ctx"], "/v1/models": {"data": [MODEL, {"id": MODEL, "max_model_len": -1}]}, "/api/show": "x"},
        None,
    ),
}


def config(url: str, provider: str = "chat", **settings) -> LlmConfig:
    return LlmConfig(ModelChoice(provider, MODEL), None, Settings(base_url=url, **settings))


@pytest.mark.parametrize(("facts", "window"), TOLD.values(), ids=TOLD)
def test_a_server_is_asked_for_its_window(facts, window):
    with FakeServer(facts=facts) as server:
        llm = with_window(config(f"{server.url}/v1"))
    assert llm.settings.context_window == window
    assert llm.tells_progress == ("default_generation_settings" in str(facts))
    assert not server.requests
    if window:
        assert longest_prompt(llm) == window * 3 // 4


def test_a_prompt_that_the_server_would_cut_is_refused_before_it_is_sent(project_folder, run_code_commit):
    small, large = ({"/props": {"default_generation_settings": {"n_ctx": tokens}}} for tokens in (1_000, 100_000))
    with FakeServer(["^^^ok.txt\nok\n^^^end\n"], facts=small) as server:
        options = ["--model", "chat:m", "--base-url", f"{server.url}/v1"]
        for command in ("check", "run"):
            refused = run_code_commit(project_folder, command, *options)
            said = refused.stdout + refused.stderr
            told = "750 fit, with 250 reserved" in said and "start the server with a larger window" in said
            assert (refused.returncode, told) == (2, True), said
        assert not server.requests
        server.facts = large
        assert run_code_commit(project_folder, "rollup", "--fit", *options).returncode == 0
        assert run_code_commit(project_folder, *options).returncode == 0
        assert server.requests[0].body["return_progress"] is True


def test_a_setting_is_not_asked_for_and_progress_is():
    with FakeServer(facts=TOLD["llama.cpp"][0]) as server:
        llm = with_window(config(f"{server.url}/v1", context_window=9_000))
    assert (llm.settings.context_window, llm.tells_progress) == (9_000, True)
    assert server.questions == ["/props"]


def test_nobody_else_is_asked(monkeypatch):
    with FakeServer(facts=TOLD["llama.cpp"][0]) as server:
        for other in (config(f"{server.url}/v1", "openai"), config("https://127.0.0.1:9/v1")):
            assert with_window(other) == other
        assert not server.questions
    asked: list[object] = []
    monkeypatch.setattr("socket.create_connection", lambda *address, **_: asked.append(address))
    assert with_window(other := config("http://192.0.2.1/v1", allow_http=True)) == other
    assert not asked
    monkeypatch.undo()
    assert with_window(other := config(f"{server.url}/v1")) == other


@pytest.mark.sweep
def test_a_silent_server_is_left_after_some_seconds():
    with socket.create_server(("127.0.0.1", 0)) as silent:
        start = time.monotonic()
        llm = config(f"http://127.0.0.1:{silent.getsockname()[1]}/v1")
        assert with_window(llm) == llm
        assert time.monotonic() - start < 6


def test_a_server_whose_reply_never_ends_is_left(monkeypatch):
    monkeypatch.setattr("code_commit.llm.local._PATIENCE", 0.3)
    left = threading.Event()

    def drip(server: socket.socket) -> None:
        line, _ = server.accept()
        with line, suppress(OSError):
            line.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
            for _ in range(500):
                line.sendall(b"1\r\n \r\n")
                time.sleep(0.02)
            return
        left.set()

    with socket.create_server(("127.0.0.1", 0)) as server:
        thread = threading.Thread(target=drip, args=(server,))
        thread.start()
        llm = config(f"http://127.0.0.1:{server.getsockname()[1]}/v1")
        assert with_window(llm) == llm
        thread.join()
    assert left.is_set()


def test_a_path_that_is_not_ascii_is_asked_as_a_run_asks_it_and_an_odd_one_ends_nothing():
    with FakeServer() as server:
        for path in ("\u00fc%2F", "\udcff"):
            llm = config(f"{server.url}/{path}/v1")
            assert with_window(llm) == llm
    assert {request.path for request in server.requests} >= {"/%C3%BC%2F/props", "/%C3%BC%2F/v1/models"}


@pytest.mark.slow
def test_the_first_server_that_has_a_model_is_named_within_a_second():
    models = {"/v1/models": {"data": [{"id": "nomic-embed"}, {"id": 'a "model"'}, {"id": "b"}]}}
    with (
        FakeServer() as empty,
        socket.create_server(("127.0.0.1", 0)) as silent,
        FakeServer(facts=models) as server,
    ):
        ports = (empty.port, silent.getsockname()[1], server.port)
        said: list[str] = []

        def seconds() -> float:
            begun = time.monotonic()
            said[:] = find_server(ports).splitlines()
            return time.monotonic() - begun

        assert least(seconds, 1.5) < 1.5
    assert said[1:] == [r'model = "chat:a \"model\""', f'base_url = "http://127.0.0.1:{server.port}/v1"']
    assert find_server((server.port,)) == ""


@pytest.mark.parametrize(("asked", "window"), [("qwen3", 4_096), ("qwen3:8b", 8_192), ("qwen3:4b", 0)])
def test_the_loaded_window_is_that_of_the_model_with_its_tag(asked, window):
    loaded = [{"name": "qwen3:latest", "context_length": 4_096}, {"model": "qwen3:8b", "context_length": "8192"}]
    with FakeServer(facts={"/api/ps": {"models": loaded}}) as server:
        endpoint = Endpoint(asked, f"{server.url}/v1", Settings(), Path(), "", str)
        assert loaded_window(endpoint, {}) == window


@contextmanager
def server_that_says(status: int, body: str) -> Iterator[str]:
    """Give the address of a server that answers every GET so."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status)
            self.end_headers()
            self.wfile.write(body.encode())

        def do_POST(self) -> None:
            self.close_connection = True  # without a reply

        def log_message(self, *_: object) -> None: ...

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/v1"
        server.shutdown()


ASKED = "answers the request for its models with"
DOUBTS = {
    "a key is wanted": (401, json.dumps({"error": {"message": "Invalid API Key"}}), f"{ASKED} 401 (Invalid API Key): check its key"),
    "a page": (200, "<html><title>Grafana</title></html>", f"{ASKED} something else (Grafana): check that base_url"),
    "nothing there": (404, "", f"{ASKED} 404: check that base_url"),
    "JSON of another kind": (200, "{}", f"{ASKED} something else: check that base_url"),
    "other models": (200, json.dumps({"data": [{"id": "a"}, {"id": "b"}]}), f"does not list the model {MODEL}: it has a, b"),
    "its model": (200, json.dumps({"data": [{"id": "a"}, {"id": MODEL}]}), ""),
}  # fmt: skip


@pytest.mark.parametrize(("status", "body", "told"), DOUBTS.values(), ids=DOUBTS)
def test_check_says_what_the_server_answered(
    *, status: int, body: str, told: str, project_folder: Path, run_code_commit
):
    with server_that_says(status, body) as url:
        done = run_code_commit(project_folder, "check", "--model", f"chat:{MODEL}", "--base-url", url)
    said = " ".join(done.stdout.split())
    assert done.returncode == 0, said
    assert (told in said, "Ready: run" in said) == (True, not told), said


def test_a_server_that_hangs_up_need_not_be_started():
    """One that speaks https does so, where it is asked by http."""
    warnings: list[str] = []
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def hang_up() -> None:
            with suppress(OSError):
                while True:
                    listener.accept()[0].close()

        threading.Thread(target=hang_up, daemon=True).start()
        with_window(config(f"http://127.0.0.1:{listener.getsockname()[1]}/v1"), warnings.append)
        listener.shutdown(socket.SHUT_RDWR)
    assert [warning.partition("): ")[2] for warning in warnings] == ["check that base_url is that of an LLM server"]


def test_llama_cpp_answers_for_any_model():
    facts = {"/props": {"default_generation_settings": {"n_ctx": 8}}, "/v1/models": {"data": [{"id": "file.gguf"}]}}
    warnings: list[str] = []
    with FakeServer(facts=facts) as server:
        with_window(config(f"{server.url}/v1"), warnings.append)
    assert not warnings
