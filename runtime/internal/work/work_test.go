package work

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"testing"
	"unsafe"

	"github.com/puregpu/puregpu/runtime/driver"
)

// A row has an operation and its expected translation.
type row struct {
	name   string
	op     Op
	calls  []string // calls on a stream; nil if Run cannot translate the operation
	peer   []string // the calls if src belongs to another device; nil if the calls are the same
	nodes  []driver.NodeOp
	noNode bool // no graph node can do the operation
	bytes  uint64
	plain  bool
	onHost bool
	unsure bool // after a failure the stream may have received some work
}

const (
	dst   = driver.Ptr(0x1000)
	src   = driver.Ptr(0x2000)
	timer = driver.Event(0x77)
	small = 64 << 10
)

var (
	pinned byte = 'p'
	launch      = driver.Launch{Function: 5, Grid: [3]uint32{1, 2, 3}, Block: [3]uint32{4, 5, 6}, SharedMem: 7,
		Attrs: driver.LaunchAttrs{Cluster: [3]uint32{1, 1, 3}, Cooperative: true, Dependent: true, Priority: -2, Carveout: 50}}
)

func copyNode(dst, src driver.Ptr, n uint64) []driver.NodeOp {
	return []driver.NodeOp{{Kind: driver.CopyNode, Dst: dst, Src: src, Count: n}}
}

// rows lists the rows of each kind, one for each form that has its own translation.
var rows = [][]row{
	Barrier: {{name: "barrier", calls: []string{}, plain: true}},
	Fill: {
		{name: "fill", op: Op{Pattern: 0xab, Count: small}, bytes: small, plain: true,
			calls: []string{"fill 65536 of 0xab, width 1, at 0x1000 on 9"},
			nodes: []driver.NodeOp{{Kind: driver.FillNode, Dst: dst, Pattern: 0xab, Width: 1, Count: small}}},
		{name: "fill", op: Op{Unit: 1, Pattern: 0xabcd, Count: 3}, bytes: 6, plain: true,
			calls: []string{"fill 3 of 0xabcd, width 2, at 0x1000 on 9"},
			nodes: []driver.NodeOp{{Kind: driver.FillNode, Dst: dst, Pattern: 0xabcd, Width: 2, Count: 3}}},
		{name: "fill", op: Op{Unit: 2, Pattern: 0xabcdef01, Count: small/4 + 1}, bytes: small + 4, plain: true,
			calls: []string{"fill 16385 of 0xabcdef01, width 4, at 0x1000 on 9"},
			nodes: []driver.NodeOp{{Kind: driver.FillNode, Dst: dst, Pattern: 0xabcdef01, Width: 4, Count: small/4 + 1}}},
	},
	Fill8: {{name: "fill", op: Op{Unit: 3, Pattern: 1, High: 2, Count: small / 8}, bytes: small, plain: true,
		calls: []string{"fill 8192 of 0x1, 8 apart, at 0x1000 on 9", "fill 8192 of 0x2, 8 apart, at 0x1004 on 9"},
		nodes: []driver.NodeOp{
			{Kind: driver.FillNode, Dst: dst, Pattern: 1, Width: 4, Count: small / 8, Stride: 8},
			{Kind: driver.FillNode, Dst: dst + 4, Pattern: 2, Width: 4, Count: small / 8, Stride: 8},
		}}},
	Copy: {
		{name: "copy", op: Op{Count: small}, bytes: small, plain: true,
			calls: []string{"copy 65536 from 0x2000 to 0x1000 on 9"},
			peer:  []string{"copy 65536 from 0x2000 of the other to 0x1000 of itself on 9"},
			nodes: copyNode(dst, src, small)},
		{name: "copy", op: Op{Count: small + 1}, bytes: small + 1, plain: true,
			calls: []string{"copy 65537 from 0x2000 to 0x1000 on 9"},
			peer:  []string{"copy 65537 from 0x2000 of the other to 0x1000 of itself on 9"},
			nodes: copyNode(dst, src, small+1)},
	},
	Upload: {{name: "upload", op: Op{Count: 5}, bytes: 5,
		calls: []string{"upload 5 from 'p' to 0x1000 on 9"},
		peer:  []string{"copy 5 from 0x3000 of the other to 0x1000 of itself on 9"},
		nodes: copyNode(dst, 0x3000, 5)}},
	Download: {{name: "download", op: Op{Count: 5}, bytes: 5,
		calls: []string{"download 5 from 0x2000 to 'p' on 9"},
		peer:  []string{"copy 5 from 0x2000 of the other to 0x3000 of itself on 9"},
		nodes: copyNode(0x3000, src, 5)}},
	Prefetch: {{name: "prefetch", op: Op{To: uint8(driver.HostMem), Count: 5}, bytes: 5, noNode: true,
		calls: []string{"prefetch 5 at 0x1000 to 1 on 9"}}},
	Launch: {{name: "launch",
		calls: []string{"launch {5 [1 2 3] [4 5 6] 7 [] {[1 1 3] true true -2 50} 0} on 9"},
		nodes: []driver.NodeOp{{Kind: driver.KernelNode, Launch: launch}}}},
	Nothing: {{name: "nothing", calls: []string{}}},
	Timestamp: {{name: "timestamp",
		calls: []string{"record 0x77 on 9"},
		nodes: []driver.NodeOp{{Kind: driver.RecordNode, Event: timer}}}},
	EventRecord: {{name: "event record", noNode: true, calls: []string{"record 0x77 on 9"}}},
	EventWait:   {{name: "event wait", noNode: true, calls: []string{"9 waits for 0x77"}}},
	ValueWrite: {{name: "value write", op: Op{Pattern: 0x89abcdef, High: 0x1234567}, noNode: true, plain: true,
		calls: []string{"write 0x123456789abcdef to 0x1000 on 9"}}},
	ValueWait: {{name: "value wait", op: Op{Pattern: 0x89abcdef, High: 0x1234567}, noNode: true, plain: true,
		calls: []string{"9 waits for 0x123456789abcdef at 0x1000"}}},
	Alloc: {
		{name: "alloc", noNode: true, plain: true},
		{name: "alloc", op: Op{Count: small}, noNode: true, bytes: small, plain: true},
		{name: "alloc", op: Op{Count: small + 1}, noNode: true, bytes: small + 1, plain: true},
	},
	Free:    {{name: "free", noNode: true, plain: true}},
	Execute: {{name: "execute", noNode: true}},
	Collect: {{name: "collective", noNode: true}},
	Native: {{name: "native", unsure: true,
		calls: []string{"native with [4096 8192] on 9"},
		nodes: []driver.NodeOp{{Kind: driver.ChildNode, Child: 0x55}}}},
	HostCall: {{name: "host call", noNode: true, onHost: true}},
	Notify:   {{name: "notify", noNode: true, onHost: true}},
	Transfer: {{name: "transfer", noNode: true, onHost: true}},
	Control:  {{name: "control", noNode: true, onHost: true}},
}

// each calls a function for each row, with the kind set in its operation.
func each(t *testing.T, do func(t *testing.T, r *row)) {
	if len(rows) != int(kinds) {
		t.Fatalf("%d kinds in the table of %d", len(rows), kinds)
	}
	for k, list := range rows {
		if len(list) == 0 {
			t.Errorf("kind %d, %v: not in the table", k, Kind(k))
		}
		for i := range list {
			r := list[i]
			r.op.Kind = Kind(k)
			t.Run(fmt.Sprintf("%v %d", Kind(k), i), func(t *testing.T) { do(t, &r) })
		}
	}
}

func extra() Extra {
	return Extra{Pinned: 0x3000, Host: unsafe.Pointer(&pinned), Launch: &launch, Event: timer, Child: 0x55}
}

// TestKinds checks the names and the methods of the kinds.
func TestKinds(t *testing.T) {
	each(t, func(t *testing.T, r *row) {
		k := r.op.Kind
		if k.String() != r.name || k.Plain() != r.plain || k.OnHost() != r.onHost {
			t.Errorf("%q, plain %v, on the host %v; want %q, %v, %v", k, k.Plain(), k.OnHost(), r.name, r.plain, r.onHost)
		}
		if r.op.Bytes() != r.bytes {
			t.Errorf("%d bytes, want %d", r.op.Bytes(), r.bytes)
		}
		cut := r.op
		if cut.Cut(r.bytes); cut != r.op {
			t.Errorf("%v after Cut to its own size, want %v", cut, r.op)
		}
		if cut.Cut(8); cut.Bytes() > min(r.bytes, 8) {
			t.Errorf("%d bytes after a cut to 8", cut.Bytes())
		}
		if n := k == Copy || k == Upload || k == Download; r.op.Copies() != n || (r.peer != nil) && !n {
			t.Errorf("copies %v", r.op.Copies())
		}
	})
}

// TestRun checks the calls of each operation on a stream, also if one of them fails.
func TestRun(t *testing.T) {
	each(t, func(t *testing.T, r *row) {
		run := func(fail int, peer bool, want []string) {
			d, x := &fakeDevice{fail: fail}, extra()
			if r.op.Kind == Native {
				ranges := [2]driver.Ptr{dst, src}
				x.Launch = &driver.Launch{Args: []unsafe.Pointer{unsafe.Pointer(&ranges[0]), unsafe.Pointer(&ranges[1])}}
				x.Native = func(h driver.Stream, ranges []driver.Ptr) error { return d.note("native with %d on %d", ranges, h) }
			}
			if peer {
				x.DstOf, x.SrcOf = d, other
			}
			started, err := r.op.Run(d, 9, dst, src, &x)
			if !slices.Equal(d.calls, want) {
				t.Errorf("calls %q, want %q", d.calls, want)
			}
			if fail > 0 && (!errors.Is(err, errFake) || started != (fail > 1 || r.unsure)) {
				t.Errorf("call %d fails: %v, started %v", fail, err, started)
			}
			if fail == 0 && (err != nil || started != (len(want) > 0)) {
				t.Errorf("%v, started %v", err, started)
			}
		}
		if r.calls == nil {
			x := extra()
			if started, err := r.op.Run(&fakeDevice{}, 9, dst, src, &x); started || err != errKind {
				t.Errorf("%v, started %v", err, started)
			}
			return
		}
		run(0, false, r.calls)
		for i := range r.calls {
			run(i+1, false, r.calls[:i+1])
		}
		if d := new(fakeDevice); r.plain {
			if _, err := r.op.Run(d, 9, dst, src, nil); err != nil || !slices.Equal(d.calls, r.calls) {
				t.Errorf("with addresses alone: calls %q, %v", d.calls, err)
			}
		}
		if r.peer != nil {
			run(0, true, r.peer)
			run(1, true, r.peer)
		} else {
			run(0, true, r.calls)
		}
	})
}

// TestNode checks the graph nodes of each operation. When the operands move, the addresses in the
// nodes must move too.
func TestNode(t *testing.T) {
	each(t, func(t *testing.T, r *row) {
		x := extra()
		if r.noNode {
			if _, err := r.op.Node(0, dst, src, &x); err != errKind {
				t.Errorf("a node: %v", err)
			}
			return
		}
		if r.op.Nodes() != len(r.nodes) {
			t.Fatalf("%d nodes, want %d", r.op.Nodes(), len(r.nodes))
		}
		const newDst, newSrc = dst + 0x100, src + 0x30
		for i, want := range r.nodes {
			n, err := r.op.Node(i, dst, src, &x)
			if err != nil || !reflect.DeepEqual(n, want) {
				t.Fatalf("node %d: %+v, %v; want %+v", i, n, err, want)
			}
			n.Dst, n.Src = moveTo(n.Dst, dst, newDst), moveTo(n.Src, src, newSrc)
			if again, err := r.op.Node(i, newDst, newSrc, &x); err != nil || !reflect.DeepEqual(n, again) {
				t.Errorf("node %d, moved: %+v, want %+v, %v", i, n, again, err)
			}
			if r.op.Resizable() {
				cut := r.op
				cut.Cut(4)
				less, err := cut.Node(i, newDst, newSrc, &x)
				if less.Count = n.Count; err != nil || !reflect.DeepEqual(less, n) {
					t.Errorf("node %d differs by more than its size from one of less: %+v, %+v, %v", i, less, n, err)
				}
				if n.Stride != 0 {
					t.Errorf("node %d has a stride, and other sizes cannot be set", i)
				}
			}
		}
	})
}

// moveTo returns the new address after an operand at from has moved to to. Addresses before the
// operand, or more than 8 bytes after from, stay.
func moveTo(at, from, to driver.Ptr) driver.Ptr {
	if at < from || at > from+8 {
		return at
	}
	return at - from + to
}

func TestSetFill(t *testing.T) {
	for _, c := range []struct {
		pattern []byte
		bytes   uint64
		want    Op
	}{
		{[]byte{0x12}, 5, Op{Kind: Fill, Unit: 0, Pattern: 0x12, Count: 5}},
		{[]byte{0x12, 0x34}, 6, Op{Kind: Fill, Unit: 1, Pattern: 0x3412, Count: 3}},
		{[]byte{1, 2, 3, 4}, 8, Op{Kind: Fill, Unit: 2, Pattern: 0x04030201, Count: 2}},
		{[]byte{1, 2, 3, 4, 1, 2, 3, 4}, 16, Op{Kind: Fill, Unit: 2, Pattern: 0x04030201, High: 0x04030201, Count: 4}},
		{[]byte{1, 2, 3, 4, 5, 6, 7, 8}, 16, Op{Kind: Fill8, Unit: 3, Pattern: 0x04030201, High: 0x08070605, Count: 2}},
		{[]byte{0, 0, 0, 0, 0, 0, 0, 1}, 0, Op{Kind: Fill8, Unit: 3, High: 0x01000000}},
	} {
		var op Op
		bits, _ := Pattern(c.pattern)
		if op.SetFill(bits, uint64(len(c.pattern)), c.bytes); op != c.want || op.Bytes() != c.bytes {
			t.Errorf("%v: %+v, %d bytes; want %+v", c.pattern, op, op.Bytes(), c.want)
		}
	}
	for n := range 20 {
		if _, ok := Pattern(make([]byte, n)); ok != (n == 1 || n == 2 || n == 4 || n == 8) {
			t.Errorf("a pattern of %d bytes: %v", n, n != 1 && n != 2 && n != 4 && n != 8)
		}
	}
}

func TestSetValue(t *testing.T) {
	for _, v := range []uint64{0, 1, 1<<32 - 1, 1 << 32, 1<<63 - 1, 0x123456789abcdef} {
		var op Op
		if op.SetValue(ValueWait, v); op.Kind != ValueWait || op.Value() != v || op.Bytes() != 0 {
			t.Errorf("%#x: %+v, value %#x", v, op, op.Value())
		}
	}
}

// TestRunAllocates checks that translating allocates nothing.
func TestRunAllocates(t *testing.T) {
	d := quiet{}
	var at driver.Device = d
	op := Op{Kind: Fill, Count: 4}
	n := testing.AllocsPerRun(100, func() {
		x := extra()
		if started, err := op.Run(at, 9, dst, src, &x); !started || err != nil {
			t.Fatal(started, err)
		}
		if _, err := op.Node(0, dst, src, &x); err != nil {
			t.Fatal(err)
		}
	})
	if n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// A quiet device does nothing.
type quiet struct{ driver.Device }

func (quiet) Fill(driver.Stream, driver.Ptr, uint32, int, uint64) error { return nil }
