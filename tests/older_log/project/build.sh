#!/bin/sh
[ -z "$HOLD" ] || sleep "$HOLD"
exec sh test.sh
