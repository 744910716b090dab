#!/bin/sh
# Installs the wheel of this very release, by its hash, unless the command is there. No root
# is needed. The release writes wheel.txt: a line of the wheel's address and its hash, as pip
# reads it. Without it this is no release, and nothing that only has the name is installed.
set -eu
command -v locklab >/dev/null && exit 0
wheel=${WHEEL:-$(dirname "$0")/wheel.txt}
if [ ! -s "$wheel" ]; then
    echo "this version of the action is no release and names no wheel; install locklab in a step before (cargo install --locked --path locklab)" >&2
    exit 1
fi
there=${RUNNER_TEMP:-$PWD/.locklab-ci}/locklab
python3 -m venv "$there"
"$there/bin/pip" install --quiet --no-deps --only-binary :all: --require-hashes -r "$wheel"
if [ -n "${GITHUB_PATH:-}" ]; then
    echo "$there/bin" >> "$GITHUB_PATH"
else
    echo "add $there/bin to the PATH"
fi
