#!/bin/sh
# The slug is right, and count.txt counts the lines of list.txt.
set -e
slug=$(sh slug.sh "Rock 'n' Roll")
echo "slug: $slug"
case $slug in *[!a-z-]*) echo "a slug has letters and dashes only"; exit 1 ;; esac
count=$(cat count.txt)
lines=$(wc -l <list.txt)
echo "count.txt: $count, lines of list.txt:" $lines
[ "$count" -eq "$lines" ]
