package gputest

import (
	"encoding/binary"
	"math/rand/v2"

	"github.com/puregpu/puregpu/runtime/gpu"
)

// A holding is a buffer of a pool, with its expected contents.
type holding struct {
	b     *gpu.Buffer
	word  uint32      // the value of every 32-bit word
	ready gpu.Point   // the point of the last write, or of the allocation
	uses  []gpu.Point // the points of reads since the last write
}

// A peek is a download whose expected data is known.
type peek struct {
	got  []byte
	word uint32
	done gpu.Point
}

var randomPools = []test{
	{name: "B90 B91 B95 memory has one owner at a time, in random work", run: func(e *env) {
		e.eachPool(func(e *env, p *gpu.Pool) {
			first := rand.Uint64()
			for seed := first; seed < first+6 && !e.Failed(); seed++ {
				e.randomPool(p, seed)
				if e.Failed() {
					e.Errorf("the seed was %d", seed)
				}
			}
		})
	}},
}

// randomPool allocates, fills, copies, reads and frees memory on all queues at random. Semaphores
// order the uses of each buffer. Some work is parked, and is released at random times.
func (e *env) randomPool(p *gpu.Pool, seed uint64) {
	const steps, most = 250, 12
	r := rand.New(rand.NewPCG(seed, 3))
	gate, gates := e.sem(), uint64(0)
	var live []*holding
	var peeks []peek
	var ends []gpu.Point // the points that Frees signal
	next := uint32(seed)
	// submit calls the function do with a random queue and an order. The order waits for the given
	// points, and signals a new semaphore. Sometimes the order also waits for the semaphore gate or
	// for a Free.
	submit := func(wait []gpu.Point, do func(q *gpu.Queue, o gpu.Order) error) gpu.Point {
		o := gpu.Order{Wait: append([]gpu.Point(nil), wait...), Signal: points(e.sem(), 1+r.Uint64N(3))}
		if r.IntN(12) == 0 {
			o.Wait = append(o.Wait, gpu.Point{Semaphore: gate, Value: gates + 1})
		}
		if len(ends) > 0 && r.IntN(3) == 0 {
			o.Wait = append(o.Wait, ends[r.IntN(len(ends))])
		}
		r.Shuffle(len(o.Wait), func(i, j int) { o.Wait[i], o.Wait[j] = o.Wait[j], o.Wait[i] })
		e.must(do(e.q(r.IntN(4)), o))
		return o.Signal[0]
	}
	fill := func(h *holding) {
		next += 0x01030507
		var word [4]byte
		binary.LittleEndian.PutUint32(word[:], next)
		h.word = next
		h.ready = submit(append(h.uses, h.ready), func(q *gpu.Queue, o gpu.Order) error { return q.Submit(o, gpu.Fill(h.b.All(), word[:])) })
		h.uses = nil
	}
	look := func(h *holding) {
		n := min(h.b.Size(), 64)
		at := r.Uint64N(h.b.Size()/4-n/4+1) * 4
		x := peek{got: make([]byte, n), word: h.word}
		x.done = submit([]gpu.Point{h.ready}, func(q *gpu.Queue, o gpu.Order) error { return q.Submit(o, gpu.Download(x.got, h.b.Range(at, n))) })
		h.uses = append(h.uses, x.done)
		peeks = append(peeks, x)
	}
	drop := func(i int) {
		h := live[i]
		live = append(live[:i], live[i+1:]...)
		if r.IntN(8) == 0 { // without a Free: Close frees the memory after its last use
			e.must(h.b.Close())
			return
		}
		ends = append(ends, submit(append(h.uses, h.ready), func(q *gpu.Queue, o gpu.Order) error { return q.Submit(o, gpu.Free(h.b)) }))
	}
	for range steps {
		switch k := r.IntN(10); {
		case len(live) == 0 || k < 3 && len(live) < most:
			h := &holding{}
			size := 4 * (1 + r.Uint64N(1<<uint(2+r.IntN(12))))
			if r.IntN(4) == 0 { // an allocation without waits and signals
				q := e.q(r.IntN(4))
				err := q.Submit(gpu.Order{}, gpu.Alloc(&h.b, p, size))
				e.must(err)
				h.ready = gpu.Point{Semaphore: e.sem(), Value: 1}
				e.must(q.Submit(gpu.Order{Signal: []gpu.Point{h.ready}}, gpu.Fill(h.b.All(), []byte{0})))
			} else {
				h.ready = submit(nil, func(q *gpu.Queue, o gpu.Order) (err error) {
					err = q.Submit(o, gpu.Alloc(&h.b, p, size))
					return err
				})
			}
			fill(h)
			live = append(live, h)
		case k < 5:
			fill(live[r.IntN(len(live))])
		case k < 8:
			look(live[r.IntN(len(live))])
		case k < 9 && len(live) > 1: // a copy from one buffer to another
			i, j := r.IntN(len(live)), r.IntN(len(live))
			if i == j || live[i].b.Size() > live[j].b.Size() {
				continue
			}
			to, from := live[i], live[j]
			to.ready = submit(append(to.uses, to.ready, from.ready), func(q *gpu.Queue, o gpu.Order) error {
				return q.Submit(o, gpu.Copy(to.b.All(), from.b.Range(0, to.b.Size())))
			})
			to.uses, to.word = nil, from.word
			from.uses = append(from.uses, to.ready)
		default:
			i := r.IntN(len(live))
			look(live[i])
			drop(i)
		}
		if r.IntN(20) == 0 {
			gates++
			e.must(gate.Signal(gates))
		}
	}
	gates++
	e.must(gate.Signal(gates))
	for len(live) > 0 {
		look(live[0])
		drop(0)
	}
	e.must(gate.Signal(gates + 1))
	for i, x := range peeks {
		e.wait(x.done.Semaphore, x.done.Value)
		for at := 0; at < len(x.got); at += 4 {
			if got := binary.LittleEndian.Uint32(x.got[at:]); got != x.word {
				e.Errorf("peek %d: word %d is %#x, want %#x", i, at/4, got, x.word)
				break
			}
		}
	}
	for _, p := range ends {
		e.wait(p.Semaphore, p.Value)
	}
	e.unused(p)
}
