"""The same job with nothing around it: two requests, the answered file written, build.sh run until it passes.

python bare_httpx.py BASE_URL
"""

import json
import subprocess
import sys
from pathlib import Path

import httpx


def ask(client: httpx.Client, prompt: str) -> str:
    """Return the streamed answer."""
    body = {"model": "m", "stream": True, "messages": [{"role": "user", "content": prompt}]}
    pieces = []
    with client.stream("POST", "/chat/completions", json=body) as reply:
        for line in reply.iter_lines():
            if line.startswith("data: {"):
                for choice in json.loads(line[6:])["choices"]:
                    pieces.append(choice["delta"].get("content", ""))  # noqa: PERF401 - it reads as it comes
    return "".join(pieces)


def main() -> int:
    """Ask, write and build until the build passes, four times at most."""
    prompt = Path("agent-config/query.txt").read_text() + Path("agent-config/codeRollup.txt").read_text()
    with httpx.Client(base_url=sys.argv[1], timeout=60) as client:
        for _ in range(4):
            answer = ask(client, prompt)
            path, _, rest = answer.removeprefix("^^^").partition("\n")
            Path(path).write_text(rest.partition("^^^end")[0])
            build = subprocess.run(["./build.sh"], capture_output=True, text=True, check=False)
            if build.returncode == 0:
                return 0
            prompt += build.stdout + build.stderr
    return 1


if __name__ == "__main__":
    raise SystemExit(main())
