package zzbench

import (
	"testing"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/gpu"
	"github.com/puregpu/puregpu/runtime/internal/testkit"
)

type kernelDriver struct{ testkit.IdleDriver }

func (kernelDriver) Open(int) (driver.Device, error) { return new(kernelDevice), nil }

type kernelDevice struct{ testkit.IdleDevice }

func (d *kernelDevice) Load([]byte) (driver.Module, error) { return 1, nil }
func (d *kernelDevice) Unload(driver.Module) error         { return nil }
func (d *kernelDevice) Function(driver.Module, string) (driver.Function, driver.FuncInfo, error) {
	return 1, driver.FuncInfo{Params: []int{8, 4, 8, 8}}, nil
}
func (d *kernelDevice) Copy(driver.Stream, driver.Ptr, driver.Ptr, uint64) error { return nil }
func (d *kernelDevice) Launch(driver.Stream, *driver.Launch) error { return nil }

type saxpy struct {
	n    uint64
	a    float32
	x, y gpu.Slice[float32]
}

//go:noinline
func gen(k *gpu.TypedKernel[saxpy], s *gpu.Stream, g gpu.Grid, n uint64, a float32, x, y gpu.Slice[float32]) error {
	return s.Do(op(k, g, n, a, x, y))
}

func BenchmarkOps(b *testing.B) {
	dev, err := gpu.Open(kernelDriver{}, 0, gpu.Options{})
	if err != nil { b.Fatal(err) }
	defer dev.Close()
	m, _ := dev.Load(nil)
	k, err := m.Kernel("saxpy")
	if err != nil { b.Fatal(err) }
	typed, err := gpu.Typed[saxpy](k)
	if err != nil { b.Fatal(err) }
	xs, err := gpu.AllocSlice[float32](dev, gpu.DeviceMem, 1000)
	if err != nil { b.Fatal(err) }
	s := dev.Queue(1).NewStream()
	q := dev.Queue(2)
	sem, _ := gpu.NewSemaphore(0)
	v := uint64(0)
	p := []byte{1, 2, 3, 4}
	b.Run("fill", func(b *testing.B) { b.ReportAllocs(); for b.Loop() { if err := s.Fill(xs.Range(), p); err != nil { b.Fatal(err) } } })
	b.Run("dofill", func(b *testing.B) { b.ReportAllocs(); for b.Loop() { if err := s.Do(gpu.Fill(xs.Range(), p)); err != nil { b.Fatal(err) } } })
	b.Run("copy", func(b *testing.B) { b.ReportAllocs(); for b.Loop() { if err := s.Do(gpu.Copy(xs.Slice(0,100).Range(), xs.Slice(500,600).Range())); err != nil { b.Fatal(err) } } })
	b.Run("queuefill", func(b *testing.B) { b.ReportAllocs(); for b.Loop() { w,g := [1]gpu.Point{sem.At(v)}, [1]gpu.Point{sem.At(v+1)}; v++; o := gpu.Order{Wait: w[:], Signal: g[:]}; if err := q.Submit(o, gpu.Fill(xs.Range(), p)); err != nil { b.Fatal(err) } } })
	b.Run("launch", func(b *testing.B) { b.ReportAllocs(); for b.Loop() { if err := gen(typed, s, gpu.GridFor(1000, 256), 1000, 2, xs, xs); err != nil { b.Fatal(err) } } })
}

//go:noinline
func op(k *gpu.TypedKernel[saxpy], g gpu.Grid, n uint64, a float32, x, y gpu.Slice[float32]) gpu.Op {
	return k.Launch(g, saxpy{n, a, x, y})
}
