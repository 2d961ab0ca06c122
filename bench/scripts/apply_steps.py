"""Verify and apply a saved response in the current folder, as a run does, and print what these two steps took.

python apply_steps.py RESPONSE
"""

import sys
from pathlib import Path

from timed_part import timed_part

from code_commit.apply import apply_changes
from code_commit.config import Settings
from code_commit.parse import parse_response
from code_commit.project import find_project
from code_commit.redaction import Redactor
from code_commit.verify import capture_rules, verify_changes


def main() -> None:
    """Apply it; the snapshot goes where a run's goes."""
    project = find_project()
    changes = parse_response(Path(sys.argv[1]).read_text("utf-8"))
    snapshot = project.logs / "a-run" / "snapshot"
    snapshot.parent.mkdir(parents=True)
    with timed_part():
        rules = capture_rules(project, Settings(), None, Redactor(["sk-bench-Vq3xT8mZr1LwYc7KpD5nHs2JbGf9Ae6U"]))
        apply_changes(verify_changes(changes, project, rules), project, snapshot)


if __name__ == "__main__":
    main()
