package engine_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/driver/simdriver"
	"github.com/puregpu/puregpu/runtime/gpu"
	"github.com/puregpu/puregpu/runtime/internal/testkit"
	"github.com/puregpu/puregpu/runtime/interop"
)

var (
	soak = flag.Bool("gpu.soak", false, "submit a million operations in the random test, and fail more calls of traced work")
	seed = flag.Uint64("gpu.seed", 0, "seed of the random test; 0 takes one")
)

// TestRandom submits random graphs of operations, mostly in a random order, from one to three
// goroutines. It compares the results with a sequential model. The graphs run on 1, 2 or 8 devices,
// with the rules of CUDA or of HIP. In some graphs a second process uses part of the memory too.
// Some operations have a point in Order.Free or a Timing. Most graphs have a trace, or a tracer
// with room for only a few records. Meanwhile other goroutines trim devices, close and trim some
// pools, and read statistics.
//
// In some graphs a device is closed or lost. Then the test checks four rules: if the point of a
// node is reached, all points that the node waits for are reached; a node fails only with an error
// that has a known cause; devices that do not wait for the closed or lost one keep working; nothing
// hangs.
func TestRandom(t *testing.T) {
	now := goleak.IgnoreCurrent()
	t.Cleanup(func() { goleak.VerifyNone(t, now) })
	first := *seed
	if first == 0 {
		first = rand.Uint64()
	}
	want := 20_000
	switch {
	case *soak:
		want = 1_000_000
	case testing.Short():
		want = 10_000
	}
	submitted, rounds := 0, [modes]int{}
	failed, operations, over := 0, map[string]int{}, map[string]int{}
	round := uint64(0)
	defer func() {
		if t.Failed() {
			t.Logf("failed with -gpu.seed=%d", first+round)
		}
	}()
	for ; submitted < want; round++ {
		g := newGraph(t, first+round)
		g.run()
		rounds[g.mode]++
		submitted += len(g.nodes)
		failed += g.failed
		over[g.over]++
		for _, x := range g.nodes {
			operations[x.what]++
		}
		if t.Failed() {
			return
		}
	}
	t.Logf("%d submissions, of which %d failed, in %d graphs, %d with a device closed and %d with one lost; the first seed was %d", submitted, failed,
		rounds[sound], rounds[closes], rounds[loses], first)
	t.Logf("graphs: %v", over)
	t.Logf("operations: %v", operations)
}

// A nativeSide has two native streams that other code (the test) has created on a device: one that
// the runtime has adopted, and one that only other code uses.
type nativeSide struct {
	t   *testing.T
	dev *gpu.Device
	v   driver.Device
	q   *gpu.Queue
	on  driver.Stream  // the native stream that q submits to
	own driver.Stream  // the stream that only other code uses
	wg  sync.WaitGroup // counts running goroutines of fill
}

func newNativeSide(t *testing.T, sim *simdriver.Driver, dev *gpu.Device, i int) *nativeSide {
	n := &nativeSide{t: t, dev: dev}
	var err error
	if n.v, err = sim.Open(i); err != nil {
		t.Fatal(err)
	}
	if err := testkit.Natively(n.v, func() (err error) {
		if n.on, err = n.v.NewStream(); err == nil {
			n.own, err = n.v.NewStream()
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	if n.q, err = interop.AdoptStream(dev, n.on); err != nil {
		t.Fatal(err)
	}
	return n
}

// fill lets other code fill the range on the stream n.own. That stream waits for an event that the
// runtime records, and n.q waits for an event behind the fill. The second wait signals the node's
// point.
func (n *nativeSide) fill(x *node, o gpu.Order, r gpu.Range, with byte) error {
	before, err := interop.NewEvent(n.dev)
	after, err2 := interop.NewEvent(n.dev)
	ready, err3 := gpu.NewSemaphore(0)
	if err := errors.Join(err, err2, err3); err != nil {
		return err
	}
	q := n.dev.Queue(0)
	if err := q.Submit(gpu.Order{Wait: o.Wait, Signal: pts(ready, 1)}, interop.RecordEvent(before)); err != nil {
		return err
	}
	n.wg.Go(func() {
		err := ready.WaitIssued(context.Background(), 1)
		if err == nil {
			err = testkit.Natively(n.v, func() error {
				return errors.Join(n.v.StreamWait(n.own, before.Native()), n.v.Fill(n.own, r.Buffer.Ptr()+driver.Ptr(r.Offset), uint32(with), 1, r.Size),
					n.v.Record(after.Native(), n.own))
			})
		}
		if err == nil {
			// Only the wait for the event (after) orders this submission behind the other code's
			// fill.
			err = x.give(n.q, o, interop.WaitEvent(after))
		}
		if err != nil {
			n.t.Error(err)
			o.Signal[0].Semaphore.Fail(err)
			return
		}
		// When the point is reached, no stream waits for the events any more.
		o.Signal[0].Semaphore.Wait(context.Background(), o.Signal[0].Value)
		before.Close()
		after.Close()
	})
	return nil
}

// close destroys the streams. The runtime's device is already closed.
func (n *nativeSide) close() error {
	n.wg.Wait()
	return testkit.Natively(n.v, func() error {
		return errors.Join(n.v.DestroyStream(n.on), n.v.DestroyStream(n.own), n.v.Close())
	})
}

// A mode says whether a device is closed or lost while a graph runs.
type mode int

const (
	sound  mode = iota // no device is closed or lost
	closes             // a device is closed
	loses              // a device is lost
	modes
)

// A node is an operation of a random graph.
type node struct {
	what   string
	submit func(o gpu.Order) error
	order  gpu.Order
	label  string
	timing *gpu.Timing
	done   gpu.Point
	fails  bool
	may    []error      // the operation may fail with one of these errors
	check  func() error // checks the result of the operation, after it has succeeded

	told     *told // the point in the node's Order.Free; nil if there is none
	passesOn bool  // the point in Order.Free may be signalled before the point done is reached
	refused  bool  // submit has returned an error
}

// give submits op with the node's label and Timing.
func (x *node) give(q *gpu.Queue, o gpu.Order, op gpu.Op) error {
	return q.Submit(o, op.Label(x.label).Timed(x.timing))
}

// A cell is 8 bytes of memory, with their value in the model and the points that later accesses
// must wait for.
type cell struct {
	r        gpu.Range
	far      gpu.Range // the same memory in the other process; empty if the cell is not shared
	imported bool      // the other process owns the memory
	pooled   bool      // the memory is from a pool of the other process
	value    [8]byte
	written  []gpu.Point // the point of the last write
	read     []gpu.Point // the points of the reads since the last write
}

// A graph is one round of TestRandom.
type graph struct {
	t        *testing.T
	r        *rand.Rand
	seed     uint64
	mode     mode
	over     string // the kind of driver and the number of devices
	victim   int    // index of the device that is closed or lost
	sim      *simdriver.Driver
	devs     []*gpu.Device
	queues   []*gpu.Queue  // for each device, three queues of its own and one on an adopted stream
	natives  []*nativeSide // one for each device
	values   bool          // the devices can write values and wait for values
	caps     driver.Caps
	far      *farSide // the second process; nil if there is none
	supplies map[*gpu.Device]*supply
	shut     *gpu.Pool // a pool that is closed right before the victim is closed or lost; may be nil
	mortals  map[*gpu.Device][]*mortal
	cells    []cell
	nodes    []*node
	failed   int // number of nodes that have failed

	line   *gpu.Semaphore // a semaphore that some nodes raise, one after the other
	lineAt uint64         // the value to which the last of these nodes raises the semaphore line
	gate   *gpu.Semaphore // signalled by the host while nodes are submitted, or afterwards
	doomed *gpu.Semaphore // after signalling gate, the host closes or fails this semaphore
	bad    []gpu.Point    // the points of nodes that must fail
	breaks bool           // functions of Native may fail, and the limits of pools are high

	notes atomic.Int64 // number of notifications that have not been delivered
	trace *graphTrace  // nil without a trace
}

// deviceCounts lists the numbers of devices that graphs have.
var deviceCounts = [...]int{1, 2, 8}

// newGraph makes a graph. Consecutive seeds cycle through both kinds of drivers and all numbers of
// devices.
func newGraph(t *testing.T, seed uint64) *graph {
	r := rand.New(rand.NewPCG(seed, seed*0x9e3779b97f4a7c15)) // consecutive seeds must give unrelated numbers
	caps, kind := simdriver.CUDACaps(), "cuda"
	if seed%2 == 0 {
		caps, kind = simdriver.HIPCaps(), "hip"
		// Nodes of HIP's graphs cannot be cooperative, so the runtime makes cooperative launches
		// between native graphs.
		caps.Cooperative = r.IntN(2) == 0
	}
	devices := deviceCounts[seed/2%uint64(len(deviceCounts))]
	cells := uint64(min(12, 24/devices)) // cells in the memory of each device: few, so that each is used often
	caps.RerecordEvents = r.IntN(2) == 0
	config := simdriver.Config{Devices: devices, Caps: &caps, Strict: true, Kernels: simKernels, Machine: new(simdriver.Machine)}
	g := &graph{t: t, r: r, seed: seed, supplies: map[*gpu.Device]*supply{},
		mortals: map[*gpu.Device][]*mortal{}, over: fmt.Sprintf("%s over %d", kind, devices), victim: r.IntN(devices), values: caps.Values,
		caps: caps, sim: simdriver.New(config)}
	switch k := r.IntN(10); {
	case k < 2:
		g.mode = closes
	case k < 4:
		g.mode = loses
	}
	g.breaks = r.IntN(2) == 0
	g.trace = newGraphTrace(t, r)
	for i := range devices {
		// A block of pinned memory (StageSize) may be smaller than a cell.
		opt := gpu.Options{Tracer: g.trace.tracer(), Queues: 3, Events: 1 + r.IntN(8), StageSize: 1 + r.IntN(12)}
		if r.IntN(4) == 0 {
			opt.Spin, opt.Poll = -1, -1
		}
		dev, err := gpu.Open(driver.Driver(g.sim), i, opt)
		if err != nil {
			t.Fatal(err)
		}
		g.devs = append(g.devs, dev)
		for i := range 3 {
			g.queues = append(g.queues, dev.Queue(i))
		}
		n := newNativeSide(t, g.sim, dev, i)
		g.natives = append(g.natives, n)
		g.queues = append(g.queues, n.q)
		for _, make := range []func() (*gpu.Buffer, error){
			func() (*gpu.Buffer, error) { return dev.Alloc(gpu.DeviceMem, 8*cells) },
			func() (*gpu.Buffer, error) { return dev.Alloc(gpu.HostMem, 16) },
			func() (*gpu.Buffer, error) { return dev.ImportHost(make([]byte, 16), nil) },
			func() (*gpu.Buffer, error) { return dev.Alloc(gpu.ShareableMem, 16) },
		} {
			b, err := make()
			if errors.Is(err, driver.ErrUnsupported) {
				continue
			}
			if err != nil {
				t.Fatal(err)
			}
			for c := range b.Size() / 8 {
				g.cells = append(g.cells, cell{r: b.Range(8*c, 8)})
			}
		}
		g.supply(dev)
		g.newMortals(dev)
	}
	if r.IntN(2) == 0 {
		g.far = newFarSide(g, config)
	}
	if r.IntN(2) == 0 {
		g.shut = g.supplies[g.devs[r.IntN(devices)]].pools[1].pool
	}
	g.line, g.gate, g.doomed = g.sem(), g.sem(), g.sem()
	if s := g.trace.small(); s != nil {
		s.name(g.line, g.gate)
	}
	for i := range g.cells { // first, a node writes each cell
		x := &node{what: "fill", done: gpu.Point{Semaphore: g.sem(), Value: 1}}
		q := g.queue()
		for !g.cells[i].usable(q) {
			q = g.queue()
		}
		x.submit = func(o gpu.Order) error { return x.give(q, o, gpu.Fill(g.cells[i].r, []byte{0})) }
		x.order.Signal = []gpu.Point{x.done}
		g.cells[i].written = x.order.Signal
		g.nodes = append(g.nodes, x)
	}
	for range 100 + r.IntN(600) {
		g.add()
	}
	return g
}

func (g *graph) sem() *gpu.Semaphore { return semaphores(g.t, 1)[0] }

func (g *graph) queue() *gpu.Queue { return g.queues[g.r.IntN(len(g.queues))] }

// usable reports whether a queue's fills can use the cell. Copies and transfers can use every cell.
func (c *cell) usable(q *gpu.Queue) bool {
	return c.r.Buffer.Kind() != gpu.ShareableMem || c.r.Buffer.Device() == q.Device()
}

// cell returns a cell that fills of the queue can use.
func (g *graph) cell(q *gpu.Queue) *cell {
	for {
		if c := &g.cells[g.r.IntN(len(g.cells))]; c.usable(q) {
			return c
		}
	}
}

// cellOf returns a cell whose buffer belongs to the device.
func (g *graph) cellOf(dev *gpu.Device) *cell {
	for {
		if c := &g.cells[g.r.IntN(len(g.cells))]; c.r.Buffer.Device() == dev {
			return c
		}
	}
}

// bytes returns n random bytes.
func (g *graph) bytes(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(g.r.Uint32())
	}
	return b
}

func (g *graph) add() {
	r, q := g.r, g.queue()
	x := &node{done: gpu.Point{Semaphore: g.sem(), Value: 1 + r.Uint64N(5)}}
	shared := g.mode == sound && r.IntN(6) == 0 // the node is the next to raise g.line
	if shared {
		x.order.Wait = append(x.order.Wait, gpu.Point{Semaphore: g.line, Value: g.lineAt})
		g.lineAt += 1 + r.Uint64N(3)
		x.done = gpu.Point{Semaphore: g.line, Value: g.lineAt}
	}
	x.label = fmt.Sprintf("node %d", len(g.nodes))
	var dst, src *cell
	barrier := func(o gpu.Order) error { return x.give(q, o, gpu.Barrier()) }
	timed := q.Device() // the device that can time the node; nil if none can
	kind := r.IntN(100)
	if kind < 8 && shared {
		kind += 8
	}
	switch {
	case kind < 8: // the node fails
		x.fails = true
		c := g.cell(q).r
		switch k := r.IntN(8); {
		case k == 0:
			x.what = "failing host call"
			x.submit = func(o gpu.Order) error { return x.give(q, o, gpu.HostCall(func() error { return errHostCall })) }
		case k == 1:
			x.what = "panicking host call"
			x.submit = func(o gpu.Order) error { return x.give(q, o, gpu.HostCall(func() error { panic(errHostCall) })) }
		case k == 2:
			x.what = "doomed fill"
			x.order.Wait = append(x.order.Wait, gpu.Point{Semaphore: g.doomed, Value: 1})
			x.submit = func(o gpu.Order) error { return x.give(q, o, gpu.Fill(c, []byte{0xbd})) }
		case k == 3:
			g.excess(x, q)
		case k == 7 && g.breaks:
			x.what = "failing native"
			x.submit = func(o gpu.Order) error {
				return x.give(q, o, gpu.Native("", func(gpu.NativeCall) error { return errHostCall }, c))
			}
		case len(g.bad) == 0:
			x.what = "doomed notification"
			x.order.Wait = append(x.order.Wait, gpu.Point{Semaphore: g.doomed, Value: 1})
			x.submit = func(o gpu.Order) error {
				return x.give(q, o, gpu.Notify(func() { g.t.Error("notified of a failure") }))
			}
		default: // the node waits for the point of another node that fails
			x.order.Wait = append(x.order.Wait, g.bad[r.IntN(len(g.bad))])
			switch k {
			case 4:
				x.what = "doomed copy"
				x.submit = func(o gpu.Order) error {
					return x.give(q, o, gpu.Copy(gpu.Range{Buffer: c.Buffer, Offset: c.Offset, Size: 4}, gpu.Range{Buffer: c.Buffer, Offset: c.Offset + 4, Size: 4}))
				}
			case 5:
				x.what = "doomed barrier"
				x.submit = barrier
			default:
				x.what = "doomed read"
				x.submit = func(o gpu.Order) error { return x.give(q, o, gpu.ReadFrom(c, bytes.NewReader(make([]byte, 8)), 0)) }
			}
		}
	case kind < 15:
		x.what, x.submit = "barrier", barrier
	case kind < 18:
		x.what = "host call"
		x.submit = func(o gpu.Order) error { return x.give(q, o, gpu.HostCall(func() error { return nil })) }
	case kind < 21:
		x.what = "notify"
		var called atomic.Bool
		g.notes.Add(1)
		x.submit = func(o gpu.Order) error {
			return x.give(q, o, gpu.Notify(func() {
				if called.Swap(true) {
					g.t.Error("notified twice")
				}
				g.notes.Add(-1)
			}))
		}
	case kind < 24: // a barrier signals the semaphore middle, which is linked to the node's point
		x.what = "link"
		middle := g.sem()
		x.passesOn = true
		x.submit = func(o gpu.Order) error {
			middle.Link(3, x.done.Semaphore, x.done.Value)
			o.Signal = pts(middle, 3)
			return x.give(q, o, gpu.Barrier())
		}
	case kind < 26 && !shared && g.fromMortal(x, q):
	case kind < 26:
		x.what = "fill of nothing"
		c := g.cell(q).r
		x.submit = func(o gpu.Order) error {
			return x.give(q, o, gpu.Fill(gpu.Range{Buffer: c.Buffer, Offset: c.Offset}, []byte{1}))
		}
	case kind < 28 && g.values:
		c := g.cell(q)
		for c.pooled { // WriteValue and WaitValue refuse imported memory of a pool
			c = g.cell(q)
		}
		to := c.r
		if v := binary.LittleEndian.Uint64(c.value[:]); r.IntN(2) == 0 && v <= math.MaxInt64 {
			x.what, src = "wait for a value", c
			x.submit = func(o gpu.Order) error { return x.give(q, o, interop.WaitValue(to, v)) }
			break
		}
		x.what, dst = "write a value", c
		v := r.Uint64N(1 << 63)
		x.submit = func(o gpu.Order) error { return x.give(q, o, interop.WriteValue(to, v)) }
		binary.LittleEndian.PutUint64(c.value[:], v)
	case kind < 29 && g.mode == sound: // in other modes, a device may be closed or lost while other code uses its memory
		x.what = "others' work"
		n := g.natives[r.IntN(len(g.natives))]
		dst = g.cellOf(n.dev)
		p, at := g.bytes(1), dst.r
		copy(dst.value[:], bytes.Repeat(p, 8))
		x.submit = func(o gpu.Order) error { return n.fill(x, o, at, p[0]) }
		timed = nil
	case kind < 31:
		x.what = "native"
		p := g.bytes(8)
		dst = g.cell(q)
		to := dst.r
		x.submit = func(o gpu.Order) error { return x.give(q, o, gpu.Native("", nativeFill(p), to)) }
		copy(dst.value[:], p)
	case kind < 35 && g.far != nil:
		dst, src = g.far.add(x)
		timed = nil
	case kind < 45:
		x.what = "fill"
		p := g.bytes(1 << r.IntN(4))
		dst = g.cell(q)
		to := dst.r
		x.submit = func(o gpu.Order) error { return x.give(q, o, gpu.Fill(to, p)) }
		copy(dst.value[:], bytes.Repeat(p, 8))
	case kind < 52:
		x.what = "update"
		data := g.bytes(8)
		dst = &g.cells[r.IntN(len(g.cells))]
		to := dst.r
		x.submit = func(o gpu.Order) error {
			mine := bytes.Clone(data)
			err := x.give(q, o, gpu.UploadCopy(to, mine))
			clear(mine)
			return err
		}
		copy(dst.value[:], data)
	case kind < 62:
		data := g.bytes(8)
		dst = &g.cells[r.IntN(len(g.cells))]
		to := dst.r
		copy(dst.value[:], data)
		if r.IntN(2) == 0 {
			g.tells(x, data)
		}
		if r.IntN(2) == 0 {
			x.what = "upload"
			x.submit = func(o gpu.Order) error { return x.give(q, o, gpu.Upload(to, data)) }
			break
		}
		x.what = "read"
		x.submit = func(o gpu.Order) error { return x.give(q, o, gpu.ReadFrom(to, bytes.NewReader(data), 0)) }
	case kind < 74:
		src = &g.cells[r.IntN(len(g.cells))]
		from, want := src.r, src.value
		if r.IntN(4) == 0 && src.usable(q) && !src.imported {
			g.lent(x, q, src)
			break
		}
		got := &memoryFile{data: make([]byte, 8)}
		if r.IntN(2) == 0 {
			x.what = "download"
			x.submit = func(o gpu.Order) error { return x.give(q, o, gpu.Download(got.data, from)) }
		} else {
			x.what = "write"
			x.submit = func(o gpu.Order) error { return x.give(q, o, gpu.WriteTo(got, 0, from)) }
		}
		x.check = func() error { return came(got.data, want[:]) }
		if r.IntN(2) == 0 {
			f := g.tells(x, got.data)
			x.check = func() error { return came(f.was, want[:]) }
		}
	default:
		dst, src = g.cell(q), g.cell(q)
		if src == dst {
			x.what, x.submit = "barrier", barrier
			dst, src = nil, nil
			break
		}
		switch r.IntN(5) {
		case 0:
			g.execution(x, q, dst, src)
		case 1:
			g.transient(x, q, dst, src)
		case 2:
			if dst, src = g.cellOf(q.Device()), g.cellOf(q.Device()); dst == src {
				src = nil
			}
			g.launch(x, q, dst, src)
		default:
			x.what = "copy"
			// Copies can write to every cell, also to those that g.cell does not return.
			if c := &g.cells[r.IntN(len(g.cells))]; c != src {
				dst = c
			}
			to, from := dst.r, src.r
			dst.value = src.value
			x.submit = func(o gpu.Order) error { return x.give(q, o, gpu.Copy(to, from)) }
		}
	}
	if src != nil {
		x.order.Wait = append(x.order.Wait, src.written...)
		src.read = append(src.read, x.done)
	}
	if dst != nil {
		x.order.Wait = append(append(x.order.Wait, dst.written...), dst.read...)
		dst.written, dst.read = []gpu.Point{x.done}, nil
	}
	if r.IntN(3) == 0 { // an unnecessary wait
		if y := g.nodes[r.IntN(len(g.nodes))]; !y.fails && y.may == nil {
			x.order.Wait = append(x.order.Wait, y.done)
		}
	}
	if r.IntN(10) == 0 {
		x.order.Wait = append(x.order.Wait, gpu.Point{Semaphore: g.gate, Value: 1})
	}
	r.Shuffle(len(x.order.Wait), func(i, j int) { w := x.order.Wait; w[i], w[j] = w[j], w[i] })
	x.order.Signal = []gpu.Point{x.done}
	g.watch(x, timed)
	if x.fails {
		g.bad = append(g.bad, x.done)
	}
	g.nodes = append(g.nodes, x)
}

// run submits the nodes, checks their results, and closes the devices.
func (g *graph) run() {
	t, r := g.t, g.r
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	began := time.Now()
	left := false
	defer func() {
		if g.far != nil {
			g.far.giveBack()
		}
		sampled := g.trace.small().sample()
		for _, dev := range g.devs {
			known := dev.Stats().Lost
			if err := dev.Close(); err != nil {
				// ErrBusy: Close has left native objects to the driver, because work waits for the
				// lost device.
				if g.mode == loses && errors.Is(err, driver.ErrBusy) {
					left = true
				} else if g.mode != loses || known || !errors.Is(err, driver.ErrLost) { // in mode loses, Close may be the first call to find the loss
					t.Errorf("close: %v", err)
				}
			}
		}
		sampled()
		for _, n := range g.natives {
			if err := n.close(); err != nil && !errors.Is(err, driver.ErrLost) && !left {
				t.Error(err)
			}
		}
		if g.far != nil {
			g.far.close(left)
		}
		for i, x := range g.nodes {
			if err := x.told.check(ctx, x, left); err != nil {
				t.Errorf("node %d, %s: %v", i, x.what, err)
			}
		}
		g.trace.check(g, left)
		for _, name := range g.sim.Leaks() {
			if !left {
				t.Errorf("left behind: %s", name)
			}
		}
		if left {
			g.sim.Kill() // ends the streams that were left to the driver
		}
		if n := g.notes.Load(); n != 0 && g.mode == sound {
			t.Errorf("%d have not been notified", n)
		}
	}()
	order := r.Perm(len(g.nodes))
	if r.IntN(3) == 0 {
		for i := range order {
			order[i] = i
		}
	}
	workers, early := 1+r.IntN(3), r.IntN(2) == 0
	end := len(order) // the position in order at which the victim is closed or lost; len(order) means never
	if g.mode != sound {
		end = r.IntN(len(order))
	}
	g.askPools(time.Duration(r.IntN(2)) * 200 * time.Microsecond) // sometimes calls on pools are slow, so that pools are closed during these calls
	var wg, ending, meddling sync.WaitGroup
	const now = 16 // meddle is called at most once in this many nodes
	turns := make(chan struct{}, 1)
	for k := range uint64(2) {
		m := &meddler{g: g, r: rand.New(rand.NewPCG(g.seed, k))}
		meddling.Go(func() {
			for range turns {
				if err := m.meddle(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	for w := range workers {
		wg.Go(func() {
			for i := w; i < len(order); i += workers {
				if i == end {
					ending.Go(func() {
						defer g.trace.small().sample()()
						if g.shut != nil {
							g.shut.Close()
						}
						if g.mode == loses {
							g.sim.LoseDevice(g.victim, errHostCall)
						} else if err := g.devs[g.victim].Close(); err != nil {
							t.Errorf("close: %v", err)
						}
					})
				}
				for _, all := range g.mortals {
					for _, m := range all {
						if m.at == i {
							ending.Go(func() { m.end(g, uint64(i)) })
						}
					}
				}
				if i%now == 0 {
					select {
					case turns <- struct{}{}:
					default:
					}
					if s := g.trace.small(); s != nil {
						s.take()
					}
				}
				x := g.nodes[order[i]]
				if i%64 == 0 {
					_ = fmt.Sprint(g.devs[i%len(g.devs)].Parked())
				}
				x.told.begin(x)
				if err := x.submit(x.order); err != nil {
					x.refused = true
					if g.mode == sound && x.may == nil || g.mode != sound && !errors.Is(err, gpu.ErrClosed) && !errors.Is(err, driver.ErrLost) {
						t.Errorf("%s: %v", x.what, err)
					}
					// Nothing will signal the node's point now.
					x.done.Semaphore.Fail(err)
				}
			}
		})
	}
	join := func(wg *sync.WaitGroup) {
		done := make(chan struct{})
		go func() { wg.Wait(); close(done) }()
		select {
		case <-done:
		case <-ctx.Done():
			g.hung("a call does not return")
		}
	}
	if early {
		join(&wg)
	}
	if err := gpu.SignalAll(gpu.Point{Semaphore: g.gate, Value: 1}); err != nil {
		t.Error(err)
	}
	if r.IntN(2) == 0 {
		g.doomed.Close()
	} else {
		gpu.FailAll(io.ErrNoProgress, g.doomed)
	}
	join(&wg)
	join(&ending)
	close(turns)
	join(&meddling)
	g.askPools(0)
	reached := map[*gpu.Semaphore]bool{g.gate: true}
	for i, x := range g.nodes {
		err := x.done.Semaphore.Wait(ctx, x.done.Value)
		if ctx.Err() != nil {
			g.hung("node %d, %s: neither reached nor failed", i, x.what)
		}
		if err != nil {
			g.failed++
		} else {
			reached[x.done.Semaphore] = true
		}
		known := x.fails && errors.Is(err, driver.ErrOutOfMemory) || errors.Is(err, gpu.ErrClosed) || errors.Is(err, io.ErrNoProgress) || errors.Is(err, errHostCall)
		if g.mode != sound && errors.Is(err, driver.ErrOutOfMemory) {
			// If a device was closed or lost, memory may return to the pool too late for this node.
			known = true
		}
		switch {
		case x.fails && err == nil:
			t.Errorf("node %d, %s: it should fail", i, x.what)
		case err == nil:
			err := x.told.wait(ctx) // the point in Order.Free may be signalled a moment after x.done
			if err == nil && x.check != nil {
				err = x.check()
			}
			if err := errors.Join(err, x.timed(g.mode == sound, began)); err != nil {
				t.Errorf("node %d, %s: %v", i, x.what, err)
			}
		case g.mode == sound && slices.ContainsFunc(x.may, func(may error) bool { return errors.Is(err, may) }):
		case g.mode == sound && !x.fails && err != nil, err != nil && !known && !errors.Is(err, driver.ErrLost) && !strings.Contains(err.Error(), errHostCall.Error()):
			t.Errorf("node %d, %s: %v", i, x.what, err)
		}
	}
	if g.mode == sound {
		// The points in Order.Free must be signalled for failed nodes too.
		for i, x := range g.nodes {
			if !x.refused && x.told.wait(ctx) != nil {
				g.hung("node %d, %s: its Free has not been signalled", i, x.what)
			}
		}
		g.lastMortals(ctx)
		g.checkMortals()
		if s := g.trace.small(); s != nil {
			if err := s.tell(g.devs[0]); err != nil {
				t.Error(err)
			}
		}
		g.compare(ctx)
		g.checkPools()
		return
	}
	for i, x := range g.nodes {
		for _, w := range x.order.Wait {
			if reached[x.done.Semaphore] && !reached[w.Semaphore] {
				_, err := w.Semaphore.Query()
				t.Errorf("node %d, %s: reached, and something that it waits for has failed: %v", i, x.what, err)
			}
		}
	}
	for i, dev := range g.devs {
		if i == g.victim {
			continue
		}
		// The other devices keep working, except those that wait for work of the victim.
		behind := func(err error) bool {
			return g.mode != sound && errors.Is(err, driver.ErrLost) && strings.Contains(err.Error(), "waits for work of another device")
		}
		s := g.sem()
		if err := dev.Queue(0).Submit(gpu.Order{Signal: pts(s, 1)}, gpu.Barrier()); err != nil && !behind(err) {
			t.Errorf("device %d: %v", i, err)
		}
		if err := s.Wait(ctx, 1); err != nil && !behind(err) {
			t.Errorf("device %d: %v", i, err)
		}
		if ctx.Err() != nil {
			g.hung("device %d does not go on", i)
		}
	}
}

// hung fails the test and prints the work in flight and the parked work. It prints to stderr,
// because closing a device may hang too, and the log of a test that times out is lost.
func (g *graph) hung(format string, args ...any) {
	g.t.Helper()
	what := fmt.Sprintf("with -gpu.seed=%d: ", g.seed) + fmt.Sprintf(format, args...)
	fmt.Fprintf(os.Stderr, "TestRandom %s\n%s", what, dump(g.devs...))
	if g.far != nil {
		fmt.Fprintf(os.Stderr, "the other process:\n%s", dump(g.far.dev))
	}
	g.t.Fatal(what)
}

// compare downloads all cells and compares them with the model.
func (g *graph) compare(ctx context.Context) {
	for i := range g.cells {
		c, got, s := &g.cells[i], make([]byte, 8), g.sem()
		q, from := g.queue(), c.r
		if c.far.Buffer != nil && g.r.IntN(2) == 0 {
			q, from = g.far.queue(), c.far
		}
		if err := q.Submit(gpu.Order{Wait: c.written, Signal: pts(s, 1)}, gpu.Download(got, from)); err != nil {
			g.t.Fatal(err)
		}
		if err := s.Wait(ctx, 1); ctx.Err() != nil {
			g.hung("what cell %d has: %v", i, err)
		} else if err != nil {
			g.t.Fatal(err)
		}
		if !bytes.Equal(got, c.value[:]) {
			g.t.Errorf("cell %d is %x, want %x", i, got, c.value)
		}
	}
}
