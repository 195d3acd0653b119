package gpu_test

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/driver/simdriver"
	"github.com/puregpu/puregpu/runtime/gpu"
)

// TestExtremes calls everything with sizes, offsets, values and numbers from one end to the other, on memory in all its states.
// Each error is of a kind that is documented, that of the call and that of the signals.
func TestExtremes(t *testing.T) {
	cuda, hip := simdriver.CUDACaps(), simdriver.HIPCaps()
	for name, caps := range map[string]driver.Caps{"cuda": cuda, "hip": hip, "bare": {SubmitAnywhere: true, Comms: true}} {
		t.Run(name, func(t *testing.T) {
			d := newSim(t, simdriver.Config{Caps: &caps, Memory: 1 << 24, HostMemory: 1 << 24})
			dev := openDevice(t, d, 0, gpu.Options{StageSize: 4096})
			q := dev.Queue(0)
			w := newWorld(t)
			buffers := func(kinds ...*gpu.Buffer) { just(w, kinds...) }
			var pools []*gpu.Pool
			for _, o := range []gpu.PoolOptions{{}, {Portable: true}, {MaxSize: 4096}, {MaxSize: 4096, Portable: true}, {Zero: true, Portable: true},
				{Over: allocate(t, dev, 4096)}} {
				p, err := dev.NewPool(o)
				must(t, err)
				pools = append(pools, p)
				if o.MaxSize == 0 {
					b := alloca(t, q, gpu.Order{}, p, 512)
					buffers(b)
					gone := alloca(t, q, gpu.Order{}, p, 512)
					must(t, gone.Dealloca(gpu.Order{}))
					shut := alloca(t, q, gpu.Order{}, p, 512)
					shut.Close()
					buffers(gone, shut)
				}
			}
			closedPool, err := dev.NewPool(gpu.PoolOptions{Portable: true})
			must(t, err)
			left := alloca(t, q, gpu.Order{}, closedPool, 512)
			closedPool.Close()
			just(w, append(pools, closedPool)...)
			imported, err := dev.Import(allocate(t, dev, 4096).Ptr(), 4096, nil)
			must(t, err)
			host, err := dev.Alloc(gpu.HostMem, 8192)
			must(t, err)
			closed := allocate(t, dev, 64)
			closed.Close()
			c, err := dev.NewCommandBuffer(gpu.CommandOptions{})
			must(t, err)
			bound, err := c.Binding()
			must(t, err)
			small := allocate(t, dev, 255)
			buffers(allocate(t, dev, 8192), small, allocate(t, dev, 0), imported, host, closed, bound, left)
			ended, err := dev.NewCommandBuffer(gpu.CommandOptions{})
			must(t, err)
			must(t, ended.End())
			just(w, c, ended)
			just(w, dev)
			x, err := dev.Load([]byte("// sim: nothing saxpy"))
			must(t, err)
			k, err := x.Kernel("saxpy")
			must(t, err)
			just(w, k)
			g, err := gpu.NewGroup(dev)
			must(t, err)
			id, err := dev.NewChannelID()
			must(t, err)
			ch, err := dev.NewChannel(minute(t), gpu.ChannelOptions{ID: id, Count: 1})
			must(t, err)
			just(w, ch)
			just(w, gpu.PoolOptions{}, gpu.PoolOptions{Over: small}, gpu.PoolOptions{Over: allocate(t, dev, 0)}, gpu.PoolOptions{Over: new(gpu.Buffer)},
				gpu.PoolOptions{InitialSize: math.MaxUint64}, gpu.PoolOptions{InitialSize: math.MaxUint64, Portable: true},
				gpu.PoolOptions{InitialSize: 1 << 62, Portable: true}, gpu.PoolOptions{MaxSize: 1, Portable: true},
				gpu.PoolOptions{MaxSize: math.MaxUint64, InitialSize: 1, Threshold: math.MaxUint64})
			var signalled []*gpu.Semaphore
			for _, value := range []uint64{1, gpu.MaxValue} {
				give(w, func() gpu.Order {
					s := new(gpu.Semaphore)
					signalled = append(signalled, s)
					return gpu.Order{Signal: pts(s, value)}
				})
			}
			for _, of := range []any{dev, q, g, c, x, ch, pools[0], pools[1], imported, host, left} {
				typ := reflect.TypeOf(of)
				for i := range typ.NumMethod() {
					method := typ.Method(i).Name
					switch name := typ.Elem().Name() + "." + method; {
					case method == "Close" || method == "Shutdown" || method == "End" || method == "Abort" || method == "Shrink":
						continue
					case name == "Buffer.Dealloca" && of != left: // the memory stays for others
						continue
					default:
						t.Run(name, func(t *testing.T) {
							r := rand.New(rand.NewPCG(3, uint64(i)))
							for range 300 {
								signalled = signalled[:0]
								if errs := w.try(t, name, reflect.ValueOf(of).Method(i), r); len(errs) > 0 {
									continue
								}
								for _, s := range signalled {
									ctx, cancel := context.WithTimeout(t.Context(), patience)
									if err := s.Wait(ctx, 1); err != nil && (!documented(err) || errors.Is(err, context.DeadlineExceeded)) {
										t.Errorf("%s signals with an error that is not documented: %v", name, err)
									}
									cancel()
								}
							}
						})
					}
				}
			}
			if err := q.Flush(); err != nil {
				t.Errorf("the device is lost: %v", err)
			}
		})
	}
}
