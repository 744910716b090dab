#!/bin/sh
# Installs the released wheel, unless the command is there. No root is needed.
set -eu
command -v locklab >/dev/null && exit 0
there=${RUNNER_TEMP:-$PWD/.locklab-ci}/locklab
python3 -m venv "$there"
"$there/bin/pip" install --quiet "locklab${VERSION:+==$VERSION}"
if [ -n "${GITHUB_PATH:-}" ]; then
    echo "$there/bin" >> "$GITHUB_PATH"
else
    echo "add $there/bin to the PATH"
fi
