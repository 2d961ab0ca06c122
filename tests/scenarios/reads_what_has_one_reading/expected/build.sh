#!/bin/sh
# Passes when answer.py says 42 and old.py is gone.
grep -qx 'answer = 42' answer.py && ! [ -e old.py ] || { echo "answer.py does not say 42"; exit 1; }
echo built
