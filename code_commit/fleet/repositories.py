"""The repositories of tasks: their names, and questions to git about their commits and the files that a run needs."""

import json
import os
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from code_commit.files import is_folder
from code_commit.fleet.tasks import NO_BUILD, NO_SUBMODULES, SUBMODULES, FleetTask
from code_commit.git import ask_git
from code_commit.project import AGENT_CONFIG, BUILD_SCRIPT
from code_commit.regex import regex
from code_commit.terminal import shown

_AT_ONCE = 16  # repositories that are asked at a time
_NO_HOOKS = ("-c", "core.hooksPath=/dev/null")
_LONGEST_NAME = 90  # characters in an id

_REMOTE = regex(
    r"(?:(?P<scheme>[a-z+]+)://(?:[^/]*@)?(?P<host>[^/]*?)(?::(?:22|80|443))?/|(?:[^/@]*@)?(?P<scp>[^/:@]+):)(?P<path>.+)",
    re.IGNORECASE,
)
"""A URL, or a place on a host as of scp; the usual ports are not of the host's name."""


def list_repositories(repositories: Sequence[str], folder: Path, values: Mapping[str, Any]) -> list[str]:
    """Return the line of a task for each repository, and a blank line for each comment and each one named before.

    One that is spelled in another way is the same: as another path, or with `.git`, another user or scheme.
    """
    names: Counter[str] = Counter()
    lines, known = [], {""}
    for repository in map(str.strip, repositories):
        place, name = _place_and_name(repository, folder)
        if place in known or repository.startswith("#"):
            lines.append("")
            continue
        known.add(place)
        names[name.lower()] += 1
        again = f"-{names[name.lower()]}" if names[name.lower()] > 1 else ""
        lines.append(json.dumps({"id": name + again, "repository": repository, **values}))
    return lines


def _place_and_name(repository: str, folder: Path) -> tuple[str, str]:
    """Return what a repository's spellings share (host and path, or real path), and its name, a URL's with owner."""
    remote = _REMOTE.fullmatch(repository)
    path = remote["path"].rstrip("/").removesuffix(".git") if remote else ""
    if remote and remote["scheme"] != "file":
        place = f"{(remote['host'] or remote['scp']).lower()}/{path.strip('/')}"
    else:
        local = f"/{remote['path']}" if remote else repository
        place = local and os.path.realpath(folder / Path(local).expanduser()).removesuffix("/.git")
    name = path or Path(place).name.removesuffix(".git")
    return place, re.sub(r"[^A-Za-z0-9._-]+", "-", name).lstrip("._-")[:_LONGEST_NAME] or "x"


def find_bases(wanted: Iterable[tuple[str, str]]) -> dict[tuple[str, str], str]:
    """Return the commit that each base (a branch, a tag, HEAD) of a path or URL is now, none for the SHA of a URL."""
    places: defaultdict[str, set[str]] = defaultdict(set)
    for place, base in wanted:
        places[place].add(base)

    def find(place: str) -> dict[tuple[str, str], str]:
        if is_folder(place):
            return {(place, base): commit for base, commit in _commits_in(Path(place), sorted(places[place])).items()}
        said = ask_git(["ls-remote", "-q", "--", place], Path(os.sep)).stdout.decode().splitlines()
        refs = {name: commit for commit, _, name in (line.partition("\t") for line in said)}
        ways = ("{}", "refs/heads/{}", "refs/tags/{}^{{}}", "refs/tags/{}")
        found = {base: [refs[name] for way in ways if (name := way.format(base)) in refs] for base in places[place]}
        return {(place, base): commits[0] for base, commits in found.items() if commits}

    with ThreadPoolExecutor(_AT_ONCE) as pool:
        return {key: commit for found in pool.map(find, places) for key, commit in found.items()}


def _commits_in(path: Path, names: Sequence[str]) -> dict[str, str]:
    asked = "".join(f"{name}^{{commit}}\n" for name in names).encode()
    lines = ask_git(["cat-file", "--batch-check"], path, asked).stdout.decode("utf-8", "replace").splitlines()
    return {name: line.split()[0] for name, line in zip(names, lines, strict=False) if " commit " in line}


def find_unfit(tasks: Mapping[int, FleetTask]) -> Iterator[tuple[int, str]]:
    """Yield each problem for which a run would refuse a task, with its line. Only commits are fetched from a URL."""
    places: defaultdict[str, dict[int, FleetTask]] = defaultdict(dict)
    for number, task in tasks.items():
        places[task.place][number] = task
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        for found in pool.map(lambda place: list(_unfit_at(place, places[place])), places):
            yield from found


def _unfit_at(place: str, tasks: Mapping[int, FleetTask]) -> Iterator[tuple[int, str]]:
    commits = sorted({task.commit for task in tasks.values()})
    if next(iter(tasks.values())).path:
        if is_folder(place) and ask_git(["rev-parse", "--git-dir"], Path(place)).returncode == 0:
            yield from _unfit_in(Path(place), dict(zip(commits, commits, strict=True)), tasks)
        else:
            why = "is not a git repository"
            yield from ((line, f"repository: {task.repository} {why}") for line, task in tasks.items())
        return
    little = ("-q", "--depth=1", "--filter=blob:none")
    with TemporaryDirectory() as folder:
        copy = Path(folder, "copy")
        answer = ask_git([*_NO_HOOKS, "clone", "--bare", *little, "--", place, str(copy)], Path(folder))
        if answer.returncode != 0:
            said = shown(answer.stderr.decode("utf-8", "replace").partition("\n")[0][:300].removeprefix("fatal: "))
            yield from ((line, f"repository: git clone: {said}") for line in tasks)
            return
        names = {commit: commit if commit == "HEAD" else f"refs/asked/{n}" for n, commit in enumerate(commits)}
        for commit, name in names.items():
            if name != commit:
                ask_git([*_NO_HOOKS, "fetch", *little, "origin", f"+{commit}:{name}"], copy)
        yield from _unfit_in(copy, names, tasks)


def _unfit_in(path: Path, names: Mapping[str, str], tasks: Mapping[int, FleetTask]) -> Iterator[tuple[int, str]]:
    there = _commits_in(path, list(names.values()))
    files = (BUILD_SCRIPT, ".gitignore", SUBMODULES)
    contents = read_blobs(path, [f"{name}:{file}" for name in there for file in files])
    for line, task in tasks.items():
        name = names[task.commit]
        if name not in there:
            yield line, f"commit: {task.repository} has no {task.commit}"
            continue
        build, ignored, modules = (contents.get(f"{name}:{file}") for file in files)
        if task.overlay.get(BUILD_SCRIPT, build) is None and not task.build:
            yield line, NO_BUILD
        if AGENT_CONFIG.encode() not in (ignored or b"") and not task.setup:
            yield line, f'its .gitignore has no line /{AGENT_CONFIG}: "setup": true supplies it'
        if task.overlay.get(SUBMODULES, modules):
            yield line, NO_SUBMODULES


def read_blobs(repository: Path, names: Sequence[str]) -> dict[str, bytes]:
    """Return the content of each file that is there, by its name for git: COMMIT:PATH, or the blob's own."""
    asked = "".join(f"{name}\n" for name in names).encode()
    answer = BytesIO(ask_git(["cat-file", "--batch"], repository, asked).stdout)
    found = {}
    for name in names:
        if head := re.search(rb" (\w+) (\d+)$", answer.readline()):
            content = answer.read(int(head[2]) + 1)
            if head[1] == b"blob":
                found[name] = content[:-1]
    return found
