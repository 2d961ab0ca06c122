#!/bin/sh
# Each case: the expected slug, then the words.
failures=0
expect() {
    expected=$1
    shift
    actual=$(sh slug.sh "$@")
    if [ "$actual" != "$expected" ]; then
        echo "FAIL: slug.sh $*: expected '$expected', got '$actual'"
        failures=$((failures + 1))
    fi
}

expect 'hello' 'Hello'
expect 'hello-world' 'Hello World'
expect 'hello-world' 'Hello' 'World'

echo "$failures failures"
[ "$failures" -eq 0 ]
