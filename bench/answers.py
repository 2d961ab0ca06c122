"""What edits save: commits of a repository replayed as answers, the changed files whole and as edits.

The files of each commit are laid out as they were before it, `code-commit apply` applies the answer, and the tree is
compared with the commit, byte for byte. The edits are those of the reference encoder. Left out is what no answer can
hold: binary files, links, new modes, files without a line end at their end, and protected files.
"""

import re
import shutil
import subprocess
from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from bench.encoder import encode
from bench.measuring import CommandFailedError
from bench.plan import Plan, say
from bench.projects import clear_log, git, make_repository, source_texts
from bench.rows import Row, Target
from bench.steps import output_prices

TARGET = Target(1 / 8)
SAME = Target(0.0)
BYTES_PER_TOKEN = 3.2
QUICK = 5
LINES = 1_000
WRONG = ("    return total / len(items)", "    return total / max(1, len(items))")
KEPT = (".git", ".gitignore", "agent-config")
REJECTED, DIFFERENT, SAME_TREE = "rejected", "another tree", "the same tree"
PROTECTED = re.compile(
    r"(?:.*/)?(?:\.git(?:ignore|attributes|modules)|UserSpecification\.md)|(?:agent-config|target)/.*"
    r"|Cargo\.lock|build\.sh|codeRollup\.sh|LLMInstructions\.md"
)
Contents = Mapping[str, bytes | None]
"""What each file holds, None where it is not there."""


class Commit(NamedTuple):
    """The files of a commit that an answer can hold, before and after it."""

    name: str
    before: Contents
    after: Contents

    def answers(self, *, existing: bool = False) -> tuple[str, str]:
        """Return the answer whole and as edits; `existing` leaves out new and removed files, the same in both."""
        paths = [path for path in self.after if not existing or None not in (self.before[path], self.after[path])]
        whole = (encode(path, None, _text(self.after[path])) for path in paths)
        edits = (encode(path, _text(self.before[path]), _text(self.after[path])) for path in paths)
        return "".join(whole), "".join(edits)


def measure(plan: Plan) -> Iterator[Row]:
    """Yield the bytes and the cost of the answers, and how many of them made another tree."""
    commits = list(islice(commits_of(plan.repository), QUICK if plan.quick else plan.commits))
    if not commits:
        raise CommandFailedError(f"{plan.repository} has no commit that changes an existing text file")
    answers = [commit.answers(existing=True) for commit in commits]
    whole, edits = ([len(answer.encode()) for answer in part] for part in zip(*answers, strict=True))
    what = f"changes of existing files, {len(commits)} commits of {plan.repository.resolve().name}"
    yield Row(what, "whole files", [sum(edits)], [sum(whole)], unit="bytes", target=TARGET)
    yield Row("the same, commit by commit", "whole files", edits, whole, unit="bytes")
    yield _one_line()
    for model, price in output_prices():
        costs = ([sum(sizes) / BYTES_PER_TOKEN * price] for sizes in (edits, whole))
        yield Row(f"the same as output, {model}", "whole files", *costs, unit="dollars")
    with plan.work_folder() as folder:
        make_repository(folder / "project")
        ends = Counter(end for commit in commits for end in replay(plan.command, folder / "project", commit))
    yield Row(
        "answers that made another tree than the commit", "all", [ends[DIFFERENT]], [ends.total()], "answers", SAME
    )
    yield Row("answers that a rule rejects, whole and as edits", "all", [ends[REJECTED]], [ends.total()], "answers")


def _one_line() -> Row:
    """Compare the answers that change one line in the middle of a thousand of this package's own."""
    lines = "".join(source_texts()).split("\n")[:LINES]
    old, new = (
        "".join(f"{line}\n" for line in [*lines[: LINES // 2], text, *lines[LINES // 2 + 1 :]]) for text in WRONG
    )
    edits, whole = (len(encode("src/module.py", before, new).encode()) for before in (old, None))
    return Row(f"a change of one line in a file of {LINES:,} lines", "whole file", [edits], [whole], unit="bytes")


def commits_of(repository: Path) -> Iterator[Commit]:
    """Yield the commits that change existing files, the latest first."""
    for name in git(repository, "log", "--no-merges", "--format=%H", "--diff-filter=M").decode().split():
        commit = Commit(name, *_change_of(repository, name))
        if any(commit.answers(existing=True)):
            yield commit


def replay(command: Path, root: Path, commit: Commit) -> list[str]:
    """Apply both answers to the files of before the commit, and return what came of each."""
    ends = [_apply(command, root, commit, answer) for answer in commit.answers()]
    if len(set(ends)) > 1 or DIFFERENT in ends:
        say(f"         {commit.name}: whole files {ends[0]}, edits {ends[1]}")
        return [DIFFERENT if end == REJECTED else end for end in ends]
    return ends


def _apply(command: Path, root: Path, commit: Commit, answer: str) -> str:
    clear_log(root)
    for entry in root.iterdir():
        if entry.is_dir() and entry.name not in KEPT:
            shutil.rmtree(entry)
        elif entry.name not in KEPT:
            entry.unlink()
    for path, content in commit.before.items():
        if content is not None:
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_bytes(content)
    response = root / "agent-config/answer.txt"
    response.write_bytes(answer.encode())
    argv = [command, "apply", "--quiet", "--answer-format", "edits", response]
    done = subprocess.run(argv, cwd=root, capture_output=True, text=True, check=False)
    if done.returncode not in (0, 4):
        raise CommandFailedError(f"apply of {commit.name} ended with {done.returncode}: {done.stderr[-300:]}")
    if done.returncode == 4:
        return REJECTED
    files = (path for path in root.rglob("*") if path.is_file() and path.relative_to(root).parts[0] not in KEPT)
    made = {str(path.relative_to(root)): path.read_bytes() for path in files}
    return SAME_TREE if made == {path: data for path, data in commit.after.items() if data is not None} else DIFFERENT


def _change_of(repository: Path, commit: str) -> tuple[Contents, Contents]:
    """Return the files that a commit changes and an answer can hold, before and after it."""
    raw = git(repository, "diff-tree", "-r", "-z", "--root", "--no-renames", "--no-commit-id", "--raw", commit)
    fields = raw.decode("utf-8", "surrogateescape").split("\0")[:-1]
    before: dict[str, bytes | None] = {}
    after: dict[str, bytes | None] = {}
    for entry, path in zip(fields[::2], fields[1::2], strict=True):
        old_mode, new_mode, old_blob, new_blob, _ = entry[1:].split(" ")
        modes = {old_mode, new_mode} - {"000000"}
        if len(modes) > 1 or not modes <= {"100644", "100755"} or PROTECTED.fullmatch(path):
            continue
        contents = [_blob(repository, blob) for blob in (old_blob, new_blob)]
        if _is_text(contents[0]) and _is_text(contents[1]) and (not contents[1] or contents[1].endswith(b"\n")):
            before[path], after[path] = contents
    return before, after


def _blob(repository: Path, name: str) -> bytes | None:
    return git(repository, "cat-file", "blob", name) if name.strip("0") else None


def _text(content: bytes | None) -> str | None:
    return None if content is None else content.decode()


def _is_text(content: bytes | None) -> bool:
    try:
        return content is None or "\0" not in content.decode()
    except UnicodeDecodeError:
        return False
