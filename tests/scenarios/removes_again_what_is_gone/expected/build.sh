#!/bin/sh
rm -f older.txt
grep -qx 42 answer.txt
