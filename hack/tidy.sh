#!/usr/bin/env bash
# Tidies every module file of the project.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# go.tools.mod lists tools only. Where it lies, go mod tidy would take the whole project's imports for its own.
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cp go.tools.mod "$scratch/go.mod"
cp go.tools.sum "$scratch/go.sum"
(cd "$scratch" && go mod tidy)
cp "$scratch/go.mod" go.tools.mod
cp "$scratch/go.sum" go.tools.sum

git ls-files --cached --others --exclude-standard -- go.mod '*/go.mod' | while read -r module; do
	(cd "$(dirname "$module")" && go mod tidy)
done
