#!/bin/sh
# Tests packages nvrtc, nvjitlink, nvml and cudadriver, which compiles and links, against NVIDIA's real libraries, which need no GPU to compile, to link and to be opened.
#
# usage: nvidia.sh DIR, in the module's root
#
# Debian's packages of them, which are non-free, are fetched and unpacked into DIR, without what they depend on and with a list of
# sources of its own in DIR: the system is left as it is. They come from where the system has Debian's packages from, or from where
# DEBIAN_MIRROR says. A fetch that fails is an error. What DIR has is not fetched again.

set -eu
go=${GO:-go}
keyring=/usr/share/keyrings/debian-archive-keyring.gpg

fail() {
	echo "real-nvidia: $*" >&2
	exit 1
}

mkdir -p "$1"
dir=$(cd "$1" && pwd)

# apt COMMAND ARGUMENT... works with the list and the cache in DIR alone. It asks for each file twice more, and no longer than a
# minute for an answer.
apt() {
	command=$1
	shift
	"$command" -qq -o Dir::Etc::sourcelist="$dir/sources.list" -o Dir::Etc::sourceparts=- -o Dir::State::Lists="$dir/lists" \
		-o Dir::Cache="$dir/cache" -o APT::Architecture=amd64 -o APT::Architectures::=amd64 -o Debug::NoLocking=1 \
		-o APT::Sandbox::User=root -o Acquire::Languages=none -o Acquire::Retries=2 -o Acquire::http::Timeout=60 "$@"
}

# fetch SUITE PACKAGE... unpacks packages of a suite into DIR/SUITE. The mark is there once all of them are.
fetch() {
	suite=$1
	shift
	[ ! -e "$dir/$suite/unpacked" ] || return 0
	command -v apt-get >/dev/null || fail "there is no apt-get to fetch Debian's $* with"
	mirror=${DEBIAN_MIRROR:-$(cat /etc/apt/sources.list /etc/apt/sources.list.d/*.list /etc/apt/sources.list.d/*.sources 2>/dev/null |
		grep -v '^ *#' | grep -oE 'https?://[^ ]+/debian/?( |$)' | head -n 1 | tr -d ' ')}
	[ -n "$mirror" ] || fail "apt has no source of Debian's packages; name one in DEBIAN_MIRROR"
	[ -e "$keyring" ] || fail "there is no $keyring, by which Debian's packages are known to be Debian's; install debian-archive-keyring"
	rm -rf "$dir/$suite" "$dir/lists" "$dir/cache"
	mkdir -p "$dir/$suite" "$dir/lists/partial" "$dir/cache/archives/partial"
	echo "deb [arch=amd64 signed-by=$keyring] $mirror $suite non-free" >"$dir/sources.list"
	apt apt-get update --error-on=any || fail "the list of Debian $suite's non-free packages could not be fetched"
	(cd "$dir/$suite" && apt apt-get download "$@") || fail "Debian $suite's $* could not be fetched"
	for deb in "$dir/$suite"/*.deb; do
		dpkg -x "$deb" "$dir/$suite"
		rm "$deb"
	done
	touch "$dir/$suite/unpacked"
}

# find_file SUITE NAME prints the path of a library.
find_file() {
	found=$(find "$dir/$1" -name "$2" | head -n 1)
	[ -n "$found" ] || fail "Debian $1's packages have no $2; they were unpacked into $dir/$1"
	printf '%s\n' "$found"
}

# prove PACKAGE LIBRARY [TESTS] runs the tests of a package that call the real library. One at least must run, and none may be skipped.
prove() {
	out=$($go test -count=1 -v -run "${3:-Real}" "./$1") || { printf '%s\n' "$out"; fail "package $1 failed with $2"; }
	printf '%s\n' "$out"
	case $out in
	*"--- SKIP: "*) fail "a test of package $1 was skipped with $2" ;;
	*"--- PASS: "*) ;;
	*) fail "no test of package $1 ran: it has none whose name has Real in it" ;;
	esac
}

[ "$($go env GOARCH)" = amd64 ] || fail "Debian has these libraries for amd64 only"
fetch trixie libnvrtc12 libnvrtc-builtins12.4 libnvjitlink12 libnvidia-ml1
fetch bookworm libnvrtc11.2 libnvrtc-builtins11.8 libnvidia-ml1

export CGO_ENABLED=0
for suite in bookworm trixie; do
	# NVRTC opens its builtins by name.
	LD_LIBRARY_PATH=$(dirname "$(find_file $suite 'libnvrtc-builtins.so.*')")
	export LD_LIBRARY_PATH
	PUREGPU_NVRTC_LIBRARY=$(find_file $suite 'libnvrtc.so.1[12]*')
	PUREGPU_NVML_LIBRARY=$(find_file $suite 'libnvidia-ml.so.1')
	export PUREGPU_NVRTC_LIBRARY PUREGPU_NVML_LIBRARY
	prove nvrtc "$PUREGPU_NVRTC_LIBRARY"
	prove nvml "$PUREGPU_NVML_LIBRARY"
	prove runtime/driver/cudadriver "$PUREGPU_NVRTC_LIBRARY" RealNVRTC
done
PUREGPU_NVJITLINK_LIBRARY=$(find_file trixie 'libnvJitLink.so.12')
export PUREGPU_NVJITLINK_LIBRARY
prove nvjitlink "$PUREGPU_NVJITLINK_LIBRARY"
prove runtime/driver/cudadriver "$PUREGPU_NVJITLINK_LIBRARY" RealLink
