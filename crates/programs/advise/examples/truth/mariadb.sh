#!/bin/sh
# MariaDB under sysbench: a folder for its data, a workload of sysbench, threads, seconds. The
# client has glibc's locks whatever the server has.
set -e
folder=$1 workload=$2 threads=$3 seconds=$4
socket="$folder/socket"
rm -f "$socket"
mariadbd --no-defaults --user="$(id -un)" --datadir="$folder/data" --socket="$socket" \
    --pid-file="$folder/pid" --skip-networking --innodb-flush-log-at-trx-commit=2 \
    --innodb-buffer-pool-size=64M --skip-log-bin >"$folder/log" 2>&1 &
server=$!
unset LD_PRELOAD
until mariadb-admin --no-defaults -u root -S "$socket" ping >/dev/null 2>&1; do
    kill -0 "$server"
    sleep 0.05
done
sysbench "$workload" --mysql-socket="$socket" --mysql-user=root --mysql-db=test --tables=2 \
    --table-size=20000 --threads="$threads" --time="$seconds" run |
    sed -n 's/^ *queries: *[0-9]* *(\([0-9]*\).*/rate \1/p'
kill "$server"
wait "$server" || true
