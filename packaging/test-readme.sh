#!/bin/sh
# Runs each command of the README's section "Install" in a fresh clone of the commit that is
# checked out, in the order in which they stand there, and uses what they installed.
#
#   sh packaging/test-readme.sh
#
# Needs what the README asks for, and python3 with venv for pip. Everything is built anew,
# which takes half an hour on two CPUs. Nothing is left behind: programs and Python's packages
# are installed in a scratch folder.
set -eu

source=$(cd "$(dirname "$0")/.." && pwd)
version=$(sed -n 's/^version = "\(.*\)"$/\1/p' "$source/Cargo.toml" | head -n 1)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
git clone --quiet "$source" "$scratch/clone"
cd "$scratch/clone"
python3 -m venv "$scratch/venv" >"$scratch/log" 2>&1 || {
    tail -n 3 "$scratch/log" >&2
    echo "test-readme: python3 makes no virtual environment; install python3-venv" >&2
    exit 1
}
# A command stands alone on an indented line; two blanks or more separate it from what is
# said of it.
sed -n '/^## Install/,/^## [^I]/s/^    \([a-z][^ ]* .*\)$/\1/p' README.md | sed 's/   *.*//' \
    >"$scratch/commands"
[ "$(wc -l <"$scratch/commands")" -ge 3 ] || {
    echo "test-readme: the README's section Install has fewer than three commands" >&2
    exit 1
}
while read -r command; do
    echo "test-readme: $command"
    env PATH="$scratch/venv/bin:$PATH" CARGO_INSTALL_ROOT="$scratch/root" PIP_NO_INDEX=1 \
        sh -euc "$command" </dev/null
done <"$scratch/commands"
sh packaging/test-wheel.sh target/dist
cd "$scratch"
HOME=$scratch PATH=$scratch/root/bin:/usr/bin:/bin \
    sh "$source/packaging/smoke-test.sh" "$version" --command-only
"$scratch/venv/bin/locklab" --version
echo "test-readme: passed"
