"""A second step after a first one: what a command does with what another command, or an earlier attempt, has left.

Each step is compared with an account of it (tests/accounts.py): run.json value by value, every prompt, address and key
as the server got them, the tree, the builds, and what page, summary, table and statistics of the log tell.
"""

from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest
from accounts import RunAccount
from scripted_llm import FIRST, Script, turns
from stories import Story

pytestmark = pytest.mark.usefixtures("no_waits")

OTHER = {"chat": "anthropic", "openai": "chat", "anthropic": "gemini", "gemini": "openai"}  # provider of the fallback
MOMENTS = {  # the file of the log that was written last, and how often run.json was since
    "chat": ["2-response.txt+1", "3-response.json+2"],
    "openai": ["1-response.json+0", "2-query.json+2"],
    "anthropic": ["2-codebase.txt+1", "3-response.json+0"],
    "gemini": ["2-response.json+0", "built.diff+1"],
}
KILLED = {
    "chat": {},
    "openai": {"prompt_layout": "cached"},
    "anthropic": {"rollup": "fit", "context_window": 18_000},  # tokens: the first prompt fits, no later one does
    "gemini": {"prompt_layout": "short"},
}


@pytest.fixture
def server() -> Iterator[Script]:
    with Script() as server:
        yield server


def with_fallback(root: Path, server: Script, provider: str, **options: Any) -> Story:
    other = OTHER[provider]
    return Story(root, server, provider, other, answer_format="edits", fallback_model=f"{other}:beta", **options)


@pytest.mark.parametrize("provider", ["chat", *(pytest.param(each, marks=pytest.mark.slow) for each in [*FIRST][1:])])
def test_what_follows_each_end_of_a_run(provider, project_folder: Path, server: Script):
    story = with_fallback(project_folder, server, provider)
    one = story.run(script=turns("remove", "lost", "empty", "refused", "edit", "right"))
    undo = story.undo(of=one)
    story.undo(undo.name, of=undo)
    story.undo(one.name, of=one)
    two = story.run(script=turns("cut", "lost", "remove", "cut", "edit", start=8))
    story.undo(of=two, attempt=4)
    story.run(script=turns("refused", "files", "lost", "refused", start=14))
    story.run("resume", script=turns("lost", "edit", "right", start=20))
    story.check_stats()
    story.break_machine(broken=True)
    story.run(script=turns("wrong", start=24))
    story.run("resume")
    story.break_machine(broken=False)
    story.run("resume", script=turns("lost", "lost", "wrong", "same", "cannot", start=28))
    story.check_stats()


@pytest.mark.parametrize(
    ("provider", "moments"),
    [
        *MOMENTS.items(),
        *(pytest.param(provider, None, marks=pytest.mark.slow) for provider in ("openai", "anthropic")),
        *(pytest.param(provider, None, marks=pytest.mark.sweep) for provider in ("chat", "gemini")),
    ],
)
def test_a_killed_run_ends_as_if_it_had_not_been(
    provider: str, moments: list[str] | None, project_folder: Path, server: Script, tmp_path: Path
):
    story = with_fallback(project_folder, server, provider, **KILLED[provider])
    if "context_window" in story.options:
        story.add_files(9)
    script = turns("lost", "edit", "cut", "refused", "right", start=90)
    states = story.states(script, moments, tmp_path / "states")
    assert {state.moment for state in states} >= {*(moments or [])}
    has_shrunk = any(file for state in states for file in state.project.glob("agent-config/logs/*/2-codebase.txt"))
    assert has_shrunk == ("context_window" in story.options)
    for state in states:
        story.resume_from(state, script)


def test_a_job_that_is_fetched_after_the_fallback_took_over(project_folder: Path, server: Script):
    story = with_fallback(project_folder, server, "openai")
    story.run(script=turns("wrong", "lost", "failed", "held", "lost", "refused"))
    story.run("resume", script=turns("lost", "refused", "edit", "right", start=10))
    story.check_stats()
    story.run(script=turns("held", "refused", start=14))
    story.run("resume", script=turns("lost", "refused", "files", "refused", start=20))
    story.run("resume", script=turns("wrong", "wrong", start=30))


def test_a_job_of_the_fallback_that_is_fetched_later(project_folder: Path, server: Script):
    story = with_fallback(project_folder, server, "anthropic")
    story.run(script=turns("lost", "refused", "held"))
    story.run("resume", script=turns("lost", "edit", "held", start=10))
    story.run("resume", script=turns("right", start=20))
    story.check_stats()


def test_the_money_of_a_run_that_goes_on(project_folder: Path, server: Script):
    story = with_fallback(project_folder, server, "gemini")
    story.run(script=turns("lost", "wrong", "failed", "lost", "lost"), max_cost=0.5)
    story.run("resume")
    story.run("resume", script=turns("lost", "refused", start=10), max_cost=1.9)
    story.run("resume", script=turns("wrong", "lost", "right", start=20), max_cost=9)


def test_what_somebody_changes_between_two_steps(project_folder: Path, server: Script):
    story = with_fallback(project_folder, server, "chat")
    one = story.run(script=turns("edit", "remove", "refused", "refused"))
    story.edit("ok.txt", "mine\n")
    story.refuse("resume", code=2, said="its files have changed since: ok.txt")
    story.refuse("undo", code=1, said="ok.txt")
    forced = story.undo("--force", of=one)
    story.undo(forced.name, of=forced)
    story.edit("ok.txt", f"{one.attempts[1].turn.word}\n")
    story.undo("--path", "gone.txt", of=one)
    story.undo("--force", one.name, of=one, attempt=2)
    story.edit("stamp.txt", "mine\n")
    two = story.run(script=turns("lost", "wrong", "right", start=10))
    story.undo(of=two)


def test_what_follows_a_repair(project_folder: Path, server: Script):
    story = Story(project_folder, server, "openai")
    story.run("repair", script=turns("wrong", "cannot"))
    story.run("repair", script=turns("lost", "wrong", "right", start=4), given="It failed at the lake.\n")
    story.run("repair")
    story.run("repair", script=turns("lost", "wrong", "same", "right", start=8), given="It failed on the hill.\n")
    story.edit("ok.txt", "not yet\n")
    story.run(script=turns("wrong", "back", start=12), build_first=True, rollback=True, max_repairs=1)
    story.run(script=turns("wrong", start=14), dry_run=True)
    story.check_stats()


def test_the_choice_of_files_counts_in_the_run_that_follows(project_folder: Path, server: Script):
    story = Story(project_folder, server, "openai", rollup="select", select_model="openai:gamma")
    story.add_files(40)
    story.run(script=turns("lost", "choice", "wrong", "lost", "right"))
    story.undo(of=story.runs[-1])
    story.run(script=turns("choice", "wrong", "refused", start=10), build_first=True)
    story.run("resume", script=turns("lost", "right", start=14))
    story.run("repair", script=turns("lost", "refused", start=20), given="It failed in the sea.\n")
    story.check_stats()
    story.run("resume", script=turns("lost", "choice", "lost", "refused", start=30))
    story.run("resume", script=turns("lost", "files", "wrong", "same", "wrong", start=40))
    story.check_stats()


def test_the_fallback_of_the_choice_of_files(project_folder: Path, server: Script):
    story = Story(project_folder, server, "gemini", "openai", rollup="select", fallback_model="openai:beta")
    story.add_files(40)
    story.run(script=turns("lost", "refused", "choice", "lost", "wrong", "refused", "right"))
    story.run(script=turns("failed", "refused", "lost", "refused", start=10))
    story.check_stats()


@pytest.mark.parametrize("seed", [pytest.param(seed, marks=[pytest.mark.slow] * (seed >= 2)) for seed in range(10)])
def test_whatever_comes_next(seed: int, project_folder: Path, server: Script):
    """Four steps by chance, each of which can follow the one before it, with settings by chance."""
    chance, provider = Random(seed), [*FIRST][seed % len(FIRST)]
    options: dict[str, Any] = {"answer_format": chance.choice(["files", "edits"])}
    options |= {"prompt_layout": chance.choice(["spec", "cached"])}
    options |= chance.choice([{}, {}, {"rollback": True}, {"on_rejected": "stop"}])
    options |= chance.choice([{}, {"fallback_model": f"{OTHER[provider]}:beta"}])
    story = Story(project_folder, server, provider, OTHER[provider], **options)
    story.by_api = seed % 2 == 1
    for chapter in range(4):
        step = chance.choice(possible_steps(story))
        take(step, story, chance, 20 * chapter + 1)
    story.check_stats()


def possible_steps(story: Story) -> list[str]:
    steps = ["run", "run", "repair", "repair with output", "dry run", "broken machine"]
    if not story.runs:
        return steps
    last, standing = story.runs[-1], story.standing
    if last.status in ("llm_error", "build_error") and not last.rolled_back:
        steps = ["resume"] * 3
    if standing and not standing[-1].rolled_back and last.touched:
        steps += ["undo"] * 3
    if last.undoes:
        steps += ["undo the undo"] * 2
        if last.undoes.has_first_answer:
            steps += ["apply", "apply and build"]
    return steps


def take(step: str, story: Story, chance: Random, start: int) -> None:
    """Take the step, with turns of the LLM from this number on."""
    last = story.runs[-1] if story.runs else None
    story.break_machine(broken=step == "broken machine")
    options = {"build_first": True} if step == "run" and chance.random() < 0.3 else {}
    options |= {"max_repairs": 1} if chance.random() < 0.3 else {}
    if step == "undo":
        story.undo(*[story.standing[-1].name] * chance.choice([0, 1]), of=story.standing[-1])
    elif last and step == "undo the undo":
        story.undo(last.name, of=last)
    elif last and last.undoes and step.startswith("apply"):
        story.apply(last.undoes, build=step == "apply and build")
    elif step == "dry run":
        kinds = [*chance.choice([[], ["lost"]]), chance.choice(["wrong", "right", "empty", "cannot"])]
        story.run(script=turns(*kinds, start=start), dry_run=True)
    elif step == "broken machine":
        can_retry = story.options.get("on_rejected") != "stop"
        before = chance.choice([[], ["lost"], ["files"], ["cut"] if can_retry else []])
        story.run(script=turns(*before, "wrong", start=start))
    elif last and step == "resume":
        story.run("resume", script=turns(*any_turns(chance, story, last, options), start=start), **options)
    else:
        command = step.split(maxsplit=1)[0]
        given = f"It failed in place {start}.\n" if step == "repair with output" else ""
        is_idle = step == "repair" and story.tree["ok.txt"] == "ok\n"
        kinds = [] if is_idle else any_turns(chance, story, story.new_account(command, **options), options)
        task = f"Let ok.txt be right in part {start}." if chance.random() < 0.4 else ""
        story.run(command, script=turns(*kinds, start=start), given=given, task=task, **options)


def any_turns(chance: Random, story: Story, account: RunAccount, options: dict[str, Any]) -> list[str]:
    """Return turns by chance that bring the run to an end."""
    done = [attempt.turn.kind for attempt in account.attempts if attempt.turn]
    most, fallbacks = options.get("max_repairs", account.most - 1) + 1, len(account.models) - 1
    kinds: list[str] = []
    is_stopped = len(done) >= most
    while not is_stopped:
        pool = ["wrong", "wrong", "right", "lost", "empty", "cut", "files", "refused", "cannot"]
        pool += ["edit"] * 2 if story.options["answer_format"] == "edits" else []
        pool += ["remove"] if "gone.txt" in story.tree and "remove" not in (*kinds, *done) else []
        pool += ["same"] if kinds[-1:] == ["wrong"] else []
        kind = chance.choice(pool)
        if kinds[-2:] == ["lost", "lost"] == [kind, kind]:
            continue
        kinds.append(kind)
        done += [kind] if kind not in ("lost", "refused") else []
        is_stopped = len(done) == most or kind in ("right", "cannot") or done[-2:] == ["cut", "cut"]
        is_stopped |= story.options.get("on_rejected") == "stop" and kind in ("empty", "cut")
        is_stopped |= kind == "refused" and kinds.count("refused") > fallbacks
    return kinds
