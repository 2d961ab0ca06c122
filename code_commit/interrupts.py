"""The signals that end a command: SIGINT, SIGTERM, SIGHUP. The first one that is taken decides.

A signal raises Interrupted, and only inside of `interruptible`: code outside, such as the end of a run's record, is
never left half way. There a signal waits for the next interruptible work. The gate is one for the process, as its
handlers are: the end of an inner `interruptible`, or `hold_signals`, closes it for the outer one too.

Steps that have to stay whole under a caller's own handlers too block the signals (`signals_blocked`). Loops that wait
for something else as well run the handlers at one place (`DeferredSignals`).
"""

import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any, Self, TypeVar

from code_commit.errors import Interrupted

T = TypeVar("T")
ENDING_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def _is_main_thread() -> bool:
    import threading  # `--help` does without

    return threading.current_thread() is threading.main_thread()


class _State:
    is_open = False
    waiting: int | None = None
    ends_before_calls: Callable[[], bool] = bool  # never: bool() is False


def interruptible(work: Callable[[], T]) -> T:
    """Run `work` with signals allowed and return its result. Close the gate on exit, also for an outer caller.

    Raises Interrupted, once, for a signal that waited or comes meanwhile.
    """
    try:
        _State.is_open = True
        if _State.waiting is not None:
            on_signal(_State.waiting)
        return work()
    except RuntimeError as error:  # so Python 3.11 raises what comes while a class names its attributes
        if isinstance(error.__cause__, Interrupted):
            raise error.__cause__ from None
        raise
    finally:
        _State.is_open = False


def hold_signals() -> None:
    """Let signals wait from now on, until the next interruptible work."""
    _State.is_open = False


def on_signal(number: int, _frame: FrameType | None = None) -> None:
    """Raise Interrupted inside of `interruptible`; elsewhere hold the signal back."""
    if _State.is_open:
        _State.is_open, _State.waiting = False, None
        raise Interrupted(number)
    _State.waiting = _State.waiting or number


def install_handlers() -> None:
    """Take the signals that end a command, unless they are ignored, as by nohup."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # ignored on entry, it would hide how git and the build ended
    for number in ENDING_SIGNALS:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, on_signal)
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


@contextmanager
def signals_blocked() -> Iterator[None]:
    """Hold back the signals that end a run inside the block, except those that another thread receives."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ENDING_SIGNALS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


class DeferredSignals:
    """While entered, the handlers of SIGINT, SIGTERM and SIGHUP run in `deliver` alone, not at any moment.

    `wake` is a descriptor that becomes readable when one has arrived, or when a child has ended. Ignored signals stay
    ignored. Outside the main thread this has no effect.
    """

    def __init__(self) -> None:
        self.wake, self._bell = os.pipe()
        os.set_blocking(self.wake, False)
        os.set_blocking(self._bell, False)
        self._former_bell = -1
        self._handlers: dict[int, Any] = {}
        self._waiting: list[int] = []

    def __enter__(self) -> Self:
        if _is_main_thread():
            with signals_blocked():
                found = {number: signal.getsignal(number) for number in ENDING_SIGNALS}
                self._handlers = {number: handler for number, handler in found.items() if callable(handler)}
                self._handlers[signal.SIGCHLD] = signal.getsignal(signal.SIGCHLD) or signal.SIG_DFL
                self._former_bell = signal.set_wakeup_fd(self._bell, warn_on_full_buffer=False)
                for number in self._handlers:
                    signal.signal(number, lambda number, _: self._waiting.append(number))
        return self

    def __exit__(self, *_: object) -> None:
        try:
            if self._handlers:
                with signals_blocked():
                    signal.set_wakeup_fd(self._former_bell, warn_on_full_buffer=False)  # as asyncio wants it
                    for number, handler in self._handlers.items():
                        signal.signal(number, handler)
            self.deliver()
        finally:
            os.close(self.wake)
            os.close(self._bell)

    def deliver(self) -> bool:
        """Run the handlers of the signals that have arrived, which may raise; tell whether one ends a command."""
        with suppress(BlockingIOError):
            os.read(self.wake, 4096)
        ends = False
        while self._waiting:
            number = self._waiting.pop(0)
            ends = ends or number in ENDING_SIGNALS
            if callable(self._handlers[number]):
                self._handlers[number](number, None)
        return ends


@contextmanager
def first_interrupt(answer: Callable[[], object]) -> Iterator[None]:
    """Let the first SIGINT inside the block call `answer` alone, unless it is ignored; the next has its own effect."""
    former = signal.getsignal(signal.SIGINT)

    def on_first(_number: int, _frame: FrameType | None) -> None:
        signal.signal(signal.SIGINT, former)
        answer()

    is_taken = callable(former) and _is_main_thread()
    if is_taken:
        signal.signal(signal.SIGINT, on_first)
    try:
        yield
    finally:
        if signal.getsignal(signal.SIGINT) is on_first:
            signal.signal(signal.SIGINT, former)


def end_before_calls(is_over: Callable[[], bool]) -> None:
    """Let this process begin no call to an LLM once `is_over` says so: `begin_call` asks it."""
    _State.ends_before_calls = is_over


def begin_call() -> None:
    """Raise Interrupted where no call to an LLM may begin any more."""
    if _State.ends_before_calls():
        raise Interrupted(signal.SIGINT)


def exit_at_next_signal() -> None:
    """End the process at once with the next signal that ends a command, unless it is ignored."""
    for number in ENDING_SIGNALS:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, lambda number, _: os._exit(128 + number))
