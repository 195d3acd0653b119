package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"runtime"
	"time"

	"github.com/puregpu/puregpu/cuda"
	"github.com/puregpu/puregpu/nccl"
	"github.com/puregpu/puregpu/runtime/collective"
	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/driver/cudadriver"
	"github.com/puregpu/puregpu/runtime/driver/simdriver"
	"github.com/puregpu/puregpu/runtime/gpu"
)

// workerArg makes the program a process of a team. Users do not pass it.
const workerArg = "-worker"

// A worker submits on the ranks of one process. One goroutine submits on all of them: the
// communicators' own threads do the slow work concurrently.
type worker struct {
	drv   driver.Driver
	sim   bool
	first int // rank of the first device
	group *gpu.Group
	chans []*collective.Communicator
	ranks []rank
	v     uint64      // the highest value that the ranks' semaphores will reach
	all   []gpu.Point // the point of each semaphore at v
}

// A rank is a communicator with the objects to submit on it.
type rank struct {
	c      *collective.Communicator
	sem    *gpu.Semaphore
	signal [1]gpu.Point // signal and wait are the lists of a gpu.Order, so that making one does not allocate
	wait   [1]gpu.Point
}

// work carries out orders until its input ends, or has text that is no order. It returns the exit
// status.
func work(stdin io.Reader, stdout, stderr io.Writer) int {
	w := &worker{}
	for in := json.NewDecoder(stdin); ; {
		var o order
		err := in.Decode(&o)
		if err == nil {
			err = write(stdout, w.do(o))
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			fmt.Fprintln(stderr, "gpubench: orders:", err)
			return 2
		}
	}
	if w.group != nil {
		if err := w.group.Close(); err != nil {
			fmt.Fprintln(stderr, "gpubench:", err)
			return 1
		}
	}
	return 0
}

func write(w io.Writer, a answer) error {
	line, err := json.Marshal(a)
	if err == nil {
		_, err = fmt.Fprintf(w, "%s%s\n", mark, line)
	}
	return err
}

const orderLimit = time.Minute

func (w *worker) do(o order) (a answer) {
	ctx, cancel := context.WithTimeout(context.Background(), orderLimit)
	defer cancel()
	do, ok := map[string]func(context.Context, order) (answer, error){
		"open": w.open, "join": w.join, "time": w.time, "small": w.small,
	}[o.Do]
	if !ok {
		return answer{Error: fmt.Sprintf("no order %q is known", o.Do)}
	}
	a, err := do(ctx, o)
	if errors.Is(err, driver.ErrUnsupported) {
		return answer{Missing: err.Error()}
	} else if err != nil {
		return answer{Error: err.Error()}
	}
	return a
}

func (w *worker) open(_ context.Context, o order) (a answer, err error) {
	if o.Simulated > 0 {
		w.drv, w.sim = simdriver.New(simdriver.Config{Devices: o.Simulated}), true
	} else if w.drv, err = cudadriver.Open(cuda.Options{}); err != nil {
		return a, err
	}
	w.first = o.Rank
	if w.group, err = gpu.OpenGroup(w.drv, gpu.Options{}, o.Devices...); err != nil || w.first != 0 {
		return a, err
	}
	id, err := collective.NewID(w.group.Devices()[0])
	return answer{ID: id[:]}, err
}

func (w *worker) join(ctx context.Context, o order) (a answer, err error) {
	id, err := collective.ParseID(o.ID)
	if err != nil {
		return a, err
	}
	w.chans, err = collective.NewAll(ctx, w.group.Devices(), collective.Options{ID: id, Rank: w.first, Count: o.Ranks, Name: "gpubench", Timeout: orderLimit})
	if err != nil {
		return a, err
	}
	w.ranks = make([]rank, len(w.chans))
	for i, c := range w.chans {
		sem, err := gpu.NewSemaphore(0)
		if err != nil {
			return a, err
		}
		w.ranks[i] = rank{c: c, sem: sem}
	}
	if !w.sim {
		lib, err := nccl.Open(nccl.Options{}) // returns the library that the communicators have opened already
		if err != nil {
			return a, err
		}
		a.NCCL, a.Library = nccl.FormatVersion(lib.Version()), lib.Path()
	}
	return a, nil
}

// onAll submits on all ranks; each signals its semaphore.
func (w *worker) onAll(submit func(i int, r *rank, o gpu.Order) error) error {
	w.v++
	for i := range w.ranks {
		r := &w.ranks[i]
		r.signal[0] = gpu.Point{Semaphore: r.sem, Value: w.v}
		if err := submit(i, r, gpu.Order{Signal: r.signal[:]}); err != nil {
			return err
		}
	}
	return nil
}

// wait waits until all submitted work is done.
func (w *worker) wait(ctx context.Context) error {
	w.all = w.all[:0]
	for i := range w.ranks {
		w.all = append(w.all, w.ranks[i].signal[0])
	}
	return gpu.WaitAll(ctx, w.all...)
}

// zeros allocates zeroed memory on all devices.
func (w *worker) zeros(ctx context.Context, size uint64) (list []*gpu.Buffer, err error) {
	for _, r := range w.ranks {
		b, err := r.c.Device().Alloc(gpu.DeviceMem, size)
		if err != nil {
			return list, err
		}
		list = append(list, b)
	}
	err = w.onAll(func(i int, r *rank, o gpu.Order) error {
		return r.c.Device().Queue(0).Submit(o, gpu.Fill(list[i].All(), []byte{0}))
	})
	if err == nil {
		err = w.wait(ctx)
	}
	return list, err
}

func closeAll(list []*gpu.Buffer) (err error) {
	for _, b := range list {
		err = errors.Join(err, b.Close())
	}
	return err
}

// time measures all-reduces of float32, in place. Afterwards it frees the memory, so that PyTorch's
// processes can use the space.
func (w *worker) time(ctx context.Context, o order) (a answer, err error) {
	pad, err := w.zeros(ctx, o.Pad)
	defer func() { err = errors.Join(err, closeAll(pad)) }()
	if err != nil {
		return a, err
	}
	mem, err := w.zeros(ctx, o.Bytes)
	defer func() { err = errors.Join(err, closeAll(mem)) }()
	if err != nil {
		return a, err
	}
	submit := func(i int, r *rank, at gpu.Order) error {
		return r.c.Device().Queue(0).Submit(at, r.c.Group(collective.AllReduce(mem[i].All(), mem[i].All(), collective.Float32, collective.Sum())))
	}
	once := func() error {
		if err := w.onAll(submit); err != nil {
			return err
		}
		return w.wait(ctx)
	}
	ahead := func(n int) error {
		for range n - 1 {
			for i := range w.ranks {
				if err := submit(i, &w.ranks[i], gpu.Order{}); err != nil {
					return err
				}
			}
		}
		return once()
	}
	runtime.GC()
	if err := ahead(o.Warm); err != nil {
		return a, err
	}
	times := make([]time.Duration, o.Timed)
	if a.P50, err = typical(times, once); err != nil {
		return a, err
	}
	a.Min = float64(times[0]) // typical has sorted the times
	if err := ahead(o.Warm); err != nil {
		return a, err
	}
	start := time.Now()
	err = ahead(o.Ahead)
	a.Each = each(time.Since(start), o.Ahead)
	if err != nil || o.Chained == 0 {
		return a, err
	}
	return a, w.chained(ctx, o.Chained, mem, &a)
}

// chained times all-reduces that are submitted ahead, each after the one before it: by points, in a
// stream, and in a stream with a fill before each.
func (w *worker) chained(ctx context.Context, n int, mem []*gpu.Buffer, a *answer) error {
	reduce := func(i int) gpu.Op {
		return w.ranks[i].c.Group(collective.AllReduce(mem[i].All(), mem[i].All(), collective.Float32, collective.Sum()))
	}
	byPoints := func() error {
		for range n {
			w.v++
			for i := range w.ranks {
				r := &w.ranks[i]
				r.wait[0], r.signal[0] = r.signal[0], gpu.Point{Semaphore: r.sem, Value: w.v}
				if err := r.c.Device().Queue(0).Submit(gpu.Order{Wait: r.wait[:], Signal: r.signal[:]}, reduce(i)); err != nil {
					return err
				}
			}
		}
		return w.wait(ctx)
	}
	streams := make([]*gpu.Stream, len(w.ranks))
	for i, r := range w.ranks {
		streams[i] = r.c.Device().Queue(0).NewStream()
	}
	inStream := func(fill bool) func() error {
		return func() error {
			for range n {
				for i, s := range streams {
					if fill {
						if err := s.Fill(mem[i].All(), []byte{0}); err != nil {
							return err
						}
					}
					if err := s.Do(reduce(i)); err != nil {
						return err
					}
				}
			}
			for _, s := range streams {
				if err := s.Wait(ctx); err != nil {
					return err
				}
			}
			return nil
		}
	}
	for _, way := range []struct {
		run func() error
		to  *float64
	}{{byPoints, &a.Chain}, {inStream(false), &a.Stream}, {inStream(true), &a.Filled}} {
		start := time.Now()
		if err := way.run(); err != nil {
			return err
		}
		*way.to = each(time.Since(start), n)
	}
	return nil
}

// small measures a recorded group of small all-reduces until the group is done, and the same
// all-reduces as separate groups.
func (w *worker) small(ctx context.Context, o order) (a answer, err error) {
	mem, err := w.zeros(ctx, uint64(o.Group)*o.Bytes)
	defer func() { err = errors.Join(err, closeAll(mem)) }()
	if err != nil {
		return a, err
	}
	ops := make([][]collective.Operation, len(w.ranks))
	recorded := make([]*gpu.CommandBuffer, len(w.ranks))
	for i, r := range w.ranks {
		for k := range uint64(o.Group) {
			part := mem[i].Range(k*o.Bytes, o.Bytes)
			ops[i] = append(ops[i], collective.AllReduce(part, part, collective.Float32, collective.Sum()))
		}
		c, err := r.c.Device().NewCommandBuffer(gpu.CommandOptions{})
		if err != nil {
			return a, err
		}
		defer c.Close()
		if _, err := c.Add(r.c.Group(ops[i]...)); err != nil {
			return a, err
		}
		if err := c.End(); err != nil {
			return a, err
		}
		recorded[i] = c
	}
	oneByOne := func() error {
		for k := range o.Group - 1 {
			for i, r := range w.ranks {
				if err := r.c.Device().Queue(0).Submit(gpu.Order{}, r.c.Group(ops[i][k])); err != nil {
					return err
				}
			}
		}
		err := w.onAll(func(i int, r *rank, at gpu.Order) error {
			return r.c.Device().Queue(0).Submit(at, r.c.Group(ops[i][o.Group-1]))
		})
		if err != nil {
			return err
		}
		return w.wait(ctx)
	}
	asOne := func() error {
		err := w.onAll(func(i int, r *rank, at gpu.Order) error {
			return r.c.Device().Queue(0).Submit(at, gpu.Execute(recorded[i]))
		})
		if err != nil {
			return err
		}
		return w.wait(ctx)
	}
	runtime.GC()
	times := make([]time.Duration, o.Timed)
	for range 2 { // the first time warms up
		if a.OneByOne, err = typical(times, oneByOne); err != nil {
			return a, err
		}
		if a.Recorded, err = typical(times, asOne); err != nil {
			return a, err
		}
	}
	return a, nil
}
