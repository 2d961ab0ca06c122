"""Make a tree, apply changes to it where something is in the way, and print what came of it as JSON.

    python limited_apply.py ROOT SIZE COMMAND FSIZE UID

Replaces two files, creates one of SIZE bytes in a new folder and deletes one. COMMAND is run by sh, in the root, when
the tree is made; FSIZE is the limit for the size of a file, 0 for none. All of it as that user; everything is imported
before, because the interpreter may be out of his reach.
"""

import hashlib  # noqa: F401 - see above
import json
import os
import resource
import subprocess
import sys
from pathlib import Path

from apply_driver import SNAPSHOT, make_tree, read_tree, verified

from code_commit.apply.recover import needs_recovery
from code_commit.apply.transaction import apply_changes
from code_commit.errors import CodeCommitError

FILES = {
    "a.txt": (0o644, b"a\n"),
    "sub/b.txt": (0o640, b"b\n"),
    "sub/c.txt": (0o644, b"c\n"),
}


def main() -> None:
    root, size, command, limit, uid = (
        Path(sys.argv[1]),
        int(sys.argv[2]),
        sys.argv[3],
        int(sys.argv[4]),
        int(sys.argv[5]),
    )
    if uid != os.geteuid():
        os.setgroups([])
        os.setgid(uid)
        os.setuid(uid)
    project = make_tree(root, FILES, {})
    wanted = {"a.txt": b"A\n", "sub/b.txt": b"B\n", "sub/c.txt": None, "new/big.bin": b"x" * size}
    changes = verified(root, wanted)
    if command:
        subprocess.run(["sh", "-ec", command], cwd=root, check=True)
    if limit:
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
    before = read_tree(root)
    error = message = None
    try:
        apply_changes(changes, project, root / SNAPSHOT)
    except CodeCommitError as caught:
        error, message = type(caught).__name__, str(caught)
    after = read_tree(root)
    new = {path: content for path, (_, content) in after.items() if content is not None}
    result = {
        "error": error,
        "message": message,
        "old": before == after,
        "new": new == {path: content for path, content in wanted.items() if content is not None},
        "left": needs_recovery(project) or (before == after and (root / SNAPSHOT).exists()),
    }
    sys.stdout.write(json.dumps(result))


if __name__ == "__main__":
    main()
