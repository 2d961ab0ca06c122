#!/bin/sh
set -e
node -e '
const assert = require("assert");
const { total } = require("./cart");
assert.strictEqual(total([]), 0);
assert.strictEqual(total([{ price: 2, quantity: 3 }, { price: 5 }]), 11);
'
