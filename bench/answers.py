"""What answers cost, and whether they are read right: the latest commits of a repository, each sent as an answer.

Each commit is sent twice, whole and as edits of the reference encoder, with its message as the text for the reviewer.
It has files that are created, changed and deleted; a renamed one is deleted and created. `code-commit apply` applies
the answer to the tree before the commit, and the files are compared with the commit's, byte for byte. Left out is what
no answer can hold: binary files, links, submodules, protected files. Files whose line ends or last line end the commit
changes are counted by themselves, for an answer keeps these.
"""

import json
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from bench.commits import UNPROTECTED, check_out_before, clone_of
from bench.comparing import SHOWN, Comparison, Plan, counted, limit
from bench.encoder import encode
from bench.environments import SOURCE, Tool, git
from bench.measuring import CommandFailedError
from bench.projects import source_texts, write_file

_BOM = "\ufeff"
DELETED, LINES_OF_ANSWER = 100, 10
LINES, ONE_LINE = 1_000, ("    return total / len(items)\n", "    return total / max(1, len(items))\n")
MOST_SUSPECTED = 1 / 200
SAME_TREE, DIFFERENT, SUSPECTED, REJECTED = "the same tree", "another tree", "suspected", "rejected for sure"
ENDS = "files whose line ends or last line end change"
FILE_MODES = {"000000", "100644", "100755"}


class Change(NamedTuple):
    """A file before and after a commit, None where it is not there; and whether it may be executed after it."""

    before: str | None
    after: str | None
    runs: bool


class AnsweredCommit(NamedTuple):
    name: str
    message: str
    files: Mapping[str, Change]
    other_ends: int

    def answers(self) -> tuple[str, str]:
        """Return the answer whole and as edits."""
        whole = (encode(path, None, _as_sent(change)) for path, change in self.files.items())
        edits = (encode(path, change.before, change.after) for path, change in self.files.items())
        notes = self.message and f"{self.message}\n\n"
        return notes + "".join(whole), notes + "".join(edits)


def _changed_alone(commit: AnsweredCommit) -> AnsweredCommit:
    """Return the commit with the files that were there before and are there after it, without a message."""
    files = {path: change for path, change in commit.files.items() if None not in (change.before, change.after)}
    return commit._replace(files=files, message="")


def _as_sent(change: Change) -> str | None:
    """Return the new content with the line ends that an LLM writes."""
    is_new = change.before is None or change.after is None
    return change.after if is_new else change.after.replace("\r\n", "\n")  # type: ignore[union-attr]


def answered_commits(repository: Path, most: int) -> list[AnsweredCommit]:
    """Return the latest commits whose files an answer can hold. Raises CommandFailedError where there are none."""
    found: list[AnsweredCommit] = []
    for name in git(repository, "log", "--no-merges", "--min-parents=1", "--format=%H").decode().split():
        changes = dict(_changes(repository, name))
        files = _with_the_same_ends(changes, dict(_renames(repository, name)))
        if files:
            message = git(repository, "log", "-1", "--format=%B", name).decode("utf-8", "replace").strip()
            found.append(AnsweredCommit(name, message, files, len(changes) - len(files)))
        if len(found) == most:
            break
    if not found:
        raise CommandFailedError(f"{repository} has no commit that an answer can hold")
    return found


def _changes(repository: Path, commit: str) -> Iterator[tuple[str, Change]]:
    options = ("--raw", "--no-abbrev", "-z", "--no-renames", "--ignore-submodules")
    told = git(repository, "diff", *options, f"{commit}~", commit, "--", *UNPROTECTED).decode().split("\0")[:-1]
    for facts, path in zip(told[::2], told[1::2], strict=True):
        before_mode, after_mode, *blobs, _ = facts.removeprefix(":").split()
        blank = "0" * len(blobs[0])
        if not {before_mode, after_mode} <= FILE_MODES or blobs[0] == blobs[1]:
            continue
        contents = [None if blob == blank else git(repository, "cat-file", "blob", blob) for blob in blobs]
        try:
            before, after = (content if content is None else content.decode() for content in contents)
        except UnicodeDecodeError:
            continue
        if "\0" not in f"{before}{after}":
            yield path, Change(before, after, after_mode == "100755")


def _renames(repository: Path, commit: str) -> Iterable[tuple[str, str]]:
    """Return each path that git takes for a new name, with the old one."""
    told = git(repository, "diff", "-M", "--diff-filter=R", "--name-status", "-z", f"{commit}~", commit).decode()
    fields = told.split("\0")[:-1]
    return zip(fields[2::3], fields[1::3], strict=True)


def _with_the_same_ends(changes: Mapping[str, Change], renames: Mapping[str, str]) -> dict[str, Change]:
    """Return the changes but those of files that get other line ends, or a new one none at its end."""
    deleted = [change.before for change in changes.values() if change.before is not None and change.after is None]
    kept = {}
    for path, change in changes.items():
        if (after := change.after) is not None:
            old = [changes[other].before for other in (path, renames.get(path)) if other in changes]
            old += [text for text in deleted if _without_ends(text) == _without_ends(after)]  # it may be renamed
            if any(_ends_differ(text, after) for text in [each for each in old if each] or ["\n"]):
                continue
        kept[path] = change
    return kept


def _ends_differ(before: str, after: str) -> bool:
    """Tell whether other ends are there than before, or a new line has another than the line before it."""
    if _ends(before) != _ends(after):
        return True
    had, lines = {*before.split("\n")}, after.split("\n")[:-1]
    return any(
        line not in had and line[-1:] != above[-1:] and "\r" in line[-1:] + above[-1:]
        for above, line in pairwise(lines)
    )


def _without_ends(text: str) -> list[str]:
    return text.removeprefix(_BOM).splitlines()


def _ends(text: str) -> tuple[bool, bool, bool]:
    """Tell whether lines end with CRLF, whether any ends with LF, and whether the last one ends."""
    body = text.removeprefix(_BOM)
    windows = body.count("\r\n")
    return windows > 0, windows < body.count("\n") or body == "", text == "" or body.endswith("\n")


def answers(plan: Plan) -> Iterator[Comparison]:
    """Yield the bytes and the cost of the answers, and how many of them made another tree."""
    commits = answered_commits(plan.repository, 2 if plan.quick else plan.commits)
    sizes = [tuple(len(answer.encode()) for answer in change.answers()) for change in map(_changed_alone, commits)]
    sizes = [pair for pair in sizes if pair[1]]
    whole, edits = map(sum, zip(*sizes, strict=True))
    whose = "this repository" if plan.repository == SOURCE else plan.repository.resolve().name
    what = f"{len(commits)} commits of {whose} as edits"
    yield _bytes(what, "whole files", edits, whole, time=1 / 8)
    median = sorted(sizes, key=lambda pair: pair[1] / pair[0])[len(sizes) // 2]
    yield _bytes("the median of these commits", "whole files", *reversed(median))
    lines = "".join(source_texts()).splitlines(keepends=True)[:LINES]
    old, new = ("".join([*lines[: LINES // 2], line, *lines[LINES // 2 + 1 :]]) for line in ONE_LINE)
    one_line = (len(encode("src/module.py", before, new).encode()) for before in (old, None))
    yield _bytes(f"a line of {LINES:,} as an edit", "the whole file", *one_line)
    deletion = encode("src/module.py", "".join(lines), "".join([*lines[:100], *lines[100 + DELETED :]])).count("\n")
    most = LINES_OF_ANSWER / DELETED
    yield _counted(f"an answer that deletes {DELETED} lines", "these lines", deletion, DELETED, "lines", time=most)
    yield _counted(f"{what}: {ENDS}", "files", sum(commit.other_ends for commit in commits), 1, "files", time=SHOWN)
    with plan.work_folder() as folder:
        root = clone_of(plan.repository, folder)
        ends = cache(lambda tool: Counter(end for commit in commits for end in replay(tool, root, commit)))
        for end, most in ((DIFFERENT, 0.0), (SUSPECTED, MOST_SUSPECTED), (REJECTED, SHOWN)):
            found = counted(lambda tool, end=end: ends(tool)[end])
            total = counted(lambda tool: ends(tool).total())
            yield Comparison(f"{what}, and whole: {end}", "all", found, total, 1, most, unit="answers")


def _bytes(what: str, against: str, ours: float, theirs: float, **most: float) -> Comparison:
    return _counted(what, against, ours, theirs, "bytes", **most)


def _counted(what: str, against: str, ours: float, theirs: float, unit: str, **most: float) -> Comparison:
    """Return the comparison of what was counted without a tool."""
    return Comparison(what, against, limit(figure=ours), limit(figure=theirs), 1, unit=unit, **most)


def replay(tool: Tool, root: Path, commit: AnsweredCommit) -> list[str]:
    """Apply both answers to the tree before the commit, and return what came of each."""
    return [_try(tool, root, commit, answer) for answer in commit.answers()]


def _try(tool: Tool, root: Path, commit: AnsweredCommit, answer: str) -> str:
    """Apply one answer. Name on standard error what did not make the commit's tree at once."""
    check_out_before(root, commit.name)
    response = write_file(root / "agent-config/answer.txt", answer)
    if _apply(tool, root, response) == 0:
        return _compared(root, commit)
    (record,) = root.glob("agent-config/logs/*/run.json")
    reasons = json.loads(record.read_text("utf-8"))["attempts"][0]["rejections"]
    for reason in reasons:
        sys.stderr.write(f"{commit.name} {reason['path']}: {reason['rule']}: {reason['message']}\n")
    if not all(reason.get("may_be_meant") for reason in reasons):
        return REJECTED
    if _apply(tool, root, "--as-sent", response) or _compared(root, commit) == DIFFERENT:
        return DIFFERENT
    return SUSPECTED


def _apply(tool: Tool, root: Path, *arguments: str | Path) -> int:
    argv = [tool.command, "apply", "--quiet", "--answer-format", "edits", *arguments]
    done = subprocess.run(argv, cwd=root, capture_output=True, text=True, check=False)
    if done.returncode not in (0, 4):
        raise CommandFailedError(f"apply of an answer ended with {done.returncode}: {done.stderr[-300:]}")
    return done.returncode


def _compared(root: Path, commit: AnsweredCommit) -> str:
    unlike = [path for path, change in commit.files.items() if not _is_as_committed(root / path, change)]
    if unlike:
        sys.stderr.write(f"{commit.name}: {', '.join(unlike)} differ from the commit\n")
    return DIFFERENT if unlike else SAME_TREE


def _is_same_to_git(file: Path, text: str) -> bool:
    """Tell whether git would store the file as this text: its attributes may want other line ends in a work tree."""
    stored, same = (
        git(file.parent, "hash-object", "--stdin", f"--path={file.name}", stdin=content)
        for content in (file.read_bytes(), text.encode())
    )
    return stored == same


def _is_as_committed(file: Path, change: Change) -> bool:
    """Compare content, and the mode of a file that was there before: no answer says it."""
    if change.after is None:
        return not file.exists()
    is_same = file.is_file() and (file.read_bytes() == change.after.encode() or _is_same_to_git(file, change.after))
    return is_same and (change.before is None or bool(file.stat().st_mode & 0o100) == change.runs)
