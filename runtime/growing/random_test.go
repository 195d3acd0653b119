package growing_test

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/puregpu/puregpu/runtime/driver/simdriver"
	"github.com/puregpu/puregpu/runtime/gpu"
	"github.com/puregpu/puregpu/runtime/growing"
	"github.com/puregpu/puregpu/runtime/internal/testkit"
)

// TestRandom grows, shrinks and shares memories from several goroutines that have work in flight.
// Work fails with ErrRange or runs, and never touches a page that is not mapped, which would lose
// the device.
func TestRandom(t *testing.T) {
	needsSharing(t)
	rounds := 400
	if testing.Short() {
		rounds = 60
	}
	d := newSim(t, simdriver.Config{Memory: 40 * page})
	dev := openDevice(t, d, 0, gpu.Options{Queues: 4})
	var all [3]*growing.Memory
	for i := range all {
		all[i] = reserve(t, dev, 8*page, page, growing.Options{})
	}
	var workers sync.WaitGroup
	for w := range uint64(4) {
		workers.Go(func() {
			r := rand.New(rand.NewPCG(w, 1))
			own := reserve(t, dev, 8*page, 0, growing.Options{}) // nobody else uses it
			for range rounds {
				s, m := dev.Queue(int(w)).NewStream(), all[r.IntN(len(all))]
				var err error
				switch r.IntN(6) {
				case 0:
					err = m.Grow(r.Uint64N(9) * page)
				case 1:
					err = m.Shrink(r.Uint64N(4)*page, s.Point())
				case 2:
					err = m.Share(t.Context(), all[r.IntN(len(all))], 0, page)
				case 3: // without an order
					at := r.Uint64N(8) * page
					if err = s.Do(gpu.Fill(m.Buffer().Range(at, page/64), []byte{byte(w)})); err == nil {
						err = s.Wait(t.Context())
					}
				case 4:
					c := testkit.CommandBuffer(t, dev, gpu.GraphMode)
					if _, err = c.Add(gpu.Fill(m.Buffer().Range(r.Uint64N(8)*page, 64), []byte{byte(w)})); err == nil {
						err = c.End()
					}
					if err == nil {
						err = s.Do(gpu.Execute(c))
					}
					if err == nil {
						err = s.Wait(t.Context())
					}
					must(t, c.Close())
				case 5: // in order: it never fails
					n := 1 + r.Uint64N(4)
					must(t, own.Grow(n*page))
					data, got := bytes.Repeat([]byte{byte(w) + 1}, page/8), make([]byte, page/8)
					at := own.Buffer().Range((n-1)*page, page/8)
					must(t, s.Do(gpu.Upload(at, data), gpu.Download(got, at)))
					must(t, own.Shrink(r.Uint64N(n)*page, s.Point()))
					must(t, s.Wait(t.Context()))
					if !bytes.Equal(got, data) {
						t.Error("wrong contents")
					}
				}
				if err != nil && !errors.Is(err, gpu.ErrRange) && !errors.Is(err, gpu.ErrOutOfMemory) {
					t.Error(err)
				}
			}
			must(t, own.Close())
		})
	}
	workers.Wait()
	for _, m := range all {
		must(t, m.Close())
	}
	eventually(t, "all memory is freed", func() bool { return mapped(d, 0) == 0 && dev.Stats().Device.Live == 0 }, dev)
}

// TestGrowAgainstClose closes a peer while Grow gives it access to new pages. Grow must succeed.
func TestGrowAgainstClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newSim(t, simdriver.Config{Devices: 2})
		dev, peer := openDevice(t, d, 0, gpu.Options{}), openDevice(t, d, 1, gpu.Options{})
		m := reserve(t, dev, 8*page, page, growing.Options{Peers: []*gpu.Device{peer}})
		d.SetLatency(simdriver.OpAccessPages, time.Second)
		grown := make(chan error)
		go func() { grown <- m.Grow(2 * page) }()
		time.Sleep(time.Second / 2)
		must(t, peer.Close())
		must(t, <-grown)
		must(t, m.Close())
	})
}

// TestRandomClose closes memories, a peer and the device while goroutines grow, shrink, share and
// use the memories. Nothing is left behind. Calls fail only with ErrRange, ErrOutOfMemory,
// ErrClosed or the error of a canceled context.
func TestRandomClose(t *testing.T) {
	needsSharing(t)
	rounds := 200
	if testing.Short() {
		rounds = 30
	}
	for seed := range uint64(rounds) {
		d := newSim(t, simdriver.Config{Devices: 2, Memory: 20 * page})
		dev, peer := openDevice(t, d, 0, gpu.Options{}), openDevice(t, d, 1, gpu.Options{})
		var all [2]*growing.Memory
		for i := range all {
			all[i] = reserve(t, dev, 8*page, page, growing.Options{Peers: []*gpu.Device{peer}})
		}
		var workers sync.WaitGroup
		for w := range uint64(3) {
			workers.Go(func() {
				r := rand.New(rand.NewPCG(seed, w))
				on := dev
				if w == 2 {
					on = peer
				}
				s := on.Queue(0).NewStream()
				for range 12 {
					var err error
					switch m := all[r.IntN(len(all))]; r.IntN(8) {
					case 0, 1:
						err = m.Grow(r.Uint64N(9) * page)
					case 2:
						err = m.Shrink(r.Uint64N(4)*page, s.Point())
					case 3:
						ctx, cancel := context.WithCancel(t.Context())
						if r.IntN(2) == 0 {
							cancel()
						}
						err = m.Share(ctx, all[r.IntN(len(all))], 0, page)
						cancel()
					case 4:
						err = m.Shrink(r.Uint64N(4)*page, testkit.NewSemaphore(t, 0).At(1)) // a point that is never reached
					case 5, 6:
						err = s.Do(gpu.Fill(m.Buffer().Range(r.Uint64N(8)*page, page/64), []byte{byte(w)}))
						if err != nil {
							s = on.Queue(0).NewStream()
						}
					case 7:
						if r.IntN(3) == 0 {
							err = m.Close()
						}
					}
					if err != nil && !errors.Is(err, gpu.ErrRange) && !errors.Is(err, gpu.ErrOutOfMemory) && !errors.Is(err, gpu.ErrClosed) && !errors.Is(err, context.Canceled) {
						t.Error(err)
					}
				}
			})
		}
		r := rand.New(rand.NewPCG(seed, 9))
		for _, x := range [][]*gpu.Device{{dev, peer}, {peer, dev}}[r.IntN(2)] {
			for range r.IntN(2000) {
				runtime.Gosched()
			}
			if err := x.Close(); err != nil && !errors.Is(err, gpu.ErrRange) && !errors.Is(err, gpu.ErrClosed) { // errors of streams that failed
				t.Error(err)
			}
		}
		workers.Wait()
		for _, m := range all {
			must(t, m.Close())
			if n := m.Size(); n != 0 {
				t.Errorf("%d bytes are mapped on a closed device", n)
			}
		}
		if n := mapped(d, 0); n != 0 {
			t.Errorf("seed %d: %d bytes of pages are left", seed, n)
		}
	}
}
