#!/bin/sh
# Installs the wheel of a folder into a fresh virtual environment of Python, and uses the
# installed command there. Neither Rust nor anything else of this machine's PATH is in
# reach but the system's own programs.
#
#   sh packaging/test-wheel.sh target/dist
#
# Needs python3 with venv and pip (Debian: python3-venv). Nothing is left behind.
set -eu

folder=${1:?usage: test-wheel.sh FOLDER}
source=$(cd "$(dirname "$0")" && pwd)
version=$(sed -n 's/^version = "\(.*\)"$/\1/p' "$source/../Cargo.toml" | head -n 1)
wheel=$(ls -t "$folder"/locklab-"$version"-*.whl 2>/dev/null | head -n 1)
[ -n "$wheel" ] || {
    echo "test-wheel: no wheel of version $version in $folder; run: cargo xtask dist" >&2
    exit 1
}
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
python3 -m venv "$scratch/venv" >"$scratch/log" 2>&1 || {
    tail -n 3 "$scratch/log" >&2
    echo "test-wheel: python3 makes no virtual environment; install python3-venv" >&2
    exit 1
}
"$scratch/venv/bin/pip" install --quiet --no-index --disable-pip-version-check "$wheel"
clean="env -i HOME=$scratch LC_ALL=C PATH=$scratch/venv/bin:/usr/bin:/bin"
if $clean sh -c 'command -v cargo rustc'; then
    echo "test-wheel: Rust is in reach of the test" >&2
    exit 1
fi
# Without musl the wheel has the command with shared libraries.
kind=--command-only
[ ! -f "$folder/locklab-static" ] || kind=--static
cd "$scratch"
$clean sh "$source/smoke-test.sh" "$version" "$kind"
# It must go as a whole.
"$scratch/venv/bin/pip" uninstall --quiet --yes locklab
left=$(find "$scratch/venv" -name '*locklab*' -print)
[ -z "$left" ] || { echo "test-wheel: left behind: $left" >&2; exit 1; }
echo "test-wheel: $(basename "$wheel") passed"
