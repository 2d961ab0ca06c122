#!/bin/sh
set -e
[ ! -e old.js ] || { echo "old.js is still there"; exit 1; }
node -e '
const assert = require("assert");
const all = require("./index");
assert.strictEqual(all.add(1, 2), 3);
assert.strictEqual(all.old, undefined);
'
