#!/bin/sh
set -e
[ ! -e hello.sh ] || { echo "hello.sh is still there"; exit 1; }
[ "$(sh greet.sh Eve)" = "Hello, Eve" ] || { echo "greet.sh is missing or wrong"; exit 1; }
[ "$(sh run.sh | tr '\n' ';')" = "Hello, Ada;Hello, Bob;" ] || { echo "run.sh printed: $(sh run.sh)"; exit 1; }
