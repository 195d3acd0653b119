#!/bin/sh
# Runs the programs of this bundle, and tests that launch kernels, on the GPU of this machine under compute-sanitizer, and nothing else: see
# run.sh. The exit status is 1 if a kernel's access was wrong or a call of CUDA in a program failed, or a program did.
#
# usage: sanitize.sh

set -u
here=$(cd "$(dirname "$0")" && pwd)
export PUREGPU_DRIVER=cuda
. "$here/items.sh"
sanitize
sanitize_tests
finish
