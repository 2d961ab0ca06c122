#!/usr/bin/env bash
# The loop that a supervisor writes: roll up the code, run, review, then commit
# or undo.
#
#   bash agent-config/supervisor.sh 'what is to be done'
#
# Without words the task is agent-config/query.txt. The answer to the question
# at the end is read from standard input. The exit code is that of code-commit.
set -euo pipefail
cd "$(dirname "$0")/.."

if ! command -v code-commit >/dev/null; then
    echo "code-commit is not in a folder of PATH (no script sees an alias):" \
        "install it with pipx or uv tool, or write its path into $0" >&2
    exit 2
fi

code=0
if [ $# -gt 0 ]; then
    code-commit -m "$*" --require-clean || code=$?
else
    code-commit rollup
    code-commit --require-clean || code=$?
fi

case $code in
    0) echo "The build passes." ;;
    1) echo "The build still fails; code-commit log latest shows why." ;;
    2) exit "$code" ;; # nothing was sent or changed; the message is above
    *) echo "It ended early; what it had changed until then:" ;;
esac

changed=$(git status --short)
if [ -z "$changed" ]; then
    echo "Nothing changed."
    exit "$code"
fi
echo "$changed"
GIT_PAGER=cat code-commit diff || true
printf 'Commit it (c), undo it (u), or leave it (anything else)? '
read -r answer || answer=
case $answer in
    c)
        message=${*:-$(head -n 1 agent-config/query.txt)}
        { git add --all && git commit --quiet --message "$message"; } ||
            echo "It is not committed."
        ;;
    u) code-commit undo || echo "It is not undone." ;;
esac
exit "$code"
