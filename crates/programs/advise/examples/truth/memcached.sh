#!/bin/sh
# memcached with so many threads under its own load generator, which has glibc's
# locks whatever the server has.
set -e
port=$((20000 + $$ % 20000))
memcached -A -u root -l 127.0.0.1 -t "$1" -p "$port" &
server=$!
unset LD_PRELOAD
for i in 1 2 3 4 5 6 7 8 9; do
    memcstat --servers="127.0.0.1:$port" >/dev/null 2>&1 && break
    sleep 0.02
done
memcaslap -s "127.0.0.1:$port" -T 1 -c 16 -X 100 -t 1s | sed -n 's/.*TPS: \([0-9]*\).*/rate \1/p'
kill "$server"
wait "$server" || true
