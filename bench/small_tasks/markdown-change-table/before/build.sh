#!/bin/sh
set -e
row=$(grep -n -e '^| `--quiet` | print only errors |$' README.md | cut -d: -f1)
[ -n "$row" ] || { echo 'README.md has no row: | `--quiet` | print only errors |'; exit 1; }
before=$(grep -n -e '^| `--dry-run` | only say' README.md | cut -d: -f1)
[ "$row" -eq $((before + 1)) ] || { echo 'the row of --quiet must follow that of --dry-run'; exit 1; }
for line in '# backup' '| `--to FOLDER` | where to copy to |' '## License' 'MIT'; do
    grep -qxF "$line" README.md || { echo "README.md has lost a line: $line"; exit 1; }
done
