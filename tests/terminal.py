"""Real terminals for the tests: one that takes what a command prints, and a pane of tmux whose screen can be read."""

import os
import pty
import re
import shlex
import shutil
import subprocess
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Self

from command import CODE_COMMIT

PATIENCE = 60
"""Seconds until a screen that does not come fails the test."""


def on_a_terminal(folder: Path, *arguments: str, code: int = 0, **environment: str) -> str:
    """Return what the command prints on a terminal; its complaints too where it is to fail."""
    ours, theirs = pty.openpty()
    variables = os.environ | {"TERM": "xterm"} | environment
    words, errors = [*CODE_COMMIT, *arguments], theirs if code else None
    process = subprocess.Popen(words, cwd=folder, env=variables, stdout=theirs, stdin=theirs, stderr=errors)
    os.close(theirs)
    output = b""
    try:
        while piece := os.read(ours, 65536):
            output += piece
    except OSError:
        pass  # its other end is closed
    os.close(ours)
    assert process.wait() == code
    return output.decode().replace("\r\n", "\n")


class Terminal:
    """A shell command in a terminal of its own. A context manager: on leaving it all of it is ended."""

    def __init__(self, folder: Path, command: str, columns: int, rows: int, env: Mapping[str, str]) -> None:
        self._socket_folder = tempfile.mkdtemp(prefix="tmux")  # pytest's folders are too long a name for a socket
        variables = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
        variables |= {"TERM": "screen", "LANG": "C.UTF-8"} | dict(env)
        self.raw = Path(self._socket_folder) / "raw"
        given = [f"{name}={value}" for name, value in variables.items() if value]
        program = f'trap : INT; until [ -e {self.raw} ]; do sleep 0.01; done; {command}; echo "[exit code $?]"; exec sleep 600'
        size = ["-x", str(columns), "-y", str(rows)]
        words = ["env", "-i", *given, "sh", "-c", program]
        settings = Path(self._socket_folder) / "tmux.conf"
        settings.write_text("set-option -g history-limit 10000\nset-option -g status off\n")
        self._tmux("-f", str(settings), "new-session", "-d", *size, "-c", str(folder), shlex.join(words))
        self._tmux("pipe-pane", f"cat >{self.raw}")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._tmux("kill-server")
        shutil.rmtree(self._socket_folder)

    def screen(self) -> list[str]:
        """Return the rows of the screen, those that have scrolled away before them, without empty ones at the end."""
        return self._tmux("capture-pane", "-p", "-S", "-").rstrip("\n").split("\n")

    def lines(self) -> list[str]:
        """Return the same as lines: what the terminal has wrapped is put together."""
        captured = self._tmux("capture-pane", "-p", "-J", "-S", "-").rstrip().split("\n")
        return [line.rstrip() for line in captured]

    def wait_for(self, pattern: str) -> list[str]:
        """Return the rows as soon as one of them has the pattern."""
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            rows = self.screen()
            if any(re.search(pattern, row) for row in rows):
                return rows
            time.sleep(0.05)
        raise AssertionError(f"{pattern} did not appear; the screen:\n" + "\n".join(self.screen()))

    def end(self) -> int:
        """Wait until the command has ended and return its exit code."""
        rows = self.wait_for(r"^\[exit code \d+\]$")
        return int(re.sub(r"\D", "", rows[-1]))

    def press(self, *keys: str) -> None:
        self._tmux("send-keys", *keys)

    def resize(self, columns: int, rows: int) -> None:
        self._tmux("resize-window", "-x", str(columns), "-y", str(rows))

    @property
    def shows_cursor(self) -> bool:
        return self._tmux("display-message", "-p", "#{cursor_flag}").strip() == "1"

    def _tmux(self, *arguments: str) -> str:
        command = ["tmux", "-u", "-S", str(Path(self._socket_folder) / "s"), *arguments]
        done = subprocess.run(command, check=True, capture_output=True, timeout=PATIENCE)
        return done.stdout.decode()
