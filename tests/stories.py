"""Commands that follow one another in one project, each compared with an account of it."""

import json
import re
import shutil
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from accounts import (
    CHANGE,
    QUERY,
    AttemptAccount,
    RunAccount,
    build_here,
    changed,
    check_attempt,
    check_totals,
    written,
)
from command import git
from scripted_llm import CHOOSER, FIRST, LIMIT, SECOND, Model, Played, Script, Turn
from story_log import Done, StoryLog, files_of

from code_commit import api
from code_commit.runs.log import RunLog
from code_commit.runs.replies import Replies

BUILD = """\
#!/bin/sh
echo "$CODE_COMMIT_RUN $CODE_COMMIT_ATTEMPT $(cat ok.txt)" >> ../builds
echo "$(cat ok.txt) was built" > stamp.txt
grep -q ' no' long.txt && sed 's/ no/ NO/' long.txt > ../long && cat ../long > long.txt
[ -e ../broken ] && exit 75
echo "The build reads $(cat ok.txt)."
[ "$(cat ok.txt)" = ok ] || exit $(cat ok.txt | wc -c)
"""


class State(NamedTuple):
    """A copy of the project at a moment of a run, what the server had played by then, and what was built."""

    project: Path
    played: list[Played]
    built: list[str]
    moment: str


class Story(StoryLog):
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
        account, flags = self.begin(command, given, task, options)
        told = self.first_prompt(account, *flags) if command == "run" and script else None
        begun, before = time.monotonic(), self.seconds(account)
        if self.by_api and command != "resume":
            facts = {"output": given, "query": task}
            done, played = self.called(
                command, script, **options, **{name: fact for name, fact in facts.items() if fact}
            )
        else:
            done, played = self.command(*(words or ("run",)), "--json", *flags, script=script)
        elapsed = time.monotonic() - begun
        assert told is None or told == played[0].prompt
        latest = self.settle(account, command, played, self.root / done.json["log_dir"])
        assert done.code == latest.code, (done, account)
        assert self.seconds(latest) - before <= elapsed, "no time counts twice"
        if latest is account:
            self.check(account, printed=done.json)
        else:
            self.check_choice(latest)
        return account

    def begin(self, command: str, given: str, task: str, options: dict[str, Any]) -> tuple[RunAccount, list[str]]:
        """Return the account of a run, a new one unless it is resumed, and the words of its settings and texts."""
        flags = [flag for name, value in options.items() for flag in _flags(name, value)]
        if command == "resume":
            account, self.server.holds_jobs = self.runs[-1], False
            account.options |= options
            return account, flags
        account = self.new_account(command, **options)
        account.query, account.given = task or (QUERY if command == "run" else "Make the build pass."), given
        self.runs.append(account)
        self.write_rollup()
        if given:
            (self.root.parent / "given.txt").write_text(given)
            flags += ["--output", str(self.root.parent / "given.txt")]
        return account, [*flags, *(["-m", task] if task else [])]

    def settle(self, account: RunAccount, command: str, played: list[Played], folder: Path) -> RunAccount:
        """Account for what was played. Return the account of the run with this log: its choice of files may be all."""
        if command == "repair" or (command == "run" and account.options.get("build_first")):
            account.first_build = build_here(self.tree)
            if command == "repair" and not (account.first_build or account.given):
                account.status, account.code = "success", 0
        of_choice = self.of_choice(account, played)
        if of_choice:
            self.choose(account, of_choice)
        latest = account
        if account.choice and account.choice.status != "success":
            latest = account.choice
        else:
            account.play(played[len(of_choice) :], self.tree, is_broken=self.is_broken)
        latest.folder = folder
        return latest

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
        record, folder = self.put_in_place(state)
        attempt, played, left = (record["attempts"] or [None])[-1], list(state.played), script[len(state.played) :]
        account = self.new_account("run")
        account.folder = folder
        if played and played[-1].turn.answers and not (attempt["job_id"] or played[-1].turn.is_in(folder)):
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
        self.check_resumed(account, state, record)
        assert files_of(self.root) == tree

    def put_in_place(self, state: "State") -> tuple[Any, Path]:
        """Let the project be as a kill has left it; return the record of its run, and the folder of its log."""
        shutil.rmtree(self.root)
        shutil.copytree(state.project, self.root, symlinks=True)
        (self.root.parent / "builds").write_text("")
        (file,) = (self.root / "agent-config" / "logs").glob("*/run.json")
        record = json.loads(file.read_text())
        file.write_text(json.dumps(record | {"pid": 2**30}))  # of no process
        return record, file.parent

    def check_resumed(self, account: RunAccount, state: "State", before: Any) -> None:
        """All is as in the run that was not killed; `before` is the record that the kill has left."""
        kept = self.record(account)
        for one, other in zip(account.attempts, kept["attempts"], strict=True):
            check_attempt(one, other, account)
        check_totals(account, kept)
        self.check_prompts(account)
        prompts = [attempt.prompt for attempt in account.attempts]
        assert [*map(without_times, prompts)] == [*map(without_times, self.prompts)]
        builds, again = [*state.built, *self.built()], 0
        if state.built:
            recorded = before["attempts"][int(state.built[-1]) - 1]["build"]
            again = recorded is None or recorded["exit_code"] == 0
        assert set(builds) == {str(done.number) for done in account.attempts if done.ends}
        assert len(builds) == len(set(builds)) + again, "only a failed build is not repeated"

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

    def called(self, command: str, script: Sequence[Turn], **options: Any) -> tuple[Done, list[Played]]:
        """Call the main job from Python, as a supervisor would."""
        start = len(self.server.played)
        self.server.script = list(script)
        record = getattr(api, command)(self.root, **options)
        played = self.server.played[start:]
        assert [play.turn for play in played] == list(script), record.message
        return Done(record.final_code, json.dumps(asdict(record)), ""), played

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


def _flags(name: str, value: Any) -> list[str]:
    flag = "--" + name.replace("_", "-")
    return [flag] if value is True else [flag, str(value)]


def without_times(prompt: str) -> str:
    return re.sub(r" after \d+\.\d s", "", prompt)
