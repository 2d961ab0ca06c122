#!/bin/sh
set -e
expect() {
    [ "$2" = "$1" ] || { echo "greet.sh printed \"$2\" and not \"$1\""; exit 1; }
}
expect "Hello, world!" "$(sh greet.sh)"
expect "Hello, Ada!" "$(sh greet.sh Ada)"
expect "HELLO, ADA!" "$(sh greet.sh --loud Ada)"
expect "HELLO, WORLD!" "$(sh greet.sh --loud)"
