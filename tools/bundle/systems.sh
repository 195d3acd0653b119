#!/bin/sh
# Runs static programs and tests (build tag puregpu_static) on other systems. Each is a root folder:
# an empty one, one with musl and a static busybox, as in Alpine, and the C libraries of Debian 11,
# 12 and 13. With musl it also runs programs without that tag. It needs root and gcc, and downloads
# 15 MB of Debian packages from the system's source, or from DEBIAN_MIRROR. STRESS is the time of C
# calls under disturbances on each system ("10m").
#
# usage: systems.sh DIR [SYSTEM...], in the module's root, with the systems empty, musl, bullseye, bookworm and trixie, or the named ones

set -eu
dir=$1
shift
systems=${*:-empty musl bullseye bookworm trixie}
go=${GO:-go}
here=$(cd "$(dirname "$0")" && pwd)
if [ "$(id -u)" != 0 ] || [ "$(uname -m)" != x86_64 ]; then
	echo "systems: not run: only root may change the root folder, and static programs are for amd64" >&2
	exit 1
fi
mkdir -p "$dir"
dir=$(cd "$dir" && pwd)

fail() {
	echo "systems: $*" >&2
	exit 1
}

# on SYSTEM reports whether the system is among those to run.
on() {
	case " $systems " in
	*" $1 "*) ;;
	*) return 1 ;;
	esac
}

. "$here/debian.sh"

! on bullseye || fetch bullseye libc6 busybox-static
! on bookworm && ! on musl || fetch bookworm libc6 busybox-static musl
! on trixie || fetch trixie libc6 busybox-static

# A compiler for libraries that need no version of the C library, so that the oldest one can load
# them.
cat >"$dir/cc" <<'END'
#!/bin/sh
for a; do
	shift
	case $a in
	-lpthread | -ldl | -lm) ;;
	*) set -- "$@" "$a" ;;
	esac
done
exec gcc -nostdlib "$@"
END
chmod +x "$dir/cc"

rm -rf "$dir/tests"
mkdir -p "$dir/tests/fixtures"
export CGO_ENABLED=0
$go build -tags puregpu_static -o "$dir/gpuinfo" ./tools/gpuinfo
for p in gen runtime/dl; do
	mkdir -p "$dir/tests/$p"
	$go test -c -tags puregpu_static -o "$dir/tests/$p.test" ./$p
	cp -R $p/testdata "$dir/tests/$p/"
	CC="$dir/cc" "$here/fixtures.sh" "$dir/tests/fixtures" "$dir/tests/$p.test" $p
done
if readelf -lW "$dir/gpuinfo" | grep -E '^ *(INTERP|DYNAMIC) '; then
	echo "systems: $dir/gpuinfo is not static" >&2
	exit 1
fi

# want TEXT COMMAND... prints the first output line of a command that contains TEXT, or fails.
want() (
	text=$1
	shift
	"$@" >"$dir/log" 2>&1 || { cat "$dir/log"; exit 1; }
	grep -m 1 -e "$text" "$dir/log" | cut -c 1-120 | sed 's/^/    /'
	grep -q -e "$text" "$dir/log" || { cat "$dir/log"; exit 1; }
)

if on empty; then
	echo "systems: empty"
	rm -rf "$dir/empty"
	mkdir "$dir/empty"
	cp "$dir/gpuinfo" "$dir/empty/"
	want 'No CUDA driver: .* no glibc on this machine' chroot "$dir/empty" /gpuinfo
fi

# in_musl COMMAND runs a shell command with musl.
in_musl() {
	chroot "$dir/musl" /bin/busybox sh -c "$1"
}

if on musl; then
	echo "systems: musl"
	rm -rf "$dir/musl"
	mkdir -p "$dir/musl/bin" "$dir/musl/lib" "$dir/musl/tmp" "$dir/musl/glibc"
	cp "$dir/bookworm/bin/busybox" "$dir/musl/bin/"
	cp -L "$dir/bookworm/usr/lib/x86_64-linux-musl/libc.so" "$dir/musl/lib/ld-musl-x86_64.so.1"
	cp "$dir/gpuinfo" "$dir/musl/"

	echo "systems: musl, static"
	want 'No CUDA driver: .* no glibc on this machine' in_musl 'exec /gpuinfo'
	want "No CUDA driver: .*: not glibc's loader" in_musl 'PUREGPU_LOADER=/lib/ld-musl-x86_64.so.1 /gpuinfo || [ $? = 1 ]'
	for name in ld-linux-x86-64.so.2 libc.so.6 libpthread.so.0 libdl.so.2; do
		cp "$dir/bookworm/usr/lib/x86_64-linux-gnu/$name" "$dir/musl/glibc/"
	done
	want 'No CUDA driver: not found' in_musl 'PUREGPU_LOADER=/glibc/ld-linux-x86-64.so.2 LD_LIBRARY_PATH=/glibc exec /gpuinfo'

	# Without the tag a program names glibc's loader, which does not exist here. It starts if it
	# names musl's loader, or if musl's loader starts it.
	echo "systems: musl, dynamic"
	musl="-I /lib/ld-musl-x86_64.so.1"
	mkdir "$dir/musl/gen"
	cp -R gen/testdata "$dir/musl/gen/"
	cp -R "$dir/tests/fixtures" "$dir/musl/"
	$go build -o "$dir/musl/glibc-gpuinfo" ./tools/gpuinfo
	$go build -ldflags "$musl" -o "$dir/musl/musl-gpuinfo" ./tools/gpuinfo
	$go build -ldflags "$musl" -o "$dir/musl/pipeline" ./runtime/examples/pipeline
	$go test -c -ldflags "$musl" -o "$dir/musl/gen.test" ./gen
	needs='No CUDA driver: not found. This process has musl for its C library, as on Alpine Linux, and GPU libraries need glibc'
	want 'not found' in_musl '/glibc-gpuinfo || [ $? = 127 ]'
	want "$needs" in_musl 'exec /lib/ld-musl-x86_64.so.1 /glibc-gpuinfo'
	want "$needs" in_musl 'exec /musl-gpuinfo'
	want 'imulated' in_musl 'exec /pipeline'
	want 'PASS: TestEcho' in_musl 'cd /gen && PUREGPU_TEST_FIXTURES=/fixtures exec ../gen.test -test.v -test.run Echo'
fi

# Mounts of /proc go with their namespace, if one can be made.
unshare=
! unshare -m true 2>/dev/null || unshare='unshare -m'

# in_root ROOT FOLDER COMMAND... runs a command in a folder of another root.
in_root() {
	# shellcheck disable=SC2016 # for the other shell
	$unshare sh -c '
		[ -z "$1" ] || mount -t proc proc "$2/proc" || true
		root=$2 folder=$3
		shift 3
		exec chroot "$root" /bin/busybox sh -c "cd $folder && exec \"\$@\"" sh "$@"
	' sh "$unshare" "$@"
}

for suite in bullseye bookworm trixie; do
	on $suite || continue
	root=$dir/$suite
	echo "systems: $suite, $(grep -aom 1 'GNU C Library[^,]*version [0-9.]*[0-9]' "$root/usr/lib/x86_64-linux-gnu/libc.so.6")"
	rm -rf "$root/tests"
	cp -R "$dir/tests" "$root/"
	cp "$dir/gpuinfo" "$root/"
	cp "$root/bin/busybox" "$root/bin/true" # a program to start
	mkdir -p "$root/dev" "$root/tmp" "$root/proc"
	[ -e "$root/dev/null" ] || mknod -m 666 "$root/dev/null" c 1 3
	export PUREGPU_TEST_FIXTURES=/tests/fixtures
	want 'No CUDA driver: not found' in_root "$root" / ./gpuinfo
	want 'PASS: TestEcho' in_root "$root" /tests/gen ../gen.test -test.v -test.run Echo
	want ' calls, ' in_root "$root" /tests/runtime/dl ../dl.test -test.v -test.timeout 30m -test.run 'CLibrary|Call|Frame|String' -dl.stress "${STRESS:-3s}"
	echo "    $(grep -c '^--- PASS' "$dir/log") tests of package dl passed, $(grep -c '^--- SKIP' "$dir/log") skipped"
	unset PUREGPU_TEST_FIXTURES
done
rm -rf "$dir/log" "$dir/cc"
