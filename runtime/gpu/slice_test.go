package gpu_test

import (
	"bytes"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/driver/simdriver"
	"github.com/puregpu/puregpu/runtime/gpu"
)

func TestSlice(t *testing.T) {
	t.Run("transfers, parts and fills", func(t *testing.T) {
		onEach(t, 1, func(t *testing.T, d *simdriver.Driver, caps driver.Caps) {
			dev := openDevice(t, d, 0, gpu.Options{})
			s := dev.Queue(0).NewStream()
			xs := sliceOf[int16](t, s, 1, 2, 3, 4, 5, 6)
			ys, err := gpu.AllocSlice[int16](dev, gpu.HostMem, 6)
			must(t, err)
			must(t, s.Do(ys.CopyFrom(xs)))
			must(t, s.Do(ys.Slice(0, 2).Fill(-7)))
			must(t, s.Do(ys.Slice(1, 5).Slice(1, 3).Upload([]int16{8, 9})))
			must(t, s.Do(ys.Slice(6, 6).UploadCopy(nil)))
			want := []int16{-7, -7, 8, 9, 5, 6}
			if got := elementsOf(t, s, ys); !slices.Equal(got, want) || !slices.Equal(ys.Host(), want) {
				t.Errorf("%v, and the host sees %v; want %v", got, ys.Host(), want)
			}
			if part := ys.Slice(2, 4); !slices.Equal(part.Host(), []int16{8, 9}) || part.Len() != 2 || part != ys.Slice(1, 6).Slice(1, 3) {
				t.Errorf("a part: %v", part)
			}
			if r := ys.Slice(2, 4).Range(); r != ys.Range().Buffer.Range(4, 4) {
				t.Errorf("its range: %+v", r)
			}
			if xs.Host() != nil {
				t.Error("the host sees memory of the device's own")
			}
			type triple struct {
				A uint16
				B [5]uint16
			}
			wide := sliceOf(t, s, triple{1, [5]uint16{}}, triple{}, triple{2, [5]uint16{}})
			must(t, s.Do(wide.Slice(0, 1).Fill(triple{})))
			must(t, s.Do(wide.Slice(1, 2).Fill(triple{3, [5]uint16{3, 3, 3, 3, 3}})))
			if got := elementsOf(t, s, wide); !slices.Equal(got, []triple{{}, {3, [5]uint16{3, 3, 3, 3, 3}}, {2, [5]uint16{}}}) {
				t.Errorf("%v", got)
			}
			if err := dev.Queue(0).NewStream().Do(wide.Fill(triple{A: 1})); !errors.Is(err, gpu.ErrArgument) {
				t.Errorf("an element that is no repetition: %v", err)
			}
			quad := sliceOf(t, s, [2]float32{1, 2}, [2]float32{})
			must(t, s.Do(quad.Fill([2]float32{3, 4})))
			if got := elementsOf(t, s, quad); got[1] != [2]float32{3, 4} {
				t.Errorf("%v", got)
			}
		})
	})
	t.Run("sizes that do not fit fail the stream", func(t *testing.T) {
		onEach(t, 1, func(t *testing.T, d *simdriver.Driver, caps driver.Caps) {
			dev := openDevice(t, d, 0, gpu.Options{})
			xs, err := gpu.AllocSlice[float32](dev, gpu.DeviceMem, 4)
			must(t, err)
			for name, c := range map[string]struct {
				do   func(s *gpu.Stream) error
				kind error
			}{
				"update with too few":                {func(s *gpu.Stream) error { return s.Do(xs.UploadCopy(make([]float32, 3))) }, gpu.ErrArgument},
				"upload with too many":               {func(s *gpu.Stream) error { return s.Do(xs.Upload(make([]float32, 5))) }, gpu.ErrArgument},
				"download to none":                   {func(s *gpu.Stream) error { return s.Do(xs.Download(nil)) }, gpu.ErrArgument},
				"a copy of a part":                   {func(s *gpu.Stream) error { return s.Do(xs.CopyFrom(xs.Slice(0, 3))) }, gpu.ErrArgument},
				"a zero slice":                       {func(s *gpu.Stream) error { return s.Do(gpu.Slice[float32]{}.Fill(1)) }, gpu.ErrArgument},
				"a part of a zero slice":             {func(s *gpu.Stream) error { return s.Do(gpu.Slice[float32]{}.Slice(0, 1).Fill(1)) }, gpu.ErrArgument},
				"memory from a pool that has gone":   {func(s *gpu.Stream) error { return s.Do(gpu.Slice[float32]{}.Free()) }, gpu.ErrArgument},
				"a negative number":                  {func(s *gpu.Stream) error { _, err := gpu.AllocSliceIn[float32](s, nil, -1); return err }, gpu.ErrArgument},
				"too large a number":                 {func(s *gpu.Stream) error { _, err := gpu.AllocSliceIn[float32](s, nil, math.MaxInt/2); return err }, driver.ErrOutOfMemory},
				"elements that a device cannot have": {func(s *gpu.Stream) error { _, err := gpu.AllocSliceIn[string](s, nil, 1); return err }, gpu.ErrArgument},
				"a part that ends too late":          {func(s *gpu.Stream) error { return s.Do(xs.Slice(2, 5).Fill(1)) }, gpu.ErrRange},
				"a part of a part, likewise":         {func(s *gpu.Stream) error { return s.Do(xs.Slice(0, 2).Slice(0, 3).Fill(1)) }, gpu.ErrRange},
				"a part that begins too early":       {func(s *gpu.Stream) error { return s.Do(xs.Slice(-1, 1).Fill(1)) }, gpu.ErrRange},
				"a part backwards":                   {func(s *gpu.Stream) error { return s.Do(xs.Slice(3, 2).Fill(1)) }, gpu.ErrRange},
				"an empty range out of range":        {func(s *gpu.Stream) error { return s.Do(xs.Slice(3, 9).Slice(0, 0).Fill(1)) }, gpu.ErrRange},
				"an update out of range":             {func(s *gpu.Stream) error { return s.Do(xs.Slice(3, 9).UploadCopy(nil)) }, gpu.ErrRange},
				"a copy of what is outside":          {func(s *gpu.Stream) error { return s.Do(xs.Slice(3, 9).CopyFrom(xs.Slice(4, 9))) }, gpu.ErrRange},
			} {
				s := dev.Queue(0).NewStream()
				err := c.do(s)
				if !errors.Is(err, c.kind) {
					t.Errorf("%s: %v; want %v", name, err, c.kind)
				}
				if c.kind == gpu.ErrRange && !strings.Contains(err.Error(), "not in the slice") {
					t.Errorf("%s: %v, which does not say what is wrong", name, err)
				}
				if end := s.Wait(minute(t)); end != err {
					t.Errorf("%s: the stream has ended with %v; want %v", name, end, err)
				}
			}
			if out := xs.Slice(3, 9); out.Len() != 0 || out.Host() != nil {
				t.Errorf("elements outside: %d, %v", out.Len(), out.Host())
			}
			must(t, xs.Slice(1, 2).Close())
			if err := dev.Queue(0).NewStream().Do(xs.Fill(1)); !errors.Is(err, gpu.ErrClosed) {
				t.Errorf("memory that has been closed: %v", err)
			}
			must(t, gpu.Slice[float32]{}.Close())
		})
	})
	t.Run("of a range of a buffer", func(t *testing.T) {
		onEach(t, 1, func(t *testing.T, d *simdriver.Driver, caps driver.Caps) {
			dev := openDevice(t, d, 0, gpu.Options{})
			b, err := dev.Alloc(gpu.HostMem, 64)
			must(t, err)
			copy(b.Bytes()[8:], []byte{1, 0, 0, 0, 2, 0, 0, 0})
			xs, err := gpu.SliceOf[uint32](b.Range(8, 8))
			must(t, err)
			if !slices.Equal(xs.Host(), []uint32{1, 2}) {
				t.Errorf("%v", xs.Host())
			}
			for name, r := range map[string]gpu.Range{"half an element": b.Range(0, 6), "an address between": b.Range(2, 4), "no buffer": {}} {
				if _, err := gpu.SliceOf[uint32](r); !errors.Is(err, gpu.ErrArgument) {
					t.Errorf("%s: %v", name, err)
				}
			}
			for _, r := range []gpu.Range{b.Range(60, 8), b.Range(math.MaxUint64, 8), b.Range(0, math.MaxUint64), b.Range(math.MaxUint64, math.MaxUint64)} {
				if _, err := gpu.SliceOf[uint32](r); !errors.Is(err, gpu.ErrRange) {
					t.Errorf("%d bytes at %d: %v", r.Size, r.Offset, err)
				}
			}
			binding, err := commandBuffer(t, dev, gpu.AutoMode).Binding()
			must(t, err)
			if _, err := gpu.SliceOf[uint8](binding.All()); !errors.Is(err, gpu.ErrArgument) {
				t.Errorf("all of a binding: %v", err)
			}
			if !caps.HostRegister {
				return
			}
			own := make([]byte, 16)
			odd, err := dev.ImportHost(own[1:9], nil)
			must(t, err)
			if ys, err := gpu.SliceOf[uint64](odd.All()); !errors.Is(err, gpu.ErrArgument) && ys.Host() != nil {
				t.Errorf("memory at an odd address: %v, %v", ys.Host(), err)
			}
		})
	})
	t.Run("elements that a device cannot have", func(t *testing.T) {
		dev := openDevice(t, newSim(t, simdriver.Config{}), 0, gpu.Options{})
		type inside struct {
			A int32
			B [2]*int32
		}
		for says, err := range map[string]error{
			"elements of type int: a kernel's int may have another size":                   alloc[int](dev, 1),
			"elements of type string: it is the address of memory of the program's":        alloc[string](dev, 1),
			"elements of type struct {}: it has no bytes":                                  alloc[struct{}](dev, 1),
			"elements of type gpu_test.inside: gpu_test.inside.B[] (*int32): it is the":    alloc[inside](dev, 1),
			"elements of type gpu.Slice[int32]: inside of another value an address is a d": alloc[gpu.Slice[int32]](dev, 1),
			"-1 elements":                 alloc[int8](dev, -1),
			"alloc: a nil or zero Device": alloc[int8](nil, 1),
		} {
			if !errors.Is(err, gpu.ErrArgument) || !strings.Contains(err.Error(), says) {
				t.Errorf("%v; want %q", err, says)
			}
		}
		if err := alloc[int64](dev, math.MaxInt); !errors.Is(err, driver.ErrOutOfMemory) {
			t.Errorf("too many: %v", err)
		}
	})
}

func alloc[T any](dev *gpu.Device, n int) error {
	_, err := gpu.AllocSlice[T](dev, gpu.DeviceMem, n)
	return err
}

// TestBytesOf checks that BytesOf returns the memory of elements as bytes, and nil for elements
// with pointers.
func TestBytesOf(t *testing.T) {
	xs := []uint32{1, 2}
	b := gpu.BytesOf(xs)
	if b[4] = 3; xs[1] != 3 || !bytes.Equal(b, []byte{1, 0, 0, 0, 3, 0, 0, 0}) {
		t.Errorf("%v of %v", b, xs)
	}
	if b := gpu.BytesOf([]int{-1}); len(b) == 0 || b[0] != 255 {
		t.Errorf("%v", b)
	}
	if b := gpu.BytesOf([]float32(nil)); len(b) != 0 {
		t.Errorf("%v", b)
	}
	if b := gpu.BytesOf(make([]struct{}, 5)); len(b) != 0 {
		t.Errorf("%v", b)
	}
	if gpu.BytesOf([]string{"a"}) != nil || gpu.BytesOf([]struct{ A [1]*int }{{}}) != nil || gpu.BytesOf([]func(){nil}) != nil {
		t.Error("addresses as bytes")
	}
}
