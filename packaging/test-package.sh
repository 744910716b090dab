#!/bin/sh
# Installs the Debian package of a folder in a fresh chroot of the Debian
# release that this machine runs, and uses the installed command there.
#
#   sudo sh packaging/test-package.sh target/dist
#
# Needs root, debootstrap and a Debian mirror. Nothing is left behind but
# what LOCKLAB_CHROOT names, if it is set: a base system to start from, which is
# made if it is not there.
set -eu

folder=${1:?usage: test-package.sh FOLDER}
version=$(sed -n 's/^version = "\(.*\)"$/\1/p' "$(dirname "$0")/../Cargo.toml" | head -n 1)
package=$(ls -t "$folder"/locklab_"$version"-*.deb 2>/dev/null | head -n 1)
[ -n "$package" ] || {
    echo "test-package: no package of version $version in $folder; run: cargo xtask dist" >&2
    exit 1
}
. "$(dirname "$0")/chroot.sh"
fresh_chroot test-package

cp "$package" "$root/tmp/locklab.deb"
cp "$(dirname "$0")/smoke-test.sh" "$root/tmp/"
in_chroot apt-get -q -y install --no-install-recommends /tmp/locklab.deb >"$scratch/apt" 2>&1 || {
    tail -n 5 "$scratch/apt" >&2
    echo "test-package: the package cannot be installed" >&2
    exit 1
}
in_chroot sh /tmp/smoke-test.sh "$version"
if [ -x "$folder/locklab-static" ]; then
    # No library of the system may be needed, so it runs where there is none.
    mkdir "$scratch/empty"
    cp "$folder/locklab-static" "$scratch/empty/locklab"
    chroot "$scratch/empty" /locklab --version | grep -qx "locklab $version"
    chroot "$scratch/empty" /locklab locks | grep -q '^mcs '
    echo "ok: the static binary, where nothing else is installed"
fi
echo "test-package: $(basename "$package") passed in $PRETTY_NAME"
