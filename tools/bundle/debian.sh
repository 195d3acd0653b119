# Fetches Debian packages of any release, for scripts that build root folders of other systems. A
# script reads this file after it has set dir, a folder for fetched files, and defined a function
# fail, which prints an error and ends the script. Packages come from the system's source, or from
# DEBIAN_MIRROR.

keyring=/usr/share/keyrings/debian-archive-keyring.gpg

# apt COMMAND ARGUMENT... works with a list and a cache in $dir alone, independent of the installed
# packages. It tries each file three times, and waits up to a minute for an answer.
apt() {
	command=$1
	shift
	"$command" -qq -o Dir::Etc::sourcelist="$dir/sources.list" -o Dir::Etc::sourceparts=- -o Dir::State::Lists="$dir/lists" \
		-o Dir::State::status=/dev/null -o Dir::Cache="$dir/cache" -o APT::Architecture=amd64 -o APT::Architectures::=amd64 \
		-o Debug::NoLocking=1 -o APT::Sandbox::User=root -o Acquire::Languages=none -o Acquire::Retries=2 \
		-o Acquire::http::Timeout=60 "$@"
}

# debian SUITE COMPONENT FOLDER PACKAGE... fetches packages of a suite into a folder, which it
# empties first.
debian() {
	suite=$1 component=$2 folder=$3
	shift 3
	command -v apt-get >/dev/null || fail "there is no apt-get to fetch Debian's $* with"
	mirror=${DEBIAN_MIRROR:-$(cat /etc/apt/sources.list /etc/apt/sources.list.d/*.list /etc/apt/sources.list.d/*.sources 2>/dev/null |
		grep -v '^ *#' | grep -oE 'https?://[^ ]+/debian/?( |$)' | head -n 1 | tr -d ' ')}
	[ -n "$mirror" ] || fail "apt has no source of Debian's packages; name one in DEBIAN_MIRROR"
	[ -e "$keyring" ] || fail "there is no $keyring, by which Debian's packages are known to be Debian's; install debian-archive-keyring"
	rm -rf "$folder" "$dir/lists" "$dir/cache"
	mkdir -p "$folder" "$dir/lists/partial" "$dir/cache/archives/partial"
	echo "deb [arch=amd64 signed-by=$keyring] $mirror $suite $component" >"$dir/sources.list"
	apt apt-get update --error-on=any || fail "the list of Debian $suite's packages could not be fetched"
	(cd "$folder" && apt apt-get download "$@") || fail "Debian $suite's $* could not be fetched"
}

# fetch SUITE PACKAGE... unpacks Debian packages into the folder SUITE, once.
fetch() {
	suite=$1 root=$dir/$1
	shift
	[ ! -e "$root.fetched" ] || return 0
	debian "$suite" main "$dir/debs" "$@"
	# In newer systems these are links. Packages of older ones are unpacked through them.
	rm -rf "$root"
	for folder in bin lib lib64; do
		mkdir -p "$root/usr/$folder"
		ln -s "usr/$folder" "$root/$folder"
	done
	for deb in "$dir"/debs/*.deb; do
		dpkg-deb --fsys-tarfile "$deb" | tar -C "$root" -xf - --keep-directory-symlink
	done
	rm -rf "$dir/debs" "$dir/lists" "$dir/cache" "$dir/sources.list"
	touch "$root.fetched"
}
