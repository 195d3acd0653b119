package gputest

import (
	"bytes"
	"context"
	"encoding/binary"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/puregpu/puregpu/runtime/gpu"
)

// settling is the duration from which a soak is long enough to check the pool's growth: after a
// quarter of the time, the pool must hardly grow.
const settling = 20 * time.Second

// slabSize is the largest step in which a portable pool grows, for the sizes used here.
const slabSize = 20 << 20

// SoakPool allocates and frees memory of a pool for the duration d, on all queues of the pool's
// device at once, with and without waits and signals. The sizes are mostly small, and at most 4
// MiB. Each buffer is filled with a pattern of its own, which is checked before the buffer is
// freed. At the end none of the pool's memory may be in use, and a portable pool must give all
// memory back.
//
// In a soak of 20 seconds or more, the pool must hardly grow after the first quarter of the time:
// the peak of its reserved memory may grow by a tenth or by slabSize, whichever is more, plus twice
// the growth of its peak use.
func SoakPool(t *testing.T, p *gpu.Pool, d time.Duration) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	ctx, cancel := context.WithTimeout(context.Background(), d+time.Minute)
	defer cancel()
	dev := p.Device()
	start := time.Now()
	var wg sync.WaitGroup
	var mu sync.Mutex
	steps, was := 0, gpu.PoolStats{}
	for q := range dev.Queues() {
		wg.Go(func() {
			s := soaker{t: t, ctx: ctx, p: p, q: q, r: rand.New(rand.NewPCG(seed, uint64(q)))}
			if !s.begin() {
				return
			}
			for time.Since(start) < d && s.step() {
			}
			for len(s.live) > 0 && s.drop(0) {
			}
			s.ok(s.s.Wait(s.ctx, s.v))
			mu.Lock()
			steps += s.steps
			mu.Unlock()
		})
	}
	quarter := time.AfterFunc(d/4, func() {
		if st, err := p.Stats(); err == nil {
			mu.Lock()
			was = st
			mu.Unlock()
		}
	})
	wg.Wait()
	quarter.Stop()
	passQueues(t, ctx, dev)
	st, err := p.Stats()
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d allocations, at the most %d bytes reserved and %d used, of which %d and %d after a quarter of the time", steps,
		st.ReservedHigh, st.UsedHigh, was.ReservedHigh, was.UsedHigh)
	if grown := st.UsedHigh - was.UsedHigh; d >= settling && st.ReservedHigh > was.ReservedHigh+max(was.ReservedHigh/10, slabSize)+2*grown {
		t.Errorf("the pool has grown from %d bytes to %d", was.ReservedHigh, st.ReservedHigh)
	}
	// If Caps.PoolsByStream is set, memory is freed in the stream that allocated it. So if one
	// queue allocates memory and another frees it without a signal, the memory may be freed some
	// time after the second queue has reached the Free.
	for st.Used > 0 && ctx.Err() == nil {
		passQueues(t, ctx, dev)
		if st, err = p.Stats(); err != nil {
			t.Fatal(err)
		}
	}
	if err := p.Trim(0); err != nil {
		t.Error(err)
	}
	if st, err := p.Stats(); err != nil || st.Used > 0 || p.Options().Portable && st.Reserved > 0 {
		t.Errorf("%d bytes are still in use, and %d reserved, %v", st.Used, st.Reserved, err)
	}
}

// passQueues submits a fill to each queue, and waits for the fills.
func passQueues(t *testing.T, ctx context.Context, dev *gpu.Device) {
	b, err := dev.Alloc(gpu.DeviceMem, 256)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	for q := range dev.Queues() {
		s, err := gpu.NewSemaphore(0)
		if err == nil {
			err = dev.Queue(q).Submit(gpu.Order{Signal: []gpu.Point{{Semaphore: s, Value: 1}}}, gpu.Fill(b.All(), []byte{0}))
		}
		if err == nil {
			err = s.Wait(ctx, 1)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// A soaker does a part of a soak on a goroutine of its own, mostly on queue number q. The semaphore
// s orders the soaker's work, and v is the value that the last result of soaker.next signals.
type soaker struct {
	t     *testing.T
	ctx   context.Context
	p     *gpu.Pool
	q     int
	r     *rand.Rand
	s     *gpu.Semaphore
	v     uint64
	live  []soaked
	steps int
	data  []byte
}

type soaked struct {
	b       *gpu.Buffer
	pattern []byte
}

func (s *soaker) begin() bool {
	var err error
	s.s, err = gpu.NewSemaphore(0)
	return s.ok(err)
}

func (s *soaker) ok(err error) bool {
	if err != nil {
		s.t.Errorf("queue %d, step %d: %v", s.q, s.steps, err)
	}
	return err == nil
}

// next returns an order that waits for the signal of the previous call's order, and signals the
// next value.
func (s *soaker) next() gpu.Order {
	s.v++
	return gpu.Order{Wait: []gpu.Point{{Semaphore: s.s, Value: s.v - 1}}, Signal: []gpu.Point{{Semaphore: s.s, Value: s.v}}}
}

func (s *soaker) queue() *gpu.Queue {
	if s.r.IntN(4) == 0 { // sometimes a random queue
		return s.p.Device().Queue(s.r.IntN(s.p.Device().Queues()))
	}
	return s.p.Device().Queue(s.q)
}

// step frees an older buffer if there are many, and allocates and fills a new one.
func (s *soaker) step() bool {
	s.steps++
	if len(s.live) >= 24 && !s.drop(s.r.IntN(len(s.live))) {
		return false
	}
	size := uint64(256) << s.r.IntN(8+s.r.IntN(8))
	size = size/2 + 8*s.r.Uint64N(size/16+1)
	q := s.queue()
	fill, o := q, gpu.Order{} // memory allocated without an order is ready for the same queue
	if s.r.IntN(2) == 0 {
		fill, o = s.queue(), s.next()
	}
	var b *gpu.Buffer
	err := q.Submit(o, gpu.Alloc(&b, s.p, size))
	if !s.ok(err) {
		return false
	}
	pattern := binary.NativeEndian.AppendUint64(nil, s.r.Uint64())
	s.live = append(s.live, soaked{b, pattern})
	return s.ok(fill.Submit(s.next(), gpu.Fill(b.All(), pattern)))
}

// drop checks a buffer, or a part of a large buffer, and frees the buffer.
func (s *soaker) drop(i int) bool {
	x := s.live[i]
	s.live[i] = s.live[len(s.live)-1]
	s.live = s.live[:len(s.live)-1]
	n := min(x.b.Size(), 4096)
	at := s.r.Uint64N((x.b.Size()-n)/8+1) * 8
	if uint64(len(s.data)) < n {
		s.data = make([]byte, 4096)
	}
	got := s.data[:n]
	if !s.ok(s.queue().Submit(s.next(), gpu.Download(got, x.b.Range(at, n)))) || !s.ok(s.s.Wait(s.ctx, s.v)) {
		return false
	}
	for i := 0; i < len(got); i += 8 {
		if !bytes.Equal(got[i:i+8], x.pattern) {
			s.t.Errorf("queue %d, step %d: a buffer of %d bytes has %x at %d, and not %x", s.q, s.steps, x.b.Size(), got[i:i+8], at+uint64(i), x.pattern)
			return false
		}
	}
	if s.r.IntN(2) == 0 {
		return s.ok(s.queue().Submit(gpu.Order{}, gpu.Free(x.b))) // all uses of x.b are done
	}
	return s.ok(s.queue().Submit(s.next(), gpu.Free(x.b)))
}
