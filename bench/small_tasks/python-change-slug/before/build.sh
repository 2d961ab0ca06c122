#!/bin/sh
set -e
python3 -c '
from slugs import slug
assert slug("Hello World") == "hello-world", slug("Hello World")
assert slug("a_b c") == "a-b-c", slug("a_b c")
'
