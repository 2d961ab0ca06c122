"""What a file's name alone says: that it has no place in the rollup, or that it is a package manager's lock file."""

from collections.abc import Iterable, Iterator

from code_commit.keys import KEY_VARIABLES
from code_commit.project import AGENT_CONFIG
from code_commit.redaction import Redactor
from code_commit.rollup.summary import KEY_FILE, ODD_NAME, OTHER_REPOSITORY, OUTSIDE, REVEALS_KEY, Rollup
from code_commit.terminal import shown

LOCK_FILE_LIMIT = 64 * 1024
"""Bytes: what a package manager writes beyond them says nothing that is worth its tokens."""

_LOCK_FILE_NAMES = """
    .terraform.lock.hcl Cargo.lock Cartfile.resolved Gemfile.lock MODULE.bazel.lock Package.resolved Pipfile.lock
    Podfile.lock bun.lock composer.lock conda-lock.yml deno.lock flake.lock go.sum go.work.sum gradle.lockfile mix.lock
    npm-shrinkwrap.json package-lock.json packages.lock.json pdm.lock pixi.lock pnpm-lock.yaml poetry.lock pubspec.lock
    pylock.toml rebar.lock stack.yaml.lock uv.lock yarn.lock
"""
LOCK_FILES = frozenset(_LOCK_FILE_NAMES.split())

KEY_FILES = frozenset(f"{provider}-key.txt" for provider in KEY_VARIABLES)


def fit_names(paths: Iterable[bytes], redactor: Redactor, rollup: Rollup) -> list[str]:
    """Return the names that may stand in the rollup; the others go into `rollup`, except agent-config's and git's."""
    names = list(_readable_names(paths, rollup))
    if redactor.reveals_key("\n".join(names)):
        revealing = {name for name in names if redactor.reveals_key(name)}
        for name in sorted(revealing):
            rollup.leave_out(REVEALS_KEY, name, "in its name")
        names = [name for name in names if name not in revealing]
    return names


def _readable_names(paths: Iterable[bytes], rollup: Rollup) -> Iterator[str]:
    for path in paths:
        name = path.decode("utf-8", "surrogateescape")
        reason = _fault(name)
        if reason:
            rollup.leave_out(reason, name)
        elif not _is_private(name):
            yield name


def _is_private(name: str) -> bool:
    """Tell whether it lies in agent-config or in a git directory, in any letter case: disks may not tell them apart."""
    folded = name.casefold()
    return folded.partition("/")[0] == AGENT_CONFIG or ".git" in folded.split("/")


def _fault(name: str) -> str | None:
    if name.startswith("../"):
        return OUTSIDE
    if name.endswith("/"):
        return None if _is_private(name) else OTHER_REPOSITORY
    if shown(name) != name:
        return ODD_NAME
    return KEY_FILE if name.rpartition("/")[2].casefold() in KEY_FILES and not _is_private(name) else None
