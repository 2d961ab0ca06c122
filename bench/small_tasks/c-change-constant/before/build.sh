#!/bin/sh
set -e
program=$(mktemp)
trap 'rm -f "$program"' EXIT

cc -Wall -Werror -o "$program" main.c
count=$("$program" | grep -c '^Hello, Ada$')
[ "$count" = 5 ] || { echo "it greeted $count times and not 5 times"; exit 1; }
grep -q 'TIMES  *5' config.h || { echo "config.h does not define TIMES as 5"; exit 1; }
grep -q TIMES main.c || { echo "main.c does not use TIMES"; exit 1; }
