"""Trace the driver with strace, and run it again with a signal or an error at one of its file-changing calls."""

import json
import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

STRACE = shutil.which("strace")
needs_strace = pytest.mark.skipif(STRACE is None, reason="strace is not installed: kill points cannot be set")

DRIVER = Path(__file__).with_name("apply_driver.py")
SOURCE = Path(__file__).parents[2]
MEMORY = Path("/dev/shm")

CHANGING = [
    "write",
    "pwrite64",
    "fsync",
    "fdatasync",
    "syncfs",
    "ftruncate",
    "rename",
    "renameat",
    "renameat2",
    "link",
    "linkat",
    "unlink",
    "unlinkat",
    "mkdir",
    "mkdirat",
    "rmdir",
    "chmod",
    "fchmod",
    "fchmodat",
    "fchown",
    "fchownat",
    "fsetxattr",
    "symlink",
    "symlinkat",
    "mknod",
    "mknodat",
]
TRACED = ",".join(f"?{name}" for name in (*CHANGING, "openat", "stat", "newfstatat"))
CALL = re.compile(r"^(?:\d+ +)?(\w+)\((.*)")


@dataclass(frozen=True, slots=True)
class Call:
    """One call of the driver: the `number`-th of that name since strace was attached, which is how strace counts."""

    name: str
    number: int
    text: str


@dataclass(frozen=True, slots=True)
class Outcome:
    """How the driver ended: a negative exit code is the signal that killed it."""

    exit_code: int
    error: str | None
    message: str


def driver_command(*arguments: object) -> list[str]:
    return [sys.executable, "-B", "-S", str(DRIVER), *map(str, arguments)]


def driver_environment() -> dict[str, str]:
    return {"PATH": os.environ["PATH"], "PYTHONPATH": str(SOURCE), "LC_ALL": "C.UTF-8"}


def run_driver(*arguments: object, **options: object) -> Outcome:
    """Run the driver in a process of its own, without strace."""
    done = subprocess.run(
        driver_command(*arguments), env=driver_environment(), stdout=subprocess.PIPE, text=True, check=False, **options
    )
    return outcome_of(done.returncode, json.loads(done.stdout or "null"))


def outcome_of(exit_code: int, result: dict[str, str] | None) -> Outcome:
    return Outcome(exit_code, None if result is None else result["error"], "" if result is None else result["message"])


class Driver:
    """The driver's server: a child for each request, with strace attached to it before it starts."""

    def __init__(self) -> None:
        self._server = subprocess.Popen(
            driver_command("serve"),
            env=driver_environment(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            bufsize=1,
        )

    def close(self) -> None:
        self._server.stdin.close()
        self._server.stdout.close()
        self._server.wait()

    def trace(self, log: Path, what: str, root: Path, *, always: Sequence[str] = ()) -> list[Call]:
        """Return the calls of a run that nothing disturbs, but for what is `always` injected; with descriptors' paths."""
        outcome = self._run(["-y", "-s", "200", "-o", str(log), "-e", f"trace={TRACED}", *always], what, root)
        assert outcome.exit_code == 0, outcome
        counts: Counter[str] = Counter()
        calls = []
        for line in log.read_text().splitlines():
            if match := CALL.match(line):
                counts[match[1]] += 1
                calls.append(Call(match[1], counts[match[1]], line))
        return calls

    def inject(
        self, call: Call, injection: str, what: str, root: Path, *, until: str = "", always: Sequence[str] = ()
    ) -> Outcome:
        """Run it with `signal=...` or `error=...` injected at that call, and all later ones of its name with `until="+"`."""
        point = f"inject={call.name}:{injection}:when={call.number}{until}"
        return self._run(["-o", "/dev/null", "-e", f"trace={call.name},linkat", "-e", point, *always], what, root)

    def _run(self, options: Sequence[str], what: str, root: Path) -> Outcome:
        self._tell(json.dumps([what, str(root)]))
        child = self._server.stdout.readline().strip()
        with subprocess.Popen([str(STRACE), *options, "-p", child], stderr=subprocess.PIPE, text=True) as strace:
            attached = strace.stderr.readline()
            self._tell("")
            exit_code, result = json.loads(self._server.stdout.readline())
            strace.stderr.read()
        assert "attached" in attached, attached
        return outcome_of(exit_code, result)

    def _tell(self, line: str) -> None:
        self._server.stdin.write(line + "\n")
        self._server.stdin.flush()


def changing(calls: Sequence[Call]) -> list[Call]:
    """Leave out what changes no file, and the result that the driver prints."""
    return [
        call
        for call in calls
        if (call.name in CHANGING or (call.name == "openat" and "O_CREAT" in call.text)) and "<pipe:" not in call.text
    ]


def sample(points: Sequence[Call], size: int, *, whole: bool) -> Sequence[Call]:
    """Return all of them, or an evenly spread sample that has the first and the last."""
    if whole or len(points) <= size:
        return points
    return [points[round(position * (len(points) - 1) / (size - 1))] for position in range(size)]
