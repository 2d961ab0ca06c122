"""A whole run of two attempts, first wrong then right, against the same job done by others. `python -m bench.whole_run`

The LLM answers at once, from 127.0.0.1, and the build is trivial: what is measured is the tool itself, with all that it
checks, journals, syncs and logs.
"""

from collections.abc import Callable, Iterator
from pathlib import Path

from bench.agents import aider_command, mini_command
from bench.environments import UnavailableError
from bench.fake_llm import FakeLLM, fake_llm
from bench.job import Job, make_job, prepared
from bench.measuring import Command, CommandFailedError, in_turns
from bench.peers import AIDER, MINI_SWE_AGENT, Peer
from bench.rows import Row, Skipped, Target, timed, weighed
from bench.running import Plan, run_alone

ROUNDS = 20
FILES = 100
ROLLUP_BYTES = 100_000
AGENT_ROUNDS = 5
WHAT = "whole run, 2 attempts"
BARE_TIME = Target(1.5)
BARE_MEMORY = Target(1.3)
ANSWERS = ("^^^answer.txt\nwrong\n^^^end\n", "^^^answer.txt\nright\n^^^end\n")
AIDER_TARGETS = Target(1 / 20), Target(1 / 7)
MakeCommand = Callable[[Path, Path, Job, FakeLLM], Command]
AGENTS: tuple[tuple[Peer, MakeCommand, tuple[Target, Target] | None], ...] = (
    (AIDER, aider_command, AIDER_TARGETS),
    (MINI_SWE_AGENT, mini_command, None),
)
BARE = Path(__file__).parent / "scripts" / "bare_httpx.py"


def measure(plan: Plan) -> Iterator[Row | Skipped]:
    """Yield the time and the memory against each peer."""
    with plan.work_folder() as folder, fake_llm() as llm:
        job = make_job(folder / "project", files=FILES, rollup_bytes=ROLLUP_BYTES)
        yield from _against_bare_script(plan, job, llm)
        for peer, make_command, targets in AGENTS if not plan.quick else ():
            yield from _against_agent(plan, job, llm, str(peer), make_command, targets)


def our_command(plan: Plan, job: Job, llm: FakeLLM, answers: tuple[str, ...] = ANSWERS) -> Command:
    """Return the main job as its user calls it."""
    argv = [plan.ours.script("code-commit"), "--quiet", "--model", "chat:bench", "--base-url", llm.base_url]
    environment = {"CODE_COMMIT_CHAT_API_KEY": "sk-bench-Vq3xT8mZr1LwYc7KpD5nHs2JbGf9Ae6U"}
    return Command(argv, job.root, environment, prepared(job, llm.answer_with, answers))


def _against_bare_script(plan: Plan, job: Job, llm: FakeLLM) -> Iterator[Row]:
    bare = Command([plan.ours.python, BARE, llm.base_url], job.root, {}, prepared(job, llm.answer_with, ANSWERS))
    costs = in_turns({"ours": our_command(plan, job, llm), "bare": bare}, plan.rounds(ROUNDS))
    yield timed("whole_run", WHAT, "bare httpx script", costs["ours"], costs["bare"], target=BARE_TIME)
    memory = f"{WHAT}, memory"
    yield weighed("whole_run", memory, "bare httpx script", costs["ours"], costs["bare"], target=BARE_MEMORY)


def _against_agent(  # noqa: PLR0913, PLR0917 - a run's parts and a peer's
    plan: Plan, job: Job, llm: FakeLLM, peer: str, make_command: MakeCommand, targets: tuple[Target, Target] | None
) -> Iterator[Row | Skipped]:
    """Yield the rows, or why there are none."""
    with plan.work_folder() as home:
        try:
            theirs = make_command(plan.cache, home, job, llm)
            costs = in_turns({"ours": our_command(plan, job, llm), "theirs": theirs}, AGENT_ROUNDS)
        except (UnavailableError, CommandFailedError) as error:
            yield Skipped("whole_run", WHAT, peer, str(error))
            return
    time, memory = targets or (None, None)
    yield timed("whole_run", WHAT, peer, costs["ours"], costs["theirs"], target=time)
    yield weighed("whole_run", f"{WHAT}, memory", peer, costs["ours"], costs["theirs"], target=memory)


if __name__ == "__main__":
    raise SystemExit(run_alone("whole_run", measure, __doc__))
