#!/bin/sh
# Never passes, and says another thing each time.
echo "failure $(tr -dc a-z </dev/urandom | head -c 12)"
exit 1
