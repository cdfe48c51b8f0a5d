#!/usr/bin/env bash
# Keep the source of the manager at a commit, or at the tag of a release, for test/upgrade, and print the file's name: what
# main.go is compiled from, the CRD and the manager's role. It is packed so that the same commit gives the same bytes.
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
tar -c -C "$tree" --sort=name --mtime=@0 --owner=0 --group=0 --numeric-owner --mode=go+u,go-w \
	go.mod go.sum config/crd/bases config/rbac/manager $sources | gzip -9n >"$2/$version.tar.gz"
echo "$2/$version.tar.gz"
