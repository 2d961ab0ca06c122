"""Counts that the documentation quotes are printed, whatever pytest does with a test's output."""

import pytest


def tell(capsys: pytest.CaptureFixture[str], line: str) -> None:
    with capsys.disabled():
        print(f"\n{line}")  # noqa: T201 - it is meant to be read
