#!/bin/sh
# Builds GenMC 0.10.0 in a folder, for table.sh to run beside Locklab. GenMC is GPL-3: it is
# fetched and run, and no part of it comes into this repository.
#
#   sh crates/more/user-lock/benches/genmc/build.sh FOLDER
#
# Needs git and, on Debian: autoconf automake g++ make clang-14 llvm-14-dev libclang-14-dev
# libffi-dev zlib1g-dev libedit-dev.
set -eu

folder=${1:?"say where to build: sh crates/more/user-lock/benches/genmc/build.sh FOLDER"}
llvm=/usr/lib/llvm-14
[ -x "$llvm/bin/clang" ] || {
    echo "build: there is no $llvm/bin/clang; as root: apt-get install clang-14 llvm-14-dev" >&2
    exit 1
}
[ -d "$folder" ] || git clone --depth 1 --branch v0.10.0 https://github.com/MPI-SWS/genmc "$folder"
cd "$folder"
autoreconf --install
./configure --with-llvm="$llvm" CXXFLAGS='-O1 -g0'
make -j "$(nproc)"
echo "built $PWD/genmc"
