"""`resume` and the fallback first ask for an accepted job, whose cost stays reserved."""

import contextlib
import json
import re
import signal
import socket
from pathlib import Path
from typing import Any

import pytest
from command import Run, Start, the_log, wait_for
from fake_server import FakeServer, Fault

from code_commit.exchange import Cost, Prompt
from code_commit.fleet.results import recorded_cost
from code_commit.llm.asking import asking
from code_commit.llm.models import choose_model
from code_commit.llm.vendor import LlmConfig
from code_commit.project import find_project
from code_commit.redaction import Redactor
from code_commit.runs.attempt_log import AttemptLog
from code_commit.runs.log import open_run_log
from code_commit.runs.progress import Progress
from code_commit.runs.record import load_run_record
from code_commit.settings import Price, Settings

RUN_JSON = "agent-config/logs/*/run.json"
FIRST, SECOND = "openai:gpt-6.2-sol", "anthropic:claude-opus-5-5"
RIGHT = "^^^ok.txt\nok\n^^^end\n"
PRICES = 'max_output_tokens = 10000\n[prices."gpt-6.2-sol"]\ninput = 0.0\noutput = 33.0\n'
"""A job costs up to $0.33."""


@pytest.fixture
def root(project_folder: Path) -> Path:
    for provider in ("openai", "anthropic"):
        file = project_folder / "agent-config" / f"{provider}-key.txt"
        file.write_text(f"test-key-of-{provider}")
        file.chmod(0o600)
    (project_folder / "agent-config" / "config.toml").write_text(PRICES)
    return project_folder


def record(root: Path) -> dict[str, Any]:
    return json.loads((the_log(root) / "run.json").read_text())


def refused_polls(status: int) -> Fault:
    return Fault("status", "poll", 999, status, body={"error": {"message": f"This is a {status}."}})


def asked(server: FakeServer, *more: str) -> list[str]:
    return ["--model", FIRST, "--base-url", server.base_url("openai"), "--llm-timeout", "1", *more]


@pytest.mark.slow
@pytest.mark.parametrize("status", [400, 401, 402, 403, 503])
def test_a_job_that_was_accepted_is_not_made_again_without_money_for_two(status, root: Path, run_code_commit: Run):
    with FakeServer([RIGHT] * 5, [refused_polls(status)]) as server:
        done = run_code_commit(root, *asked(server, "--max-cost", "0.5"))
        assert done.returncode == 3, done.stderr
        assert record(root)["totals"]["unsettled_usd"] == pytest.approx(0.33)
        assert record(root)["error"]["may_be_paid"]
        for _ in range(2):
            assert run_code_commit(root, "resume").returncode == 3
        assert (len(server.jobs), record(root)["totals"]["unsettled_usd"]) == (1, pytest.approx(0.33))


def test_resume_fetches_the_job_whose_polls_were_refused(root: Path, run_code_commit: Run):
    with FakeServer([RIGHT], [refused_polls(401)]) as server:
        assert run_code_commit(root, *asked(server, "--max-cost", "0.5")).returncode == 3
        server.faults.clear()
        done = run_code_commit(root, "resume")
        assert (done.returncode, len(server.jobs)) == (0, 1), done.stderr
    (attempt,) = record(root)["attempts"]
    assert (attempt["unsettled_usd"], attempt["cost_usd"]) == ([], pytest.approx(40 * 33 / 1e6))


def fallback(server: FakeServer) -> list[str]:
    return ["--fallback-model", SECOND, "--fallback-base-url", server.base_url("anthropic")]


def test_the_fallback_is_not_asked_without_money_for_both_and_resume_fetches_the_job(root, run_code_commit: Run):
    with FakeServer([RIGHT], [refused_polls(403)]) as first, FakeServer([RIGHT]) as second:
        done = run_code_commit(root, *asked(first, *fallback(second), "--max-cost", "0.4"))
        assert (done.returncode, second.requests) == (3, []), done.stderr
        assert "--max-cost 0.4: at most $0.3300 unsettled so far, the prompt" in done.stderr
        assert record(root)["error"]["may_be_paid"]
        first.faults.clear()
        done = run_code_commit(root, "resume")
        assert (done.returncode, len(first.jobs), second.requests) == (0, 1, []), done.stderr
    (attempt,) = record(root)["attempts"]
    assert (attempt["model"], attempt["job_id"]) == (FIRST, None)


def test_the_fallback_asks_for_the_job_before_it_makes_a_call(root: Path, run_code_commit: Run):
    refused_once = Fault("status", "poll", 1, 403, body={"error": {"message": "Not now."}})
    with FakeServer([RIGHT], [refused_once]) as first, FakeServer([RIGHT]) as second:
        done = run_code_commit(root, *asked(first, *fallback(second)))
    assert (done.returncode, len(first.jobs), second.requests) == (0, 1, []), done.stderr
    assert record(root)["attempts"][0]["model"] == FIRST


def test_with_money_for_both_the_fallback_answers_and_the_job_stays_unsettled(root: Path, run_code_commit: Run):
    with FakeServer([RIGHT], [refused_polls(403)]) as first, FakeServer([RIGHT]) as second:
        done = run_code_commit(root, *asked(first, *fallback(second), "--max-cost", "2"))
    assert (done.returncode, len(second.requests)) == (0, 1), done.stderr
    (attempt,) = record(root)["attempts"]
    assert (attempt["model"], attempt["unsettled_usd"]) == (SECOND, [pytest.approx(0.33)])
    assert record(root)["totals"]["cost_usd"] == attempt["cost_usd"] > 0


def test_a_job_that_has_ended_without_an_answer_is_counted_once(root: Path, run_code_commit: Run):
    ended = {"id": "resp_1", "status": "cancelled", "usage": {"input_tokens": 10, "output_tokens": 1000}}
    with FakeServer([RIGHT], [Fault("status", "poll", 1, body=ended)]) as server:
        assert run_code_commit(root, *asked(server)).returncode == 3
        assert record(root)["totals"]["cost_usd"] == pytest.approx(0.033)
        done = run_code_commit(root, "resume")
    assert (done.returncode, len(server.jobs)) == (0, 2), done.stderr
    assert record(root)["totals"]["cost_usd"] == pytest.approx(0.033 + 40 * 33 / 1e6)
    assert record(root)["totals"]["usage"]["output"] == 1040


@pytest.mark.slow
def test_what_nobody_can_tell_the_cost_of_stands_apart_in_every_sum(root: Path, run_code_commit: Run):
    """The first request is lost, the second is answered, and the repair's job is never given."""
    wrong = "^^^ok.txt\nwrong\n^^^end\n"
    lost = Fault("status", status=504, body={"error": {"message": "Timeout."}})
    with FakeServer([wrong, RIGHT], [lost]) as server:
        done = run_code_commit(root, *asked(server, "--max-repairs", "0", "--llm-timeout", "20"))
        assert "$0.0013 and at most $0.3300 unsettled" in done.stderr
        server.faults += [Fault("status", "poll", 999, 401, body={"error": {"message": "No."}})]
        ended = run_code_commit(root, *asked(server))
    assert (done.returncode, ended.returncode) == (1, 3)
    assert "Cost: at most $0.3300 unsettled (no reply reported the cost)." in ended.stderr
    listed = run_code_commit(root, "log").stdout
    assert " $0.0013 + ≤$0.33 " in listed
    assert re.search(r" llm.*  ≤\$0\.33 ", listed, re.IGNORECASE), listed
    assert "total     0 files changed in" in run_code_commit(root, "log", "latest").stdout
    assert ", at most $0.3300 unsettled\n" in run_code_commit(root, "log", "latest").stdout
    rows = {" ".join(row.split()) for row in run_code_commit(root, "log", "--stats").stdout.splitlines()}
    assert {"cost $0.0013", "unsettled, at most $0.6600", "answers of unknown cost -"} <= rows
    (stats,) = json.loads(run_code_commit(root, "log", "--stats", "--json").stdout)
    assert stats["unsettled_usd"] == pytest.approx(0.66)
    assert "at most $0.33 unsettled" in run_code_commit(root, "log", "--html", "-").stdout


def test_a_reply_with_nan_is_logged_as_json(root: Path, run_code_commit: Run):
    body = b'{"id": "r", "status": "completed", "seconds": NaN, "output": []}'
    with FakeServer(faults=[Fault("status", body=body, times=9)]) as server:
        run_code_commit(root, *asked(server), "--max-repairs", "0")

    def refuse(name: str) -> None:
        raise AssertionError(name)

    json.loads((the_log(root) / "1-response.json").read_text(), parse_constant=refuse)


def test_an_answer_of_the_log_settles_the_latest_request_and_not_one_that_was_lost_before(root: Path):
    project, progress = find_project(root), Progress(Redactor([]), quiet=True)
    settings = Settings(max_output_tokens=10_000, prices={"gpt-6.2-sol": Price(0.0, 33.0)})
    log = open_run_log(project, "run", settings, progress)
    log.record.model = FIRST
    attempt, prompt = AttemptLog(log, 1), Prompt("", "", "Do it.")
    attempt.asking(prompt)
    for usd in (0.5, 0.33):
        attempt.reserved(usd)
    content = [{"type": "output_text", "text": RIGHT}]
    body = {"id": "r", "status": "completed", "usage": {"input_tokens": 9, "output_tokens": 1000}}
    attempt.replied(200, {}, body | {"output": [{"type": "message", "content": content}]})
    with asking(LlmConfig(choose_model(FIRST), None, settings), project, log) as complete:
        assert complete(prompt, attempt).text == RIGHT
    assert attempt.record.cost == Cost(pytest.approx(0.033), 0.5)


@pytest.mark.parametrize("price", [None, 0.0])
def test_a_call_that_an_interrupt_ends_may_have_been_paid_for_unless_its_price_is_zero(
    price, root: Path, start_code_commit: Start, run_code_commit: Run
):
    if price is not None:
        (root / "agent-config" / "config.toml").write_text('[prices]\n"tiny" = {input = 0, output = 0}\n')
    with FakeServer([RIGHT], [Fault("stall")]) as server:
        chosen = ["--model", "chat:tiny", "--base-url", server.base_url("chat")]
        process = start_code_commit(root, *chosen)
        wait_for(lambda: server.requests)
        process.send_signal(signal.SIGINT)
        said = process.communicate(timeout=180)[1]
        ended, is_lost = record(root), price is None
        assert (ended["status"], ended["error"]["may_be_paid"]) == ("interrupted", is_lost), said
        assert ended["totals"]["unpriced"] == ended["attempts"][0]["unpriced"] == is_lost
        assert ("Cost: 1 unused answer that may have been charged at an unknown price.\n" in said) == is_lost, said
        assert ("1 unused answer" in run_code_commit(root, "log", "latest").stdout) == is_lost
        rows = {" ".join(row.split()) for row in run_code_commit(root, "log", "--stats").stdout.splitlines()}
        assert f"answers of unknown cost {1 if is_lost else '-'}" in rows
        assert (recorded_cost(load_run_record((the_log(root) / "run.json").read_bytes())).settled is None) == is_lost
        done = run_code_commit(root, "resume")
    assert done.returncode == 0, done.stderr
    assert record(root)["totals"]["unpriced"] == is_lost
    assert ("1 unused answer that may have been charged" in done.stderr) == is_lost


def test_a_call_that_is_not_sent_whole_cannot_have_been_paid_for(root: Path, start_code_commit: Start):
    """The server never accepts the connection: its queue is full."""
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen(0)
        address = server.getsockname()
        with contextlib.ExitStack() as stack:
            for _ in range(3):
                waiting = stack.enter_context(socket.socket())
                waiting.setblocking(False)
                waiting.connect_ex(address)
            url = f"http://127.0.0.1:{address[1]}/v1"
            process = start_code_commit(root, "--model", FIRST, "--base-url", url)
            wait_for(
                lambda: [
                    each for _ in root.glob(RUN_JSON) for each in record(root)["attempts"] if each["unsettled_usd"]
                ],
                60,
            )
            process.send_signal(signal.SIGINT)
            said = process.communicate(timeout=180)[1]
    ended = record(root)
    assert (ended["status"], ended["error"]["may_be_paid"]) == ("interrupted", False), said
    assert (ended["totals"]["unsettled_usd"], ended["totals"]["unpriced"]) == (0, 0)
    assert "Cost:" not in said
