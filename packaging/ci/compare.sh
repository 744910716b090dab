#!/bin/sh
# Builds two commits in folders of their own and compares them, in turn. The folder of
# the base is removed again, whatever happens. Exits with the code of locklab.
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
base=$(mktemp -d)
trap 'git worktree remove --force "$base" 2>/dev/null; rm -rf "$base"' EXIT
trap 'exit 130' INT TERM

git cat-file -e "$BASE^{commit}" 2>/dev/null || git fetch --quiet --depth 1 origin "$BASE"
git worktree add --quiet --detach "$base" "$BASE"
if [ -n "${BUILD:-}" ]; then
    for folder in "$base" .; do
        (cd "$folder" && sh -euc "$BUILD") || {
            echo "the build failed in $folder" >&2
            exit 1
        }
    done
fi

# Each side runs in its folder. The command goes through the environment, so that
# nothing in it needs to be quoted.
export LOCKLAB_RUN="$RUN"
side() {
    printf "sh -c 'cd \"\$0\" && eval \"\$LOCKLAB_RUN\"' '%s'" "$1"
}
set -- --baseline "$(side "$base")" --experiment "$(side "$PWD")" \
    --baseline-name "base $(git rev-parse --short "$BASE")" \
    --experiment-name "head $(git rev-parse --short HEAD)" \
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
exit "$code"
