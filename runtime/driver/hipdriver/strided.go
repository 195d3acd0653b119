package hipdriver

import (
	"errors"
	"unsafe"

	"github.com/puregpu/puregpu/hip"
	"github.com/puregpu/puregpu/runtime/dl"
	"github.com/puregpu/puregpu/runtime/driver"
)

// more holds functions of newer releases, which package hip does not declare.
type more struct {
	dl.Library
	fns [1]uintptr
}

var moreSpec = dl.Spec{
	Name: "HIP runtime", Package: "hip", Format: hip.FormatVersion,
	Sets:    []dl.Set{{Name: "core"}, {Name: "memory-7.1", Since: 7_01_00000}},
	Symbols: []dl.Symbol{{Name: "hipMemsetD2D32Async", Since: 7_01_00000, Set: 1, Sig: "wwwwww"}},
}

// openMore opens the functions of more. It returns nil if the library lacks hipMemsetD2D32Async.
func openMore(lib *hip.Library) *more {
	m := new(more)
	if err := m.Open(&moreSpec, m.fns[:], dl.Options{Path: lib.Path()}); err != nil || !m.HasSymbol("hipMemsetD2D32Async") {
		return nil
	}
	return m
}

// memsetD2D32Async fills height rows that are pitch bytes apart. For the unit of width see
// tryStrided.
func (m *more) memsetD2D32Async(dst hip.DevicePtr, pitch uint64, value uint32, width, height uint64, s hip.Stream) error {
	var res uintptr
	if addr := dl.Load(&m.fns[0]); addr != 0 {
		var frame struct {
			dl.Frame
			dst, pitch, value, width, height, stream uintptr
		}
		frame.Fn, frame.dst, frame.pitch, frame.value = addr, uintptr(dst), uintptr(pitch), uintptr(value)
		frame.width, frame.height, frame.stream = uintptr(width), uintptr(height), uintptr(s)
		res = uintptr(dl.Call(6, unsafe.Pointer(&frame)))
	} else {
		var err error
		if res, err = m.Slow(0, uintptr(dst), uintptr(pitch), uintptr(value), uintptr(width), uintptr(height), uintptr(s)); err != nil {
			return err
		}
	}
	if r := hip.Result(int32(res)); r != hip.Success {
		return r
	}
	return nil
}

// tryStrided finds the unit of hipMemsetD2D32Async's width. The unit is an element in the
// documentation and in CUDA, and a byte in AMD's own tests. If the function works with neither unit
// on a device, FillStrided does not use the function there.
func (d *device) tryStrided() (err error) {
	if d.more == nil {
		return nil
	}
	const pitch, rows, width, pattern = 32, 2, 4, 0x01020304
	var dev, host driver.Mem
	var s driver.Stream
	defer func() {
		var end []error
		if s != 0 {
			end = append(end, d.DestroyStream(s))
		}
		if dev.Ptr != 0 {
			end = append(end, d.Free(dev))
		}
		if host.Host != nil {
			end = append(end, d.Free(host))
		}
		err = errors.Join(append([]error{err}, end...)...)
	}()
	if s, err = d.NewStream(); err != nil {
		return err
	}
	if dev, err = d.Alloc(driver.DeviceMem, pitch*rows); err != nil {
		return err
	}
	if host, err = d.Alloc(driver.HostMem, pitch*rows); err != nil {
		return err
	}
	if err = d.Fill(s, dev.Ptr, 0, 1, pitch*rows); err != nil {
		return err
	}
	tried := d.more.memsetD2D32Async(hip.DevicePtr(dev.Ptr), pitch, pattern, width, rows, hip.Stream(s))
	if tried != nil {
		if e := d.fail("open", tried, "try a strided fill"); e.Lost {
			return e
		}
		return nil
	}
	if err = d.Download(s, host.Host, dev.Ptr, pitch*rows); err != nil {
		return err
	}
	if err := d.lib.StreamSynchronize(hip.Stream(s)); err != nil {
		return d.fail("open", err, "wait for a strided fill")
	}
	words := unsafe.Slice((*uint32)(host.Host), pitch*rows/4)
	for _, c := range []struct{ filled, unit int }{{1, 4}, {4, 1}} {
		ok := true
		for i, w := range words {
			want := uint32(0)
			if i%(pitch/4) < c.filled {
				want = pattern
			}
			ok = ok && w == want
		}
		if ok {
			d.unit = uint64(c.unit)
		}
	}
	return nil
}

func (d *device) FillStrided(s driver.Stream, dst driver.Ptr, pattern uint32, stride, count uint64) error {
	if s <= defaultStreams {
		return d.noStream("fill", s)
	}
	if count == 0 {
		return nil
	}
	return d.submit("fill", func() error {
		var err error
		switch {
		case count == 1 || stride == 4:
			err = d.lib.MemsetD32Async(hip.DevicePtr(dst), int32(pattern), count, hip.Stream(s))
		case d.unit != 0:
			err = d.more.memsetD2D32Async(hip.DevicePtr(dst), stride, pattern, d.unit, count, hip.Stream(s))
		default:
			err = d.fillColumns(s, dst, pattern, stride, count)
		}
		if err != nil {
			return d.fail("fill", err, "%d elements of 4 bytes, %d bytes apart, at %#x in stream %#x", count, stride, uint64(dst), uintptr(s))
		}
		return nil
	})
}

// fillColumns fills the elements as columns of bytes. Each call fills adjacent columns that have
// equal bytes. The device is little-endian.
func (d *device) fillColumns(s driver.Stream, dst driver.Ptr, pattern uint32, stride, count uint64) error {
	for i := uint64(0); i < 4; {
		b, n := byte(pattern>>(8*i)), uint64(1)
		for i+n < 4 && byte(pattern>>(8*(i+n))) == b {
			n++
		}
		if err := d.lib.Memset2DAsync(hip.DevicePtr(dst)+hip.DevicePtr(i), stride, int32(b), n, count, hip.Stream(s)); err != nil {
			return err
		}
		i += n
	}
	return nil
}
