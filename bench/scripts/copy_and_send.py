"""Copy a file ten times, send it to the LLM four times without looking at the answers, and print what that took.

python copy_and_send.py FROM TO BASE_URL
"""

import http.client
import json
import sys
from pathlib import Path
from urllib.parse import urlsplit

from timed_part import timed_part

COPIES, SENDINGS = 10, 4


def main() -> None:
    """Copy and send."""
    source, target, url = Path(sys.argv[1]), Path(sys.argv[2]), urlsplit(sys.argv[3])
    content = source.read_bytes().decode()
    body = json.dumps({"model": "m", "stream": True, "messages": [{"role": "user", "content": content}]}).encode()
    connection = http.client.HTTPConnection(url.hostname or "", url.port)
    with timed_part():
        for _ in range(COPIES):
            target.write_bytes(source.read_bytes())
        for _ in range(SENDINGS):
            connection.request("POST", f"{url.path}/chat/completions", body, {"content-type": "application/json"})
            connection.getresponse().read()


if __name__ == "__main__":
    main()
