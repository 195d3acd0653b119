package scenarios

import (
	"bytes"
	"errors"
	"testing"

	"github.com/puregpu/puregpu/internal/explore"
	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/driver/simdriver"
	"github.com/puregpu/puregpu/runtime/gpu"
)

// TestFreeTells lends host memory to work. The work finishes, its semaphore is failed, or its
// device is lost. Once the points of the work's Order.Free are reached, the work must not touch the
// memory any more.
func TestFreeTells(t *testing.T) {
	explore.Run(t, func(x *explore.T) {
		r := open(x, simdriver.Config{}, pieces())
		x.Window(false)
		d, boom := r.devs[0], errors.New("boom")
		q, s, free, own := d.Queue(0), r.sem(), r.sem(), r.sem()
		b := r.alloc(d, 64)
		r.must(q.Submit(gpu.Order{Signal: pts(own, 1)}, gpu.Fill(b.All(), []byte{1})))
		r.must(r.wait(own, 1))
		mem := bytes.Repeat([]byte{2}, 64)
		order := gpu.Order{Signal: pts(s, 1), Free: pts(free, 1)}
		reads := true // the work reads mem; if false, it writes to mem
		freed := make(chan struct{})
		var imported *gpu.Buffer
		switch x.Choose(4) {
		case 0:
			x.Window(true)
			r.must(q.Submit(order, gpu.Upload(b.All(), mem)))
		case 1:
			x.Window(true)
			r.must(q.Submit(order, gpu.Upload(b.Range(0, 8), mem[:8])))
		case 2:
			reads = false
			x.Window(true)
			r.must(q.Submit(order, gpu.Download(mem, b.All())))
		case 3:
			var err error
			imported, err = d.ImportHost(mem, func() { close(freed) })
			r.must(err)
			x.Window(true)
			r.must(q.Submit(order, gpu.Copy(b.All(), imported.All())))
		}
		lost := false
		switch x.Choose(3) {
		case 0:
		case 1:
			r.do(func() { s.Fail(boom) })
		case 2:
			lost = true
			r.do(func() { r.sim.LoseDevice(0, nil) })
		}
		closed := make(chan struct{})
		if lost { // Close signals Free
			r.do(func() {
				defer close(closed)
				r.is(r.wait(s, 1), driver.ErrLost)
				r.is(d.Close(), driver.ErrLost)
			})
		}
		r.must(r.wait(free, 1))
		for i := range mem {
			mem[i] = 9
		}
		if lost {
			<-closed
		} else {
			r.is(r.wait(s, 1), boom)
			r.must(q.Submit(gpu.Order{Signal: pts(own, 2)}, gpu.Barrier()))
			r.must(r.wait(own, 2))
			if got := r.bytes(q, b); reads {
				for _, v := range got {
					if v != 1 && v != 2 {
						r.Fatalf("the device has read memory that was the program's again: %v", got)
					}
				}
			}
		}
		if !reads {
			r.full("memory of the program, after Free", mem, 9)
		}
		if imported != nil {
			imported.Close()
			<-freed
		}
		b.Close()
		r.lose()
	})
}

// TestReadAndWrite moves data from one file to another in pieces, while the semaphore or a read may
// fail. If both transfers succeed, the data must be right.
func TestReadAndWrite(t *testing.T) {
	explore.Run(t, func(x *explore.T) {
		r := open(x, simdriver.Config{}, pieces())
		d, boom := r.devs[0], errors.New("boom")
		b, s, u := r.alloc(d, 64), r.sem(), r.sem()
		bad := int64(x.Choose(6)) * 16 // the transfer at this file offset fails; at 64 and more none fails
		from := file(func(p []byte, at int64) (int, error) {
			if bad <= at && at < bad+16 {
				return 0, boom
			}
			for i := range p {
				p[i] = byte(at) + byte(i)
			}
			return len(p), nil
		})
		r.must(d.Queue(0).Submit(gpu.Order{Signal: pts(s, 1)}, gpu.ReadFrom(b.All(), from, 0)))
		var got [64]byte
		r.is(d.Queue(1).Submit(gpu.Order{Wait: pts(s, 1), Signal: pts(s, 2), Free: pts(u, 1)}, gpu.WriteTo(file(func(p []byte, at int64) (int, error) {
			return copy(got[at:], p), nil
		}), 0, b.All())), boom)
		if x.Choose(2) == 1 {
			r.do(func() { s.Fail(boom) })
		}
		err := r.wait(s, 2)
		r.is(err, boom)
		r.must(r.wait(u, 1))
		for i, v := range got {
			if err == nil && v != byte(i) {
				r.Fatalf("%v has arrived", got)
			}
		}
		b.Close()
		r.end()
	})
}

// A file is a function that does the reads and writes of a file.
type file func(p []byte, at int64) (int, error)

func (f file) ReadAt(p []byte, at int64) (int, error)  { return f(p, at) }
func (f file) WriteAt(p []byte, at int64) (int, error) { return f(p, at) }

// TestCloseWhileLent closes a device while work of another device uses the closed device's memory
// and events. Memory and events must be given back when that work is over, and not before.
func TestCloseWhileLent(t *testing.T) {
	explore.Run(t, func(x *explore.T) {
		r := open(x, simdriver.Config{Devices: 2}, quick())
		x.Window(false)
		a, b := r.devs[0], r.devs[1]
		s, u := r.sem(), r.sem()
		of, own := r.alloc(a, 64), r.alloc(b, 64)
		x.Window(true)
		r.must(a.Queue(0).Submit(gpu.Order{Signal: pts(s, 1)}, gpu.Fill(of.All(), []byte{3})))
		r.do(func() {
			err := b.Queue(0).Submit(gpu.Order{Wait: pts(s, 1), Signal: pts(u, 1)}, gpu.Copy(own.All(), of.All()))
			r.is(err, gpu.ErrClosed)
			if err == nil {
				err = r.wait(u, 1)
				r.is(err, gpu.ErrClosed, driver.ErrLost)
			}
			if err == nil {
				r.full("what was copied", r.bytes(b.Queue(1), own), 3)
			}
		})
		switch x.Choose(3) {
		case 0:
			r.do(func() { r.must(of.Close()) })
		case 1:
			r.do(func() { r.sim.LoseDevice(0, nil) })
		}
		r.is(a.Close(), driver.ErrLost)
		r.wg.Wait()
		own.Close()
		r.lose()
	})
}

// TestTrimAgainstAll trims a device and a pool while they are used.
func TestTrimAgainstAll(t *testing.T) {
	explore.Run(t, func(x *explore.T) {
		r := open(x, simdriver.Config{}, pieces())
		d := r.devs[0]
		p, err := d.NewPool(gpu.PoolOptions{Portable: x.Choose(2) == 1})
		r.must(err)
		for i := range 2 {
			r.do(func() {
				q, s := d.Queue(i), r.sem()
				var b *gpu.Buffer
				err := q.Submit(gpu.Order{Signal: pts(s, 1)}, gpu.Alloc(&b, p, 64))
				r.must(err)
				data, got := bytes.Repeat([]byte{byte(i + 1)}, 64), make([]byte, 64)
				r.must(q.Submit(gpu.Order{Wait: pts(s, 1), Signal: pts(s, 2)}, gpu.UploadCopy(b.All(), data)))
				r.must(q.Submit(gpu.Order{Wait: pts(s, 2), Signal: pts(s, 3)}, gpu.Download(got, b.All())))
				r.must(q.Submit(gpu.Order{Wait: pts(s, 3), Signal: pts(s, 4)}, gpu.Free(b)))
				r.must(r.wait(s, 4))
				r.full("what was uploaded", got, byte(i+1))
			})
		}
		r.do(func() {
			for range 2 {
				r.must(d.Trim())
				r.must(p.Trim(0))
				d.Stats()
			}
		})
		r.wg.Wait()
		r.must(p.Close())
		r.end()
	})
}
