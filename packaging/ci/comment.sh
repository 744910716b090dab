#!/bin/sh
# Comments the report on a pull request, or renews the comment of this job, which a hidden
# marker tells from all others. A change from a fork has no right to comment: that is said,
# and fails nothing.
set -eu
report=${REPORTS:-locklab-reports}/report.md
[ -s "$report" ] || exit 0
export MARKER="<!-- locklab: ${GITHUB_WORKFLOW:-} ${GITHUB_JOB:-} -->"
short=$(mktemp)
trap 'rm -f "$short"' EXIT
# GitHub takes 65,536 characters. Whole lines are kept, and what is open is closed.
echo "$MARKER" > "$short"
LC_ALL=C awk '
    { bytes += length($0) + 1 }
    bytes > 60000 { cut = 1; exit }
    { print; open += gsub(/<details/, "&") - gsub(/<\/details>/, "&") }
    END {
        while (open-- > 0) print "</details>"
        if (cut) print "\n(The rest is in the summary of the job.)"
    }' "$report" >> "$short"
comments="repos/$GITHUB_REPOSITORY/issues"
find='.[] | select(.body | startswith(env.MARKER)) | .id'
comment() {
    id=$(gh api --paginate "$comments/$PULL_REQUEST/comments" --jq "$find") || return 1
    id=$(printf '%s\n' "$id" | head -n 1)
    case $id in
    '') gh api --silent "$comments/$PULL_REQUEST/comments" -F "body=@$short" ;;
    *) gh api --silent --method PATCH "$comments/comments/$id" -F "body=@$short" ;;
    esac
}
comment ||
    echo "::notice title=locklab::no comment could be written; the summary of the job has the report"
