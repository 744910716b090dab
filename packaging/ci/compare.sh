#!/bin/sh
# Builds two commits in folders of their own and compares them, in turn. Both folders are
# fresh and have paths of equal length, which moves the stack; they are removed again,
# whatever happens. Exits with the code of locklab.
#
# RUN         the command of the benchmark
# BUILD       the command that builds it, or nothing
# BASE        the commit to compare with
# METRIC PAIRS RETRY DELTA FAIL_ON as the options of locklab compare, or nothing
# REPORTS     the folder for report.md, junit.xml and locklab.sarif [locklab-reports]
set -eu
: "${RUN:?is the command of the benchmark}"
case ${BASE:-} in
'' | 0000000000000000000000000000000000000000)
    echo "there is no commit to compare with; set base (BASE)" >&2
    exit 2
    ;;
esac
reports=${REPORTS:-locklab-reports}
mkdir -p "$reports"
reports=$(cd "$reports" && pwd)
folder=$(mktemp -d)
# Each side runs in its folder. Paths and command go through the environment, so that nothing
# in them needs to be quoted.
export LOCKLAB_RUN="$RUN" LOCKLAB_BASE="$folder/base" LOCKLAB_HEAD="$folder/head"
clean() {
    for side in "$LOCKLAB_BASE" "$LOCKLAB_HEAD"; do
        # Twice: a worktree with submodules is removed only so.
        git worktree remove --force --force "$side" 2>/dev/null || rm -rf "$side"
    done
    rm -rf "$folder"
    git worktree prune
}
trap clean EXIT
trap 'exit 130' INT TERM

if ! git cat-file -e "$BASE^{commit}" 2>/dev/null; then
    remote=$(git remote | head -n 1)
    git fetch --quiet --depth 1 "${remote:-origin}" "$BASE" || {
        echo "the commit $BASE is not in this clone and cannot be fetched; check out with fetch-depth: 0" >&2
        exit 1
    }
fi
side() {
    git worktree add --quiet --detach "$2" "$1"
    if [ -e "$2/.gitmodules" ]; then
        git -C "$2" submodule --quiet update --init --recursive
    fi
    if grep -qs filter=lfs "$2/.gitattributes"; then
        git -C "$2" lfs pull
    fi
    [ -n "${BUILD:-}" ] || return 0
    (cd "$2" && sh -euc "$BUILD") || {
        echo "the build failed in $2" >&2
        return 1
    }
}
base=$(git rev-parse --short "$BASE^{commit}")
head=$(git rev-parse --short HEAD)
side "$base" "$LOCKLAB_BASE" || exit 1
side "$head" "$LOCKLAB_HEAD" || exit 1

set -- --baseline "sh -c 'cd \"\$LOCKLAB_BASE\" && eval \"\$LOCKLAB_RUN\"'" \
    --experiment "sh -c 'cd \"\$LOCKLAB_HEAD\" && eval \"\$LOCKLAB_RUN\"'" \
    --name "base $base" --name "head $head" \
    --pairs "${PAIRS:-40}" --store "$reports/locklab.sqlite" \
    --markdown "$reports/report.md" --junit "$reports/junit.xml" \
    --sarif "$reports/locklab.sarif"
[ -z "${METRIC:-}" ] || set -- "$@" --metric "$METRIC"
[ -z "${RETRY:-}" ] || set -- "$@" --retry "$RETRY"
[ -z "${DELTA:-}" ] || set -- "$@" --delta "$DELTA"
[ -z "${FAIL_ON:-}" ] || set -- "$@" --fail-on "$FAIL_ON"
[ -z "${GITHUB_STEP_SUMMARY:-}" ] || set -- "$@" --github
code=0
locklab compare "$@" || code=$?
case $code in
0) verdict=passed ;;
3) verdict=worse ;;
4) verdict=unclear ;;
5) verdict=invalid ;;
6) verdict=incomplete ;;
*) verdict=failed ;;
esac
[ -z "${GITHUB_OUTPUT:-}" ] || printf 'verdict=%s\nreports=%s\n' "$verdict" "$reports" >> "$GITHUB_OUTPUT"
exit "$code"
