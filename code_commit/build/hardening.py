"""Keep what the tool holds in its memory, the API key above all, from other processes of the same user."""

import contextlib
import resource
import sys

SET_DUMPABLE = 4  # PR_SET_DUMPABLE of <linux/prctl.h>


def harden_process() -> None:
    """Make this process unreadable through /proc and ptrace(2) (Linux only), and let it write no core file.

    Only the soft core limit goes: a build may raise it again. Costs about 5 ms once, most of it the import of ctypes,
    which the supervision of a build needs too.
    """
    with contextlib.suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(SET_DUMPABLE, 0, 0, 0, 0)
