#!/bin/sh
# Runs tests under a tool of compute-sanitizer: memcheck, initcheck, synccheck or racecheck. Calls
# of CUDA may fail in tests, but kernels must make no error. The exit status is the tests', or 9 if
# the tool found an error. If the tool's summary says that it did not watch them, they count as not
# run, whatever their result.
#
# usage: watch.sh COMPUTE-SANITIZER TOOL PROGRAM [ARGUMENT...]

log=$(mktemp)
trap 'rm -f "$log"' EXIT
trap 'cat "$log"; exit 124' TERM # the time is over
tool=$1 kind=$2
shift 2
calls=
[ "$kind" != memcheck ] || calls='--report-api-errors no'
# shellcheck disable=SC2086 # two words, or none
NCCL_NVLS_ENABLE=0 "$tool" --tool "$kind" $calls --error-exitcode 9 "$@" >"$log" 2>&1
status=$?
cat "$log"
if ! grep -q '^==* .*SUMMARY: ' "$log"; then
	echo "$kind: not run: the tool watched nothing: $(grep '^===* ' "$log" | grep -v '^=== ' | tail -n 1)"
	exit 0
fi
exit $status
