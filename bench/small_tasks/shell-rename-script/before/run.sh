#!/bin/sh
for name in Ada Bob; do
    sh hello.sh "$name"
done
