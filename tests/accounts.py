"""An account of a run that the test keeps itself, and its comparison with run.json.

It has three witnesses, and none of them is the log that is to be checked: the turns that the server really played, with
the requests that it got; the builds, which write down each call; and the tree as the test knows it.
"""

import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fake_apis import Answer
from scripted_llm import Model, Played, Turn

from code_commit.fleet.results import recorded_cost
from code_commit.runs.record import load_run_record

QUERY = "Make ok.txt say the right word."
MACHINE_FAILED = 75
CHANGE = ("action", "path", "lines_added", "lines_removed")


@dataclass
class AttemptAccount:
    number: int
    kind: str
    model: str = ""
    turn: Turn | None = None
    counted: list[dict[str, int]] = field(default_factory=list)  # what final replies count, an answer or not
    cost: float | None = None
    unsettled: list[float] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)  # the kinds of its requests that failed
    pending: tuple[Turn, Model] | None = None  # a job that can still be fetched
    prompt: str = field(default="", repr=False)
    found: dict[str, str] = field(default_factory=dict, repr=False)  # the tree as it began
    verdict: str | None = None
    changes: list[tuple[str, str, int, int]] = field(default_factory=list)
    ends: list[int] = field(default_factory=list)  # the exit codes of its builds

    def count(self, answer: Answer, model: Model) -> None:
        self.counted.append(model.usage(answer))
        self.cost = (self.cost or 0.0) + model.cost(answer)

    @property
    def build(self) -> int | None:
        return self.ends[-1] if self.ends else None


@dataclass
class RunAccount:
    """What a run must have done by what the witnesses saw. `before` is the tree that it found."""

    command: str
    models: list[Model]
    before: dict[str, str]
    options: dict[str, Any] = field(default_factory=dict)  # of its beginning, but for those named to a later step
    attempts: list[AttemptAccount] = field(default_factory=list)
    folder: Path = Path()
    status: str = ""
    code: int = 0
    first_build: int | None = None
    choice: "RunAccount | None" = None
    query: str = QUERY
    given: str = ""  # the output of a build that failed elsewhere
    rolled_back: bool = False
    undone: bool = False
    undoes: "RunAccount | None" = None
    after: dict[str, str] = field(default_factory=dict)
    tree: dict[str, str] = field(default_factory=dict, repr=False)
    is_broken: bool = False  # the machine, which fails each build

    @property
    def name(self) -> str:
        return self.folder.name

    @property
    def most(self) -> int:
        return 1 if self.options.get("dry_run") else int(self.options.get("max_repairs", 3)) + 1

    @property
    def end(self) -> str:
        """Its status as people read it."""
        return "dry_run" if self.options.get("dry_run") and self.status == "success" else self.status

    @property
    def paid(self) -> float | None:
        """What it has cost, its choice of files too; None where nothing was counted."""
        costs = [attempt.cost for attempt in self.attempts if attempt.cost is not None]
        costs += [self.choice.paid] if self.choice and self.choice.paid is not None else []
        return sum(costs) if costs else None

    @property
    def may_be_paid(self) -> float:
        mine = sum(sum(attempt.unsettled) for attempt in self.attempts)
        return mine + (self.choice.may_be_paid if self.choice else 0.0)

    @property
    def counted(self) -> list[dict[str, int]]:
        """What all replies to it count, and those to its choice of files."""
        mine = [answer for attempt in self.attempts for answer in attempt.counted]
        return mine + (self.choice.counted if self.choice else [])

    @property
    def asked_model(self) -> str:
        return next((attempt.model for attempt in reversed(self.attempts) if attempt.model), self.models[0].name)

    @property
    def has_first_answer(self) -> bool:
        """Whether the log has an answer of the first attempt that writes files."""
        return self.command == "run" and bool(self.attempts and self.attempts[0].turn and self.attempts[0].turn.files)

    @property
    def touched(self) -> dict[str, str | None]:
        """The files that its answers changed, with what was there before."""
        paths = {path for attempt in self.attempts if attempt.verdict == "applied" for _, path, *_ in attempt.changes}
        return {path: self.before.get(path) for path in sorted(paths)}

    def play(self, played: Sequence[Played], tree: dict[str, str], *, is_broken: bool) -> None:
        """Go on with these requests, changing the tree as the answers want it."""
        if not played and self.status == "success":
            return
        self.status, self.tree, self.is_broken = "", tree, is_broken
        last = self.attempts[-1] if self.attempts else None
        if last and last.verdict == "applied" and last.build in (None, MACHINE_FAILED):
            self._build(last)
        if last and last.pending and last.turn is None:
            self._fetch(last, *last.pending)
        for play in played:
            assert not self.status, f"the run had ended as {self.status}, then asked for {play.turn.kind}"
            self._request(play)
        if not self.status:  # no money is left for the next request
            self._current.model = self.models[0].name
            self._end("llm_error", 3)
        if self.options.get("rollback") and self.status != "success":
            self.rolled_back = bool(self.touched)
            for path, text in self.touched.items():
                tree.pop(path, None)
                tree |= {} if text is None else {path: text}
        self.after = dict(tree)

    def _fetch(self, attempt: AttemptAccount, turn: Turn, model: Model) -> None:
        """Account for the answer of a job, whose model can be asked again."""
        attempt.pending, attempt.model = None, model.name
        attempt.unsettled.remove(model.bid(attempt.prompt)[0])
        self.models = [model, *(each for each in self.models if each != model)]
        self._judge(attempt, turn, model)

    def _request(self, play: Played) -> None:
        attempt, model = self._current, self.models[0]
        highest, longest = model.bid(play.prompt, self.left)
        assert highest <= self.left
        assert_carried(play, model, longest)
        attempt.model, attempt.prompt, kind = model.name, play.prompt, play.turn.kind
        attempt.failures += [] if play.turn.answers else [kind]
        if play.turn.answers:
            self._judge(attempt, play.turn, model)
        elif kind == "failed":
            attempt.count(play.turn.answer, model)
        elif kind != "refused":
            attempt.unsettled.append(highest)
        if kind == "held":
            attempt.pending = play.turn, model
        if kind in ("refused", "held") and len(self.models) > 1:
            self.models = self.models[1:]
            attempt.model = self.models[0].name
        elif kind in ("refused", "held"):
            self._end("llm_error", 3)

    @property
    def left(self) -> float:
        """The money that no request has taken."""
        limit = self.options.get("max_cost")
        return math.inf if limit is None else limit - (self.paid or 0.0) - self.may_be_paid

    @property
    def _current(self) -> AttemptAccount:
        """The attempt that has no answer yet, a new one if need be."""
        before = self.attempts[-1] if self.attempts else None
        if before is None or before.turn:
            kind = "repair" if self.command == "repair" else "initial"
            if before:
                kind = "retry" if before.verdict in ("rejected", "chosen") else "repair"
            self.attempts.append(AttemptAccount(len(self.attempts) + 1, kind, found=dict(self.tree)))
        return self.attempts[-1]

    def _judge(self, attempt: AttemptAccount, turn: Turn, model: Model) -> None:
        attempt.turn, tree = turn, self.tree
        attempt.count(turn.answer, model)
        is_last = attempt.number == self.most
        if turn.kind in ("empty", "cut"):
            attempt.verdict, earlier = "rejected", self.attempts[-2:-1]
            was_cut = turn.kind == "cut" and any(done.turn and done.turn.kind == "cut" for done in earlier)
            if is_last or was_cut or self.options.get("on_rejected") == "stop":
                self._end("rejected", 4)
        elif turn.kind == "choice":
            attempt.verdict = "chosen"
            self._end("success", 0)
        elif turn.kind == "files":
            attempt.verdict = "chosen"
            if is_last:
                self._end("rejected", 4)
        elif turn.kind == "cannot":
            attempt.verdict = "declined"
            self._end("declined", 4)
        else:
            new = written(turn, tree)
            attempt.changes = [change for path, text in new.items() if (change := changed(path, tree.get(path), text))]
            if self.options.get("dry_run"):
                self._end("success", 0)
                return
            attempt.verdict = "applied"
            for path, text in new.items():
                tree.pop(path, None)
                tree |= {} if text is None else {path: text}
            self._build(attempt)

    def _build(self, attempt: AttemptAccount) -> None:
        end = build_here(self.tree)
        attempt.ends.append(MACHINE_FAILED if self.is_broken else end)
        if self.is_broken:
            self._end("build_error", 5)
        elif attempt.build == 0:
            self._end("success", 0)
        elif attempt.number == self.most:
            self._end("build_failed", 1)

    def _end(self, status: str, code: int) -> None:
        self.status, self.code = status, code


def written(turn: Turn, tree: Mapping[str, str]) -> dict[str, str | None]:
    """Return what the files of an answer hold after it."""
    number = int(match[1]) if (match := re.search(r"\^\^\^find\nline (\d+)\n", turn.text)) else 0
    line = f"line {number}\n"
    edited = {"long.txt": tree["long.txt"].replace(line, f"line {number} {turn.word}\n")} if number else {}
    return {**turn.files, **edited}


def changed(path: str, old: str | None, new: str | None) -> tuple[str, str, int, int] | None:
    """Return a change as run.json has it: action, path, and the lines that came and went."""
    if old == new:
        return None
    before, after = (text.splitlines() if text else [] for text in (old, new))
    same = len([None for one, other in zip(before, after, strict=False) if one == other])
    action = "create" if old is None else "delete" if new is None else "replace"
    return action, path, len(after) - same, len(before) - same


def build_here(tree: dict[str, str]) -> int:
    """Do to the tree what build.sh does, and return its exit code."""
    word = tree["ok.txt"]
    tree |= {"stamp.txt": f"{word.strip()} was built\n", "long.txt": tree["long.txt"].replace(" no", " NO")}
    return 0 if word == "ok\n" else len(word)


def assert_carried(play: Played, model: Model, longest: int) -> None:
    """The request went to this model's own address, with its own name and key, and no other's."""
    request = play.request
    assert request.path.startswith(f"/{model.place}/"), (request.path, model)
    assert request.body["model"] == model.name.partition(":")[2]
    headers = str(request.headers)
    assert model.key in headers
    assert request.headers.get("x-tenant") == (model.place if model.place == "first" else None)
    assert not re.search(f"test-key-of-(?!{model.provider})", headers)
    limits = [request.body.get(name) for name in ("max_tokens", "max_completion_tokens", "max_output_tokens")]
    limits.append(request.body.get("generation_config", {}).get("max_output_tokens"))
    assert longest in limits


def near(one: float | None, other: float | None) -> bool:
    return (one is None) == (other is None) and abs((one or 0) - (other or 0)) < 1e-9


def check_attempt(attempt: AttemptAccount, kept: Any, account: RunAccount) -> None:
    turn, model = attempt.turn, attempt.model
    assert (kept["number"], kept["kind"], kept["model"], kept["verdict"]) == (
        *(attempt.number, attempt.kind, model, attempt.verdict),
    )
    assert near(kept["cost_usd"], attempt.cost), (attempt, kept)
    assert len(kept["unsettled_usd"]) == len(attempt.unsettled), (attempt, kept)
    assert all(map(near, kept["unsettled_usd"], attempt.unsettled)), (attempt, kept)
    assert kept["usage"] == (added(attempt.counted) if attempt.counted else None)
    changes = [tuple(change[name] for name in CHANGE) for change in kept["changes"]]
    assert sorted(changes) == sorted(attempt.changes)
    assert (kept["build"] or {}).get("exit_code") == attempt.build
    assert kept["cut_off"] == (turn is not None and turn.kind == "cut") == (kept["incomplete"] is not None)
    assert kept["asked"] == (["long.txt"] if turn and turn.kind == "files" else [])
    assert kept["job_id"] is None or turn is None
    assert len(kept["retries"]) == sum(kind in ("lost", "broken", "failed") for kind in attempt.failures)
    assert (kept["seconds"] is not None) >= (turn is not None)
    if turn:
        reply = json.loads((account.folder / f"{attempt.number}-response.json").read_text())
        assert abs(reply["totalResponseTime"] / 1000 - kept["seconds"]) < 0.001
    said = turn.text.split("\n")[0] if turn and turn.files else None
    assert said is None or kept["notes"].strip() == said
    assert kept["edits"] == (turn is not None and turn.kind == "edit")
    same = [done.number for done in account.attempts[: attempt.number - 1] if _is_same(done, attempt)]
    is_last = attempt.number == account.most or (account.status == "rejected" and attempt is account.attempts[-1])
    is_compared = (attempt.build not in (0, MACHINE_FAILED, None) or attempt.verdict == "rejected") and not is_last
    assert kept["same_change_as"] == (same[0] if same and is_compared and "^^^" in turn.text else None)
    failed = [done.number for done in account.attempts[: attempt.number - 1] if _fails_like(done, attempt)]
    if is_last and turn:
        failed = [0] if account.first_build == attempt.build and account.before["ok.txt"].strip() == turn.word else []
    assert kept["same_failure_as"] == (failed[0] if failed and attempt.build not in (0, MACHINE_FAILED, None) else None)


def _fails_like(one: AttemptAccount, other: AttemptAccount) -> bool:
    return bool(one.turn and other.turn and one.build == other.build and one.turn.word == other.turn.word)


def _is_same(one: AttemptAccount, other: AttemptAccount) -> bool:
    return bool(one.turn and other.turn and one.verdict == other.verdict and one.turn.text == other.turn.text)


def added(usages: Sequence[Mapping[str, int]]) -> dict[str, int]:
    names = ("input", "cached_input", "cache_write", "output", "reasoning")
    return {name: sum(usage[name] for usage in usages) for name in names}


def check_totals(account: RunAccount, record: Any) -> None:
    totals = record["totals"]
    if error := record["error"]:
        assert error["may_be_paid"] == bool(account.attempts[-1].unsettled)
        assert near(error["left_usd"], account.left if error["kind"] == "budget" else None)
    of_fleet = recorded_cost(load_run_record(json.dumps(record)))
    assert near(of_fleet.settled, account.paid or 0.0)
    assert near(of_fleet.unsettled, account.may_be_paid)
    assert near(totals["cost_usd"], account.paid)
    assert near(totals["unsettled_usd"], account.may_be_paid)
    assert totals["usage"] == added(account.counted)
    assert totals["attempts"] == len(account.attempts)
    assert record["rolled_back"] == account.rolled_back
    touched = [] if account.rolled_back else account.touched
    standing = [path for path in touched if account.before.get(path) != account.after.get(path)]
    assert totals["files_changed"] == len(standing)
    choice = record["choice"] or {"seconds": 0.0}
    mine = [attempt["seconds"] or 0.0 for attempt in record["attempts"]]
    assert near(totals["llm_seconds"], sum(mine) + choice["seconds"])
    built = [attempt["build"] for attempt in record["attempts"]] + [record["first_build"]]
    assert near(totals["build_seconds"], sum(build["seconds"] for build in built if build))
    if account.command != "rollup":
        assert (record["first_build"] or {}).get("exit_code") == account.first_build


def check_builds(account: RunAccount, record: Any) -> None:
    """What the builds did to files is told beside what the answers did to them."""
    built = [done for done in account.attempts if done.ends]
    has_built = built or account.first_build is not None
    assert record["build_changes"] == (["stamp.txt"] if has_built else [])
    has_edits = any(done.turn and done.turn.kind == "edit" for done in built)
    assert [each["path"] for each in record["rewritten"]] == (["long.txt"] if has_edits else [])


def check_prompt(attempt: AttemptAccount, account: RunAccount) -> None:
    before, prompt = account.attempts[: attempt.number - 1], attempt.prompt
    assert account.query in prompt
    if attempt.number == 1 or "context_window" not in account.options:  # else the codebase may be made anew, to fit
        assert f"--- ok.txt ---\n{account.before['ok.txt']}" in prompt
    first = [account.before["ok.txt"].strip()] if account.first_build else []
    failed = first + [done.turn.word for done in before if done.build and done.turn]
    assert account.given in prompt
    is_short = account.options.get("prompt_layout") == "short"
    for word in failed:
        assert (f"The build reads {word}.\n" in prompt) == (is_short or word == failed[-1]), word
    for path in {path for done in before if done.ends for _, path, *_ in done.changes} if not is_short else ():
        now = attempt.found.get(path)
        assert (f"--- FILE REMOVED {path} ---" if now is None else f"--- FILE REPLACEMENT {path} ---\n{now}") in prompt
    if before and before[-1].verdict == "rejected" and before[-1].turn and before[-1].turn.kind == "empty":
        assert before[-1].turn.text in prompt
    for done in before:
        assert f"ttempt {done.number} " in prompt or is_short
