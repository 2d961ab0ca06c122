"""A run of four attempts with 10,000 files and an 8 MB rollup, against what it must cost more than a small run.

What the large run takes longer than the small one is compared with copying the rollup ten times; to this is added what
the fake LLM takes to read four such prompts, which is not ours to save. Then every file of the tree that a process of
ours opens or looks at is counted, with strace: no step may read the whole tree. What git itself looks at for `git
status` does not count. `python -m bench.large_job`
"""

import re
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from bench.fake_llm import FakeLLM, fake_llm
from bench.job import Job, git, make_job, prepared
from bench.measuring import Command, CommandFailedError, Cost, in_turns
from bench.rows import Row, Skipped, Target, timed, weighed
from bench.running import Plan, run_alone
from bench.whole_run import our_command

FILES = 10_000
ROLLUP_BYTES = 8_000_000
SMALL_FILES = 100
SMALL_ROLLUP_BYTES = 10_000
ROUNDS = 7
COPY = Path(__file__).parent / "scripts" / "copy_and_send.py"
WRONG, RIGHT = "^^^answer.txt\nwrong\n^^^end\n", "^^^answer.txt\nright\n^^^end\n"
ANSWERS = (WRONG, WRONG, WRONG, RIGHT)
MOST_FILES = Target(0.005)  # of those in the tree


def measure(plan: Plan) -> Iterator[Row | Skipped]:
    """Yield what the size costs, the memory, and how many files of the tree were touched."""
    with plan.work_folder() as folder, fake_llm() as llm:
        files, rollup_bytes = (1_000, 800_000) if plan.quick else (FILES, ROLLUP_BYTES)
        what = f"run of {len(ANSWERS)} attempts, {files:,} files, {rollup_bytes / 1e6:.2g} MB rollup"
        small = make_job(folder / "small", files=SMALL_FILES, rollup_bytes=SMALL_ROLLUP_BYTES)
        large = make_job(folder / "large", files=files, rollup_bytes=rollup_bytes)
        commands = {
            "small": our_command(plan, small, llm, ANSWERS),
            "large": our_command(plan, large, llm, ANSWERS),
            "copy": _copy(large, folder / "copied", llm),
        }
        yield from _compare(what, in_turns(commands, plan.rounds(ROUNDS)))
        yield _count_files(what, folder, large, commands["large"])


def _copy(large: Job, target: Path, llm: FakeLLM) -> Command:
    rollup = large.root / "agent-config" / "codeRollup.txt"
    argv = [sys.executable, COPY, rollup, target, llm.base_url]
    return Command(argv, large.root, prepare=prepared(large, llm.answer_with, ANSWERS), times_itself=True)


def _compare(what: str, costs: Mapping[str, Sequence[Cost]]) -> Iterator[Row]:
    walls = {name: [cost.wall for cost in measured] for name, measured in costs.items()}
    small = f"the same, {SMALL_FILES} files, {SMALL_ROLLUP_BYTES // 1000} kB rollup"
    yield timed("large_job", what, small, costs["large"], costs["small"])
    more = [much - little for much, little in zip(walls["large"], walls["small"], strict=True)]
    against = "copying the rollup 10 times"
    yield Row("large_job", f"{what}, beyond the small run", against, more, walls["copy"], target=Target(1.0))
    yield weighed("large_job", f"{what}, memory", small, costs["large"], costs["small"])


def _count_files(what: str, folder: Path, large: Job, run: Command) -> Row | Skipped:
    """Count the different files of the tree that our processes name to the kernel, git's processes left out."""
    what, against = f"{what}: files and folders of the tree that are looked at", "files in the tree"
    strace = shutil.which("strace")
    if strace is None:
        return Skipped("large_job", what, against, "it needs strace")
    traces = folder / "traces"
    traces.mkdir()
    git(large.root, "config", "core.preloadIndex", "false")  # or git looks in threads, which strace shows apart from it
    argv = [strace, "-ff", "-qq", "-s", "4096", "-e", "trace=%file", "-o", traces / "trace", *run.argv]
    try:
        Command(argv, run.folder, run.environment, run.prepare).run()
    except CommandFailedError as error:
        return Skipped("large_job", what, against, str(error).partition("\n")[0][:200])
    touched = {name for trace in traces.iterdir() for name in files_touched(trace.read_text("utf-8", "replace"))}
    return Row("large_job", what, against, [len(touched)], [_count_tree(large)], unit="count", target=MOST_FILES)


def files_touched(trace: str) -> set[str]:
    """Return the source files and folders that one process named in its calls; none where it became git."""
    if re.search(r'^execve\("[^"]*/git", .* = 0$', trace, re.MULTILINE):
        return set()
    return set(re.findall(r"\bsrc(?:/part\d+)?(?:/module\d+\.py)?(?=\")", trace))


def _count_tree(job: Job) -> int:
    return sum(1 for _ in (job.root / "src").rglob("*.py"))


if __name__ == "__main__":
    raise SystemExit(run_alone("large_job", measure, __doc__))
