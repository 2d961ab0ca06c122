. ./src/shop.sh
[ "$(names data/prices.txt)" = "apple plum pear " ] || { echo "the names are $(names data/prices.txt)"; exit 1; }
