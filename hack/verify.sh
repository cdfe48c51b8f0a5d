#!/usr/bin/env bash
# Regenerates, reformats and tidies everything, and fails if that changed, added or removed a file. What was changed
# before, and not committed, does not matter: it compares contents, not commits.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

fingerprint() {
	git ls-files -z --cached --others --exclude-standard | sort -zu | while IFS= read -r -d '' file; do
		[[ ! -f $file ]] || sha256sum "$file"
	done
}

before=$(fingerprint)
# Comments are formatted first, because the CRD's descriptions are made of them.
make --no-print-directory fmt generate manifests bundle tidy
after=$(fingerprint)
if [[ $before != "$after" ]]; then
	echo "Out of date until now; look at them and commit them:" >&2
	diff <(echo "$before") <(echo "$after") | sed -nE 's/^[<>] [0-9a-f]{64}  /  /p' | sort -u >&2
	exit 1
fi
