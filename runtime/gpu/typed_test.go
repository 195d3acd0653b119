package gpu_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
	"unsafe"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/driver/simdriver"
	"github.com/puregpu/puregpu/runtime/gpu"
)

// saxpyArgs are the arguments of saxpy. The type parameters are types for memory: Slice, Range,
// *Buffer or driver.Ptr.
type saxpyArgs[X, Y any] struct {
	N uint64
	A float32
	X X
	Y Y
}

type saxpySlices = saxpyArgs[gpu.Slice[float32], gpu.Slice[float32]]

func kernelOf(t testing.TB, dev *gpu.Device, name string) (*gpu.Module, *gpu.Kernel) {
	t.Helper()
	x, err := dev.Load(simdriver.Image(name))
	must(t, err)
	k, err := x.Kernel(name)
	must(t, err)
	return x, k
}

// bind loads a kernel, and makes a TypedKernel of it.
func bind[A any](t testing.TB, dev *gpu.Device, name string) (*gpu.Module, *gpu.TypedKernel[A]) {
	t.Helper()
	x, k := kernelOf(t, dev, name)
	typed, err := gpu.Typed[A](k)
	must(t, err)
	return x, typed
}

// sliceOf allocates device memory for the elements, and uploads them in a stream.
func sliceOf[T any](t testing.TB, s *gpu.Stream, elements ...T) gpu.Slice[T] {
	t.Helper()
	xs, err := gpu.AllocSlice[T](s.Queue().Device(), gpu.DeviceMem, len(elements))
	must(t, err)
	must(t, s.Do(xs.UploadCopy(elements)))
	return xs
}

// elementsOf downloads the elements of a slice in a stream, waits for the stream, and returns the
// elements.
func elementsOf[T any](t testing.TB, s *gpu.Stream, xs gpu.Slice[T]) []T {
	t.Helper()
	got := make([]T, xs.Len())
	must(t, s.Do(xs.Download(got)))
	must(t, s.Wait(minute(t)))
	return got
}

func TestTypedKernel(t *testing.T) {
	t.Run("memory in each form, by each way in", func(t *testing.T) {
		onEach(t, 1, func(t *testing.T, d *simdriver.Driver, caps driver.Caps) {
			dev := openDevice(t, d, 0, gpu.Options{})
			s := dev.Queue(0).NewStream()
			_, k := kernelOf(t, dev, "saxpy")
			xs, ys := sliceOf[float32](t, s, 1, 2, 3, 4), sliceOf[float32](t, s, 10, 20, 30, 40)
			grid := gpu.GridFor(3, 2)
			slices1, err := gpu.Typed[saxpySlices](k)
			must(t, err)
			// After this launch ys is 14 26 38 40.
			must(t, s.Do(slices1.Launch(grid, saxpySlices{3, 2, xs.Slice(1, 4), ys})))
			ranges, err := gpu.Typed[saxpyArgs[gpu.Range, *gpu.Buffer]](k)
			must(t, err)
			// After this launch ys is 15 28 41 40.
			must(t, inStream(s, dev.Queue(1), ranges.Launch(grid, saxpyArgs[gpu.Range, *gpu.Buffer]{3, 1, xs.Slice(0, 3).Range(), ys.Range().Buffer})))
			pointers, err := gpu.Typed[saxpyArgs[driver.Ptr, gpu.Slice[float32]]](k)
			must(t, err)
			must(t, s.Do(pointers.Launch(gpu.GridFor(1, 1), saxpyArgs[driver.Ptr, gpu.Slice[float32]]{1, 1, xs.Range().Buffer.Ptr() + 12, ys.Slice(3, 4)})))
			if got := elementsOf(t, s, ys); !slices.Equal(got, []float32{15, 28, 41, 44}) {
				t.Errorf("%v", got)
			}
			for _, mode := range []gpu.Mode{gpu.StreamMode, gpu.AutoMode} {
				c := commandBuffer(t, dev, mode)
				b, err := c.Binding()
				must(t, err)
				in, err := gpu.SliceOf[float32](b.Range(0, 8))
				must(t, err)
				first, err := c.Add(slices1.Launch(gpu.GridFor(2, 32), saxpySlices{2, 1, in, ys.Slice(0, 2)}))
				must(t, err)
				second, err := c.Add(slices1.Launch(gpu.GridFor(1, 32), saxpySlices{1, 10, xs, ys.Slice(1, 2)}), first)
				must(t, err)
				if third, err := c.Add(pointers.Launch(gpu.GridFor(0, 32), saxpyArgs[driver.Ptr, gpu.Slice[float32]]{Y: ys}), second); third != 2 || err != nil {
					t.Errorf("command %d, %v", third, err)
				}
				must(t, c.End())
				must(t, s.Do(ys.UploadCopy([]float32{0, 0, 0, 0})))
				must(t, s.Do(gpu.Execute(c, xs.Slice(2, 4).Range())))
				if got := elementsOf(t, s, ys); !slices.Equal(got, []float32{3, 14, 0, 0}) {
					t.Errorf("recorded: %v", got)
				}
				must(t, c.Close())
			}
		})
	})
	t.Run("values of each kind", func(t *testing.T) {
		onEach(t, 1, func(t *testing.T, d *simdriver.Driver, caps driver.Caps) {
			dev := openDevice(t, d, 0, gpu.Options{})
			s := dev.Queue(0).NewStream()
			type args struct {
				out    gpu.Slice[float64]
				_      uint32 // matches no parameter
				small  uint8
				vector [3]float32
				pair   kernelPair
				wide   complex128
				flag   bool
			}
			_, k := bind[args](t, dev, "values")
			out := sliceOf(t, s, make([]float64, 9)...)
			host := semaphores(t, 1)[0]
			must(t, s.After(host.At(1)))
			a := args{out, 0, 255, [3]float32{1, 2, 3}, kernelPair{-4, 1 << 40}, 5 - 6i, true}
			must(t, s.Do(k.Launch(gpu.GridFor(1, 1), a)))
			c := commandBuffer(t, dev, gpu.AutoMode)
			if _, err := c.Add(k.Launch(gpu.GridFor(1, 1), a)); err != nil {
				t.Error(err)
			}
			a = args{} // the launch has its own copy
			must(t, host.Signal(1))
			want := []float64{255, 1, 2, 3, -4, 1 << 40, 5, -6, 1}
			if got := elementsOf(t, s, out); !slices.Equal(got, want) {
				t.Errorf("%v; want %v", got, want)
			}
			must(t, c.End())
			must(t, s.Do(out.Fill(0)))
			must(t, s.Do(gpu.Execute(c)))
			if got := elementsOf(t, s, out); !slices.Equal(got, want) {
				t.Errorf("recorded: %v; want %v", got, want)
			}
		})
	})
	t.Run("memory of a pool that is allocated when the launch is issued", func(t *testing.T) {
		onEach(t, 1, func(t *testing.T, d *simdriver.Driver, caps driver.Caps) {
			dev := openDevice(t, d, 0, gpu.Options{})
			s, host := dev.Queue(0).NewStream(), semaphores(t, 1)[0]
			_, k := bind[saxpySlices](t, dev, "saxpy")
			must(t, s.After(host.At(1)))
			xs, err := gpu.AllocSliceIn[float32](s, nil, 4)
			must(t, err)
			ys, err := gpu.AllocSliceIn[float32](s, nil, 2)
			must(t, err)
			must(t, s.Do(xs.Fill(1)))
			must(t, s.Do(ys.Fill(5)))
			must(t, s.Do(xs.Slice(2, 3).Fill(3)))
			must(t, s.Do(k.Launch(gpu.GridFor(2, 256), saxpySlices{2, 2, xs.Slice(1, 3), ys})))
			got := make([]float32, 2)
			must(t, s.Do(ys.Download(got)))
			must(t, s.Do(xs.Free()))
			must(t, s.Do(ys.Free()))
			if p := xs.Range().Buffer.Ptr(); p != 0 {
				t.Errorf("the memory is at %#x before it is allocated", p)
			}
			must(t, host.Signal(1))
			must(t, s.Wait(minute(t)))
			if !slices.Equal(got, []float32{7, 11}) {
				t.Errorf("%v", got)
			}
			err = s.Do(k.Launch(gpu.GridFor(2, 256), saxpySlices{2, 2, xs, ys}))
			if !errors.Is(err, gpu.ErrUnallocated) || !strings.Contains(err.Error(), "argument X of saxpy") {
				t.Errorf("memory that has been freed: %v", err)
			}
		})
	})
	t.Run("a launch keeps its objects, and refuses closed ones", func(t *testing.T) {
		onEach(t, 1, func(t *testing.T, d *simdriver.Driver, caps driver.Caps) {
			dev := openDevice(t, d, 0, gpu.Options{})
			q := dev.Queue(0)
			s, host := q.NewStream(), semaphores(t, 1)[0]
			x, k := bind[saxpySlices](t, dev, "saxpy")
			xs, ys := sliceOf[float32](t, s, 1, 2), sliceOf[float32](t, s, 3, 4)
			must(t, s.After(host.At(1)))
			args := saxpySlices{2, 1, xs, ys}
			must(t, s.Do(k.Launch(gpu.GridFor(2, 2), args)))
			got := make([]float32, 2)
			must(t, s.Do(ys.Download(got)))
			must(t, xs.Close())
			c := commandBuffer(t, dev, gpu.AutoMode)
			_, recorded := c.Add(k.Launch(gpu.GridFor(2, 2), args))
			for way, err := range map[string]error{"queue": q.Submit(gpu.Order{}, k.Launch(gpu.GridFor(2, 2), args)), "recording": recorded} {
				if !errors.Is(err, gpu.ErrClosed) {
					t.Errorf("%s with a buffer that has been closed: %v", way, err)
				}
			}
			must(t, x.Close())
			args.X = ys
			_, recorded = c.Add(k.Launch(gpu.GridFor(2, 2), args))
			for way, err := range map[string]error{"queue": q.Submit(gpu.Order{}, k.Launch(gpu.GridFor(2, 2), args)), "recording": recorded} {
				if !errors.Is(err, gpu.ErrClosed) {
					t.Errorf("%s of code that has been closed: %v", way, err)
				}
			}
			must(t, ys.Close())
			must(t, c.Close())
			must(t, host.Signal(1))
			must(t, s.Wait(minute(t)))
			if !slices.Equal(got, []float32{4, 6}) {
				t.Errorf("%v", got)
			}
			eventually(t, "all is let go of", func() bool { q.Flush(); return dev.Stats().Buffers == 0 }, dev)
		})
	})
	t.Run("wrong launches", func(t *testing.T) {
		onEach(t, 2, func(t *testing.T, d *simdriver.Driver, caps driver.Caps) {
			dev, other := openDevice(t, d, 0, gpu.Options{}), openDevice(t, d, 1, gpu.Options{})
			q, foreign := dev.Queue(0), openDevice(t, simdriver.New(simdriver.Config{}), 0, gpu.Options{})
			setup := q.NewStream()
			xs, ys := sliceOf[float32](t, setup, 1, 2), sliceOf[float32](t, setup, 3, 4)
			strange, err := gpu.AllocSlice[float32](foreign, gpu.DeviceMem, 2)
			must(t, err)
			binding, err := commandBuffer(t, dev, gpu.AutoMode).Binding()
			must(t, err)
			bound, err := gpu.SliceOf[float32](binding.Range(0, 8))
			must(t, err)
			_, k := bind[saxpySlices](t, dev, "saxpy")
			_, pointed := bind[saxpyArgs[*gpu.Buffer, gpu.Range]](t, dev, "saxpy")
			good, grid := saxpySlices{2, 1, xs, ys}, gpu.GridFor(2, 64)
			for name, c := range map[string]struct {
				launch func(q *gpu.Queue, o gpu.Order) error
				record func(c *gpu.CommandBuffer) (gpu.Command, error)
				kind   error
				says   string
			}{
				"no buffer": {func(q *gpu.Queue, o gpu.Order) error {
					return q.Submit(o, k.Launch(grid, saxpySlices{2, 1, xs, gpu.Slice[float32]{}}))
				},
					func(c *gpu.CommandBuffer) (gpu.Command, error) {
						return c.Add(k.Launch(grid, saxpySlices{2, 1, xs, gpu.Slice[float32]{}}))
					}, gpu.ErrArgument, "argument Y of saxpy: "},
				"a nil buffer": {func(q *gpu.Queue, o gpu.Order) error {
					return q.Submit(o, pointed.Launch(grid, saxpyArgs[*gpu.Buffer, gpu.Range]{Y: ys.Range()}))
				}, func(c *gpu.CommandBuffer) (gpu.Command, error) {
					return c.Add(pointed.Launch(grid, saxpyArgs[*gpu.Buffer, gpu.Range]{Y: ys.Range()}))
				}, gpu.ErrArgument, "argument X of saxpy: "},
				"elements outside": {func(q *gpu.Queue, o gpu.Order) error {
					return q.Submit(o, k.Launch(grid, saxpySlices{2, 1, xs.Slice(1, 3), ys}))
				},
					func(c *gpu.CommandBuffer) (gpu.Command, error) {
						return c.Add(k.Launch(grid, saxpySlices{2, 1, xs.Slice(1, 3), ys}))
					}, gpu.ErrRange, "argument X of saxpy: "},
				"memory of another driver": {func(q *gpu.Queue, o gpu.Order) error {
					return q.Submit(o, k.Launch(grid, saxpySlices{2, 1, xs, strange}))
				},
					func(c *gpu.CommandBuffer) (gpu.Command, error) {
						return c.Add(k.Launch(grid, saxpySlices{2, 1, xs, strange}))
					}, gpu.ErrArgument, "argument Y of saxpy: "},
				"a binding of something else": {func(q *gpu.Queue, o gpu.Order) error {
					return q.Submit(o, k.Launch(grid, saxpySlices{2, 1, bound, ys}))
				},
					func(c *gpu.CommandBuffer) (gpu.Command, error) {
						return c.Add(k.Launch(grid, saxpySlices{2, 1, bound, ys}))
					}, gpu.ErrArgument, "argument X of saxpy: "},
				"elements below zero": {func(q *gpu.Queue, o gpu.Order) error { return q.Submit(o, k.Launch(gpu.GridFor(-1, 64), good)) },
					func(c *gpu.CommandBuffer) (gpu.Command, error) { return c.Add(k.Launch(gpu.GridFor(-1, 64), good)) }, gpu.ErrArgument, "-1 elements"},
				"too many threads": {func(q *gpu.Queue, o gpu.Order) error { return q.Submit(o, k.Launch(gpu.GridFor(1, 1<<20), good)) },
					func(c *gpu.CommandBuffer) (gpu.Command, error) { return c.Add(k.Launch(gpu.GridFor(1, 1<<20), good)) }, gpu.ErrArgument, "1048576"},
				"too much shared memory": {func(q *gpu.Queue, o gpu.Order) error {
					return q.Submit(o, k.Launch(gpu.Grid{Blocks: [3]uint32{1, 1, 1}, SharedMem: math.MaxUint32}, good))
				}, func(c *gpu.CommandBuffer) (gpu.Command, error) {
					return c.Add(k.Launch(gpu.Grid{Blocks: [3]uint32{1, 1, 1}, SharedMem: math.MaxUint32}, good))
				}, gpu.ErrArgument, "shared memory"},
				"another device": {func(q *gpu.Queue, o gpu.Order) error { return other.Queue(0).Submit(o, k.Launch(grid, good)) },
					func(*gpu.CommandBuffer) (gpu.Command, error) {
						return commandBuffer(t, other, gpu.AutoMode).Add(k.Launch(grid, good))
					}, gpu.ErrArgument, "kernel saxpy is of another device"},
				"a zero kernel": {func(q *gpu.Queue, o gpu.Order) error {
					return q.Submit(o, new(gpu.TypedKernel[saxpySlices]).Launch(grid, good))
				},
					func(c *gpu.CommandBuffer) (gpu.Command, error) {
						return c.Add(new(gpu.TypedKernel[saxpySlices]).Launch(grid, good))
					}, gpu.ErrArgument, "zero kernel"},
				"no kernel": {func(q *gpu.Queue, o gpu.Order) error {
					return q.Submit(o, (*gpu.TypedKernel[saxpySlices])(nil).Launch(grid, good))
				},
					func(c *gpu.CommandBuffer) (gpu.Command, error) {
						return c.Add((*gpu.TypedKernel[saxpySlices])(nil).Launch(grid, good))
					}, gpu.ErrArgument, ""},
			} {
				sem := semaphores(t, 1)[0]
				recorded := commandBuffer(t, dev, gpu.AutoMode)
				_, err := c.record(recorded)
				for way, err := range map[string]error{
					"queue": c.launch(q, gpu.Order{Signal: pts(sem, 1)}), "recording": err,
				} {
					if !errors.Is(err, c.kind) || !strings.Contains(fmt.Sprint(err), c.says) {
						t.Errorf("%s, %s: %v; want %v, which says %q", name, way, err, c.kind, c.says)
					}
				}
				if v, err := sem.Query(); v != 0 || err != nil {
					t.Errorf("%s: the signal is at %d, %v", name, v, err)
				}
				must(t, recorded.End())
			}
			stream := q.NewStream()
			if err := stream.Do((*gpu.TypedKernel[saxpySlices])(nil).Launch(grid, good)); !errors.Is(err, gpu.ErrArgument) || stream.Wait(minute(t)) != err {
				t.Errorf("no kernel, in a stream: %v", err)
			}
			if err := (*gpu.Stream)(nil).Do(k.Launch(grid, good)); !errors.Is(err, gpu.ErrArgument) {
				t.Errorf("no stream: %v", err)
			}
			if err := (*gpu.Queue)(nil).Submit(gpu.Order{}, k.Launch(grid, good)); !errors.Is(err, gpu.ErrArgument) {
				t.Errorf("no queue: %v", err)
			}
			if _, err := (*gpu.CommandBuffer)(nil).Add(k.Launch(grid, good)); !errors.Is(err, gpu.ErrArgument) {
				t.Errorf("no recording: %v", err)
			}
			must(t, q.Submit(gpu.Order{}, k.Launch(grid, good)))
			must(t, setup.Wait(minute(t)))
		})
	})
	t.Run("a lost device fails launches whatever has become of their memory", func(t *testing.T) {
		onEach(t, 1, func(t *testing.T, d *simdriver.Driver, caps driver.Caps) {
			dev := openDevice(t, d, 0, gpu.Options{})
			s := dev.Queue(0).NewStream()
			xs, sem := sliceOf[float32](t, s, 1, 2), semaphores(t, 1)[0]
			_, k := bind[saxpySlices](t, dev, "saxpy")
			must(t, s.Wait(minute(t)))
			ys := sliceOf[float32](t, s, 1)
			must(t, xs.Close())
			d.LoseDevice(0, errors.New("it is gone"))
			s.Do(ys.Fill(1))
			if err := s.Wait(minute(t)); !errors.Is(err, driver.ErrLost) {
				t.Errorf("the stream: %v", err)
			}
			if err := dev.Queue(0).Submit(gpu.Order{Signal: pts(sem, 1)}, k.Launch(gpu.GridFor(2, 2), saxpySlices{2, 1, xs, xs})); !errors.Is(err, driver.ErrLost) {
				t.Errorf("%v", err)
			}
			if err := sem.Wait(minute(t), 1); !errors.Is(err, driver.ErrLost) {
				t.Errorf("the signal: %v", err)
			}
		})
	})
}

// TestTypedBinds checks that Typed refuses types that do not match the kernel, and says why.
func TestTypedBinds(t *testing.T) {
	known := simdriver.CUDACaps()
	unknown := simdriver.HIPCaps()
	for _, c := range []struct {
		name  string
		bind  func(k *gpu.Kernel) error
		says  string
		sizes bool // Typed finds the mistake only if the driver reports the sizes of parameters
	}{
		{"no struct", refuses[int32], "the arguments are a int32; they must be a struct", false},
		{"a pointer to a struct", refuses[*saxpySlices], "they must be a struct", false},
		{"int", refuses[struct{ N int }], "gpu: bind saxpy: field N (int): a kernel's int may have another size: use int32 or int64: invalid argument", false},
		{"uint", refuses[struct{ N uint }], "field N (uint): a kernel's unsigned int may have another size: use uint32 or uint64", false},
		{"uintptr", refuses[struct{ N uintptr }], "field N (uintptr): use driver.Ptr", false},
		{"unsafe.Pointer", refuses[struct{ N unsafe.Pointer }], "field N (unsafe.Pointer): it is the address of memory of the program's", false},
		{"pointer", refuses[struct{ N *float32 }], "field N (*float32): it is the address of memory of the program's, which a kernel cannot use: use a gpu.Slice", false},
		{"slice", refuses[struct{ N []float32 }], "field N ([]float32): it is the address", false},
		{"string", refuses[struct{ N string }], "field N (string): it is the address", false},
		{"map", refuses[struct{ N map[int]int }], "field N (map[int]int): a kernel cannot have one", false},
		{"channel", refuses[struct{ N chan int }], "field N (chan int): a kernel cannot have one", false},
		{"function", refuses[struct{ N func() }], "field N (func()): a kernel cannot have one", false},
		{"interface", refuses[struct{ N io.Reader }], "field N (io.Reader): a kernel cannot have one", false},
		{"a buffer by value", refuses[struct{ N gpu.Queue }], "field N.dev (*gpu.Device): it is the address", false},
		{"nothing", refuses[struct{ N struct{} }], "field N (struct {}): it has no bytes", false},
		{"no elements", refuses[struct{ N [0]int32 }], "field N ([0]int32): it has no bytes", false},
		{"int inside", refuses[struct{ N [2]struct{ M int } }], "field N[].M (int): ", false},
		{"a slice inside", refuses[struct {
			N struct{ M gpu.Slice[float32] }
		}], "field N.M (gpu.Slice[float32]): inside of another value an address is a driver.Ptr", false},
		{"a buffer inside", refuses[struct{ N [2]*gpu.Buffer }], "field N[] (*gpu.Buffer): inside of another value an address is a driver.Ptr", false},
		{"a range inside", refuses[struct{ N [2]gpu.Range }], "field N[] (gpu.Range): inside", false},
		{"embedded", refuses[struct{ kernelPair }], "field kernelPair (gpu_test.kernelPair): it is embedded", false},
		{"an embedded slice", refuses[struct{ gpu.Slice[float32] }], "it is embedded", false},
		{"a type that embeds a slice", refuses[struct{ N struct{ gpu.Slice[float32] } }], "inside of another value an address is a driver.Ptr", false},
		{"a pointer to a slice", refuses[struct{ N *gpu.Slice[float32] }], "field N (*gpu.Slice[float32]): it is the address of memory of the program's", false},
		{"a type that embeds a pointer to a slice", refuses[struct{ N struct{ *gpu.Slice[float32] } }], "field N.Slice (*gpu.Slice[float32]): it is", false},
		{"a type made of a slice", refuses[struct{ N otherSlice }], "field N.", false},
		{"fields missing", refuses[struct {
			N uint64
			A float32
		}], "has 2 fields, and the kernel has 4 parameters, of [8 4 8 8] bytes", true},
		{"a field too many", refuses[struct {
			N    uint64
			A    float32
			X, Y driver.Ptr
			Z    int8
		}], "has 5 fields, and the kernel has 4 parameters", true},
		{"a field too large", refuses[struct {
			N    uint64
			A    float64
			X, Y driver.Ptr
		}], "gpu: bind saxpy: field A has 8 bytes, and parameter 1 of the kernel has 4: its parameters have [8 4 8 8]: invalid argument", true},
		{"a slice for a number", refuses[struct {
			N uint64
			A gpu.Slice[float32]
		}], "field A has 8 bytes, and parameter 1 of the kernel has 4", true},
		{"no fields", refuses[struct{}], "has 0 fields", true},
	} {
		for tells, caps := range map[bool]driver.Caps{true: known, false: unknown} {
			dev := openDevice(t, newSim(t, simdriver.Config{Caps: &caps}), 0, gpu.Options{})
			_, k := kernelOf(t, dev, "saxpy")
			if told := k.Info().Params != nil; told != tells {
				t.Fatalf("whether the driver reports sizes: %v", told)
			}
			switch err := c.bind(k); {
			case c.sizes && !tells:
				if err != nil {
					t.Errorf("%s: %v, though the driver does not tell sizes", c.name, err)
				}
			case !errors.Is(err, gpu.ErrArgument) || !strings.Contains(err.Error(), c.says):
				t.Errorf("%s: %v; want %q", c.name, err, c.says)
			}
			dev.Close()
		}
	}
	for name, k := range map[string]*gpu.Kernel{"no kernel": nil, "a zero kernel": new(gpu.Kernel)} {
		if err := refuses[struct{}](k); !errors.Is(err, gpu.ErrArgument) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

type otherSlice gpu.Slice[float32]

func refuses[A any](k *gpu.Kernel) error {
	_, err := gpu.Typed[A](k)
	return err
}

// TestGridFor checks the results of GridFor, that a launch for no elements does nothing, and that
// launches of wrong grids are refused.
func TestGridFor(t *testing.T) {
	for _, c := range []struct {
		n, threads int
		blocks     uint32
	}{
		{0, 256, 0}, {1, 256, 1}, {255, 256, 1}, {256, 256, 1}, {257, 256, 2}, {7, 1, 7}, {math.MaxUint32, 1, math.MaxUint32},
		{math.MaxUint32 * 1024, 1024, math.MaxUint32}, {math.MaxInt - math.MaxInt%math.MaxUint32, math.MaxUint32, 1 << 31},
	} {
		want := gpu.Grid{Blocks: [3]uint32{c.blocks, 1, 1}, Threads: [3]uint32{uint32(c.threads), 1, 1}}
		got := gpu.GridFor(c.n, c.threads)
		if same := got == want; same != (c.n > 0) || got.Blocks != want.Blocks || got.Threads != want.Threads {
			t.Errorf("GridFor(%d, %d) = %+v; want %+v", c.n, c.threads, got, want)
		}
	}
	onEach(t, 1, func(t *testing.T, d *simdriver.Driver, caps driver.Caps) {
		dev := openDevice(t, d, 0, gpu.Options{})
		s := dev.Queue(0).NewStream()
		_, k := bind[saxpySlices](t, dev, "saxpy")
		ys := sliceOf[float32](t, s, 1)
		must(t, s.Do(k.Launch(gpu.GridFor(0, 256), saxpySlices{1, 1, ys, ys})))
		if got := elementsOf(t, s, ys); got[0] != 1 {
			t.Errorf("no elements launch something: %v", got)
		}
		more := gpu.GridFor(0, 256)
		more.Blocks[0] = 1
		must(t, s.Do(k.Launch(more, saxpySlices{1, 1, ys, ys})))
		if got := elementsOf(t, s, ys); got[0] != 2 {
			t.Errorf("a grid for no elements that was given a block does not launch it: %v", got)
		}
		for _, c := range [][2]int{{-1, 256}, {math.MinInt, 1}, {1, 0}, {1, -1}, {1, math.MaxInt}, {math.MaxInt, 1}, {1 << 32, 1}, {math.MaxInt, math.MaxInt}} {
			err := dev.Queue(0).Submit(gpu.Order{}, k.Launch(gpu.GridFor(c[0], c[1]), saxpySlices{1, 1, ys, ys}))
			if !errors.Is(err, gpu.ErrArgument) || !strings.Contains(err.Error(), fmt.Sprintf("%d elements in blocks of %d threads", c[0], c[1])) {
				t.Errorf("GridFor(%d, %d): %v", c[0], c[1], err)
			}
		}
	})
}

// TestTypedAllocs checks that launches of typed kernels and transfers of slices allocate no Go
// memory.
func TestTypedAllocs(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	for _, set := range capabilitySets() {
		d := newSim(t, simdriver.Config{Caps: &set.Caps})
		// With these options the runtime polls without pauses, and so makes no timers.
		dev := openDevice(t, d, 0, gpu.Options{Queues: 2, Spin: -1, Poll: time.Minute})
		s, sem := dev.Queue(0).NewStream(), semaphores(t, 1)[0]
		_, k := bind[saxpySlices](t, dev, "saxpy")
		_, others := bind[saxpyArgs[*gpu.Buffer, gpu.Range]](t, dev, "saxpy")
		xs, ys := sliceOf[float32](t, s, 1, 2), sliceOf[float32](t, s, 3, 4)
		must(t, s.Wait(context.Background()))
		host, v := make([]float32, 2), uint64(0)
		var wait, signal [1]gpu.Point
		for name, f := range map[string]func() gpu.Point{
			"launch": func() gpu.Point {
				must(t, s.Do(k.Launch(gpu.GridFor(2, 256), saxpySlices{2, 1, xs.Slice(0, 1), ys})))
				return s.Point()
			},
			"launch with attributes": func() gpu.Point {
				g := gpu.GridFor(2, 256)
				g.Attrs = gpu.LaunchAttrs{Cooperative: set.Caps.Cooperative, Dependent: set.Caps.DependentLaunch, Priority: -1, Carveout: 50}
				must(t, s.Do(k.Launch(g, saxpySlices{2, 1, xs.Slice(0, 1), ys})))
				return s.Point()
			},
			"launch in a queue": func() gpu.Point {
				wait[0], signal[0] = sem.At(v), sem.At(v+1)
				v++
				must(t, dev.Queue(1).Submit(gpu.Order{Wait: wait[:], Signal: signal[:]}, others.Launch(gpu.GridFor(2, 2),
					saxpyArgs[*gpu.Buffer, gpu.Range]{2, 1, xs.Range().Buffer, ys.Range()})))
				return sem.At(v)
			},
			"transfers": func() gpu.Point {
				must(t, s.Do(xs.UploadCopy(host)))
				must(t, s.Do(ys.Upload(host)))
				must(t, s.Do(xs.CopyFrom(ys)))
				must(t, s.Do(xs.Fill(5)))
				must(t, s.Do(xs.Download(host)))
				return s.Point()
			},
			"a slice": func() gpu.Point {
				if all, err := gpu.SliceOf[uint8](xs.Range()); err != nil || all.Len() != 8 {
					t.Fatal(err)
				}
				return s.Point()
			},
		} {
			run := func() {
				for end := f(); ; runtime.Gosched() {
					if got, err := end.Semaphore.Query(); err != nil || got >= end.Value {
						break
					}
				}
			}
			for range 200 {
				run()
			}
			if n := testing.AllocsPerRun(100, run); n != 0 {
				t.Errorf("%s, %s: %v allocations", set.Name, name, n)
			}
		}
	}
}

// TestArgumentSizes passes arguments whose number or sizes differ from those of the parameters. If
// the driver reports the sizes, queues, streams and recordings must refuse such a launch.
func TestArgumentSizes(t *testing.T) {
	onEach(t, 1, func(t *testing.T, d *simdriver.Driver, caps driver.Caps) {
		if !caps.KernelParams {
			return
		}
		dev := openDevice(t, d, 0, gpu.Options{})
		b := allocate(t, dev, 64)
		_, k := kernelOf(t, dev, "saxpy")
		for form, p := range map[string]any{"an address": b.Ptr(), "a buffer": b, "a range": b.All(), "bytes": make([]byte, 8)} {
			for name, args := range map[string][]any{
				"a number too large":   {uint64(1), float64(1), p, p},
				"a number too small":   {uint32(1), float32(1), p, p},
				"an address too small": {uint64(1), float32(1), uint32(1), p},
				"bytes too few":        {uint64(1), float32(1), p, make([]byte, 7)},
				"one too few":          {uint64(1), float32(1), p},
				"one too many":         {uint64(1), float32(1), p, p, p},
				"none":                 {},
			} {
				op := gpu.Launch(k, gpu.Grid{}, args...)
				_, recorded := commandBuffer(t, dev, gpu.AutoMode).Add(op)
				for way, err := range map[string]error{"queue": dev.Queue(0).Submit(gpu.Order{}, op), "stream": dev.Queue(0).NewStream().Do(op), "recording": recorded} {
					if !errors.Is(err, gpu.ErrArgument) {
						t.Errorf("%s, %s, %s: %v", name, form, way, err)
					}
				}
			}
		}
	})
}

// A kernelPair is an argument of the kernel "values".
type kernelPair struct {
	A int8
	B int64
}
