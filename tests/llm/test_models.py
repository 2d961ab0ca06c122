"""Models: how one is chosen, its prices and its window, and what a prompt costs."""

import math
import random
import re
import string
import time

import pytest

from code_commit.errors import NoKeyError, NotSetUpError, TooLittleMoneyError
from code_commit.exchange import CHARACTERS_PER_TOKEN, Prompt, Usage
from code_commit.llm.keys import ApiKey, Keys
from code_commit.llm.ledger import ROUNDING
from code_commit.llm.models import VENDORS, choose_fallback, choose_model, context_window, longest_prompt
from code_commit.llm.money import bid_for, cost_of, price_of, require_money
from code_commit.llm.vendor import LlmConfig, ModelChoice, estimate_tokens, most_tokens
from code_commit.settings import COMMAND_LINE, Price, Settings

NOW = Settings()


def choice(provider, name):
    return ModelChoice(provider, name)


def on_day(monkeypatch, day):
    monkeypatch.setattr(time, "gmtime", lambda: time.strptime(day, "%Y-%m-%d"))


@pytest.mark.parametrize(
    ("model", "usage", "dollars"),
    [
        (("openai", "gpt-6.2-sol"), Usage(input=100_000, output=1_000_000), 0.2 + 10),
        (("openai", "gpt-6.2-sol"), Usage(input=272_000), 0.544),
        (("openai", "gpt-6.2-sol"), Usage(input=272_001, output=1_000_000), 272_001 * 4 / 1e6 + 15),
        (("openai", "gpt-6.2-sol"), Usage(input=300_000, cached_input=100_000, cache_write=100_000), 0.4 + 0.02 + 0.5),
        (("openai", "gpt-5.5"), Usage(input=100_000, cache_write=100_000), 0.5),
        (
            ("anthropic", "claude-opus-5-5"),
            Usage(input=900_000, cached_input=500_000, cache_write=300_000),
            0.4 + 0.1 + 2.4,
        ),
        (("anthropic", "claude-haiku-5-5"), Usage(input=100_000), 0.01),
        (("anthropic", "claude-haiku-5-5"), Usage(input=200_000), 0.1),
        (("anthropic", "claude-sonnet-4-5-20250929"), Usage(input=100_000, output=100_000), 0.3 + 1.5),
        (("gemini", "gemini-3.1-pro-preview"), Usage(input=300_000, cached_input=100_000), 0.8 + 0.04),
        (("chat", "deepseek/deepseek-v4-pro"), Usage(input=1_000_000), 1.32),
        (("openai", "gpt-99"), Usage(input=5), None),
        (("openai", "gpt-6.2-sol"), Usage(), None),
    ],
)
def test_cost(model, usage, dollars):
    cost = cost_of(choice(*model), NOW, usage)
    assert cost == (None if dollars is None else pytest.approx(dollars))


@pytest.mark.parametrize(
    ("usage", "dollars"), [(Usage(input=100_000, output=1_000), 0.0105), (Usage(output=1_000), 0.0025)]
)
def test_a_long_prompt_has_its_price_by_the_count_and_by_the_estimate_where_no_count_is(usage, dollars):
    cost = cost_of(choice("anthropic", "claude-haiku-5-5"), NOW, usage, most_input=150_000)
    assert cost == pytest.approx(dollars)


@pytest.mark.parametrize("tokens", [1_000, 150_000, 250_000, 300_000])
@pytest.mark.parametrize("stable", ["", "x"])
def test_no_model_s_answer_costs_more_than_its_bid(stable, tokens):
    known = [choice(vendor.name, name) for vendor in VENDORS.values() for name in vendor.models]
    for model in (*known, *(choice("chat", f"{each.provider}/{each.name}") for each in known)):
        bid = bid_for(model, NOW, Prompt("", stable, ""), math.inf, counted=tokens)
        written = tokens if stable or model.provider == "chat" else 0
        for parts in ({}, {"cached_input": tokens}, {"cache_write": written}):
            usage = Usage(input=tokens, output=bid.output, **parts)
            assert cost_of(model, NOW, usage) <= bid.usd + ROUNDING, (model, parts)


@pytest.mark.parametrize("name", ["gpt-6.2-sol", "openai:gpt-6.2-sol"])
def test_the_price_of_config_toml_counts_first(name):
    settings = Settings(prices={name: Price(100, 200)})
    usage = Usage(input=1_000_000, cached_input=500_000, output=10_000)
    assert cost_of(choice("openai", "gpt-6.2-sol"), settings, usage) == pytest.approx(102)
    assert price_of(choice("openai", "gpt-6.2-sol"), settings) == Price(100, 200)


def test_a_price_that_names_the_provider_counts_before_one_for_the_name_alone():
    """The same name costs another price at another host."""
    settings = Settings(prices={"gpt-6.2-sol": Price(100, 200), "openai:gpt-6.2-sol": Price(3, 4)})
    assert price_of(choice("openai", "gpt-6.2-sol"), settings) == Price(3, 4)
    assert price_of(choice("chat", "gpt-6.2-sol"), settings) == Price(100, 200)


def test_announced_prices_begin_on_their_day(monkeypatch):
    argon = choice("gemini", "gemini-4-argon")
    on_day(monkeypatch, "2026-11-30")
    assert price_of(argon, NOW) == Price(2, 10, 0.10)
    on_day(monkeypatch, "2026-12-01")
    assert price_of(argon, NOW) == Price(4, 20, 0.20)


def test_windows():
    assert context_window(choice("openai", "gpt-6.2-sol"), NOW) == 1_050_000
    assert context_window(choice("anthropic", "claude-sonnet-4-5-20250929"), NOW) == 200_000
    assert context_window(choice("chat", "llama"), NOW) is None
    assert context_window(choice("chat", "llama"), Settings(context_window=4096)) == 4096


def test_the_estimate_is_a_token_for_3_2_characters():
    assert estimate_tokens("x" * 3200) == 1000
    assert estimate_tokens("") == 0


RANDOM = random.Random(7)


@pytest.mark.parametrize(
    ("letters", "least"),
    [
        (string.ascii_letters + string.digits + "+/", 1.35),
        (string.ascii_letters + string.digits + "-_", 1.35),
        (string.ascii_letters, 1.35),
        ("0123456789abcdef", 1.7),
        ("\u7684\u4e00\u662f\u4e0d\u4e86\u4eba\u6211\u5728\u6709\u4ed6", 0.9),
        ("\uac00\ub098\ub2e4\ub77c\ub9c8", 0.9),
        ("\u0431\u0443\u043a\u0432\u044b", 1.5),
        ("\U0001f600\U0001f680", 0.5),
    ],
)
def test_letters_that_take_more_tokens_count_for_more(letters: str, least: float):
    text = "".join(RANDOM.choices(letters, k=5_000))
    assert len(text) / least <= estimate_tokens(f"{text}\n") <= most_tokens(text)


@pytest.mark.parametrize(
    "line", ["=" * 79, "-" * 300, "test_a_name_" * 9, "x" * 500, "one_name_of_many_words_without_digits_" * 3]
)
def test_a_long_line_of_few_different_signs_is_no_code_of_bytes(line: str):
    assert estimate_tokens(line) == round(len(line) / CHARACTERS_PER_TOKEN)


KEY = "sk-test-0123456789"


MODELS = {
    "gemini:some": "gemini:some",
    "openai:ft:gpt-4:x": "openai:ft:gpt-4:x",
    "chat:llama3:8b": "chat:llama3:8b",
    "replay:agent-config/logs/x": "replay:agent-config/logs/x",
    "gpt-9": "openai:gpt-9",
    "o3-mini": "openai:o3-mini",
    "claude-opus-5-5": "anthropic:claude-opus-5-5",
    "gemini-4-argon": "gemini:gemini-4-argon",
    "gemini": "gemini:gemini-4-argon",
    "openai": "openai:gpt-6.2-sol",
    "anthropic": "anthropic:claude-opus-5-5",
}


@pytest.mark.parametrize(("said", "chosen"), MODELS.items())
def test_a_model_names_its_provider(said, chosen):
    assert str(choose_model(said, {})) == chosen


@pytest.mark.parametrize("said", ["llama3", "foo:bar", "chat", "chat:", "replay", "replay:", "opus", "o", "openai:"])
def test_a_model_of_no_provider_is_refused(said):
    with pytest.raises(NotSetUpError):
        choose_model(said, {})


def test_with_nothing_said_the_first_provider_with_a_key_is_asked():
    anthropic, openai = ApiKey("anthropic", KEY, ""), ApiKey("openai", KEY, "")
    assert str(choose_model("", {"anthropic": anthropic})) == "anthropic:claude-opus-5-5"
    assert str(choose_model("", {"anthropic": anthropic, "openai": openai})) == "openai:gpt-6.2-sol"
    with pytest.raises(NotSetUpError, match="GEMINI_API_KEY, OPENAI_API_KEY or ANTHROPIC_API_KEY"):
        choose_model("", {})


def test_a_chat_key_alone_names_no_model():
    keys = Keys({"chat": ApiKey("chat", KEY, "")})
    with pytest.raises(NotSetUpError, match=r"^there is a key for chat:, but no model and no address: name both"):
        choose_model("", keys)
    keys = Keys()
    keys.unfit["chat"] = "CODE_COMMIT_CHAT_API_KEY holds no API key"
    with pytest.raises(NoKeyError, match="CODE_COMMIT_CHAT_API_KEY holds no API key"):
        choose_model("", keys, keys.unfit)


OWN, OTHER = "http://127.0.0.1:1/v1", "http://127.0.0.1:2/v1"
FALLBACKS = {
    # the fallback, settings; its address, and whether it takes the run's way to its own
    "at the run's address": ("chat:b", {"base_url": OWN}, f"chat:{OWN}", True),
    "at its own": ("chat:b", {"base_url": OWN, "fallback_base_url": OTHER}, f"chat:{OTHER}", False),
    "of another provider, each at its vendor's": ("openai:gpt-6.2-sol", {}, "", False),
    "of another provider": ("openai:gpt-6.2-sol", {"base_url": OWN}, "", False),
    "of another provider, at the same address": (
        "openai:gpt-6.2-sol",
        {"base_url": OWN, "fallback_base_url": f"openai:{OWN}"},
        f"openai:{OWN}",
        False,
    ),
}


@pytest.mark.parametrize(("model", "given", "address", "same_way"), FALLBACKS.values(), ids=FALLBACKS)
def test_a_fallback_takes_of_the_run_s_settings_those_that_are_its_own(model, given, address, same_way):
    told = {"model": "chat:a", "fallback_model": model, "key_header": "x-key", "context_window": 9_000, **given}
    settings = Settings(**told, max_cost=7.0, sources={COMMAND_LINE: told})
    fallback = choose_fallback(choice("chat", "a"), settings)
    assert (str(fallback.choice), fallback.role, fallback.key) == (model, "fallback", None)
    kept = fallback.settings
    assert (kept.base_url, kept.fallback_model, kept.context_window, kept.max_cost) == (address, "", None, 7.0)
    assert kept.key_header == ("x-key" if same_way else Settings().key_header)


def test_a_fallback_that_is_unknown_is_named_by_its_own_setting():
    for model, said in (("chat", "--fallback-model chat:NAME"), ("ollama:x", "--fallback-model chat:x")):
        with pytest.raises(NotSetUpError, match=said):
            choose_fallback(choice("openai", "gpt-6.2-sol"), Settings(fallback_model=model))


def test_a_prompt_has_the_room_of_the_smaller_window_each_with_its_own_answer():
    small, large = "anthropic:claude-sonnet-4-5-20250929", "openai:gpt-6.2-sol"
    alone = {name: longest_prompt(LlmConfig(choose_model(name), None, NOW)) for name in (small, large)}
    assert alone[small] < alone[large]
    for model, other in ((small, large), (large, small)):
        fallback = LlmConfig(choose_model(other), None, NOW)
        assert longest_prompt(LlmConfig(choose_model(model), None, NOW, fallback)) == alone[small]
    mine = Settings(fallback_model=small, context_window=8_000, max_output_tokens=1_000)
    llm = LlmConfig(choose_model(large), None, mine, choose_fallback(choose_model(large), mine))
    assert longest_prompt(llm) == 7_000, "the window that is set is the run's own"


def test_too_little_money_tells_what_the_least_answer_needs_and_what_is_enough():
    model, prompt = choice("anthropic", "claude-opus-5-5"), Prompt("", "", "x" * 32_000)
    least, most = (bid_for(model, NOW, prompt, 0.0, counted) for counted in (0, None))
    with pytest.raises(TooLittleMoneyError) as caught:
        require_money(model, Settings(max_cost=0.01), prompt)
    assert caught.value.needed_usd == pytest.approx(least.usd, abs=1e-4)
    assert caught.value.needed_usd >= least.usd
    assert float(re.search(r"\$([\d.]+) is enough", str(caught.value))[1]) == pytest.approx(most.usd, abs=1e-4)
    assert least.usd + 1e-3 < most.usd
    assert "the run asks anthropic to count" in require_money(model, Settings(max_cost=most.usd - 1e-3), prompt)
    assert require_money(model, Settings(max_cost=most.usd), prompt) == ""
