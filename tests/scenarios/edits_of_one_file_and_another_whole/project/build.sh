#!/bin/sh
test ! -e old.txt && grep -n 'tax' src/shop.rb && grep -q 'sum(items) + tax' src/shop.rb && cat notes.txt
