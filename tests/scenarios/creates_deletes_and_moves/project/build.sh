#!/bin/sh
# Passes when answer.txt says 42, and when what was created runs.
grep -qx 42 answer.txt || { echo "answer.txt does not say 42 but: $(cat answer.txt)"; exit 1; }
test ! -x new/plain.sh && ./new/run && echo built
