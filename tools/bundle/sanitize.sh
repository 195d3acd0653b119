#!/bin/sh
# Runs the programs of this bundle, and tests that launch kernels, on the GPU of this machine under
# compute-sanitizer, and nothing else: see run.sh. The exit status is 1 if a kernel's access was
# wrong, a call of CUDA in a program failed, or a program failed. If a tool does not work, the table
# lists it as missing. With names of tools it runs only tests, under these tools.
#
# usage: sanitize.sh [memcheck|initcheck|synccheck|racecheck]...

set -u
here=$(cd "$(dirname "$0")" && pwd)
export PUREGPU_TEST_REQUIRE_GPU=1 PUREGPU_DRIVER=cuda
. "$here/items.sh"
if [ $# = 0 ]; then
	sanitize
	set -- memcheck initcheck synccheck racecheck
fi
sanitize_tests "$@"
finish
