#!/bin/sh
# Tests packages hip, hiprtc and hipdriver against a real libamdhip64. To open it, resolve functions
# and compile needs no AMD GPU.
#
# usage: hip.sh DIR, in the module's root
#
# It uses an installed library. Otherwise, in CI and as root, it installs Debian's. Anywhere else it
# fetches and unpacks Debian's package with its dependencies into DIR, and does not change the
# system.

set -eu
dir=$1
go=${GO:-go}
package=libamdhip64-5
library=libamdhip64.so.5

# missing prints package=version for each package that installing $package would add.
missing() {
	apt-get -s -o Debug::NoLocking=1 install --no-install-recommends "$package" |
		sed -n 's/^Inst \([^ ]*\) (\([^ ]*\) .*/\1=\2/p'
}

if ldconfig -p 2>/dev/null | grep -q 'libamdhip64\.so\.[0-9]' || ls /opt/rocm*/lib/libamdhip64.so* >/dev/null 2>&1; then
	echo "real-hip: using the installed libamdhip64"
elif ! command -v apt-get >/dev/null; then
	echo "real-hip: no libamdhip64 is installed, and there is no apt-get to fetch Debian's $package with; install ROCm's HIP runtime" >&2
	exit 1
elif [ "${CI:-}" = true ] && [ "$(id -u)" = 0 ]; then
	apt-get update
	DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "$package"
else
	mkdir -p "$dir"
	dir=$(cd "$dir" && pwd)
	if ! [ -e "$dir/unpacked" ]; then
		list=$(missing || true)
		if [ -z "$list" ]; then
			[ "$(id -u)" = 0 ] && apt-get update
			list=$(missing)
		fi
		(
			cd "$dir"
			# shellcheck disable=SC2086 # a word each
			apt-get download $list
			for deb in *.deb; do
				dpkg -x "$deb" root
				rm "$deb"
			done
			touch unpacked
		)
	fi
	libs=$(find "$dir/root" -name '*.so*' -exec dirname {} + | sort -u | paste -s -d : -)
	export LD_LIBRARY_PATH="$libs${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
	PUREGPU_HIP_LIBRARY=$(find "$dir/root" -name "$library" | head -n 1)
	export PUREGPU_HIP_LIBRARY
	export PUREGPU_HIPRTC_LIBRARY="$PUREGPU_HIP_LIBRARY" # the same file has hipRTC
	[ -n "$PUREGPU_HIP_LIBRARY" ] || { echo "real-hip: $package has no $library; it was unpacked into $dir/root" >&2; exit 1; }
	echo "real-hip: using $PUREGPU_HIP_LIBRARY"
fi

export CGO_ENABLED=0 PUREGPU_TEST_REAL_HIP=1
$go run ./tools/gpuinfo
for package in hip hiprtc runtime/driver/hipdriver; do
	out=$($go test -count=1 -v -run Real ./$package) || { printf '%s\n' "$out"; exit 1; }
	printf '%s\n' "$out"
	case $out in
	*"--- PASS: "*) ;;
	*) echo "real-hip: no test of package $package ran: none has Real in its name, or all were skipped" >&2; exit 1 ;;
	esac
done
