package gpu_test

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/driver/simdriver"
	"github.com/puregpu/puregpu/runtime/gpu"
)

var (
	soak = flag.Bool("gpu.soak", false, "submit a million operations in the random test")
	seed = flag.Uint64("gpu.seed", 0, "seed of the random test; 0 takes one")
)

// TestRandom submits random graphs of operations, in an order of its own and from several goroutines, and compares what
// they leave with what a sequential model says.
func TestRandom(t *testing.T) {
	now := goleak.IgnoreCurrent()
	t.Cleanup(func() { goleak.VerifyNone(t, now) })
	first := *seed
	if first == 0 {
		first = rand.Uint64()
	}
	want := 40_000
	switch {
	case *soak:
		want = 1_000_000
	case testing.Short():
		want = 10_000
	}
	submitted := 0
	for round := uint64(0); submitted < want; round++ {
		submitted += randomGraph(t, first+round)
		if t.Failed() {
			t.Fatalf("failed with -gpu.seed=%d", first+round)
		}
	}
	t.Logf("%d submissions; the first seed was %d", submitted, first)
}

var errRandom = errors.New("a host call failed")

// A node is an operation of a random graph.
type node struct {
	submit func(o gpu.Order) error
	order  gpu.Order
	done   gpu.Point
	fails  bool
}

// A cell is a piece of memory, as the model has it, and what the next access must come after.
type cell struct {
	r       gpu.Range
	value   [8]byte
	written []gpu.Point // by the last one who wrote
	read    []gpu.Point // by those who read since
}

func randomGraph(t *testing.T, seed uint64) int {
	const cells = 12
	r := rand.New(rand.NewPCG(seed, 1))
	caps := simdriver.CUDACaps()
	if r.IntN(2) == 0 {
		caps = simdriver.HIPCaps()
	}
	caps.RerecordEvents = r.IntN(2) == 0
	d := simdriver.New(simdriver.Config{Devices: 2, Caps: &caps, Strict: true, Kernels: simKernels})
	defer func() {
		for _, name := range d.Leaks() {
			t.Errorf("left behind: %s", name)
		}
	}()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	var queues []*gpu.Queue
	var all []cell
	for i := range 2 {
		dev, err := gpu.Open(driver.Driver(d), i, gpu.Options{Queues: 3, Events: 1 + r.IntN(8)})
		if err != nil {
			t.Fatal(err)
		}
		defer func() {
			if err := dev.Close(); err != nil {
				t.Errorf("close: %v", err)
			}
		}()
		for i := range 3 {
			queues = append(queues, dev.Queue(i))
		}
		b, err := dev.Alloc(gpu.DeviceMem, 8*cells)
		if err != nil {
			t.Fatal(err)
		}
		for c := range uint64(cells) {
			all = append(all, cell{r: b.Range(8*c, 8)})
		}
	}
	n := 100 + r.IntN(600)
	line, lineAt := semaphores(t, 1)[0], uint64(0)
	gate := semaphores(t, 1)[0]   // signalled by the host at the end
	doomed := semaphores(t, 1)[0] // closed by the host at the end
	var nodes []*node
	var failed []gpu.Point
	for i := range all { // each begins with something written
		x := &node{done: gpu.Point{Semaphore: semaphores(t, 1)[0], Value: 1}}
		q := queues[r.IntN(len(queues))]
		x.submit = func(o gpu.Order) error { return q.Fill(o, all[i].r, []byte{0}) }
		x.order.Signal = []gpu.Point{x.done}
		all[i].written = x.order.Signal
		nodes = append(nodes, x)
	}
	for range n {
		q := queues[r.IntN(len(queues))]
		x := &node{done: gpu.Point{Semaphore: semaphores(t, 1)[0], Value: 1 + r.Uint64N(5)}}
		if r.IntN(6) == 0 { // on a timeline that many share
			x.order.Wait = append(x.order.Wait, gpu.Point{Semaphore: line, Value: lineAt})
			lineAt += 1 + r.Uint64N(3)
			x.done = gpu.Point{Semaphore: line, Value: lineAt}
		}
		shared := x.done.Semaphore == line
		dst, src := &all[r.IntN(len(all))], &all[r.IntN(len(all))]
		switch k := r.IntN(100); {
		case k < 2 && !shared: // fails by itself
			x.fails = true
			x.submit = func(o gpu.Order) error { return q.HostCall(o, func() error { return errRandom }) }
			src, dst = nil, nil
		case k < 4 && !shared:
			x.fails = true
			x.order.Wait = append(x.order.Wait, gpu.Point{Semaphore: doomed, Value: 1})
			x.submit = func(o gpu.Order) error { return q.Fill(o, all[0].r, []byte{0xbd}) }
			src, dst = nil, nil
		case k < 8 && !shared && len(failed) > 0: // fails with another
			x.fails = true
			x.order.Wait = append(x.order.Wait, failed[r.IntN(len(failed))])
			x.submit = func(o gpu.Order) error { return q.Copy(o, all[1].r, all[0].r) }
			src, dst = nil, nil
		case k < 15:
			x.submit = q.Barrier
			src, dst = nil, nil
		case k < 20:
			x.submit = func(o gpu.Order) error { return q.HostCall(o, func() error { return nil }) }
			src, dst = nil, nil
		case k < 45:
			p := []byte{byte(r.Uint32()), byte(r.Uint32()), byte(r.Uint32()), byte(r.Uint32())}[:1<<r.IntN(3)]
			x.submit = func(o gpu.Order) error { return q.Fill(o, dst.r, p) }
			copy(dst.value[:], bytes.Repeat(p, 8))
			src = nil
		case k < 65:
			data := []byte{byte(r.Uint32()), 2, 3, 4, 5, 6, byte(r.Uint32()), 8}
			x.submit = func(o gpu.Order) error {
				mine := bytes.Clone(data)
				err := q.Update(o, dst.r, mine)
				clear(mine)
				return err
			}
			copy(dst.value[:], data)
			src = nil
		default:
			if src == dst {
				x.submit = q.Barrier
				src, dst = nil, nil
				break
			}
			x.submit = func(o gpu.Order) error { return q.Copy(o, dst.r, src.r) }
			dst.value = src.value
		}
		if src != nil {
			x.order.Wait = append(x.order.Wait, src.written...)
			src.read = append(src.read, x.done)
		}
		if dst != nil {
			x.order.Wait = append(append(x.order.Wait, dst.written...), dst.read...)
			dst.written, dst.read = []gpu.Point{x.done}, nil
		}
		if len(nodes) > 0 && r.IntN(3) == 0 { // and on something it need not
			if y := nodes[r.IntN(len(nodes))]; !y.fails {
				x.order.Wait = append(x.order.Wait, y.done)
			}
		}
		if r.IntN(10) == 0 {
			x.order.Wait = append(x.order.Wait, gpu.Point{Semaphore: gate, Value: 1})
		}
		r.Shuffle(len(x.order.Wait), func(i, j int) { w := x.order.Wait; w[i], w[j] = w[j], w[i] })
		x.order.Signal = []gpu.Point{x.done}
		if x.fails {
			failed = append(failed, x.done)
		}
		nodes = append(nodes, x)
	}
	order := r.Perm(len(nodes))
	if r.IntN(3) == 0 {
		for i := range order {
			order[i] = i
		}
	}
	var wg sync.WaitGroup
	workers := 1 + r.IntN(3)
	for w := range workers {
		wg.Go(func() {
			for i := w; i < len(order); i += workers {
				x := nodes[order[i]]
				if err := x.submit(x.order); err != nil {
					t.Error(err)
				}
			}
		})
	}
	if r.IntN(2) == 0 {
		wg.Wait()
	}
	if err := gate.Signal(1); err != nil {
		t.Error(err)
	}
	doomed.Close()
	wg.Wait()
	for i, x := range nodes {
		err := x.done.Semaphore.Wait(ctx, x.done.Value)
		switch {
		case x.fails && !errors.Is(err, errRandom) && !errors.Is(err, gpu.ErrClosed):
			t.Errorf("node %d: %v; it should fail", i, err)
		case !x.fails && err != nil:
			t.Errorf("node %d: %v", i, err)
		}
		if ctx.Err() != nil {
			return len(nodes)
		}
	}
	for i := range all {
		got := make([]byte, 8)
		s := semaphores(t, 1)[0]
		if err := queues[r.IntN(len(queues))].Download(gpu.Order{Wait: all[i].written, Signal: pts(s, 1)}, got, all[i].r); err != nil {
			t.Fatal(err)
		}
		if err := s.Wait(ctx, 1); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, all[i].value[:]) {
			t.Errorf("cell %d is %x, want %x", i, got, all[i].value)
		}
	}
	return len(nodes) + len(all)
}
