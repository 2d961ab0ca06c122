#!/bin/sh
# Print the words as a slug: lower case, a dash between the words.
printf '%s\n' "$*" | tr 'A-Z' 'a-z' | tr -s ' ' '-'
