#!/bin/sh
# Prints a table of the locks in C that Locklab and GenMC both explore: the executions and
# seconds of each. Every thread takes the lock once.
#
#   sh crates/more/user-lock/benches/genmc/table.sh [GENMC]
#
# GENMC is the program of that name (0.10; build.sh builds it). Without it the table has
# Locklab's column only. Each gets at most 60 seconds for a row, and they run in turn. The
# seconds are of the exploration for Locklab and of the whole command for GenMC, which
# compiles the file in that time.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../../../../.." && pwd)
genmc=${1:-$(command -v genmc || true)}
locklab=${LOCKLAB:-$root/target/release/locklab}
[ -x "$locklab" ] || {
    echo "table: there is no $locklab; run 'cargo build --release -p locklab'" >&2
    exit 1
}
sources=$root/crates/more/user-lock
limit=60
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cp "$here/client.c" "$sources/tests/c/peers/orders.h" "$scratch"

# Prints executions and seconds of GenMC for so many threads, or why there are none.
of_genmc() {
    [ -n "$genmc" ] || { echo "not installed"; return; }
    code=0
    timeout "$limit" "$genmc" --rc11 --disable-estimation -disable-ipr -disable-sr -- $flags -DGENMC -I"$sources/c" \
        -DTHREADS="$1" "$scratch/client.c" >"$scratch/said" 2>&1 || code=$?
    if [ "$code" = 124 ]; then
        echo "over $limit s"
    elif grep -q "Mixed-size accesses" "$scratch/said"; then
        echo "has no mixed sizes"
    elif [ "$code" != 0 ]; then
        echo "fails"
    else
        sed -n 's/^Number of complete executions explored: //p; s/^Total wall-clock time: //p' \
            "$scratch/said" | paste -s -d ' '
    fi
}

# Prints executions and seconds of Locklab for so many threads, or what it found.
of_locklab() {
    timeout "$limit" "$locklab" verify "$scratch/client.c" --cflags "$flags -DTHREADS=$1" --json \
        >"$scratch/said" 2>&1 || true
    python3 - "$scratch/said" "$limit" <<'PYTHON'
import json, sys
try:
    test = json.load(open(sys.argv[1]))["tests"][0]
except ValueError:
    print(f"over {sys.argv[2]} s")
else:
    bound = "" if test["outcome"] == "holds" else test["outcome"] + ", "
    print(f"{bound}{test['executions']} {test['seconds']:.2f}s")
PYTHON
}

printf '| %-10s | %-7s | %-20s | %-20s |\n' lock threads Locklab GenMC
printf '| ---------- | ------- | -------------------- | -------------------- |\n'
flags="-include $here/lock_as_program.h -DLOCKLAB_CHECKER"
while read -r file counts; do
    cp "$sources/tests/c/$file.c" "$scratch/lock.c"
    for threads in $counts; do
        printf '| %-10s | %-7s | %-20s | %-20s |\n' "${file#peers/}" "$threads" \
            "$(of_locklab "$threads")" "$(of_genmc "$threads")"
    done
done <<ROWS
peers/ticketlock 3 4 5
peers/ttas 3 4
mcs 3 4
clh 3 4
anderson 3 4
peers/twalock 3 4
ticket 3 4
qspinlock 3
ROWS
