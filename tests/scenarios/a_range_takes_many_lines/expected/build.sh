#!/bin/sh
! grep -n "old_report\|import csv" src/report.py && grep -q "return sum(rows)" src/report.py
