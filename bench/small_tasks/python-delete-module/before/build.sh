#!/bin/sh
set -e
[ ! -e legacy.py ] || { echo "legacy.py is still there"; exit 1; }
python3 -c '
import app
assert app.total([1, 2]) == 3
assert not hasattr(app, "total_before_2020"), "total_before_2020 is still there"
'
