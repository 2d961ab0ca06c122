#!/bin/sh
set -e
found=$(python3 server.py)
[ "$found" = "127.0.0.1 8080 production" ] || { echo "server.py printed: $found"; exit 1; }
