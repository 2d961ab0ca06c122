"""A build's failure that its own sandbox made, told by the end of its output: what is kept, and that it was refused."""

import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from code_commit.terminal import shown

TAIL = 65_536  # bytes of a build's output that are looked at
_LAST_LINES = 15  # of these: an earlier one did not end the build
_LONGEST_LINE = 2_000
_REFUSED = re.compile(
    r"Read-only file system|Operation not permitted|Device or resource busy|\b(?:EROFS|EPERM|EBUSY)\b"
    r"|\[Errno (?:1|16|30)\]"
)
"""The kernel's answers to a change of a read-only mount or of a mount point: EROFS, EPERM and EBUSY of errno(3)."""
_NO_NETWORK = re.compile(
    r"Temporary failure in name resolution|Could not resolve|Network is unreachable|no such host|UnknownHostException"
    r"|Name or service not known|failed to lookup address|dns error|\b(?:EAI_AGAIN|ENETUNREACH|ENOTFOUND)\b"
)
"""The words of programs where there is no network but the loopback: ENETUNREACH, and EAI_AGAIN of getaddrinfo(3)."""
_OF_SHELL = re.compile(r"^\S*build\.sh: (?:line )?\d+: ")  # before a shell's own messages, whatever they are about


def find_refusal(tail: bytes, kept: Iterable[Path], root: Path, *, network: bool) -> str:
    """Return the line of a build's last ones in which a kept path, or the network, was refused; "" if there is none.

    `kept` are the paths that the sandbox keeps as they are, by absolute names; `network` says whether there is one.
    """
    lines = [line.strip() for line in tail.decode("utf-8", "replace").split("\n") if line.strip()][-_LAST_LINES:]
    names = _names(kept, root)
    for line in (_OF_SHELL.sub("", line[:_LONGEST_LINE]) for line in reversed(lines)):
        if (_REFUSED.search(line) and names.search(line)) or (not network and _NO_NETWORK.search(line)):
            return shown(line)
    return ""


def _names(kept: Iterable[Path], root: Path) -> re.Pattern[str]:
    """Return the pattern of the kept paths and of what lies below them, absolute or from the root."""
    names: Sequence[str] = sorted(
        {str(path) for path in kept} | {str(path.relative_to(root)) for path in kept if path.is_relative_to(root)}
    )
    either = "|".join(re.escape(name) for name in names if name != ".")
    return re.compile(rf"(?<![\w./-])(?:\./)?(?:{either or '(?!)'})(?![\w.-])")
