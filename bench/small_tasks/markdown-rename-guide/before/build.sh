#!/bin/sh
set -e
[ ! -e docs/guide.md ] || { echo "docs/guide.md is still there"; exit 1; }
grep -qx '2. Switch it on.' docs/manual.md || { echo "docs/manual.md lacks the text of the guide"; exit 1; }
grep -q '](docs/manual.md)' README.md || { echo "README.md has no link to docs/manual.md"; exit 1; }
grep -q 'Boils water' README.md || { echo "README.md has lost its text"; exit 1; }
