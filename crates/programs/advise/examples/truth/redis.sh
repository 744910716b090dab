#!/bin/sh
# redis with four I/O threads, under so many requests of its own client, which has glibc's
# locks whatever the server has.
set -e
port=$((20000 + $$ % 20000))
redis-server --port "$port" --save '' --io-threads 4 --io-threads-do-reads yes \
    --loglevel warning >/dev/null 2>&1 &
server=$!
unset LD_PRELOAD
until redis-cli -p "$port" ping >/dev/null 2>&1; do
    kill -0 "$server"
    sleep 0.02
done
redis-benchmark -p "$port" -n "$1" -c 50 -P 16 -t set --csv |
    sed -n 's/^"SET","\([0-9]*\).*/rate \1/p'
kill "$server"
wait "$server" || true
