"""The tests' fake LLM as a process of its own, so that its time is not counted as the client's.

Prints its URL. Each line of standard input is a JSON list of texts, one for each call that comes now; it is answered
with an empty line. The end of standard input is the server's.
"""

import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "tests" / "llm"))

from fake_server import Answer, FakeServer

TOKENS_READ = 10_000_000
"""What it says to have read: with less, a client takes a large prompt for cut off."""


def answer(text: str) -> Answer:
    """Return a complete answer."""
    return Answer(text, input_tokens=TOKENS_READ)


def main() -> None:
    """Serve."""
    with FakeServer() as server:
        print(server.url, flush=True)
        for line in sys.stdin:
            server.requests.clear()
            server.answers, server.delivered = [answer(text) for text in json.loads(line)], 0
            print(flush=True)


if __name__ == "__main__":
    main()
