"""The wire: deadlines that hold against any server, proxies and authorities by the usual variables, nothing leaked."""

import contextlib
import gzip
import re
import socket
import threading
import time
from pathlib import Path

import pytest
from asking import KEY, PROMPT, WAYS, Clock, Listener, ask, open_way
from fake_server import FakeServer, Fault
from tls_server import tls_server

from code_commit.errors import LLMError, NotSetUpError
from code_commit.exchange import Prompt
from code_commit.llm.endpoint import Timing

CHAT = WAYS["chat"]
OPEN_FILES = Path("/proc/self/fd")


class Proxy:
    """A CONNECT proxy that leads every host to one local port. `asked` holds what it was asked, headers and all."""

    def __init__(self, port: int, answer: bytes = b"HTTP/1.1 200 Connection established\r\n\r\n") -> None:
        self.asked: list[bytes] = []
        self._target = port
        self._answer = answer
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._sockets = [self._listener]
        self.port = self._listener.getsockname()[1]
        self._threads = [threading.Thread(target=self._serve, daemon=True)]
        self._threads[0].start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for open_socket in self._sockets:
            with contextlib.suppress(OSError):
                open_socket.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for thread in self._threads:
            thread.join(5)

    def _serve(self):
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            head = b""
            while b"\r\n\r\n" not in head:
                head += client.recv(65536)
            self.asked.append(head)
            client.sendall(self._answer)
            if b" 200 " not in self._answer:
                client.close()
                continue
            target = socket.create_connection(("127.0.0.1", self._target))
            self._sockets += [client, target]
            for source, sink in ((client, target), (target, client)):
                thread = threading.Thread(target=self._pump, args=(source, sink), daemon=True)
                self._threads.append(thread)
                thread.start()

    @staticmethod
    def _pump(source, sink):
        with source, sink, contextlib.suppress(OSError):
            with contextlib.suppress(OSError):
                while data := source.recv(65536):
                    sink.sendall(data)
            sink.shutdown(socket.SHUT_RDWR)  # wakes the thread of the other direction


def test_https_to_a_server_that_speaks_http_is_an_error_at_once():
    listener = Listener()
    with FakeServer([]) as server, open_way(CHAT, f"https://127.0.0.1:{server.port}/v1", Clock().timing()) as llm:
        with pytest.raises(LLMError, match=rf"127\.0\.0\.1:{server.port} speaks http, not https: begin .* http://"):
            llm.complete(PROMPT, listener)
    assert not listener.retries


@contextlib.contextmanager
def answering(data):
    """Yield the port of a server that answers each connection with these bytes."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def answer_each() -> None:
            with contextlib.suppress(OSError):
                while True:
                    client, _ = server.accept()
                    client.recv(65536)
                    client.sendall(data)
                    client.close()

        thread = threading.Thread(target=answer_each, daemon=True)
        thread.start()
        yield server.getsockname()[1]
        server.shutdown(socket.SHUT_RDWR)
        thread.join(5)


def test_http_to_a_server_that_speaks_tls_is_an_error_at_once_and_not_paid_for():
    listener, alert = Listener(), b"\x15\x03\x01\x00\x02\x02\x46"
    with answering(alert) as port, open_way(CHAT, f"http://127.0.0.1:{port}/v1", Clock().timing()) as llm:
        with pytest.raises(
            LLMError, match=rf"127\.0\.0\.1:{port} seems to speak https, not http: begin the address with https://"
        ):
            llm.complete(PROMPT, listener)
        assert not llm._connection.has_sent, "nothing that may be paid for"
    assert not listener.retries


def test_http_to_a_server_that_closes_may_mean_https():
    listener = Listener()
    with answering(b"") as port, open_way(CHAT, f"http://127.0.0.1:{port}/v1", Clock().timing()) as llm:
        with pytest.raises(LLMError, match="if it speaks https, begin the address with https://; gave up after 5"):
            llm.complete(PROMPT, listener)
    assert len(listener.retries) == 5


def test_a_handshake_that_a_local_server_ends_is_given_up_like_a_refused_port():
    listener = Listener()
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]

        def close_each() -> None:
            with contextlib.suppress(OSError):
                while True:
                    client, _ = silent.accept()
                    client.recv(65536)
                    client.close()

        thread = threading.Thread(target=close_each, daemon=True)
        thread.start()
        with open_way(CHAT, f"https://127.0.0.1:{port}/v1", Clock().timing()) as llm:
            with pytest.raises(
                LLMError, match=r"closed the TLS connection: .* begin the address with http://.*4 retries"
            ):
                llm.complete(PROMPT, listener)
        silent.shutdown(socket.SHUT_RDWR)
        thread.join(5)
    assert len(listener.retries) == 4


def test_https_by_way_of_a_proxy_to_a_server_that_speaks_http(monkeypatch):
    with FakeServer([]) as server, Proxy(server.port) as proxy:
        monkeypatch.setenv("HTTPS_PROXY", f"http://127.0.0.1:{proxy.port}")
        with open_way(CHAT, "https://llm.test/v1", Clock().timing()) as llm:
            with pytest.raises(LLMError, match=r"llm\.test, or a proxy before it, speaks http, not https"):
                llm.complete(PROMPT, Listener())


class SocksProxy(Proxy):
    """A SOCKS5 proxy (RFC 1928) without authentication that leads every host to one local port."""

    def _serve(self):
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            client.recv(2 + client.recv(2, socket.MSG_PEEK)[1])
            client.sendall(b"\x05\x00")
            head = client.recv(4)
            host = client.recv(client.recv(1)[0]) if head[3] == 3 else client.recv(4)
            client.recv(2)
            self.asked.append(host)
            client.sendall(b"\x05\x00\x00\x01" + bytes(6))
            target = socket.create_connection(("127.0.0.1", self._target))
            self._sockets += [client, target]
            for source, sink in ((client, target), (target, client)):
                thread = threading.Thread(target=self._pump, args=(source, sink), daemon=True)
                self._threads.append(thread)
                thread.start()


@pytest.mark.parametrize("scheme", ["socks5h", "socks5", "socks"])
def test_a_socks_proxy_looks_up_the_host_and_sees_no_key(scheme, certificate, monkeypatch):
    pytest.importorskip("socksio")
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    with tls_server(certificate) as server, SocksProxy(server.port) as proxy:
        monkeypatch.setenv("ALL_PROXY", f"{scheme}://127.0.0.1:{proxy.port}")
        with open_way(CHAT, f"https://llm.test:{server.port}/v1", Clock().timing()) as llm:
            assert llm.complete(PROMPT, Listener()).text == "over TLS"
    assert proxy.asked == [b"llm.test"]


@pytest.mark.parametrize("variable", ["HTTPS_PROXY", "https_proxy", "ALL_PROXY"])
def test_a_proxy_sees_no_key(certificate, monkeypatch, variable):
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    with tls_server(certificate) as server, Proxy(server.port) as proxy:
        monkeypatch.setenv(variable, f"http://us%40er:pass@127.0.0.1:{proxy.port}")
        with open_way(CHAT, "https://llm.test/v1") as llm:
            assert llm.complete(PROMPT, Listener()).text == "over TLS"
    assert len(proxy.asked) == 1
    assert proxy.asked[0].startswith(b"CONNECT llm.test:443 HTTP/1.1")
    assert b"Proxy-Authorization: Basic dXNAZXI6cGFzcw==" in proxy.asked[0]
    assert KEY.encode() not in proxy.asked[0]
    assert not any("proxy-authorization" in request.headers for request in server.requests)
    assert server.requests[0].headers["authorization"] == f"Bearer {KEY}"


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (
            b"HTTP/1.1 407 Proxy Authentication Required\r\n\r\n",
            r"the proxy refuses to connect to llm.test \(status 407\)",
        ),
        (b"HTTP/1.1 403 Forbidden\r\n\r\n", r"the proxy refuses to connect to llm.test \(status 403\)"),
        (
            b"HTTP/1.1 502 Bad Gateway\r\n\r\n",
            r"the proxy cannot reach llm.test \(HTTPS_PROXY.*\); gave up.*llm-timeout",
        ),
    ],
)
def test_a_proxy_that_refuses(monkeypatch, certificate, answer, words):
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    with Proxy(1, answer) as proxy:
        monkeypatch.setenv("HTTPS_PROXY", f"http://user:hunter22@127.0.0.1:{proxy.port}")
        with open_way(CHAT, "https://llm.test/v1", Clock().timing(), timeout=20) as llm:
            with pytest.raises(LLMError, match=words) as caught:
                llm.complete(PROMPT, Listener())
    assert "hunter22" not in str(caught.value)


@pytest.mark.parametrize("proxy", ["", "http://user:hunter22@proxy.invalid:3128"])
def test_a_name_that_nobody_knows_is_given_up_soon(monkeypatch, proxy):
    monkeypatch.setenv("HTTPS_PROXY", proxy)
    listener, name = Listener(), r"the proxy proxy.invalid:3128 of HTTPS_PROXY" if proxy else "llm.invalid"
    with open_way(CHAT, "https://llm.invalid/v1", Clock().timing(), timeout=3600) as llm:
        with pytest.raises(LLMError, match=rf"^no connection to {name} \(.*gave up after 4 retries: check that name"):
            llm.complete(PROMPT, listener)
    assert sum(wait for _, wait in listener.retries) == 10


def accept_and_close(server):
    server.accept()[0].close()


def test_a_name_that_was_known_before_in_the_run_is_waited_for(monkeypatch):
    listener, resolve, asked = Listener(), socket.getaddrinfo, []

    def resolve_once(host, *more, **named):
        asked.append(host)
        if len(asked) > 1:
            raise socket.gaierror(-3, "Temporary failure in name resolution")
        return resolve("127.0.0.1", *more, **named)

    monkeypatch.setattr(socket, "getaddrinfo", resolve_once)
    with socket.create_server(("127.0.0.1", 0)) as server:
        threading.Thread(target=accept_and_close, args=(server,), daemon=True).start()
        with open_way(CHAT, f"https://llm.test:{server.getsockname()[1]}/v1", Clock().timing(), timeout=3600) as llm:
            with pytest.raises(LLMError, match=r"Temporary failure in name resolution\); gave up: .*llm-timeout"):
                llm.complete(PROMPT, listener)
    assert sum(wait for _, wait in listener.retries) > 3500


@pytest.mark.parametrize("variable", ["HTTPS_PROXY", "https_proxy", "ALL_PROXY"])
def test_a_proxy_on_this_machine_that_does_not_run_is_given_up_like_a_server(monkeypatch, variable):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    monkeypatch.setenv(variable, f"127.0.0.1:{port}")
    with open_way(CHAT, "https://llm.test/v1", Clock().timing(), timeout=3600) as llm:
        with pytest.raises(LLMError, match=rf"no connection to the proxy 127.0.0.1:{port} of {variable} ") as caught:
            llm.complete(PROMPT, Listener())
    assert str(caught.value).endswith(f"gave up after 4 retries: start the proxy there, or correct {variable}")


@pytest.mark.parametrize("host", ["xn--a.b", "a" * 300])
def test_a_host_that_no_resolver_takes_is_an_error_at_once(host):
    with open_way(CHAT, f"https://{host}/v1", Clock().timing()) as llm:
        with pytest.raises(LLMError, match="check --base-url"):
            llm.complete(PROMPT, Listener())


def test_plain_http_to_this_machine_takes_no_proxy(monkeypatch):
    with FakeServer(["x"]) as server, Proxy(server.port) as proxy:
        for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
            monkeypatch.setenv(name, f"http://127.0.0.1:{proxy.port}")
        assert ask(CHAT, server)[0].text == "x"
        assert not proxy.asked


def test_no_proxy_is_obeyed(monkeypatch, certificate):
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    with Proxy(1) as proxy:
        monkeypatch.setenv("HTTPS_PROXY", f"http://127.0.0.1:{proxy.port}")
        monkeypatch.setenv("NO_PROXY", "llm.invalid,.example")
        with open_way(CHAT, "https://llm.invalid/v1", Clock().timing(), timeout=5) as llm:
            with pytest.raises(LLMError, match=r"no connection to llm.invalid"):
                llm.complete(PROMPT, Listener())
        assert not proxy.asked


@pytest.mark.parametrize("proxy", ["ftp://user:hunter22@h:1", "http://user:hunter22@h:x", "http://hunter22@[::1"])
def test_a_proxy_that_is_none_is_not_quoted(monkeypatch, proxy):
    monkeypatch.setenv("HTTPS_PROXY", proxy)
    with pytest.raises(NotSetUpError, match=r"(HTTPS|ALL)_PROXY names cannot be used") as caught:
        open_way(CHAT, "https://llm.test/v1")
    assert "hunter22" not in str(caught.value)


@pytest.mark.slow
def test_a_server_that_never_reads_does_not_hold_the_call_up():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        begin = time.monotonic()
        prompt = Prompt("", "", "x" * 30_000_000)
        with open_way(CHAT, f"http://127.0.0.1:{listener.getsockname()[1]}/v1", Timing(), timeout=1.0) as llm:
            with pytest.raises(LLMError, match=r"accepts the prompt too slowly; gave up.*llm-timeout"):
                llm.complete(prompt, Listener())
    assert time.monotonic() - begin < 15, "it would be for ever"


@pytest.mark.slow
@pytest.mark.parametrize("name", ["responses", "messages"])
def test_the_deadline_holds_against_one_byte_at_a_time(name):
    for kind in ("dribble", "dribble_headers"):
        begin = time.monotonic()
        with FakeServer(["x" * 1000], [Fault(kind, times=99)]) as server:
            with open_way(WAYS[name], server.base_url(WAYS[name].provider), Timing(), timeout=0.5) as llm:
                with pytest.raises(LLMError, match="llm-timeout"):
                    llm.complete(PROMPT, Listener())
        assert time.monotonic() - begin < 15, "its bytes would take twenty seconds"


@pytest.mark.parametrize("way_there", ["straight", "through a proxy"])
@pytest.mark.parametrize("kind", ["dribble", "dribble_headers"])
def test_the_deadline_holds_over_tls(certificate, monkeypatch, way_there, kind):
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    begin = time.monotonic()
    with tls_server(certificate, ["x" * 1000], [Fault(kind, times=99)]) as server, Proxy(server.port) as proxy:
        url = f"https://127.0.0.1:{server.port}/v1"
        if way_there == "through a proxy":
            monkeypatch.setenv("HTTPS_PROXY", f"http://127.0.0.1:{proxy.port}")
            url = "https://llm.test/v1"
        with open_way(CHAT, url, Timing(), timeout=0.7) as llm:
            with pytest.raises(LLMError, match="llm-timeout"):
                llm.complete(PROMPT, Listener())
        assert bool(proxy.asked) == (way_there == "through a proxy")
    assert time.monotonic() - begin < 15, "its bytes would take twenty seconds"


@pytest.mark.parametrize("name", WAYS)
@pytest.mark.parametrize("coding", ["gzip", "gzip, gzip", "deflate", "br", "zstd", "x-unknown"])
def test_a_compressed_reply_was_not_asked_for_and_is_refused(name, coding):
    bomb = gzip.compress(gzip.compress(b"x" * 1_000_000))
    with FakeServer(["x"], [Fault("status", body=bomb, headers={"content-encoding": coding})]) as server:
        with pytest.raises(LLMError, match=re.escape(f"Content-Encoding: {coding}")) as caught:
            ask(WAYS[name], server)
    assert caught.value.kind == "refused"
    assert [request.headers["accept-encoding"] for request in server.requests] == ["identity"]


@pytest.mark.parametrize("coding", ["gzip", "br", "zstd"])
def test_a_reply_that_is_not_compressed_is_read_whatever_its_header_says(coding):
    headers = {"content-encoding": coding}
    refusal = Fault("status", status=400, body={"error": {"message": "no such tenant"}}, headers=headers)
    body = b'data: {"choices": [{"delta": {"content": "\xc3\xa4"}, "finish_reason": "stop"}]}\n\n'
    with FakeServer(faults=[Fault("status", body=body, headers=headers), refusal]) as server:
        assert ask(CHAT, server)[0].text == "\u00e4"
        with pytest.raises(LLMError, match="no such tenant"):
            ask(CHAT, server)


@pytest.mark.parametrize("before", range(570, 602))
def test_an_error_that_echoes_the_key_is_censored_wherever_it_is_cut(before):
    echo = {"error": {"message": "x" * before + KEY + " and more" * 100, "type": "invalid_request_error"}}
    with FakeServer(faults=[Fault("status", status=400, body=echo)]) as server:
        with pytest.raises(LLMError) as caught:
            ask(CHAT, server)
    assert not [size for size in range(8, len(KEY)) if KEY[:size] in str(caught.value)]


def test_an_error_that_is_compressed_all_the_same_can_pass():
    packed = Fault("status", status=503, body=gzip.compress(b"busy"), headers={"content-encoding": "gzip"})
    with FakeServer(["x"], [packed]) as server:
        assert ask(CHAT, server)[0].text == "x"


@pytest.mark.parametrize("name", WAYS)
def test_a_reply_without_end_is_not_swallowed(name):
    fault = Fault("status", body=b"data: " + b"x" * 15_000_000, headers={"content-type": "text/event-stream"})
    with FakeServer(["x"], [fault]) as server:
        with pytest.raises(LLMError, match=r"127.0.0.1 sent more than 1 MB: no response is that long"):
            ask(WAYS[name], server, timing=Clock().timing(largest_reply=2_000_000, read=20))


def test_no_redirect_is_followed_and_no_cookie_kept():
    with FakeServer(["x"]) as other, FakeServer(["x"]) as server:
        server.faults.append(
            Fault("status", status=307, headers={"location": other.base_url("chat"), "set-cookie": "a=b"})
        )
        with pytest.raises(LLMError, match=r"redirects to http://127.0.0.1"):
            ask(CHAT, server)
        assert not other.requests
        assert len(server.requests) == 1


@pytest.mark.slow
def test_the_connection_is_closed_at_the_end():
    if not OPEN_FILES.exists():
        pytest.skip("no /proc here")
    before = len(list(OPEN_FILES.iterdir()))
    for _ in range(5):
        with FakeServer(["x"], [Fault("drop_mid_body"), Fault("stall")]) as server:
            with pytest.raises(LLMError, match=r"within 3.0 s \(--llm-timeout\)"):
                ask(CHAT, server, timeout=3)
    assert len(list(OPEN_FILES.iterdir())) <= before + 1


@pytest.mark.parametrize("name", ["messages", "chat"])
def test_a_refusal_that_comes_while_the_prompt_is_still_sent(name):
    """A gateway that finds a prompt too large answers at once and reads no further."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def refuse():
            client, _ = listener.accept()
            with client:
                client.recv(1000)
                client.sendall(b"HTTP/1.1 413 Too Large\r\ncontent-length: 5\r\n\r\nlarge")
                client.shutdown(socket.SHUT_WR)
                while client.recv(1_000_000):
                    pass

        thread = threading.Thread(target=refuse)
        thread.start()
        with open_way(WAYS[name], f"http://127.0.0.1:{listener.getsockname()[1]}/v1", Timing(), timeout=20) as llm:
            with pytest.raises(LLMError, match="answered 413: large; the prompt is too long"):
                llm.complete(Prompt("", "", "x" * 2_500_000), Listener())
        thread.join()
