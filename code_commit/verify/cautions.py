"""What is worth a warning in a response that is not rejected."""

import re
from collections.abc import Iterator, Sequence

from code_commit.changes import VerifiedChange
from code_commit.terminal import shown

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


_CI_BEGINS = tuple(".abjABJ")
_TEST_HINTS = ("test", "Test", "spec", "Spec", "e2e", "fixtures", "IT.", ".cy.")
"""Without one of these a path is no test, and with another first character it does not belong to CI."""


def find_cautions(changes: Sequence[VerifiedChange]) -> Iterator[str]:
    """Yield what a reviewer should look at first: shrunk files, tests and CI files that are changed."""
    for verified in changes:
        path, original = shown(verified.path), verified.original
        size = None if verified.content is None else len(verified.content)
        if original is not None and size is not None and 2 * size < len(original.content):
            yield f"{path} shrinks to under half: from {len(original.content)} to {size} bytes"
        if verified.path.startswith(_CI_BEGINS) and re.match(_CI, verified.path, re.IGNORECASE):
            yield f"{path} belongs to CI and is {_DONE[verified.action]}: check that nothing is weakened"
        elif (
            original is not None
            and any(hint in verified.path for hint in _TEST_HINTS)
            and re.match(_TEST, verified.path)
        ):
            yield f"{path} is a test and is {_DONE[verified.action]}: check that nothing is weakened"


_DONE = {"create": "created", "replace": "changed", "delete": "removed"}
