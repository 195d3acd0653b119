#!/bin/sh
# Runs the static programs and tests of this bundle on the GPU of this machine. What each prints comes first, a table of them last. The exit
# status is 1 if one failed, or there is no GPU. SOAK says how long memory is allocated and deallocated at random ("10m"), and STRESS how long
# C is called while all that may disturb a call goes on ("60s").
#
# usage: static.sh

set -u
here=$(cd "$(dirname "$0")" && pwd)
export PUREGPU_TEST_REQUIRE_GPU=1 PUREGPU_DRIVER=cuda
export NCCL_NVLS_ENABLE=0 # NVLink's multicast is not to be used on every machine
. "$here/items.sh"
[ -z "${SOAK:-}" ] || limit=1200
find_nccl

# It starts where there is nothing, and says what is missing.
item empty "$here" sh -c '
	mkdir "$2" && cp "$1" "$2/gpuinfo" || exit
	out=$(chroot "$2" /gpuinfo 2>&1)
	case $out in
	*"no glibc"*) echo "gpuinfo starts in an empty folder" ;;
	*"perm"* | *"Perm"*) echo "empty: not run: $out" ;;
	*) echo "$out"; exit 1 ;;
	esac
' sh "$here/bin/gpuinfo" "$tmp/empty"

item gpuinfo "$here" "$here/bin/gpuinfo"
for p in saxpy pipeline mlp; do
	item $p "$here" "$here/bin/$p"
done
item serve "$here" "$here/bin/serve" -selftest

# What a call costs, beside a program that the system's loader has started.
for p in gpubench gpubench-dynamic gpubench gpubench-dynamic; do
	item $p "$here" "$here/bin/$p" -c "$here/bin/libcloop.so" calls
done

item dl "$here/src/runtime/dl" "$here/bin/dl.test" -test.v -test.skip 'Static$'
item stress "$here/src/runtime/dl" "$here/bin/dl.test" -test.v -test.run '^TestCLibraryStress$' -dl.stress "${STRESS:-30s}"

suite="$here/src/runtime/driver/cudadriver"
item cudadriver "$suite" "$here/bin/cudadriver.test" -test.v -test.timeout 20m -test.skip '^TestGPUSharing' ${SOAK:+-cudadriver.soak "$SOAK"}
item sharing "$suite" "$here/bin/cudadriver.test" -test.v -test.run '^TestGPUSharing'

# One process a device, which find each other through files.
count=$("$here/bin/gpuinfo" | grep -c '^CUDA device ')
item allreduce "$here" sh -c '
	count=$1 program=$2 folder=$3 rank=0 pids= status=0
	while [ $rank -lt $count ]; do
		"$program" -rank $rank -count $count -id-folder "$folder" &
		pids="$pids $!" rank=$((rank + 1))
	done
	for pid in $pids; do wait $pid || status=1; done
	exit $status
' sh "$count" "$here/bin/allreduce" "$tmp/ranks"

# A program that is interrupted ends, by the signal.
item interrupt "$here" sh -c '
	"$1" -c "$2" >/dev/null 2>&1 &
	pid=$!
	sleep 5 # it computes by then
	kill -INT $pid || exit
	wait $pid
	status=$?
	echo "gpubench ended with status $status"
	[ $status = 130 ] || [ $status = 2 ]
' sh "$here/bin/gpubench" "$here/bin/libcloop.so"

finish
