#!/usr/bin/env bash
# Checks the format of the Go files that changed since a revision, and lints their packages.
#
#	check.sh REVISION
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
since=$(git merge-base HEAD "$1" 2>/dev/null || git rev-parse HEAD)
linter=$(hack/golangci-lint/build.sh)

# module prints the folder of the nearest module above a folder.
module() {
	local dir=$1
	while [[ ! -f $dir/go.mod ]]; do dir=$(dirname "$dir"); done
	echo "$dir"
}

{
	git diff --name-only --diff-filter=d "$since" -- '*.go'
	git ls-files --others --exclude-standard -- '*.go'
} | grep -v '/testdata/' | xargs -r -n 1 dirname | sort -u | while read -r dir; do
	echo "$(module "$dir") $dir"
done | while read -r module dir; do
	echo "$module ./$(realpath --relative-to="$module" "$dir")"
done | awk '{ dirs[$1] = dirs[$1] " " $2 } END { for (m in dirs) print m dirs[m] }' | while read -r module dirs; do
	read -ra packages <<<"$dirs"
	(cd "$module" && "$linter" run "${packages[@]}")
done
