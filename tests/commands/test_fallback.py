"""`fallback_model`: it takes over when the first model cannot be called, for good, and never for a bad answer."""

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from command import Run, the_log
from fake_apis import Answer
from fake_server import FakeServer, Fault

KEYS = {"openai": "test-key-of-openai-01", "anthropic": "test-key-of-anthropic-02", "chat": "test-key-of-chat-03"}
FIRST, SECOND = "openai:gpt-6.2-sol", "anthropic:claude-opus-5-5"
WRONG, RIGHT = "^^^ok.txt\nwrong\n^^^end\n", "^^^ok.txt\nok\n^^^end\n"


@pytest.fixture
def root(project_folder: Path) -> Path:
    for provider in ("openai", "anthropic"):
        give_key(project_folder, provider)
    return project_folder


def give_key(root: Path, provider: str) -> None:
    file = root / "agent-config" / f"{provider}-key.txt"
    file.write_text(KEYS[provider])
    file.chmod(0o600)


def options(first: FakeServer, second: FakeServer, *more: str) -> list[str]:
    base = ["--model", FIRST, "--base-url", first.base_url("openai")]
    return [*base, "--fallback-model", SECOND, "--fallback-base-url", second.base_url("anthropic"), *more]


def set_prices(root: Path, first: float, second: float) -> None:
    """In US dollars per million tokens of input."""
    prices = ((FIRST, first), (SECOND, second))
    tables = (f'[prices."{model}"]\ninput = {price}\noutput = 0\n' for model, price in prices)
    (root / "agent-config" / "config.toml").write_text("".join(tables))


def record(root: Path) -> dict[str, Any]:
    return json.loads((the_log(root) / "run.json").read_text())


def refusal(status: int, code: str) -> Fault:
    return Fault("status", status=status, body={"error": {"message": f"It is {code}", "code": code}}, times=99)


CAUSES = {
    "outage": (Fault("status", status=503, times=99), ["--llm-timeout", "0.5"], "answered 503"),
    "quota": (refusal(429, "insufficient_quota"), [], "no money or quota is left there"),
    "unknown model": (refusal(404, "model_not_found"), [], "check the name of the model (gpt-6.2-sol)"),
    "a job that is lost": (replace(refusal(401, "invalid_api_key"), stage="poll"), [], "openai-key.txt is refused"),
    "key refused": (refusal(401, "invalid_api_key"), [], "openai-key.txt is refused"),
}


@pytest.mark.slow
@pytest.mark.parametrize(("fault", "more", "why"), CAUSES.values(), ids=CAUSES)
def test_it_takes_over_for_good_when_the_first_model_cannot_be_asked(
    fault, more, why, root: Path, run_code_commit: Run
):
    with FakeServer(answers=[RIGHT], faults=[fault]) as first, FakeServer(answers=[WRONG, RIGHT]) as second:
        done = run_code_commit(root, *options(first, second, *more))
    assert done.returncode == 0, done.stderr
    (told,) = [line for line in done.stderr.splitlines() if "takes over" in line]
    assert told.startswith(f"warning: {FIRST} cannot be called, so {SECOND} takes over: ")
    assert why in told
    assert [f"attempt {number} of 4: {SECOND} answered" in done.stderr for number in (1, 2)] == [True, True]
    assert len(second.requests) == 2
    assert KEYS["anthropic"] not in str(first.requests)
    assert KEYS["openai"] not in str(second.requests)
    after = record(root)
    assert [attempt["job_id"] for attempt in after["attempts"]] == [None, None]
    assert (after["model"], [attempt["model"] for attempt in after["attempts"]]) == (FIRST, [SECOND, SECOND])
    assert told.removeprefix("warning: ") in [warning["message"] for warning in after["warnings"]]
    assert f"attempt 2 (repair, {SECOND}): " in run_code_commit(root, "log", "latest").stdout
    assert f"repair, {SECOND}<" in run_code_commit(root, "log", "--html", "-").stdout


def test_a_wrong_address_of_the_fallback_is_named_as_its_own(root: Path, run_code_commit: Run):
    page = Fault("status", status=200, body=b"<title>Welcome</title>")
    with FakeServer(faults=[refusal(401, "invalid_api_key")]) as first, FakeServer(faults=[page]) as second:
        done = run_code_commit(root, *options(first, second))
    assert (done.returncode, len(second.requests)) == (3, 1), done.stderr
    assert "name the address of the API with --fallback-base-url" in done.stderr
    assert "resume continues this run; add --fallback-base-url URL" in done.stderr
    with FakeServer(answers=[RIGHT]) as another:
        url = ["--fallback-base-url", another.base_url("anthropic")]
        resumed = run_code_commit(root, "resume", *url)
    assert (resumed.returncode, len(another.requests)) == (0, 1), resumed.stderr
    assert record(root)["options"]["fallback_base_url"] == url[1]


def test_the_same_model_at_another_address_is_asked_second(root: Path, run_code_commit: Run):
    give_key(root, "chat")
    with FakeServer(answers=[WRONG]) as first, FakeServer(answers=[WRONG, RIGHT]) as second:
        both = ["--model", "chat:m", "--fallback-model", "chat:m"]
        urls = ["--base-url", first.base_url("chat"), "--fallback-base-url", second.base_url("chat")]
        done = run_code_commit(root, *both, *urls, "--max-repairs", "0")
    assert (done.returncode, len(first.requests), second.requests) == (1, 1, []), done.stderr


def test_it_is_priced_by_its_own_table(root: Path, run_code_commit: Run):
    set_prices(root, 1, 7)
    with FakeServer(answers=[WRONG]) as first, FakeServer(answers=[RIGHT]) as second:
        done = run_code_commit(root, *options(first, second))  # the first has no second answer
    assert done.returncode == 0, done.stderr
    attempts = record(root)["attempts"]
    assert [attempt["model"] for attempt in attempts] == [FIRST, SECOND]
    assert [attempt["cost_usd"] for attempt in attempts] == pytest.approx([0.001, 0.007])


@pytest.mark.parametrize("bad", ["no block", Answer(RIGHT, ending="cut_off"), "^^^cannot\nno gcc\n^^^end\n"])
def test_a_bad_answer_is_no_reason(bad, root: Path, run_code_commit: Run):
    with FakeServer(answers=[bad]) as first, FakeServer(answers=[RIGHT]) as second:
        done = run_code_commit(root, *options(first, second, "--on-rejected", "stop"))
    assert (done.returncode, second.requests) == (4, []), done.stderr


def test_a_call_beyond_max_cost_is_no_reason_for_a_fallback(root, run_code_commit: Run):
    set_prices(root, 1_000, 4_000)
    with FakeServer(answers=[WRONG]) as first, FakeServer(answers=[RIGHT]) as second:
        refused = run_code_commit(root, *options(first, second, "--max-cost", "1"))
        assert (refused.returncode, first.jobs, second.requests) == (3, {}, []), refused.stderr
        most = float(re.search(r"tokens costs up to \$([\d.]+)", refused.stderr)[1])
        done = run_code_commit(root, *options(first, second, "--max-cost", str(4 * most + 0.5)))
    assert done.returncode == 3, done.stderr
    assert [request.path for request in second.requests] == ["/v1/messages/count_tokens"]
    assert "takes over" in done.stderr
    assert "$1.0000 so far, the prompt" in done.stderr


def test_both_out_of_reach_ends_with_3_and_both_reasons(root: Path, run_code_commit: Run):
    dead = refusal(401, "invalid_api_key")
    with FakeServer(answers=[WRONG]) as first, FakeServer(faults=[dead]) as second:
        done = run_code_commit(root, *options(first, second))
    assert done.returncode == 3
    assert "anthropic-key.txt is refused" in done.stderr.rpartition("code-commit: ")[2]
    assert f"{FIRST} cannot be called, so {SECOND} takes over: 127.0.0.1 answered 400" in done.stderr
    port = int(record(root)["options"]["fallback_base_url"].rpartition(":")[2])
    with FakeServer(faults=[dead], port=port) as second:
        assert run_code_commit(root, "resume").returncode == 3
    assert len(second.requests) == 1, "it is not asked as its own fallback"
    with FakeServer(answers=[RIGHT], port=port) as second:
        resumed = run_code_commit(root, "resume")
    assert resumed.returncode == 0, resumed.stderr
    assert "cannot be called" not in resumed.stderr
    assert len(second.requests) == 1


def test_what_the_first_may_have_been_paid_is_told_where_the_fallback_fails_too(root: Path, run_code_commit: Run):
    """There is no price of either: only these words of the record tell it."""
    give_key(root, "chat")
    refused = refusal(401, "x")
    with FakeServer(faults=[Fault("drop"), refused]) as first, FakeServer(faults=[refused]) as second:
        models = ["--model", "chat:a", "--fallback-model", "chat:b"]
        urls = ["--base-url", first.base_url("chat"), "--fallback-base-url", second.base_url("chat")]
        done = run_code_commit(root, *models, *urls)
    assert (done.returncode, len(first.requests), len(second.requests)) == (3, 2, 1), done.stderr
    assert (record(root)["error"]["kind"], record(root)["error"]["may_be_paid"]) == ("key", True)


def test_it_chooses_the_files_unless_another_model_does(root: Path, run_code_commit: Run):
    for number in range(40):
        (root / f"part_{number}.py").write_text("".join(f"value_{line} = {line}\n" for line in range(200)))
    choice = "^^^files\npart_7.py\n^^^end\n"
    (root / "agent-config" / "config.toml").write_text('rollup = "select"\n')
    with FakeServer(faults=[refusal(401, "x")]) as first, FakeServer(answers=[choice, RIGHT]) as second:
        other = run_code_commit(root, *options(first, second, "--select-model", "openai:gpt-6.2-astra"))
        assert (other.returncode, second.requests) == (3, []), other.stderr
        done = run_code_commit(root, *options(first, second))
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("takes over") == len(second.requests) == 2


PREFLIGHT = {
    "key": (["--fallback-model", "gemini"], "no key for gemini"),
    "name": (["--fallback-model", "gpd-5"], "unknown model 'gpd-5'"),
    "address": (["--fallback-model", "chat:x"], "--fallback-model chat: needs --fallback-base-url, such as"),
    "unencrypted": (["--fallback-base-url", "http://example.org", "--fallback-model", SECOND], "--fallback-base-url would send your prompts, and any key, to"),
    "price": (["--fallback-model", "anthropic:mine", "--max-cost", "1"], '--max-cost needs a price for mine: add [prices."mine"]'),
    "folder": (["--fallback-model", "replay:nowhere"], "there is no folder nowhere"),
}  # fmt: skip


@pytest.mark.parametrize(("more", "said"), PREFLIGHT.values(), ids=PREFLIGHT)
def test_the_preflight_checks_it(more, said, root: Path, run_code_commit: Run):
    with FakeServer(answers=[RIGHT]) as first:
        done = run_code_commit(root, "--model", FIRST, "--base-url", first.base_url("openai"), *more)
    assert (done.returncode, first.requests) == (2, []), done.stderr
    assert said in done.stderr


def test_the_preflight_measures_the_prompt_by_the_smaller_window(root: Path, run_code_commit: Run):
    (root / "agent-config" / "codeRollup.txt").write_text("--- a ---\n" + "word " * 200_000)
    small = ["--fallback-model", "anthropic:claude-sonnet-4-5"]
    done = run_code_commit(root, "--model", FIRST, "--base-url", "http://127.0.0.1:9/v1", *small)
    assert (done.returncode, "the prompt does not fit anthropic:claude-sonnet-4-5" in done.stderr) == (2, True)


def test_check_names_it(root: Path, run_code_commit: Run):
    (root / "agent-config" / "config.toml").write_text(f'model = "{FIRST}"\nfallback_model = "{SECOND}"\n')
    shown = run_code_commit(root, "check").stdout
    rows = {" ".join(row.split()[1:]) for row in shown.splitlines()}
    assert {f"fallback model {SECOND}", "fallback key agent-config/anthropic-key.txt"} <= rows
    assert "fallback base URL https://api.anthropic.com" in " ".join(rows)


@pytest.mark.parametrize(("model", "times"), [("chat:b", 2), (SECOND, 1)])
def test_base_url_is_that_of_a_fallback_of_the_same_provider_too(model, times, root: Path, run_code_commit: Run):
    give_key(root, "chat")
    url = "http://127.0.0.1:9/v1"
    (root / "agent-config" / "config.toml").write_text(f'model = "chat:a"\nbase_url = "{url}"\n')
    shown = run_code_commit(root, "check", env={"CODE_COMMIT_FALLBACK_MODEL": model}).stdout
    assert shown.count(url) == times
