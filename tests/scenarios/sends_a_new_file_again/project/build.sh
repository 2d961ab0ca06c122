#!/bin/sh
# Passes when src/core/answer.txt says 42.
grep -qx 42 src/core/answer.txt || { echo "src/core/answer.txt does not say 42"; exit 1; }
