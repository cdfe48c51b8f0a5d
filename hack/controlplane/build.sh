#!/usr/bin/env bash
# Builds the local cluster's binaries from Go modules, once per pinned version, and prints the folder that holds them.
# The folder's name is a digest of the module files, so that a changed pin is a new folder and an old one stays valid.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
cache=${ROLLSET_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/rollset}
digest=$(cat "$here"/*/go.mod "$here"/*/go.sum "$here/build.sh" | sha256sum | cut -c1-12)
out=$cache/controlplane-$digest
binaries=(kube-apiserver kube-controller-manager kube-scheduler kubectl etcd)

complete() { local b; for b in "${binaries[@]}"; do [[ -x $out/$b ]] || return 1; done; }

if ! complete; then
	mkdir -p "$out"
	# One builder at a time: a second caller waits here, and then finds everything done.
	exec 9>"$out/.lock"
	flock 9
fi
if ! complete; then
	version=$(cd "$here/kubernetes" && go list -m -f '{{.Version}}' k8s.io/kubernetes)
	minor=${version#v1.} minor=${minor%%.*}
	stamp="-X k8s.io/component-base/version.gitVersion=$version -X k8s.io/component-base/version.gitMajor=1 -X k8s.io/component-base/version.gitMinor=$minor"
	# Binaries appear under their final name only when they are whole: a build that was interrupted leaves none.
	build() { # module folder, binary, package
		[[ -x $out/$2 ]] && return
		echo "building $2 (the first time takes minutes) ..." >&2
		(cd "$here/$1" && CGO_ENABLED=0 go build -buildvcs=false -ldflags "-s -w $stamp" -o "$out/.$2.new" "$3")
		mv "$out/.$2.new" "$out/$2"
	}
	build etcd etcd go.etcd.io/etcd/server/v3
	build kubernetes kube-apiserver k8s.io/kubernetes/cmd/kube-apiserver
	build kubernetes kube-controller-manager k8s.io/kubernetes/cmd/kube-controller-manager
	build kubernetes kube-scheduler k8s.io/kubernetes/cmd/kube-scheduler
	build kubernetes kubectl k8s.io/kubernetes/cmd/kubectl
fi
echo "$out"
