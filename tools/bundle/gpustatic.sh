#!/bin/sh
# Builds static programs and tests for a machine that has a GPU and need not have Go, gcc or this
# source. They contain no loader and use the machine's.
#
# usage: gpustatic.sh DIR, in the module's root; then run DIR/static.sh on the other machine, from any folder

set -eu
dir=$1
go=${GO:-go}
limit=40 # MB in all

here=$(dirname "$0")
rm -rf "$dir"
mkdir -p "$dir/bin" "$dir/fixtures" "$dir/src/testdata"
out=$(cd "$dir" && pwd)

export CGO_ENABLED=0 GOOS=linux GOARCH=amd64
flags='-trimpath -ldflags=-s'
# shellcheck disable=SC2086 # words
{
	$go build $flags -tags puregpu_static -o "$out/bin/" ./tools/gpuinfo ./tools/gpubench ./runtime/examples/saxpy ./runtime/examples/pipeline \
		./runtime/examples/mlp ./runtime/examples/allreduce ./runtime/examples/serve
	$go test -c $flags -tags puregpu_static -o "$out/bin/cudadriver.test" ./runtime/driver/cudadriver
	$go test -c $flags -tags puregpu_static -o "$out/bin/dl.test" ./runtime/dl
	$go build $flags -o "$out/bin/gpubench-dynamic" ./tools/gpubench
}
for f in "$out"/bin/*; do
	case $f in
	*-dynamic) continue ;;
	esac
	if readelf -lW "$f" | grep -qE '^ *(INTERP|DYNAMIC) '; then
		echo "gpu-static: $f is not static" >&2
		exit 1
	fi
done

# A package's tests run in its folder, with its testdata. go.mod marks the root, which has the
# sources of fake libraries.
cp go.mod "$out/src/"
cp -R testdata/fakes "$out/src/testdata/"
for p in runtime/dl runtime/driver/cudadriver; do
	mkdir -p "$out/src/$p"
	cp -R "$p/testdata" "$out/src/$p/"
done
gcc -O2 -fPIC -shared -o "$out/bin/libcloop.so" tools/gpubench/testdata/cloop.c
tools/bundle/fixtures.sh "$out/fixtures" "$out/bin/dl.test" runtime/dl

cp "$here/static.sh" "$here/items.sh" "$out/"
chmod +x "$out/static.sh"
tar -C "$out" -czf "$out/files.tar.gz" bin fixtures src
rm -rf "$out/bin" "$out/fixtures" "$out/src"
size=$(du -sm "$out" | cut -f 1)
echo "$dir: $size MB; run $dir/static.sh on a machine with a GPU"
if [ "$size" -ge $limit ]; then
	echo "gpu-static: $size MB is more than the limit of $limit" >&2
	exit 1
fi
