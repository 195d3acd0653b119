# What run.sh, four.sh and sanitize.sh have in common: it unpacks the bundle in $here, which is from then on the folder with bin, fixtures
# and src.

limit=300 # seconds each

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
	printf '%-18s %-12s %4s s  %.100s\n' "$name" "$result" "$(($(date +%s) - start))" "$note" >>"$table"
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

# sanitized are the tests of the CUDA driver that compute-sanitizer watches: kernels launched in every way, and by others than the runtime.
sanitized='^TestGPU(Params|Cluster|LaunchAttrs|TensorMap|Priorities|Capture|CuBLAS|Native.*|Adopt.*|Value.*|Scratch.*)$'

# sanitize runs gpuinfo and the examples under compute-sanitizer's memcheck, for which a kernel's wrong access is an error, and each
# call of CUDA that fails. COMPUTE_SANITIZER names the tool if it is not where it is usually.
sanitize() {
	tool=${COMPUTE_SANITIZER:-}
	for t in "$(command -v compute-sanitizer)" /usr/local/cuda/bin/compute-sanitizer; do
		[ -n "$tool" ] || [ ! -x "$t" ] || tool=$t
	done
	if [ -z "$tool" ]; then
		item memcheck "$here" echo "memcheck: not run: there is no compute-sanitizer"
		return
	fi
	timeout $limit "$tool" --tool memcheck "$here/bin/gpuinfo" >"$tmp/memcheck" 2>&1
	if ! grep -q 'ERROR SUMMARY' "$tmp/memcheck"; then
		item memcheck "$here" echo "memcheck: not run: $tool does not work here: $(grep '^=' "$tmp/memcheck" | tail -n 1)"
		return
	fi
	for p in gpuinfo $examples; do
		# shellcheck disable=SC2046 # a word each
		item "memcheck $p" "$here" "$here/bin/memcheck.sh" "$tool" "$here/bin/$p" $(arguments $p)
	done
}

# sanitize_tests runs tests under each tool of compute-sanitizer, where there is one. Calls of CUDA may fail in them.
sanitize_tests() {
	[ -n "${tool:-}" ] || return 0
	for t in memcheck initcheck synccheck racecheck; do
		calls=
		[ $t != memcheck ] || calls='--report-api-errors no'
		# shellcheck disable=SC2086 # two words, or none
		item "$t tests" "$here/src/runtime/driver/cudadriver" "$tool" --tool $t $calls --error-exitcode 9 "$here/bin/cudadriver.test" -test.v -test.run "$sanitized"
	done
}

# finish prints the table and ends.
finish() {
	echo "== table"
	cat "$table"
	exit $failed
}
