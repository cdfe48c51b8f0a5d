#!/usr/bin/env bash
# Regenerates, reformats and tidies everything in a copy, so that whatever else reads the files meanwhile sees whole ones. If
# that changed, added or removed a file, it does so here too, and fails. Contents are compared, not commits: what was changed
# before, and is not committed, does not matter. Arguments are those of hack/tidy.sh.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT
git ls-files -z --cached --others --exclude-standard | while IFS= read -r -d '' file; do
	[[ ! -f $file ]] || printf '%s\0' "$file"
done | tar -c --null -T - | tar -x -C "$copy"
git -C "$copy" init -q
git -C "$copy" add --force --all

# Comments are formatted first, because the CRD's descriptions are made of them. The copy has no version to stamp.
GOFLAGS="${GOFLAGS-} -buildvcs=false" env -u MAKEFLAGS make --no-print-directory -C "$copy" SIDE_BY_SIDE= fmt generate manifests
(cd "$copy" && hack/tidy.sh "$@")

changed=$(git -C "$copy" -c core.quotePath=off status --porcelain --no-renames | sed -nE 's/^.[MD] |^\?\? //p')
if [[ -n $changed ]]; then
	echo "Out of date until now; look at them and commit them:" >&2
	while IFS= read -r file; do
		echo "  $file" >&2
		if [[ -e $copy/$file ]]; then
			mkdir -p "$(dirname "$file")"
			cp -r "$copy/$file" "$(dirname "$file")/"
		else
			rm "$file"
		fi
	done <<<"$changed"
	exit 1
fi
