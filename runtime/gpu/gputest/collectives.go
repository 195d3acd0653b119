package gputest

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/puregpu/puregpu/runtime/collective"
	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/gpu"
	"github.com/puregpu/puregpu/runtime/smallfloat"
)

// A team has the ranks of a communicator: comms[i] is rank i, and is on the device devs[i].
type team struct {
	*env
	devs  []*gpu.Device
	comms []*collective.Communicator
}

// worlds are the numbers of ranks with which env.teams runs a test.
var worlds = []int{1, 2, 3, 4, 8}

// teams runs a test with each number of ranks in worlds, but with no fewer than least and no more
// than there are devices.
func (e *env) teams(least int, f func(t *team)) {
	e.Helper()
	infos, err := e.h.Driver.Devices()
	e.must(err)
	for _, n := range worlds {
		if n >= least && n <= len(infos) {
			e.team(n, collective.Options{}, f)
		}
	}
}

// types returns the element types to test: only four if the driver is simulated and has fewer than
// eight devices, or is simulated and the harness is brief; otherwise all. Only the harnesses of
// simulated drivers set Harness.Calls.
func (e *env) types() []collective.ElementType {
	infos, err := e.h.Driver.Devices()
	e.must(err)
	if e.h.Calls == nil || len(infos) >= 8 && !e.h.Brief {
		return allTypes
	}
	return []collective.ElementType{collective.Uint16, collective.Int64, collective.BFloat16, collective.Float32}
}

// team runs a test with n ranks.
func (e *env) team(n int, o collective.Options, f func(t *team)) {
	e.Helper()
	g, err := gpu.OpenGroup(e.h.Driver, gpu.Options{Queues: 4}, numbers(n)...)
	e.must(err)
	t := &team{env: e, devs: g.Devices()}
	t.comms, err = collective.NewAll(e.ctx, g.Devices(), o)
	if err == nil {
		f(t)
	}
	if end := g.Close(); end != nil {
		e.Errorf("%d ranks: close: %v", n, end)
	}
	e.must(err)
}

func numbers(n int) (all []int) {
	for i := range n {
		all = append(all, i)
	}
	return all
}

// all runs a function for all ranks concurrently.
func (t *team) all(f func(rank int)) {
	var wg sync.WaitGroup
	for i := range t.comms {
		wg.Go(func() { f(i) })
	}
	wg.Wait()
}

// memory makes a buffer on a rank's device and fills it with data.
func (t *team) memory(rank int, data []byte) *gpu.Buffer {
	t.Helper()
	b, err := t.devs[rank].Alloc(gpu.DeviceMem, uint64(len(data)))
	t.must(err)
	t.put(rank, b, data)
	return b
}

func (t *team) put(rank int, b *gpu.Buffer, data []byte) {
	t.Helper()
	s := t.sem()
	t.must(t.devs[rank].Queue(0).Submit(signal(s, 1), gpu.UploadCopy(b.Range(0, uint64(len(data))), data)))
	t.wait(s, 1)
}

// get downloads a buffer of a rank's device.
func (t *team) get(rank int, b *gpu.Buffer) []byte {
	t.Helper()
	data := make([]byte, b.Size())
	s := t.sem()
	t.must(t.devs[rank].Queue(1).Submit(signal(s, 1), gpu.Download(data, b.All())))
	t.wait(s, 1)
	return data
}

// submit submits a group on every rank, and waits until all groups are done.
func (t *team) submit(what string, ops func(rank int) []collective.Operation) {
	t.Helper()
	done := t.sems(len(t.comms))
	for i, c := range t.comms { // one goroutine submits the groups of all ranks, so no call may wait for another rank
		if err := c.Device().Queue(0).Submit(signal(done[i], 1), c.GroupContext(t.ctx, ops(i)...)); err != nil {
			t.Fatalf("%s, rank %d of %d: %v", what, i, len(t.comms), err)
		}
	}
	for i, s := range done {
		if err := s.Wait(t.ctx, 1); err != nil {
			t.Fatalf("%s, rank %d of %d: %v", what, i, len(t.comms), err)
		}
	}
}

// elements returns the bytes of numbers as elements of a type. The numbers are small and whole.
func elements(t collective.ElementType, numbers []float64) (data []byte) {
	for _, v := range numbers {
		data = append(data, element(t, v)...)
	}
	return data
}

func element(t collective.ElementType, v float64) []byte {
	bits := uint64(int64(v))
	switch t {
	case collective.Float16:
		bits = uint64(smallfloat.FromFloat64[smallfloat.Float16](v))
	case collective.BFloat16:
		bits = uint64(smallfloat.FromFloat64[smallfloat.BFloat16](v))
	case collective.Float32:
		bits = uint64(math.Float32bits(float32(v)))
	case collective.Float64:
		bits = math.Float64bits(v)
	case collective.Float8E4M3:
		bits = uint64(smallfloat.FromFloat64[smallfloat.Float8E4M3](v))
	case collective.Float8E5M2:
		bits = uint64(smallfloat.FromFloat64[smallfloat.Float8E5M2](v))
	}
	return binary.LittleEndian.AppendUint64(nil, bits)[:t.Size()]
}

// A reduced is a reduction with numbers to test it. The numbers are such that for up to eight ranks
// every element type holds the exact result, in whatever order the ranks are reduced.
type reduced struct {
	name string
	r    collective.Reduction
	in   func(rank, i int) float64
	out  func(all []float64) float64
}

var reductions = []reduced{
	{"sum", collective.Sum(), func(rank, i int) float64 { return float64((rank + i) % 2) }, total},
	{"product", collective.Prod(), func(rank, i int) float64 { return float64(1 + (rank+i)%8/7) }, func(all []float64) float64 {
		p := 1.0
		for _, v := range all {
			p *= v
		}
		return p
	}},
	{"min", collective.Min(), func(rank, i int) float64 { return float64((3*rank + i) % 7) }, slices.Min[[]float64]},
	{"max", collective.Max(), func(rank, i int) float64 { return float64((3*rank + i) % 7) }, slices.Max[[]float64]},
	{"average", collective.Avg(), func(_, i int) float64 { return float64(i % 2) }, func(all []float64) float64 { return all[0] }},
	{"sum of products", collective.PreMulSum(2), func(rank, i int) float64 { return float64((rank + i) % 2) }, func(all []float64) float64 { return 2 * total(all) }},
}

func total(all []float64) (sum float64) {
	for _, v := range all {
		sum += v
	}
	return sum
}

// row returns the n numbers that a rank reduces.
func (x *reduced) row(rank, n int) (row []float64) {
	for i := range n {
		row = append(row, x.in(rank, i))
	}
	return row
}

// result returns the n results of reducing the numbers of all ranks.
func (x *reduced) result(ranks, n int) (row []float64) {
	for i := range n {
		var all []float64
		for r := range ranks {
			all = append(all, x.in(r, i))
		}
		row = append(row, x.out(all))
	}
	return row
}

var allTypes = []collective.ElementType{collective.Int8, collective.Uint8, collective.Int16, collective.Uint16, collective.Int32, collective.Uint32, collective.Int64, collective.Uint64, collective.Float16, collective.BFloat16,
	collective.Float32, collective.Float64, collective.Float8E4M3, collective.Float8E5M2}

// reduces reports whether elements of a type can be reduced.
func reduces(t collective.ElementType) bool { return t != collective.Int16 && t != collective.Uint16 }

// checkReduction tests all-reduce and reduce with count elements on each rank, and reduce-scatter
// with count elements of the result on each rank.
func (t *team) checkReduction(x *reduced, typ collective.ElementType, count int) {
	t.Helper()
	n, size := len(t.comms), typ.Size()
	for _, inPlace := range []bool{false, true} {
		what := fmt.Sprintf("%s of %d %v on %d ranks, in place %v", x.name, count, typ, n, inPlace)
		root := (n - 1) / 2
		src, dst, whole, part := make([]*gpu.Buffer, n), make([]*gpu.Buffer, n), make([]*gpu.Buffer, n), make([]*gpu.Buffer, n)
		for i := range n {
			src[i] = t.memory(i, elements(typ, x.row(i, count)))
			whole[i] = t.memory(i, elements(typ, x.row(i, n*count)))
			dst[i], part[i] = t.memory(i, make([]byte, count*size)), t.memory(i, make([]byte, count*size))
			if inPlace {
				dst[i] = src[i]
			}
		}
		t.submit("all-reduce, "+what, func(i int) []collective.Operation {
			return []collective.Operation{collective.AllReduce(dst[i].All(), src[i].All(), typ, x.r)}
		})
		want := elements(typ, x.result(n, count))
		for i := range n {
			t.same("all-reduce, "+what, t.get(i, dst[i]), want)
			t.put(i, src[i], elements(typ, x.row(i, count)))
		}
		t.submit("reduce, "+what, func(i int) []collective.Operation {
			return []collective.Operation{collective.Reduce(dst[i].All(), src[i].All(), typ, x.r, root)}
		})
		t.same("reduce, "+what, t.get(root, dst[root]), want)
		own := func(i int) gpu.Range { return part[i].All() }
		if inPlace {
			own = func(i int) gpu.Range { return whole[i].Range(uint64(i*count*size), uint64(count*size)) }
		}
		t.submit("reduce-scatter, "+what, func(i int) []collective.Operation {
			return []collective.Operation{collective.ReduceScatter(own(i), whole[i].All(), typ, x.r)}
		})
		all := elements(typ, x.result(n, n*count))
		for i := range n {
			r := own(i)
			got := t.get(i, r.Buffer)[r.Offset:][:r.Size]
			t.same("reduce-scatter, "+what, got, all[i*count*size:][:count*size])
		}
		for _, b := range slices.Concat(src, dst, whole, part) {
			b.Close()
		}
	}
}

// checkMoves tests the operations that only move data. Each rank's part has count elements.
func (t *team) checkMoves(typ collective.ElementType, count int) {
	t.Helper()
	n, size := len(t.comms), count*typ.Size()
	for _, inPlace := range []bool{false, true} {
		for _, root := range slices.Compact([]int{0, n - 1}) {
			what := fmt.Sprintf("%d %v on %d ranks, root %d, in place %v", count, typ, n, root, inPlace)
			parts := func(rank int) (all [][]byte) {
				for i := range n {
					all = append(all, random(size, uint64(rank*100+i+1)))
				}
				return all
			}
			one, whole := make([]*gpu.Buffer, n), make([]*gpu.Buffer, n)
			reset := func() {
				for i := range n {
					one[i], whole[i] = t.memory(i, parts(i)[i]), t.memory(i, slices.Concat(parts(i)...))
				}
			}
			free := func() {
				for i := range n {
					one[i].Close()
					whole[i].Close()
				}
			}
			own := func(i int) gpu.Range {
				if inPlace {
					return whole[i].Range(uint64(i*size), uint64(size))
				}
				return one[i].All()
			}
			reset()
			t.submit("all-gather, "+what, func(i int) []collective.Operation {
				return []collective.Operation{collective.AllGather(whole[i].All(), own(i), typ)}
			})
			var gathered []byte
			for i := range n {
				gathered = append(gathered, parts(i)[i]...)
			}
			for i := range n {
				t.same("all-gather, "+what, t.get(i, whole[i]), gathered)
			}
			free()
			reset()
			t.submit("gather, "+what, func(i int) []collective.Operation {
				return []collective.Operation{collective.Gather(whole[i].All(), own(i), typ, root)}
			})
			t.same("gather, "+what, t.get(root, whole[root]), gathered)
			free()
			reset()
			t.submit("scatter, "+what, func(i int) []collective.Operation {
				dst := one[i].All()
				if i == root {
					dst = own(i)
				}
				return []collective.Operation{collective.Scatter(dst, whole[i].All(), typ, root)}
			})
			for i := range n {
				if i != root || !inPlace {
					t.same("scatter, "+what, t.get(i, one[i]), parts(root)[i])
				}
			}
			free()
			reset()
			t.submit("broadcast, "+what, func(i int) []collective.Operation {
				src := gpu.Range{}
				if i == root {
					src = one[i].All()
				}
				dst := one[i].All()
				if !inPlace {
					dst = whole[i].Range(0, uint64(size))
				}
				return []collective.Operation{collective.Broadcast(dst, src, typ, root)}
			})
			for i := range n {
				b := one[i]
				if !inPlace {
					b = whole[i]
				}
				t.same("broadcast, "+what, t.get(i, b)[:size], parts(root)[root])
			}
			free()
		}
	}
	what := fmt.Sprintf("%d %v on %d ranks", count, typ, n)
	src, dst := make([]*gpu.Buffer, n), make([]*gpu.Buffer, n)
	for i := range n {
		src[i], dst[i] = t.memory(i, random(n*size, uint64(i+1))), t.memory(i, make([]byte, n*size))
	}
	t.submit("all-to-all, "+what, func(i int) []collective.Operation {
		return []collective.Operation{collective.AllToAll(dst[i].All(), src[i].All(), typ)}
	})
	for i := range n {
		var want []byte
		for from := range n {
			want = append(want, random(n*size, uint64(from+1))[i*size:][:size]...)
		}
		t.same("all-to-all, "+what, t.get(i, dst[i]), want)
	}
	// In a ring, each rank sends to the next rank, by Send and Receive or by SendReceive. In a
	// line, the last rank does not send, and the first rank gets zeros.
	right, left := func(i int) int { return (i + 1) % n }, func(i int) int { return (i + n - 1) % n }
	part := func(b *gpu.Buffer) gpu.Range { return b.Range(0, uint64(size)) }
	rings := map[string]func(i int) []collective.Operation{
		"send, receive": func(i int) []collective.Operation {
			return []collective.Operation{collective.Send(part(src[i]), typ, right(i)), collective.Receive(part(dst[i]), typ, left(i))}
		},
		"send and receive": func(i int) []collective.Operation {
			return []collective.Operation{collective.SendReceive(part(dst[i]), part(src[i]), typ, right(i), left(i))}
		},
		"send and receive in a line": func(i int) []collective.Operation {
			to, from := i+1, i-1 // -1 means no rank
			if to == n {
				to = -1
			}
			return []collective.Operation{collective.SendReceive(part(dst[i]), part(src[i]), typ, to, from)}
		},
	}
	for name, ring := range rings {
		for i := range n {
			t.put(i, dst[i], random(n*size, 77))
		}
		t.submit(name+", "+what, ring)
		for i := range n {
			want := random(n*size, uint64(left(i)+1))[:size]
			if i == 0 && name == "send and receive in a line" {
				want = make([]byte, size)
			}
			t.same(name+", "+what, t.get(i, dst[i])[:size], want)
		}
	}
	for i := range n {
		src[i].Close()
		dst[i].Close()
	}
}

// ends checks that a semaphore fails with a [collective.Error] that wraps kind.
func (t *team) ends(what string, s *gpu.Semaphore, kind error) {
	t.Helper()
	err := s.Wait(t.ctx, 1)
	var of *collective.Error
	if !errors.Is(err, kind) || !errors.As(err, &of) {
		t.Errorf("%s: Wait = %v; want a communicator's failure by %v", what, err, kind)
	}
}

// alone submits an all-reduce on one rank only, and returns the semaphore that the all-reduce
// signals.
func (t *team) alone(rank int, ctx context.Context) *gpu.Semaphore {
	t.Helper()
	b, s := t.memory(rank, make([]byte, 4096)), t.sem()
	t.must(t.comms[rank].Device().Queue(0).Submit(signal(s, 1), t.comms[rank].GroupContext(ctx, collective.AllReduce(b.All(), b.All(), collective.Float32, collective.Sum()))))
	t.must(b.Close()) // the group still uses the buffer
	return s
}

// meet makes all ranks do an all-reduce, because some libraries connect the ranks only in the first
// operation.
func (t *team) meet() {
	t.Helper()
	b := make([]*gpu.Buffer, len(t.comms))
	for i := range b {
		b[i] = t.memory(i, make([]byte, 64))
	}
	t.submit("meet", func(i int) []collective.Operation {
		return []collective.Operation{collective.AllReduce(b[i].All(), b[i].All(), collective.Float32, collective.Sum())}
	})
}

var collectives = []test{
	{name: "B134 reductions of every type", comms: true, run: func(e *env) {
		e.teams(1, func(t *team) {
			for i := range reductions {
				for _, typ := range t.types() {
					switch {
					case !reduces(typ):
					case len(t.comms) == 1 && typ.Size() == 1 && typ > collective.Uint8 && reductions[i].name == "sum of products": // NCCL has no such reduction
					default:
						t.checkReduction(&reductions[i], typ, 33)
					}
				}
			}
			for _, count := range []int{1, 7, 1000, 4099} {
				t.checkReduction(&reductions[0], collective.Float32, count)
			}
		})
	}},
	{name: "B134 moves of every type", comms: true, run: func(e *env) {
		e.teams(1, func(t *team) {
			for _, typ := range t.types() {
				t.checkMoves(typ, 5)
			}
			for _, count := range []int{1, 1000, 4099} {
				t.checkMoves(collective.BFloat16, count)
			}
		})
	}},
	{name: "B111 ranks, counts, ids and rendezvous", comms: true, run: func(e *env) {
		d := e.devs[0]
		id, err := collective.NewID(d)
		e.must(err)
		if other, err := collective.NewID(d); err != nil || id == other || id == (collective.ID{}) {
			e.Errorf("two ids are the same, or zero: %v", err)
		}
		for what, o := range map[string]collective.Options{
			"no id":           {Count: 1},
			"no count":        {ID: id},
			"no rank":         {ID: id, Rank: -1, Count: 1},
			"a rank too high": {ID: id, Rank: 1, Count: 1},
			"a rank too low":  {ID: id, Rank: -2, Count: 1},
			"a count too low": {ID: id, Count: -2},
			"a timeout":       {ID: id, Count: 1, Timeout: -1},
			"no further id":   {ID: id, Count: 1, More: []collective.ID{id, {}}},
			"no such place":   {ID: id, Rank: -1, Count: -1, Rendezvous: place{rank: 3, count: 2}},
			"a short id":      {Count: 1, Rendezvous: place{count: 1, share: func([]byte) []byte { return make([]byte, 5) }}},
			"a zero id":       {Count: 1, Rendezvous: place{count: 1, share: func([]byte) []byte { return make([]byte, 128) }}},
		} {
			if c, err := collective.New(e.ctx, d, o); !errors.Is(err, gpu.ErrArgument) || c != nil {
				e.Errorf("%s: %v", what, err)
			}
		}
		asked := errors.New("asked in vain")
		if _, err := collective.New(e.ctx, d, collective.Options{Rank: -1, Rendezvous: place{err: asked}}); !errors.Is(err, asked) {
			e.Errorf("a rendezvous that fails: %v", err)
		}
		c, err := collective.New(e.ctx, d, collective.Options{Rank: -1, Count: -1, Rendezvous: place{count: 1}})
		e.must(err)
		if c.Rank() != 0 || c.Count() != 1 || c.Device() != d || c.Err() != nil {
			e.Errorf("rank %d of %d, %v", c.Rank(), c.Count(), c.Err())
		}
		e.must(c.Close())
		e.must(c.Close())
		s := e.sem()
		b := e.buffer(64)
		if err := c.Device().Queue(0).Submit(signal(s, 1), c.GroupContext(e.ctx, collective.AllReduce(b.All(), b.All(), collective.Float32, collective.Sum()))); !errors.Is(err, gpu.ErrClosed) {
			e.Errorf("after Close: %v", err)
		}
		e.failed(s, 1, gpu.ErrClosed)
	}},
	{name: "B111 the count of a group's communicator", devices: 2, comms: true, run: func(e *env) {
		for what, o := range map[string]collective.Options{
			"none":                             {},
			"none, and a rendezvous":           {Rendezvous: place{count: 1}},
			"-1":                               {Count: -1, Rendezvous: place{count: 1}},
			"none, and a rank of -1":           {Rank: -1, Rendezvous: place{count: 1}},
			"-1, and a rank of -1":             {Rank: -1, Count: -1, Rendezvous: place{count: 1}},
			"that of the devices":              {Count: 2, Rendezvous: place{count: 7}},
			"that of the devices, and no rank": {Rank: -1, Count: 2, Rendezvous: place{count: 7}},
		} {
			e.team(2, o, func(t *team) {
				for i, c := range t.comms {
					if c.Rank() != i || c.Count() != 2 {
						t.Errorf("a count of %s: rank %d of %d", what, c.Rank(), c.Count())
					}
				}
			})
		}
		g, err := gpu.OpenGroup(e.h.Driver, gpu.Options{}, 0, 1)
		e.must(err)
		id, err := collective.NewID(g.Devices()[0])
		e.must(err)
		for what, o := range map[string]collective.Options{
			"too many ranks":               {ID: id, Rank: 1},
			"too many ranks for the count": {ID: id, Count: 1},
			"a given count too low":        {ID: id, Rank: -1, Count: 3, Rendezvous: place{rank: 1, count: 2}},
			"nobody to ask for a rank":     {ID: id, Rank: -1, Count: 2},
			"nobody to ask for a count":    {ID: id, Count: -1},
			"a count that there is not":    {ID: id, Count: -2, Rendezvous: place{count: 1}},
			"no further id":                {More: []collective.ID{{}}},
		} {
			if c, err := collective.NewAll(e.ctx, g.Devices(), o); !errors.Is(err, gpu.ErrArgument) || c != nil {
				e.Errorf("%s: %v", what, err)
			}
		}
		e.must(g.Close())
	}},
	{name: "B111 several ids", devices: 2, comms: true, run: func(e *env) {
		id, err := collective.NewID(e.devs[0])
		e.must(err)
		more, err := collective.NewID(e.devs[1])
		e.must(err)
		e.team(2, collective.Options{ID: id, More: []collective.ID{more}, Count: 2}, (*team).meet)
	}},
	{name: "B184 communicators that ranks of other programs can join", comms: true, run: func(e *env) {
		infos, err := e.h.Driver.Devices()
		e.must(err)
		e.team(min(len(infos), 2), collective.Options{Plain: true, Name: "plain"}, func(t *team) {
			t.checkReduction(&reductions[0], collective.Float32, 1000)
			t.checkMoves(collective.Int32, 33)
			for what, f := range map[string]func(c *collective.Communicator) (*collective.Communicator, error){
				"split":             func(c *collective.Communicator) (*collective.Communicator, error) { return c.Split(t.ctx, 0, 0) },
				"shrink":            func(c *collective.Communicator) (*collective.Communicator, error) { return c.Shrink(t.ctx, false, 1) },
				"shrink with abort": func(c *collective.Communicator) (*collective.Communicator, error) { return c.Shrink(t.ctx, true, 1) },
			} {
				if len(t.comms) == 1 && what != "split" { // no rank to leave out
					continue
				}
				if c, err := f(t.comms[0]); c != nil || !errors.Is(err, driver.ErrUnsupported) || !strings.Contains(err.Error(), "Plain") {
					t.Errorf("%s: %v", what, err)
				}
			}
			t.meet() // the communicators still work
		})
	}},
	{name: "B192 communicators that are suspended", comms: true, run: func(e *env) {
		infos, err := e.h.Driver.Devices()
		e.must(err)
		e.team(min(len(infos), 2), collective.Options{Plain: true}, func(t *team) {
			rest := func(what string, f func(c *collective.Communicator, ctx context.Context) error) (unsupported bool) {
				errs := make([]error, len(t.comms))
				t.all(func(rank int) { errs[rank] = f(t.comms[rank], t.ctx) })
				for rank, err := range errs {
					if unsupported = errors.Is(err, driver.ErrUnsupported); err != nil && !unsupported {
						t.Fatalf("%s, rank %d of %d: %v", what, rank, len(t.comms), err)
					}
				}
				return unsupported
			}
			t.checkReduction(&reductions[0], collective.Float32, 1000)
			for range 2 {
				if rest("suspend", (*collective.Communicator).Suspend) {
					t.Logf("the library cannot suspend") // the communicators must work as before
					t.checkReduction(&reductions[0], collective.Float32, 1000)
					return
				}
				if s, err := t.comms[0].Stats(); !s.Suspended || err != nil {
					t.Errorf("a suspended communicator has %+v, %v", s, err)
				}
				b, s := t.memory(0, make([]byte, 64)), t.sem()
				if err := t.comms[0].Device().Queue(0).Submit(signal(s, 1), t.comms[0].GroupContext(t.ctx, collective.AllReduce(b.All(), b.All(), collective.Float32, collective.Sum()))); !errors.Is(err, collective.ErrSuspended) {
					t.Errorf("submitted to a suspended communicator: %v", err)
				}
				t.must(b.Close())
				if rest("resume", (*collective.Communicator).Resume) {
					t.Fatal("a suspended communicator cannot be resumed")
				}
				t.checkReduction(&reductions[0], collective.Float32, 1000)
				t.checkMoves(collective.Int32, 33)
			}
			// The communicators stay suspended. When this function returns, env.team closes them.
			rest("suspend", (*collective.Communicator).Suspend)
		})
		e.team(1, collective.Options{}, func(t *team) {
			if err := t.comms[0].Suspend(t.ctx); !errors.Is(err, driver.ErrUnsupported) {
				t.Errorf("a communicator with several communicators: %v", err)
			}
			t.checkReduction(&reductions[0], collective.Float32, 1000)
		})
	}},
	{name: "B82 mistakes", comms: true, run: func(e *env) {
		e.team(1, collective.Options{}, func(t *team) {
			b := t.memory(0, make([]byte, 64))
			all, half := b.All(), b.Range(0, 32)
			wrong := map[string]struct {
				x    collective.Operation
				kind error
			}{
				"sizes":           {collective.AllReduce(half, all, collective.Float32, collective.Sum()), gpu.ErrArgument},
				"half an element": {collective.AllReduce(b.Range(0, 30), b.Range(0, 30), collective.Float32, collective.Sum()), gpu.ErrArgument},
				"outside":         {collective.AllReduce(b.Range(32, 64), all, collective.Float32, collective.Sum()), gpu.ErrRange},
				"no buffer":       {collective.AllReduce(all, gpu.Range{}, collective.Float32, collective.Sum()), gpu.ErrArgument},
				"no such type":    {collective.AllGather(all, all, collective.ElementType(99)), gpu.ErrArgument},
				"16-bit integers": {collective.AllReduce(all, all, collective.Int16, collective.Sum()), driver.ErrUnsupported},
				"no such root":    {collective.Broadcast(all, all, collective.Float32, 1), gpu.ErrArgument},
				"no such peer":    {collective.Send(all, collective.Float32, -1), gpu.ErrArgument},
				"no such source":  {collective.SendReceive(all, all, collective.Float32, -1, 1), gpu.ErrArgument},
			}
			for what, w := range wrong {
				s := t.sem()
				if err := t.comms[0].Device().Queue(0).Submit(signal(s, 1), t.comms[0].GroupContext(t.ctx, collective.AllGather(all, all, collective.Float32), w.x)); !errors.Is(err, w.kind) {
					t.Errorf("%s: %v", what, err)
				}
				t.at(s, 0)
			}
			if t.comms[0].Err() != nil {
				t.Errorf("a mistake failed the communicator: %v", t.comms[0].Err())
			}
			s := t.sem()
			// This group is empty.
			t.must(t.comms[0].Device().Queue(0).Submit(signal(s, 1), t.comms[0].GroupContext(t.ctx)))
			t.wait(s, 1)
			over, cancel := context.WithCancel(t.ctx)
			cancel()
			if err := t.comms[0].Device().Queue(0).Submit(gpu.Order{}, t.comms[0].GroupContext(over, collective.AllGather(all, all, collective.Float32))); !errors.Is(err, context.Canceled) {
				t.Errorf("a context that has ended: %v", err)
			}
			t.must(b.Close())
			if err := t.comms[0].Device().Queue(0).Submit(gpu.Order{}, t.comms[0].GroupContext(t.ctx, collective.AllGather(all, all, collective.Float32))); !errors.Is(err, gpu.ErrClosed) {
				t.Errorf("a closed buffer: %v", err)
			}
		})
	}},
	{name: "B135 groups go to the device in the order of the calls", comms: true, run: func(e *env) {
		e.teams(1, func(t *team) {
			n := len(t.comms)
			host, first, second := t.sem(), t.sems(n), t.sems(n)
			b := make([]*gpu.Buffer, n)
			for i, c := range t.comms {
				b[i] = t.memory(i, elements(collective.Int32, []float64{1, 2}))
				one, two := b[i].Range(0, 4), b[i].Range(4, 4)
				t.must(c.Device().Queue(0).Submit(between(host, 1, first[i], 1), c.GroupContext(t.ctx, collective.AllReduce(one, one, collective.Int32, collective.Sum()))))
				t.must(c.Device().Queue(0).Submit(signal(second[i], 1), c.GroupContext(t.ctx, collective.AllReduce(two, two, collective.Int32, collective.Sum()))))
			}
			for range 100 { // the second group waits for nothing, but must stay behind the first
				for i := range n {
					t.must(t.devs[i].Queue(0).Flush())
					t.at(second[i], 0)
				}
			}
			t.must(host.Signal(1))
			for i := range n {
				t.wait(first[i], 1)
				t.wait(second[i], 1)
				t.same("both", t.get(i, b[i]), elements(collective.Int32, []float64{float64(n), float64(2 * n)}))
			}
		})
	}},
	{name: "B135 between work of queues", comms: true, run: func(e *env) {
		e.teams(1, func(t *team) { // fill, all-reduce, copy, all submitted ahead, three times
			n := len(t.comms)
			b, c := make([]*gpu.Buffer, n), make([]*gpu.Buffer, n)
			s := t.sems(n)
			for i := range n {
				b[i], c[i] = t.memory(i, make([]byte, 4096)), t.memory(i, make([]byte, 4096))
			}
			for round := range uint64(3) {
				for i, ch := range t.comms {
					q := t.devs[i].Queue(int(round))
					v := 3 * round
					t.must(q.Submit(between(s[i], v, s[i], v+1), gpu.Fill(b[i].All(), element(collective.Float32, float64(round+1)))))
					t.must(ch.Device().Queue(0).Submit(between(s[i], v+1, s[i], v+2), ch.GroupContext(t.ctx, collective.AllReduce(b[i].All(), b[i].All(), collective.Float32, collective.Sum()))))
					t.must(q.Submit(between(s[i], v+2, s[i], v+3), gpu.Copy(c[i].All(), b[i].All())))
				}
			}
			for i := range n {
				t.wait(s[i], 9)
				want := make([]float64, 1024)
				for j := range want {
					want[j] = float64(3 * n)
				}
				t.same("the last round", t.get(i, c[i]), elements(collective.Float32, want))
			}
		})
	}},
	{name: "B112 neighbours in a command buffer make a group", comms: true, run: func(e *env) {
		e.teams(1, func(t *team) {
			for _, mode := range []gpu.Mode{gpu.AutoMode, gpu.StreamMode, gpu.GraphMode} {
				t.recordedGroups(mode)
			}
		})
	}},
	{name: "B136 another rank never arrives", comms: true, run: func(e *env) {
		infos, err := e.h.Driver.Devices()
		e.must(err)
		for _, n := range []int{2, min(len(infos), 8)} {
			if n > 1 && n <= len(infos) {
				e.neverComes(n)
			}
		}
		ctx, cancel := context.WithTimeout(e.ctx, 50*time.Millisecond)
		defer cancel()
		id, err := collective.NewID(e.devs[0])
		e.must(err)
		if _, err = collective.New(ctx, e.devs[0], collective.Options{ID: id, Count: 2}); !errors.Is(err, context.DeadlineExceeded) {
			e.Errorf("a communicator whose other rank never calls New: %v", err)
		}
	}},
	{name: "B136 a wait fails", comms: true, run: func(e *env) {
		e.team(1, collective.Options{}, func(t *team) {
			b, why := t.memory(0, make([]byte, 64)), errors.New("why")
			from, s, next := t.sem(), t.sem(), t.sem()
			t.must(t.comms[0].Device().Queue(0).Submit(between(from, 1, s, 1), t.comms[0].GroupContext(t.ctx, collective.AllReduce(b.All(), b.All(), collective.Float32, collective.Sum()))))
			t.must(t.comms[0].Device().Queue(0).Submit(signal(next, 1), t.comms[0].GroupContext(t.ctx, collective.AllReduce(b.All(), b.All(), collective.Float32, collective.Sum()))))
			from.Fail(why)
			t.failed(s, 1, why)
			t.ends("the group behind it", next, why)
			if err := t.comms[0].Err(); !errors.Is(err, why) {
				t.Errorf("the communicator: %v", err)
			}
			t.must(t.comms[0].Close())
		})
	}},
	{name: "B136 work that depends on a failed group", comms: true, run: func(e *env) {
		e.teams(2, func(t *team) {
			t.meet()
			s := t.alone(0, t.ctx)
			after, other := t.sem(), t.sem()
			b := t.memory(0, make([]byte, 64))
			t.must(t.devs[0].Queue(0).Submit(between(s, 1, after, 1), gpu.Fill(b.All(), []byte{1})))
			t.comms[0].Abort(nil)
			t.ends("the group", s, collective.ErrAborted)
			t.ends("what waits for it", after, collective.ErrAborted)
			t.must(t.devs[0].Queue(0).Submit(signal(other, 1), gpu.Fill(b.All(), []byte{2})))
			t.wait(other, 1) // the queue stays usable
			b.Close()
		})
	}},
	{name: "B77 B136 B145 issued work after a failed collective fails its signals, and the rest does not run", comms: true, run: func(e *env) {
		e.teams(2, func(t *team) {
			t.meet()
			ctx, cancel := context.WithCancel(t.ctx)
			defer cancel()
			c, q := t.comms[0], t.devs[0].Queue(0)
			b, issued, waiting := t.memory(0, make([]byte, 64)), t.memory(0, make([]byte, 64)), t.memory(0, make([]byte, 64))
			s, gate, parked, late, other := q.NewStream(), t.sem(), t.sem(), t.sem(), t.sem()
			// Only rank 0 submits this group, so the group cannot end.
			t.must(s.Do(c.GroupContext(ctx, collective.AllReduce(b.All(), b.All(), collective.Float32, collective.Sum()))))
			t.must(s.Fill(issued.All(), []byte{1}))
			p := s.Point()
			t.must(p.Semaphore.WaitIssued(t.ctx, p.Value))
			t.must(q.Submit(gpu.Order{Wait: []gpu.Point{p, gate.At(1)}, Signal: points(parked, 1)}, gpu.Fill(waiting.All(), []byte{1})))
			t.must(s.Do(gpu.HostCall(func() error { t.Error("a host call behind the collective runs"); return nil })))
			t.must(s.Fill(waiting.All(), []byte{1}))
			cancel()
			err := s.Wait(t.ctx)
			t.ends("the stream", p.Semaphore, context.Canceled)
			if later := s.Fill(waiting.All(), []byte{1}); err == nil || later != err {
				t.Errorf("a call of the stream after the failure: %v; want %v", later, err)
			}
			t.must(gate.Signal(1))
			t.ends("parked work", parked, context.Canceled)
			t.must(q.Submit(gpu.Order{Wait: []gpu.Point{p}, Signal: points(late, 1)}, gpu.Fill(waiting.All(), []byte{1})))
			t.ends("work that is submitted after the failure", late, context.Canceled)
			t.must(q.Submit(signal(other, 1), gpu.Fill(b.All(), []byte{2})))
			t.wait(other, 1) // the queue stays usable
			t.same("memory of work that was not issued", t.get(0, waiting), make([]byte, 64))
			for i, c := range t.comms {
				if i > 0 {
					c.Abort(nil) // otherwise closing c would wait for rank 0, which has failed
				}
			}
		})
	}},
	{name: "B137 closing", comms: true, run: func(e *env) {
		e.teams(2, func(t *team) {
			t.meet()
			b := t.memory(0, make([]byte, 64))
			parked := t.sem()
			t.must(t.comms[0].Device().Queue(0).Submit(between(t.sem(), 1, parked, 1), t.comms[0].GroupContext(t.ctx, collective.AllReduce(b.All(), b.All(), collective.Float32, collective.Sum()))))
			// All ranks close concurrently, because the Close of one rank may wait for the other
			// ranks.
			t.all(func(i int) {
				if err := t.comms[i].Close(); err != nil {
					t.Errorf("close of rank %d: %v", i, err)
				}
			})
			t.failed(parked, 1, gpu.ErrClosed)
			b.Close()
		})
		e.teams(2, func(t *team) { // Close of a device with a stuck communicator
			t.meet()
			s := t.alone(0, t.ctx)
			// If the group were not issued, Close would fail it, and not with ErrAborted.
			e.until("the group is issued", func() bool { return t.devs[0].Stats().InFlight == 1 })
			done := make(chan error)
			go func() { done <- t.devs[0].Close() }()
			t.comms[0].Abort(errors.New("no patience"))
			t.must(<-done)
			t.ends("the group", s, collective.ErrAborted)
			t.comms[1].Abort(nil) // only now, because rank 0 must fail by its own Abort
		})
	}},
	{name: "B138 split and shrink", comms: true, run: func(e *env) {
		e.teams(1, func(t *team) {
			n := len(t.comms)
			parts, rest := make([]*collective.Communicator, n), make([]*collective.Communicator, n)
			// One part has the even ranks, the other the odd ranks, both in reverse order. If there
			// are more than two ranks, the last is in neither part.
			t.all(func(i int) {
				color := i % 2
				if i == n-1 && n > 2 {
					color = collective.NoColor
				}
				c, err := t.comms[i].Split(t.ctx, color, -i)
				if parts[i] = c; err != nil || (c == nil) != (color == collective.NoColor) {
					t.Errorf("split of rank %d of %d: %v, %v", i, n, c, err)
				}
			})
			if t.Failed() {
				return
			}
			b := make([]*gpu.Buffer, n)
			done := t.sems(n)
			members := [2]int{}
			for i, c := range parts {
				if c != nil {
					members[i%2]++
					b[i] = t.memory(i, elements(collective.Int32, []float64{float64(i + 1)}))
					t.must(c.Device().Queue(0).Submit(signal(done[i], 1), c.GroupContext(t.ctx, collective.AllReduce(b[i].All(), b[i].All(), collective.Int32, collective.Sum()))))
				}
			}
			for i, c := range parts {
				if c == nil {
					continue
				}
				t.wait(done[i], 1)
				sum := 0
				for j := i % 2; j < n; j += 2 {
					if parts[j] != nil {
						sum += j + 1
					}
				}
				t.same("sum of a part", t.get(i, b[i]), element(collective.Int32, float64(sum)))
				if want := members[i%2] - 1 - i/2; c.Count() != members[i%2] || c.Rank() != want {
					t.Errorf("rank %d became %d of %d, want %d of %d", i, c.Rank(), c.Count(), want, members[i%2])
				}
				b[i].Close()
			}
			t.all(func(i int) {
				if parts[i] != nil {
					if err := parts[i].Close(); err != nil {
						t.Errorf("close of a part: %v", err)
					}
				}
			})
			if n < 2 {
				return
			}
			t.all(func(i int) {
				if i == 1 {
					return
				}
				c, err := t.comms[i].Shrink(t.ctx, false, 1)
				if errors.Is(err, errors.ErrUnsupported) {
					return
				}
				if rest[i] = c; err != nil || c.Count() != n-1 {
					t.Errorf("shrink on rank %d of %d: %v", i, n, err)
				}
			})
			t.all(func(i int) {
				if rest[i] != nil {
					rest[i].Close()
				}
			})
			t.meet() // the original communicators still work
			colors := []int{-2}
			if math.MaxInt > math.MaxInt32 {
				colors = append(colors, math.MaxInt)
			}
			for _, color := range colors {
				if _, err := t.comms[0].Split(t.ctx, color, 0); !errors.Is(err, gpu.ErrArgument) {
					t.Errorf("color %d: %v", color, err)
				}
			}
			for _, exclude := range [][]int{nil, {0}, {-1}, {n}} {
				if _, err := t.comms[0].Shrink(t.ctx, false, exclude...); !errors.Is(err, gpu.ErrArgument) {
					t.Errorf("without %v: %v", exclude, err)
				}
			}
		})
	}},
	{name: "B139 memory registered with a communicator", comms: true, run: func(e *env) {
		e.teams(1, func(t *team) {
			n := len(t.comms)
			b, known := make([]*gpu.Buffer, n), make([]*collective.Memory, n)
			for i := range n {
				var err error
				if b[i], err = t.devs[i].Alloc(gpu.CommMem, 1<<20); errors.Is(err, errors.ErrUnsupported) {
					return
				} else if err != nil {
					t.Fatal(err)
				}
			}
			for _, window := range []bool{false, true} {
				missing := false
				t.all(func(i int) {
					var err error
					if known[i], err = t.comms[i].Register(b[i]); window {
						if err == nil {
							err = known[i].Close()
						}
						if err == nil {
							known[i], err = t.comms[i].NewWindow(t.ctx, b[i], true)
						}
					}
					if errors.Is(err, errors.ErrUnsupported) {
						missing = true
					} else if err != nil {
						t.Errorf("window %v, rank %d of %d: %v", window, i, n, err)
					}
				})
				if missing || t.Failed() {
					return
				}
				for i := range n {
					t.put(i, b[i], elements(collective.Float32, []float64{1, 2, 3}))
				}
				t.submit("registered", func(i int) []collective.Operation {
					return []collective.Operation{collective.AllReduce(b[i].Range(0, 12), b[i].Range(0, 12), collective.Float32, collective.Sum())}
				})
				for i := range n {
					f := float64(n)
					t.same("registered", t.get(i, b[i])[:12], elements(collective.Float32, []float64{f, 2 * f, 3 * f}))
				}
				t.all(func(i int) {
					if err := errors.Join(known[i].Close(), known[i].Close()); err != nil {
						t.Errorf("window %v, rank %d: close: %v", window, i, err)
					}
				})
			}
			m, err := t.devs[0].Alloc(gpu.DeviceMem, 64)
			t.must(err)
			if _, err := t.comms[0].Register(m); !errors.Is(err, gpu.ErrArgument) {
				t.Errorf("other memory: %v", err)
			}
			if k, err := t.comms[0].Register(b[0]); err != nil {
				t.Error(err)
			} else {
				_ = k // the communicator unregisters b[0] when the communicator is closed
			}
			m.Close()
			for i := range n {
				b[i].Close()
			}
		})
	}},
}

// recordedGroups makes a recording on each rank. The recording has groups of all-reduces on a
// binding, and other commands. recordedGroups executes each recording twice.
func (t *team) recordedGroups(mode gpu.Mode) {
	t.Helper()
	n := len(t.comms)
	cbs := make([]*gpu.CommandBuffer, n)
	for i := range n {
		c, err := t.devs[i].NewCommandBuffer(gpu.CommandOptions{Mode: mode})
		if errors.Is(err, driver.ErrUnsupported) {
			return
		}
		t.must(err)
		cbs[i] = c
		b, err := c.Binding()
		t.must(err)
		at := func(i uint64) gpu.Range { return b.Range(4*i, 4) }
		record := func(_ gpu.Command, err error) {
			t.Helper()
			t.must(err)
		}
		sum := func(i uint64) collective.Operation {
			return collective.AllReduce(at(i), at(i), collective.Int32, collective.Sum())
		}
		record(c.Add(gpu.Fill(at(0), element(collective.Int32, 5))))
		record(c.Add(gpu.Barrier()))
		record(c.Add(t.comms[i].Group(sum(0), sum(1)))) // two operations
		record(c.Add(t.comms[i].Group()))               // no operations
		record(c.Add(t.comms[i].Group(sum(2))))         // one operation; the recording joins these three groups
		record(c.Add(gpu.Barrier()))
		record(c.Add(t.comms[i].Group(sum(3))))
		record(c.Add(gpu.Copy(at(4), at(3))))
		record(c.Add(gpu.HostCall(func() error { return nil })))
		record(c.Add(t.comms[i].Group(sum(4))))
		t.must(c.End())
	}
	for round := range 2 {
		b, done := make([]*gpu.Buffer, n), t.sems(n)
		var calls []uint64
		for i := range n {
			b[i] = t.memory(i, elements(collective.Int32, []float64{0, 1, 2, 3, 4}))
			if t.h.Calls != nil {
				calls = append(calls, t.h.Calls(i, "collect"))
			}
			t.must(t.devs[i].Queue(0).Submit(signal(done[i], 1), gpu.Execute(cbs[i], b[i].All())))
		}
		f := float64(n)
		for i := range n {
			t.wait(done[i], 1)
			t.same(fmt.Sprintf("mode %v, round %d", mode, round), t.get(i, b[i]), elements(collective.Int32, []float64{5 * f, f, 2 * f, 3 * f, 3 * f * f}))
			if t.h.Calls != nil {
				if got := t.h.Calls(i, "collect") - calls[i]; got != 3 {
					t.Errorf("%d groups, want 3", got)
				}
			}
			b[i].Close()
		}
	}
	for _, c := range cbs {
		t.must(c.Close())
	}
}

// neverComes makes rank 0 do an all-reduce without the other ranks, and ends it: once by Abort,
// once by a context, and once by a timeout.
func (e *env) neverComes(n int) {
	e.Helper()
	for what, end := range map[string]func(t *team) (s *gpu.Semaphore, kind error){
		"abort": func(t *team) (*gpu.Semaphore, error) {
			s := t.alone(0, t.ctx)
			t.comms[0].Abort(errors.New("no patience"))
			return s, collective.ErrAborted
		},
		"a context": func(t *team) (*gpu.Semaphore, error) {
			ctx, cancel := context.WithCancel(t.ctx)
			defer cancel()
			return t.alone(0, ctx), context.Canceled
		},
		"a timeout": func(t *team) (*gpu.Semaphore, error) {
			return t.alone(0, context.Background()), context.DeadlineExceeded
		},
	} {
		o := collective.Options{Name: "test"}
		if what == "a timeout" {
			o.Timeout = 300 * time.Millisecond // long enough for team.meet, in which some libraries connect the ranks
		}
		for _, met := range []bool{false, true} {
			e.team(n, o, func(t *team) {
				if met {
					t.meet()
				}
				s, kind := end(t)
				t.ends(fmt.Sprintf("%s, met %v", what, met), s, kind)
				if err := t.comms[0].Err(); !errors.Is(err, kind) {
					t.Errorf("%s: the communicator: %v", what, err)
				}
				later := t.sem()
				b := t.memory(0, make([]byte, 64))
				if err := t.comms[0].Device().Queue(0).Submit(signal(later, 1), t.comms[0].GroupContext(t.ctx, collective.AllGather(b.All(), b.Range(0, 64/uint64(len(t.comms))/4*4), collective.Uint8))); err == nil {
					t.Errorf("%s: a failed communicator takes more", what)
				}
				b.Close()
				for i, c := range t.comms {
					if i > 0 {
						c.Abort(nil) // otherwise c.Close would wait for rank 0, which has failed
					}
					if err := c.Close(); err != nil {
						t.Errorf("%s: close of rank %d: %v", what, i, err)
					}
				}
			})
		}
	}
}

// A place is a Rendezvous for one rank. Its methods return results that a test chooses.
type place struct {
	rank, count int
	err         error
	share       func(id []byte) []byte
}

func (p place) Place() (int, int, error) { return p.rank, p.count, p.err }

func (p place) Share(_ context.Context, _ string, id []byte) ([]byte, error) {
	if p.share != nil {
		return p.share(id), nil
	}
	return id, nil
}
