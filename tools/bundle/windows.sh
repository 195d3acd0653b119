#!/bin/sh
# Runs tests for windows/amd64 under Wine: every function's ABI against C libraries, a driver's
# nvcuda.dll and nvml.dll found in Windows' folders, examples on the simulated GPU, the loader, the
# bindings, the drivers, and the runtime. It needs Linux on amd64, gcc, and root or user namespaces.
# Two packages need a real Windows, because Wine lacks features of its files: internal/filelock and
# internal/regular.
#
# usage: windows.sh DIR [PACKAGE...], in the module's root; with packages ("runtime/gpu") it tests only these
#
# Wine is Debian 13's, because Go's runtime needs a function that Wine 8 lacks. The script fetches
# and unpacks Wine and a C compiler for Windows into DIR, and Wine runs with DIR as its root folder.
# The script does not change the system.

set -eu
go=${GO:-go}
export CGO_ENABLED=0
mkdir -p "$1"
dir=$(cd "$1" && pwd)
shift
packages=${*:-runtime/dl cuda nccl nvml nvrtc nvjitlink cublas cublaslt cudnn cufft curand cusparse cusolver cufile cupti hip hiprtc hipblas hipfft hiprand tools/gpuinfo runtime/driver runtime/driver/simdriver runtime/driver/cudadriver runtime/driver/hipdriver runtime/drivers internal/busyfile internal/traceformat tools/gputrace tools/kernelgen runtime/rendezvous runtime/fft runtime/random runtime/health runtime/health/nvmlhealth runtime/metrics runtime/trace runtime/compile runtime/internal/blockpool runtime/internal/diskcache runtime/internal/engine runtime/internal/memory runtime/internal/recording runtime/internal/sema runtime/internal/wake runtime/collective runtime/control runtime/growing runtime/gpu runtime/interop}
module=$PWD

fail() {
	echo "windows: $*" >&2
	exit 1
}

wine=$($go run ./tools/reallibs -dir "$dir" -fetch wine)
mingw=$($go run ./tools/reallibs -dir "$dir" -fetch mingw)

unshare=
for args in "-r -m -p -f --kill-child" "-m -p -f --kill-child"; do
	# shellcheck disable=SC2086 # a word each
	if unshare $args true 2>/dev/null; then
		unshare="unshare $args"
		break
	fi
done
[ -n "$unshare" ] || fail "this user may make no namespace of mounts, in which Wine has $wine as its root folder: run it as root, or allow user namespaces"

# The work of the packages' install scripts.
for name in lib lib64; do
	[ -e "$wine/$name" ] || ln -s "usr/$name" "$wine/$name"
done
cp "$wine/usr/x86_64-w64-mingw32/lib/zlib1.dll" "$wine/usr/lib/x86_64-linux-gnu/wine/x86_64-windows/"
mkdir -p "$wine/proc" "$wine/dev" "$wine/tmp" "$wine/home" "$wine/module" "$wine/out"
out=$wine/out

# run FOLDER PROGRAM ARGUMENT... runs a program of $out in a folder of the module.
cat >"$dir/enter.sh" <<'END'
set -e
root=$1 module=$2 folder=$3
shift 3
mount --rbind /proc "$root/proc"
mount --rbind /dev "$root/dev"
mount --bind "$module" "$root/module"
exec unshare --root="$root" --wd="/module/$folder" /usr/lib/wine/wine64 "$@"
END
run() {
	folder=$1 program=$2
	shift 2
	timeout -k 5 3700 $unshare env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/home WINEPREFIX=/home/prefix WINELOADER=/usr/lib/wine/wine64 WINESERVER=/usr/lib/wine/wineserver64 \
		WINEDEBUG=-all WINEDLLOVERRIDES="mscoree,mshtml=" LC_ALL=C.UTF-8 PUREGPU_TEST_FIXTURES='Z:\out' \
		sh "$dir/enter.sh" "$wine" "$module" "$folder" "/out/$program" "$@" 2>&1 | grep -v -e 'FreeType' -e '^use TrueType' -e '^or equal to' -e '^http://www.freetype.org' -e '^wine: created'
}

# prove FOLDER ARGUMENT... builds and runs a package's tests.
prove() {
	folder=$1 name=$(basename "$1").test.exe began=$(date +%s)
	shift
	GOOS=windows GOARCH=amd64 $go test -c -o "$out/$name" "./$folder"
	said=$(run "$folder" "$name" -test.timeout 1h "$@" | tr -d '\r') || true
	echo "windows: tests of $folder, $(($(date +%s) - began)) s"
	case $(printf '%s\n' "$said" | grep -v '^wine:' | tail -n 1) in
	PASS) printf '%s\n' "$said" | grep -E 'proven|^PASS' ;;
	*) printf '%s\n' "$said" | tail -n 60; fail "the tests of $folder failed" ;;
	esac
}

# The C libraries that the test of the ABI compiles, for Windows too. There cuda.h defines
# cuuint64_t as a 64-bit type, because long has 32 bits.
cat >"$dir/cc" <<'END'
#!/bin/sh
gcc "$@" || exit
for a; do case $a in *.c) source=$a ;; esac; done
while [ $# -gt 1 ]; do
	if [ "$1" = -o ]; then name=$(basename "$2" .so); fi
	shift
done
sed 's/^typedef unsigned long cuuint64_t;/typedef unsigned long long cuuint64_t;/' "$source" >"$KEEP/$name.c"
LD_LIBRARY_PATH="$MINGW/usr/lib/x86_64-linux-gnu" PATH="$MINGW/usr/bin:$PATH" x86_64-w64-mingw32-gcc-win32 -std=gnu11 -O1 -w -shared -o "$KEEP/$name.dll" "$KEEP/$name.c"
END
chmod +x "$dir/cc"
rm -f "$out"/*
KEEP="$out" MINGW="$mingw" PUREGPU_TEST_CC="$dir/cc" $go test -count=1 -run '^TestEcho$' ./gen >/dev/null || fail "the C libraries for the test of the ABI do not compile"
prove gen -test.v -test.run Echo

# Libraries that do nothing, in the places of the real ones on Windows. The driver has no devices.
system=$wine/home/prefix/drive_c/windows/system32
mkdir -p "$system"
{
	echo 'int cuDriverGetVersion(int *version) { *version = 12040; return 0; }'
	awk '/^cu/ && $1 != "cuDriverGetVersion" { print "int " $1 "(void) { return 0; }" }' testdata/exports/cuda.txt
} >"$out/nvcuda.c"
awk '/^nvml/ { print "int " $1 "(void) { return 0; }" }' testdata/exports/nvml.txt >"$out/nvml.c"
GOOS=windows GOARCH=amd64 $go build -o "$out/gpuinfo.exe" ./tools/gpuinfo
for library in nvcuda nvml; do
	LD_LIBRARY_PATH="$mingw/usr/lib/x86_64-linux-gnu" PATH="$mingw/usr/bin:$PATH" x86_64-w64-mingw32-gcc-win32 -w -shared -o "$system/$library.dll" "$out/$library.c"
	said=$(run . gpuinfo.exe -explain | tr -d '\r') || true
	printf '%s\n' "$said" | grep -i "$library\.dll" || { printf '%s\n' "$said"; fail "gpuinfo does not find $library.dll in system32"; }
done

# These programs take the simulated GPU, because the driver has no device.
for example in first pipeline mlp; do
	GOOS=windows GOARCH=amd64 $go build -o "$out/$example.exe" "./runtime/examples/$example"
	said=$(run . "$example.exe" | tr -d '\r') || true
	case $(printf '%s\n' "$said" | tail -n 1) in
	*"Simulated GPU 0"*) echo "windows: example $example" ;;
	*) printf '%s\n' "$said" | tail -n 30; fail "the example $example failed" ;;
	esac
done

# Under Wine Go's clock advances in steps of 16 ms and more, and waking a thread needs a server. So
# the runtime's tests run in their short form.
for package in $packages; do
	prove $package -test.short -test.skip '^TestGPU' # the driver would do nothing
done
