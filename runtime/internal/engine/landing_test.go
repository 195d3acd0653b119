package engine_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/driver/simdriver"
	"github.com/puregpu/puregpu/runtime/gpu"
	"github.com/puregpu/puregpu/runtime/interop"
)

// TestLanding submits work, and then neither waits nor polls. The results must reach the host soon
// after the device has done the work, and then the runtime must stop polling.
func TestLanding(t *testing.T) {
	const stage = 4096
	type results struct {
		dev  *gpu.Device
		mem  *gpu.Buffer
		want []byte
	}
	for _, x := range []struct {
		name string
		size int
		// begin submits the work and returns a function that reports whether the result of the work
		// has arrived.
		begin func(t *testing.T, r results) func() bool
	}{
		{"B193 a download of a queue with a signal", 64, func(t *testing.T, r results) func() bool {
			got, s := make([]byte, 64), semaphores(t, 1)[0]
			must(t, r.dev.Queue(0).Submit(gpu.Order{Signal: pts(s, 1)}, gpu.Download(got, r.mem.All())))
			return func() bool { return bytes.Equal(got, r.want) }
		}},
		{"B193 a download of a queue without a signal", 64, func(t *testing.T, r results) func() bool {
			got := make([]byte, 64)
			must(t, r.dev.Queue(0).Submit(gpu.Order{}, gpu.Download(got, r.mem.All())))
			return func() bool { return bytes.Equal(got, r.want) }
		}},
		{"B193 downloads of a stream", 64, func(t *testing.T, r results) func() bool {
			s, all := r.dev.Queue(0).NewStream(), make([]byte, 3*64)
			for i := range 3 {
				must(t, s.Download(all[i*64:(i+1)*64], r.mem.All()))
				must(t, s.Fill(r.mem.All(), []byte{7}))
			}
			want := append(bytes.Clone(r.want), bytes.Repeat([]byte{7}, 2*64)...)
			return func() bool { return bytes.Equal(all, want) }
		}},
		{"B193 a download in pieces", 3 * stage, func(t *testing.T, r results) func() bool {
			got := make([]byte, 3*stage)
			must(t, r.dev.Queue(0).NewStream().Download(got, r.mem.All()))
			return func() bool { return bytes.Equal(got, r.want) }
		}},
		{"B193 a parked download", 64, func(t *testing.T, r results) func() bool {
			got, s := make([]byte, 64), semaphores(t, 1)[0]
			must(t, r.dev.Queue(0).Submit(gpu.Order{Wait: pts(s, 1)}, gpu.Download(got, r.mem.All())))
			must(t, s.Signal(1))
			return func() bool { return bytes.Equal(got, r.want) }
		}},
		{"B193 a file", 64, func(t *testing.T, r results) func() bool {
			path := filepath.Join(t.TempDir(), "f")
			f, err := os.Create(path)
			must(t, err)
			t.Cleanup(func() { f.Close() })
			must(t, r.dev.Queue(0).NewStream().Do(gpu.WriteTo(f, 0, r.mem.All())))
			return func() bool { got, _ := os.ReadFile(path); return bytes.Equal(got, r.want) }
		}},
		{"B193 a notification", 64, func(t *testing.T, r results) func() bool {
			s, told := r.dev.Queue(0).NewStream(), false
			must(t, s.Fill(r.mem.All(), []byte{7}))
			must(t, s.Do(gpu.Notify(func() { told = true })))
			return func() bool { return told }
		}},
		{"B193 a function of OnReached", 64, func(t *testing.T, r results) func() bool {
			s, told := r.dev.Queue(0).NewStream(), false
			must(t, s.Fill(r.mem.All(), []byte{7}))
			p := s.Point()
			p.Semaphore.OnReached(p.Value, func(error) { told = true })
			return func() bool { return told }
		}},
		{"B193 a host call", 64, func(t *testing.T, r results) func() bool {
			s, told := r.dev.Queue(0).NewStream(), false
			must(t, s.Fill(r.mem.All(), []byte{7}))
			must(t, s.Do(gpu.HostCall(func() error { told = true; return nil })))
			return func() bool { return told }
		}},
		{"B193 a link", 64, func(t *testing.T, r results) func() bool {
			s, end := r.dev.Queue(0).NewStream(), semaphores(t, 1)[0]
			must(t, s.Fill(r.mem.All(), []byte{7}))
			p := s.Point()
			p.Semaphore.Link(p.Value, end, 1)
			return func() bool { n, _ := end.Query(); return n == 1 }
		}},
		{"B193 Order.Free", 64, func(t *testing.T, r results) func() bool {
			f := newTelling(t)
			must(t, r.dev.Queue(0).Submit(gpu.Order{Free: f.points()}, gpu.Fill(r.mem.All(), []byte{7})))
			return func() bool { n, _ := f.s.Query(); return n == 1 }
		}},
		{"B193 imported memory that was closed", 64, func(t *testing.T, r results) func() bool {
			told := false
			b, err := interop.ImportPointer(r.dev, r.mem.Ptr(), 64, func() { told = true })
			must(t, err)
			must(t, r.dev.Queue(0).Submit(gpu.Order{}, gpu.Fill(b.All(), []byte{7})))
			must(t, b.Close())
			return func() bool { return told }
		}},
		{"B193 imported memory that a closed recording has", 64, func(t *testing.T, r results) func() bool {
			told := false
			b, err := interop.ImportPointer(r.dev, r.mem.Ptr(), 64, func() { told = true })
			must(t, err)
			c, err := r.dev.NewCommandBuffer(gpu.CommandOptions{})
			must(t, err)
			_, err = c.Add(gpu.Fill(b.All(), []byte{7}))
			must(t, err)
			must(t, c.End())
			must(t, r.dev.Queue(0).Submit(gpu.Order{}, gpu.Execute(c)))
			must(t, b.Close())
			must(t, c.Close())
			return func() bool { return told }
		}},
		{"B193 an adopted event that was closed", 64, func(t *testing.T, r results) func() bool {
			own, err := interop.NewEvent(r.dev)
			must(t, err)
			told := false
			e, err := interop.AdoptEvent(r.dev, own.Native(), func() { told = true })
			if err != nil {
				t.Skip("no adopted events: ", err)
			}
			must(t, r.dev.Queue(0).Submit(gpu.Order{}, interop.RecordEvent(e)))
			must(t, e.Close())
			return func() bool { return told }
		}},
	} {
		t.Run(x.name, func(t *testing.T) {
			onEach(t, 1, func(t *testing.T, d *simdriver.Driver, caps driver.Caps) {
				dev := openDevice(t, d, 0, gpu.Options{StageSize: stage})
				r := results{dev: dev, mem: allocate(t, dev, uint64(x.size)), want: bytes.Repeat([]byte{5}, x.size)}
				s := dev.Queue(0).NewStream()
				must(t, s.Fill(r.mem.All(), []byte{5}))
				must(t, s.Wait(t.Context()))
				must(t, d.StallDevice(0))
				there := x.begin(t, r)
				time.Sleep(time.Minute)
				synctest.Wait()
				if there() {
					t.Fatal("it is there before the device has done anything")
				}
				must(t, d.ResumeDevice(0))
				time.Sleep(time.Second)
				synctest.Wait()
				if !there() {
					t.Fatal("it is not there a second after the device was done")
				}
				asked := calls(d, 0, simdriver.OpQuery)
				time.Sleep(time.Hour)
				synctest.Wait()
				if n := calls(d, 0, simdriver.OpQuery) - asked; n != 0 {
					t.Errorf("the device was queried %d times when nothing was in flight", n)
				}
			})
		})
	}
}
