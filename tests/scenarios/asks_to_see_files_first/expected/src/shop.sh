total() { awk '{ sum += $2 } END { print sum }' "$1"; }
names() { awk '{ printf "%s ", $1 }' "$1"; }
