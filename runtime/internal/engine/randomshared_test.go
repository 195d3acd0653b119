package engine_test

import (
	"bytes"
	"context"
	"errors"
	"sync"
	"time"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/driver/simdriver"
	"github.com/puregpu/puregpu/runtime/gpu"
	"github.com/puregpu/puregpu/runtime/interop"
)

// A farSide is the second process of a random graph: a second driver, with one open device, on the
// same simulated machine. It has cells of its own, which the graph's process imports, and it
// imports memory of the graph. Semaphores or shared events order its work.
type farSide struct {
	g    *graph
	sim  *simdriver.Driver
	dev  *gpu.Device
	near *gpu.Device // the graph's device on the same GPU
	ctx  context.Context
	stop context.CancelFunc

	alone    *gpu.Buffer    // a byte that only the second process uses
	pool     *gpu.Pool      // the pool that the graph imports, or nil
	pooled   *gpu.Buffer    // memory of pool, or nil
	lentPool *gpu.Device    // the graph's device that has imported the pool, or nil
	theirs   *gpu.Buffer    // memory of the graph, imported by a handle; or nil
	given    *gpu.Buffer    // memory of the graph, imported by a file; or nil
	lent     sync.WaitGroup // counts objects of the second process that the graph has imported
	taken    sync.WaitGroup // counts objects of the graph that the second process has imported
	wg       sync.WaitGroup // counts running goroutines of farWork.submit

	// mu is held by the farWork that uses the pairs there and back. Both pairs are empty if the
	// driver lacks IPCEvents or RerecordEvents.
	mu    sync.Mutex
	there pair // recorded by the graph's process
	back  pair // recorded by the second process
}

// A pair is a shared event in two processes. One process records pair.own. The other process waits
// for pair.in, the imported event.
type pair struct{ own, in *interop.Event }

// newFarSide makes the second process, the cells in its memory, and the imports.
func newFarSide(g *graph, c simdriver.Config) *farSide {
	r, i := g.r, g.r.IntN(len(g.devs))
	f := &farSide{g: g, sim: simdriver.New(c), near: g.devs[i]}
	f.ctx, f.stop = context.WithTimeout(context.Background(), time.Minute)
	var err error
	f.dev, err = gpu.Open(f.sim, i, gpu.Options{Queues: 3, Events: 1 + r.IntN(8), StageSize: 1 + r.IntN(12)})
	must(g.t, err)
	const cells = 3
	b := allocate(g.t, f.dev, 8*cells)
	f.alone = allocate(g.t, f.dev, 1)
	h, err := interop.ExportMemory(b)
	must(g.t, err)
	f.lent.Add(1)
	in, err := interop.ImportMemory(g.devs[r.IntN(len(g.devs))], h, f.lent.Done)
	must(g.t, err)
	for k := range uint64(cells) {
		g.cells = append(g.cells, cell{r: in.Range(8*k, 8), far: b.Range(8*k, 8), imported: true})
	}
	if g.caps.PoolSharing {
		f.pool = newPool(g.t, f.dev, gpu.PoolOptions{Shareable: true, Threshold: r.Uint64N(2) * blockSize})
		s := g.sem()
		f.pooled = alloca(g.t, f.queue(), gpu.Order{Signal: pts(s, 1)}, f.pool, 8*cells)
		must(g.t, s.Wait(f.ctx, 1))
		file, err := interop.ExportPool(f.pool)
		must(g.t, err)
		f.lentPool = g.devs[r.IntN(len(g.devs))]
		p, err := interop.ImportPool(f.lentPool, file)
		must(g.t, err)
		must(g.t, file.Close())
		h, err := interop.ExportMemory(f.pooled)
		must(g.t, err)
		f.lent.Add(1)
		in, err := p.Import(h, f.lent.Done)
		must(g.t, err)
		if r.IntN(2) == 0 {
			must(g.t, p.Close())
		}
		for k := range uint64(cells) {
			g.cells = append(g.cells, cell{r: in.Range(8*k, 8), far: f.pooled.Range(8*k, 8), imported: true, pooled: true})
		}
	}
	if g.caps.MemSharing { // memory shared by files, in both directions
		b, err := f.dev.Alloc(gpu.ShareableMem, 8*cells)
		must(g.t, err)
		f.lent.Add(1)
		in := f.send(b, g.devs[r.IntN(len(g.devs))], f.lent.Done)
		for k := range uint64(cells) {
			g.cells = append(g.cells, cell{r: in.Range(8*k, 8), far: b.Range(8*k, 8), imported: true})
		}
		var near *gpu.Buffer
		for k := range g.cells {
			c := &g.cells[k]
			if b := c.r.Buffer; b.Kind() != gpu.ShareableMem || c.imported || b.Device() != f.near {
				continue
			} else if near != b {
				near = b
				f.taken.Add(1)
				f.given = f.send(b, f.dev, f.taken.Done)
			}
			c.far = f.given.Range(c.r.Offset, 8)
		}
	}
	if g.mode == sound { // in other modes, f.near may be closed while the second process uses memory of f.near
		for k := range g.cells {
			c := &g.cells[k]
			if b := c.r.Buffer; b.Kind() == gpu.DeviceMem && c.far.Buffer == nil && b.Device() == f.near {
				if f.theirs == nil {
					h, err := interop.ExportMemory(b)
					must(g.t, err)
					f.taken.Add(1)
					f.theirs, err = interop.ImportMemory(f.dev, h, f.taken.Done)
					must(g.t, err)
				}
				c.far = f.theirs.Range(c.r.Offset, 8)
			}
		}
	}
	if g.caps.IPCEvents && g.caps.RerecordEvents {
		var err2 error
		f.there, err = newPair(f.near, f.dev, &f.taken)
		f.back, err2 = newPair(f.dev, f.near, &f.lent)
		must(g.t, errors.Join(err, err2))
	}
	return f
}

// newPair makes a shared event on one device (from) and imports it on a device of another process
// (to). When the import has been closed and is not used any more, the event is closed too. The wait
// group lent counts the import until then.
func newPair(from, to *gpu.Device, lent *sync.WaitGroup) (p pair, err error) {
	if p.own, err = interop.NewSharedEvent(from); err != nil {
		return p, err
	}
	h, err := p.own.Export()
	if err != nil {
		return p, err
	}
	lent.Add(1)
	p.in, err = interop.ImportEvent(to, h, func() {
		p.own.Close()
		lent.Done()
	})
	if err != nil {
		lent.Done()
	}
	return p, err
}

// send exports a buffer to a file, and imports the file on a device (to) of another process.
func (f *farSide) send(b *gpu.Buffer, to *gpu.Device, freed func()) *gpu.Buffer {
	file, err := interop.ExportMemoryFile(b)
	must(f.g.t, err)
	in, err := interop.ImportMemoryFile(to, file, b.Size(), freed)
	must(f.g.t, errors.Join(err, file.Close()))
	return in
}

func (f *farSide) queue() *gpu.Queue { return f.dev.Queue(f.g.r.IntN(3)) }

// nearQueue returns a queue of f.near.
func (f *farSide) nearQueue() *gpu.Queue {
	for {
		if q := f.g.queue(); q.Device() == f.near {
			return q
		}
	}
}

// cell returns a cell that both processes can use.
func (f *farSide) cell() *cell {
	for {
		if c := &f.g.cells[f.g.r.IntN(len(f.g.cells))]; c.far.Buffer != nil {
			return c
		}
	}
}

// add makes the node a fill or a copy in the second process.
func (f *farSide) add(x *node) (dst, src *cell) {
	g, q := f.g, f.queue()
	dst, src = f.cell(), f.cell()
	to, from := dst.far, src.far
	var op gpu.Op
	if src == dst {
		src = nil
		p := g.bytes(1 << g.r.IntN(4))
		copy(dst.value[:], bytes.Repeat(p, 8))
		op = gpu.Fill(to, p)
	} else {
		dst.value = src.value
		op = gpu.Copy(to, from)
	}
	if g.mode != sound || !g.caps.IPCEvents || g.r.IntN(4) == 0 {
		// Semaphores order this work. The processes have different drivers, so the work is parked
		// until its waits are reached.
		x.what = "another process's work"
		x.submit = func(o gpu.Order) error { return x.give(q, o, op) }
		return dst, src
	}
	x.what = "another process's work between events"
	w := &farWork{f: f, x: x, q: q, op: op, before: f.nearQueue(), after: f.nearQueue(), waits: f.queue(), records: f.queue(),
		anew: f.there.own == nil || g.r.IntN(2) == 0}
	x.submit = func(o gpu.Order) error {
		f.wg.Go(func() {
			if err := w.submit(o); err != nil {
				g.t.Error(err)
				o.Signal[0].Semaphore.Fail(err)
			}
		})
		return nil
	}
	return dst, src
}

// A farWork is work of the second process between two shared events. The graph's process records
// the first event, and the work waits for it. The second process records the second event behind
// the work, and the graph's process waits for that event.
type farWork struct {
	f              *farSide
	x              *node
	q              *gpu.Queue // queue of the second process, for op
	op             gpu.Op
	before, after  *gpu.Queue // queues of the graph's process
	waits, records *gpu.Queue // queues of the second process
	anew           bool       // the work uses new pairs instead of farSide.there and farSide.back
}

// submit blocks until the work for all waits in o has been issued. Then it submits w, and blocks
// until all of w has been issued.
func (w *farWork) submit(o gpu.Order) (err error) {
	f := w.f
	for _, p := range o.Wait {
		if err := p.Semaphore.WaitIssued(f.ctx, p.Value); err != nil {
			return err
		}
	}
	there, back := f.there, f.back
	if w.anew {
		var err2 error
		there, err = newPair(f.near, f.dev, &f.taken)
		back, err2 = newPair(f.dev, f.near, &f.lent)
		defer there.in.Close() // closed when submit returns, although work in flight may still use the events
		defer back.in.Close()
		if err := errors.Join(err, err2); err != nil {
			return err
		}
	} else {
		f.mu.Lock()
		defer f.mu.Unlock()
	}
	ready, err := gpu.NewSemaphore(0)
	far, err2 := gpu.NewSemaphore(0)
	if err := errors.Join(err, err2); err != nil {
		return err
	}
	if err := w.before.Submit(gpu.Order{Wait: o.Wait, Signal: pts(ready, 1)}, interop.RecordEvent(there.own)); err != nil {
		return err
	}
	if err := ready.WaitIssued(f.ctx, 1); err != nil {
		return err
	}
	err = errors.Join(w.waits.Submit(gpu.Order{Signal: pts(far, 1)}, interop.WaitEvent(there.in)), w.q.Submit(order(far, 1, far, 2), w.op),
		w.records.Submit(order(far, 2, far, 3), interop.RecordEvent(back.own)))
	if err == nil {
		err = far.WaitIssued(f.ctx, 3)
	}
	if err == nil {
		// The work for the waits in o has been issued, so this submission is issued at once.
		err = w.x.give(w.after, o, interop.WaitEvent(back.in))
	}
	if err == nil {
		err = o.Signal[0].Semaphore.WaitIssued(f.ctx, o.Signal[0].Value)
	}
	return err
}

// giveBack closes the imported events of farSide.there and farSide.back, and the memory that the
// second process has imported. Devices of the graph may already be closed.
func (f *farSide) giveBack() {
	f.wg.Wait()
	f.there.in.Close()
	f.back.in.Close()
	f.given.Close()
	if f.theirs != nil {
		f.theirs.Close()
	}
	for i := range 3 { // wait until all work of the second process is done
		s, err := gpu.NewSemaphore(0)
		if err == nil {
			err = f.dev.Queue(i).Submit(gpu.Order{Signal: pts(s, 1)}, gpu.Download(make([]byte, 1), f.alone.All()))
		}
		if err == nil {
			err = s.Wait(f.ctx, 1)
		}
		if err != nil {
			f.g.t.Errorf("the other process: %v", err)
		}
	}
	f.await("the other process has not given all back", &f.taken, f.dev)
}

// await waits until a count of objects is 0. If f.ctx ends first, await fails the test.
func (f *farSide) await(what string, all *sync.WaitGroup, dev *gpu.Device) {
	back := make(chan struct{})
	go func() { all.Wait(); close(back) }()
	select {
	case <-back:
	case <-f.ctx.Done():
		f.g.t.Errorf("%s\n%s", what, dump(dev))
	}
}

// close frees the pool memory of the second process and closes its device. The graph's devices are
// already closed. If left is true, the Close of one of the graph's devices has left objects to the
// driver. If left is false, the graph's devices must release everything that they had imported.
func (f *farSide) close(left bool) {
	defer f.stop()
	if !left {
		f.await("not all has been given back to the other process", &f.lent, f.near)
	}
	if f.pooled != nil {
		if err := f.pooled.Device().Queue(0).Submit(gpu.Order{}, gpu.Free(f.pooled)); err != nil {
			f.g.t.Error(err)
		}
		unused(f.g.t, f.pool)
	}
	if err := f.dev.Close(); err != nil && !errors.Is(err, driver.ErrLost) {
		f.g.t.Errorf("close of the other process's device: %v", err)
	}
	for _, name := range f.sim.Leaks() {
		f.g.t.Errorf("left behind by the other process: %s", name)
	}
}
