"""Signals that arrive while a build runs: noted at once, handled where the build can be ended properly."""

import contextlib
import os
import signal
import threading
from collections.abc import Callable
from types import FrameType
from typing import Self

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
IMPATIENCE = 3  # so many signals that nobody took up, and the next one interrupts whatever is going on

Handler = Callable[[int, FrameType | None], object]


class DeferredSignals:
    """While entered, the handlers of SIGINT, SIGTERM and SIGHUP run in `deliver` alone, not at any moment.

    `wake` is a descriptor that becomes readable when one has arrived. Signals that are ignored or have no handler
    stay as they are; so does everything outside the main thread, where Python runs no handler.
    """

    def __init__(self) -> None:
        self._handlers: dict[int, Handler] = {}
        self._waiting: list[int] = []
        self.wake, self._bell = os.pipe()
        os.set_blocking(self.wake, False)
        os.set_blocking(self._bell, False)

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            found = {number: signal.getsignal(number) for number in SIGNALS}
            self._handlers = {number: handler for number, handler in found.items() if callable(handler)}
            self._install(dict.fromkeys(self._handlers, self._note))
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self._install(self._handlers)
            self.deliver()
        finally:
            os.close(self.wake)
            os.close(self._bell)

    def deliver(self) -> None:
        """Run the handlers of the signals that have arrived, which may raise."""
        with contextlib.suppress(OSError):
            os.read(self.wake, 4096)
        while self._waiting:
            number = self._waiting.pop(0)
            self._handlers[number](number, None)

    def _note(self, number: int, frame: FrameType | None) -> None:
        if len(self._waiting) >= IMPATIENCE:
            self._handlers[number](number, frame)
        self._waiting.append(number)
        with contextlib.suppress(OSError):
            os.write(self._bell, b"!")

    @staticmethod
    def _install(handlers: dict[int, Handler]) -> None:
        """Set them all or none: a signal waits until the last one is set."""
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
        for number, handler in handlers.items():
            signal.signal(number, handler)
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
