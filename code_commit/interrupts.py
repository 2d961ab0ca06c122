"""The signals that end a command: SIGINT, SIGTERM, SIGHUP. The first one that is taken decides, those after it do not.

A signal is taken by raising Interrupted, and only inside of `interruptible`: code outside of it, such as the one that
writes the end of a run down, is never left half way. There a signal waits for the next work that is interruptible.
The state is the process's, as its signal handlers are; where these are a caller's own, it has no effect.
"""

import signal
import sys
from collections.abc import Callable
from types import FrameType
from typing import TypeVar

from code_commit.errors import Interrupted

T = TypeVar("T")


class _State:
    """Whether a signal is taken now, and the first one that waits."""

    is_open = False
    waiting: int | None = None


def interruptible(work: Callable[[], T]) -> T:
    """Call the work and return its result. Raises Interrupted, once, for a signal that waits or comes meanwhile."""
    try:
        _State.is_open = True
        if _State.waiting is not None:
            take(_State.waiting)
        return work()
    finally:
        _State.is_open = False


def hold_signals() -> None:
    """Let signals wait from now on, until something interruptible is done."""
    _State.is_open = False


def take(number: int, _frame: FrameType | None = None) -> None:
    """Raise Interrupted where that is possible now, else let the signal wait: the handler of the signals that end."""
    if _State.is_open:
        _State.is_open, _State.waiting = False, None
        raise Interrupted(number)
    _State.waiting = _State.waiting or number


def install_handlers() -> None:
    """Take the signals that end a command, unless they are ignored: nohup wants to be left alone."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # ignored on entry, it would hide how git and the build ended
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, take)
    sys.unraisablehook = _send_again


def _send_again(dropped: "sys.UnraisableHookArgs") -> None:
    """Send a signal again, a little later, that came where Python drops what is raised.

    That is in a finalizer, or in the callback by which an import gives its lock back: it met 1 of 520 signals that
    were sent at random to starting runs.
    """
    error = dropped.exc_value
    if isinstance(error, Interrupted):
        number = error.signal_number
        _State.is_open = True
        signal.signal(signal.SIGALRM, lambda *_: signal.raise_signal(number))
        signal.setitimer(signal.ITIMER_REAL, 0.01)
    else:
        sys.__unraisablehook__(dropped)
