NEW="yes"
