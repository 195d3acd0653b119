# The common part of run.sh, four.sh and sanitize.sh. It unpacks the bundle in $here, which from
# then on is the folder with bin, fixtures and src.

limit=300 # seconds each

table=$(mktemp)
skips=$(mktemp)
log=$(mktemp)
tmp=$(mktemp -d)
trap 'rm -rf "$table" "$skips" "$log" "$tmp"' EXIT
failed=0
tar -C "$tmp" -xzf "$here/files.tar.gz" || exit
here=$tmp

# Without a compiler the tests use compiled libraries of the bundle.
command -v gcc >/dev/null 2>&1 || export PUREGPU_TEST_FIXTURES="$here/fixtures"

# item NAME FOLDER COMMAND... runs a command and adds a line to the table: ok, FAILED, or missing if
# it printed "...: not run: why". A test run that matches no test counts as FAILED. Skipped tests
# are listed after the table.
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
	if grep -q 'warning: no tests to run' "$log"; then
		result='FAILED (none)'
		failed=1
	fi
	skipped_tests "$name" >>"$skips"
	skipped=$(grep -c '^ *--- SKIP' "$log")
	passed=$(grep -c '^ *--- PASS' "$log")
	case $result in
	missing) note=$(grep ': not run: ' "$log" | head -n 1) ;;
	*) note=$(grep -v '^[[:space:]]*$' "$log" | tail -n 1) ;;
	esac
	[ "$passed$skipped" = 00 ] || note="$passed passed, $skipped skipped"
	printf '%-18s %-12s %4s s  %.100s\n' "$name" "$result" "$(($(date +%s) - start))" "$note" >>"$table"
}

# skipped_tests ITEM prints a line for each skipped test of the log: its name and its last log line,
# which is the reason.
skipped_tests() {
	awk -v item="$1" '
		/^=== (RUN|NAME|CONT) / { test = $3 }
		/^ +[A-Za-z0-9_]+\.go:[0-9]+: / { why = $0; sub(/^ +[^ ]+ /, "", why); last[test] = why }
		/^ *--- SKIP: / { printf "%s: %s: %.150s\n", item, $3, last[$3] }
	' "$log"
}

# find_nccl lets programs find the NCCL that came with PyTorch, outside the usual folders.
find_nccl() {
	if [ -z "${PUREGPU_NCCL_LIBRARY:-}" ] && ! ldconfig -p 2>/dev/null | grep -q 'libnccl\.so\.2'; then
		nccl=$(python3 -c 'import nvidia.nccl; print(list(nvidia.nccl.__path__)[0] + "/lib/libnccl.so.2")' 2>/dev/null)
		[ ! -e "$nccl" ] || export PUREGPU_NCCL_LIBRARY="$nccl"
	fi
}

# hip_libraries sets hip and strict to HIP on top of CUDA, compiled here if possible. hip takes
# devices from streams, as HIP does; strict does not, as HIP may have done once. hip is empty if
# there is none.
hip_libraries() {
	hip="$here/bin/libhipovercuda.so" strict="$here/bin/libhipstrict.so"
	if command -v gcc >/dev/null 2>&1; then
		hip="$tmp/libhipovercuda.so" strict="$tmp/libhipstrict.so"
		item hipovercuda "$here/src/testdata/hipovercuda" sh -c '
			hip=$1 strict=$2
			shift 2
			gcc -DSTREAM_DEVICE -o "$hip" "$@" && gcc -o "$strict" "$@" && gcc --version | head -n 1
		' sh "$hip" "$strict" -O2 -Wall -fPIC -shared hip_over_cuda.c -ldl -lpthread
	fi
	[ -e "$hip" ] || hip=
}

# hip_suites tests the HIP driver, and the runtime on it, over both libraries, and over the first
# one with its memory pools.
hip_suites() {
	[ -x "$here/bin/hipdriver.test" ] && [ -n "$hip" ] || return 0
	for lib in "$hip" "$strict"; do
		name=hip-on-cuda
		[ "$lib" = "$hip" ] || name=hip-strict
		item $name "$here/src/runtime/driver/hipdriver" env PUREGPU_TEST_HIP_LIBRARY="$lib" "$here/bin/hipdriver.test" -test.v -test.run '^TestLibrary'
	done
	item hip-pools "$here/src/runtime/driver/hipdriver" env PUREGPU_TEST_HIP_LIBRARY="$hip" "$here/bin/hipdriver.test" -test.v -test.run '^TestNativePools'
}

# examples are the example programs, in display order. They use the driver that PUREGPU_DRIVER
# names.
examples="saxpy ncclrank first compile pipeline mlp allreduce serve"

# arguments prints the arguments of an example.
arguments() {
	case $1 in
	serve) echo -selftest ;;
	esac
}

# sanitized prints the tests of the CUDA driver to run under a tool of compute-sanitizer: kernels
# launched in every way, by the runtime and by other code. racecheck makes a kernel a hundred times
# slower. It and synccheck run the tests whose threads wait for each other, or share memory of a
# block or a cluster. initcheck follows every byte of device memory and runs a few tests that launch
# kernels and move memory in one way each.
sanitized() {
	case $1 in
	initcheck) echo '^TestGPU(Params|Graph|Capture)$' ;;
	memcheck) echo '^TestGPU(Params|Cluster|LaunchAttrs|LaunchEvents|TensorMap|Priorities|Capture|CuBLAS.*|Adopt.*|EventsOfOthers|Value.*|Scratch.*|Compiled.*)$' ;;
	*) echo '^TestGPU(Cluster|LaunchAttrs|TensorMap|CuBLAS.*|Compiled.*)$' ;;
	esac
}

# sanitized_groups prints the groups of the conformance suite to run.
sanitized_groups() {
	case $1 in
	memcheck) echo '^TestGPUConformance$/^(launches|native_work|values_in_memory|native_streams_and_events|scratch_memory)$' ;;
	initcheck) echo '^TestGPUConformance$/^(transfers|code|native_work|scratch_memory)$/^(B101_fill,_copy,_fill|B107_saxpy|B155_native_work_on_memory_of_pools,_in_queues_and_in_streams|B176_each_nesting_takes_scratch_memory_from_the_outer_recording)$' ;;
	*) echo '^TestGPUConformance$/^launches$' ;;
	esac
}

# sanitized_limit prints the time limit of each in seconds.
sanitized_limit() {
	case $1 in
	initcheck) echo 150 ;;
	*) echo $limit ;;
	esac
}

# find_sanitizer sets tool to compute-sanitizer, and refused to the reason why it does not work
# here, or to nothing. COMPUTE_SANITIZER names it if it is not in its usual place.
find_sanitizer() {
	tool=${COMPUTE_SANITIZER:-} refused=
	for t in "$(command -v compute-sanitizer)" /usr/local/cuda/bin/compute-sanitizer; do
		[ -n "$tool" ] || [ ! -x "$t" ] || tool=$t
	done
	if [ -z "$tool" ]; then
		refused="there is no compute-sanitizer"
		return
	fi
	timeout $limit "$tool" --tool memcheck "$here/bin/gpuinfo" >"$tmp/memcheck" 2>&1
	if ! grep -q 'ERROR SUMMARY' "$tmp/memcheck"; then
		refused="$tool does not work here: $(grep '^=' "$tmp/memcheck" | tail -n 1)"
	fi
}

# sanitize runs gpuinfo and the examples under compute-sanitizer's memcheck. A wrong access of a
# kernel is an error, and so is each failed CUDA call.
sanitize() {
	find_sanitizer
	for p in gpuinfo $examples; do
		if [ -n "$refused" ]; then
			item "memcheck $p" "$here" echo "memcheck: not run: $refused"
			continue
		fi
		# shellcheck disable=SC2046 # a word each
		item "memcheck $p" "$here" "$here/bin/memcheck.sh" "$tool" "$here/bin/$p" $(arguments $p)
	done
}

# sanitize_tests TOOL... runs short tests under tools of compute-sanitizer. They start no Python
# program.
sanitize_tests() {
	find_sanitizer
	usual=$limit
	for kind in "$@"; do
		limit=$usual
		limit=$(sanitized_limit "$kind")
		if [ -n "$refused" ]; then
			item "$kind tests" "$here" echo "$kind: not run: $refused"
			continue
		fi
		for tests in "$(sanitized $kind)" "$(sanitized_groups $kind)"; do
			name="$kind tests"
			[ "$tests" = "$(sanitized $kind)" ] || name="$kind suite"
			item "$name" "$here/src/runtime/driver/cudadriver" "$here/bin/watch.sh" "$tool" $kind \
				"$here/bin/cudadriver.test" -test.v -test.short -test.run "$tests"
		done
		if [ $kind = memcheck ]; then # two processes
			item "memcheck sharing" "$here/src/runtime/driver/cudadriver" "$here/bin/watch.sh" "$tool" memcheck \
				"$here/bin/cudadriver.test" -test.v -test.run '^TestGPUPoolSharing$'
		fi
	done
	limit=$usual
}

# finish prints the table and the skipped tests, and ends.
finish() {
	echo "== table"
	cat "$table"
	if [ -s "$skips" ]; then
		echo "== skipped"
		cat "$skips"
	fi
	exit $failed
}
