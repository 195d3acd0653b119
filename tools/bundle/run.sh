#!/bin/sh
# Runs the programs and tests of this bundle on the GPU of this machine. The output of each comes
# first, then a table. The exit status is 1 if one failed. It needs a GPU; with -optional a missing
# GPU or program is no failure. If OUT names a folder, ctxprobe writes its table there and gpubench
# draws a picture.
#
# usage: run.sh [-optional]

set -u
here=$(cd "$(dirname "$0")" && pwd)
require=-require-gpu
export PUREGPU_TEST_REQUIRE_GPU=1 PUREGPU_DRIVER=cuda
if [ "${1:-}" = -optional ]; then
	require=
	unset PUREGPU_TEST_REQUIRE_GPU PUREGPU_DRIVER
fi
. "$here/items.sh"
[ -z "${SOAK:-}" ] || limit=1200 # how long memory is allocated and deallocated at random: "10m"

hip_libraries

item gpuinfo "$here" "$here/bin/gpuinfo"
for p in $examples; do
	case $p in
	saxpy | ncclrank) # know no other driver
		if [ -z "$require" ] && ! "$here/bin/gpuinfo" | grep -q '^CUDA device '; then
			item $p "$here" echo "$p: not run: there is no GPU"
			continue
		fi
		;;
	esac
	# shellcheck disable=SC2046 # a word each
	item $p "$here" "$here/bin/$p" $(arguments $p)
done
if [ -n "$require" ]; then
	item ctxprobe "$here" "$here/bin/ctxprobe" ${OUT:+-json "$OUT/ctxprobe.json" -text "$OUT/ctxprobe.txt"}
fi
if [ -n "$require" ] && [ -x "$here/bin/gpubench" ]; then
	item gpubench "$here" "$here/bin/gpubench" -c "$here/bin/libcloop.so" ${hip:+-hip "$hip"} ${OUT:+-svg "$OUT/collectives.svg"}
fi
item cublas "$here" "$here/bin/cublas" $require # in a process of PyTorch, too
item math "$here" "$here/bin/math" $require
for p in cuda nccl nvml nvrtc nvjitlink internal/toolkittest internal/mathtest hip hiprtc runtime/trace/cuptitrace runtime/driver/cudadriver runtime/driver/hipdriver; do
	test="$here/bin/$(basename $p).test"
	[ -x "$test" ] || continue
	case $p in
	runtime/driver/hipdriver) item hipdriver "$here/src/$p" "$test" -test.v -test.skip '^TestLibrary' ;; # see below
	runtime/driver/cudadriver)
		item $p "$here/src/$p" env NCCL_NVLS_ENABLE=0 "$test" -test.v -test.timeout 20m -test.skip '^TestGPUSharing' ${SOAK:+-cudadriver.soak "$SOAK"}
		item sharing "$here/src/$p" "$test" -test.v -test.run '^TestGPUSharing' # memory and events with other processes: Go's, and Python's
		;;
	*) item $p "$here/src/$p" "$test" -test.v ;;
	esac
done

hip_suites

sanitize

finish
