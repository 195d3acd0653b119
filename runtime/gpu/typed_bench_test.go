package gpu_test

import (
	"testing"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/gpu"
)

// A kernelDriver is an idle driver that can load kernels. All kernels have the parameters of saxpy.
type kernelDriver struct{ idleDriver }

func (kernelDriver) Open(int) (driver.Device, error) { return new(kernelDevice), nil }

type kernelDevice struct{ idleDevice }

func (d *kernelDevice) Load([]byte) (driver.Module, error) { return 1, nil }
func (d *kernelDevice) Unload(driver.Module) error         { return nil }
func (d *kernelDevice) Function(driver.Module, string) (driver.Function, driver.FuncInfo, error) {
	return 1, driver.FuncInfo{Params: []int{8, 4, 8, 8}}, nil
}
func (d *kernelDevice) Launch(driver.Stream, *driver.Launch) error { return nil }

// BenchmarkLaunch launches saxpy in a queue or a stream, with one Op or with a new struct of
// arguments for each launch. It also executes a recording of 16 launches. Each operation waits for
// the previous one. The device does no work.
func BenchmarkLaunch(b *testing.B) {
	dev, err := gpu.Open(kernelDriver{}, 0, gpu.Options{})
	must(b, err)
	b.Cleanup(func() { dev.Close() })
	x, err := dev.Load(nil)
	must(b, err)
	k, err := x.Kernel("saxpy")
	must(b, err)
	typed, err := gpu.Typed[saxpySlices](k)
	must(b, err)
	xs, err := gpu.AllocSlice[float32](dev, gpu.DeviceMem, 1000)
	must(b, err)
	q, s := dev.Queue(0), dev.Queue(1).NewStream()
	op := gpu.Launch(k, gpu.GridFor(1000, 256), uint64(1000), float32(2), xs, xs)
	done, v := semaphores(b, 1)[0], uint64(0)
	var wait, signal [1]gpu.Point
	next := func() gpu.Order {
		wait[0], signal[0] = done.At(v), done.At(v+1)
		v++
		return gpu.Order{Wait: wait[:], Signal: signal[:]}
	}
	r := commandBuffer(b, dev, gpu.StreamMode)
	bound, err := r.Binding()
	must(b, err)
	ys, err := gpu.SliceOf[float32](bound.Range(0, 4000))
	must(b, err)
	for range 16 {
		recorded(b)(r.Add(typed.Launch(gpu.GridFor(1000, 256), saxpySlices{1000, 2, xs, ys})))
	}
	must(b, r.End())
	binding := []gpu.Range{xs.Range()}
	for _, c := range []struct {
		name   string
		launch func() error
	}{
		{"queue, the same Op", func() error { return q.Submit(next(), op) }},
		{"queue, struct", func() error {
			return q.Submit(next(), typed.Launch(gpu.GridFor(1000, 256), saxpySlices{1000, 2, xs, xs}))
		}},
		{"stream, the same Op", func() error { return s.Do(op) }},
		{"stream, struct", func() error {
			return s.Do(typed.Launch(gpu.GridFor(1000, 256), saxpySlices{1000, 2, xs, xs}))
		}},
		{"stream, recording", func() error { return s.Do(gpu.Execute(r, binding...)) }},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if err := c.launch(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
