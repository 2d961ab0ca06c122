"""Ask the verification pass which of the given paths are ignored, and print what that took.

python check_ignored.py PATHS    (each ended by NUL)
"""

import sys
from pathlib import Path

from timed_part import timed_part

from code_commit.config import Settings
from code_commit.project import find_project
from code_commit.redaction import Redactor
from code_commit.verify import capture_rules
from code_commit.verify.ignored import find_ignored


def main() -> None:
    """Check once."""
    paths = Path(sys.argv[1]).read_text("utf-8").split("\0")[:-1]
    project = find_project()
    rules = capture_rules(project, Settings(), None, Redactor([]))
    with timed_part():
        ignored = find_ignored(paths, project, rules.ignore_memory)
    assert not ignored


if __name__ == "__main__":
    main()
