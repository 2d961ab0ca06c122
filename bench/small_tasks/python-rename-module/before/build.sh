#!/bin/sh
set -e
[ ! -e util.py ] || { echo "util.py is still there"; exit 1; }
python3 -c '
from app import summary
from words import count_words
assert summary("a b c") == "3 words", summary("a b c")
assert count_words("a b") == 2
'
