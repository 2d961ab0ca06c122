#!/bin/sh
! grep -n "old_report\|require .csv." src/report.rb && grep -q "return rows.sum" src/report.rb
