#!/bin/sh
set -e
program=$(mktemp)
trap 'rm -f "$program"' EXIT

cc -Wall -o "$program" checks/check.c length.c
"$program"
