"""The highest cost of a call. No request exceeds the money left, not even a broken one or one without usage."""

import math
import re
import unicodedata

import pytest
from asking import PROMPT as SHORT_PROMPT
from asking import WAYS, Clock, Listener, ask, open_way
from fake_apis import Answer
from fake_server import COUNTERS, FakeServer, Fault

from code_commit.errors import LLMError, OverBudgetError, TooLittleMoneyError, in_words
from code_commit.exchange import CHARACTERS_PER_TOKEN, Prompt
from code_commit.llm.ledger import Ledger
from code_commit.llm.models import explain_misfit, longest_prompt
from code_commit.llm.money import LEAST_OUTPUT, bid_for, require_money
from code_commit.llm.vendor import LlmConfig, ModelChoice, most_tokens
from code_commit.settings import USER, Price, Settings

SOL = ModelChoice("openai", "gpt-6.2-sol")
PROMPT = Prompt("", "", "x" * 3_200_000, {"query": "q" * 10, "codebase": "x" * 3_199_990})  # about 1,000,000 tokens
PRICES = {"gpt-6.2-sol": Price(input=1.0, output=10.0)}


def test_a_prompt_that_does_not_fit_names_the_sizes_of_its_parts():
    said = explain_misfit(SOL, Settings(context_window=1_127_999), PROMPT)
    assert said == (
        "the prompt does not fit openai:gpt-6.2-sol: about 1,000,000 tokens; 999,999 fit, with "
        '128,000 reserved for the answer (query 10 bytes, codebase 3,199,990 bytes); rollup = "fit" in config.toml makes it fit'
    )
    assert explain_misfit(SOL, Settings(context_window=1_128_000), PROMPT) is None
    assert explain_misfit(SOL, Settings(context_window=1_001_000, max_output_tokens=1_000), PROMPT) is None
    assert explain_misfit(ModelChoice("chat", "nobody-knows"), Settings(), PROMPT) is None
    alone = explain_misfit(SOL, Settings(context_window=1_127_999), PROMPT, can_be_fitted=lambda: False)
    assert alone
    assert "alone leave no room for a file: use --prompt-layout short, which " in alone
    assert alone.endswith(" or use a model with a larger window and raise context_window")
    system = Prompt("s" * 2_900_000, "", "x" * 300_000, {"codebase": "x" * 300_000})
    for repairs, helps in ((0, True), (1, False)):
        later = explain_misfit(SOL, Settings(context_window=1_127_999, max_repairs=repairs), system)
        assert later
        assert ("makes it fit" in later) is helps, "by the prompt itself, beside what a repair adds"
    fitted = explain_misfit(SOL, Settings(context_window=1_127_999, rollup="fit"), PROMPT)
    assert fitted
    assert fitted.endswith("; use a model with a larger window and raise context_window"), (
        "there is no output of a build"
    )
    for part, advice in (("file replacements", "raise context_window"), ("build output", "lower build_output_limit")):
        parts = {"codebase": "x" * 300_000, part: "x" * 3_300_000}
        said = explain_misfit(SOL, Settings(context_window=1_127_999), Prompt("", "", "".join(parts.values()), parts))
        assert said
        assert said.endswith(advice), "no smaller codebase would be enough"
    with FakeServer() as server:
        with pytest.raises(LLMError, match="does not fit") as caught:
            ask(WAYS["responses"], server, PROMPT, context_window=1_127_999)
    assert caught.value.kind == "too_long"
    assert not server.requests


@pytest.mark.parametrize(
    ("model", "longest"),
    [
        (ModelChoice("anthropic", "claude-sonnet-4-5"), 136_000),
        (SOL, 922_000),
        (ModelChoice("gemini", "gemini-4-argon"), 983_040),
    ],
)
def test_a_prompt_fits_that_leaves_room_for_the_answer(model, longest):
    """The same length is that to which a codebase is made to fit."""
    assert longest_prompt(LlmConfig(model, None, Settings())) == longest
    prompts = (Prompt("", "", "x" * round(CHARACTERS_PER_TOKEN * tokens)) for tokens in (longest, longest + 1))
    assert [explain_misfit(model, Settings(), prompt) is None for prompt in prompts] == [True, False]


def test_what_is_reserved_is_left_for_nobody_else():
    ledger = Ledger(3.1, spent=0.5)
    ledger.reserve(2.6, "a call")
    with pytest.raises(OverBudgetError) as caught:
        ledger.reserve(0.1, "another call")
    assert (caught.value.needed_usd, caught.value.left_usd) == (0.1, 0.0)
    assert (
        str(caught.value)
        == "the next call could exceed --max-cost 3.1: $0.5000 and at most $2.6000 unsettled so far, another call"
    )
    ledger.settle(2.6, 0.4)
    ledger.reserve(2.2, "another call")
    tenths = Ledger(0.3)
    for _ in range(3):
        tenths.reserve(0.1, "a third of it, where two of them leave 0.0999")


def test_a_call_costs_at_most_its_prompt_and_its_longest_answer():
    settings = Settings(max_output_tokens=100_000, prices=PRICES, context_window=10**7)
    bid = bid_for(SOL, settings, PROMPT, float("inf"))
    assert (bid.tokens, bid.reading_usd, bid.output, bid.writing_usd) == (3_200_000, 3.2, 100_000, 1.0)
    assert bid_for(SOL, settings, PROMPT, 3.7).output == 50_000
    assert bid_for(SOL, settings, PROMPT, 1.0).output == LEAST_OUTPUT
    assert bid_for(SOL, settings._replace(max_output_tokens=100), PROMPT, 1.0).output == 100
    assert bid_for(ModelChoice("chat", "nobody-knows"), settings, PROMPT, 1.0) is None


@pytest.mark.parametrize(("stable", "reading"), [("", 3.2), ("x", 4.0)])
def test_a_cache_write_may_cost_more_than_the_prompt(stable, reading):
    settings = Settings(prices={"gpt-6.2-sol": Price(1.0, 0.0, cache_write=1.25)}, context_window=10**7)
    prompt = Prompt("", stable, "x" * (3_200_000 - len(stable)))
    assert bid_for(SOL, settings, prompt, 9.0).usd == pytest.approx(reading)


def test_too_little_money_says_how_much_would_do():
    chat = ModelChoice("chat", "some-model")
    settings = Settings(max_cost=3.2, prices={"some-model": Price(1.0, 10.0)}, max_output_tokens=64_000)
    with pytest.raises(TooLittleMoneyError) as caught:
        require_money(chat, settings, PROMPT)
    assert caught.value.needed_usd == pytest.approx(3.28)
    assert "; $3.2800 is enough" in str(caught.value)
    assert require_money(chat, settings._replace(max_cost=3.28), PROMPT) == ""


def test_where_the_provider_counts_only_what_no_count_could_save_is_refused_before():
    settings = Settings(max_cost=0.08, prices=PRICES)
    assert require_money(SOL, settings, PROMPT) == (
        "the prompt of up to 3,200,000 tokens costs up to $3.2000, an answer of 8,000 tokens up to $0.0800: the run asks "
        "openai to count the prompt before it sends the request"
    )
    with pytest.raises(TooLittleMoneyError) as caught:
        require_money(SOL, settings._replace(max_cost=0.0799), PROMPT)
    assert caught.value.needed_usd == pytest.approx(0.08)


TEXTS = {
    "digits": "1,2,3,4\n" * 1000,
    "a letter a line": "a\nQ\n" * 2000,
    "base64": "QzXJvK0+/" * 1000,
    "Chinese": "测试" * 1000,
    "what a normal form makes longer": "\u0f43\ufdfa" * 1000,
}


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_a_text_has_at_most_a_token_for_each_byte(text):
    normal = unicodedata.normalize("NFKC", text)
    assert most_tokens(text) == max(len(text.encode()), len(normal.encode()))


def test_half_a_character_is_a_byte_to_the_bound():
    assert most_tokens("\ud800" * 10) == 10


LONG = Prompt("SYSTEM\n", "", "x = 1\n" * 100_000)
COUNTED = ["responses", "interactions", "messages"]


@pytest.mark.parametrize("name", COUNTED)
def test_where_the_bound_would_refuse_the_providers_own_count_decides(name):
    money = {"max_cost": 0.5, "prices": {WAYS[name].model: Price(1.0, 10.0)}, "max_output_tokens": 10_000}
    with FakeServer(["ok"], tokens=300_000) as server:
        listener = ask(WAYS[name], server, LONG, **money)[1]
    count = server.requests[0]
    assert "x = 1" in str(count.body)
    assert not {"stream", "background", "store", "max_tokens", "max_output_tokens"} & set(count.body)
    (settlement,) = listener.settlements
    assert settlement.reserved == pytest.approx(0.306 + 0.1)


@pytest.mark.parametrize("name", COUNTED)
@pytest.mark.parametrize("tokens", [None, 0, 450_000, 10**9])
def test_too_many_or_no_count_and_nothing_else_is_sent(name, tokens):
    money = {"max_cost": 0.5, "prices": {WAYS[name].model: Price(1.0, 10.0)}, "max_output_tokens": 10_000}
    with FakeServer(["ok"], tokens=tokens) as server:
        with pytest.raises(OverBudgetError) as caught:
            ask(WAYS[name], server, LONG, **money)
    assert len(server.requests) == 1
    assert caught.value.needed_usd == pytest.approx(0.459 + 0.08 if tokens == 450_000 else 0.600007 + 0.08)


@pytest.mark.parametrize(("name", "money"), [*((name, {"max_cost": 0.8}) for name in COUNTED), ("responses", {})])
def test_what_the_bound_allows_is_not_counted_nor_where_there_is_no_limit(name, money):
    with FakeServer(["ok"], tokens=1) as server:
        ask(WAYS[name], server, LONG, prices={WAYS[name].model: Price(1.0, 10.0)}, max_output_tokens=10_000, **money)
    assert not re.search(COUNTERS, server.requests[0].path)


def test_a_chat_server_is_asked_for_no_count():
    money = {"max_cost": 0.5, "prices": {"some-model": Price(1.0, 10.0)}, "max_output_tokens": 10_000}
    with FakeServer(["ok"], tokens=1) as server, pytest.raises(OverBudgetError):
        ask(WAYS["chat"], server, LONG, **money)
    assert server.requests == []


def test_a_limit_is_named_by_its_place():
    own = Settings(max_cost=0.000001, sources={USER: {"max_cost": 0.000001}})
    told = "your own config.toml's max_cost of 1e-06 is too low for openai:gpt-6.2-sol: "
    with pytest.raises(TooLittleMoneyError, match=re.escape(told)):
        require_money(SOL, own, LONG)
    (limit,) = own.origin("max_cost", "1e-06")[:1]
    with pytest.raises(
        OverBudgetError, match=r"^the next call could exceed your own config.toml's max_cost of 1e-06: "
    ):
        Ledger(1e-06, named=in_words((limit,))).reserve(1, "a call")


def test_within_the_limit_the_answer_is_asked_for():
    with FakeServer(answers=["ok"]) as server:
        assert ask(WAYS["messages"], server, max_cost=10.0)[0].text == "ok"
    with FakeServer() as server:
        with pytest.raises(OverBudgetError, match=r"could exceed --max-cost 1e-06"):
            ask(WAYS["messages"], server, max_cost=0.000001)
        assert not server.requests


def test_money_for_a_shorter_answer_asks_for_that():
    with FakeServer(answers=["ok"]) as server:
        ask(WAYS["messages"], server, max_cost=2.0)
    (request,) = server.requests
    assert request.body["max_tokens"] == 99_993  # of 128,000: two dollars at 20 for a million, less the prompt


BROKEN = [Fault("drop_mid_body", times=9)]


@pytest.mark.parametrize("name", ["messages", "chat"])
def test_a_broken_stream_is_not_repeated_with_money_for_one_call(name):
    """One that may be paid for stays reserved: four calls were made for the money of one and a half."""
    money = {"max_cost": 0.15, "max_output_tokens": 10_000, "prices": {WAYS[name].model: Price(1.0, 10.0)}}
    listener = Listener()
    with FakeServer(answers=["ok"] * 9, faults=BROKEN) as server:
        with open_way(WAYS[name], server.base_url(name), Clock().timing(), **money) as llm:
            with pytest.raises(OverBudgetError):
                llm.complete(SHORT_PROMPT, listener)
    assert len(server.requests) == 1
    assert listener.unsettled == pytest.approx([0.1], abs=0.001)


@pytest.mark.parametrize("name", ["messages", "chat"])
def test_a_retry_asks_for_a_shorter_answer_if_the_money_left_covers_only_that(name):
    """Else one failure of a server would end each run whose limit is below the cost of two longest answers."""
    money = {"max_cost": 0.19, "max_output_tokens": 10_000, "prices": {WAYS[name].model: Price(0.0, 10.0)}}
    listener = Listener()
    with FakeServer(answers=["ok"] * 3, faults=[Fault("drop_mid_body", times=1)]) as server:
        with open_way(WAYS[name], server.base_url(name), Clock().timing(), **money) as llm:
            assert llm.complete(SHORT_PROMPT, listener).text == "ok"
    assert [request.body["max_tokens"] for request in server.requests] == [10_000, 9_000]
    assert listener.unsettled == pytest.approx([0.1], abs=0.001)


@pytest.mark.parametrize("kind", ["status", "html"])
def test_a_refused_request_costs_nothing(kind):
    fault = Fault(kind, status=503, times=2)
    with FakeServer(answers=["ok"], faults=[fault]) as server:
        response, listener = ask(
            WAYS["messages"],
            server,
            max_cost=0.1,
            max_output_tokens=10_000,
            prices={"claude-opus-5-5": Price(0.0, 10.0)},
        )
    assert response.text == "ok"
    assert len(server.requests) == 3
    assert listener.unsettled == []


def test_an_answer_without_usage_is_charged_the_worst_case():
    money = {"max_cost": 0.15, "max_output_tokens": 10_000, "prices": {"some-model": Price(0.0, 10.0)}}
    unmetered = Answer("ok", input_tokens=0, cached=0, written=0, output_tokens=0, reasoning=0)
    with FakeServer(answers=[unmetered, unmetered]) as server:
        with open_way(WAYS["chat"], server.base_url("chat"), Clock().timing(), **money) as llm:
            assert llm.complete(SHORT_PROMPT, Listener()).settlement.cost_usd is None
            with pytest.raises(OverBudgetError):
                llm.complete(SHORT_PROMPT, Listener())
    assert len(server.requests) == 1


@pytest.mark.parametrize("provider", ["openai", "chat"])
def test_a_gateway_may_write_a_cache_that_nobody_asked_for(provider):
    prompt, priced = Prompt("", "", "x" * 1000), Settings(prices={"m": Price(1.0, 10.0, cache_write=1.25)})
    bid = bid_for(ModelChoice(provider, "m"), priced, prompt, math.inf)
    assert bid.reading_usd == pytest.approx((1250 if provider == "chat" else 1000) / 10**6)
