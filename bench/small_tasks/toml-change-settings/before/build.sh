#!/bin/sh
set -e
python3 -c '
import tomllib
settings = tomllib.load(open("settings.toml", "rb"))
assert settings["title"] == "app", settings
assert settings["http"] == {"port": 8080, "timeout": 60}, settings["http"]
assert settings["cache"] == {"folder": "/var/cache/app", "size": 500}, settings["cache"]
'
