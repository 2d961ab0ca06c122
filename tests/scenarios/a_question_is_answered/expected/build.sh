#!/bin/sh
grep -qx 42 answer.txt
