#!/usr/bin/env bash
# Tidies the module files of the project. With "code", it leaves out those that only pin programs: tidying them downloads the
# dependencies of the programs' own tests, which takes minutes. If such a file lacks a module, the program's build fails.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

files() { git ls-files --cached --others --exclude-standard -- "$@"; }
files go.mod '*/go.mod' | while read -r module; do
	(cd "$(dirname "$module")" && { [[ ${1-} == code && -z $(files '*.go') ]] || go mod tidy; })
done
[[ ${1-} != code ]] || exit 0

# go.tools.mod lists tools only. Where it lies, go mod tidy would take the whole project's imports for its own.
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cp go.tools.mod "$scratch/go.mod"
cp go.tools.sum "$scratch/go.sum"
(cd "$scratch" && go mod tidy)
cp "$scratch/go.mod" go.tools.mod
cp "$scratch/go.sum" go.tools.sum
