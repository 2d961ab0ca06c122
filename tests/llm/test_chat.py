"""Chat Completions as real servers speak it: each accent is understood, and each silent failure is heard."""

import json
from pathlib import Path
from types import SimpleNamespace

import pytest
from asking import PROMPT, WAYS, Clock, Listener, ask, open_way
from fake_server import FakeServer, Fault

from code_commit.changes import RejectedResponseError
from code_commit.errors import LLMError
from code_commit.exchange import Prompt, Usage
from code_commit.llm.chat import assemble, request_body
from code_commit.llm.chat import usage as usage_of
from code_commit.llm.endpoint import Endpoint
from code_commit.settings import Settings

CHAT = WAYS["chat"]


def stream_of(*chunks, done=True):
    """A stream of chunks; a text stands for a line that is sent as it is."""
    lines = [chunk if isinstance(chunk, str) else "data: " + json.dumps(chunk) for chunk in chunks]
    return "".join(line + "\n\n" for line in [*lines, *(["data: [DONE]"] if done else [])]).encode()


def piece(content=None, finish=None, **more):
    return {"id": "c", "choices": [{"index": 0, "delta": {"content": content} | more, "finish_reason": finish}]}


def reply(body, **headers):
    return Fault("status", body=body, headers={"content-type": "text/event-stream"} | headers)


def ask_chat(*faults, prompt=None, answers=("second",), **more):
    with FakeServer(answers, faults) as server:
        return ask(CHAT, server, prompt or Prompt("s", "", "u"), **more)


GOOD_STREAMS = {
    "plain": stream_of(piece("a"), piece("b"), piece(None, "stop")),
    "no DONE": stream_of(piece("a"), piece("b", "stop"), done=False),
    "comments and blank lines": stream_of(
        ": OPENROUTER PROCESSING", "", piece("a"), ": keep-alive", piece("b", "stop")
    ),
    "errors that are none": stream_of(
        piece("a", error={"code": 0, "message": ""}) | {"error": {"code": 0, "message": ""}},
        piece("b", "stop") | {"error": "none"},
    ),
    "nulls everywhere": stream_of(
        {"id": None, "choices": None}, piece("a", usage=None), piece(None), piece("b", "stop"), {"choices": []}
    ),
    "another choice": stream_of(piece("a"), {"choices": [{"index": 1, "delta": {"content": "X"}}]}, piece("b", "stop")),
    "no index": stream_of({"choices": [{"delta": {"content": "a"}}]}, piece("b", "stop")),
    "content in parts": stream_of(
        piece([{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]), piece("", "stop")
    ),
    "thoughts apart": stream_of(piece(None, reasoning_content="hm"), piece("", reasoning="hm"), piece("ab", "stop")),
    "finish eos": stream_of(piece("ab", "eos")),
    "finish STOP": stream_of(piece("ab", "STOP")),
    "finish stop_token": stream_of(piece("ab", "stop_token")),
    "finish end_of_turn": stream_of(piece("ab", "end_of_turn")),
    "finish repeated as null": stream_of(piece("ab", "stop"), piece(None, None)),
    "carriage returns": stream_of(piece("a"), piece("b", "stop")).replace(b"\n", b"\r\n"),
    "message in place of delta": stream_of({"choices": [{"message": {"content": "ab"}, "finish_reason": "stop"}]}),
    "finish COMPLETED": stream_of(piece("ab", "COMPLETED")),
    "finish FINISH_REASON_STOP": stream_of(piece("ab", "FINISH_REASON_STOP")),
    "finishReason": stream_of({"choices": [{"delta": {"content": "ab"}, "finishReason": "stop"}]}),
    "DONE in quotes": stream_of(piece("ab"), 'data: "[DONE]"', done=False),
    "an index as text": stream_of({"choices": [{"index": "0", "delta": {"content": "ab"}}]}, piece("", "stop")),
    "no blank lines": stream_of(piece("a"), piece("b", "stop")).replace(b"\n\n", b"\n"),
    "a field that nobody knows, first": b"foo: bar\n\n" + stream_of(piece("a"), piece("b", "stop")),
    "lines of JSON": b"".join(json.dumps(each).encode() + b"\n" for each in (piece("a"), piece("b", "stop"))),
    "a list of chunks": json.dumps([piece("a"), piece("b", "stop")]).encode(),
    "an object as content": stream_of(piece({"type": "text", "text": {"value": "ab"}}), piece("", "stop")),
    "thoughts among the parts": stream_of(
        piece([{"type": "thinking", "thinking": [{"type": "text", "text": "no"}]}, {"type": "text", "text": "ab"}]),
        piece([{"type": "reasoning", "text": "no"}], "stop"),
    ),
    "whole JSON without an end": json.dumps({"choices": [{"message": {"content": "ab"}}]}).encode(),
    "whole JSON in a list": json.dumps(
        [{"choices": [{"message": {"content": "ab"}, "finish_reason": "stop"}]}]
    ).encode(),
    "whole JSON in a member": json.dumps(
        {"code": 0, "data": {"choices": [{"message": {"content": "ab"}, "finish_reason": "stop"}]}}
    ).encode(),
    "whole JSON": json.dumps({"choices": [{"message": {"content": "ab"}, "finish_reason": "stop"}]}).encode(),
    "whole JSON in parts": json.dumps(
        {"choices": [{"message": {"content": [{"type": "text", "text": "a"}, "b"]}, "finish_reason": "stop"}]}
    ).encode(),
    "whole JSON after blanks": b"\n\n  \n"
    + json.dumps({"choices": [{"message": {"content": "ab"}, "finish_reason": "stop"}]}).encode(),
}


@pytest.mark.parametrize("name", GOOD_STREAMS)
def test_every_accent_of_success(name):
    response, listener = ask_chat(reply(GOOD_STREAMS[name]))
    assert response.complete_text() == "ab"
    assert not listener.retries
    body = listener.replies[0][2]
    parts = [{"type": "text", "text": "a"}, "b"]  # the log has what the server sent
    assert body["choices"][0]["message"]["content"] == (parts if name == "whole JSON in parts" else "ab")


LOST_STREAMS = {
    "nothing at all": b"",
    "only comments": b": wait\n\n: wait\n\n",
    "DONE alone": stream_of(),
    "neither of its two ends": stream_of(piece("a"), done=False),
    "an error that calls itself one, then DONE": stream_of(
        piece("a"), {"object": "error", "message": "gone", "code": 502}
    ),
    "words in place of an answer": stream_of({"message": "the model has stopped", "code": 502}),
    "an error among the chunks": stream_of(piece("a"), {"error": {"code": 502, "message": "gone"}}, done=False),
    "an error as text": stream_of(piece("a"), {"error": "gone"}),
    "finish error": stream_of(piece("a", "error")),
    "finish stop, of a provider that broke off": stream_of(
        {"choices": [{"delta": {"content": ""}, "finish_reason": "stop", "native_finish_reason": "network_error"}]}
    ),
    "finish network_error": stream_of(piece("a", "network_error")),
    "finish insufficient_system_resource": stream_of(piece("a", "insufficient_system_resource")),
    "a chunk that is no JSON": stream_of(piece("a"), 'data: {"choices": [', piece("b", "stop")),
    "LM Studio's event": b'event: error\ndata: {"error": {"message": "Model unloaded."}}\n\n',
    "a page of what is before the server": b"<!doctype html><title>Please wait a moment</title>",
    "a page of a server that begins": b"<!doctype html><title>Preparing Space</title>",
}


@pytest.mark.parametrize("name", LOST_STREAMS)
def test_every_accent_of_a_failure_that_can_pass(name):
    response, listener = ask_chat(reply(LOST_STREAMS[name]))
    assert response.text == "second"
    assert len(listener.retries) == 1


NO_API = {
    "a page": (b"<!doctype html><title>Welcome</title>", '"Welcome"; name the address of the API with --base-url'),
    "a text": (b"Ollama is running", '"Ollama is running"; name the address'),
    "another API's stream": (b'{"message": {"content": "a"}}\n{"done": true}\n', "this API's JSON"),
    "a list of models": (b'{"object": "list", "data": [{"id": "m"}]}', r"\(no choices; it contains object, data\)"),
    "no choices": (
        b'{"id": "x", "choices": [], "usage": {"prompt_tokens": 9}}',
        "an empty list of choices; it contains id, choices, usage",
    ),
    "another path": (b'{"error": "Unexpected endpoint or method. (POST /chat/completions)"}', "the address of the API"),
}


@pytest.mark.parametrize("name", NO_API)
def test_what_is_no_answer_and_no_refusal_is_not_asked_again(name):
    """But once, where it has the form of an answer."""
    body, told = NO_API[name]
    listener, times = Listener(), 2 if name == "no choices" else 1
    with (
        FakeServer(["late"], [reply(body) for _ in range(times)]) as server,
        open_way(CHAT, server.base_url("chat"), Clock().timing()) as llm,
    ):
        with pytest.raises(LLMError, match=told):
            llm.complete(PROMPT, listener)
        assert (len(server.requests), len(listener.retries)) == (times, times - 1)


@pytest.mark.parametrize("name", ["a page", "no choices"])
def test_what_is_no_answer_passes_after_one(name):
    faults = reply(stream_of(piece("first", "stop"))), reply(NO_API[name][0])
    clock, listener = Clock(), Listener()
    with FakeServer(["third"], faults) as server, open_way(CHAT, server.base_url("chat"), clock.timing()) as llm:
        assert llm.complete(PROMPT, Listener()).text == "first"
        assert llm.complete(PROMPT, listener).text == "third"
    assert len(listener.retries) == 1


ENDINGS = {
    "length": "cut off at the output limit",
    "max_tokens": "cut off at the output limit",
    "FINISH_REASON_MAX_TOKENS": "cut off at the output limit",
    "content_filter": r"filtered by the provider \(content_filter\)",
    "tool_calls": r"not finished \(finish_reason tool_calls\)",
    "function_call": "not finished",
    "not_finished": r"not finished \(finish_reason not_finished\)",
    "abnormal_stop": "not finished",
    "user_stop": "not finished",
    "FINISH_REASON_UNSPECIFIED": "not finished",
    "something_new": r"not finished \(finish_reason something_new\)",
}


@pytest.mark.parametrize("finish", ENDINGS)
def test_other_endings_are_incomplete(finish):
    response, _ = ask_chat(reply(stream_of(piece("half a file", finish))))
    assert response.finish_reason == finish
    with pytest.raises(RejectedResponseError, match=ENDINGS[finish]):
        response.complete_text()


def test_a_refusal_in_pieces():
    response, _ = ask_chat(
        reply(stream_of(piece(None, refusal="I "), piece(None, refusal="won't."), piece(None, "stop")))
    )
    assert response.incomplete == "refused: I won't."


@pytest.mark.parametrize(
    ("usage", "counted"),
    [
        (None, Usage()),
        ({"prompt_tokens": 10, "completion_tokens": 5}, Usage(input=10, output=5)),
        (
            {"prompt_tokens": 10, "prompt_cache_hit_tokens": 4, "prompt_cache_miss_tokens": 6},
            Usage(input=10, cached_input=4),
        ),
        ({"prompt_tokens": 10, "prompt_tokens_details": None, "completion_tokens_details": None}, Usage(input=10)),
        ({"prompt_tokens": "ten", "completion_tokens": -1}, Usage()),
        ({"prompt_tokens": "10", "completion_tokens": 5.0}, Usage(input=10, output=5)),
        ({"promptTokens": 10, "completionTokens": 5}, Usage(input=10, output=5)),
        (
            {"promptTokenCount": 10, "candidatesTokenCount": 5, "thoughtsTokenCount": 2, "totalTokenCount": 17},
            Usage(input=10, output=7, reasoning=2),
        ),
    ],
)
def test_usage_in_any_place(usage, counted):
    on_the_last = piece("x", "stop") | {"usage": usage}
    assert ask_chat(reply(stream_of(on_the_last)))[0].settlement.usage == counted
    apart = stream_of(piece("x", "stop"), {"choices": [], "usage": usage})
    of_groq = stream_of(piece("x", "stop") | {"x_groq": {"usage": usage}})
    assert ask_chat(reply(of_groq))[0].settlement.usage == counted
    in_choice = {"choices": [{"index": 0, "delta": {"content": "x"}, "finish_reason": "stop", "usage": usage}]}
    assert ask_chat(reply(stream_of(in_choice)))[0].settlement.usage == counted
    assert ask_chat(reply(apart))[0].settlement.usage == counted


def test_an_answer_that_broke_off_for_good_is_not_asked_for_again():
    broken = piece("a", "error") | {"error": {"code": 400, "message": "The prompt is too long."}}
    with pytest.raises(
        LLMError, match=r"cut the answer off \(finish_reason error\): The prompt is too long; "
    ) as caught:
        ask_chat(reply(stream_of(broken)))
    assert caught.value.kind == "too_long"


def test_a_count_of_the_answer_so_far_is_none_of_all_of_it():
    """A gateway's first chunk may repeat another API's: one token, before any was written."""
    begun = piece("x") | {"usage": {"prompt_tokens": 100, "completion_tokens": 1, "total_tokens": 101}}
    assert ask_chat(reply(stream_of(begun, piece("y", "stop"))))[0].settlement.usage == Usage(input=100)
    last = {"choices": [], "usage": {"prompt_tokens": 100, "completion_tokens": 500}}
    beside = last | {"choices": [{"index": 0, "delta": {}}]}  # and no finish reason
    assert ask_chat(reply(stream_of(begun, piece("y"), beside)))[0].settlement.usage == Usage(input=100, output=500)
    assert ask_chat(reply(stream_of(begun, piece("y"), last)))[0].settlement.usage == Usage(input=100, output=500)


@pytest.mark.parametrize(
    "body",
    [
        {"err": "the prompt is too long for 4096 tokens"},
        {"errors": {"base": ["the prompt is too long for 4096 tokens"]}},
        {"exception": {"where": "the prompt is too long for 4096 tokens"}},
        b"the prompt is too long for 4096 tokens",
        b"<html><body><pre>the prompt is too long for 4096 tokens</pre></body></html>",
    ],
    ids=repr,
)
def test_a_refusal_with_status_200_is_one_under_whatever_name_its_words_stand(body):
    with pytest.raises(LLMError, match="too long for 4096 tokens") as caught:
        ask_chat(Fault("status", body=body))
    assert caught.value.kind == "too_long"


@pytest.mark.parametrize(
    ("body", "told"),
    [
        (b"\n", "sent an empty reply"),
        (stream_of({"choices": []}), "ended without an answer (an empty list of choices)"),
    ],
)
def test_a_reply_that_came_whole_did_not_end_early(body, told):
    assert told in ask_chat(reply(body))[1].retries[0][0]


def test_names_in_a_chunk_are_no_words_of_a_refusal():
    begun = {"model": "Some Model Of Ours", "choices": [{"index": 0, "delta": {"role": "assistant"}}]}
    _, listener = ask_chat(reply(stream_of(begun, done=False)))
    assert "ended early (no finish_reason)" in listener.retries[0][0]

    ended = {"model": "Some Model Of Ours", "choices": [], "usage": {"prompt_tokens": 1, "completion_tokens": 1}}
    response, listener = ask_chat(reply(stream_of(piece("whole"), ended)))
    assert (response.complete_text(), listener.retries) == ("whole", [])


def test_the_words_of_an_error_beside_a_finish_reason_are_told():
    broken = {"choices": [{"delta": {}, "finish_reason": "error", "error": {"code": 502, "message": "Upstream idle"}}]}
    _, listener = ask_chat(reply(stream_of(piece("a"), broken)))
    assert "cut the answer off (finish_reason error): Upstream idle" in listener.retries[0][0]


def test_an_error_after_the_end_takes_no_answer_back():
    for late in (
        {"message": "The usage is lost", "code": 500},
        {"message": "No usage", "type": "invalid_request_error"},
    ):
        response, listener = ask_chat(reply(stream_of(piece("whole", "stop"), {"error": late})))
        assert (response.complete_text(), listener.retries) == ("whole", [])
        assert late["message"] in listener.warnings[0]


@pytest.mark.parametrize("status", [201, 202, 206])
def test_every_status_of_success_may_bring_a_stream(status):
    body = stream_of(piece("ab", "stop"))
    assert ask_chat(Fault("status", status=status, body=body))[0].text == "ab"


def test_a_connection_that_breaks_after_the_finish_reason_has_lost_nothing():
    response, listener = ask_chat(
        Fault("status", body=stream_of(piece("whole", "stop"), done=False) + b": ", headers={"content-length": "9999"})
    )
    assert response.text == "whole"
    assert not listener.retries


def test_a_stream_that_stays_open_after_the_finish_reason_has_lost_nothing():
    open_end = Fault("open", body=stream_of(piece("whole", "stop"), done=False))
    with FakeServer(["second"], [open_end]) as server:
        response, listener = ask(CHAT, server, timing=Clock().timing(after_end=0.2))
    assert (response.complete_text(), listener.retries) == ("whole", [])


@pytest.mark.parametrize("step", [1, 3, 6])
@pytest.mark.parametrize("again", [0, 2])
def test_pieces_that_each_hold_all_of_the_text_so_far_are_one_text(step, again):
    text = "Done.\n\n^^^a.txt\na\na\n^^^end\n"
    sums = [text[:end] for end in (*range(step, len(text), step), *[len(text)] * (1 + again))]
    response, _ = ask_chat(reply(stream_of(*map(piece, sums), piece(finish="stop"))))
    assert response.text == text


@pytest.mark.parametrize(
    "pieces",
    [
        ["^", "^^", "a.txt\na\n", "^", "^^", "end"],
        ["a", "ab", "abc", "b"],
        ["\n", "\n", "\n", "\n", "\n\n", "a"],
        ["ab", "ab", "abab", "ababab", "abababab"],
        ["abc", "a"],
    ],
)
def test_pieces_that_begin_alike_are_all_of_the_text(pieces):
    response, _ = ask_chat(reply(stream_of(*map(piece, pieces), piece(finish="stop"))))
    assert response.text == "".join(pieces)


def test_a_finish_reason_with_each_piece_ends_nothing():
    waits = []
    call = SimpleNamespace(
        body={"messages": []}, wrote=list, ends_soon=lambda *, is_sure: waits.append(is_sure), is_done=False
    )
    assemble(call, iter([("", piece("a", "stop")), ("", piece("b", "stop")), ("", {"usage": {"prompt_tokens": 9}})]))
    assert waits == [True, False]


@pytest.mark.parametrize(
    ("prompt", "counted", "is_cut"),
    [
        ("word " * 20_000, 4096, True),
        ("x" * 100_000, 4096, True),
        ("def f(x):\n    return x + 1\n" * 5000, 2048, True),
        ("word " * 20_000, 20_000, False),
        ("x" * 100_000, 15_000, False),
        ("x" * 100_000, 16_384, True),
        ("x" * 100_000, 16_386, True),
        ("word " * 20_000, 20_480, False),
        ("        " * 20_000, 20_000, False),
        ("word " * 20_000, 10, False),
        ("word " * 20_000, 0, False),
        ("short", 300, False),
    ],
)
def test_a_server_that_cuts_the_prompt_off_is_found_out(prompt, counted, is_cut):
    body = stream_of(piece("as if nothing were missing", "stop"), {"choices": [], "usage": {"prompt_tokens": counted}})
    if not is_cut:
        assert ask_chat(reply(body), prompt=Prompt("", "", prompt))[0].text.startswith("as if")
        return
    with pytest.raises(
        LLMError, match=rf"read only {counted:,} tokens of a prompt of about [\d,]+: .*OLLAMA_CONTEXT_LENGTH"
    ):
        ask_chat(reply(body), prompt=Prompt("", "", prompt))


ERRORS = {
    "vLLM": (
        400,
        {"message": "This model's maximum context length is 4096 tokens.", "code": 400},
        "too long for some-model",
    ),
    "llama.cpp": (400, {"error": {"code": 400, "type": "exceed_context_size_error", "message": "exceeds"}}, "too long"),
    "LiteLLM": (
        400,
        {"error": {"message": "litellm.BadRequestError: Invalid model name passed in model=X", "code": "400"}},
        "Invalid model name passed in model=X; check the name of the model .*--model",
    ),
    "FastAPI": (422, {"detail": "bad field"}, "answered 422: bad field; the request was not accepted"),
    "OpenRouter": (402, {"error": {"code": 402, "message": "Insufficient credits"}}, "no money"),
    "DeepSeek": (402, {"error": {"message": "Insufficient Balance"}}, "no money"),
    "a 404 of the wrong path": (404, {"detail": "Not Found"}, r"the address of the API \(http://127.0.0.1:\d+/v1\)"),
    "text": (400, b"nope", "answered 400: nope;"),
    "escape sequences": (400, {"error": "red \x1b[31malert\u202e"}, r"red \\x1b\[31malert\\u202e;"),
    "a long page": (400, b"<html>" + b"x" * 5_000_000, "answered 400; the request"),
    "a page of titles": (400, b"<html>" + b"<title>" * 500_000, "answered 400; the request"),
    "a page of one long text": (400, b"<html>" + b"a b " * 1_000_000, "answered 400; the request"),
    "a long code": (400, {"error": {"code": "raise " * 500_000}}, "answered 400: raise raise"),
    "a long message": (400, {"error": "y" * 5_000_000}, r"y{600}\.\.\.;"),
}


@pytest.mark.parametrize("name", ERRORS)
def test_errors_are_explained(name):
    status, body, words = ERRORS[name]
    with pytest.raises(LLMError, match=words) as caught:
        ask_chat(Fault("status", status=status, body=body))
    assert len(str(caught.value)) < 1000
    assert str(caught.value).isprintable()


def test_a_model_that_is_loading_is_waited_for():
    loading = Fault("status", status=503, body={"error": {"message": "Loading model", "code": 503}}, times=4)
    response, listener = ask_chat(loading)
    assert response.text == "second"
    assert len(listener.retries) == 4


@pytest.mark.parametrize(
    ("counted", "output"),
    [
        ({"completion_tokens": 70}, 70),
        ({"completion_tokens": 70, "completion_tokens_details": {"reasoning_tokens": 60}}, 70),
        ({"completion_tokens": 9, "completion_tokens_details": {"reasoning_tokens": 600}}, 609),
        (
            {"completion_tokens": 700, "total_tokens": 1300, "completion_tokens_details": {"reasoning_tokens": 500}},
            1200,
        ),
        ({"completion_tokens": 70, "total_tokens": 170}, 70),
        ({"total_tokens": 170}, 70),
    ],
)
def test_reasoning_that_a_server_counts_apart_is_counted(counted, output):
    assert usage_of({"usage": {"prompt_tokens": 100, **counted}}).output == output


FILE = "".join(f"def function_{number}(argument):\n    return argument + {number}\n\n" for number in range(100))
REPEATED = {
    # what is written, and whether it repeats the prompt
    "the prompt": (FILE, True),
    "after words and a block": (f"Sure.\n^^^a.py\nx\n^^^end\nThen:\n{FILE}", True),
    "after a bare end": (f"^^^a.py\nx\n^^^\n{FILE}", True),
    "after a removal": (f"^^^a.py\n^^^delete\n{FILE}", True),
    "in a block": (f"^^^a.py\n{FILE}^^^end\nDone.\n", False),
    "in a longer block": (f"^^^^a.md\n^^^a.py\n^^^end\n{FILE}^^^^end\nDone.\n", False),
    "in a thought": (f"<think>\n{FILE}</think>\n^^^a.py\n^^^end\n", False),
    "in a thought of another name": (f"<seed:Think>\n{FILE}</seed:Think>\n^^^a.py\n^^^end\n", False),
    "after a thought": (f"[THINK]hm[/THINK]\n{FILE}", True),
    "a short piece": (f"It has:\n{FILE[:1900]}\nDone.\n", False),
    "other words": (FILE.replace("argument", "x"), False),
}


@pytest.mark.parametrize(("text", "repeats"), REPEATED.values(), ids=REPEATED)
def test_text_outside_of_blocks_that_repeats_the_prompt_ends_the_request(text, repeats):
    pieces = [text[at : at + 7] for at in range(0, len(text), 7)]
    body = stream_of(*map(piece, pieces), piece(None, "stop"))
    response, listener = ask_chat(reply(body), prompt=Prompt("s", "", f"[codebase]\n{FILE}"))
    assert (response.finish_reason == "repeated_prompt") == repeats
    assert not listener.retries
    if repeats:
        assert len(response.text) < text.index(FILE) + 2_700
        with pytest.raises(
            RejectedResponseError, match="outside of its blocks it repeats 2,000 characters of the prompt"
        ):
            response.complete_text()
    else:
        assert response.complete_text() == text


@pytest.mark.parametrize("name", ["reasoning_content", "reasoning", "thinking"])
def test_thoughts_that_come_apart_are_kept(name):
    streamed = stream_of(piece(None, **{name: "Only "}), piece(None, **{name: "b."}), piece("ab", "stop"))
    whole = json.dumps({"choices": [{"message": {"content": "ab", name: "Only b."}, "finish_reason": "stop"}]}).encode()
    for body in (streamed, whole):
        response, listener = ask_chat(reply(body))
        assert (response.text, response.thoughts) == ("ab", "Only b.")
        assert listener.replies[0][2]["choices"][0]["message"][name] == "Only b."


def test_thoughts_in_details_alone_are_thoughts():
    details = [{"type": "reasoning.text", "text": "hm"}]
    body = stream_of(piece("", reasoning_details=details), piece("", "stop"))
    assert ask_chat(reply(body))[0].incomplete == "only thoughts, 1 token of them"


def test_thoughts_alone_are_told_with_their_tokens():
    counted = {"usage": {"prompt_tokens": 100, "completion_tokens": 70, "total_tokens": 170}}
    for usage, tokens in ((counted, 70), ({}, 100)):
        body = stream_of(piece(None, reasoning_content="x" * 320), piece("\n", "stop") | usage)
        assert ask_chat(reply(body))[0].incomplete == f"only thoughts, {tokens} tokens of them"


def test_a_server_that_tells_how_far_it_is_is_asked_for_it_and_heard():
    read = {"prompt_progress": {"total": 2_000, "processed": 512, "cache": 0, "time_ms": 9}, "choices": []}
    written = piece("a") | {"timings": {"predicted_n": 12, "predicted_per_second": 19.3}}
    odd = piece("b", "stop") | {"timings": {"predicted_n": 13, "predicted_per_second": None}}
    _, listener = ask_chat(reply(stream_of(read, written, odd)))
    assert "return_progress" not in listener.request[2]
    told = [state for state in listener.states if "kB" not in state]
    assert told == ["512 of 2,000 tokens of the prompt read", "12 tokens written, 19 a second"]
    endpoint = Endpoint("m", "http://127.0.0.1/v1", Settings(), Path(), "", str, tells_progress=True)
    assert request_body(endpoint, Prompt("s", "", "u"))["return_progress"] is True
