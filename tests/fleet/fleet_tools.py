"""What the tests of a fleet share: a repository that is ready, recorded answers, and a list of tasks."""

import json
import os
import signal
import subprocess
from pathlib import Path

from command import CODE_COMMIT, git

WRONG, RIGHT = "^^^ok.txt\nno\n^^^end\n", "^^^ok.txt\nok\n^^^end\n"


def make_repository(root: Path, build: str = "grep -q '^ok$' ok.txt") -> Path:
    """Make a repository whose build passes when ok.txt says ok."""
    root.mkdir()
    git(root, "init", "-q")
    (root / ".gitignore").write_text("/agent-config\n")
    (root / "build.sh").write_text(f"#!/bin/sh\n{build}\n")
    (root / "build.sh").chmod(0o755)
    (root / "ok.txt").write_text("not yet\n")
    git(root, "add", "-A")
    git(root, "commit", "-qm", "start")
    return root


def make_answers(folder: Path, *answers: str) -> str:
    """Record an LLM's answers and return the model that gives them."""
    folder.mkdir()
    for number, answer in enumerate(answers, start=1):
        (folder / f"{number}-response.txt").write_text(answer)
    return f"replay:{folder}"


def make_list(path: Path, *tasks: dict) -> Path:
    path.write_text("".join(json.dumps(task) + "\n" for task in tasks))
    return path


def task(name: str, repository: Path | str, model: str = "", **more) -> dict:
    settings = ({"model": model} if model else {}) | more.pop("settings", {})
    line = {"id": name, "repository": str(repository), "commit": "HEAD", "query": "Make ok.txt say ok.\nPlease."}
    return {**line, "settings": settings, **more}


def start_fleet(tasks: Path, *arguments: str, **more) -> subprocess.Popen[str]:
    """Start a fleet whose results go to the folder `out` beside its list."""
    words = [*CODE_COMMIT, "fleet", str(tasks), "--out", str(tasks.parent / "out"), *arguments]
    return subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=tasks.parent, **more)


def run_fleet(tasks: Path, *arguments: str, seconds: float = 60, **more) -> subprocess.CompletedProcess[str]:
    with start_fleet(tasks, *arguments, **more) as process:
        try:
            output, complaint = process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGTERM)
            raise
    return subprocess.CompletedProcess(process.args, process.returncode, output, complaint)


def results(tasks: Path) -> dict[str, dict]:
    """Return the latest result of each task."""
    lines = (tasks.parent / "out" / "results.jsonl").read_text().splitlines()
    return {line["id"]: line for line in map(json.loads, lines)}


def processes_with(text: str) -> list[int]:
    """Return the processes, but this one, in whose command line or working folder the text stands."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and int(entry.name) != os.getpid():
                words = (entry / "cmdline").read_bytes().decode(errors="replace")
                if text in words or text in str((entry / "cwd").readlink()):
                    found.append(int(entry.name))
        except OSError:
            continue
    return found
