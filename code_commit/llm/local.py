"""LLM servers on this machine: finding them, and asking for their windows. No other address is contacted."""

import json
import re
import string
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from functools import partial
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlsplit

from code_commit.errors import NotSetUpError
from code_commit.llm.endpoint import Endpoint, at
from code_commit.llm.models import VENDORS, check_base_url
from code_commit.llm.proxies import is_this_machine
from code_commit.llm.reach import reach_of
from code_commit.llm.values import count_of, json_or_text, list_of, member, members_of, text_of
from code_commit.llm.vendor import LlmConfig
from code_commit.llm.words import LONGEST_MESSAGE, said_by
from code_commit.settings import SERVER
from code_commit.terminal import shown

if TYPE_CHECKING:
    import socket

_PORTS = (11434, 8080, 1234)  # of Ollama, llama.cpp and LM Studio
_LONGEST_LOOK, _PATIENCE = 0.9, 3.0  # seconds for all ports, and for one request to a server that the user named
_LONGEST_ANSWER = 1_000_000  # bytes
_MOST_NAMED = 6
_OTHER_ADDRESS = "check that base_url is that of an LLM server"
_WINDOWS = ("max_model_len", "loaded_context_length", "max_context_length")  # of vLLM and LM Studio


def with_window(llm: LlmConfig, warn: Callable[[str], None] | None = None) -> LlmConfig:
    """Return the LLM with its server's window, if that is on this machine and no setting names the window.

    `warn` gets what the server's answer says against a run, or that it has none: the first call of a run reports it.
    """
    settings, url = llm.settings, ""
    try:
        url = check_base_url(llm.choice, settings)
        is_here = url.startswith("http:") and is_this_machine(urlsplit(url).hostname or "")
        if llm.choice.provider != "chat" or not is_here:
            return llm
        key = llm.key.known if llm.key else ""
        headers = reach_of(llm.choice, settings).request_headers(VENDORS["chat"], key, settings)
        ask, defaults = partial(_ask, headers, _PATIENCE), None
        with suppress(OSError):  # a server may drop the requests that it does not know
            defaults = member(ask(at(_root(url), "/props")), "default_generation_settings")
            windows = _windows(url, llm.choice.name, defaults, ask)
            if not settings.context_window and (window := next(filter(None, windows), None)):
                sources = {**settings.sources, SERVER: {"context_window": window}}
                settings = settings._replace(context_window=window, sources=sources)
        if warn and (
            doubt := _doubt(*_reply(headers, _PATIENCE, at(url, "/models")), "" if defaults else llm.choice.name)
        ):
            warn(f"{shown(urlsplit(url).netloc)} {doubt}")
        return llm._replace(settings=settings, tells_progress=bool(defaults))
    except NotSetUpError:
        pass
    except OSError as error:
        if warn:
            advice = "start the server" if isinstance(error, ConnectionRefusedError) else _OTHER_ADDRESS
            warn(f"{urlsplit(url).netloc} does not answer ({error.strerror or error}): {advice}")
    return llm


def _doubt(status: int, body: object, model: str) -> str:
    """Return what the reply of a server to the question for its models says against a run, "" for nothing.

    llama.cpp answers for any model, so there it is "".
    """
    names = [text_of(each, "id") for each in list_of(body, "data")]
    if status == 200 and isinstance(member(body, "data"), list):
        if not model or {model, f"{model}:latest"} & {*names}:
            return ""
        others = f": it has {', '.join(map(shown, names[:_MOST_NAMED]))}" if names else ""
        return f"does not list the model {shown(model)}{others}"
    words = " ".join(said_by(body)[:LONGEST_MESSAGE].split())
    answer = f"answers the request for its models with {status if status != 200 else 'something else'}"
    advice = "check its key" if status in (401, 403) else _OTHER_ADDRESS
    return f"{answer}{words and f' ({shown(words)})'}: {advice}"


def loaded_window(endpoint: Endpoint, headers: Mapping[str, str]) -> int:
    """Return the window with which Ollama has loaded the model, 0 if no such server on this machine tells it."""
    if not (endpoint.is_local and endpoint.base_url.startswith("http:")):
        return 0
    with suppress(OSError):
        about = _ask(dict(headers), _PATIENCE, at(_root(endpoint.base_url), "/api/ps"))
        return next(filter(None, _loaded(about, endpoint.model)), 0)
    return 0


def _ask(headers: dict[str, str], patience: float, url: str, body: object = None) -> Any:
    """Return the JSON or text of a reply that is there in time, None for a refusal. Raises OSError."""
    status, answer = _reply(headers, patience, url, body)
    return answer if status == 200 else None


def _reply(headers: dict[str, str], patience: float, url: str, body: object = None) -> tuple[int, Any]:
    """Return the status of a reply that is there in time, with its JSON or text. Raises OSError."""
    from http.client import HTTPConnection, HTTPException  # takes 14 ms, and few commands need it

    parts = urlsplit(url)
    with closing(HTTPConnection(parts.hostname or "", parts.port or 80, timeout=patience)) as connection:
        connection.connect()
        end = threading.Timer(patience, _hang_up, [connection.sock])  # the timeout alone is for each piece
        end.daemon = True
        end.start()
        try:
            path = quote(f"{parts.path}?{parts.query}" if parts.query else parts.path, safe=string.punctuation)
            connection.request("POST" if body else "GET", path, json.dumps(body) if body else None, headers)
            reply = connection.getresponse()
            return reply.status, json_or_text(reply.read(_LONGEST_ANSWER))
        except (HTTPException, ValueError) as error:
            raise OSError("no reply of HTTP") from error
        finally:
            end.cancel()


def _hang_up(line: "socket.socket") -> None:
    with suppress(OSError):
        line.shutdown(2)  # both ways


def _root(url: str) -> str:
    return re.sub(r"/v\d+(?=$|\?)", "", url)


def _windows(url: str, model: str, defaults: object, ask: Callable[..., Any]) -> Iterator[int]:
    """Yield the windows that a server may report, or 0: llama.cpp, vLLM or LM Studio, Ollama."""
    yield count_of(defaults, "n_ctx")
    models = [each for each in list_of(ask(at(url, "/models")), "data") if text_of(each, "id") == model]
    yield from (count_of(each, name) for each in models for name in _WINDOWS)
    about = ask(at(_root(url), "/api/show"), {"model": model})
    yield int((re.findall(r"(?m)^num_ctx\s+(\d{1,9})$", text_of(about, "parameters")) or [0])[0])
    yield from _loaded(ask(at(_root(url), "/api/ps")), model)
    facts = members_of(about, "model_info")
    yield from (count_of(facts, name) for name in facts if name.endswith(".context_length"))


def _loaded(about: object, model: str) -> Iterator[int]:
    """Yield the windows with which Ollama has loaded a model, whose tag may be left out for `latest`."""
    names = {model, model if ":" in model else f"{model}:latest"}
    for each in list_of(about, "models"):
        if names & {text_of(each, "model"), text_of(each, "name")}:
            yield count_of(each, "context_length")


def find_server(ports: Sequence[int] = _PORTS) -> str:
    """Return how to use a server on this machine, "" if none answers within a second."""
    found: dict[int, str] = {}

    def look(port: int) -> None:
        with suppress(OSError):
            models = list_of(_ask({}, _LONGEST_LOOK, f"http://127.0.0.1:{port}/v1/models"), "data")
            names = sorted(filter(None, (text_of(each, "id") for each in models)), key=lambda name: "embed" in name)
            found.update((port, name) for name in names[:1])

    threads = [threading.Thread(target=look, args=(port,), daemon=True) for port in ports]
    until = time.monotonic() + _LONGEST_LOOK
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(max(until - time.monotonic(), 0))
    for port in filter(found.get, ports):
        lines = f'model = {json.dumps(f"chat:{found[port]}")}\nbase_url = "http://127.0.0.1:{port}/v1"'
        return f"To use the server on this machine, put this into agent-config/config.toml:\n{lines}"
    return ""
