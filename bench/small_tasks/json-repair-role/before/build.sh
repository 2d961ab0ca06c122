#!/bin/sh
set -e
python3 checks/check.py
