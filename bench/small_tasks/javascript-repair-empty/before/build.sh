#!/bin/sh
set -e
node checks/check.js
