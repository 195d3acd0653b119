#!/bin/bash
# Serves a model on this machine under load, with clients that disconnect or are killed, and checks
# that the answers stay right and all memory is given back. Needs no Go. Use:
#
#	CGO_ENABLED=0 go build -o llama ./runtime/examples/llama
#	runtime/examples/llama/testdata/serving.sh ./llama 480 -model folder
#
# With RANKS=2 it also serves with two processes, with a GPU each, and kills one of them.
set -u
llama=$1 seconds=$2
shift 2
port=${PORT:-18080} work=$(mktemp -d) failed=0
url=http://127.0.0.1:$port
size="-questions ${QUESTIONS:-64} -prompt ${PROMPT:-512} -tokens ${TOKENS:-128}"
table=$work/table
trap 'kill $(jobs -p) 2>/dev/null; rm -rf "$work"' EXIT

get() { # path
	exec 3<>/dev/tcp/127.0.0.1/$port && printf 'GET %s HTTP/1.0\r\n\r\n' "$1" >&3 && cat <&3
	exec 3>&-
}
await() { # process
	until (exec 3<>/dev/tcp/127.0.0.1/$port) 2>/dev/null; do
		kill -0 "$1" 2>/dev/null || { echo "the server has ended"; cat "$work"/server*.log; exit 1; }
		sleep 0.1
	done
}
load() { # name clients seconds flags
	local name=$1 clients=$2 time=$3
	shift 3
	echo "== $name"
	local result=ok
	"$llama" load -url $url -clients $clients -duration ${time}s $size "$@" >"$work/out" 2>&1 || { result=FAILED failed=1; }
	cat "$work/out"
	printf '%-34s %-6s %s\n' "$name" $result "$(grep '^next token' "$work/out")" >>"$table"
}
idle() { # name
	local left
	for _ in $(seq 50); do
		left=$(get /metrics | grep -E '^puregpu_llama_(queue_length|running|pages_used|requests_in_progress) ' | grep -vc ' 0$')
		[ "$left" = 0 ] && break
		sleep 0.1
	done
	[ "$left" = 0 ] && printf '%-34s ok\n' "$1" >>"$table" || { failed=1; printf '%-34s FAILED %s kinds left\n' "$1" "$left" >>"$table"; get /metrics; }
}

"$llama" serve "$@" -invariant -addr 127.0.0.1:$port 2>"$work/server.log" &
server=$!
await $server
load "64 clients, $seconds s" 64 $seconds
short=${SHORT:-$((seconds / 8 + 2))}
load "cancel storm and bad prompts" 64 $short -cancel 0.7 -bad 0.1
idle "nothing left after the storm"
echo "== clients killed"
for i in 1 2 3; do
	"$llama" load -url $url -clients 40 -duration 1h $size -seed $i >/dev/null 2>&1 &
	clients="${clients:-} $!"
done
sleep $short
kill -9 $clients
idle "nothing left after kill -9 of clients"
load "again, after all that" 64 $short
kill -TERM $server
wait $server && printf '%-34s ok\n' "graceful end" >>"$table" || { failed=1; printf '%-34s FAILED\n' "graceful end" >>"$table"; cat "$work/server.log"; }

if [ "${RANKS:-1}" = 2 ]; then
	for rank in 0 1; do
		"$llama" serve "$@" -invariant -addr 127.0.0.1:$port -rank $rank -ranks 2 -rendezvous 127.0.0.1:$((port + 1)) 2>"$work/server$rank.log" &
		ranks[$rank]=$!
	done
	await ${ranks[0]}
	load "two ranks" 64 $short
	"$llama" load -url $url -clients 8 -duration 20s $size >"$work/out" 2>&1 &
	running=$!
	sleep 5
	kill -9 ${ranks[1]}
	wait $running
	result=ok
	grep -q 'rank 1' "$work/out" || { result=FAILED failed=1; }
	get /healthz | grep -q '503' || { result=FAILED failed=1; }
	head -5 "$work/out" | cut -c1-300
	printf '%-34s %s\n' "requests say that rank 1 is lost" $result >>"$table"
	kill -TERM ${ranks[0]}
	wait ${ranks[0]}
fi
echo "== results"
cat "$table"
exit $failed
