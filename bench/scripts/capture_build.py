"""Run build.sh in the current folder and log its output, redacted, as a run does; print what that took."""

import os

from timed_part import timed_part

from code_commit.config import Settings
from code_commit.progress import Progress
from code_commit.project import find_project
from code_commit.redaction import Redactor
from code_commit.run_log import open_run_log
from code_commit.verify import capture_rules
from code_commit.workflow import Job, build_project

KEY = "sk-bench-Vq3xT8mZr1LwYc7KpD5nHs2JbGf9Ae6U"


def main() -> None:
    """Build once."""
    project, settings, redactor = find_project(), Settings(), Redactor([KEY])
    job = Job(project, settings, capture_rules(project, settings, None, redactor), (), dict(os.environ), None)
    with open_run_log(project, "run", settings, redactor, Progress(redactor, quiet=True)) as log:
        with timed_part():
            build = build_project(job, log, log.attempt(1))
        log.finish("success" if build.passed else "build_failed", 0)


if __name__ == "__main__":
    main()
