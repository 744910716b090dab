#!/bin/sh
# Comments the report on a pull request, or renews the comment that is there. A
# change from a fork has no right to comment: that is said, and fails nothing.
set -eu
report=${REPORTS:-locklab-reports}/report.md
[ -s "$report" ] || exit 0
# GitHub takes 65,536 characters.
short=$(mktemp)
head -c 60000 "$report" > "$short"
[ "$(wc -c < "$report")" -le 60000 ] || printf '\n\n(The rest is in the summary of the job.)\n' >> "$short"
gh pr comment "$PULL_REQUEST" --edit-last --create-if-none --body-file "$short" ||
    echo "::notice title=locklab::no comment could be written; the summary of the job has the report"
rm -f "$short"
