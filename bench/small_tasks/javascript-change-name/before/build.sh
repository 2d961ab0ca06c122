#!/bin/sh
set -e
node -e 'require("assert").strictEqual(require("./rectangle").area(2, 5), 10)'
[ "$(node main.js)" = "The room has 12 square metres." ] || { echo "main.js printed: $(node main.js)"; exit 1; }
if grep -nw size rectangle.js main.js; then echo "size is still there"; exit 1; fi
