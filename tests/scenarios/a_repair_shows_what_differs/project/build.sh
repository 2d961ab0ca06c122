#!/bin/sh
. ./src/table.sh
[ "$ROW_7" = seven ] && [ "$ROW_250" = late ] && [ "$NEW" = "yes" ] || { echo "7 is $ROW_7, 250 is $ROW_250, new is $NEW"; exit 1; }
