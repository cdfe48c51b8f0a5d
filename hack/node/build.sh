#!/usr/bin/env bash
# Builds what a real node runs, kubelet, containerd, runc and CNI plugins, from Go modules, once per pinned version, and
# prints the folder that holds them. The folder's name is a digest of the module files, so that a changed pin is a new
# folder and an old one stays valid. It needs Go and, because runc is partly C, a C compiler. KUBERNETES chooses the kubelet's version
# as it does in hack/controlplane/build.sh.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
cache=${ROLLSET_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/rollset}
kubelet=$here/../controlplane/kubernetes-${KUBERNETES:-newest}
[[ -d $kubelet ]] || kubelet=$here/../controlplane/kubernetes
digest=$(cat {"$kubelet","$here/runtime"}/go.{mod,sum} "$here/build.sh" | sha256sum | cut -c1-12)
out=$cache/node-$digest
binaries=(kubelet containerd containerd-shim-runc-v2 ctr runc bridge host-local loopback)

complete() { local b; for b in "${binaries[@]}"; do [[ -x $out/$b ]] || return 1; done; }

if ! complete; then
	mkdir -p "$out"
	# One builder at a time: a second caller waits here, and then finds everything done.
	exec 9>"$out/.lock"
	flock 9
fi
if ! complete; then
	version=$(cd "$kubelet" && go list -m -f '{{.Version}}' k8s.io/kubernetes)
	minor=${version#v1.} minor=${minor%%.*}
	stamp="-X k8s.io/component-base/version.gitVersion=$version -X k8s.io/component-base/version.gitMajor=1 -X k8s.io/component-base/version.gitMinor=$minor"
	# Binaries appear under their final name only when they are whole: a build that was interrupted leaves none.
	build() { # folder of a module, package, build tags
		local binary=${2##*/}
		[[ -x $out/$binary ]] && return
		echo "building $binary (the first time takes minutes) ..." >&2
		(cd "$1" && CGO_ENABLED=${CGO_ENABLED:-0} go build -trimpath -buildvcs=false -tags "${3:-}" -ldflags "-s -w $stamp" -o "$out/.$binary.new" "$2")
		mv "$out/.$binary.new" "$out/$binary"
	}
	# Without the snapshotters that need C libraries.
	tags="no_btrfs no_devmapper no_zfs no_dynamic_plugins"
	build "$here/runtime" github.com/containerd/containerd/v2/cmd/containerd "$tags"
	build "$here/runtime" github.com/containerd/containerd/v2/cmd/containerd-shim-runc-v2 "$tags"
	build "$here/runtime" github.com/containerd/containerd/v2/cmd/ctr "$tags"
	build "$here/runtime" github.com/containernetworking/plugins/plugins/main/bridge
	build "$here/runtime" github.com/containernetworking/plugins/plugins/main/loopback
	build "$here/runtime" github.com/containernetworking/plugins/plugins/ipam/host-local
	# Without seccomp, which would need the headers of a C library: the node's supervisor takes the profiles out.
	CGO_ENABLED=1 build "$here/runtime" github.com/opencontainers/runc "netgo osusergo"
	build "$kubelet" k8s.io/kubernetes/cmd/kubelet
fi
echo "$out"
