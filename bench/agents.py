"""The other agents' commands for the job of `whole_run`: one message, the build as the test, two answers.

Each is told to contact nothing but the given server: no analytics, no update check, no list of models or prices.
"""

import json
from pathlib import Path

from bench.fake_llm import FakeLLM
from bench.job import Job, prepared
from bench.measuring import Command
from bench.peers import AIDER, MINI_SWE_AGENT

MODEL = "openai/bench"
AIDER_ANSWERS = tuple(f"answer.txt\n```\n{word}\n```\n" for word in ("wrong", "right"))
AIDER_OPTIONS = (
    *("--edit-format", "whole", "--auto-test", "--test-cmd", "./build.sh", "--yes-always", "--map-tokens", "0"),
    *("--no-analytics", "--no-check-update", "--no-show-release-notes", "--no-show-model-warnings"),
    *("--no-auto-commits", "--no-gitignore", "--no-detect-urls", "--no-suggest-shell-commands"),
    *("--no-pretty", "--no-fancy-input"),
)
MODEL_METADATA = {MODEL: {"max_input_tokens": 1_000_000, "litellm_provider": "openai", "mode": "chat"}}
"""For a model that it does not know aider would fetch a list from elsewhere."""

MINI_COMMANDS = (
    "echo wrong > answer.txt && ./build.sh",
    "echo right > answer.txt && ./build.sh",
    "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT",
)
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


def aider_command(cache: Path, home: Path, job: Job, llm: FakeLLM) -> Command:
    """Return aider on the job. Raises UnavailableError."""
    metadata = home / "models.json"
    metadata.write_text(json.dumps(MODEL_METADATA))
    argv = [AIDER.install(cache), "--model", MODEL, "--model-metadata-file", metadata, *AIDER_OPTIONS]
    argv += ["--message-file", job.root / "agent-config" / "query.txt", "answer.txt"]
    return Command(argv, job.root, _environment(home, llm), prepared(job, llm.answer_with, AIDER_ANSWERS))


def mini_command(cache: Path, home: Path, job: Job, llm: FakeLLM) -> Command:
    """Return mini-swe-agent on the job; its third answer says that it is done. Raises UnavailableError."""
    query = (job.root / "agent-config" / "query.txt").read_text()
    argv = [MINI_SWE_AGENT.install(cache), "-m", MODEL, *MINI_OPTIONS, "-o", home / "trajectory.json", "-t", query]
    quiet = {
        "MSWEA_CONFIGURED": "true",
        "MSWEA_SILENT_STARTUP": "1",
        "MSWEA_COST_TRACKING": "ignore_errors",
        "MSWEA_GLOBAL_CONFIG_DIR": str(home),
    }
    answers = [f"THOUGHT: so.\n\n```mswea_bash_command\n{command}\n```\n" for command in MINI_COMMANDS]
    return Command(argv, job.root, _environment(home, llm) | quiet, prepared(job, llm.answer_with, answers))


def _environment(home: Path, llm: FakeLLM) -> dict[str, str]:
    return {
        "HOME": str(home),
        "OPENAI_API_KEY": "sk-bench-Vq3xT8mZr1LwYc7KpD5nHs2JbGf9Ae6U",
        "OPENAI_API_BASE": llm.base_url,
        "LITELLM_LOCAL_MODEL_COST_MAP": "True",
    }
