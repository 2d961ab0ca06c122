import pytest
from asking import WAYS, ask
from fake_server import FakeServer

from code_commit.errors import LLMError, NotSetUpError
from code_commit.exchange import Prompt
from code_commit.llm.models import Budget, explain_misfit
from code_commit.llm.vendor import ModelChoice
from code_commit.settings import Price, Settings

SOL = ModelChoice("openai", "gpt-6.2-sol")
PROMPT = Prompt("", "", "x" * 3_200_000, {"query": "q" * 10, "codebase": "x" * 3_199_990})  # about 1,000,000 tokens
PRICES = {"gpt-6.2-sol": Price(input=1.0, output=10.0)}


def test_a_prompt_that_does_not_fit_names_the_sizes_of_its_parts():
    said = explain_misfit(SOL, Settings(context_window=999_999), PROMPT)
    assert said == (
        "the prompt does not fit openai:gpt-6.2-sol: about 1,000,000 tokens, it reads 999,999 "
        '(query 10 bytes, codebase 3,199,990 bytes); rollup = "fit" in config.toml makes it fit'
    )
    assert explain_misfit(SOL, Settings(context_window=1_000_000), PROMPT) is None
    assert explain_misfit(ModelChoice("chat", "nobody-knows"), Settings(), PROMPT) is None
    with pytest.raises(LLMError, match="does not fit"):
        Budget(SOL, Settings(context_window=999_999)).check(PROMPT)


def test_a_call_that_could_pass_the_limit_is_not_made():
    settings = Settings(max_cost=3.1, max_output_tokens=100_000, prices=PRICES, context_window=10**7)
    budget = Budget(SOL, settings)
    budget.check(PROMPT)  # at most $1.6 in, at most $1 out
    budget.charge(0.4)
    budget.check(PROMPT)
    budget.charge(0.2)
    with pytest.raises(LLMError) as caught:
        budget.check(PROMPT)
    assert "$0.6000 are spent" in str(caught.value)
    assert "1,600,000 tokens costs up to $1.6000, 100,000 tokens of output up to $1.0000" in str(caught.value)


def test_a_cache_write_may_cost_more_than_the_prompt():
    price = Price(input=1.0, output=0.0, cache_write=1.25)
    settings = Settings(max_cost=1.9, prices={"gpt-6.2-sol": price}, context_window=10**7)
    with pytest.raises(LLMError, match=r"up to \$2\.0000"):
        Budget(SOL, settings).check(PROMPT)


def test_a_limit_needs_a_price():
    with pytest.raises(NotSetUpError, match="needs a price for nobody-knows"):
        Budget(ModelChoice("chat", "nobody-knows"), Settings(max_cost=1.0)).check(PROMPT)


def test_without_a_limit_nothing_is_asked():
    Budget(ModelChoice("chat", "nobody-knows"), Settings()).check(PROMPT)


def test_within_the_limit_the_answer_is_asked_for():
    with FakeServer(answers=["ok"]) as server:
        assert ask(WAYS["messages"], server, max_cost=10.0)[0].text == "ok"
    with FakeServer() as server:
        with pytest.raises(LLMError, match=r"could pass --max-cost 1e-06"):
            ask(WAYS["messages"], server, max_cost=0.000001)
        assert not server.requests
