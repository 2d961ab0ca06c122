"""One build as the tool does it, in a process of its own: `build_driver.py FOLDER SANDBOX TIMEOUT` prints what came of it."""

import json
import os
import signal
import sys
import time
from pathlib import Path

from build_watch import run_build

from code_commit.build import choose_sandbox, harden_process
from code_commit.errors import CodeCommitError, Interrupted
from code_commit.project import find_project
from code_commit.settings import Settings


def interrupt(number, _):
    raise Interrupted(number)


def main(folder, mode, timeout):
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, interrupt)
    harden_process()
    project = find_project(Path(folder))
    sandbox, _ = choose_sandbox(mode, project, Settings())
    output = []
    report = {}
    begun = time.monotonic()
    sys.stdout.write(f"{os.getpid()}\n")
    sys.stdout.flush()
    try:
        result = run_build(project, output.append, timeout=timeout, environment=dict(os.environ), sandbox=sandbox)
        report = {"exit_code": result.exit_code, "signal": result.signal, "timed_out": result.timed_out}
    except Interrupted as interruption:
        report = {"interrupted": interruption.signal_number}
    except CodeCommitError as error:
        report = {"error": str(error)}
    report |= {"seconds": time.monotonic() - begun, "output": b"".join(output).decode("utf-8", "replace")}
    sys.stdout.write(json.dumps(report) + "\n")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], float(sys.argv[3]))
