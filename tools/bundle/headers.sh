#!/bin/sh
# Lays out the C headers of the releases that the tables are made of: DIR/LIBRARY/RELEASE, such as build/headers/cuda/12.4.
#
# usage: headers.sh DIR
#
# What Debian has is fetched from its pool, and only unpacked. Headers are not committed. Of the rest, folders are taken that these
# variables name; a release that is nowhere is named and left out, and what the tables say of it stays.
#
#	PUREGPU_CUDA_TOOLKITS   folders with cuda.h, separated by colons: CUDA's include folder, on a machine with the toolkit
#	PUREGPU_NCCL_REPOSITORY a clone of github.com/NVIDIA/nccl with its tags: every release since 2.3.5
#	PUREGPU_HIP_REPOSITORY  a clone of github.com/ROCm/HIP with its tags, 5.3 to 6.2, and with it
#	PUREGPU_CLR_REPOSITORY  one of github.com/ROCm/clr (from 5.6 on), and for those before of github.com/ROCm/hipamd:
#	PUREGPU_HIPAMD_REPOSITORY
#
# It needs curl, ar (binutils), tar and xz.

set -eu
dir=$1
mkdir -p "$dir"
dir=$(cd "$dir" && pwd)
debian=${DEBIAN_MIRROR:-http://deb.debian.org/debian}
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

# deb LIBRARY RELEASE POOL-PATH BYTES PATTERN: unpacks headers out of a package. Only its first bytes are fetched: headers come before libraries.
deb() {
	[ -d "$dir/$1/$2" ] && return
	rm -rf "$tmp/root" && mkdir -p "$tmp/root"
	if ! curl -sS --fail -r "0-$4" -o "$tmp/deb" "$debian/pool/$3"; then
		echo "headers: $1 $2: $debian/pool/$3 is not there, left out"
		return
	fi
	# ar wants a whole archive; the data begins behind two members and three heads of 60 bytes.
	offset=$(LC_ALL=C grep -obUa 'data\.tar\.xz' "$tmp/deb" | head -n 1 | cut -d : -f 1)
	tail -c "+$((offset + 61))" "$tmp/deb" | xz -dc 2>/dev/null | tar -C "$tmp/root" -x --wildcards "./usr/include/$5" 2>/dev/null || true
	if [ -z "$(find "$tmp/root" -name '*.h' | head -n 1)" ]; then
		echo "headers: $1 $2: no headers in the first $4 bytes of $3, left out" >&2
		return
	fi
	mkdir -p "$dir/$1"
	mv "$tmp/root/usr/include" "$dir/$1/$2"
	echo "headers: $1 $2 from Debian"
}

deb cuda 11.2 non-free/n/nvidia-cuda-toolkit/nvidia-cuda-dev_11.2.2-3%2bdeb11u3_amd64.deb 20000000 'cuda*.h'
deb cuda 11.8 non-free/n/nvidia-cuda-toolkit/nvidia-cuda-dev_11.8.89%7e11.8.0-5%7edeb12u1_amd64.deb 20000000 'cuda*.h'
deb cuda 12.4 non-free/n/nvidia-cuda-toolkit/nvidia-cuda-dev_12.4.127%7e12.4.1-2_amd64.deb 20000000 'cuda*.h'
deb cuda 12.5 non-free/n/nvidia-cuda-toolkit/nvidia-cuda-dev_12.5.39%7e12.5.0-2%2bb1_amd64.deb 20000000 'cuda*.h'
deb hip 5.2 main/r/rocm-hipamd/libamdhip64-dev_5.2.3-8_amd64.deb 9000000 'hip/*'
deb hip 5.7 main/r/rocm-hipamd/libamdhip64-dev_5.7.1-6%2bdeb13u1_amd64.deb 9000000 'hip/*'
deb hip 6.4 main/r/rocm-hipamd/libamdhip64-dev_6.4.3-5_amd64.deb 9000000 'hip/*'
deb hip 7.2 main/r/rocm-hipamd/libamdhip64-dev_7.2.4-1%7eexp2_amd64.deb 9000000 'hip/*'

toolkits=${PUREGPU_CUDA_TOOLKITS:-}
while [ -n "$toolkits" ]; do
	from=${toolkits%%:*}
	case $toolkits in *:*) toolkits=${toolkits#*:} ;; *) toolkits= ;; esac
	code=$(sed -n 's/^#define CUDA_VERSION \([0-9]*\)$/\1/p' "$from/cuda.h")
	[ -n "$code" ] || { echo "headers: $from/cuda.h does not tell its version" >&2; exit 1; }
	to=$dir/cuda/$((code / 1000)).$((code % 1000 / 10))
	[ -d "$to" ] && continue
	mkdir -p "$to"
	cp "$from"/cuda*.h "$to"
	echo "headers: cuda ${to##*/} from $from"
done

# nccl TAG: the header of a tag, with the version that its makefile fills in.
nccl() {
	version=${1#v} && version=${version%-*}
	to=$dir/nccl/$version
	[ -d "$to" ] && return
	git -C "$PUREGPU_NCCL_REPOSITORY" show "$1:makefiles/version.mk" >"$tmp/version.mk"
	for name in MAJOR MINOR PATCH SUFFIX; do
		eval "$name=\$(sed -n 's/^NCCL_$name *:= *//p' \"\$tmp/version.mk\")"
	done
	code=$((MAJOR * 1000 + MINOR * 100 + PATCH))
	[ "$MINOR" -le 8 ] || code=$((MAJOR * 10000 + MINOR * 100 + PATCH))
	mkdir -p "$to"
	git -C "$PUREGPU_NCCL_REPOSITORY" show "$1:src/nccl.h.in" |
		sed "s/\${nccl:Major}/$MAJOR/g;s/\${nccl:Minor}/$MINOR/g;s/\${nccl:Patch}/$PATCH/g;s/\${nccl:Suffix}/$SUFFIX/g;s/\${nccl:Version}/$code/g" >"$to/nccl.h"
}
if [ -n "${PUREGPU_NCCL_REPOSITORY:-}" ]; then
	for tag in $(git -C "$PUREGPU_NCCL_REPOSITORY" tag | grep '^v2\.'); do nccl "$tag"; done
	echo "headers: nccl, $(find "$dir/nccl" -name nccl.h | wc -l) releases, from $PUREGPU_NCCL_REPOSITORY"
fi

if [ -n "${PUREGPU_HIP_REPOSITORY:-}" ]; then
	for version in 5.3 5.4 5.5 5.6 6.0 6.1 6.2; do
		tag=rocm-$version.0 to=$dir/hip/$version
		[ -d "$to" ] && continue
		from=${PUREGPU_CLR_REPOSITORY:-} path=hipamd/include/hip strip=2
		case $version in 5.[345]) from=${PUREGPU_HIPAMD_REPOSITORY:-} path=include/hip strip=1 ;; esac
		if [ -z "$from" ]; then
			echo "headers: hip $version: its AMD part is in a repository that is not named, left out"
			continue
		fi
		mkdir -p "$to"
		git -C "$PUREGPU_HIP_REPOSITORY" archive "$tag" include/hip | tar -x -C "$to" --strip-components=1
		git -C "$from" archive "$tag" "$path" | tar -x -C "$to" --strip-components="$strip"
		printf '#define HIP_VERSION_MAJOR %s\n#define HIP_VERSION_MINOR %s\n' "${version%.*}" "${version#*.}" >"$to/hip/hip_version.h"
		echo "headers: hip $version from $PUREGPU_HIP_REPOSITORY"
	done
fi

# What the tables were made of and is not here.
for table in symbols/*/table.json; do
	library=$(basename "$(dirname "$table")")
	for release in $(sed -n 's/^"releases": \[\(.*\)\],$/\1/p' "$table" | tr -d '"' | tr , ' '); do
		[ -d "$dir/$library/$release" ] || echo "headers: $library $release: not here; what the table says of it stays"
	done
done
