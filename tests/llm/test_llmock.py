"""llmock, a server that nobody here wrote: the same answers, the same faults."""

import contextlib
import json
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest
from asking import PROMPT, WAYS, Clock, Listener, open_way

from code_commit.errors import LLMError

PATHS = {"responses": "/v1", "chat": "/v1", "messages": "/anthropic"}
TEXT = "^^^a.txt\nhello\n^^^end\n"
SAYS = {"type": "reply", "text": TEXT}


@pytest.fixture(scope="module")
def llmock_url(tmp_path_factory):
    """A running llmock."""
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    command = [str(Path(sys.executable).with_name("llmock")), "serve", "--port", str(port), "--log-level", "error"]
    folder = tmp_path_factory.mktemp("llmock")
    with (folder / "log").open("wb") as log, subprocess.Popen(command, stdout=log, stderr=log, cwd=folder) as process:
        try:
            url = f"http://127.0.0.1:{port}"
            wait_for(url + "/_llmock/requests")
            yield url
        finally:
            process.kill()


def wait_for(url):
    end = time.monotonic() + 40
    while time.monotonic() < end:
        with contextlib.suppress(OSError), urllib.request.urlopen(url, timeout=5):
            return
        time.sleep(0.1)
    pytest.fail("llmock does not start")


def ask_llmock(url, name, *behaviors):
    for path, body in (("reset", {}), ("scenario", {"behaviors": behaviors})):
        request = urllib.request.Request(
            f"{url}/_llmock/{path}", json.dumps(body).encode(), {"content-type": "application/json"}
        )
        urllib.request.urlopen(request, timeout=10).close()
    listener = Listener()
    with open_way(WAYS[name], url + PATHS[name], Clock().timing(read=20)) as llm:
        return llm.complete(PROMPT, listener), listener


@pytest.mark.parametrize("name", PATHS)
def test_an_answer(llmock_url, name):
    response, listener = ask_llmock(llmock_url, name, SAYS)
    assert response.complete_text() == TEXT
    assert not listener.retries


@pytest.mark.parametrize("name", PATHS)
@pytest.mark.parametrize("status", [429, 500, 503, 529])
def test_a_failure_that_passes(llmock_url, name, status):
    fail = {"type": "fail", "status": status, "times": 1, "retry_after": 1}
    response, listener = ask_llmock(llmock_url, name, fail, SAYS)
    assert response.complete_text() == TEXT
    assert [delay for _, delay in listener.retries] == [1.0]


@pytest.mark.parametrize("name", PATHS)
@pytest.mark.parametrize(("status", "words"), [(400, "not accepted"), (401, "is refused"), (403, "may not use")])
def test_a_failure_that_lasts(llmock_url, name, status, words):
    with pytest.raises(LLMError, match=words):
        ask_llmock(llmock_url, name, {"type": "fail", "status": status, "times": None})


@pytest.mark.parametrize("name", ["chat", "messages"])
@pytest.mark.parametrize("kind", ["disconnect", "truncate", "malformed"])
def test_a_broken_stream(llmock_url, name, kind):
    fault = {"type": "stream_fault", "kind": kind, "after_chunks": 2, "times": 1}
    response, listener = ask_llmock(llmock_url, name, fault, SAYS)
    assert "imulated" in response.complete_text()
    assert len(listener.retries) == 1
