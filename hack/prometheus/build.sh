#!/usr/bin/env bash
# Builds Prometheus from its Go module, once per pinned version, and prints the path of the binary.
# It finds no targets but those that its configuration names, and has no web interface: without clients of every cloud it builds
# in a minute or two. It has a module file of its own because its dependencies must not choose the versions of others.
# The folder's name is a digest of the module files, so that a changed pin is a new folder and an old one stays valid.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
cache=${ROLLSET_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/rollset}
digest=$(cat "$here/go.mod" "$here/go.sum" "$here/build.sh" | sha256sum | cut -c1-12)
out=$cache/prometheus-$digest
binary=$out/prometheus

if [[ ! -x $binary ]]; then
	mkdir -p "$out"
	# One builder at a time: a second caller waits here, and then finds everything done.
	exec 9>"$out/.lock"
	flock 9
fi
if [[ ! -x $binary ]]; then
	echo "building Prometheus from source, once (minutes on two cores)" >&2
	# The binary appears under its final name only when it is whole: a build that was interrupted leaves none.
	(cd "$here" && CGO_ENABLED=0 go build -buildvcs=false -tags remove_all_sd -ldflags "-s -w" -o "$out/.new" \
		github.com/prometheus/prometheus/cmd/prometheus)
	mv "$out/.new" "$binary"
fi
echo "$binary"
