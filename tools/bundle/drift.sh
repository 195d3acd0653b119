#!/bin/sh
# Generates the bindings and the Go functions of kernels, and fails if that changes, adds or removes
# a file. Then the tables, the kernels or the generators are ahead of the committed files. Unchanged
# kernels are not compiled.
#
# usage: drift.sh, in the module's root

set -eu
go=${GO:-go}

# The list has a checksum and a name a line. Comparing two lists needs no git and leaves uncommitted
# work alone.
list() {
	find . -path ./build -prune -o \( -name 'z*.go' -o -name 'zabi.*' -o -name '*.table.json' -o -name 'z*.ptx' -o -name 'z*.cubin' -o -name 'z*.fatbin' -o -name 'z*.hsaco' \) -type f -exec sha256sum {} + | sort -k 2
}

before=$(list)
said=$($go generate ./...)
[ -z "$said" ] || printf '%s\n' "$said"
after=$(list)
case $said in
*'What is there stays'*)
	echo "drift: a kernel has changed and is not compiled: run make generate on a machine with its compiler, and commit the files" >&2
	exit 1
	;;
esac
if [ "$before" != "$after" ]; then
	tmp=$(mktemp -d)
	trap 'rm -rf "$tmp"' EXIT
	printf '%s\n' "$before" >"$tmp/before"
	printf '%s\n' "$after" >"$tmp/after"
	diff "$tmp/before" "$tmp/after" || true
	echo "drift: go generate changed the files above; commit them" >&2
	exit 1
fi
echo "drift: $(printf '%s\n' "$after" | wc -l) generated files are up to date"
