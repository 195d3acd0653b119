#!/bin/sh
# Copies the C libraries that tests compile, for a machine without a compiler: it runs the tests
# with a compiler that leaves copies.
#
# usage: fixtures.sh DIR TEST FOLDER, where TEST is a compiled test that runs in FOLDER; CC names the compiler, gcc if unset

set -eu
dir=$1 test=$2 folder=$3
cc=$(mktemp)
trap 'rm -f "$cc"' EXIT
cat >"$cc" <<'EOF'
#!/bin/sh
"${CC:-gcc}" "$@" || exit
while [ $# -gt 1 ]; do
	if [ "$1" = -o ]; then cp "$2" "$KEEP/"; fi
	shift
done
EOF
chmod +x "$cc"
cd "$folder"
KEEP=$dir PUREGPU_TEST_CC=$cc "$test" -test.short -test.run 'Echo|CallWords|CLibrary' >/dev/null
