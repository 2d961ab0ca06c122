"""What other processes of the same user can learn from the tool."""

import ctypes
import os
import resource
from pathlib import Path

import pytest
from build_watch import as_user

from code_commit.build import harden_process

PR_GET_DUMPABLE = 3


def state():
    limits = resource.getrlimit(resource.RLIMIT_CORE)
    return ctypes.CDLL(None).prctl(PR_GET_DUMPABLE, 0, 0, 0, 0), limits[0]


def test_a_hardened_process_is_not_dumpable_and_writes_no_core_file():
    def work():
        ctypes.CDLL(None).prctl(4, 1, 0, 0, 0)
        before = state()
        hard = resource.getrlimit(resource.RLIMIT_CORE)[1]
        harden_process()
        return before[0], state(), resource.getrlimit(resource.RLIMIT_CORE)[1] == hard

    assert as_user(os.geteuid(), work) == (1, (0, 0), True)


@pytest.mark.root
def test_another_process_of_the_user_cannot_read_a_hardened_one():
    def work():
        ctypes.CDLL(None).prctl(4, 1, 0, 0, 0)
        tool = os.getpid()

        def readable():
            child = os.fork()
            if child == 0:
                try:
                    Path(f"/proc/{tool}/environ").read_bytes()
                except OSError:
                    os._exit(1)
                os._exit(0)
            return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0

        before = readable()
        harden_process()
        return before, readable()

    assert as_user(65534, work) == (True, False)
