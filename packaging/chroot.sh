# A fresh chroot of the Debian release that this machine runs; read by
# build-package.sh and test-package.sh.
#
# fresh_chroot NAME sets `scratch` and `root`, and removes both at the end.
# LOCKLAB_CHROOT names a base system to start from, which is made if it is not
# there. Messages begin with NAME.

fresh_chroot() {
    [ "$(id -u)" = 0 ] || { echo "$1: a chroot takes root; run it by sudo" >&2; exit 1; }
    command -v debootstrap >/dev/null || {
        echo "$1: install the package debootstrap" >&2
        exit 1
    }
    . /etc/os-release
    scratch=$(mktemp -d)
    root=$scratch/root
    trap 'umount "$root/proc" 2>/dev/null || :; rm -rf "$scratch"' EXIT
    trap 'exit 1' HUP INT TERM
    base=${LOCKLAB_CHROOT:-}
    if [ -z "$base" ] || [ ! -d "$base/usr" ]; then
        debootstrap --variant=minbase "$VERSION_CODENAME" "${base:-$root}" >"$scratch/log" 2>&1 || {
            tail -n 3 "$scratch/log" >&2
            echo "$1: debootstrap failed; is the Debian mirror in reach?" >&2
            exit 1
        }
    fi
    [ -z "$base" ] || cp -a "$base" "$root"
    cp /etc/resolv.conf "$root/etc/resolv.conf"
    mount -t proc proc "$root/proc" 2>/dev/null ||
        echo "$1: /proc could not be mounted; the chroot is used without it"
    in_chroot apt-get -q update >"$scratch/apt" 2>&1 || {
        tail -n 5 "$scratch/apt" >&2
        echo "$1: the Debian mirror is not in reach from the chroot" >&2
        exit 1
    }
}

# Of this machine's environment, only how it reaches the network.
in_chroot() {
    chroot "$root" env -i PATH=/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C \
        HOME=/root DEBIAN_FRONTEND=noninteractive http_proxy="${http_proxy:-}" \
        https_proxy="${https_proxy:-}" no_proxy="${no_proxy:-}" "$@"
}
