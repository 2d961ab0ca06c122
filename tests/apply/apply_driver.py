"""What the tests of apply share, and the small process that they kill, starve and interrupt.

    python apply_driver.py WHAT ROOT     WHAT: apply, recover, restore, hold
    python apply_driver.py serve         fork a child for each such request on stdin; it waits for a line, then acts

The process prints one JSON object: the class and the message of the error, or null. The server prints
the child's process id, so that a tracer can be attached, and when it has ended its exit code and that object.
"""

import json
import os
import signal
import stat
import sys
import time
from collections.abc import Mapping
from pathlib import Path

from code_commit.apply.lock import lock_tree
from code_commit.apply.recover import recover
from code_commit.apply.restore import restore
from code_commit.apply.transaction import apply_changes
from code_commit.changes import FileRemoval, FileReplacement, OriginalFile, VerifiedChange, VerifiedChanges
from code_commit.errors import CodeCommitError, Interrupted
from code_commit.project import Project

SNAPSHOT = "agent-config/logs/one/snapshot"
UNDO_SNAPSHOT = "agent-config/logs/two/snapshot"

Files = Mapping[str, tuple[int, bytes]]
Tree = dict[str, tuple[int, bytes | None]]

OLD_FILES: Files = {
    "README.md": (0o644, b"# Old\r\nline\r\n"),
    "run.sh": (0o755, b"#!/bin/sh\necho old\n"),
    "private.txt": (0o640, b"no final newline"),
    "src/a.py": (0o644, b"a = 1\n"),
    "src/b.py": (0o600, b"b = 1\n" * 3000),
    "src/deep/er/c.py": (0o664, "\ufeffc = 'ü'\n".encode()),
    "src/deep/d.py": (0o644, b""),
    "gone/one.txt": (0o644, b"1\n"),
    "gone/two/three.txt": (0o600, b"3\n"),
    "half/stays.txt": (0o644, b"stays\n"),
    "half/goes.txt": (0o755, b"goes\n"),
    "other.txt": (0o644, b"nobody touches this\n"),
    "dup.txt": (0o644, b"a = 1\n"),
}
OLD_FOLDERS = {"gone": 0o750, "gone/two": 0o700, "empty": 0o755}

NEW_FILES: Mapping[str, bytes | None] = {
    "README.md": b"# New\r\n",
    "run.sh": b"#!/bin/sh\necho new\n",
    "private.txt": b"",
    "src/a.py": b"a = 2\n",
    "src/b.py": b"b = 2\n" * 5000,
    "src/deep/er/c.py": "\ufeffc = 'ß'\n".encode(),
    "src/deep/d.py": b"not empty now",
    "dup.txt": b"a = 3\n",
    "gone/one.txt": None,
    "gone/two/three.txt": None,
    "half/goes.txt": None,
    "new.txt": b"new\n",
    "empty/file.txt": b"",
    "src/new.py": b"n = 1\n",
    "made/x.txt": b"x\n",
    "made/for/y.txt": b"y\n",
    "made/for/z.txt": b"y\n",
    "made/for/this/run.sh": b"#!/bin/sh\n",
    "made/日本 語.rs": b"// \n",
    "apart/w": b"w\n",
}

FEW_FILES = {path: NEW_FILES[path] for path in ("README.md", "gone/one.txt", "made/x.txt", "src/a.py")}

MANY_FILES: Mapping[str, bytes | None] = {f"many/{number % 7}/{number}": b"%d\n" % number for number in range(90)}


def make_tree(root: Path, files: Files = OLD_FILES, folders: Mapping[str, int] | None = None) -> Project:
    """Write the tree that the plan of `NEW_FILES` is for, or another one."""
    (root / "agent-config").mkdir(parents=True)
    for path, mode in (OLD_FOLDERS if folders is None else folders).items():
        (root / path).mkdir(parents=True, exist_ok=True)
        (root / path).chmod(mode)
    for path, (mode, content) in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_bytes(content)
        (root / path).chmod(mode)
    return Project(root)


def read_tree(root: Path) -> Tree:
    """Return every file and folder with mode and content; of agent-config only what is no log and no lock."""
    tree: Tree = {}
    for folder, folders, names in os.walk(root):
        for name in (*folders, *names):
            path = Path(folder, name)
            found = path.lstat()
            content = path.read_bytes() if stat.S_ISREG(found.st_mode) else None
            tree[str(path.relative_to(root))] = (found.st_mode, content)
    hidden = ("agent-config/logs", "agent-config/.lock")
    return {path: state for path, state in tree.items() if not any(name in path for name in hidden)}


def verified(root: Path, wanted: Mapping[str, bytes | None]) -> VerifiedChanges:
    """Return the changes as the verification pass would, for the tree as it is now."""
    return VerifiedChanges(root, tuple(_verified(root, path, content) for path, content in wanted.items()))


def _verified(root: Path, path: str, content: bytes | None) -> VerifiedChange:
    target = root / path
    original = None
    mode = 0o777 if content and content.startswith(b"#!") else 0o666
    mode &= ~_umask()
    if target.is_file():
        mode = stat.S_IMODE(target.stat().st_mode)
        original = OriginalFile(target.read_bytes(), mode)
    if content is None:
        return VerifiedChange(FileRemoval(path), "delete", None, mode, original)
    change = FileReplacement(path, content.decode("utf-8", "surrogateescape"))
    return VerifiedChange(change, "replace" if original else "create", content, mode, original)


def _umask() -> int:
    mask = os.umask(0o022)
    os.umask(mask)
    return mask


def interrupt(number: int, _: object) -> None:
    raise Interrupted(number)


def say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def hold(project: Project) -> None:
    with lock_tree(project):
        say("held")
        time.sleep(60)


def act(what: str, root: Path) -> None:
    project = Project(root)
    if what == "apply":
        apply_changes(verified(root, NEW_FILES), project, root / SNAPSHOT)
    elif what == "apply few":
        apply_changes(verified(root, FEW_FILES), project, root / SNAPSHOT)
    elif what == "apply many":
        apply_changes(verified(root, MANY_FILES), project, root / SNAPSHOT)
    elif what == "recover":
        recover(project)
    elif what == "restore":
        restore(root / SNAPSHOT, project, root / UNDO_SNAPSHOT)
    elif what == "hold":
        hold(project)


def attempt(what: str, root: str) -> tuple[int, object]:
    """Return the exit code and what went wrong."""
    try:
        act(what, Path(root))
    except CodeCommitError as error:
        return error.exit_code, {"error": type(error).__name__, "message": str(error)}
    except Interrupted as error:
        return error.exit_code, {"error": "Interrupted", "message": ""}
    return 0, None


def serve() -> None:
    import ctypes  # noqa: F401
    import hashlib  # noqa: F401 - these are loaded before the first child is traced

    while request := sys.stdin.readline():
        start, started = os.pipe()
        results, result = os.pipe()
        child = os.fork()
        if child == 0:
            _be_traceable()
            say(str(os.getpid()))
            os.read(start, 1)
            code, outcome = attempt(*json.loads(request))
            os.write(result, json.dumps(outcome).encode())
            os._exit(code)
        os.close(start)
        os.close(result)
        sys.stdin.readline()
        os.write(started, b"\n")
        with os.fdopen(results, "rb") as outcome_file:
            outcome_text = outcome_file.read()
        os.close(started)
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        say(json.dumps([code, json.loads(outcome_text or b"null")]))


def _be_traceable() -> None:
    """Let any process of this user attach, where Yama would let a parent alone (PR_SET_PTRACER of prctl(2))."""
    import ctypes

    ctypes.CDLL(None).prctl(0x59616D61, ctypes.c_ulong(-1), 0, 0, 0)


def main() -> int:
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, interrupt)
    if sys.argv[1:] == ["serve"]:
        serve()
        return 0
    code, outcome = attempt(*sys.argv[1:])
    say(json.dumps(outcome))
    return code


if __name__ == "__main__":
    raise SystemExit(main())
