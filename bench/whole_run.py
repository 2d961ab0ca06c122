"""A whole run, first wrong then right, against the same job done by others; and four attempts in a large project.

The LLM answers at once, from 127.0.0.1, and the build is trivial: what is measured is the tool itself, with all that it
checks, journals, syncs and logs. The other agents are told to contact nothing but this server: no analytics, no update
check, no list of models or prices.
"""

import json
import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.measuring import Command, CommandFailedError, in_turns
from bench.plan import SOURCE, Plan, UnavailableError
from bench.projects import commit_all, make_repository, sources, write_file
from bench.rows import Row, Skipped, Target, timed, weighed
from bench.steps import KEY

sys.path.insert(0, str(SOURCE / "tests" / "llm"))

from fake_server import Answer, FakeServer

BARE = Path(__file__).with_name("bare_httpx.py")
ROUNDS, AGENT_ROUNDS, LARGE_ROUNDS = 20, 5, 7
WHAT = "whole run, 2 attempts"
BARE_TIME, BARE_MEMORY = Target(1.4), Target(1.3)
AGENT_TIME = Target(1 / 20)
TOKENS_READ = 10_000_000
"""What the server says to have read: with less, a client takes a large prompt for cut off."""
WRONG, RIGHT = (f"^^^answer.txt\n{word}\n^^^end\n" for word in ("wrong", "right"))

AIDER_ANSWERS = tuple(f"answer.txt\n```\n{word}\n```\n" for word in ("wrong", "right"))
AIDER_OPTIONS = (
    *("--edit-format", "whole", "--auto-test", "--test-cmd", "./build.sh", "--yes-always", "--map-tokens", "0"),
    *("--no-analytics", "--no-check-update", "--no-show-release-notes", "--no-show-model-warnings"),
    *("--no-auto-commits", "--no-gitignore", "--no-detect-urls", "--no-suggest-shell-commands"),
    *("--no-pretty", "--no-fancy-input", "--message-file", "agent-config/query.txt", "answer.txt"),
)
AGENT_MODEL = "openai/bench"
AIDER_METADATA = {AGENT_MODEL: {"max_input_tokens": 1_000_000, "litellm_provider": "openai", "mode": "chat"}}
"""For a model that it does not know aider would fetch a list from elsewhere."""
MINI_COMMANDS = ("echo wrong > answer.txt && ./build.sh", "echo right > answer.txt && ./build.sh")
MINI_DONE = "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"
MINI_OPTIONS = (
    "--model-class",
    "litellm_textbased",
    "-c",
    "mini_textbased.yaml",
    "-y",
    "--exit-immediately",
    "-l",
    "0",
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
            self.server.requests.clear()
            self.server.answers = [Answer(text, input_tokens=TOKENS_READ) for text in answers]
            self.server.delivered = 0

        return prepare

    def ours(self, plan: Plan, *answers: str) -> Command:
        """Return the main job as its user calls it."""
        argv = [plan.command, "--quiet", "--model", "chat:bench", "--base-url", self.server.base_url("chat")]
        return Command(argv, self.root, {"CODE_COMMIT_CHAT_API_KEY": KEY}, self.prepared(answers))

    def bare(self, plan: Plan) -> Command:
        """Return the job with nothing around it."""
        argv = [plan.python, BARE, self.server.base_url("chat")]
        return Command(argv, self.root, {}, self.prepared([WRONG, RIGHT]))

    def aider(self, plan: Plan, home: Path) -> Command:
        """Return aider on the job. Raises UnavailableError."""
        metadata = home / "models.json"
        metadata.write_text(json.dumps(AIDER_METADATA))
        argv = [plan.peer("aider-chat", "0.86.2", "aider"), "--model", AGENT_MODEL]
        argv += ["--model-metadata-file", metadata, *AIDER_OPTIONS]
        return Command(argv, self.root, self._agents_environment(home), self.prepared(AIDER_ANSWERS))

    def mini_swe_agent(self, plan: Plan, home: Path) -> Command:
        """Return mini-swe-agent on the job; its third answer says that it is done. Raises UnavailableError."""
        query = (self.root / "agent-config" / "query.txt").read_text()
        argv = [plan.peer("mini-swe-agent", "2.4.6", "mini"), "-m", AGENT_MODEL, *MINI_OPTIONS]
        argv += ["-o", home / "trajectory.json", "-t", query]
        environment = self._agents_environment(home) | MINI_ENVIRONMENT | {"MSWEA_GLOBAL_CONFIG_DIR": str(home)}
        commands = (*MINI_COMMANDS, MINI_DONE)
        answers = [f"THOUGHT: so.\n\n```mswea_bash_command\n{command}\n```\n" for command in commands]
        return Command(argv, self.root, environment, self.prepared(answers))

    def _agents_environment(self, home: Path) -> dict[str, str]:
        where = {"OPENAI_API_KEY": KEY, "OPENAI_API_BASE": self.server.base_url("chat")}
        return {"HOME": str(home), "LITELLM_LOCAL_MODEL_COST_MAP": "True"} | where


def make_job(root: Path, server: FakeServer, *, files: int, rollup_bytes: int) -> Job:
    """Lay out a project with so many committed files, and a rollup of that many bytes of real source."""
    make_repository(root, "grep -q '^right$' answer.txt")
    for name, text in sources(files=files):
        write_file(root / name, text)
    write_file(root / "answer.txt", "not yet\n")
    write_file(root / "agent-config/query.txt", "Write the line `right` into answer.txt, and nothing else.\n")
    rollup = "\n".join(f"--- {name} ---\n{text}" for name, text in sources(total_bytes=rollup_bytes))
    write_file(root / "agent-config/codeRollup.txt", rollup)
    commit_all(root)
    return Job(root, server)


def measure(plan: Plan) -> Iterator[Row | Skipped]:
    """Yield the time and the memory against each peer, then what the size of the project costs."""
    with plan.work_folder() as folder, FakeServer() as server:
        job = make_job(folder / "project", server, files=100, rollup_bytes=100_000)
        costs = in_turns({"ours": job.ours(plan, WRONG, RIGHT), "bare": job.bare(plan)}, plan.rounds(ROUNDS))
        yield timed(WHAT, "bare httpx script", costs["ours"], costs["bare"], BARE_TIME)
        yield weighed(WHAT, "bare httpx script", costs["ours"], costs["bare"], BARE_MEMORY)
        if not plan.quick:
            yield from _against_agent(plan, job, "aider 0.86.2", job.aider, AGENT_TIME)
            yield from _against_agent(plan, job, "mini-swe-agent 2.4.6", job.mini_swe_agent, None)
            yield from _in_a_large_project(plan, folder, server)


def _against_agent(
    plan: Plan, job: Job, peer: str, command: Callable[[Plan, Path], Command], target: Target | None
) -> Iterator[Row | Skipped]:
    """Yield the rows, or why there are none."""
    with plan.work_folder() as home:
        try:
            costs = in_turns({"ours": job.ours(plan, WRONG, RIGHT), "theirs": command(plan, home)}, AGENT_ROUNDS)
        except (UnavailableError, CommandFailedError) as error:
            yield Skipped(WHAT, peer, " ".join(str(error).split())[:300])
            return
    yield timed(WHAT, peer, costs["ours"], costs["theirs"], target)
    yield weighed(WHAT, peer, costs["ours"], costs["theirs"])


def _in_a_large_project(plan: Plan, folder: Path, server: FakeServer) -> Iterator[Row]:
    what, against = "run of 4 attempts, 10,000 files, 8 MB rollup", "the same, 100 files, 10 kB rollup"
    small = make_job(folder / "small", server, files=100, rollup_bytes=10_000)
    large = make_job(folder / "large", server, files=10_000, rollup_bytes=8_000_000)
    answers = WRONG, WRONG, WRONG, RIGHT
    costs = in_turns({"large": large.ours(plan, *answers), "small": small.ours(plan, *answers)}, LARGE_ROUNDS)
    yield timed(what, against, costs["large"], costs["small"])
    yield weighed(what, against, costs["large"], costs["small"])
