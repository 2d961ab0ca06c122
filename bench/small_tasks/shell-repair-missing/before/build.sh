#!/bin/sh
set -e
sh checks/check.sh
