#!/bin/sh
# Proves the recipes in the folder deploy. It follows the container files in root folders made from
# Debian packages, starts programs there, and decodes the Kubernetes manifest. It needs root and gcc
# on linux/amd64, and downloads 4 MB of packages and, the first time, Kubernetes' types.
#
# usage: deploy.sh DIR, in the module's root; DIR keeps fetched files

set -eu
go=${GO:-go}
here=$(cd "$(dirname "$0")" && pwd)

fail() {
	echo "deploy: $*" >&2
	exit 1
}

[ "$(uname -sm)" = "Linux x86_64" ] || fail "not run: the images of the recipes are for linux/amd64"
[ "$(id -u)" = 0 ] || fail "not run: only root may change the root folder"
mkdir -p "$1"
dir=$(cd "$1" && pwd)

. "$here/debian.sh"

fetch bookworm libc6 busybox-static musl
cd deploy/deploytest
$go vet ./...
PUREGPU_TEST_DEBIAN="$dir/bookworm" CGO_ENABLED=0 $go test -count=1 -timeout 10m ./...
