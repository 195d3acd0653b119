#!/bin/sh
# Runs a command in a namespace in which the kernel starts arm64 programs under qemu, so that an
# arm64 test can start itself and other programs. If the machine can start them already, or no such
# namespace can be made (it needs Linux 6.7, and root or user namespaces), it runs the command
# directly. Without either, tests that start programs are skipped. Processes that the command leaves
# running end with it.
#
# usage: arm64.sh COMMAND ARGUMENT...

set -eu
qemu=$(command -v qemu-aarch64)
export QEMU_LD_PREFIX=/usr/aarch64-linux-gnu

# The header of such programs, and the mask of its bits that count.
magic='\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\xb7\x00'
mask='\xff\xff\xff\xff\xff\xff\xff\x00\xff\xff\xff\xff\xff\xff\xff\xff\xfe\xff\xff\xff'
register="mount -t binfmt_misc none /proc/sys/fs/binfmt_misc && printf %s ':puregpu-aarch64:M::$magic:$mask:$qemu:F' >/proc/sys/fs/binfmt_misc/register"

if cat /proc/sys/fs/binfmt_misc/* 2>/dev/null | grep -q 'qemu-aarch64'; then
	exec "$@"
fi
namespace='unshare --map-root-user --mount --pid --fork --kill-child --mount-proc'
if $namespace sh -c "$register" 2>/dev/null; then
	exec $namespace sh -c "$register"' && exec "$@"' sh "$@"
fi
echo "arm64: this system cannot start arm64 programs, and no namespace can be made for them: tests that start programs are skipped" >&2
exec "$@"
