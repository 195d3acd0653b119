#!/bin/sh
# Puts the C headers of the releases in the tables into DIR/LIBRARY/RELEASE, such as
# build/headers/cuda/12.4.
#
# usage: headers.sh DIR
#
# It fetches Debian's packages from its pool and only unpacks them. Headers are not committed. Other
# headers come from folders that these variables name. A release that is not found is named and left
# out; the tables keep their facts about it.
#
#	PUREGPU_CUDA_TOOLKITS   folders with cuda.h, separated by colons: CUDA's include folder, on a machine with the toolkit, with all headers
#	                        beside it
#	PUREGPU_CUDNN_HEADERS   folders with cudnn_version.h, separated by colons: the include folder of each release of cuDNN
#	PUREGPU_NCCL_REPOSITORY a clone of github.com/NVIDIA/nccl with its tags: every release since 2.3.5
#	PUREGPU_NVML_REPOSITORY a clone of github.com/NVIDIA/go-nvml with its tags, which has the nvml.h of every release since 11.1
#	PUREGPU_HIP_REPOSITORY  a clone of github.com/ROCm/HIP with its tags, 5.3 to 6.2, and with it
#	PUREGPU_CLR_REPOSITORY  one of github.com/ROCm/clr (from 5.6 on), and for those before of github.com/ROCm/hipamd:
#	PUREGPU_HIPAMD_REPOSITORY
#
# Headers that come together are in one folder, and the other libraries' folders are links to it:
# nvrtc/12.4 to cuda/12.4, hiprtc/6.4 to hip/6.4, and cufft/11.2.1 to cuda/12.4, because cuFFT has its
# own release numbers.
#
# It needs curl, ar (binutils), tar and xz.

set -eu
dir=$1
mkdir -p "$dir"
dir=$(cd "$dir" && pwd)
debian=${DEBIAN_MIRROR:-http://deb.debian.org/debian}
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

# deb LIBRARY RELEASE FILE POOL-PATH BYTES PATTERN...: unpacks headers out of a package, unless FILE
# exists already. It fetches only the package's first bytes, because headers precede libraries.
deb() {
	library=$1 release=$2 file=$3 pool=$4 bytes=$5
	shift 5
	to=$dir/$library/$release
	[ -e "$to/$file" ] && return
	rm -rf "$tmp/root" && mkdir -p "$tmp/root"
	if ! curl -sS --fail -r "0-$bytes" -o "$tmp/deb" "$debian/pool/$pool"; then
		echo "headers: $library $release: $debian/pool/$pool was not found, left out"
		return
	fi
	# ar needs a whole archive. The data begins after two members and three headers of 60 bytes.
	offset=$(LC_ALL=C grep -obUa 'data\.tar\.xz' "$tmp/deb" | head -n 1 | cut -d : -f 1)
	tail -c "+$((offset + 61))" "$tmp/deb" | xz -dc 2>/dev/null | (
		cd "$tmp/root"
		for pattern; do
			shift
			set -- "$@" "./usr/include/$pattern"
		done
		tar -x --wildcards --no-wildcards-match-slash "$@" 2>/dev/null
	) || true # the archive ends early, and has not every pattern
	if ! [ -e "$tmp/root/usr/include/$file" ]; then
		echo "headers: $library $release: no $file in the first $bytes bytes of $pool, left out" >&2
		return
	fi
	mkdir -p "$to"
	cp -R "$tmp/root/usr/include/." "$to"
	echo "headers: $library $release from Debian"
}

nvidia=non-free/n/nvidia-cuda-toolkit
deb cuda 11.2 nvrtc.h $nvidia/nvidia-cuda-dev_11.2.2-3%2bdeb11u3_amd64.deb 20000000 '*.h*' 'crt/*'
deb cuda 11.8 nvrtc.h $nvidia/nvidia-cuda-dev_11.8.89%7e11.8.0-5%7edeb12u1_amd64.deb 20000000 '*.h*' 'crt/*'
deb cuda 12.4 nvrtc.h $nvidia/nvidia-cuda-dev_12.4.127%7e12.4.1-2_amd64.deb 20000000 '*.h*' 'crt/*'
deb cuda 12.5 nvrtc.h $nvidia/nvidia-cuda-dev_12.5.39%7e12.5.0-2%2bb1_amd64.deb 20000000 '*.h*' 'crt/*'
deb cuda 11.8 cufile.h $nvidia/libcufile-dev_1.4.0.31%7e11.8.0-5%7edeb12u1_amd64.deb 1000000 cufile.h
deb cuda 12.4 cufile.h $nvidia/libcufile-dev_1.9.1.3%7e12.4.1-2_amd64.deb 1000000 cufile.h
deb cuda 12.5 cufile.h $nvidia/libcufile-dev_1.10.0.4%7e12.5.0-2%2bb1_amd64.deb 1000000 cufile.h
deb cuda 11.2 cupti.h $nvidia/libcupti-dev_11.2.152%7e11.2.2-3%2bdeb11u3_amd64.deb 9000000 '*.h' 'Openacc/*' 'Openmp/*'
deb cuda 11.8 cupti.h $nvidia/libcupti-dev_11.8.87%7e11.8.0-5%7edeb12u1_amd64.deb 9000000 '*.h' 'Openacc/*' 'Openmp/*'
deb cuda 12.4 cupti.h $nvidia/libcupti-dev_12.4.127%7e12.4.1-2_amd64.deb 9000000 '*.h' 'Openacc/*' 'Openmp/*'
deb cuda 12.5 cupti.h $nvidia/libcupti-dev_12.5.39%7e12.5.0-2%2bb1_amd64.deb 9000000 '*.h' 'Openacc/*' 'Openmp/*'
deb nvml 11.2 nvml.h $nvidia/libnvidia-ml-dev_11.2.152%7e11.2.2-3%2bdeb11u3_amd64.deb 1000000 nvml.h
deb nvml 11.8 nvml.h $nvidia/libnvidia-ml-dev_11.8.86%7e11.8.0-5%7edeb12u1_amd64.deb 1000000 nvml.h
deb nvml 12.4 nvml.h $nvidia/libnvidia-ml-dev_12.4.127%7e12.4.1-2_amd64.deb 1000000 nvml.h
deb nvml 12.5 nvml.h $nvidia/libnvidia-ml-dev_12.5.39%7e12.5.0-2%2bb1_amd64.deb 1000000 nvml.h
deb hip 5.2 hip/hiprtc.h main/r/rocm-hipamd/libamdhip64-dev_5.2.3-8_amd64.deb 9000000 'hip/*'
deb hip 5.7 hip/hiprtc.h main/r/rocm-hipamd/libamdhip64-dev_5.7.1-6%2bdeb13u1_amd64.deb 9000000 'hip/*'
deb hip 6.4 hip/hiprtc.h main/r/rocm-hipamd/libamdhip64-dev_6.4.3-5_amd64.deb 9000000 'hip/*'
deb hip 7.2 hip/hiprtc.h main/r/rocm-hipamd/libamdhip64-dev_7.2.4-1%7eexp2_amd64.deb 9000000 'hip/*'
deb hip 5.2 rocrand/rocrand_version.h main/r/rocrand/librocrand-dev_5.3.3-4_amd64.deb 9000000 rocrand/rocrand.h rocrand/rocrand_version.h rocrand/rocrandapi.h 'rocrand/rocrand_discrete*'
deb hip 5.2 hiprand/hiprand.h main/r/rocrand/libhiprand-dev_5.3.3-4_amd64.deb 1000000 'hiprand/*'
deb hip 5.7 hipblas/hipblas.h main/h/hipblas/libhipblas-dev_5.5.1-4_amd64.deb 1000000 'hipblas/*'
deb hip 5.7 hipfft/hipfft.h main/h/hipfft/libhipfft-dev_6.1.2-3_amd64.deb 1000000 'hipfft/*'
deb hip 5.7 rocrand/rocrand_version.h main/r/rocrand/librocrand-dev_5.7.1-6_amd64.deb 1000000 rocrand/rocrand.h rocrand/rocrand_version.h rocrand/rocrandapi.h 'rocrand/rocrand_discrete*'
deb hip 5.7 hiprand/hiprand.h main/r/rocrand/libhiprand-dev_5.7.1-6_amd64.deb 1000000 'hiprand/*'
deb hip 6.4 hipblas-common/hipblas-common.h main/h/hipblas-common/libhipblas-common-dev_7.1.0-1%2bb1_amd64.deb 1000000 'hipblas-common/*'
deb hip 6.4 hipblas/hipblas.h main/h/hipblas/libhipblas-dev_6.4.4-1_amd64.deb 1000000 'hipblas/*'
deb hip 6.4 hipfft/hipfft.h main/h/hipfft/libhipfft-dev_6.4.3-2_amd64.deb 1000000 'hipfft/*'
deb hip 6.4 rocrand/rocrand_version.h main/r/rocrand/librocrand-dev_6.4.3-1_amd64.deb 1000000 rocrand/rocrand.h rocrand/rocrand_version.h rocrand/rocrandapi.h 'rocrand/rocrand_discrete*'
deb hip 6.4 hiprand/hiprand.h main/h/hiprand/libhiprand-dev_6.4.3-1_amd64.deb 1000000 'hiprand/*'
deb hip 7.2 hipblas-common/hipblas-common.h main/h/hipblas-common/libhipblas-common-dev_7.2.4-1%7eexp1_amd64.deb 1000000 'hipblas-common/*'
deb hip 7.2 hipblas/hipblas.h main/h/hipblas/libhipblas-dev_7.2.4-1%7eexp1_amd64.deb 1000000 'hipblas/*'
deb hip 7.2 hipfft/hipfft.h main/h/hipfft/libhipfft-dev_7.2.4-1%7eexp1_amd64.deb 1000000 'hipfft/*'
deb hip 7.2 rocrand/rocrand_version.h main/r/rocrand/librocrand-dev_7.2.4-1%7eexp1_amd64.deb 1000000 rocrand/rocrand.h rocrand/rocrand_version.h rocrand/rocrandapi.h 'rocrand/rocrand_discrete*'
deb hip 7.2 hiprand/hiprand.h main/h/hiprand/libhiprand-dev_7.2.4-1%7eexp1_amd64.deb 1000000 'hiprand/*'
deb nccl 2.22.3 nccl.h contrib/n/nvidia-nccl/libnccl-dev_2.22.3-1-1_amd64.deb 1000000 nccl.h
deb nccl 2.29.7 nccl.h contrib/n/nvidia-nccl/libnccl-dev_2.29.7-1-1_amd64.deb 1000000 nccl.h
# RCCL's, for extract -rccl
deb rccl 5.4 rccl/rccl.h main/r/rccl/librccl-dev_5.4.3-3%2bb1_amd64.deb 1000000 'rccl/*'
deb rccl 7.2 rccl/rccl.h main/r/rccl/librccl-dev_7.2.4-1%7eexp3_amd64.deb 1000000 'rccl/*'

# Of tags of the same release, such as v0.12.4-0 and v0.12.4-1, take the last.
if [ -n "${PUREGPU_NVML_REPOSITORY:-}" ]; then
	for tag in $(git -C "$PUREGPU_NVML_REPOSITORY" tag | grep -E '^v0\.[0-9]+\.[0-9]+-' | sort -rV); do
		release=${tag#v0.} && release=${release%-*}
		to=$dir/nvml/$release
		[ "$release" != 11.0 ] && ! [ -e "$to/nvml.h" ] || continue # the package is for 11.1 and newer
		mkdir -p "$to"
		git -C "$PUREGPU_NVML_REPOSITORY" show "$tag:gen/nvml/nvml.h" >"$to/nvml.h"
	done
	echo "headers: nvml, $(find "$dir/nvml" -name nvml.h | wc -l) releases, with those from $PUREGPU_NVML_REPOSITORY"
fi

toolkits=${PUREGPU_CUDA_TOOLKITS:-}
while [ -n "$toolkits" ]; do
	from=${toolkits%%:*}
	case $toolkits in *:*) toolkits=${toolkits#*:} ;; *) toolkits= ;; esac
	code=$(sed -n 's/^#define CUDA_VERSION \([0-9][0-9]*\).*/\1/p' "$from/cuda.h")
	[ -n "$code" ] || { echo "headers: $from/cuda.h does not contain its version" >&2; exit 1; }
	release=$((code / 1000)).$((code % 1000 / 10))
	for file in "$from"/*.h "$from"/*.hpp "$from"/crt/*.h* "$from"/Openacc/*.h "$from"/Openmp/*.h; do
		to=$dir/cuda/$release
		case $file in */crt/* | */Openacc/* | */Openmp/*) to=$to/$(basename "$(dirname "$file")") ;; esac
		[ "${file##*/}" = nvml.h ] && to=$dir/nvml/$release
		[ -e "$file" ] && ! [ -e "$to/${file##*/}" ] || continue
		mkdir -p "$to"
		cp "$file" "$to"
	done
	echo "headers: CUDA $release, with those from $from"
done

folders=${PUREGPU_CUDNN_HEADERS:-}
while [ -n "$folders" ]; do
	from=${folders%%:*}
	case $folders in *:*) folders=${folders#*:} ;; *) folders= ;; esac
	release=
	for part in MAJOR MINOR PATCHLEVEL; do
		release=$release.$(sed -n "s/^#define CUDNN_$part \([0-9][0-9]*\).*/\1/p" "$from/cudnn_version.h")
	done
	release=${release#.} && release=${release%.0}
	mkdir -p "$dir/cudnn/$release"
	cp "$from"/cudnn*.h "$dir/cudnn/$release"
	echo "headers: cuDNN $release from $from"
done

# nccl TAG: the header of a tag, with the version filled in as NCCL's makefile does.
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
			echo "headers: hip $version: no variable names the repository of its AMD part, left out"
			continue
		fi
		mkdir -p "$to"
		git -C "$PUREGPU_HIP_REPOSITORY" archive "$tag" include/hip | tar -x -C "$to" --strip-components=1
		git -C "$from" archive "$tag" "$path" | tar -x -C "$to" --strip-components="$strip"
		printf '#define HIP_VERSION_MAJOR %s\n#define HIP_VERSION_MINOR %s\n' "${version%.*}" "${version#*.}" >"$to/hip/hip_version.h"
		echo "headers: hip $version from $PUREGPU_HIP_REPOSITORY"
	done
fi

# link LIBRARY FILE OTHER [MACRO]: folders of a library whose headers, one of which is FILE, come
# with another library's. If the library has its own release, it is in the macros MACRO_MAJOR,
# MACRO_MINOR and MACRO_PATCH of FILE.
link() {
	for from in "$dir/$3"/*; do
		[ -e "$from/$2" ] || continue
		release=${from##*/}
		if [ -n "${4:-}" ]; then
			release=
			for part in MAJOR MINOR PATCH; do
				release=$release.$(sed -n "s/^ *#define $4_$part *\([0-9][0-9]*\).*/\1/p" "$from/$2")
			done
			release=${release#.} && release=${release%.0}
		fi
		mkdir -p "$dir/$1"
		[ -e "$dir/$1/$release" ] || ln -s "../$3/${from##*/}" "$dir/$1/$release"
	done
}
link nvrtc nvrtc.h cuda
link nvjitlink nvJitLink.h cuda
link cufft cufft.h cuda CUFFT_VER
link cusolver cusolver_common.h cuda CUSOLVER_VER
link cusparse cusparse.h cuda CUSPARSE_VER
link cublaslt cublas_api.h cuda CUBLAS_VER
link cublas cublas_api.h cuda CUBLAS_VER
link curand curand.h cuda CURAND_VER
link hiprtc hip/hiprtc.h hip
for from in "$dir"/cuda/*; do # CUPTI's release is one number
	[ -e "$from/cupti_version.h" ] || continue
	code=$(sed -n 's/^#define CUPTI_API_VERSION \([0-9][0-9]*\).*/\1/p' "$from/cupti_version.h")
	release=$((code / 10000)).$((code % 10000 / 100)).$((code % 100)) && release=${release%.0}
	mkdir -p "$dir/cupti"
	[ -e "$dir/cupti/$release" ] || ln -s "../cuda/${from##*/}" "$dir/cupti/$release"
done

# pairs LIBRARY FILE OTHER RELEASE:OWN...: the same for headers that do not contain the release by
# which the table counts. OWN is that release, and RELEASE the release of the library with which
# they come.
pairs() {
	library=$1 file=$2 other=$3
	shift 3
	for pair; do
		[ -e "$dir/$other/${pair%:*}/$file" ] || continue
		mkdir -p "$dir/$library"
		[ -e "$dir/$library/${pair#*:}" ] || ln -s "../$other/${pair%:*}" "$dir/$library/${pair#*:}"
	done
}
pairs cufile cufile.h cuda 11.8:1.4 12.4:1.9 12.5:1.10 13.0:1.15
pairs hipblas hipblas/hipblas.h hip 5.7:0.54 6.4:2.4 7.2:3.2
pairs hipfft hipfft/hipfft.h hip 5.7:1.0.27 6.4:1.0.32 7.2:1.0.36
pairs hiprand hiprand/hiprand.h hip 5.2:2.10.9 5.7:2.10.17 6.4:3.3 7.2:4.2

# Releases of the tables that were not found.
for table in symbols/*/table.json; do
	library=$(basename "$(dirname "$table")") absent=
	for release in $(sed -n 's/^"releases": \[\(.*\)\],$/\1/p' "$table" | tr -d '"' | tr , ' '); do
		[ -d "$dir/$library/$release" ] || absent="$absent $release"
	done
	[ -z "$absent" ] || echo "headers: $library: not found; the table keeps its facts about:$absent"
done
