#!/bin/sh
set -e
found=$(sh count.sh poem.txt)
[ "$found" = 4 ] || { echo "count.sh poem.txt printed \"$found\" and not \"4\""; exit 1; }
found=$(sh count.sh /dev/null)
[ "$found" = 0 ] || { echo "count.sh /dev/null printed \"$found\" and not \"0\""; exit 1; }
