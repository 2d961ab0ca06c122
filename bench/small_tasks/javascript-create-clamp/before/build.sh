#!/bin/sh
set -e
node -e '
const assert = require("assert");
const { clamp, round } = require("./index");
assert.strictEqual(round(1.234, 1), 1.2);
assert.strictEqual(clamp(5, 0, 3), 3);
assert.strictEqual(clamp(-5, 0, 3), 0);
assert.strictEqual(clamp(2, 0, 3), 2);
assert.strictEqual(require("./lib/clamp"), clamp);
'
