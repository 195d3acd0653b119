#!/bin/sh
# Builds programs and tests for a machine that has a GPU and need not have Go, gcc or this source.
#
# usage: gpu.sh DIR, in the module's root; then run DIR/run.sh on the other machine, from any folder, DIR/four.sh on one that has
# several GPUs, or DIR/sanitize.sh

set -eu
dir=$1
go=${GO:-go}
limit=63 # MB in all

here=$(dirname "$0")
rm -rf "$dir"
mkdir -p "$dir/bin" "$dir/fixtures" "$dir/src"
out=$(cd "$dir" && pwd)

export CGO_ENABLED=0 GOOS=linux GOARCH="${GOARCH:-$($go env GOARCH)}"
for p in ./tools/gpuinfo ./tools/ctxprobe $($go list -f '{{if eq .Name "main"}}{{.ImportPath}}{{end}}' ./runtime/examples/...); do
	$go build -trimpath -ldflags='-s -w' -o "$out/bin/" "$p"
done

$go build -trimpath -ldflags='-s -w' -o "$out/bin/" ./examples/cublas ./examples/math

# Calls timed against C.
if command -v gcc >/dev/null && [ "$GOARCH" = "$($go env GOHOSTARCH)" ]; then
	$go build -trimpath -ldflags='-s -w' -o "$out/bin/" ./tools/gpubench
	gcc -O2 -fPIC -shared -o "$out/bin/libcloop.so" tools/gpubench/testdata/cloop.c -lpthread
fi

# A package's tests run in its folder, with its testdata. go.mod marks the root, which has the
# sources of fake libraries.
cp go.mod "$out/src/"
mkdir -p "$out/src/testdata"
cp -R testdata/fakes testdata/hipovercuda "$out/src/testdata/"
for p in hip runtime/driver runtime/driver/hipdriver; do # a test reads their source
	mkdir -p "$out/src/$p"
	cp $p/*.go "$out/src/$p/"
done
for p in cuda nccl nvml nvrtc nvjitlink internal/toolkittest internal/mathtest hip hiprtc runtime/trace/cuptitrace runtime/driver/cudadriver runtime/driver/hipdriver; do
	name=$(basename $p)
	$go test -c -trimpath -ldflags='-s -w' -o "$out/bin/$name.test" "./$p"
	if [ -e "$out/bin/$name.test" ]; then
		mkdir -p "$out/src/$p"
		if [ -d "$p/testdata" ]; then
			cp -R "$p/testdata" "$out/src/$p/"
		fi
	fi
done

# HIP on top of CUDA, to test the HIP driver on an NVIDIA GPU. The other machine compiles it if it
# can.
if command -v gcc >/dev/null && [ "$GOARCH" = "$($go env GOHOSTARCH)" ]; then
	gcc -O2 -fPIC -shared -DSTREAM_DEVICE -o "$out/bin/libhipovercuda.so" testdata/hipovercuda/hip_over_cuda.c -ldl -lpthread
	gcc -O2 -fPIC -shared -o "$out/bin/libhipstrict.so" testdata/hipovercuda/hip_over_cuda.c -ldl -lpthread
fi

cp "$here/run.sh" "$here/four.sh" "$here/sanitize.sh" "$here/items.sh" "$out/"
chmod +x "$out/run.sh" "$out/four.sh" "$out/sanitize.sh"

cp "$here/memcheck.sh" "$here/watch.sh" "$out/bin/"

# One archive, which run.sh unpacks: it shrinks Go programs to a third.
ls "$out/bin"
tar -C "$out" -czf "$out/files.tar.gz" bin fixtures src
rm -rf "$out/bin" "$out/fixtures" "$out/src"
size=$(du -sm "$out" | cut -f 1)
echo "$dir: $size MB; run $dir/run.sh on a machine with a GPU"
if [ "$size" -ge $limit ]; then
	echo "gpu-bundle: $size MB is more than the limit of $limit" >&2
	exit 1
fi
