"""Commands that follow one another in one project, each compared with an account of it."""

import contextlib
import io
import json
import re
import shutil
import signal
import sys
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import pytest
from accounts import (
    CHANGE,
    MACHINE_FAILED,
    QUERY,
    AttemptAccount,
    RunAccount,
    build_here,
    changed,
    check_attempt,
    check_builds,
    check_prompt,
    check_totals,
    near,
    written,
)
from command import git
from scripted_llm import CHOOSER, FIRST, LIMIT, SECOND, Model, Played, Script, Turn

from code_commit import api
from code_commit.build import hardened_meanwhile
from code_commit.cli import main
from code_commit.runs.log import RunLog
from code_commit.runs.replies import Replies
from code_commit.status import Status

ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGCHLD)
BUILD = """\
#!/bin/sh
echo "$CODE_COMMIT_RUN $CODE_COMMIT_ATTEMPT $(cat ok.txt)" >> ../builds
echo "$(cat ok.txt) was built" > stamp.txt
grep -q ' no' long.txt && sed 's/ no/ NO/' long.txt > ../long && cat ../long > long.txt
[ -e ../broken ] && exit 75
echo "The build reads $(cat ok.txt)."
[ "$(cat ok.txt)" = ok ] || exit $(cat ok.txt | wc -c)
"""

STATUS = {status.value: status.words for status in Status}
HEADLINES = {status.value: status.headline for status in Status} | {
    "build_failed": "The build", "nothing": "Nothing to repair: the build passes",
}  # fmt: skip


class Done(NamedTuple):
    """A command's end, and what it printed."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


def call(root: Path, *words: str) -> Done:
    """Run the command in this process, as its user would in the folder; the process is then as before."""
    hook = sys.unraisablehook
    before, streams = {number: signal.getsignal(number) for number in ENDING}, [io.BytesIO(), io.BytesIO()]
    out, err = (io.TextIOWrapper(stream, encoding="utf-8", write_through=True) for stream in streams)
    try:
        with contextlib.chdir(root), hardened_meanwhile(), contextlib.redirect_stdout(out):
            with contextlib.redirect_stderr(err):
                code = main(words)
    finally:
        sys.unraisablehook = hook
        for number, handler in before.items():
            signal.signal(number, handler)
    return Done(code, *(stream.getvalue().decode() for stream in streams))


class State(NamedTuple):
    """A copy of the project at a moment of a run, what the server had played by then, and what was built."""

    project: Path
    played: list[Played]
    built: list[str]
    moment: str


class Story:
    """A project with its server, and the account of all that was done in it."""

    def __init__(self, root: Path, server: Script, provider: str = "chat", other: str = "anthropic", **options: Any):
        self.root, self.server = root, server
        self.first, self.second, self.chooser = FIRST[provider], SECOND[other], CHOOSER[provider]
        self.options, self.by_api = options, False
        self.runs: list[RunAccount] = []
        self.tree = {"ok.txt": "not yet\n", "gone.txt": "to go\n", "stamp.txt": "\n"}
        self.tree["long.txt"] = "".join(f"line {number}\n" for number in range(1, 100))
        for name, content in {**self.tree, "build.sh": BUILD}.items():
            (root / name).write_text(content)
        git(root, "add", "-A")
        git(root, "commit", "-qm", "more")
        config = root / "agent-config"
        (config / "query.txt").write_text(f"{QUERY}\nAll of it.\n")
        self.write_rollup()
        settings = {"max_output_tokens": LIMIT, "sandbox": "off", "model": self.first.name}
        settings |= {"base_url": self.address(self.first)} | options
        if options.get("fallback_model"):
            settings["fallback_base_url"] = self.address(self.second)
        tables = ""
        for model in (self.first, self.second, self.chooser):
            tables += f'[prices."{model.name}"]\n'
            tables += "".join(f"{name} = {getattr(model, name)}\n" for name in model._fields[2:])
            key = config / f"{model.provider}-key.txt"
            key.write_text(model.key)
            key.chmod(0o600)
        lines = [f"{name} = {json.dumps(value)}\n" for name, value in settings.items()]
        headers = f'[headers]\nX-Tenant = "{self.first.place}"\n'
        (config / "config.toml").write_text("".join(lines) + tables + headers)

    def add_files(self, number: int) -> None:
        """Make the codebase so large that an LLM chooses its files."""
        for place in range(number):
            self.tree[f"part_{place}.txt"] = "".join(f"value {place} {line}\n" for line in range(300))
            (self.root / f"part_{place}.txt").write_text(self.tree[f"part_{place}.txt"])
        git(self.root, "add", "-A")
        git(self.root, "commit", "-qm", "parts")

    def write_rollup(self) -> None:
        text = "".join(f"--- {name} ---\n{content}\n" for name, content in sorted(self.tree.items()))
        (self.root / "agent-config" / "codeRollup.txt").write_text(text)

    def address(self, model: Model) -> str:
        return f"{self.server.url}/{model.place}/v1"

    @property
    def is_broken(self) -> bool:
        """Whether the machine fails each build."""
        return (self.root.parent / "broken").exists()

    def break_machine(self, *, broken: bool) -> None:
        file = self.root.parent / "broken"
        file.touch() if broken else file.unlink(missing_ok=True)

    @property
    def standing(self) -> list[RunAccount]:
        """The runs whose changes an undo may put back."""
        return [run for run in self.runs if run.command != "undo" and run.touched and not run.undone]

    def new_account(self, command: str, **options: Any) -> RunAccount:
        models = [self.first, *([self.second] if self.options.get("fallback_model") else [])]
        return RunAccount(command, models, dict(self.tree), self.options | options)

    def run(
        self, *words: str, script: Sequence[Turn] = (), given: str = "", task: str = "", **options: Any
    ) -> RunAccount:
        """Run the main job, `run` unless the words name another command, with this script of the LLM."""
        command = next((word for word in words if word in ("run", "repair", "resume")), "run")
        flags = [flag for name, value in options.items() for flag in _flags(name, value)]
        if command == "resume":
            account = self.runs[-1]
            account.options |= options
        else:
            account = self.new_account(command, **options)
            self.runs.append(account)
            self.write_rollup()
        if given:
            (self.root.parent / "given.txt").write_text(given)
            flags += ["--output", str(self.root.parent / "given.txt")]
            account.given = given
        if command == "resume":
            self.server.holds_jobs = False
        if command != "resume":
            account.query = task or (QUERY if command == "run" else "Make the build pass.")
        flags += ["-m", task] if task else []
        given_options = options | ({"output": given} if given else {}) | ({"query": task} if task else {})
        told = self.first_prompt(account, *flags) if command == "run" and script else None
        begun, before = time.monotonic(), self.seconds(account)
        if self.by_api and command != "resume":
            done, played = self.called(command, script, **given_options)
        else:
            done, played = self.command(*(words or ("run",)), "--json", *flags, script=script)
        elapsed = time.monotonic() - begun
        assert told is None or told == played[0].prompt
        if command == "repair" or (command == "run" and account.options.get("build_first")):
            account.first_build = build_here(self.tree)
            if command == "repair" and not account.first_build and not given:
                account.status, account.code = "success", 0
        of_choice = self.of_choice(account, played)
        if of_choice:
            self.choose(account, of_choice)
        choice = account.choice
        if choice and choice.status != "success":
            choice.folder = self.root / done.json["log_dir"]
            assert done.code == choice.code
            assert self.seconds(choice) - before <= elapsed, "no time counts twice"
            self.check_choice(choice)
            return account
        account.play(played[len(of_choice) :], self.tree, is_broken=self.is_broken)
        account.folder = self.root / done.json["log_dir"]
        assert done.code == account.code, (done, account)
        assert self.seconds(account) - before <= elapsed, "no time counts twice"
        self.check(account, printed=done.json)
        return account

    def apply(self, of: RunAccount, *, build: bool) -> RunAccount:
        """Apply the first answer of a run once more."""
        turn, account = of.attempts[0].turn, self.new_account("apply")
        assert turn is not None
        done, _ = self.command("apply", *["--build"] * build, str(of.folder / "1-response.txt"), "--json")
        attempt = AttemptAccount(1, "initial", verdict="applied")
        new = written(turn, self.tree)
        attempt.changes = [change for path, text in new.items() if (change := changed(path, self.tree.get(path), text))]
        for path, text in new.items():
            self.set_file(path, text)
        account.status, account.code = "success", 0
        if build:
            attempt.ends.append(build_here(self.tree))
            account.status, account.code = ("build_failed", 1) if attempt.build else ("success", 0)
        account.attempts, account.folder, account.after = [attempt], self.root / done.json["log_dir"], dict(self.tree)
        self.runs.append(account)
        assert done.code == account.code, done.err
        (kept,) = (record := self.record(account))["attempts"]
        assert sorted(tuple(change[name] for name in CHANGE) for change in kept["changes"]) == sorted(attempt.changes)
        assert (kept["verdict"], (kept["build"] or {}).get("exit_code")) == ("applied", attempt.build)
        assert (kept["usage"], kept["cost_usd"], kept["model"]) == (None, None, "")
        assert (record["command"], record["status"], record["model"]) == ("apply", account.status, "")
        assert files_of(self.root) == self.tree
        self.check_builds(account)
        return account

    def states(self, script: Sequence[Turn], moments: Collection[str] | None, folder: Path) -> list["State"]:
        """Run the main job, and keep copies of the project as its log is at some moments, or at all: a kill may come.

        A moment is the name of the file of the log that was written last, and how often run.json was since.
        """
        states: list[State] = []
        start, at, times = len(self.server.played), "", 0

        def then_copy(write: Callable[..., Any]) -> Callable[..., Any]:
            def written(log: Any, name: Any, *given: Any, **named: Any) -> Any:
                nonlocal at, times
                result = write(log, name, *given, **named)
                name = f"{name}-response.json" if isinstance(name, int) else name
                at, times = (at, times + 1) if name == "run.json" else (name, 0)
                moment = f"{at}+{times}"
                if any(self.root.glob("agent-config/logs/*/run.json")) and (moments is None or moment in moments):
                    copy = folder / str(len(states))
                    shutil.copytree(self.root, copy, symlinks=True)
                    states.append(State(copy, self.server.played[start:], self.built(), moment))
                return result

            return written

        with pytest.MonkeyPatch.context() as patch:
            for owner, name in ((RunLog, "_write"), (Replies, "write")):
                patch.setattr(owner, name, then_copy(getattr(owner, name)))
            _, played = self.command("run", script=script)
        self.prompts = [play.prompt for play in played if play.turn.answers]
        return states

    def resume_from(self, state: "State", script: Sequence[Turn]) -> None:
        """Resume the run of which a kill has left this: in the end it is the run that was not killed.

        A request without a reply on disk is lost, and asked again, unless the provider has its job.
        """
        shutil.rmtree(self.root)
        shutil.copytree(state.project, self.root, symlinks=True)
        (self.root.parent / "builds").write_text("")
        (file,) = (self.root / "agent-config" / "logs").glob("*/run.json")
        record = json.loads(file.read_text())
        file.write_text(json.dumps(record | {"pid": 2**30}))  # of no process
        attempt, played, left = (record["attempts"] or [None])[-1], list(state.played), script[len(state.played) :]
        account = self.new_account("run")
        account.folder = file.parent
        if played and played[-1].turn.answers and not (attempt["job_id"] or played[-1].turn.is_in(file.parent)):
            left, played[-1] = [played[-1].turn, *left], played[-1]._replace(turn=Turn("lost"))
        elif played and played[-1].turn.kind == "refused" and attempt["model"] == self.first.name:
            left = [played.pop().turn, *left]  # the fallback has not taken over
        done, more = self.command("resume", "--json", script=left)
        tree = dict(self.tree)
        account.play([*played, *more], tree, is_broken=False)
        if attempt:
            ends = [place for place, play in enumerate(state.played) if play.turn.answers][: attempt["number"] - 1]
            mine = [play for play in state.played[ends[-1] + 1 if ends else 0 :] if play.turn.kind != "refused"]
            if len(attempt["unsettled_usd"]) > len(mine):  # reserved, and then not sent
                account.attempts[attempt["number"] - 1].unsettled.insert(len(mine), attempt["unsettled_usd"][-1])
        assert done.code == account.code, done.err
        kept = self.record(account)
        for one, other in zip(account.attempts, kept["attempts"], strict=True):
            check_attempt(one, other, account)
        check_totals(account, kept)
        self.check_prompts(account)
        prompts = [attempt.prompt for attempt in account.attempts]
        assert [*map(without_times, prompts)] == [*map(without_times, self.prompts)]
        assert files_of(self.root) == tree
        builds, again = [*state.built, *self.built()], 0
        if state.built:
            recorded = record["attempts"][int(state.built[-1]) - 1]["build"]
            again = recorded is None or recorded["exit_code"] == 0
        assert set(builds) == {str(done.number) for done in account.attempts if done.ends}
        assert len(builds) == len(set(builds)) + again, "only a failed build is not repeated"

    def built(self) -> list[str]:
        """The attempts of the builds so far."""
        file = self.root.parent / "builds"
        return [line.split()[1] for line in file.read_text().splitlines()] if file.exists() else []

    def edit(self, path: str, text: str) -> None:
        """Change a file as its user."""
        (self.root / path).write_text(text)
        self.tree[path] = text

    def refuse(self, *words: str, code: int, said: str) -> None:
        """Run a command that ends so and changes nothing, no log either."""
        runs = sorted((self.root / "agent-config" / "logs").iterdir())
        done, _ = self.command(*words)
        assert (done.code, said in done.err) == (code, True), done.err
        assert files_of(self.root) == self.tree
        assert sorted((self.root / "agent-config" / "logs").iterdir()) == runs

    def undo(self, *words: str, of: RunAccount, attempt: int = 1) -> RunAccount:
        """Undo a run, from an attempt on: each file is again what it was before, and stays undone or not."""
        account = replace(self.new_account("undo"), undoes=of, status="success")
        of_attempt = ["--attempt", str(attempt)] if attempt > 1 else []
        if self.by_api:
            account.folder = self.root / api.undo(self.root, *words, attempt=attempt).log_dir
        else:
            done, _ = self.command("undo", *words, *of_attempt, "--json")
            assert done.code == 0, done.err
            account.folder = self.root / done.json["log_dir"]
        self.put_back(of, attempt, words[words.index("--path") + 1] if "--path" in words else None)
        account.after = dict(self.tree)
        self.runs.append(account)
        if attempt == 1 and "--path" not in words:
            link: RunAccount | None = of
            undone = True
            while link:
                link.undone, undone, link = undone, not undone, link.undoes
        assert files_of(self.root) == self.tree
        record = self.record(account)
        assert (record["undoes"], record["command"], record["status"]) == (of.name, "undo", "success")
        for run in self.runs:
            assert self.record(run)["undone"] == run.undone, run.name
        changes = [(path, account.before.get(path), self.tree.get(path)) for path in {*account.before, *self.tree}]
        expected = [change for each in changes if (change := changed(*each))]
        kept = [tuple(change[name] for name in CHANGE) for each in record["attempts"] for change in each["changes"]]
        assert sorted(kept) == sorted(expected)
        return account

    def put_back(self, of: RunAccount, attempt: int, only: str | None) -> None:
        tree = dict(of.before)
        if of.command == "undo":
            for path in {*of.before, *of.after}:
                if of.before.get(path) != of.after.get(path):
                    self.set_file(path, of.before.get(path))
            return
        for done in of.attempts[: attempt - 1]:
            if done.turn and done.verdict == "applied":
                for path, text in written(done.turn, tree).items():
                    tree.pop(path, None)
                    tree |= {} if text is None else {path: text}
        paths = {
            path for done in of.attempts[attempt - 1 :] if done.verdict == "applied" for _, path, *_ in done.changes
        }
        for path in paths:
            if only in (None, path):
                self.set_file(path, tree.get(path))

    def set_file(self, path: str, text: str | None) -> None:
        self.tree.pop(path, None)
        self.tree |= {} if text is None else {path: text}

    def check_stats(self) -> None:
        """The statistics are the sums of the accounts of all runs that asked an LLM, by the model asked last."""
        files = sorted(
            (self.root / "agent-config" / "logs").glob("*/run.json"), key=lambda file: moment(file.parent.name)
        )
        assert self.command("log", "--json")[0].json == [json.loads(file.read_text()) for file in files]
        asking = [run for run in self.runs if run.command in ("run", "repair") and run.attempts]
        models = {run.asked_model: [each for each in asking if each.asked_model == run.asked_model] for run in asking}
        lone = [run.choice for run in self.runs if run.choice and run.choice.status != "success"]
        told = {stats["model"]: stats for stats in self.command("log", "--stats", "--json")[0].json}
        assert told.keys() == models.keys() | {choice.asked_model for choice in lone}
        for model, stats in told.items():
            runs, alone = models.get(model, []), [choice for choice in lone if choice.asked_model == model]
            counted = [usage for run in (*runs, *alone) for usage in run.counted]
            ends = [("dry_run" if run.options.get("dry_run") else run.end, len(run.attempts)) for run in runs]
            passed = [str(tries) for end, tries in ends if end == "success"]
            assert stats["runs"] == len(runs)
            assert stats["passed"] == {tries: passed.count(tries) for tries in passed}
            ended = [end for end, _ in ends if end != "success"]
            assert stats["ended"] == {end: ended.count(end) for end in ended}
            tokens = sum(usage["input"] + usage["output"] for usage in counted)
            assert (stats["tokens"]["total"] or 0) == tokens
            paid, beside = ([run.paid for run in each if run.paid is not None] for each in (runs, alone))
            assert near(stats["cost_usd"]["total"], sum(paid + beside) if paid + beside else None)
            assert near(stats["cost_usd"]["median"], median(paid) if paid else None)
            assert near(stats["unsettled_usd"], sum(run.may_be_paid for run in (*runs, *alone)))
            assert stats["unknown_costs"] == 0
            totals = [self.record(run)["totals"] for run in (*runs, *alone)]
            for part in ("llm_seconds", "build_seconds"):
                assert near(stats[part]["total"] or 0.0, sum(each[part] for each in totals))
            rejected = [done for run in runs for done in run.attempts if done.verdict == "rejected"]
            assert stats["rejected_answers"] == len(rejected)
            edits = [done for run in runs for done in run.attempts if done.turn and done.turn.kind == "edit"]
            assert stats["edits"] == stats["edits_that_fit"] == len(edits)

    def called(self, command: str, script: Sequence[Turn], **options: Any) -> tuple[Done, list[Played]]:
        """Call the main job from Python, as a supervisor would."""
        start = len(self.server.played)
        self.server.script = list(script)
        record = getattr(api, command)(self.root, **options)
        played = self.server.played[start:]
        assert [play.turn for play in played] == list(script), record.message
        return Done(record.final_code, json.dumps(asdict(record)), ""), played

    def seconds(self, account: RunAccount) -> float:
        """How long it took by its record, or its choice of files, 0 where it has none yet."""
        folder = account.folder if account.folder != Path() else account.choice.folder if account.choice else Path()
        return json.loads((folder / "run.json").read_text())["totals"]["seconds"] if folder != Path() else 0.0

    def first_prompt(self, account: RunAccount, *flags: str) -> str | None:
        """Return the prompt that `prompt` prints for the same settings, None where a run tells the LLM more."""
        if account.options.get("build_first") or account.options.get("rollup") == "select":
            return None
        if self.by_api and "-m" in flags:  # beside a text the command writes a new codeRollup.txt, a call does not
            return None
        return self.command("prompt", *flags)[0].out

    def of_choice(self, account: RunAccount, played: list[Played]) -> list[Played]:
        """Return the requests that chose files, those before a run."""
        if account.options.get("rollup") != "select" or (account.choice and account.choice.status == "success"):
            return []
        kinds = [play.turn.kind for play in played]
        return played[: kinds.index("choice") + 1] if "choice" in kinds else played

    def choose(self, account: RunAccount, played: Sequence[Played]) -> None:
        """Account for the choice of files before a run."""
        models = {"models": [self.chooser]} if self.options.get("select_model") else {}
        choice = account.choice or replace(self.new_account("rollup"), **models)
        choice.play(played, self.tree, is_broken=False)
        account.choice = choice

    def check_choice(self, choice: RunAccount) -> None:
        record = self.record(choice)
        assert (record["command"], record["status"], record["exit_code"]) == ("rollup", choice.status, choice.code)
        assert record["model"] == (self.options.get("select_model") or self.first.name)
        for attempt, kept in zip(choice.attempts, record["attempts"], strict=True):
            check_attempt(attempt, kept, choice)
        check_totals(choice, record)

    def command(self, *words: str, script: Sequence[Turn] = ()) -> tuple[Done, list[Played]]:
        """Run a command; return its end, and what the LLM was asked meanwhile: all that the script has."""
        start = len(self.server.played)
        self.server.script = list(script)
        done = call(self.root, *words)
        played = self.server.played[start:]
        assert [play.turn for play in played] == list(script), done.err
        return done, played

    def record(self, account: RunAccount) -> Any:
        return self.command("log", "--json", account.name)[0].json

    def check(self, account: RunAccount, printed: Any) -> None:
        """Compare what is on disk, and all that the log tells of the run, with the account."""
        record = json.loads((account.folder / "run.json").read_text())
        assert printed == record == self.record(account)
        found = files_of(self.root)
        assert {path: text[-30:] for path, text in found.items() - self.tree.items()} == {}
        assert self.tree.keys() - found.keys() == set()
        assert record["query"] == account.query
        kept = {name: record["options"].get(name) for name in account.options}
        assert kept == account.options, "a resumed run keeps its settings, but for those named to it"
        assert {name: record[name] for name in ("status", "exit_code", "command", "model")} == {
            "status": account.status,
            "exit_code": account.code,
            "command": account.command,
            "model": self.first.name,
        }
        for attempt, kept in zip(account.attempts, record["attempts"], strict=True):
            check_attempt(attempt, kept, account)
        check_totals(account, record)
        if choice := account.choice:
            choice.folder = account.folder.with_name(record["choice"]["run"])
            self.check_choice(choice)
            of_choice = self.record(choice)
            seconds = sum(attempt["seconds"] or 0.0 for attempt in of_choice["attempts"])
            told = {"calls": len(choice.attempts), "model": choice.asked_model, "usage": of_choice["totals"]["usage"]}
            assert told.items() <= record["choice"].items()
            assert near(record["choice"]["seconds"], seconds)
            assert near(record["choice"]["cost_usd"], choice.paid)
            assert near(record["choice"]["unsettled_usd"], choice.may_be_paid)
            assert record["chosen"] == of_choice["chosen"]
        self.check_builds(account)
        if account.command != "apply":
            check_builds(account, record)
        self.check_prompts(account)
        self.check_diff(account)
        self.check_views(account, record)

    def check_builds(self, account: RunAccount) -> None:
        """The log has each build that was made, with what it printed."""
        file = self.root.parent / "builds"
        made = [line.split() for line in file.read_text().splitlines()] if file.exists() else []
        numbers = [number for name, number, *_ in made if name == account.name]
        of_choice = [number for name, number, *_ in made if account.choice and name == account.choice.name]
        given = account.folder / "given-build.txt"
        assert (given.read_text() if given.exists() else "") == account.given
        if account.first_build is not None:
            require_output(account.folder / "0-build.txt", account.before["ok.txt"].strip(), account.first_build)
        first = ["0"] if account.first_build is not None else []
        assert of_choice + numbers == first + [str(done.number) for done in account.attempts for _ in done.ends]
        for done in account.attempts:
            if done.ends and done.turn and done.build != MACHINE_FAILED:
                require_output(account.folder / f"{done.number}-build.txt", done.turn.word, done.ends[-1])

    def check_prompts(self, account: RunAccount) -> None:
        """Each prompt is the one of its own attempt: the task, and what came of the attempts before it."""
        for attempt in account.attempts:
            if attempt.prompt:
                kept = (account.folder / f"{attempt.number}-query.txt").read_text()
                assert attempt.prompt == kept, attempt
                check_prompt(attempt, account)
            if attempt.turn:
                assert (account.folder / f"{attempt.number}-response.txt").read_text() == attempt.turn.text

    def check_diff(self, account: RunAccount) -> None:
        """What `diff` tells of the latest run are the files that are not as they were before it."""
        changed = {path for path, text in account.touched.items() if account.after.get(path) != text}
        if account.rolled_back or not account.touched:
            return
        diff = self.command("diff", account.name)[0].out
        assert not self.by_api or diff == api.diff(self.root, account.name).diff.decode()
        assert set(re.findall(r"^diff --git a/\S+ b/(\S+)$", diff, re.MULTILINE)) == changed
        for path in changed:
            before, after = account.before.get(path, ""), account.after.get(path, "")
            assert {f"+{line}" for line in {*after.split("\n")} - {*before.split("\n")}} <= {*diff.split("\n")}
            assert {f"-{line}" for line in {*before.split("\n")} - {*after.split("\n")}} <= {*diff.split("\n")}

    def check_views(self, account: RunAccount, record: Any) -> None:
        """The page, the summary, the text and the table of the log tell the same verdict and the same money."""
        cost = in_words(account.paid, account.may_be_paid)
        page = self.command("log", account.name, "--html", "-")[0].out
        summary = self.command("log", account.name, "--markdown")[0].out
        text = self.command("log", account.name)[0].out
        row = next(
            line for line in self.command("log")[0].out.splitlines() if line.startswith(f"{short(account.name)} ")
        )
        assert f"{STATUS[account.end]} (exit code {account.code})" in text or account.undone
        assert cost in text.replace("\n          ", " "), (cost, text)
        for attempt in account.attempts:
            who = attempt.kind if attempt.model == self.first.name else f"{attempt.kind}, {attempt.model}"
            assert f"attempt {attempt.number} ({who}): " in text
            if attempt.turn and len(attempt.counted) == 1:
                answer, cost = attempt.turn.answer, in_words(attempt.cost, sum(attempt.unsettled))
                cell = cost.replace(" and at most ", " + ≤").replace(" unsettled", "")
                cells = f'"In">{answer.input_tokens:,}</td>|"Out">{answer.output_tokens:,}</td>|"Cost">{cell}</td>'
                assert all(each in page for each in cells.split("|")), cells
                spent = f"{answer.input_tokens:,} tokens in ({answer.cached:,} cached), {answer.output_tokens:,} out, "
                assert spent + cost in summary
                assert spent + cost in text
        has_nothing = account.command == "repair" and not account.attempts and account.status == "success"
        headline = HEADLINES["nothing" if has_nothing else account.end] if not account.undone else "then undone"
        assert headline in page.split("</h1>")[0]
        assert headline in summary.splitlines()[0]
        cells = re.split(r"\s{2,}", row)
        assert cells[1] == ("undone" if account.undone else STATUS[account.end])
        assert cells[2:4] == [str(len(account.attempts)), str(record["totals"]["files_changed"])]
        assert cells[4] == in_cell(account.paid, account.may_be_paid)


def _flags(name: str, value: Any) -> list[str]:
    flag = "--" + name.replace("_", "-")
    return [flag] if value is True else [flag, str(value)]


def short(name: str) -> str:
    return name.replace("-committing-code", "")


def moment(name: str) -> tuple[str, int]:
    """Return the second in which a run began, and its number in that."""
    second, _, number = name.partition("-committing-code")
    return second, int(number.removeprefix("-") or 1)


def in_words(paid: float | None, may_be_paid: float) -> str:
    settled = f"${paid:.4f}" if paid is not None and (paid or not may_be_paid) else ""
    unsettled = f"at most ${may_be_paid:.4f} unsettled" if may_be_paid else ""
    return " and ".join(filter(None, (settled, unsettled)))


def require_output(file: Path, word: str, code: int) -> None:
    """The file has what the build printed that read this word, and then how that ended."""
    said, end = file.read_text().split("\n", 1)
    assert (said, f"exit code {code} " in end) == (f"The build reads {word}.", True)


def in_cell(paid: float | None, may_be_paid: float) -> str:
    settled = dollars(paid) if paid is not None and (paid or not may_be_paid) else ""
    return " + ".join(filter(None, (settled, f"≤{dollars(may_be_paid)}" if may_be_paid else ""))) or "-"


def dollars(cost: float) -> str:
    return f"${cost:.2f}" if cost >= 0.01 else f"${cost:.4f}"


def without_times(prompt: str) -> str:
    return re.sub(r" after \d+\.\d s", "", prompt)


def files_of(root: Path) -> dict[str, str]:
    own = (".gitignore", "build.sh")
    files = (path for path in root.rglob("*") if path.is_file() and not {".git", "agent-config"} & set(path.parts))
    return {str(path.relative_to(root)): path.read_text() for path in files if path.name not in own}
