#!/bin/sh
. ./src/shop.sh
[ "$(total data/prices.txt)" = 6 ] || { echo "the total is $(total data/prices.txt)"; exit 1; }
sh t/shop_test.sh
