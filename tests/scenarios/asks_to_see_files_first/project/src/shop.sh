total() { wc -l <"$1"; }
