#!/bin/sh
# Passes when answer.txt has LF.
! grep -q "$(printf "\r")" answer.txt || { echo "answer.txt: CRLF"; exit 1; }
