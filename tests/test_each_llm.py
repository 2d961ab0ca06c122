"""Each promise about an LLM, kept by each LLM of a run: the first model, its fallback, and the one that chooses files.

A test is a row of promises, its parameter the LLM that must keep them. The run's other LLM has another provider,
address, key and price, and does what the role needs: it refuses, or writes the change after the choice.
"""

import json
import os
import signal
import time
from collections.abc import Sequence
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from command import git
from fake_server import Fault
from scripted_llm import LEAST, LIMIT, Model, Played, Script, Turn, turns
from story_log import Done, call, dollars, near

from code_commit.llm.models import VENDORS
from code_commit.llm.vendor import estimate_tokens
from code_commit.settings import Facet, settings_for

pytestmark = pytest.mark.usefixtures("no_waits")

EFFORT, TENANT, WINDOW = "of-some-effort", "name-of-a-tenant", 6_000
ADDRESSES, BOTH = ("base_url", "fallback_base_url"), ("own", "other")
LOSSES = {
    "dropped": Fault("drop_mid_body"),
    "ended": Fault("early_end"),
    "reset": Fault("reset_after_headers"),
    "page": Fault("html"),
    "500": Fault("status", status=500, body={"error": {"message": "Broken."}}),
    "no job": Fault("status", body={"id": "resp_1", "status": "expired"}),
    "late": Fault("stall"),
    "interrupt": Fault("stall"),
}
KEY_PROGRAM = """\
#!/bin/sh
echo x >>{calls}
printf 'test-key-of-program-%08d\\n' $(wc -l <{calls})
"""


class Teller(Script):
    """Refuses in more ways: `busy` quotes the key, whole and cut off, `later` wants an hour, `gone` has no such model.

    A `stranger` answers by another model. An answer is lost in the ways of `LOSSES`, too.
    """

    def next_fault(self, stage: str) -> Fault | None:
        fault = super().next_fault(stage)
        if stage != "call" or not self.played:
            return fault
        turn, request = self.played[-1]
        if request.path.startswith("/own/"):
            self.asked_at = time.time()
        key = request.headers.get("x-api-key") or request.headers.get("authorization", "").removeprefix("Bearer ")
        if turn.kind == "stranger":
            request.body["model"] = "stranger"
        if turn.kind in LOSSES:
            return self.lose(turn)
        told = {
            "busy": (503, f"{key} is busy, {key[:-5]}", {}),
            "later": (429, "Wait.", {"retry-after": "3600"}),
            "gone": (400, "The model alpha does not exist.", {}),
        }.get(turn.kind)
        return (
            told and Fault("status", status=told[0], body={"error": {"message": told[1]}}, headers=told[2])
        ) or fault

    def lose(self, turn: Turn) -> Fault:
        self._now = replace(turn, answer=replace(turn.answer, text="The half of an answer."))
        if turn.kind == "interrupt":
            os.kill(os.getpid(), signal.SIGINT)
        return replace(LOSSES[turn.kind])


class Case:
    """A project whose run asks the LLM `own` in a role."""

    def __init__(self, role: str, root: Path, server: Teller, patch: pytest.MonkeyPatch, provider: str) -> None:
        self.role, self.root, self.server, self.plays = role, root, server, list[Played]()
        self.by_option: Sequence[str] = ()  # the settings that are options, not of config.toml
        another = "openai" if provider == "anthropic" else "anthropic"
        self.own = Model(f"{provider}:alpha", "own", 300.0, 1100.0, 50.0, 200.0)
        self.other = Model(f"{another}:beta", "other", 0.07, 0.13, 0.017, 0.019)
        if provider in ("anthropic", "openai"):  # a chooser is asked at its vendor's address
            patch.setitem(VENDORS, provider, VENDORS[provider]._replace(base_url=self.address(self.own)))
        if role == "chooser":
            for number in range(40):
                (root / f"part_{number}.txt").write_text("".join(f"value {number} {line}\n" for line in range(300)))
            git(root, "add", "-A")
            git(root, "commit", "-qm", "parts")

    def address(self, model: Model) -> str:
        return f"{self.server.url}/{model.place}/v1"

    def run(self, *kinds: str, priced: Sequence[str] = BOTH, keys: Sequence[str] = BOTH, **settings: Any) -> Done:
        """Run with these turns of the LLM; the other plays its own before or after them.

        config.toml has prices of the one and the other, and agent-config their keys.
        """
        settings = {"max_output_tokens": LIMIT, "sandbox": "off"} | settings
        first = self.own if self.role == "first" else self.other
        settings = {"model": first.name, "base_url": self.address(first)} | settings
        if self.role == "fallback":
            settings = {"fallback_model": self.own.name, "fallback_base_url": self.address(self.own)} | settings
        if self.role == "chooser":
            settings |= {"rollup": "select", "select_model": self.own.name}
        words = [f"--{name.replace('_', '-')}={settings.pop(name)}" for name in self.by_option if name in settings]
        text = "".join(f"{name} = {json.dumps(value)}\n" for name, value in settings.items() if value is not None)
        text += f'[headers]\nX-Tenant = "{TENANT}"\n'
        for model in (self.own, self.other):
            prices = "".join(f"{name} = {getattr(model, name)}\n" for name in model._fields[2:])
            text += f'[prices."{model.name}"]\n{prices}' if model.place in priced else ""
            if model.place in keys:
                key = self.root / f"agent-config/{model.provider}-key.txt"
                key.write_text(model.key)
                key.chmod(0o600)
        (self.root / "agent-config/config.toml").write_text(text)
        before = turns("gone", start=60) if self.role == "fallback" else []
        after = turns("right", start=50) if self.role == "chooser" else []
        self.server.script = [*before, *self.made(*kinds), *after]
        return self.command("run", "--json", *words)

    def made(self, *kinds: str) -> list[Turn]:
        """Return the turns; in the role of a chooser the last one chooses files."""
        made = [replace(turn, files={}) for turn in turns(*kinds)]
        text = "^^^files\nok.txt\n^^^end\n" if self.role == "chooser" else "^^^ok.txt\nok\n^^^end\n"
        made[-1] = replace(made[-1], text=text, answer=replace(made[-1].answer, text=text))
        return made

    def command(self, *words: str) -> Done:
        done = call(self.root, *words)
        self.plays = [play for play in self.server.played if play.request.body["model"] in ("alpha", "stranger")]
        return done

    def log(self, *words: str) -> str:
        return call(self.root, "log", *words).out

    @property
    def pace(self) -> Path:
        """The file with the time of its next turn."""
        name = sha256(f"{self.address(self.own)} alpha".encode()).hexdigest()[:16]
        return Path("~/.local/state/code-commit", name).expanduser()

    @property
    def records(self) -> list[Any]:
        """The records of all runs, that of the choice first."""
        files = self.root.glob("agent-config/logs/*/run.json")
        return [json.loads(file.read_text()) for file in sorted(files, key=lambda file: file.stat().st_ctime_ns)]

    @property
    def record(self) -> Any:
        """The record of the run, or of the choice, in which the LLM was asked."""
        return next((each for each in self.records if (each["command"] == "rollup") == (self.role == "chooser")), None)

    @property
    def attempt(self) -> Any:
        return self.record["attempts"][0]

    @property
    def texts(self) -> list[str]:
        """All that a user may read of the runs."""
        views = ((), ("--json",), ("latest",), ("latest", "--html", "-"), ("latest", "--markdown"), ("--stats",))
        files = (file for file in self.root.glob("agent-config/logs/**/*") if file.is_file())
        return [*(self.log(*words) for words in views), *(file.read_text() for file in files)]


@pytest.fixture(params=["first", "fallback", "chooser"])
def role(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def case(role: str, project_folder: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Any:
    with Teller() as server:
        yield Case(role, project_folder, server, monkeypatch, getattr(request, "param", "anthropic"))


def test_it_is_asked_as_the_settings_say_and_counted(case: Case):
    own, more = case.own, {"reasoning_effort": EFFORT, "requests_per_minute": 10**9}
    done = case.run("busy", "right", **more)
    assert (done.code, len(case.plays)) == (0, 2), done.err
    for request in (play.request for play in case.plays):
        assert request.path.startswith("/own/v1/")
        assert own.key in str(request.headers)
        assert case.other.key not in str(request.headers)
        assert request.headers.get("x-tenant") == (TENANT if case.role == "first" else None)
        assert (f": {LIMIT}" in json.dumps(request.body), EFFORT in json.dumps(request.body)) == (True, True)
    elsewhere = [request for request in case.server.requests if not request.path.startswith("/own/")]
    assert own.key not in str(elsewhere)
    assert not any(own.key[:-5] in text for text in (done.out, done.err, *case.texts))
    assert case.pace.exists(), "for all runs of this user"

    answer, attempt = case.plays[-1].turn.answer, case.attempt
    assert [retry["status"] for retry in attempt["retries"]] == [503]
    assert (attempt["model"], attempt["usage"]) == (own.name, own.usage(answer))
    assert own.name in done.err
    assert near(attempt["cost_usd"], own.cost(answer))
    answered = [play.turn.answer for play in case.server.played if play.turn.kind == "right"]
    paid = own.cost(answer) + sum(map(case.other.cost, answered[1:]))
    assert near(done.json["totals"]["cost_usd"], paid)
    assert f"${paid:.4f}" in case.log("latest")
    assert all(dollars(paid) in case.log("latest", view, *to) for view, *to in (("--html", "-"), ("--markdown",)))
    assert near(sum(each["cost_usd"]["total"] for each in json.loads(case.log("--stats", "--json"))), paid)


def test_a_lost_answer_counts_with_its_highest_cost(case: Case):
    done = case.run("lost", "right", stream=True)
    assert (done.code, len(case.plays)) == (0, 2), done.err
    most = case.own.bid(case.plays[0].prompt)[0]
    assert near(case.attempt["unsettled_usd"][0], most)
    assert near(done.json["totals"]["unsettled_usd"], most)
    assert f"at most ${most:.4f} unsettled" in " ".join(case.log("latest").split())


@pytest.mark.parametrize("is_priced", [True, False], ids=["priced", "unpriced"])
@pytest.mark.parametrize(
    ("case", "lost"),
    [
        *(("chat", [kind, "500"]) for kind in ("dropped", "ended", "reset", "page")),
        *(("chat", ["ended", kind]) for kind in ("late", "interrupt")),
        ("openai", ["500", "no job"]),
    ],
    indirect=["case"],
)
def test_each_lost_answer_counts_once_with_its_highest_cost_or_as_one_without_a_price(
    lost: list[str], case: Case, *, is_priced: bool
):
    if case.own.provider == "chat" and case.role == "chooser":
        case.other = case.other._replace(name="chat:beta")  # at whose address the chooser is
    limit = 2.0 if "late" in lost else 600.0
    done = case.run(*lost, "right", priced=BOTH if is_priced else ["other"], llm_timeout=limit)
    assert [play.turn.kind for play in case.plays][:2] == lost, done.err
    record, most = case.record, [case.own.bid(play.prompt)[0] for play in case.plays[:2]]
    for sums in (record["attempts"][0], record["totals"]):
        assert sums["unpriced"] == (0 if is_priced else 2)
        unsettled = sums["unsettled_usd"]
        assert near(unsettled if sums is record["totals"] else sum(unsettled), sum(most) if is_priced else 0.0)
    if record["error"]:
        assert record["error"]["may_be_paid"]
        assert done.json["error"] == record["error"]
    told = "unsettled" if is_priced else "2 unused answers that may have been charged at an unknown price"
    assert told in done.err
    assert told in case.log(record["run"])
    assert ("≤" if is_priced else "?") in case.log()
    unknown = sum(each["unknown_costs"] for each in json.loads(case.log("--stats", "--json")))
    is_answered = record["attempts"][0]["finish_reason"] is not None
    assert unknown == (0 if is_priced else 2 + is_answered)


def test_an_answer_that_is_cut_off_is_told_and_not_used(case: Case):
    done = case.run("cut", "right", stream=False)
    assert (done.code, [bool(play.request.body.get("stream")) for play in case.plays]) == (0, [False] * 2), done.err
    assert (case.attempt["cut_off"], case.attempt["verdict"]) == (True, "rejected")
    assert "--max-output-tokens" in done.err


def test_its_answer_counts_in_its_pace(case: Case):
    done = case.run("right", tokens_per_minute=60_000)
    assert done.code == 0, done.err
    written, until = map(float, case.pace.read_text().split())
    assert until > written > case.server.asked_at, "it was written once the answer was there"


@pytest.mark.parametrize("other", ["anthropic:beta", "openai:beta"])
def test_headers_that_stand_alone_go_to_the_address_of_the_runs_model(other: str, case: Case):
    """A fallback of the same provider may have another address; the chooser of that provider is asked at the run's."""
    case.other, case.by_option = case.other._replace(name=other), settings_for(Facet.MODEL) + ADDRESSES
    done = case.run("right")
    assert done.code == 0, done.err
    tenants = [play.request.headers.get("x-tenant") for play in case.plays]
    is_there = case.role == "first" or (case.role == "chooser" and other.startswith("anthropic:"))
    assert tenants == [TENANT if is_there else None]


def test_an_answer_by_another_model_is_told(case: Case):
    done = case.run("stranger")
    assert done.code == 0, done.err
    assert "answered with the model stranger, not alpha" in " ".join(done.err.split())


def test_it_is_not_asked_for_more_than_the_money(case: Case):
    done = case.run("right", max_cost=2.0)
    assert (done.code, case.plays) == (2 if case.role != "fallback" else 3, []), done.err
    assert "max_cost of 2" in done.err
    done = case.run("right", max_cost=2.0, max_output_tokens=10)
    assert done.code == 0, done.err


def test_a_shorter_answer_is_wanted_where_the_money_is_enough_for_that_alone(case: Case):
    """By its bytes the prompt would cost too much, by its tokens it leaves as much as the shortest useful answer."""
    case.server.tokens = 1_000
    done = case.run("right", max_cost=9.5)
    assert done.code == 0, done.err
    assert [LEAST < play.request.body["max_tokens"] < LIMIT for play in case.plays] == [True]


def test_a_limit_of_the_money_needs_its_price(case: Case):
    done = case.run("right", max_cost=99.0, priced=["other"])
    assert (done.code, case.server.played) == (2, []), done.err
    assert 'add [prices."alpha"]' in done.err


def test_a_wait_beyond_the_limit_of_time_ends_the_call(case: Case):
    done = case.run("later", "right", llm_timeout=9.0)
    assert (done.code, len(case.plays)) == (3, 1)
    assert case.record["error"]["kind"] == "quota"
    assert "the next try would exceed the limit of 9.0 s (--llm-timeout)" in " ".join(done.err.split())


@pytest.mark.parametrize("case", ["chat"], indirect=True)
@pytest.mark.parametrize("role", ["first", "fallback"])
def test_its_address_gets_a_key_of_the_user_once_an_option_has_named_it(
    role: str, case: Case, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("CODE_COMMIT_CHAT_API_KEY", case.own.key)
    done = case.run("right", keys=["other"])
    assert (done.code, case.server.played) == (2, [])
    option = "--base-url" if role == "first" else "--fallback-base-url"
    assert f"confirm it once with {option} chat:{case.address(case.own)}" in " ".join(done.err.split())
    case.by_option = [option.removeprefix("--").replace("-", "_")]
    assert case.run("right", keys=["other"]).code == 0
    case.by_option = ()
    assert (case.run("right", keys=["other"]).code, len(case.plays)) == (0, 2)


@pytest.mark.parametrize("case", ["openai"], indirect=True)
def test_its_job_is_fetched_and_not_asked_for_again(case: Case):
    turn, script = case.made("held")[0], turns("right", start=50) if case.role == "chooser" else []
    case.made = lambda *_: [turn]
    done = case.run("held")
    assert (done.code, len(case.plays)) == (3, 1), done.err
    assert (case.attempt["job_model"], bool(case.attempt["job_id"])) == (case.own.name, True)
    case.server.holds_jobs, case.server.script = False, script
    resumed = case.command("resume")
    assert (resumed.code, len(case.plays), case.server.script) == (0, 1, []), resumed.err
    assert near(case.attempt["cost_usd"], case.own.cost(turn.answer))
    assert (case.attempt["unsettled_usd"], case.attempt["job_id"]) == ([], None)


@pytest.mark.parametrize("case", ["chat"], indirect=True)
@pytest.mark.parametrize("rollup", ["file", "fit"])
def test_its_prompt_has_room_in_the_window_that_its_own_server_tells(rollup: str, case: Case):
    lines = "".join(f"def value_of_part_{line}(first, second):\n    return {line}\n\n\n" for line in range(50))
    files = {f"part_{number}.py": lines for number in range(60)}
    for name, text in files.items():
        (case.root / name).write_text(text)
    git(case.root, "add", "-A")
    git(case.root, "commit", "-qm", "more")
    codebase = "".join(f"--- {name} ---\n{text}\n" for name, text in files.items())
    (case.root / "agent-config/codeRollup.txt").write_text(codebase)
    done = run_with_its_window(case, "right", rollup=rollup)
    if rollup == "file" and case.role != "chooser":
        assert (done.code, case.server.played) == (2, [])
        assert f"the prompt does not fit {case.own.name}" in done.err
        return
    assert done.code == 0, done.err
    assert [estimate_tokens(play.prompt) < WINDOW for play in case.plays] == [True]


@pytest.mark.parametrize("case", ["chat"], indirect=True)
@pytest.mark.parametrize("role", ["first", "fallback"])
def test_no_repair_is_asked_for_that_has_no_room_in_its_window(role: str, case: Case):
    (case.root / "build.sh").write_text("#!/bin/sh\nseq 1 20000\nexit 1\n")
    done = run_with_its_window(case, "wrong", "right")
    assert (done.code, len(case.plays)) == (3, 1), done.err
    assert f"the prompt does not fit {case.own.name}" in done.err


def run_with_its_window(case: Case, *kinds: str, **settings: Any) -> Done:
    """Run where a server of this machine tells the window of the LLM; `context_window` is for the first one alone."""
    with Teller(facts={"/props": {"default_generation_settings": {"n_ctx": WINDOW}}}) as case.server:
        case.address = lambda model: f"{case.server.url}{'/other' * (model is case.other)}/v1"
        if case.role == "chooser":  # at the address of the run's model
            case.other, case.address = case.other._replace(name="chat:beta"), lambda _: f"{case.server.url}/v1"
        of_first = 10**6 if case.role != "first" else None
        return case.run(*kinds, max_output_tokens=None, context_window=of_first, **settings)


def test_the_key_of_its_program_is_made_anew_when_it_is_refused(case: Case, tmp_path: Path, user: Path):
    """The program is for the address of its vendor, where the other LLM is not."""
    program = tmp_path / "key"
    program.write_text(KEY_PROGRAM.format(calls=tmp_path / "calls"))
    program.chmod(0o700)
    (user / "config.toml").write_text(f'model = "{case.own.name}"\nkey_command = "{program}"\n')
    vendors = {"first": {"base_url": None}, "fallback": {"fallback_base_url": None}, "chooser": {}}
    done = case.run("refused", "right", **vendors[case.role])
    assert done.code == 0, done.err
    sent = [play.request.headers["authorization"] for play in case.plays]
    assert sent == [f"Bearer test-key-of-program-{number:08d}" for number in (1, 2)]
    assert not any("test-key-of-program" in text for text in (done.out, done.err, *case.texts))


@pytest.mark.parametrize("case", ["chat"], indirect=True)
def test_a_refusal_names_its_own_options(case: Case):
    case.other = case.other._replace(name="chat:beta", place="own")
    done = case.run("gone")
    role = {"first": "", "fallback": "fallback-", "chooser": "select-"}[case.role]
    assert (done.code, len(case.plays)) == (3, 1)
    assert f"check the name of the model (alpha): --{role}model" in " ".join(done.err.split())
