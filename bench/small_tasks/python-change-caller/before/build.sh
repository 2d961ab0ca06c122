#!/bin/sh
set -e
[ "$(python3 main.py)" = "Hello, Ada!" ] || { echo "main.py printed: $(python3 main.py)"; exit 1; }
python3 -c '
from greeting import greet
assert greet("Bob", "?") == "Hello, Bob?", greet("Bob", "?")
'
