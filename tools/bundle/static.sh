#!/bin/sh
# Runs the static programs and tests of this bundle on the GPU of this machine, in less than five
# minutes, or the named items. The output of each comes first, then a table. The exit status is 1 if
# one failed, or if there is no GPU.
#
# Some items run only by name: sharing (memory shared with other processes), killed (one of several
# processes is killed), and soak. For soak, SOAK is the time of random allocations and frees
# ("10m"), and STRESS the time of C calls under disturbances ("20s").
#
# usage: static.sh [ITEM...]

set -u
here=$(cd "$(dirname "$0")" && pwd)
export PUREGPU_TEST_REQUIRE_GPU=1 PUREGPU_DRIVER=cuda
export NCCL_NVLS_ENABLE=0 # NVLink's multicast is not to be used on every machine
. "$here/items.sh"
find_nccl
items=${*:-empty gpuinfo saxpy pipeline mlp serve interrupt calls dl stress cudadriver allreduce}

# chosen NAME... is item NAME..., if it is among the items to run.
chosen() {
	case " $items " in
	*" $1 "*) item "$@" ;;
	esac
}

# It starts in an empty folder and says what is missing.
chosen empty "$here" sh -c '
	mkdir "$2" && cp "$1" "$2/gpuinfo" || exit
	out=$(chroot "$2" /gpuinfo 2>&1)
	case $out in
	*"no glibc"*) echo "gpuinfo starts in an empty folder" ;;
	*"perm"* | *"Perm"*) echo "empty: not run: $out" ;;
	*) echo "$out"; exit 1 ;;
	esac
' sh "$here/bin/gpuinfo" "$tmp/empty"

chosen gpuinfo "$here" "$here/bin/gpuinfo"
for p in saxpy pipeline mlp; do
	chosen $p "$here" "$here/bin/$p"
done
chosen serve "$here" "$here/bin/serve" -selftest

# Ctrl-C ends a program, unless the program handles it. The shell may have been started with the
# signal ignored.
chosen interrupt "$here" sh -c '
	interrupted="timeout --preserve-status -s INT -k 20 5 env --default-signal=INT"
	$interrupted "$1/gpubench" >/dev/null 2>&1
	status=$?
	[ $status = 130 ] || { echo "gpubench ended with status $status"; exit 1; }
	$interrupted "$1/serve" -addr localhost:0 || { echo "serve ended with status $?"; exit 1; }
	echo "gpubench ends by the signal, and serve by itself"
' sh "$here/bin"

# The cost of a call, compared in turns with a program that the system's loader has started. A
# missed goal relative to C is no error here, because both programs may miss it.
chosen calls "$here" sh -c '
	here=$1 files=
	mkdir "$2" && cd "$2" || exit
	for turn in 1 2 3 4 5; do
		for program in gpubench-dynamic gpubench; do
			"$here/bin/$program" -json -c "$here/bin/libcloop.so" calls >$turn-$program.json || [ $? = 1 ] || exit
			files="$files $turn-$program.json"
		done
	done
	"$here/bin/gpubench" -compare $files
' sh "$here" "$tmp/calls"

chosen dl "$here/src/runtime/dl" "$here/bin/dl.test" -test.v -test.skip 'Static$'
chosen stress "$here/src/runtime/dl" "$here/bin/dl.test" -test.v -test.run '^TestCLibraryStress$' -dl.stress "${STRESS:-20s}"

suite="$here/src/runtime/driver/cudadriver"
chosen cudadriver "$suite" "$here/bin/cudadriver.test" -test.v -test.skip '^TestGPUSharing|^TestGPUKilledRank'
chosen sharing "$suite" "$here/bin/cudadriver.test" -test.v -test.run '^TestGPUSharing'
chosen killed "$suite" "$here/bin/cudadriver.test" -test.v -test.run '^TestGPUKilledRank$'
limit=3600
chosen soak "$suite" "$here/bin/cudadriver.test" -test.v -test.timeout 60m -test.run '^TestGPUSoakPool$' -cudadriver.soak "${SOAK:-10m}"
limit=300

# One process a device; the processes find each other through files.
count=$("$here/bin/gpuinfo" | grep -c '^CUDA device ')
chosen allreduce "$here" sh -c '
	count=$1 program=$2 folder=$3 rank=0 pids= status=0
	while [ $rank -lt $count ]; do
		"$program" -rank $rank -count $count -id-folder "$folder" &
		pids="$pids $!" rank=$((rank + 1))
	done
	for pid in $pids; do wait $pid || status=1; done
	exit $status
' sh "$count" "$here/bin/allreduce" "$tmp/ranks"

finish
