package gpu_test

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/puregpu/puregpu/runtime/driver/simdriver"
	"github.com/puregpu/puregpu/runtime/gpu"
)

// TestPoolRandomFaults allocates, fills, looks and deallocates while calls fail at random: what is reached is right, what is
// not has failed, nothing is used when it is nobody's, and nothing is left behind.
func TestPoolRandomFaults(t *testing.T) {
	first := *seed
	if first == 0 {
		first = rand.Uint64()
	}
	for seed := first; seed < first+30 && !t.Failed(); seed++ {
		poolFaults(t, seed)
		if t.Failed() {
			t.Errorf("failed with -gpu.seed=%d", seed)
		}
	}
}

func poolFaults(t *testing.T, seed uint64) {
	r := rand.New(rand.NewPCG(seed, 7))
	caps := simdriver.CUDACaps()
	if r.IntN(2) == 0 {
		caps = simdriver.HIPCaps()
	}
	var mu sync.Mutex
	var broken error
	d := newSim(t, simdriver.Config{Caps: &caps, OnExecute: func(e simdriver.Executed) {
		if e.Err != nil {
			mu.Lock()
			broken = e.Err
			mu.Unlock()
		}
	}})
	dev := openDevice(t, d, 0, gpu.Options{Queues: 3, Events: 1 + r.IntN(4)})
	p := newPool(t, dev, gpu.PoolOptions{Portable: r.IntN(2) == 0, MaxSize: 1 << 20, Zero: r.IntN(3) == 0, Threshold: r.Uint64N(1 << 18)})
	ctx := minute(t)
	type look struct {
		got  []byte
		word [4]byte
		done gpu.Point
	}
	var looks []look
	var ends []gpu.Point
	ops := []simdriver.Op{simdriver.OpAllocAsync, simdriver.OpFreeAsync, simdriver.OpAlloc, simdriver.OpFree, simdriver.OpRecord,
		simdriver.OpStreamWait, simdriver.OpFill, simdriver.OpNewEvent, simdriver.OpQuery}
	var fault *simdriver.Injected
	q := func() *gpu.Queue { return dev.Queue(r.IntN(3)) }
	for i := range 200 {
		if (fault == nil || fault.Hits() > 0) && r.IntN(4) == 0 { // one at a time: a second record that fails loses the device
			fault = d.Inject(simdriver.Fault{Op: ops[r.IntN(len(ops))], N: 1 + r.Uint64N(8)})
		}
		s, v := semaphores(t, 1)[0], uint64(0)
		next := func() gpu.Order { v++; return gpu.Order{Wait: pts(s, v-1), Signal: pts(s, v)} }
		taken := func(err error) bool { // what the call refuses nobody will signal
			if err != nil {
				s.Fail(err)
			}
			return err == nil
		}
		o := next()
		if len(ends) > 0 && r.IntN(2) == 0 {
			if end := ends[r.IntN(len(ends))]; r.IntN(2) == 0 {
				o.Wait = append(o.Wait, end)
			} else {
				end.Semaphore.Wait(ctx, end.Value)
			}
		}
		b, err := q().Alloca(o, p, 4*(1+r.Uint64N(1<<uint(4+r.IntN(10)))))
		if !taken(err) {
			continue
		}
		x := look{got: make([]byte, 4)}
		binary.LittleEndian.PutUint32(x.word[:], uint32(seed)+uint32(i)*0x01010101)
		if taken(q().Fill(next(), b.All(), x.word[:])) {
			from := 4 * r.Uint64N(b.Size()/4)
			if o := next(); taken(q().Download(o, x.got, b.Range(from, 4))) {
				x.done = o.Signal[0]
				looks = append(looks, x)
			}
		}
		switch {
		case r.IntN(5) == 0:
			b.Close()
		default:
			if o := next(); taken(q().Dealloca(o, b)) {
				ends = append(ends, o.Signal[0])
			}
		}
	}
	good := 0
	for i, x := range looks {
		if x.done.Semaphore.Wait(ctx, x.done.Value) != nil {
			continue
		}
		if good++; !bytes.Equal(x.got, x.word[:]) {
			t.Errorf("look %d: %x, want %x", i, x.got, x.word)
		}
	}
	for _, p := range ends {
		p.Semaphore.Wait(ctx, p.Value)
	}
	if ctx.Err() != nil {
		t.Error("something is neither reached nor failed")
	}
	if good < len(looks)/4 {
		t.Errorf("%d of %d have gone well", good, len(looks))
	}
	dev.Close()
	mu.Lock()
	defer mu.Unlock()
	if broken != nil {
		t.Error(broken)
	}
}
