#!/bin/sh
# Runs a program under compute-sanitizer's memcheck. The exit status is the program's, or 9 if a
# kernel's access was wrong or a call of CUDA failed. Failed calls of NCCL itself do not count: it
# asks for kernels that were not built for this GPU, and for access twice. If the tool's summary
# says that it did not watch the program, the run counts as not run.
#
# usage: memcheck.sh COMPUTE-SANITIZER PROGRAM [ARGUMENT...]

log=$(mktemp)
trap 'rm -f "$log"' EXIT
tool=$1
shift
NCCL_NVLS_ENABLE=0 "$tool" --tool memcheck --print-limit 100000 --error-exitcode 9 "$@" >"$log" 2>&1
status=$?
if ! grep -q '^=* ERROR SUMMARY: ' "$log"; then
	cat "$log"
	echo "memcheck: not run: the tool watched nothing: $(grep '^===* ' "$log" | tail -n 1)"
	exit 0
fi
if [ $status -eq 9 ]; then
	all=$(sed -n 's/^=* *ERROR SUMMARY: \([0-9]*\) errors*$/\1/p' "$log" | tail -n 1)
	nccl=$(awk '/Program hit/ { n += mine; mine = 0; hit = 1 } /^=+ *$/ { hit = 0 } hit && /nccl/ { mine = 1 } END { print n + mine }' "$log")
	if [ "$all" = "$nccl" ]; then
		grep -v '^=========' "$log"
		echo "$all errors, all in NCCL's own calls"
		exit 0
	fi
fi
cat "$log"
exit $status
