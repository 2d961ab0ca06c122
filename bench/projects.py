"""The projects to work on, git work trees of real source, and what builds print."""

import os
import random
import shutil
from collections.abc import Iterator, Mapping
from functools import cache
from itertools import count, cycle
from pathlib import Path

from bench.environments import SOURCE, git

INTO_ONE_PACK = ("-c", "core.bigFileThreshold=1", "-c", "core.compression=0")
"""Files over the threshold go into a pack at once: ten thousand loose objects would take a minute."""
WORDS = ("buffer", "parser", "socket", "token", "index", "render", "queue", "cache", "frame", "codec", "widget", "scan")
MESSAGES = (
    "src/{a}/{b}.c:{n}:{m}: warning: unused variable '{c}_{n}' [-Wunused-variable]",
    "   Compiling {a}-{b} v{m}.{n}.0 (/home/user/src/{c})",
    "error[E0{n}]: cannot borrow `*{a}.{b}` as mutable because it is also borrowed as immutable",
    "{n:5} |     let {a} = {b}.{c}(&mut self.{a}, {n})?;",
    "test {a}::{b}::{c}_{n} ... ok",
    "[{m:3}%] Building CXX object lib/{a}/CMakeFiles/{a}.dir/{b}_{c}{n}.cpp.o",
    "\x1b[32mPASS\x1b[0m tests/{a}/{b}.test.ts ({n} ms)",
    "{n:08x}{m:08x}: the {a} of {b} has no {c}, key=sk-{n:016x} was not taken",
    "",
)


def make_repository(root: Path, build: str = "") -> Path:
    """Make an empty work tree, with this as build.sh."""
    root.mkdir()
    git(root, "init", "-q")
    (root / ".gitignore").write_text("/agent-config\n/.aider*\n")
    if build:
        (root / "build.sh").write_text(f"#!/bin/sh\n{build}\n")
        (root / "build.sh").chmod(0o755)
    clear_log(root)
    return root


def make_checkout(root: Path, *, files: int = 0, total_bytes: int = 0, build: str = "", **more: str) -> Path:
    """Make a work tree of so many files and bytes of real source, and of `more` text files, and commit it."""
    make_repository(root, build)
    for name, text in sources(files=files, total_bytes=total_bytes):
        write_file(root / name, text)
    for name, text in more.items():
        write_file(root / f"{name}.txt", text)
    commit_all(root)
    return root


def clear_log(root: Path) -> None:
    """Leave an empty agent-config."""
    shutil.rmtree(root / "agent-config", ignore_errors=True)
    (root / "agent-config").mkdir(mode=0o700)


def commit_all(root: Path) -> None:
    """Commit everything, and let the disk come to rest."""
    git(root, *INTO_ONE_PACK, "add", "-A")
    git(root, "commit", "-qm", "start")
    os.sync()


@cache
def source_texts() -> list[str]:
    """Return the contents of this package's modules."""
    return [path.read_text("utf-8") for path in sorted((SOURCE / "code_commit").rglob("*.py"))]


def sources(*, files: int = 0, total_bytes: int = 0) -> Iterator[tuple[str, str]]:
    """Yield names and contents, a hundred a folder, until there are so many files and so many bytes."""
    written, texts = 0, cycle(source_texts())
    for number in count():
        if number >= files and written >= total_bytes:
            return
        text = f"# module {number}\n{next(texts)}"
        yield f"src/part{number // 100}/module{number}.py", text
        written += len(text)


def write_file(path: Path, text: str) -> Path:
    """Write a file, and its folders."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "utf-8")
    return path


def write_response(path: Path, files: Mapping[str, str], more: str = "") -> Path:
    """Write the response that replaces the files."""
    fence = "^" * 9
    return write_file(path, "".join(f"{fence}{name}\n{text}{fence}end\n" for name, text in files.items()) + more)


@cache
def build_output(size: int) -> bytes:
    """Return about so many bytes of build output, the same in every run."""
    source = random.Random(size)
    lines, total = [], 0
    while total < size:
        words = dict(zip("abc", source.choices(WORDS, k=3), strict=True))
        line = source.choice(MESSAGES).format(**words, n=source.randrange(10_000), m=source.randrange(100))
        lines.append(line + "\n")
        total += len(lines[-1])
    return "".join(lines).encode()


def write_repeated(path: Path, block: bytes, size: int) -> Path:
    """Write so many bytes of a block over and over."""
    with path.open("wb") as file:
        for _ in range(size // len(block)):
            file.write(block)
        file.write(block[: size % len(block)])
    return path
