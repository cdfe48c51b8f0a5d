#!/usr/bin/env bash
# Builds golangci-lint from its Go module, once per pinned version, and prints the path of the binary.
# The folder's name is a digest of the module files, so that a changed pin is a new folder and an old one stays valid.
# It has a module file of its own because its two hundred dependencies must not choose the versions of other tools.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
cache=${ROLLSET_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/rollset}
digest=$({ cat "$here/go.mod" "$here/go.sum" "$here/build.sh"; go env GOVERSION; } | sha256sum | cut -c1-12)
out=$cache/golangci-lint-$digest
binary=$out/golangci-lint

if [[ ! -x $binary ]]; then
	mkdir -p "$out"
	# One builder at a time: a second caller waits here, and then finds everything done.
	exec 9>"$out/.lock"
	flock 9
fi
if [[ ! -x $binary ]]; then
	echo "building golangci-lint (the first time takes minutes) ..." >&2
	# The binary appears under its final name only when it is whole: a build that was interrupted leaves none.
	(cd "$here" && CGO_ENABLED=0 go build -buildvcs=false -ldflags "-s -w" -o "$out/.new" \
		github.com/golangci/golangci-lint/v2/cmd/golangci-lint)
	mv "$out/.new" "$binary"
fi
echo "$binary"
