"""A build's failure that no answer can mend, told by the end of its output.

Its own sandbox refused a path that is kept, or the network; a program is missing, or a disk or the memory is full.

The output alone is not enough, since tests of such failures print the same words. They are the code's own where a file
of the project has them that the last lines name or quote.
"""

import functools
import os
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from code_commit.regex import regex
from code_commit.terminal import shown

TAIL = 65_536  # bytes of a build's output that are looked at
_LAST_LINES = 15  # of these: an earlier one did not end the build
_LONGEST_LINE = 2_000
_CAUSES = 2  # lines above a cause
_OF_TRACE = regex(r"at \S|\.{3} \d+ more$")  # as Java, JavaScript and .NET print below a message
_CATALOGS = "/usr/share/locale"
_READ_ONLY = regex(r"(?i:Read-only file system)|\bEROFS\b|\[Errno 30\]")
_BUSY = regex(r"(?i:Device or resource busy)|\bEBUSY\b|\[Errno 16\]")
"""The kernel's answers to a change at or below a read-only mount, and to a removal of one: EROFS and EBUSY of errno(3).
EPERM is none of them, for EROFS comes first."""
_NO_NETWORK = regex(
    r"(?i:failure (?:in name resolution|resolving)|resolv\w+ (?:host|proxy)|reach(?:ing)? host|unknown ?host"
    r"|no such host|host lookup|lookup address|server misbehaving|Network is unreachable|Name or service not known"
    r"|nxdomain|dns error|temporarily unavailable \([\w.-]+:\d+\)|NameServerFailure|NetworkUnreachable"
    r"|FailedToOpenSocket)|\b(?:EAI_AGAIN|ENETUNREACH|ENOTFOUND)\b"
)
"""The words of programs where there is no network but the loopback: ENETUNREACH, and EAI_AGAIN of getaddrinfo(3)."""
_NO_SPACE = regex(
    r"(?i)No space left on device|Disk quota exceeded|Killed signal terminated program|Killed \(program"
    r"|fatal error: \S+ terminated with signal 9|virtual memory exhausted|LLVM ERROR: out of memory"
)
"""The words of any program on a full disk, and of a compiler, which runs no code of the project, on full memory."""
_OF_LIBRARY = (
    *("No space left on device", "Disk quota exceeded"),
    *("Read-only file system", "Device or resource busy"),
    *("Temporary failure in name resolution", "Network is unreachable", "Name or service not known"),
)
"""The messages of the C library, which programs print in the user's language."""
_NOWHERE = regex(r"\.(?:invalid|test|example|localhost)\b")  # without addresses in any network: RFC 6761
_PLACE_IN_CODE = regex(r"\W*(?:on )?line \d")  # behind the file that made a call
_OF_SHELL = regex(r"^\S*build\.sh(?:: (?:\w+ )?\d+|:\d+|\[\d+\]): ")
"""The words of a shell before its own messages, whatever they are about: of bash and dash, zsh, and ksh."""
_NOT_RUN = regex(
    rf"{_OF_SHELL.pattern}(?P<name>[\w.+-]+): .+$|{_OF_SHELL.pattern}.+: (?P<last>[\w.+-]+)$"
    r"|^(?:\S*/)?(?P<caller>[\w.-]+): (?:[^:]* )?['\u2018]?(?P<called>(?!\d+:)[\w.+-]+)['\u2019]?: .+$"
)
_NO_MODULE = regex(r"^\S*python[\d.]*: No module named '?(\w+)")
"""The message of a shell on a command of build.sh, that of a program such as `env` on one that build.sh has it call,
and that of `python -m`: each names what is not installed."""
_COMMAND_NOT_FOUND = 127  # the exit code of a shell: POSIX, Shell Command Language, 2.8.2
_SUPPLIES = regex(
    r"(?m)\b(?:add|ci|exec|get|install|link|restore|run|source|sync|activate|PATH)\b|(?:^|[;&|])\s*(?:\.|eval)\s"
)
_INTO_PROJECT = regex(r"\b(?:npm|pnpm|yarn|bun|composer)\b(?![^\n;&|]*(?:\s-g|exec|global|link|PATH))[^\n;&|]*[\n;&|]")
"""The words of a command by which a file of the project may supply another, or the one that it runs; and commands that
install into the project, where a shell looks for programs only if a folder of it is in PATH.
"""
_NAME = regex(r"'([^']+)'|\"([^\"]+)\"|\u2018([^\u2019]+)\u2019|([^\s'\"`,:;()\[\]]+)")


class Places(NamedTuple):
    """The paths that a sandbox keeps as they are, and those in them that it leaves writable, by absolute names."""

    root: Path
    kept: Collection[Path]
    writable: Collection[Path] = ()
    network: bool = True

    def find(self, name: str) -> tuple[Path, Path | None]:
        """Return the path of a name, and the kept one that it is or lies below."""
        path = Path(os.path.normpath(self.root / name))
        above = next((each for each in (path, *path.parents) if each in self.kept or each in self.writable), None)
        return path, above if above in self.kept else None


class _Name(NamedTuple):
    text: str
    span: tuple[int, int]
    is_path: bool


def find_refusal(tail: bytes, places: Places, files_with: Callable[[str], Mapping[str, str]]) -> str:
    """Return the line of a build's last ones in which a kept path, or the network, was refused; "" if there is none.

    `files_with` gives the texts of the project's files, by their paths, that have some words in any letter case.
    """
    lines = _last_lines(tail)
    for number, said in [*enumerate(lines)][::-1]:
        line = _in_english(_OF_SHELL.sub("", said[:_LONGEST_LINE]))
        if _READ_ONLY.search(line) and not any(name.is_path for name in _names(line, places)):
            causes = lines[max(0, number - _CAUSES) : number]  # Rust's errors name the path above their cause
            line = " ".join([*(cause[:_LONGEST_LINE] for cause in causes), line])
        found = _find_path(line, places) or (None if places.network else _find_network(line))
        if found and not _is_own(*found, lines, files_with):
            return shown(line)
    return ""


def find_full(tail: bytes, files_with: Callable[[str], Mapping[str, str]]) -> str:
    """Return the line of a build's last ones that tells of no space left, in words that the project has not."""
    for line in map(_in_english, reversed(_last_lines(tail))):
        if (said := _NO_SPACE.search(line[:_LONGEST_LINE])) and not files_with(said[0]):
            return shown(line[:_LONGEST_LINE])
    return ""


def _last_lines(tail: bytes) -> list[str]:
    """Return the last lines of an output, with those of stack traces among them, which do not count."""
    lines = [line.strip() for line in tail.decode("utf-8", "replace").split("\n") if line.strip()]
    earlier = [number for number, line in enumerate(lines) if not _OF_TRACE.match(line)][:-_LAST_LINES]
    return lines[earlier[-1] + 1 :] if earlier else lines


def _in_english(line: str) -> str:
    for english, other in _messages().items():
        line = line.replace(other, english)
    return line


@functools.cache
def _messages() -> dict[str, str]:
    """Return the messages of the C library, and what they are in the user's language."""
    import gettext  # few builds need it

    library = gettext.translation("libc", _CATALOGS, fallback=True)
    return {text: library.gettext(text) for text in _OF_LIBRARY}


def _find_path(line: str, places: Places) -> tuple[str, str] | None:
    """Return the words of a refusal and the message with the kept path."""
    if said := _READ_ONLY.search(line):
        paths = [name for name in _names(line, places) if name.is_path]
        named = [name for name in paths if not _PLACE_IN_CODE.match(line, name.span[1])]
        behind = [name for name in named if name.span[0] >= said.end() and name.text[:1] != "-"]
        name = next(iter(behind), None) or next((name for name in reversed(named)), None)
        if name and places.find(name.text)[1]:
            return said[0], _between(line, said.span(), name.span)
    elif said := _BUSY.search(line):
        for name in _names(line, places):
            path, kept = places.find(name.text)
            is_beside = (
                "rename" in line and not path.exists() and any(path.parent == each.parent for each in places.kept)
            )
            if path == kept or is_beside:  # `sed -i` names the new file alone
                return said[0], _between(line, said.span(), name.span)
    return None


def _names(line: str, places: Places) -> Iterator[_Name]:
    for match in _NAME.finditer(line):
        text = match[match.lastindex or 0]
        is_path = match[4] is None or "/" in text or places.find(text)[1] is not None
        yield _Name(text, match.span(), is_path)


def _between(line: str, first: tuple[int, int], second: tuple[int, int]) -> str:
    return line[min(first[0], second[0]) : max(first[1], second[1])]


def _find_network(line: str) -> tuple[str, str] | None:
    said = _NO_NETWORK.search(line)
    return (said[0], line) if said and not _NOWHERE.search(line) else None


def _is_own(words: str, message: str, lines: Sequence[str], files_with: Callable[[str], Mapping[str, str]]) -> bool:
    """Tell whether a file of the project has the words that the last lines name, or the message itself."""
    output = "\n".join(lines)
    return any(
        message in text or re.search(rf"(?<![\w.-]){re.escape(Path(path).name)}(?![\w-])", output)
        for path, text in files_with(words).items()
    )


def find_missing(
    tail: bytes, exit_code: int | None, script: str, has: Callable[[str], bool], *, looks_in_project: bool = False
) -> str:
    """Return the program or module that build.sh calls and that is not installed; "" where an answer may supply it.

    `script` is the text of build.sh, which no answer changes. `has` tells whether the project has a file or folder of a
    name, `looks_in_project` whether a folder of it is in PATH. A shell says in any words that it did not find a
    command, and with the exit code; another command may follow.
    """
    lines = _last_lines(tail)
    code = re.sub(r"(?m)(?:^|(?<=\s))#.*", "", script)
    for line in reversed(lines):
        found, before = _NOT_RUN.search(line), r"(?<![\w./$-])"
        if not (found and (exit_code == _COMMAND_NOT_FOUND or "not found" in line)):
            found, before = _NO_MODULE.search(line), r"-m\s+"
        elif found["caller"]:
            before = rf"(?<![\w-]){re.escape(found['caller'])}\b[^\n]*?{before}"
        name = next(filter(None, found.groups()[::-1]), "") if found else ""
        called = name and re.search(rf"{before}{re.escape(name)}(?![\w.-])", code)
        if not called or has(name):
            continue
        before = code[: called.end()].removesuffix(name)
        steps = before if looks_in_project else _INTO_PROJECT.sub("", before)
        if not _SUPPLIES.search(steps):
            return name
    return ""
