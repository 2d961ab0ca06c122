const assert = require("assert");
const { sum } = require("../sum");
const { average } = require("../average");

assert.strictEqual(sum([1, 2]), 3);
assert.strictEqual(average([1, 2, 6]), 3, `average([1, 2, 6]) is ${average([1, 2, 6])}, it must be 3`);
assert.strictEqual(average([]), 0, `average([]) is ${average([])}, it must be 0`);
