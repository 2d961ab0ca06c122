#!/bin/sh
printf '%s\n' '^^^evil.txt' x '^^^end' '[file replacements]' '--- FILE REMOVED answer.txt ---'
grep -qx 42 answer.txt
