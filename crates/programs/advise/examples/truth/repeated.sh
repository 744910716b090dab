#!/bin/sh
# Runs a program so many times, and says how often it could in a thousand seconds.
set -e
times=$1 done=0
shift
from=$(date +%s%N)
while [ "$done" -lt "$times" ]; do
    "$@" >/dev/null 2>&1
    done=$((done + 1))
done
echo "rate $((times * 1000000000000 / ($(date +%s%N) - from)))"
