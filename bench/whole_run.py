"""A whole run, first wrong then right, against the same job done by others; and four attempts in a large project.

The LLM answers at once, from 127.0.0.1, and the build is trivial: what is measured is the tool itself, with all that it
checks, journals, syncs and logs. The other agents are told to contact nothing but this server: no analytics, no update
check, no list of models or prices.
"""

import json
import shutil
import sys
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, partial
from itertools import pairwise
from pathlib import Path

from bench.commits import BYTES_PER_TOKEN, PRICES
from bench.comparing import SHOWN, Comparison, Plan, Side, counted, growth
from bench.environments import SOURCE, Tool, git
from bench.measuring import Command
from bench.projects import make_checkout, source_texts, sources, write_file
from bench.steps import KEY

sys.path.insert(0, str(SOURCE / "tests" / "llm"))

from fake_server import Answer, FakeServer

BARE = Path(__file__).with_name("bare_httpx.py")
BARE_SCRIPT = "a bare httpx script"
WHAT = "a run of two attempts"
KEY_VARIABLES = {"chat": "CODE_COMMIT_CHAT_API_KEY", "anthropic": "ANTHROPIC_API_KEY"}
"""By provider: a server of the first on this machine is asked five times for its models and its window."""
SPEC = "the specification's order"
AGENT_TIME = 0.05
LONG = 2_000
TOKENS_READ = 10_000_000
"""What the server says to have read: with less, a client takes a large prompt for cut off."""
ANSWERS = WRONG, RIGHT = tuple(f"^^^answer.txt\n{word}\n^^^end\n" for word in ("wrong", "right"))

AIDER_ANSWERS = tuple(f"answer.txt\n```\n{word}\n```\n" for word in ("wrong", "right"))
AIDER_OPTIONS = (
    *("--edit-format", "whole", "--auto-test", "--test-cmd", "./build.sh", "--yes-always", "--map-tokens", "0"),
    *("--no-analytics", "--no-check-update", "--no-show-release-notes", "--no-show-model-warnings"),
    *("--no-auto-commits", "--no-gitignore", "--no-detect-urls", "--no-suggest-shell-commands"),
    *("--no-pretty", "--no-fancy-input", "--message-file", "agent-config/query.txt"),
)
"""Its whole files, its test command, and nothing contacted but the server; the files to change follow."""
AGENT_MODEL = "openai/bench"
AIDER_METADATA = {AGENT_MODEL: {"max_input_tokens": 1_000_000, "litellm_provider": "openai", "mode": "chat"}}
"""For a model that it does not know aider would fetch a list from elsewhere."""
MINI_COMMANDS = (
    "echo wrong > answer.txt && ./build.sh",
    "echo right > answer.txt && ./build.sh",
    "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT",
)
MINI_ANSWERS = tuple(f"THOUGHT: so.\n\n```mswea_bash_command\n{command}\n```\n" for command in MINI_COMMANDS)
MINI_OPTIONS = (
    *("-m", AGENT_MODEL, "--model-class", "litellm_textbased", "-c", "mini_textbased.yaml", "-y"),
    *("--exit-immediately", "-l", "0"),
)
MINI_ENVIRONMENT = {
    "MSWEA_CONFIGURED": "true",
    "MSWEA_SILENT_STARTUP": "1",
    "MSWEA_COST_TRACKING": "ignore_errors",
}


@dataclass(frozen=True, slots=True)
class Job:
    """A project whose build wants one right line, and the LLM that is asked for it."""

    root: Path
    server: FakeServer

    def prepared(self, answers: Sequence[str]) -> Callable[[], None]:
        """Return what sets both up for one run: the project as it was, the LLM at its first answer."""

        def prepare() -> None:
            (self.root / "answer.txt").write_text("not yet\n")
            shutil.rmtree(self.root / "agent-config" / "logs", ignore_errors=True)
            for leftover in (".aider.chat.history.md", ".aider.input.history"):
                (self.root / leftover).unlink(missing_ok=True)
            git(self.root, "status", "--porcelain")  # refreshes the index, which is as young as its files
            self.server.requests.clear()
            self.server.answers = [Answer(text, input_tokens=TOKENS_READ) for text in answers]
            self.server.delivered = 0

        return prepare

    def ours(self, answers: Sequence[str] = ANSWERS, *options: str, provider: str = "chat") -> Side:
        """Return the main job as its user calls it."""
        server = ("--model", f"{provider}:bench", "--base-url", self.server.base_url(provider))
        arguments = ("--quiet", *server, *options)
        environment, prepare = {KEY_VARIABLES[provider]: KEY}, self.prepared(answers)
        return lambda tool: Command([tool.command, *arguments], self.root, environment, prepare)

    def prompts(self, layout: str, tool: Tool) -> list[bytes]:
        """Return the prompts of four attempts, each of which sends another module whole."""
        modules = zip((WRONG, WRONG, *ANSWERS), sources(files=4), strict=True)
        answers = [f"{'^' * 9}{name}\n{text}# changed\n{'^' * 9}end\n{answer}" for answer, (name, text) in modules]
        return self._prompts(tool, answers, "--prompt-layout", layout)

    def repair_input(self, shown: str, tool: Tool) -> float:
        """Return the bytes of a repair that no cache has, after an edit of one line of a file of 2,000 lines."""
        lines = "".join(source_texts()).splitlines(keepends=True)[:LONG]
        text = "".join([*lines[: LONG // 2], "CHANGED = 0\n", *lines[LONG // 2 + 1 :]])
        write_file(self.root / "long.py", text)
        write_file(self.root / "agent-config/codeRollup.txt", f"--- long.py ---\n{text}\n")
        write_file(self.root / "agent-config/config.toml", f'file_replacements = "{shown}"\n')
        edit = f"{'^' * 9}long.py\n{'^' * 9}find\nCHANGED = 0\n{'^' * 9}replace\nCHANGED = 1\n{'^' * 9}end\n"
        options = ("--prompt-layout", "cached", "--answer-format", "auto")
        first, repair = self._prompts(tool, [f"{edit}{WRONG}", RIGHT], *options)
        return len(repair) - _shared((first, repair))

    def _prompts(self, tool: Tool, answers: Sequence[str], *options: str) -> list[bytes]:
        command = self.ours(answers, *options)(tool)
        assert isinstance(command, Command)
        command.run()
        (log,) = (self.root / "agent-config" / "logs").iterdir()
        return [(log / f"{number}-query.txt").read_bytes() for number in range(1, len(answers) + 1)]

    def bare(self) -> Side:
        """Return the job with nothing around it."""
        prepare = self.prepared(ANSWERS)
        return lambda tool: Command([tool.python, BARE, self.server.base_url("chat")], self.root, {}, prepare)

    def aider(self, plan: Plan, home: Path) -> Side:
        """Return aider on the job. Raises UnavailableError."""
        metadata = write_file(home / "models.json", json.dumps(AIDER_METADATA))
        options = ["--model", AGENT_MODEL, "--model-metadata-file", metadata, *AIDER_OPTIONS, "answer.txt"]
        return self._agent(plan, home, ("aider-chat", "0.86.2", "aider"), options, AIDER_ANSWERS)

    def mini_swe_agent(self, plan: Plan, home: Path) -> Side:
        """Return mini-swe-agent on the job; its third answer says that it is done. Raises UnavailableError."""
        query = (self.root / "agent-config" / "query.txt").read_text()
        options = [*MINI_OPTIONS, "-o", home / "trajectory.json", "-t", query]
        return self._agent(plan, home, ("mini-swe-agent", "2.4.6", "mini"), options, MINI_ANSWERS)

    def _agent(
        self, plan: Plan, home: Path, peer: tuple[str, str, str], options: Sequence[str | Path], answers: Sequence[str]
    ) -> Side:
        quiet = {"MSWEA_GLOBAL_CONFIG_DIR": str(home), **MINI_ENVIRONMENT}
        environment = agent_environment(home, self.server.base_url("chat")) | quiet
        prepare = self.prepared(answers)
        return lambda _: Command([plan.peer(*peer), *options], self.root, environment, prepare)


def agent_environment(home: Path, base_url: str) -> dict[str, str]:
    """Return the variables that send an agent to the server, and keep it from fetching a list of prices."""
    server = {"OPENAI_API_KEY": KEY, "OPENAI_API_BASE": base_url}
    return server | {"HOME": str(home), "LITELLM_LOCAL_MODEL_COST_MAP": "True"}


def make_job(root: Path, server: FakeServer, *, files: int, rollup_bytes: int) -> Job:
    """Lay out a project with so many committed files, and a rollup of that many bytes of real source."""
    make_checkout(root, files=files, build="grep -q '^right$' answer.txt", answer="not yet\n")
    write_file(root / "agent-config/query.txt", "Write the line `right` into answer.txt, and nothing else.\n")
    rollup = "\n".join(f"--- {name} ---\n{text}" for name, text in sources(total_bytes=rollup_bytes))
    write_file(root / "agent-config/codeRollup.txt", rollup)
    return Job(root, server)


def measure(plan: Plan) -> Iterator[Comparison]:
    """Yield the run against each peer, then what the size of the project costs."""
    with plan.work_folder() as folder, FakeServer() as server:
        job = make_job(folder / "project", server, files=100, rollup_bytes=100_000)
        asking_nothing = job.ours(provider="anthropic")
        yield Comparison(WHAT, BARE_SCRIPT, job.ours(), job.bare(), 20, time=2.0, memory=1.3)
        yield Comparison(f"{WHAT}, no question before", BARE_SCRIPT, asking_nothing, job.bare(), 20, time=2.0)
        if plan.quick:
            return
        for name, agent in (("aider 0.86.2", job.aider), ("mini-swe-agent 2.4.6", job.mini_swe_agent)):
            (home := folder / name).mkdir()
            side = agent(plan, home)
            yield Comparison(WHAT, name, job.ours(), side, 4, time=AGENT_TIME, memory=SHOWN)
        answers = (WRONG, WRONG, *ANSWERS)
        small = make_job(folder / "small", server, files=1_000, rollup_bytes=800_000).ours(answers)
        large = make_job(folder / "large", server, files=10_000, rollup_bytes=8_000_000).ours(answers)
        what = "a run of four attempts, 1,000 files, rollup of 0.8 MB"
        yield growth(what, large, small, 4, memory=SHOWN)


def cached_layout(plan: Plan) -> Iterator[Comparison]:
    """Yield how much of the prompts of a run no call repeats, and what the input costs, in both layouts."""
    with plan.work_folder() as folder, FakeServer() as server:
        job = make_job(folder / "project", server, files=60, rollup_bytes=500_000)
        spec, cached = (cache(partial(job.prompts, layout)) for layout in ("spec", "cached"))
        new = (counted(lambda tool, run=run: _not_repeated(run(tool))) for run in (cached, spec))
        yield Comparison("bytes of 4 prompts that the call before has not", SPEC, *new, 1, unit="bytes")
        for model, (plain, write, read) in PRICES.items():
            ours = counted(lambda tool, prices=(plain, write, read): cached_cost(cached(tool), *prices))
            theirs = counted(lambda tool, plain=plain: cached_cost(spec(tool), plain, plain, plain))
            yield Comparison(f"input of 4 attempts, `cached`, {model}", SPEC, ours, theirs, 1, 0.45, unit="dollars")
        sides = (counted(partial(job.repair_input, shown)) for shown in ("diff", "whole"))
        what = f"uncached input of a repair, one line of {LONG:,} changed, as a diff"
        yield Comparison(what, "the whole file", *sides, 1, 0.1, unit="bytes")


def cached_cost(prompts: Sequence[bytes], plain: float, write: float, read: float) -> float:
    """Return what the prompts cost in dollars: what they share is written to the cache once and read by the later."""
    shared = _shared(prompts)
    rest = sum(len(prompt) - shared for prompt in prompts)
    return (shared * (write + read * (len(prompts) - 1)) + rest * plain) / BYTES_PER_TOKEN / 1e6


def _not_repeated(prompts: Sequence[bytes]) -> int:
    return sum(map(len, prompts)) - sum(_shared(pair) for pair in pairwise(prompts))


def _shared(prompts: Sequence[bytes]) -> int:
    """Return how many bytes at the start are the same in all of them."""
    first, last = min(prompts), max(prompts)
    return bisect_left(range(1, len(first) + 1), True, key=lambda size: first[:size] != last[:size])
