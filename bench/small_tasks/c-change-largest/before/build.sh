#!/bin/sh
set -e
program=$(mktemp)
trap 'rm -f "$program"' EXIT

cc -Wall -o "$program" main.c largest.c
[ "$("$program")" = "-3 8" ] || { echo "it printed \"$("$program")\" and not \"-3 8\""; exit 1; }
