"""The signals that end a command: SIGINT, SIGTERM, SIGHUP. The first one that is taken decides.

A signal raises Interrupted, and only inside of `interruptible`: code outside, such as the end of a run's record, is
never left half way. There a signal waits for the next interruptible work. The gate is one for the process, as its
handlers are: the end of an inner `interruptible`, or `hold_signals`, closes it for the outer one too.
"""

import signal
import sys
from collections.abc import Callable
from types import FrameType
from typing import TypeVar

from code_commit.errors import Interrupted

T = TypeVar("T")


class _State:
    is_open = False
    waiting: int | None = None


def interruptible(work: Callable[[], T]) -> T:
    """Run `work` with signals allowed and return its result. Close the gate on exit, also for an outer caller.

    Raises Interrupted, once, for a signal that waited or comes meanwhile.
    """
    try:
        _State.is_open = True
        if _State.waiting is not None:
            take(_State.waiting)
        return work()
    finally:
        _State.is_open = False


def hold_signals() -> None:
    """Let signals wait from now on, until the next interruptible work."""
    _State.is_open = False


def take(number: int, _frame: FrameType | None = None) -> None:
    """Raise Interrupted inside of `interruptible`; elsewhere hold the signal back."""
    if _State.is_open:
        _State.is_open, _State.waiting = False, None
        raise Interrupted(number)
    _State.waiting = _State.waiting or number


def install_handlers() -> None:
    """Take the signals that end a command, unless they are ignored, as by nohup."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # ignored on entry, it would hide how git and the build ended
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, take)
    sys.unraisablehook = _send_again


def _send_again(dropped: "sys.UnraisableHookArgs") -> None:
    """Send a signal again, a little later, that came in a finalizer or an import, where Python drops exceptions."""
    error = dropped.exc_value
    if isinstance(error, Interrupted):
        number = error.signal_number
        _State.is_open = True
        signal.signal(signal.SIGALRM, lambda *_: signal.raise_signal(number))
        signal.setitimer(signal.ITIMER_REAL, 0.01)
    else:
        sys.__unraisablehook__(dropped)
