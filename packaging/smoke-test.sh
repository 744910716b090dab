#!/bin/sh
# Uses an installed Locklab: smoke-test.sh VERSION [--command-only | --static].
# Changes nothing but a scratch folder. --command-only is for the container and the
# crate, which have no man pages, completions or licence files; --static for the wheel,
# whose command loads no lock in C either.
set -eu
version=${1:?usage: smoke-test.sh VERSION [--command-only | --static]}
files=${2:-}
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
export HOME="$scratch"

check() {
    name=$1
    shift
    if "$@" >"$scratch/out" 2>&1; then
        echo "ok: $name"
    else
        echo "FAILED: $name ($*)" >&2
        cat "$scratch/out" >&2
        exit 1
    fi
}
# prints PATTERN COMMAND...: it succeeds, and a line of its output matches.
prints() {
    pattern=$1
    shift
    "$@" >"$scratch/printed" && grep -q -e "$pattern" "$scratch/printed"
}
exits_with() {
    wanted=$1
    shift
    code=0
    "$@" || code=$?
    [ "$code" = "$wanted" ]
}

check "the version" prints "^locklab $version\$" locklab --version
check "the catalogue" prints '^qspinlock ' locklab locks
check "the first result of the README" prints '^ *80 | [0-9.]*+' \
    locklab matrix ticket mcs --on xeon-8380-2s --threads 1,4,16,80 --critical 1 \
    --non-critical 1
check "a matrix measured here" prints 'hardware: measured on' \
    locklab matrix ticket mcs --threads 1 --critical 1 --non-critical 1 --time 2
check "the store" prints 'mcs' locklab results list
check "the interposer" exits_with 7 locklab run --lock mcs -- sh -c 'exit 7'
check "the recorder" prints '^Locks of sh' \
    sh -c 'locklab record -o "$0" -- sh -c : 2>&1' "$scratch/trace"
verify_c='locklab locks -o "$0" >&2 && locklab verify "$0" --at-most executions=200 2>&1'
if [ "$files" = --static ]; then
    check "a lock in C is refused" prints 'statically linked locklab cannot load a lock' \
        sh -c "$verify_c || [ \$? = 1 ]" "$scratch/mine.c"
elif command -v cc >/dev/null; then
    check "a lock in C" prints 'exclusion .* holds$' sh -c "$verify_c" "$scratch/mine.c"
fi
check "bad arguments exit with 2" exits_with 2 locklab matrix mcs no-such-lock
[ -z "$files" ] || exit 0
check "the man page" sh -c 'zcat -f /usr/share/man/man1/locklab.1* | grep -q "^.SH NAME"'
check "a man page of a command" sh -c 'zcat -f /usr/share/man/man1/locklab-matrix.1* | grep -q "^.SH NAME"'
check "completions of bash" bash -n /usr/share/bash-completion/completions/locklab
check "completions of zsh and fish" test -s /usr/share/zsh/vendor-completions/_locklab \
    -a -s /usr/share/fish/vendor_completions.d/locklab.fish
check "licences" test -s /usr/share/doc/locklab/copyright
