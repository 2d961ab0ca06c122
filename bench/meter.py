"""Run one command and write what it cost: a process of its own, because it must be small.

    python -I -S bench/meter.py REPORT COMMAND [ARGUMENT..]

Linux hands the peak of whoever starts a program on to that program: `execve` of a fork, of a vfork and of posix_spawn
alike counts the memory of before it into `ru_maxrss`. Started from here a command shows at least this process's own few
megabytes, and nothing of the benchmark's. REPORT gets four numbers on one line: wall seconds, CPU seconds (with those
of all children that were waited for), peak bytes of the largest process, exit code.
"""

import os
import sys
from time import perf_counter

BYTES_PER_UNIT = 1 if sys.platform == "darwin" else 1024


def main() -> int:
    """Run the command to its end; its exit code is ours."""
    report, *command = sys.argv[1:]
    began = perf_counter()
    pid = os.posix_spawnp(command[0], command, os.environ)
    _, status, used = os.wait4(pid, 0)
    wall = perf_counter() - began
    code = os.waitstatus_to_exitcode(status)
    with open(report, "w") as file:  # noqa: PTH123 - pathlib would be half of this process
        print(wall, used.ru_utime + used.ru_stime, used.ru_maxrss * BYTES_PER_UNIT, code, file=file)
    return code if code >= 0 else 128 - code


if __name__ == "__main__":
    raise SystemExit(main())
