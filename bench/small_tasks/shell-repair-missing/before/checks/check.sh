#!/bin/sh
set -e
found=$(sh first.sh colours.txt)
[ "$found" = red ] || { echo "first.sh colours.txt printed \"$found\", it must print \"red\""; exit 1; }
code=0
sh first.sh nowhere.txt || code=$?
[ "$code" = 3 ] || { echo "first.sh must exit with code 3 when the file does not exist; it exited with $code"; exit 1; }
