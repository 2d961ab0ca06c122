#!/bin/sh
set -e
[ -f tools/__init__.py ] || { echo "tools/__init__.py is missing"; exit 1; }
[ ! -s tools/__init__.py ] || { echo "tools/__init__.py is not empty"; exit 1; }
python3 -c 'from tools.size import kilobytes; assert kilobytes(2000) == 2'
