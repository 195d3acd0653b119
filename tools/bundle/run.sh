#!/bin/sh
# Runs the programs and tests of this bundle on the GPU of this machine. What each prints comes first, a table of them
# last. The exit status is 1 if one failed. A GPU is required; with -optional what is missing is no failure. Where OUT names a
# folder, ctxprobe writes its table there.
#
# usage: run.sh [-optional]

set -u
here=$(cd "$(dirname "$0")" && pwd)
require=-require-gpu
export PUREGPU_TEST_REQUIRE_GPU=1
if [ "${1:-}" = -optional ]; then
	require=
	unset PUREGPU_TEST_REQUIRE_GPU
fi
limit=300 # seconds each
[ -z "${SOAK:-}" ] || limit=1200 # how long memory is allocated and deallocated at random: "10m"

table=$(mktemp)
log=$(mktemp)
tmp=$(mktemp -d)
trap 'rm -rf "$table" "$log" "$tmp"' EXIT
failed=0
tar -C "$tmp" -xzf "$here/files.tar.gz" || exit
here=$tmp

# Without a compiler the tests take the libraries that were compiled beforehand.
command -v gcc >/dev/null 2>&1 || export PUREGPU_TEST_FIXTURES="$here/fixtures"

# item NAME FOLDER COMMAND... runs a command and adds a line to the table.
item() {
	name=$1 folder=$2
	shift 2
	echo "== $name"
	start=$(date +%s)
	if (cd "$folder" && timeout $limit "$@") >"$log" 2>&1; then
		result=ok
		if grep -q ': not run: ' "$log"; then result=missing; fi
	else
		result="FAILED ($?)"
		failed=1
	fi
	cat "$log"
	skipped=$(grep -c '^ *--- SKIP' "$log")
	passed=$(grep -c '^ *--- PASS' "$log")
	case $result in
	missing) note=$(grep ': not run: ' "$log" | head -n 1) ;;
	*) note=$(grep -v '^[[:space:]]*$' "$log" | tail -n 1) ;;
	esac
	[ "$passed$skipped" = 00 ] || note="$passed passed, $skipped skipped"
	printf '%-11s %-12s %4s s  %.100s\n' "$name" "$result" "$(($(date +%s) - start))" "$note" >>"$table"
}

item gpuinfo "$here" "$here/bin/gpuinfo"
item saxpy "$here" "$here/bin/saxpy" $require
item allreduce "$here" "$here/bin/allreduce" $require
for p in pipeline mlp; do
	if [ -n "$require" ]; then
		item $p "$here" "$here/bin/$p" -driver cuda
	else
		item $p "$here" "$here/bin/$p"
	fi
done
if [ -n "$require" ]; then
	item ctxprobe "$here" "$here/bin/ctxprobe" ${OUT:+-json "$OUT/ctxprobe.json" -text "$OUT/ctxprobe.txt"}
fi
if [ -n "$require" ] && [ -x "$here/bin/gpubench" ]; then
	item gpubench "$here" "$here/bin/gpubench" -c "$here/bin/libcloop.so"
fi
for p in cuda nccl hip gen runtime/dl runtime/driver/cudadriver runtime/driver/hipdriver; do
	test="$here/bin/$(basename $p).test"
	[ -x "$test" ] || continue
	case $p in
	gen) item $p "$here/src/$p" "$test" -test.v -test.run Echo ;;
	runtime/dl) item $p "$here/src/$p" "$test" -test.v -test.skip NoGPUStatic ;; # which builds a program from source
	runtime/driver/hipdriver) item hipdriver "$here/src/$p" "$test" -test.v -test.skip '^TestLibrary' ;; # see below
	runtime/driver/cudadriver) item $p "$here/src/$p" "$test" -test.v -test.timeout 20m ${SOAK:+-cudadriver.soak "$SOAK"} ;;
	*) item $p "$here/src/$p" "$test" -test.v ;;
	esac
done

# HIP on top of CUDA, compiled here where that is possible, and the HIP driver and the runtime on top of that.
hip="$here/bin/libhipovercuda.so"
if command -v gcc >/dev/null 2>&1; then
	hip="$tmp/libhipovercuda.so"
	item hipovercuda "$here/src/testdata/hipovercuda" sh -c 'gcc "$@" && gcc --version | head -n 1' \
		sh -O2 -Wall -fPIC -shared -o "$hip" hip_over_cuda.c -ldl -lpthread
fi
if [ -x "$here/bin/hipdriver.test" ] && [ -e "$hip" ]; then
	item hip-on-cuda "$here/src/runtime/driver/hipdriver" env PUREGPU_TEST_HIP_LIBRARY="$hip" "$here/bin/hipdriver.test" -test.v -test.run '^TestLibrary'
fi

echo "== table"
cat "$table"
exit $failed
