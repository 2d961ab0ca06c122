"""What the log of a project, and the project itself, tell of the runs in it, compared with the accounts of them."""

import contextlib
import io
import json
import re
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from accounts import (
    MACHINE_FAILED,
    RunAccount,
    check_attempt,
    check_builds,
    check_prompt,
    check_totals,
    near,
)
from scripted_llm import Model, Played, Script, Turn

from code_commit import api
from code_commit.build import hardened_meanwhile
from code_commit.cli import main
from code_commit.status import Status

ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGCHLD)
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


class StoryLog:
    """The runs of a project so far, and how its commands are called."""

    root: Path
    server: Script
    first: Model
    chooser: Model
    options: dict[str, Any]
    tree: dict[str, str]
    runs: list[RunAccount]
    by_api: bool

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

    def built(self) -> list[str]:
        """The attempts of the builds so far."""
        file = self.root.parent / "builds"
        return [line.split()[1] for line in file.read_text().splitlines()] if file.exists() else []

    def seconds(self, account: RunAccount) -> float:
        """How long it took by its record, or its choice of files, 0 where it has none yet."""
        folder = account.folder if account.folder != Path() else account.choice.folder if account.choice else Path()
        return json.loads((folder / "run.json").read_text())["totals"]["seconds"] if folder != Path() else 0.0

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

    def check_choice(self, choice: RunAccount) -> None:
        record = self.record(choice)
        assert (record["command"], record["status"], record["exit_code"]) == ("rollup", choice.status, choice.code)
        assert record["model"] == (self.options.get("select_model") or self.first.name)
        for attempt, kept in zip(choice.attempts, record["attempts"], strict=True):
            check_attempt(attempt, kept, choice)
        check_totals(choice, record)

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


def files_of(root: Path) -> dict[str, str]:
    own = (".gitignore", "build.sh")
    files = (path for path in root.rglob("*") if path.is_file() and not {".git", "agent-config"} & set(path.parts))
    return {str(path.relative_to(root)): path.read_text() for path in files if path.name not in own}
