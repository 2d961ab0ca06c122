"""What chosen codebases save: the latest commits of a repository, each taken as a task.

`codebases`: the commit's message is the query. As chosen count the files that it changes; how well an LLM chooses is
not measured here. The build's output and the answers, which a repair adds, are the same each time and left out.

`choosing`: all that is read in a task of one choice and two changes, with the settings that `init` writes; of long
files the lines that the commit changes are chosen. How many of its files the prompts lack is counted beside it.
"""

import re
import statistics
import subprocess
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import cache
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from bench.comparing import SHOWN, Comparison, Plan, Side, counted, limit
from bench.environments import Tool, git
from bench.measuring import Command, CommandFailedError
from bench.projects import clear_log, write_file

BYTES_PER_TOKEN = 3.2
ATTEMPTS = 4
CHANGES, SHARE_READ = 2, 0.5  # calls after the choice; of what they would read with all files whole
AS_INITIALIZED = 'answer_format = "auto"\nprompt_layout = "cached"\ncodebase_additions = true\n'
PRICES = {"OpenAI": (2.0, 2.5, 0.1), "Claude": (4.0, 8.0, 0.2), "Gemini": (2.0, 2.0, 0.1)}
"""Dollars for a million tokens of a default model's input: plain, written to the cache, read from it."""
LONG, BESIDE = 12_000, 9  # bytes of a file that is chosen in parts; lines beside what changes
LACKS = {
    "not outlined": "without an outline in the choice",
    "not named": "not named in the choice",
    "not shown": "not shown in the change",
}
FIT, SHARES = 50_000, (0.05, 0.1, 0.2, 0.5)  # tokens; parts of the codebase
WAYS = {
    "fit": f"what fits into {FIT:,} tokens",
    "select": "files that a call before chose",
    "both": f"files that a call before chose, in {FIT:,} tokens",
}
SELECT = ("--select", "--model", "replay:agent-config/recorded")
ROOT_FILES = ("Cargo.lock", "build.sh", "codeRollup.sh", "LLMInstructions.md", "target", "agent-config")
NAMES = (".gitignore", ".gitattributes", ".gitmodules", "UserSpecification.md")
UNPROTECTED = (".", *(f":!{name}" for name in ROOT_FILES), *(f":(exclude,glob)**/{name}" for name in NAMES))


class Commit(NamedTuple):
    """A commit, and the texts before and after it of the existing files that it changes."""

    name: str
    files: Mapping[str, tuple[str, str]]


def commits_of(repository: Path, most: int) -> list[Commit]:
    """Return the latest commits that change existing files. Raises CommandFailedError where there are none."""
    names = git(repository, "log", "--no-merges", "--format=%H", "--diff-filter=M").decode().split()
    commits = (Commit(name, dict(_changes(repository, name))) for name in names)
    found = list(islice((commit for commit in commits if commit.files), most))
    if not found:
        raise CommandFailedError(f"{repository} has no commit that changes an existing text file")
    return found


def _changes(repository: Path, commit: str) -> Iterator[tuple[str, tuple[str, str]]]:
    options = ("--name-only", "-z", "--diff-filter=M", "--no-renames", "--ignore-submodules")
    for path in git(repository, "diff", *options, f"{commit}~", commit, "--", *UNPROTECTED).decode().split("\0")[:-1]:
        before, after = (git(repository, "show", f"{revision}:{path}") for revision in (f"{commit}~", commit))
        try:
            texts = before.decode(), after.decode()
        except UnicodeDecodeError:
            continue
        if b"\0" not in before + after and texts[1].endswith("\n"):
            yield path, texts


def clone_of(repository: Path, folder: Path) -> Path:
    """Return a clone to check commits out in."""
    git(folder, "clone", "-q", "--shared", "--no-checkout", str(repository.resolve()), "project")
    return folder / "project"


def check_out_before(root: Path, commit: str) -> None:
    """Lay out the tree before a commit, ready for our commands."""
    git(root, "checkout", "-q", "--force", "--detach", f"{commit}~")
    git(root, "clean", "-qfdx")
    clear_log(root)
    write_file(root / ".gitignore", "/agent-config\n")
    write_file(root / ".git/info/exclude", "/build.sh\n")
    write_file(root / "build.sh", "#!/bin/sh\nmake\n").chmod(0o755)


def codebases(plan: Plan) -> Iterator[Comparison]:
    """Yield what each way's codebase costs in four attempts, and of how many commits a share of it lacks a file."""
    commits = commits_of(plan.repository, 1 if plan.quick else max(1, plan.commits // 10))
    price, _, again = PRICES["Gemini"]

    def dollars(way: str, later: float) -> Side:
        def cost(tool: Tool) -> float:
            chosen = count(tool)["choice"] * price if way in {"select", "both"} else 0.0
            return (chosen + count(tool)[way] * (price + (ATTEMPTS - 1) * later)) / BYTES_PER_TOKEN / 1e6

        return counted(cost)

    with plan.work_folder() as folder:
        root = clone_of(plan.repository, folder)
        count = cache(lambda tool: sum((_count(tool, root, commit) for commit in commits), Counter[str]()))
        for layout, later in (("spec", price), ("cached", again)):
            for way, name in WAYS.items():
                what = f"input of {len(commits)} tasks, `{layout}`: {name}"
                sides = dollars(way, later), dollars("file", later)
                yield Comparison(what, "the whole codebase", *sides, 1, unit="dollars")
        for share in SHARES:
            what = f"{share:.0%} of the codebase lacks a file that the commit changes"
            lacking = counted(lambda tool, share=share: count(tool)[f"{share}"])
            yield Comparison(what, "all", lacking, limit(figure=len(commits)), 1, unit="commits")


def _requests(root: Path, commit: Commit) -> Iterator[str]:
    """Yield the lines of a choice: the files that a commit changes, and of long ones what it changes in them."""
    for path, (before, _) in commit.files.items():
        changes = git(root, "diff", f"-U{BESIDE}", f"{commit.name}~", commit.name, "--", path).decode(
            "utf-8", "replace"
        )
        hunks = [(int(first), int(number or 1)) for first, number in re.findall(r"(?m)^@@ -(\d+)(?:,(\d+))?", changes)]
        lines = ", ".join(f"{first}-{first + max(number, 1) - 1}" for first, number in hunks if first)
        yield f"{path}: {lines}" if lines and len(before.encode()) > LONG else path


def _prepare_choice(root: Path, commit: Commit, *, in_parts: bool = False) -> None:
    """Lay out the tree before a commit, with its message as the task, and the choice of the files that it changes."""
    check_out_before(root, commit.name)
    write_file(root / "agent-config/query.txt", git(root, "log", "-1", "--format=%B", commit.name).decode())
    shown = git(root, "ls-files", ":(glob)*").decode().split("\n")[0]  # where a rollup holds none of the commit's files
    chosen = _requests(root, commit) if in_parts else commit.files
    answer = "\n".join(["^^^files", *chosen, shown, "^^^end", ""])
    for number in (1, 2):  # a list with a lock file, say, is asked for once more
        write_file(root / f"agent-config/recorded/{number}-response.txt", answer)


def _count(tool: Tool, root: Path, commit: Commit) -> Counter[str]:
    """Return how many characters each way takes, and the prompt of the choice; and which shares lack a file."""
    _prepare_choice(root, commit)

    def roll_up(*options: str) -> str:
        Command([tool.command, "rollup", "--quiet", *options], root).run()
        return (root / "agent-config/codeRollup.txt").read_text("utf-8")

    whole = roll_up()
    texts = {"file": whole, "fit": roll_up("--fit", str(FIT)), "select": roll_up(*SELECT)}
    asked = [
        path.read_text("utf-8") for path in root.glob("agent-config/logs/*/1-query.txt")
    ]  # none where all is small
    texts |= {"choice": "".join(asked), "both": roll_up(*SELECT, "--fit", str(FIT))}
    counts = Counter({way: len(text) for way, text in texts.items()})
    for share in SHARES:
        part = roll_up("--fit", str(round(share * len(whole) / BYTES_PER_TOKEN)))
        files = [f"--- {path} ---\n{before}" for path, (before, _) in commit.files.items()]
        counts[f"{share}"] = int(any(file in whole and file not in part for file in files))
    return counts


def choosing(plan: Plan) -> Iterator[Comparison]:
    """Yield how many characters a choice and two changes read: the median of the commits, and the parts of it."""
    commits = commits_of(plan.repository, 1 if plan.quick else plan.commits)
    with plan.work_folder() as folder:
        root = clone_of(plan.repository, folder)
        found = cache(lambda tool: [_read_for(tool, root, commit) for commit in commits])
        median = cache(lambda tool, part: statistics.median(counts[part] for counts in found(tool)))
        what, against = f"the median of {len(commits)} tasks of {plan.repository.resolve().name}", "all files whole"
        for part, most in (("choice and changes", SHARE_READ), ("choice", SHOWN), ("change", SHOWN)):
            calls = "two changes" if part == "choice and changes" else "a change"
            times = CHANGES if part == "choice and changes" else 1
            ours = counted(lambda tool, part=part: median(tool, part))
            theirs = counted(lambda tool, times=times: times * median(tool, "whole"))
            yield Comparison(f"{what}: {part}", f"{calls}, {against}", ours, theirs, 1, most, unit="characters")
        total = cache(lambda tool, part: sum(counts[part] for counts in found(tool)))
        what = f"files of {len(commits)} tasks of {plan.repository.resolve().name}"
        for part, lack in LACKS.items():
            ours, theirs = (counted(lambda tool, key=key: total(tool, key)) for key in (part, "files"))
            yield Comparison(f"{what} {lack}", "all of them", ours, theirs, 1, SHOWN, unit="files")


def _is_named(path: str, text: str) -> bool:
    """Tell whether a text has a path, or its name on the line that lists its folder."""
    folder, _, name = path.rpartition("/")
    lists = re.findall(rf"(?m)^{re.escape(folder)}/: .*", text)
    return path in text or any(re.search(rf" {re.escape(name)}(?: \(|,|$)", line) for line in lists)


def _read_for(tool: Tool, root: Path, commit: Commit) -> Counter[str]:
    """Return how many characters the prompts of a commit's choice and change have, and the change with all files."""
    _prepare_choice(root, commit, in_parts=True)
    write_file(root / "agent-config/config.toml", AS_INITIALIZED)

    def prompt(*options: str) -> str:
        Command([tool.command, "rollup", "--quiet", *options], root).run()
        return subprocess.run([tool.command, "prompt"], cwd=root, capture_output=True, check=True).stdout.decode()

    whole, change = prompt(), prompt(*SELECT)
    choice = "".join(path.read_text("utf-8") for path in root.glob("agent-config/logs/*/1-query.txt"))
    counts = Counter(whole=len(whole), choice=len(choice), change=len(change), files=len(commit.files))
    counts["choice and changes"] = counts["choice"] + CHANGES * counts["change"]
    for path in commit.files:
        has_text = [any(f"--- {path} {end}" in text for end in ("---\n", "(lines ")) for text in (choice, change)]
        counts["not outlined"] += bool(choice) and not (has_text[0] or f"--- {path} (outline" in choice)
        counts["not named"] += bool(choice) and not _is_named(path, choice)
        counts["not shown"] += not has_text[1]
    return counts
