"""How long the page may take over what only makes it look better."""

import time
from collections.abc import Iterator
from contextlib import contextmanager


class Patience:
    """A number of seconds that is used up by what is done within `spending`."""

    def __init__(self, seconds: float) -> None:
        self.left = seconds

    @contextmanager
    def spending(self) -> Iterator[None]:
        started = time.monotonic()
        try:
            yield
        finally:
            self.left -= time.monotonic() - started
