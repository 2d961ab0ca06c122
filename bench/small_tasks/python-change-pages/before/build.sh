#!/bin/sh
set -e
PYTHONPATH=. python3 tests/test_pages.py
