#!/bin/sh
# Runs programs and tests for several GPUs, on all GPUs of this machine: at least two, better four.
# The output of each item comes first, then a table. The exit status is 1 if an item failed, or if
# there is only one GPU. If OUT names a folder, ctxprobe writes its table there and gpubench draws a
# picture.
#
# usage: four.sh

set -u
here=$(cd "$(dirname "$0")" && pwd)
export PUREGPU_TEST_REQUIRE_GPU=1
export NCCL_NVLS_ENABLE=0 # NVLink's multicast is not to be used on every machine
export PUREGPU_DRIVER=cuda
. "$here/items.sh"

count=$("$here/bin/gpuinfo" | grep -c '^CUDA device ')
if [ "$count" -lt 2 ]; then
	echo "four.sh: there are $count GPUs; at least two are needed" >&2
	exit 1
fi
echo "== $count GPUs"

find_nccl

# Which copies of two devices' memory the driver makes. All trials of ctxprobe would take minutes.
item ctxprobe "$here" "$here/bin/ctxprobe" -jobs 16 -only "^cuMemcpy" ${OUT:+-json "$OUT/ctxprobe.json" -text "$OUT/ctxprobe.txt"}

# One process with all devices: the tests of the conformance suite for several devices, and every
# collective over 1, 2, and so on to all. From a group with few tests of several devices only these
# run.
test="$here/bin/cudadriver.test"
suite="$here/src/runtime/driver/cudadriver"
for group in devices groups threads current_device facts native_work values_in_memory collectives \
	'native_streams_and_events/^B16[46]_' 'pools/^(B82|B130)_' 'command_buffers/^B82_invalid_modes'; do
	case $group in
	*/*) item "${group%%/*}" "$suite" "$test" -test.v -test.run "^TestGPUConformance\$/^${group%%/*}\$/${group#*/}" ;;
	*) item $group "$suite" "$test" -test.v -test.run "^TestGPUConformance\$/^$group\$" ;;
	esac
done

# Each device's facts compared with nvidia-smi, and its links.
item elsewhere "$suite" "$test" -test.v -test.run '^TestGPUFactsElsewhere$'

# The same runtime over HIP on top of CUDA.
hip_libraries
hip_suites

# One process a device; the processes find each other through files.
item allreduce "$here" sh -c '
	count=$1 program=$2 folder=$3 rank=0 pids= status=0
	while [ $rank -lt $count ]; do
		"$program" -rank $rank -count $count -id-folder "$folder" &
		pids="$pids $!" rank=$((rank + 1))
	done
	for pid in $pids; do wait $pid || status=1; done
	exit $status
' sh "$count" "$here/bin/allreduce" "$tmp/ranks"

# The same with torchrun's variables, and under torchrun itself if PyTorch is installed: the
# processes find each other over TCP.
item variables "$here" sh -c '
	export WORLD_SIZE=$1 MASTER_ADDR=127.0.0.1 MASTER_PORT=29600
	program=$2 rank=0 pids= status=0
	while [ $rank -lt $WORLD_SIZE ]; do
		RANK=$rank LOCAL_RANK=$rank "$program" &
		pids="$pids $!" rank=$((rank + 1))
	done
	for pid in $pids; do wait $pid || status=1; done
	exit $status
' sh "$count" "$here/bin/allreduce"
if python3 -c 'import torch.distributed.run' 2>/dev/null; then
	item torchrun "$here" python3 -m torch.distributed.run --nproc-per-node "$count" --master-addr 127.0.0.1 --master-port 29700 \
		--no-python "$here/bin/allreduce"
else
	item torchrun "$here" echo "four.sh: not run: there is no torchrun"
fi

# Tests that start processes themselves, that kill one, and with a process of a Python program. The
# bundle's tests have these names.
for kind in Processes KilledRank ForeignRank; do
	if "$test" -test.list "$kind" | grep -q '^Test'; then
		item "$kind" "$suite" "$test" -test.v -test.run "$kind"
	else
		item "$kind" "$suite" echo "four.sh: not run: no test of cudadriver has $kind in its name"
	fi
done

if [ -x "$here/bin/gpubench" ]; then
	item gpubench "$here" "$here/bin/gpubench" -run '^(collectives|devices)/' ${OUT:+-svg "$OUT/collectives.svg"}
fi
finish
