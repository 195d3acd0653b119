package gputest

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/puregpu/puregpu/runtime/collective"
	"github.com/puregpu/puregpu/runtime/gpu"
)

// CheckRank tests collectives, and sending and receiving, on one rank of a communicator, and checks
// the data that this rank receives. All other ranks must call CheckRank at the same time, in this
// process or in other processes.
func CheckRank(t *testing.T, ctx context.Context, c *collective.Communicator) {
	t.Helper()
	r := &alone{env: &env{T: t, ctx: ctx, devs: []*gpu.Device{c.Device()}}, c: c}
	for _, typ := range allTypes {
		for _, count := range []int{5, 1003} {
			r.moves(typ, count)
			for i := range reductions {
				if reduces(typ) && !(c.Count() == 1 && reductions[i].name == "sum of products") {
					r.reductions(&reductions[i], typ, count)
				}
			}
		}
	}
}

// An alone tests one rank of a communicator, without access to the other ranks.
type alone struct {
	*env
	c *collective.Communicator
}

// do makes a source buffer with the data send, and a destination buffer of size bytes. It submits
// the operation that op makes with the two buffers. If the parameter want is not nil, do checks the
// data in the destination buffer.
func (r *alone) do(what string, send []byte, size int, want []byte, op func(dst, src gpu.Range) collective.Operation) {
	r.Helper()
	src, dst := r.buffer(uint64(len(send))), r.buffer(uint64(size))
	s := r.sem()
	r.must(r.devs[0].Queue(0).Submit(signal(s, 1), gpu.UploadCopy(src.All(), send)))
	err := r.c.Device().Queue(0).Submit(between(s, 1, s, 2), r.c.GroupContext(r.ctx, op(dst.All(), src.All())))
	got := make([]byte, size)
	r.must(errors.Join(err, r.devs[0].Queue(0).Submit(between(s, 2, s, 3), gpu.Download(got, dst.All())), s.Wait(r.ctx, 3)))
	if want != nil {
		r.same(what, got, want)
	}
	src.Close()
	dst.Close()
}

func (r *alone) moves(typ collective.ElementType, count int) {
	n, me, size := r.c.Count(), r.c.Rank(), count*typ.Size()
	data := func(rank int) []byte { return random(n*size, uint64(rank+1)) } // a part for each rank
	part := func(rank, i int) []byte { return data(rank)[i*size:][:size] }
	all := func(f func(rank int) []byte) (joined []byte) {
		for i := range n {
			joined = append(joined, f(i)...)
		}
		return joined
	}
	what := func(op string) string { return fmt.Sprintf("%s of %d × %v, rank %d of %d", op, count, typ, me, n) }
	first := func(rank int) []byte { return part(rank, 0) }
	r.do(what("all-gather"), first(me), n*size, all(first), func(d, s gpu.Range) collective.Operation { return collective.AllGather(d, s, typ) })
	r.do(what("all-to-all"), data(me), n*size, all(func(i int) []byte { return part(i, me) }),
		func(d, s gpu.Range) collective.Operation { return collective.AllToAll(d, s, typ) })
	for root := range n {
		var gathered []byte
		if me == root {
			gathered = all(first)
		}
		r.do(what("broadcast"), first(me), size, first(root), func(d, s gpu.Range) collective.Operation { return collective.Broadcast(d, s, typ, root) })
		r.do(what("gather"), first(me), n*size, gathered, func(d, s gpu.Range) collective.Operation { return collective.Gather(d, s, typ, root) })
		r.do(what("scatter"), data(me), size, part(root, me), func(d, s gpu.Range) collective.Operation { return collective.Scatter(d, s, typ, root) })
	}
	for step := 1; step < n; step++ {
		to, from := (me+step)%n, (me+n-step)%n
		r.do(what("send and receive"), data(me), n*size, data(from), func(d, s gpu.Range) collective.Operation {
			return collective.SendReceive(d, s, typ, to, from)
		})
		r.do(what("send and receive of a part"), part(me, to), size, part(from, me), func(d, s gpu.Range) collective.Operation {
			return collective.SendReceive(d, s, typ, to, from)
		})
	}
}

func (r *alone) reductions(x *reduced, typ collective.ElementType, count int) {
	n, me, size := r.c.Count(), r.c.Rank(), count*typ.Size()
	what := func(op string) string {
		return fmt.Sprintf("%s by %s of %d × %v, rank %d of %d", op, x.name, count, typ, me, n)
	}
	sum := elements(typ, x.result(n, count))
	r.do(what("all-reduce"), elements(typ, x.row(me, count)), size, sum, func(d, s gpu.Range) collective.Operation { return collective.AllReduce(d, s, typ, x.r) })
	root, want := n-1, sum
	if me != root {
		want = nil
	}
	r.do(what("reduce"), elements(typ, x.row(me, count)), size, want, func(d, s gpu.Range) collective.Operation { return collective.Reduce(d, s, typ, x.r, root) })
	r.do(what("reduce-scatter"), elements(typ, x.row(me, n*count)), size, elements(typ, x.result(n, n*count))[me*size:][:size],
		func(d, s gpu.Range) collective.Operation { return collective.ReduceScatter(d, s, typ, x.r) })
}
