#!/bin/sh
# Installs the command from packaged crates, as cargo would from crates.io, and uses it. Only what `cargo package` puts into the archives is in reach, so
# a file that is missing there, or a version that is not, is found here.
#
#   sh packaging/test-crate.sh
#
# Needs the Rust toolchain and crates.io for the dependencies. Nothing is left behind.
# LOCKLAB_PROFILE=dev builds faster.
set -eu

source=$(cd "$(dirname "$0")/.." && pwd)
version=$(sed -n 's/^version = "\(.*\)"$/\1/p' "$source/Cargo.toml" | head -n 1)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
built=$scratch/built
cd "$source"
# The command and all that it is made of; the others are no crates for others.
cargo package --quiet --no-verify --allow-dirty --workspace --target-dir "$scratch/packed" \
    --exclude locklab-capi --exclude locklab-preload --exclude locklab-recorder \
    --exclude locklab-qemu-plugin --exclude locklab-peers --exclude locklab-fastpath \
    --exclude locklab-packaging --exclude xtask
mkdir "$scratch/crates"
patches=""
for crate in "$scratch"/packed/package/*-"$version".crate; do
    tar -xzf "$crate" -C "$scratch/crates"
    folder=$(basename "$crate" .crate)
    name=${folder%-"$version"}
    # What is on crates.io under these names, if anything, is not what is tested.
    patches="$patches
$name = { path = \"$scratch/crates/$folder\" }"
done
cd "$scratch/crates/locklab-$version"
printf '\n[workspace]\n\n[patch.crates-io]%s\n' "$patches" >>Cargo.toml
cargo install --quiet --path . --root "$scratch/root" --target-dir "$built" \
    --profile "${LOCKLAB_PROFILE:-release}"
cd "$scratch"
HOME=$scratch PATH=$scratch/root/bin:/usr/bin:/bin sh "$source/packaging/smoke-test.sh" \
    "$version" --command-only
echo "test-crate: locklab $version passed"
