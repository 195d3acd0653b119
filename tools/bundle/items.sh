# What run.sh and four.sh have in common: it unpacks the bundle in $here, which is from then on the folder with bin, fixtures
# and src.

limit=300 # seconds each

table=$(mktemp)
log=$(mktemp)
tmp=$(mktemp -d)
trap 'rm -rf "$table" "$log" "$tmp"' EXIT
failed=0
tar -C "$tmp" -xzf "$here/files.tar.gz" || exit
here=$tmp

# Without a compiler the tests take the libraries that were compiled beforehand.
command -v gcc >/dev/null 2>&1 || export PUREGPU_TEST_FIXTURES="$here/fixtures"

# item NAME FOLDER COMMAND... runs a command and adds a line to the table.
item() {
	name=$1 folder=$2
	shift 2
	echo "== $name"
	start=$(date +%s)
	if (cd "$folder" && timeout $limit "$@") >"$log" 2>&1; then
		result=ok
		if grep -q ': not run: ' "$log"; then result=missing; fi
	else
		result="FAILED ($?)"
		failed=1
	fi
	cat "$log"
	skipped=$(grep -c '^ *--- SKIP' "$log")
	passed=$(grep -c '^ *--- PASS' "$log")
	case $result in
	missing) note=$(grep ': not run: ' "$log" | head -n 1) ;;
	*) note=$(grep -v '^[[:space:]]*$' "$log" | tail -n 1) ;;
	esac
	[ "$passed$skipped" = 00 ] || note="$passed passed, $skipped skipped"
	printf '%-11s %-12s %4s s  %.100s\n' "$name" "$result" "$(($(date +%s) - start))" "$note" >>"$table"
}

# finish prints the table and ends.
finish() {
	echo "== table"
	cat "$table"
	exit $failed
}
