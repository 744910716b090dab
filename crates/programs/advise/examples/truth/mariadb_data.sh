#!/bin/sh
# Makes the data of mariadb.sh in a folder, once.
set -e
folder=$1
[ -e "$folder/filled" ] && exit 0
rm -rf "$folder" && mkdir -p "$folder"
socket="$folder/socket"
mariadb-install-db --no-defaults --user="$(id -un)" --datadir="$folder/data" \
    --auth-root-authentication-method=normal >"$folder/log" 2>&1
mariadbd --no-defaults --user="$(id -un)" --datadir="$folder/data" --socket="$socket" \
    --pid-file="$folder/pid" --skip-networking --skip-log-bin >"$folder/log" 2>&1 &
server=$!
until mariadb-admin --no-defaults -u root -S "$socket" ping >/dev/null 2>&1; do
    kill -0 "$server"
    sleep 0.05
done
sysbench oltp_read_write --mysql-socket="$socket" --mysql-user=root --mysql-db=test --tables=2 \
    --table-size=20000 prepare >/dev/null
kill "$server"
wait "$server" || true
: >"$folder/filled"
