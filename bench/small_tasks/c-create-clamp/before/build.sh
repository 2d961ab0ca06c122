#!/bin/sh
set -e
program=$(mktemp)
trap 'rm -f "$program"' EXIT

cc -Wall -Werror -o "$program" main.c clamp.c
[ "$("$program")" = "0 4 9" ] || { echo "it printed \"$("$program")\" and not \"0 4 9\""; exit 1; }
