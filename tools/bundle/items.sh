# What run.sh, four.sh and sanitize.sh have in common: it unpacks the bundle in $here, which is from then on the folder with bin, fixtures
# and src.

limit=300 # seconds each

table=$(mktemp)
skips=$(mktemp)
log=$(mktemp)
tmp=$(mktemp -d)
trap 'rm -rf "$table" "$skips" "$log" "$tmp"' EXIT
failed=0
tar -C "$tmp" -xzf "$here/files.tar.gz" || exit
here=$tmp

# Without a compiler the tests take the libraries that were compiled beforehand.
command -v gcc >/dev/null 2>&1 || export PUREGPU_TEST_FIXTURES="$here/fixtures"

# item NAME FOLDER COMMAND... runs a command and adds a line to the table: ok, FAILED, or missing if it printed "...: not run: why". Tests of
# which none has the name that was asked for have failed. Those that were skipped are listed behind the table.
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

# skipped_tests ITEM prints a line for each test of the log that was skipped: its name, and the last that it logged, which is the reason.
skipped_tests() {
	awk -v item="$1" '
		/^=== (RUN|NAME|CONT) / { test = $3 }
		/^ +[A-Za-z0-9_]+\.go:[0-9]+: / { why = $0; sub(/^ +[^ ]+ /, "", why); last[test] = why }
		/^ *--- SKIP: / { printf "%s: %s: %.150s\n", item, $3, last[$3] }
	' "$log"
}

# find_nccl has programs find the NCCL that may have come with PyTorch, which keeps it to itself.
find_nccl() {
	if [ -z "${PUREGPU_NCCL_LIBRARY:-}" ] && ! ldconfig -p 2>/dev/null | grep -q 'libnccl\.so\.2'; then
		nccl=$(python3 -c 'import nvidia.nccl; print(list(nvidia.nccl.__path__)[0] + "/lib/libnccl.so.2")' 2>/dev/null)
		[ ! -e "$nccl" ] || export PUREGPU_NCCL_LIBRARY="$nccl"
	fi
}

# hip_libraries sets hip and strict to HIP on top of CUDA, compiled here where that is possible: as HIP takes devices from
# streams, and as it may have been once. hip is empty where there is none.
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

# hip_suites tests the HIP driver, and the runtime on it, over both libraries, and over the first one with its memory pools.
hip_suites() {
	[ -x "$here/bin/hipdriver.test" ] && [ -n "$hip" ] || return 0
	for lib in "$hip" "$strict"; do
		name=hip-on-cuda
		[ "$lib" = "$hip" ] || name=hip-strict
		item $name "$here/src/runtime/driver/hipdriver" env PUREGPU_TEST_HIP_LIBRARY="$lib" "$here/bin/hipdriver.test" -test.v -test.run '^TestLibrary'
	done
	item hip-pools "$here/src/runtime/driver/hipdriver" env PUREGPU_TEST_HIP_LIBRARY="$hip" "$here/bin/hipdriver.test" -test.v -test.run '^TestNativePools'
}

# examples are the example programs, in the order in which they are shown. They take the driver that PUREGPU_DRIVER names.
examples="saxpy ncclrank first compile pipeline mlp allreduce serve"

# arguments prints what an example is started with.
arguments() {
	case $1 in
	serve) echo -selftest ;;
	esac
}

# sanitized are the tests of the CUDA driver that compute-sanitizer watches, by tool: kernels launched in every way, and by others than the
# runtime. For racecheck, which takes a kernel a hundred times as long, and synccheck there are those whose threads wait for each other, or
# share memory of a block or a cluster. For initcheck, which follows every byte of the device's memory, there are a few, which launch kernels and move
# memory in one way each.
sanitized() {
	case $1 in
	initcheck) echo '^TestGPU(Params|Graph|Capture)$' ;;
	memcheck) echo '^TestGPU(Params|Cluster|LaunchAttrs|LaunchEvents|TensorMap|Priorities|Capture|CuBLAS.*|Adopt.*|EventsOfOthers|Value.*|Scratch.*|Compiled.*)$' ;;
	*) echo '^TestGPU(Cluster|LaunchAttrs|TensorMap|CuBLAS.*|Compiled.*)$' ;;
	esac
}

# sanitized_groups are the groups of the conformance suite that it watches.
sanitized_groups() {
	case $1 in
	memcheck) echo '^TestGPUConformance$/^(launches|native_work|values_in_memory|native_streams_and_events|scratch_memory)$' ;;
	initcheck) echo '^TestGPUConformance$/^(transfers|code|native_work|scratch_memory)$/^(B101_fill,_copy,_fill|B107_saxpy|B155_native_work_on_memory_of_pools,_in_queues_and_in_streams|B176_each_nesting_takes_scratch_memory_from_the_outer_recording)$' ;;
	*) echo '^TestGPUConformance$/^launches$' ;;
	esac
}

# sanitized_limit is how many seconds a tool has for each.
sanitized_limit() {
	case $1 in
	initcheck) echo 150 ;;
	*) echo $limit ;;
	esac
}

# find_sanitizer sets tool to compute-sanitizer, and refused to why it is of no use here, or to nothing. COMPUTE_SANITIZER names it if it is not
# where it is usually.
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

# sanitize runs gpuinfo and the examples under compute-sanitizer's memcheck, for which a kernel's wrong access is an error, and each
# call of CUDA that fails.
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

# sanitize_tests TOOL... runs tests under tools of compute-sanitizer, short ones, which start no program of Python's.
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

# finish prints the table, and the tests that were skipped, and ends.
finish() {
	echo "== table"
	cat "$table"
	if [ -s "$skips" ]; then
		echo "== skipped"
		cat "$skips"
	fi
	exit $failed
}
