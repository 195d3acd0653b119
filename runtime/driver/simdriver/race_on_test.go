//go:build race

package simdriver_test

import (
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
	"unsafe"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/driver/simdriver"
)

const raceEnabled = true

// races holds functions that cause a data race unless ordered is true.
var races = map[string]func(t *testing.T, ordered bool){
	"streams": streamsRace,
	"roots": func(t *testing.T, ordered bool) {
		graphRace(t, map[int][]int{0: nil, 1: nil}, 0, 1, ordered)
	},
	"siblings": func(t *testing.T, ordered bool) {
		graphRace(t, map[int][]int{0: nil, 1: {0}, 2: {0}, 3: {1, 2}}, 1, 2, ordered)
	},
	"a successor of one of two": func(t *testing.T, ordered bool) { // node 3 comes after node 0, and not after node 1
		graphRace(t, map[int][]int{0: nil, 1: nil, 2: {0, 1}, 3: {0}}, 1, 3, ordered)
	},
	"the other successor": func(t *testing.T, ordered bool) {
		graphRace(t, map[int][]int{0: nil, 1: nil, 2: {1, 0}, 3: {1}}, 0, 3, ordered)
	},
	"ranks":     ranksRace,
	"pool":      poolRace,
	"late pool": latePoolRace,
}

// TestRaceIsFound checks in a subprocess that the race detector reports unordered work, and does
// not report ordered work.
func TestRaceIsFound(t *testing.T) {
	const env = "SIMDRIVER_TEST_RACE"
	if mode, order, _ := strings.Cut(os.Getenv(env), ","); mode != "" {
		races[mode](t, order == "ordered")
		return
	}
	for mode := range races {
		for _, order := range []string{"ordered", "unordered"} {
			c := exec.Command(os.Args[0], "-test.run=^TestRaceIsFound$")
			c.Env = append(os.Environ(), env+"="+mode+","+order, "GORACE=atexit_sleep_ms=0")
			out, err := c.CombinedOutput()
			if found := strings.Contains(string(out), "DATA RACE"); found != (order == "unordered") || found != (err != nil) {
				t.Errorf("%s, %s: a race was found: %v, %v\n%s", mode, order, found, err, out)
			}
		}
	}
}

// increment is a kernel that writes to memory.
func increment(g *simdriver.Grid, p driver.Ptr) {
	if x, err := simdriver.View[uint32](g, p, 16); err == nil {
		for i := range x {
			x[i]++
		}
	}
}

// graphRace makes two nodes of a graph write to the same memory. The map after holds the
// predecessors of each node.
func graphRace(t *testing.T, after map[int][]int, one, other int, ordered bool) {
	_, vs := open(t, simdriver.Config{Kernels: kernels(map[string]any{"inc": increment})})
	v := vs[0]
	s, f, g := stream(t, v), function(t, v, "inc"), graph(t, v)
	shared := alloc(t, v, driver.DeviceMem, 64)
	if ordered {
		after[other] = append(after[other], one)
	}
	nodes := make([]driver.Node, len(after))
	for i := range nodes {
		m := alloc(t, v, driver.DeviceMem, 64)
		if i == one || i == other {
			m = shared
		}
		var ns []driver.Node
		for _, a := range after[i] {
			ns = append(ns, nodes[a])
		}
		nodes[i] = node(t, v, g, kernelOp(f, unsafe.Pointer(&m.Ptr)), ns...)
	}
	x := instantiate(t, v, g)
	for range 100 {
		check(t, graphs(v).LaunchGraph(s, x))
	}
	check(t, drain(t, v, s))
}

// ranksRace makes two devices write to the same memory. If ordered is true, a collective of both
// devices orders the writes.
func ranksRace(t *testing.T, ordered bool) {
	x := newCluster(t, 2, simdriver.Config{Kernels: kernels(map[string]any{"inc": increment})})
	shared := alloc(t, x.vs[0], driver.ManagedMem, 64)
	ms := x.numbers(t, 1)
	for i := range x.vs {
		check(t, x.d.StallDevice(i)) // nothing may execute during the calls: an execution would order the operations
	}
	for i, v := range x.vs {
		f := function(t, v, "inc")
		if i == 0 {
			check(t, launch(v, x.ss[i], f, unsafe.Pointer(&shared.Ptr)))
		}
		if ordered {
			check(t, x.collect(i, sum(ms[i])))
		}
		if i == 1 {
			check(t, launch(v, x.ss[i], f, unsafe.Pointer(&shared.Ptr)))
		}
	}
	ends := []driver.Event{x.record(t, 0), x.record(t, 1)}
	for i := range x.vs {
		check(t, x.d.ResumeDevice(i))
	}
	for i, e := range ends {
		check(t, wait(t, x.vs[i], e))
	}
}

// poolRace makes two streams write to the same memory of a pool. The pool has many blocks.
func poolRace(t *testing.T, ordered bool) {
	d, vs := open(t, simdriver.Config{Kernels: kernels(map[string]any{"inc": increment})})
	v := vs[0]
	a, b, f, p := stream(t, v), stream(t, v), function(t, v, "inc"), pool(t, v, 0)
	var ms []driver.Mem
	for range 100 {
		ms = append(ms, allocAsync(t, v, a, p, 64))
	}
	check(t, drain(t, v, a))
	check(t, d.StallDevice(0)) // nothing may execute during the calls: an execution would order the operations
	for _, m := range ms {
		check(t, launch(v, a, f, unsafe.Pointer(&m.Ptr)))
		if ordered {
			check(t, v.StreamWait(b, record(t, v, a)))
		}
		check(t, launch(v, b, f, unsafe.Pointer(&m.Ptr)))
	}
	ends := []driver.Event{record(t, v, a), record(t, v, b)}
	check(t, d.ResumeDevice(0))
	for _, e := range ends {
		check(t, wait(t, v, e))
	}
}

// latePoolRace makes two streams use the same memory of a pool, one long after the other. In
// between the pool has other uses.
func latePoolRace(t *testing.T, ordered bool) {
	d, vs := open(t, simdriver.Config{Kernels: kernels(map[string]any{"inc": increment})})
	v := vs[0]
	a, b, f, p := stream(t, v), stream(t, v), function(t, v, "inc"), pool(t, v, 0)
	m, other := allocAsync(t, v, a, p, 64), allocAsync(t, v, a, p, 64)
	check(t, drain(t, v, a))
	check(t, d.StallStream(a))
	check(t, launch(v, a, f, unsafe.Pointer(&m.Ptr)))
	check(t, launch(v, a, f, unsafe.Pointer(&other.Ptr)))
	check(t, d.ResumeStream(a))
	time.Sleep(10 * time.Millisecond) // so that a has probably executed its work; the race is found without this pause too
	allocAsync(t, v, stream(t, v), p, 64)
	if ordered {
		check(t, v.StreamWait(b, record(t, v, a)))
	}
	check(t, launch(v, b, f, unsafe.Pointer(&m.Ptr)))
	check(t, drain(t, v, b))
}

// streamsRace makes two streams write to the same memory, several times.
func streamsRace(t *testing.T, ordered bool) {
	d, vs := open(t, simdriver.Config{Kernels: kernels(map[string]any{"inc": increment})})
	v := vs[0]
	a, b, f, m := stream(t, v), stream(t, v), function(t, v, "inc"), alloc(t, v, driver.DeviceMem, 64)
	check(t, d.StallDevice(0)) // nothing may execute during the calls: an execution would order the operations
	for range 100 {
		check(t, launch(v, a, f, unsafe.Pointer(&m.Ptr)))
		if ordered {
			check(t, v.StreamWait(b, record(t, v, a)))
		}
		check(t, launch(v, b, f, unsafe.Pointer(&m.Ptr)))
		if ordered {
			check(t, v.StreamWait(a, record(t, v, b)))
		}
	}
	ends := []driver.Event{record(t, v, a), record(t, v, b)}
	check(t, d.ResumeDevice(0))
	for _, e := range ends {
		check(t, wait(t, v, e))
	}
}
