#!/bin/sh
# Passes when answer.txt says 42 and ends with a newline.
[ "$(tail -c 1 answer.txt)" = "" ] || { echo "answer.txt: no newline at end of file"; exit 1; }
grep -qx 42 answer.txt
