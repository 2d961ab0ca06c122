"""A whole run of two attempts, first wrong then right, against the same job done by others. `python -m bench.whole_run`

The LLM answers at once, from 127.0.0.1, and the build is trivial: what is measured is the tool itself, with all that it
checks, journals, syncs and logs.
"""

from collections.abc import Iterator
from pathlib import Path

from bench.fake_llm import FakeLLM, fake_llm
from bench.job import Job, make_job, prepared
from bench.measuring import Command, in_turns
from bench.rows import Row, Skipped, Target, timed, weighed
from bench.running import Plan, run_alone

ROUNDS = 20
FILES = 100
ROLLUP_BYTES = 100_000
BARE_TIME = Target(1.5)
BARE_MEMORY = Target(2.0)
ANSWERS = ("^^^answer.txt\nwrong\n^^^end\n", "^^^answer.txt\nright\n^^^end\n")
BARE = Path(__file__).parent / "scripts" / "bare_httpx.py"


def measure(plan: Plan) -> Iterator[Row | Skipped]:
    """Yield the time and the memory against each peer."""
    with plan.work_folder() as folder, fake_llm() as llm:
        job = make_job(folder / "project", files=FILES, rollup_bytes=ROLLUP_BYTES)
        yield from _against_bare_script(plan, job, llm)


def our_command(plan: Plan, job: Job, llm: FakeLLM, answers: tuple[str, ...] = ANSWERS) -> Command:
    """Return the main job as its user calls it."""
    argv = [plan.ours.script("code-commit"), "--quiet", "--model", "chat:bench", "--base-url", llm.base_url]
    environment = {"CODE_COMMIT_CHAT_API_KEY": "sk-bench-0123456789"}
    return Command(argv, job.root, environment, prepared(job, llm.answer_with, answers))


def _against_bare_script(plan: Plan, job: Job, llm: FakeLLM) -> Iterator[Row]:
    bare = Command([plan.ours.python, BARE, llm.base_url], job.root, {}, prepared(job, llm.answer_with, ANSWERS))
    costs = in_turns({"ours": our_command(plan, job, llm), "bare": bare}, plan.rounds(ROUNDS))
    row = "whole_run", "whole run, 2 attempts", "bare httpx script"
    yield timed(*row, costs["ours"], costs["bare"], target=BARE_TIME)
    row = "whole_run", "whole run, 2 attempts, memory", "bare httpx script"
    yield weighed(*row, costs["ours"], costs["bare"], target=BARE_MEMORY)


if __name__ == "__main__":
    raise SystemExit(run_alone("whole_run", measure, __doc__))
