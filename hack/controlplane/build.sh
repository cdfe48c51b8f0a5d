#!/usr/bin/env bash
# Builds binaries of the local cluster from Go modules, once per pinned version, and prints the folder that holds them:
#
#	build.sh [binary ...]    all of them if none is named
#	build.sh versions        prints the versions of Kubernetes that can be built, oldest first
#
# KUBERNETES chooses a version, such as 1.34; the newest is the one that is built without it. Each version has its own module
# file, with the modules that it was released with.
#
# The folder's name is a digest of the module files, so that a changed pin is a new folder and an old one stays valid.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
cache=${ROLLSET_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/rollset}

# pinned prints the minor version that a module file requires.
pinned() { sed -nE 's,^(require)?[[:space:]]*k8s\.io/kubernetes v(1\.[0-9]+)\..*,\2,p' "$here/$1/go.mod"; }
newest=$(pinned kubernetes)

if [[ ${1-} == versions ]]; then
	for folder in "$here"/kubernetes-*/; do
		pinned "$(basename "$folder")"
	done
	echo "$newest"
	exit
fi

module=kubernetes
[[ ${KUBERNETES:-$newest} == "$newest" ]] || module=kubernetes-$KUBERNETES
[[ -f $here/$module/go.mod ]] || {
	echo "error: KUBERNETES=$KUBERNETES: there is no such version; there are $("$0" versions | paste -sd' ')" >&2
	exit 1
}
digest=$(cat "$here"/{etcd,"$module"}/go.mod "$here"/{etcd,"$module"}/go.sum | sha256sum | cut -c1-12)
out=$cache/controlplane-$digest
binaries=("$@")
(($#)) || binaries=(kube-apiserver kube-controller-manager kube-scheduler kubectl etcd)

missing() { local b; for b in "${binaries[@]}"; do [[ -x $out/$b ]] || echo "$b"; done; }

# progress reads the packages that the compiler names, and says how far it is: in one line that moves, or a line now and
# then where there is no terminal.
progress() {
	local n=0 every=200 package
	[[ -t 2 ]] && every=5
	while read -r package; do
		((++n % every)) && continue
		if [[ -t 2 ]]; then
			printf '\r   %4d s  %5d packages compiled  %-50.50s' "$SECONDS" "$n" "$package" >&2
		else
			echo "   $SECONDS s: $n packages compiled" >&2
		fi
	done
	[[ ! -t 2 ]] || ((n < every)) || echo >&2
}

# compile builds packages of a module together, so that the compiler works on all cores and on shared packages once.
# Binaries appear under their final name only when they are whole: a build that was interrupted leaves none.
compile() { # folder of a module, packages
	local folder=$1 log new
	shift
	new=$(mktemp -d "$out/.new.XXXXXX") log=$(mktemp "$out/.log.XXXXXX")
	if ! (cd "$here/$folder" && CGO_ENABLED=0 go build -v -trimpath -buildvcs=false -ldflags "-s -w $stamp" -o "$new/" "$@") 2> >(tee "$log" | progress); then
		grep -v '^[a-z0-9./_-]*$' "$log" >&2 || true # but for the names of packages
		rm -r "$new" "$log"
		return 1
	fi
	[[ ! -e $new/server ]] || mv "$new/server" "$new/etcd" # Go names a binary by its package
	mv "$new"/* "$out/"
	rm -r "$new" "$log"
}

if [[ -n $(missing) ]]; then
	mkdir -p "$out"
	# One builder at a time: a second caller waits here, and then finds everything done.
	exec 9>"$out/.lock"
	flock 9
	kubernetes=()
	for binary in $(missing); do
		[[ $binary == etcd ]] || kubernetes+=("k8s.io/kubernetes/cmd/$binary")
	done
	version=$(cd "$here/$module" && go list -m -f '{{.Version}}' k8s.io/kubernetes)
	minor=${version#v1.} minor=${minor%%.*}
	stamp="-X k8s.io/component-base/version.gitVersion=$version -X k8s.io/component-base/version.gitMajor=1 -X k8s.io/component-base/version.gitMinor=$minor"
	echo "building $(missing | paste -sd' ') ($version) from source, once (minutes on two cores)" >&2
	if missing | grep -qx etcd; then
		compile etcd go.etcd.io/etcd/server/v3
	fi
	((${#kubernetes[@]} == 0)) || compile "$module" "${kubernetes[@]}"
fi
echo "$out"
