"""What is worth a warning in a response that is not rejected."""

import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from code_commit.changes import VerifiedChange
from code_commit.terminal import shown
from code_commit.verify.names import fold

_CI = (
    r"\.github/(?:workflows|actions)/|\.(?:circleci|buildkite|woodpecker|ci|gitlab|forgejo|gitea)/"
    r"|\.gitlab-ci\.ya?ml\Z|\.travis\.ya?ml\Z|\.drone\.ya?ml\Z|\.cirrus\.ya?ml\Z|\.woodpecker\.ya?ml\Z|appveyor\.ya?ml\Z"
    r"|Jenkinsfile\Z|azure-pipelines[^/]*\.ya?ml\Z|bitbucket-pipelines\.ya?ml\Z|\.pre-commit-config\.ya?ml\Z"
)
_TEST = (
    r"(?:\A|.*/)(?:tests?|specs?|__tests__|e2e|testing|testdata|fixtures)/"
    r"|.*(?:\A|/)(?:test_[^/]*|conftest\.py|[^/]*(?:_test|_tests|_spec|\.test|\.spec|\.e2e|\.cy)\.\w+"
    r"|[^/]*(?:Tests?|Spec|IT)\.(?:java|kt|cs|scala|swift|php|groovy))\Z"
)


def find_cautions(changes: Sequence[VerifiedChange]) -> Iterator[str]:
    """Yield what a reviewer should look at first: shrunk files, tests and CI files that are changed."""
    for verified in changes:
        path, original = shown(verified.path), verified.original
        size = None if verified.content is None else len(verified.content)
        if original is not None and size is not None and 2 * size < len(original.content):
            yield f"{path} shrinks to under half: from {len(original.content)} to {size} bytes"
        if re.match(_CI, verified.path, re.IGNORECASE):
            yield f"{path} belongs to CI and is {_DONE[verified.action]}: check that nothing is weakened"
        elif original is not None and re.match(_TEST, verified.path):
            yield f"{path} is a test and is {_DONE[verified.action]}: check that nothing is weakened"


_DONE = {"create": "created", "replace": "changed", "delete": "removed"}


def find_near_names(changes: Sequence[VerifiedChange], root: Path) -> Iterator[str]:
    """Yield a warning for each new file that clashes with a file or folder of the tree on some other file system.

    Here both can stand side by side (else it is a violation); a checkout elsewhere loses one of them.
    """
    listings: dict[str, dict[str, list[str]]] = {}
    for path in (change.path for change in changes if change.action == "create"):
        folder = ""
        for name in path.split("/"):
            if folder not in listings:
                listings[folder] = _names_by_key(root / folder)
            near = listings[folder].get(fold(name), [name])
            if name not in near:
                other = shown(folder + min(near))
                yield f"{shown(path)} and {other} are one name where case or Unicode form does not count: rename one"
                break
            folder = f"{folder}{name}/"


def _names_by_key(folder: Path) -> dict[str, list[str]]:
    names: dict[str, list[str]] = {}
    try:
        for name in os.listdir(folder):  # noqa: PTH208 - names alone, of folders that may be large
            names.setdefault(fold(name), []).append(name)
    except OSError:
        return {}
    return names
