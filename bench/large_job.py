"""A run of four attempts with 10,000 files and an 8 MB rollup, against what it must cost more than a small run.

What the large run takes longer than the small one is compared with copying as many bytes as its rollup has ten times.
Then every file of the tree that a process of ours opens or looks at is counted, with strace: no step may read the whole
tree; git's own look at it (`git status`) does not count. `python -m bench.large_job`
"""

import re
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

from bench.fake_llm import FakeLLM, fake_llm
from bench.job import Job, make_job
from bench.measuring import Command, CommandFailedError, in_turns
from bench.rows import Row, Skipped, Target, weighed
from bench.running import Plan, run_alone
from bench.whole_run import our_command

FILES = 10_000
ROLLUP_BYTES = 8_000_000
SMALL_FILES = 100
SMALL_ROLLUP_BYTES = 10_000
ROUNDS = 7
COPIES = 10
COPY = Path(__file__).parent / "scripts" / "copy_bytes.py"
WRONG, RIGHT = "^^^answer.txt\nwrong\n^^^end\n", "^^^answer.txt\nright\n^^^end\n"
ANSWERS = (WRONG, WRONG, WRONG, RIGHT)
MOST_FILES = Target(0.005)  # of those in the tree
WHAT = f"run of {len(ANSWERS)} attempts, {FILES:,} files, 8 MB rollup"


def measure(plan: Plan) -> Iterator[Row | Skipped]:
    """Yield what the size costs, the memory, and how many files of the tree were touched."""
    with plan.work_folder() as folder, fake_llm() as llm:
        files, rollup_bytes = (200, 800_000) if plan.quick else (FILES, ROLLUP_BYTES)
        small = make_job(folder / "small", files=SMALL_FILES, rollup_bytes=SMALL_ROLLUP_BYTES)
        large = make_job(folder / "large", files=files, rollup_bytes=rollup_bytes)
        yield from _compare(plan, folder, small, large, llm)
        yield _count_files(plan, folder, large, llm)


def _compare(plan: Plan, folder: Path, small: Job, large: Job, llm: FakeLLM) -> Iterator[Row]:
    rollup = large.root / "agent-config" / "codeRollup.txt"
    copy = [sys.executable, COPY, rollup, folder / "copied", str(COPIES)]
    commands = {
        "small": our_command(plan, small, llm, ANSWERS),
        "large": our_command(plan, large, llm, ANSWERS),
        "copy": Command(copy, folder, times_itself=True),
    }
    costs = in_turns(commands, plan.rounds(ROUNDS))
    walls = {name: [cost.wall for cost in measured] for name, measured in costs.items()}
    yield Row("large_job", WHAT, "the same, 100 files, 10 kB rollup", walls["large"], walls["small"])
    more = [much - little for much, little in zip(walls["large"], walls["small"], strict=True)]
    against = f"copying the rollup {COPIES} times"
    yield Row("large_job", f"{WHAT}, beyond the small run", against, more, walls["copy"], target=Target(1.0))
    yield weighed("large_job", f"{WHAT}, memory", "the same, small", costs["large"], costs["small"])


def _count_files(plan: Plan, folder: Path, large: Job, llm: FakeLLM) -> Row | Skipped:
    """Count the different files of the tree that our processes name to the kernel, git's processes left out."""
    what, against = f"{WHAT}: files of the tree that are looked at", "files in the tree"
    strace = shutil.which("strace")
    if strace is None:
        return Skipped("large_job", what, against, "it needs strace")
    traces = folder / "traces"
    traces.mkdir()
    run = our_command(plan, large, llm, ANSWERS)
    argv = [strace, "-ff", "-qq", "-s", "4096", "-e", "trace=%file", "-o", traces / "trace", *run.argv]
    try:
        Command(argv, run.folder, run.environment, run.prepare).run()
    except CommandFailedError as error:
        return Skipped("large_job", what, against, str(error).partition("\n")[0][:200])
    touched = {name for trace in traces.iterdir() for name in files_touched(trace.read_text("utf-8", "replace"))}
    return Row("large_job", what, against, [len(touched)], [_count_tree(large)], unit="count", target=MOST_FILES)


def files_touched(trace: str) -> set[str]:
    """Return the source files that one process named in its calls; none where it became git."""
    if re.search(r'^execve\("[^"]*/git", .* = 0$', trace, re.MULTILINE):
        return set()
    return set(re.findall(r"module\d+\.py", trace))


def _count_tree(job: Job) -> int:
    return sum(1 for _ in (job.root / "src").rglob("*.py"))


if __name__ == "__main__":
    raise SystemExit(run_alone("large_job", measure, __doc__))
