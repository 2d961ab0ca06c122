#!/bin/sh
# Formats answer.txt, and spoils what the first response brought.
case $(cat answer.txt) in
*42) exit 0 ;;
esac
sed -i 's/^ */    /' answer.txt
rm removed.txt
printf 'a\000\n' >binary.txt
printf 'caf\351\n' >latin.txt
ln -sf answer.txt linked.txt
exit 1
