"""Landing: a new branch of each green result, in the user's clones. Nothing is pushed, merged or checked out.

    OUT/landed.jsonl          a line for each result that was tried, with its state; the latest counts
    OUT/ID/pull-request.md    a title and a text for it
    OUT/clones/               clones of the repositories that a list names by URL

The commits are made of git's objects alone: no work tree, index, hook, filter or merge driver of a clone has a part in
it. Equal commits have equal names, so a landing that was killed is found again. No branch that exists is changed.
"""

import email
import email.policy
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from itertools import count
from pathlib import Path
from string import Template
from tempfile import TemporaryDirectory

from code_commit.commands.results import Result, read_lines
from code_commit.errors import NotSetUpError
from code_commit.files import is_folder, read_regular_file
from code_commit.fleet import FleetOptions
from code_commit.fleet.patches import diff_of, digest_of
from code_commit.fleet.repositories import find_bases
from code_commit.fleet.results import CLONES, LANDED, append_line, write_own
from code_commit.git import ask_git, configured
from code_commit.project import read_text
from code_commit.terminal import shown

ON_ITS_BASE, ON_A_NEWER_BASE, CONFLICTS, THERE, FAILED = "landed", "base moved", "conflicts", "already there", "failed"
NOTHING = "changed nothing"
PULL_REQUEST = """\
$title

$verdict

$words

```
$diffstat
```
"""


@dataclass(frozen=True, slots=True)
class Landing:
    """The state of a result, which `commit` and `patch` identify as in results.jsonl."""

    id: str
    commit: str
    patch: str
    state: str
    branch: str = ""
    clone: str = ""
    message: str = ""

    @property
    def in_words(self) -> str:
        return ": ".join(filter(None, (self.state, self.branch, self.message)))


class LandError(Exception):
    """A result could not land: it has no branch."""


def load_landings(out: Path, results: Mapping[str, Result]) -> dict[str, Landing]:
    """Return the last landing of each of these results, by id; those of another commit or patch do not count."""
    landings: list[Landing] = []
    with suppress(OSError):
        landings = read_lines(out / LANDED, Landing)
    now = {name: (result.commit, result.patch) for name, result in results.items()}
    return {each.id: each for each in landings if now.get(each.id) == (each.commit, each.patch)}


def land_results(
    out: Path, results: Mapping[str, Result], options: FleetOptions, done: Mapping[str, Landing]
) -> Iterator[Landing]:
    """Land the green results that the options name, and yield the state of each as soon as it is known.

    The options name them by id or by the beginning of their patch's hash, or else all of them. `done` are the landings
    of before. Raises LogError, and NotSetUpError for an unusable template or author, or a choice that names nothing.
    """
    file = options.pull_request
    template = read_text(file, "write a template into it", str(file)) if file else PULL_REQUEST
    _require_branch(out, options.branch)
    if options.author and not re.fullmatch(r"[^<>\n]+ <[^<>\n]+>", options.author):
        raise NotSetUpError(f"--author {shown(options.author)}: write it as 'Name <name@example.org>'")
    chosen = [result for _, result in sorted(results.items()) if result.is_green]
    if unknown := sorted(set(options.only) - results.keys()):
        raise NotSetUpError(f"{out} has no task {', '.join(map(shown, unknown))}")
    if options.only or options.group:
        groups = tuple(options.group)
        chosen = [each for each in chosen if each.id in options.only or (groups and each.patch.startswith(groups))]
    if not chosen:
        among = " among those of --only and --group" if options.only or options.group else ""
        raise NotSetUpError(f"{out} has no green result{among}: nothing can land")
    final = {name: each for name, each in done.items() if each.state in (ON_ITS_BASE, ON_A_NEWER_BASE, THERE, NOTHING)}
    if not options.author:
        _require_identity(out, (result for result in chosen if result.patch and result.id not in final))
    fetched = set[Path]()
    for result in chosen:
        landing = final.get(result.id)
        if landing is None:
            landing = _land(out, result, options, template, fetched)
            append_line(out / LANDED, landing)
        yield landing


def _require_branch(out: Path, name: str) -> None:
    """Raise NotSetUpError for a name of branches that git would refuse, or with a part in braces that is not {id}."""
    example = name.replace("{id}", "x")
    if found := re.search(r"\{[^{}]*\}", example):
        raise NotSetUpError(f"--branch {shown(name)}: only {{id}} is filled in, not {shown(found[0])}")
    if ask_git(["check-ref-format", f"refs/heads/{example}"], out).returncode:
        raise NotSetUpError(f"--branch {shown(name)}: git does not allow a branch of this name; choose another")


def _require_identity(out: Path, chosen: Iterable[Result]) -> None:
    """Raise NotSetUpError where git would refuse a commit, for want of an author or a committer."""
    places = (Path(result.path or result.repository) for result in chosen)
    for place in dict.fromkeys(place if place.is_dir() else out for place in places):
        if not all(_knows(place, role) for role in ("AUTHOR", "COMMITTER")):
            raise NotSetUpError(
                f"git does not know who commits in {shown(str(place))}: set user.name and user.email there,"
                " or name the author with --author 'NAME <MAIL>'"
            )


def _land(out: Path, result: Result, options: FleetOptions, template: str, fetched: set[Path]) -> Landing:
    facts, folder = (result.id, result.commit, result.patch), out / result.id
    if not result.patch:
        return Landing(*facts, NOTHING)
    patch = folder / "changes.patch"
    if not patch.is_file() or digest_of(read_regular_file(patch)) != result.patch:  # a kill left a later run's
        told = f"{patch} is not that of the green result: run the fleet again, then land its result"
        return Landing(*facts, FAILED, message=told)
    try:
        path, base = _find_base(out, result, fetched)
        with TemporaryDirectory() as scratch:
            clone = _Clone(path, Path(scratch, "index"), options.author)
            commit, state, told = clone.commit_patches(folder, result.commit), ON_ITS_BASE, ""
            if base != result.commit:
                commit, state = clone.rebase(result.commit, base)
                told = _ADVICE[state].format(base=base[:12])
        if not commit:
            return Landing(*facts, state, clone=str(path), message=told)
        stat = clone.ask("diff", "--no-ext-diff", "--no-textconv", "--stat", base, commit)
        text = _pull_request(folder, result, template, stat, told)
        write_own(folder / "pull-request.md", text.encode())
        branch = clone.add_branch(options.branch.replace("{id}", result.id), commit)
        return Landing(*facts, state, branch, str(path), told)
    except LandError as error:
        return Landing(*facts, FAILED, message=str(error))


_ADVICE = {
    ON_A_NEWER_BASE: "nothing has built it on {base}; --moved does",
    CONFLICTS: "with {base}: --moved does the task again",
    THERE: "",
}


def _find_base(out: Path, result: Result, fetched: set[Path]) -> tuple[Path, str]:
    """Return the user's clone of a result's repository, or one of ours, and the commit of the base there now."""
    question, local = ("rev-parse", "-q", "--verify", "--end-of-options"), Path(result.path or result.repository)
    if result.path or is_folder(local):
        if not is_folder(local):
            raise LandError(f"{local} is no longer there")
        return local, _ask(local, *question, f"{result.base or 'HEAD'}^{{commit}}")
    name = re.sub(r"[^A-Za-z0-9]+", "-", result.repository.removesuffix(".git"))[-40:].strip("-")
    clone = out / CLONES / f"{name}-{sha256(result.repository.encode()).hexdigest()[:8]}"
    if not clone.exists():
        clone.parent.mkdir(mode=0o700, exist_ok=True)
        with TemporaryDirectory(dir=clone.parent, prefix=".") as folder:
            _ask(clone.parent, "clone", "-q", "--no-checkout", "--", result.repository, f"{folder}/clone")
            Path(folder, "clone").rename(clone)
    elif clone not in fetched:
        _ask(clone, "fetch", "-q", "origin")
    fetched.add(clone)
    with suppress(LandError):
        return clone, _ask(clone, *question, f"refs/remotes/origin/{result.base}^{{commit}}")
    return clone, _ask(clone, *question, f"{result.base}^{{commit}}")


def _ask(folder: Path, *words: str, stdin: bytes = b"", variables: Mapping[str, str] | None = None) -> str:
    """Return what git prints. Raises LandError with its complaint."""
    plain = ("-c", "core.hooksPath=/dev/null", "-c", "i18n.commitEncoding=UTF-8")
    answer = ask_git([*plain, *words], folder, stdin, variables)
    if answer.returncode != 0:
        complaint = " ".join(answer.stderr.decode("utf-8", "replace").split())[:300]
        raise LandError(f"git {words[0]} {shown(words[-1])}: {shown(complaint) or 'no answer'}")
    return answer.stdout.decode("utf-8", "replace").strip("\n")


def _identity(folder: Path, author: str) -> dict[str, str]:
    """Return the variables that give a commit its author, who is the committer too where git knows none."""
    if not author:
        return {}
    name, _, address = author.rpartition(" ")
    pairs = (("NAME", name), ("EMAIL", address.strip("<>")))
    roles = ("AUTHOR",) if _knows(folder, "COMMITTER") else ("AUTHOR", "COMMITTER")
    return {f"GIT_{role}_{part}": value for role in roles for part, value in pairs}


def _knows(folder: Path, role: str) -> bool:
    """Tell whether git knows the author or the committer of a commit there, by its settings or by variables."""
    return ask_git(["var", f"GIT_{role}_IDENT"], folder).returncode == 0


class _Clone:
    """A clone in which commits are made, by an index beside it."""

    def __init__(self, path: Path, index: Path, author: str) -> None:
        self._path = path
        self._variables = {**_identity(path, author), "GIT_INDEX_FILE": str(index)}
        self._made: list[tuple[str, bytes]] = []  # the commits on the task's base, and the mails that they come from

    def ask(self, *words: str, stdin: bytes = b"", **variables: str) -> str:
        return _ask(self._path, *words, stdin=stdin, variables=self._variables | variables)

    def commit_patches(self, folder: Path, base: str) -> str:
        """Return the commit of a task's patches on its base: its tree is the one that was built."""
        self.ask("read-tree", base)
        for patch in (folder / "changes.patch", folder / "build.patch"):
            with suppress(FileNotFoundError):
                mail = read_regular_file(patch)
                self.ask("apply", "--cached", "--whitespace=nowarn", "-", stdin=diff_of(mail))
                base = self._commit(self.ask("write-tree"), base, mail)
                self._made.append((base, mail))
        return base

    def rebase(self, base: str, newer: str) -> tuple[str, str]:
        """Return the last of the commits on a newer base, "" where there is none, and the state."""
        if ask_git(["merge-base", "--is-ancestor", base, newer], self._path).returncode:
            return "", CONFLICTS  # a merge of another history would bring back what is gone
        asked = ["config", "-z", "--name-only", "--get-regexp", r"^merge\..*\.driver$"]
        drivers = ask_git(asked, self._path).stdout.decode("utf-8", "surrogateescape").split("\0")[:-1]
        merges_itself = dict.fromkeys(drivers, "git merge-file -q %A %O %B")  # no driver or filter of the settings
        options, variables = configured({**merges_itself, "merge.renormalize": "false"})
        last = newer
        for commit, mail in self._made:
            words = [*options, "merge-tree", "--write-tree", last, commit]
            merged = ask_git(words, self._path, variables=variables)
            if merged.returncode == 1:
                return "", CONFLICTS
            if merged.returncode:
                raise LandError("git merge-tree failed: it needs git 2.38 or later")
            tree = merged.stdout.decode().strip()
            if tree != self.ask("rev-parse", f"{last}^{{tree}}"):
                last = self._commit(tree, last, mail)
        return ("", THERE) if last == newer else (last, ON_A_NEWER_BASE)

    def _commit(self, tree: str, parent: str, mail: bytes) -> str:
        date, title, verdict, words = _read_mail(mail)
        dates = {"GIT_AUTHOR_DATE": date, "GIT_COMMITTER_DATE": date}
        text = f"{title}\n\n{verdict}\n{words}".strip().encode() + b"\n"
        return self.ask("commit-tree", tree, "-p", parent, "-F", "-", stdin=text, **dates)

    def add_branch(self, name: str, commit: str) -> str:
        """Return the name of a new branch at the commit: that name, or with a number the first that is free."""
        for branch in (name if number == 1 else f"{name}-{number}" for number in count(1)):
            there = self.ask("for-each-ref", "--format=%(objectname)", f"refs/heads/{branch}")
            if not there:
                self.ask("update-ref", f"refs/heads/{branch}", commit, "0" * len(commit))
            if there in {"", commit}:
                return branch
        raise AssertionError


def _read_mail(content: bytes) -> tuple[str, str, str, str]:
    """Return the date, the title, the verdict and the LLM's words in a patch's mail, these indented as in the mail."""
    mail = email.message_from_bytes(content, policy=email.policy.default)
    body = content.partition(b"\n\n")[2].partition(b"\n---\n")[0].decode("utf-8", "replace")
    verdict, _, words = body.partition("\n")
    return str(mail["Date"]), str(mail["Subject"]).removeprefix("[PATCH] "), verdict, words


def _pull_request(folder: Path, result: Result, template: str, stat: str, told: str) -> str:
    """Return the title and the text of a pull request; the LLM's words are indented: they are no markup there."""
    _, title, verdict, words = _read_mail(read_regular_file(folder / "changes.patch"))
    build = "A `build.sh` of the fleet's list" if result.is_build_supplied else "`build.sh`"
    where = f"{build} passed on {result.commit[:12]} with this change{f'; {told}' if told else ''}."
    solved = " So did a build with tests that the LLM did not see." if result.verified else ""
    parts = {"title": title, "verdict": f"{verdict}. {where}{solved}", "words": words.strip("\n")}
    return Template(template).safe_substitute(parts, diffstat=stat, id=result.id, commit=result.commit)


def find_moved(results: Mapping[str, Result], landings: Mapping[str, Landing]) -> set[str]:
    """Return the ids of results whose base has moved or that conflict with it, and that did not land on it."""
    found = {name for name, each in landings.items() if each.state in (CONFLICTS, ON_A_NEWER_BASE)}
    asked = {each.id: (each.path or each.repository, each.base) for each in results.values() if each.commit}
    asked = {name: base for name, base in asked.items() if name not in landings or not results[name].patch}
    now = find_bases(asked.values())
    return found | {name for name, base in asked.items() if now.get(base, results[name].commit) != results[name].commit}
