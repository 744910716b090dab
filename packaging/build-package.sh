#!/bin/sh
# Builds a release of the commit that is checked out, in a fresh chroot of the
# Debian release that this machine runs, so that nothing which happens to be
# installed here can get into the package.
#
#   sudo sh packaging/build-package.sh FOLDER
#
# FOLDER gets what `cargo xtask dist` makes. Needs root, debootstrap, a Debian
# mirror, crates.io and the Rust toolchain of this machine, which is copied: a
# release of Debian's own is older than what the manifests ask for. Nothing is
# left behind but FOLDER and what LOCKLAB_CHROOT names, if it is set: a base
# system to start from, which is made if it is not there.
set -eu

output=${1:?usage: build-package.sh FOLDER}
source=$(cd "$(dirname "$0")/.." && pwd)
. "$source/packaging/chroot.sh"
fresh_chroot build-package

in_chroot apt-get -q -y install --no-install-recommends \
    ca-certificates dpkg-dev gcc libc6-dev musl-tools >"$scratch/apt" 2>&1 || {
    tail -n 5 "$scratch/apt" >&2
    echo "build-package: the packages that the build takes cannot be installed" >&2
    exit 1
}
# Whom this machine trusts: a proxy may have a certificate of its own.
cp /etc/ssl/certs/ca-certificates.crt "$root/etc/ssl/certs/" 2>/dev/null || :
cp -a "$(rustc --print sysroot)/." "$root/usr/local/"
mkdir "$root/locklab"
git -C "$source" archive HEAD | tar -x -C "$root/locklab"
in_chroot sh -c 'cd /locklab && CARGO_HOME=/cargo cargo xtask dist'
mkdir -p "$output"
cp -R "$root/locklab/target/dist/." "$output/"
echo "build-package: $(git -C "$source" rev-parse --short HEAD) built in $PRETTY_NAME"
