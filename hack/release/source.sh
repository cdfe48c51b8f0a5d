#!/usr/bin/env bash
# Keep the source of the manager at a commit, or at the tag of a release, for test/upgrade, and print the file's name: what
# main.go is compiled from, the CRD, the manager's role, and the sets that the tests of that commit store. It is packed so that
# the same commit gives the same bytes.
set -euo pipefail
[[ $# == 2 ]] || { echo "usage: $0 <tag or commit> <folder>" >&2; exit 1; }
commit=$(git rev-parse --verify "$1^{commit}")
# A commit without a tag has the name that Go gives it.
version=$(git describe --tags --exact-match "$commit" 2>/dev/null ||
	TZ=UTC git show -s --date=format-local:%Y%m%d%H%M%S --abbrev=12 --format=v0.0.0-%cd-%h "$commit")
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
git archive "$commit" | tar -x -C "$tree"
sources=$(cd "$tree" && go list -deps -f '{{if and .Module .Module.Main}}{{$dir := .Dir}}{{range .GoFiles}}{{$dir}}/{{.}}
{{end}}{{range .EmbedFiles}}{{$dir}}/{{.}}
{{end}}{{end}}' . | sed "/^$/d; s,^$tree/,,")
KUBEBUILDER_ASSETS=$("$(dirname "$0")/../controlplane/build.sh")
export KUBEBUILDER_ASSETS
ROLLSET_STORED=1 go -C "$tree" test -count=1 -v ./test/admission ./internal/testing/sim \
	-run 'TestManifestsOfOtherKindsAreAccepted|TestEdgesAreAccepted|TestGolden' >"$tree/test.log" || { tail -n 50 "$tree/test.log" >&2; exit 1; }
sed -n 's/^STORED //p' "$tree/test.log" >"$tree/stored.jsonl"
# Times differ between runs, and so does the order.
sed -Ei 's/"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:]{8}Z"/"2026-01-02T15:04:05Z"/g' "$tree/stored.jsonl"
LC_ALL=C sort -uo "$tree/stored.jsonl" "$tree/stored.jsonl"
tar -c -C "$tree" --sort=name --mtime=@0 --owner=0 --group=0 --numeric-owner --mode=go+u,go-w \
	go.mod go.sum config/crd/bases config/rbac/manager stored.jsonl $sources | gzip -9n >"$2/$version.tar.gz"
echo "$2/$version.tar.gz"
