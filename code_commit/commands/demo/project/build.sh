#!/bin/sh
set -e
sh -n slug.sh
sh test.sh
