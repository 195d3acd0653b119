#!/bin/sh
# Generates the bindings anew and fails if that changes, adds or removes a file: the tables and the generator are then
# ahead of what is committed.
#
# usage: drift.sh, in the module's root

set -eu
go=${GO:-go}

# The list has a checksum and a name a line. Comparing two of them needs no git, and leaves uncommitted work alone.
list() {
	find . -path ./build -prune -o \( -name 'z*.go' -o -name 'zabi.*' -o -name '*.table.json' \) -type f -exec sha256sum {} + | sort -k 2
}

before=$(list)
$go generate ./...
(cd examples/cublas && $go generate ./...)
after=$(list)
if [ "$before" != "$after" ]; then
	tmp=$(mktemp -d)
	trap 'rm -rf "$tmp"' EXIT
	printf '%s\n' "$before" >"$tmp/before"
	printf '%s\n' "$after" >"$tmp/after"
	diff "$tmp/before" "$tmp/after" || true
	echo "drift: go generate changed the files above; commit what it wrote" >&2
	exit 1
fi
echo "drift: $(printf '%s\n' "$after" | wc -l) generated files are up to date"
