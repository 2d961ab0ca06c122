#!/bin/sh
set -e
PYTHONPATH=. python3 checks/check.py
