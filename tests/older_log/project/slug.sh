#!/bin/sh
printf '%s\n' "$*" | tr 'A-Z' 'a-z' | tr -d '[:punct:]' | tr ' ' '-'
