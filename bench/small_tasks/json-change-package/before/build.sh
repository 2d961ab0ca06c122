#!/bin/sh
set -e
python3 -c '
import json
package = json.load(open("package.json"))
assert package["version"] == "1.3.0", package["version"]
assert package["scripts"] == {"test": "node --test", "lint": "eslint src"}, package["scripts"]
assert (package["name"], package["license"]) == ("clock", "MIT"), package
'
