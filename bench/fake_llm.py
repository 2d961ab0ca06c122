"""The LLM of the benchmarks: answers at once, on 127.0.0.1, in a process of its own."""

import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from bench.measuring import end_session

SERVER = Path(__file__).parent / "scripts" / "llm_server.py"


class FakeLLM:
    """A running server. `base_url` is what an OpenAI-compatible client takes."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self._orders, self._replies = process.stdin, process.stdout
        self.base_url = self._replies.readline().strip() + "/v1"

    def answer_with(self, answers: Sequence[str]) -> None:
        """Answer the calls that come now with these texts, in this order."""
        self._orders.write(json.dumps(answers) + "\n")
        self._orders.flush()
        self._replies.readline()


@contextmanager
def fake_llm() -> Iterator[FakeLLM]:
    """Yield a server; it has ended afterwards."""
    pipe = subprocess.PIPE
    with subprocess.Popen(
        [sys.executable, SERVER], stdin=pipe, stdout=pipe, text=True, start_new_session=True
    ) as process:
        try:
            yield FakeLLM(process)
        finally:
            end_session(process)
