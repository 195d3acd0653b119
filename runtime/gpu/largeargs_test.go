package gpu_test

import (
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/driver/simdriver"
	"github.com/puregpu/puregpu/runtime/gpu"
)

// tensorArgs has a field as large as CUDA's tensor map, between smaller fields.
type tensorArgs struct {
	Out   gpu.Range
	Small uint8
	Map   [16]uint64
	Last  uint32
}

// mostArgs has almost as many bytes as kernel parameters can have.
type mostArgs struct {
	Out  gpu.Range
	All  [4093]uint64
	Last uint32
}

// TestLargeArguments launches kernels with large arguments in a stream, in a queue and in nested
// recordings.
func TestLargeArguments(t *testing.T) {
	t.Run("tensor", func(t *testing.T) {
		largeArguments(t, "tensor", 18, func(out gpu.Range, i uint64) (tensorArgs, []uint64) {
			a := tensorArgs{Out: out, Small: uint8(i), Last: uint32(i) + 9}
			want := []uint64{i}
			for j := range a.Map {
				a.Map[j] = i<<32 + uint64(j)
			}
			return a, append(append(want, a.Map[:]...), i+9)
		})
	})
	t.Run("most", func(t *testing.T) {
		largeArguments(t, "most", 4094, func(out gpu.Range, i uint64) (mostArgs, []uint64) {
			a := mostArgs{Out: out, Last: uint32(i)}
			for j := range a.All {
				a.All[j] = i<<32 + uint64(j)
			}
			return a, append(slices.Clone(a.All[:]), i)
		})
	})
}

func largeArguments[A any](t *testing.T, kernel string, words int, arguments func(out gpu.Range, i uint64) (A, []uint64)) {
	onEach(t, 1, func(t *testing.T, d *simdriver.Driver, caps driver.Caps) {
		dev := openDevice(t, d, 0, gpu.Options{})
		x, k := bind[A](t, dev, kernel)
		s, host := dev.Queue(0).NewStream(), semaphores(t, 1)[0]
		out, err := gpu.AllocSlice[uint64](dev, gpu.DeviceMem, words)
		must(t, err)
		grid := gpu.Grid{Blocks: [3]uint32{1, 1, 1}}
		i := uint64(0)
		check := func(way string, launch func(a A)) {
			i++
			a, want := arguments(out.Range(), i)
			launch(a)
			if got := elementsOf(t, s, out); !slices.Equal(got, want) {
				t.Errorf("%s: the kernel sees %v, want %v", way, got[:18], want[:18])
			}
		}
		check("a stream", func(a A) { must(t, s.Do(k.Launch(grid, a))) })
		check("a queue, parked", func(a A) {
			must(t, s.After(host.At(1)))
			must(t, inStream(s, dev.Queue(0), k.Launch(grid, a)))
			must(t, host.Signal(1))
		})
		for _, mode := range []gpu.Mode{gpu.StreamMode, gpu.AutoMode} {
			check("a recording, nested behind others", func(a A) {
				first, inner := commandBuffer(t, dev, mode), commandBuffer(t, dev, mode)
				other, _ := arguments(out.Range(), 100)
				recorded(t)(first.Add(k.Launch(grid, other), recorded(t)(first.Add(k.Launch(grid, other)))))
				recorded(t)(first.Add(gpu.Barrier()))
				recorded(t)(inner.Add(k.Launch(grid, other)))
				recorded(t)(inner.Add(gpu.Barrier()))
				recorded(t)(inner.Add(k.Launch(grid, a)))
				must(t, inner.End())
				recorded(t)(first.Add(gpu.Execute(inner)))
				must(t, first.End())
				must(t, s.Do(gpu.Execute(first)))
				must(t, inner.Close())
				must(t, first.Close())
			})
		}
		must(t, out.Close())
		must(t, x.Close())
	})
}

// An aligningDriver has devices that check the alignment of the third argument of each launch. This
// argument has 128 bytes.
type aligningDriver struct {
	*simdriver.Driver
	t testing.TB
}

func (d aligningDriver) Open(index int) (driver.Device, error) {
	v, err := d.Driver.Open(index)
	return aligningDevice{v, d.t}, err
}

type aligningDevice struct {
	driver.Device
	t testing.TB
}

func (d aligningDevice) Launch(s driver.Stream, l *driver.Launch) error {
	if at := uintptr(l.Args[2]); at%64 != 0 {
		d.t.Errorf("the argument of 128 bytes is at %#x, which is no multiple of 64", at)
	}
	return d.Device.Launch(s, l)
}

// TestLargeArgumentsAligned checks that arguments of 128 bytes are at addresses that are multiples
// of 64. Submitting an Op must not allocate Go memory to align them.
func TestLargeArgumentsAligned(t *testing.T) {
	d := newSim(t, simdriver.Config{Caps: &driver.Caps{KernelParams: true}})
	dev := openDevice(t, aligningDriver{d, t}, 0, gpu.Options{Spin: -1, Poll: time.Minute})
	x, k := kernelOf(t, dev, "tensor")
	typed, err := gpu.Typed[tensorArgs](k)
	must(t, err)
	b := allocate(t, dev, 18*8)
	s, args := dev.Queue(0).NewStream(), tensorArgs{Out: b.All()}
	op := typed.Launch(gpu.GridFor(1, 1), args) // op has its own copy of the large argument
	launch := func() {
		must(t, s.Do(op))
		for end := s.Point(); ; runtime.Gosched() {
			if got, err := end.Semaphore.Query(); err != nil || got >= end.Value {
				break
			}
		}
	}
	for range 300 {
		launch()
	}
	if n := testing.AllocsPerRun(100, launch); n != 0 && !raceEnabled {
		t.Errorf("%v allocations", n)
	}
	host := semaphores(t, 1)[0]
	must(t, s.After(host.At(1)))
	for range 64 { // parked at the same time, so that the arguments are in different places
		must(t, s.Do(typed.Launch(gpu.GridFor(1, 1), args)))
	}
	must(t, host.Signal(1))
	must(t, s.Wait(minute(t)))
	before := calls(d, 0, simdriver.OpLaunch)
	c := commandBuffer(t, dev, gpu.StreamMode)
	for i := range 20 {
		recorded(t)(c.Add(gpu.Launch(k, gpu.Grid{}, b.Ptr(), uint8(1), args.Map, uint32(2))))
		if i%3 == 0 {
			recorded(t)(c.Add(typed.Launch(gpu.GridFor(1, 1), args)))
		}
	}
	must(t, c.End())
	for range 16 { // each recording has its arguments in memory of its own
		c := commandBuffer(t, dev, gpu.StreamMode)
		recorded(t)(c.Add(typed.Launch(gpu.GridFor(1, 1), args)))
		must(t, c.End())
		must(t, s.Do(gpu.Execute(c)))
		must(t, c.Close())
	}
	outer := commandBuffer(t, dev, gpu.StreamMode)
	for range 3 {
		recorded(t)(outer.Add(typed.Launch(gpu.GridFor(1, 1), args)))
		recorded(t)(outer.Add(gpu.Execute(c)))
	}
	must(t, outer.End())
	must(t, s.Do(gpu.Execute(outer)))
	must(t, s.Wait(minute(t)))
	if n, want := calls(d, 0, simdriver.OpLaunch)-before, uint64(16+3*(1+20+7)); n != want {
		t.Errorf("%d launches, want %d", n, want)
	}
	must(t, outer.Close())
	must(t, c.Close())
	must(t, b.Close())
	must(t, x.Close())
}
