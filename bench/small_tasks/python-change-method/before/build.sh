#!/bin/sh
set -e
python3 -c '
from shop import Cart
cart = Cart()
assert cart.count() == 0, cart.count()
cart.add("pen", 2, quantity=3)
cart.add("book", 10)
assert cart.total() == 16, cart.total()
assert cart.count() == 4, cart.count()
'
