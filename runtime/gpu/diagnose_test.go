package gpu_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/driver/simdriver"
	"github.com/puregpu/puregpu/runtime/gpu"
)

// named makes a semaphore with a name.
func named(t testing.TB, name string) *gpu.Semaphore {
	s := semaphores(t, 1)[0]
	s.SetName(name)
	return s
}

// says checks that what.String() contains the texts.
func says(t *testing.T, what fmt.Stringer, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if !strings.Contains(what.String(), text) {
			t.Errorf("%v\ndoes not say %q", what, text)
		}
	}
}

// An errorText gives an error a String method. The function named says needs one.
type errorText struct{ error }

func (e errorText) String() string { return fmt.Sprint(e.error) }

// TestNames checks that errors and String methods name semaphores and queues.
func TestNames(t *testing.T) {
	onEach(t, 1, func(t *testing.T, d *simdriver.Driver, _ driver.Caps) {
		dev, s := openDevice(t, d, 0, gpu.Options{Queues: 2}), named(t, "tokens")
		name, q, b := dev.Info().Name, dev.Queue(1), allocate(t, dev, 64)
		if got := fmt.Sprint(s, q, new(gpu.Semaphore), new(gpu.Queue), gpu.Point{Semaphore: s, Value: 3}); got != `semaphore "tokens" queue 1 of `+name+` a semaphore no queue {semaphore "tokens" 3}` {
			t.Errorf("got %s", got)
		}
		q.SetName("decode")
		must(t, s.Signal(5))
		says(t, errorText{s.Signal(4)}, `semaphore "tokens"`, "signal 4", "at 5")
		says(t, errorText{q.Submit(gpu.Order{Signal: pts(s, 4)}, gpu.Fill(b.All(), []byte{1}))}, `fill on queue "decode" of `+name, `semaphore "tokens"`, "signal 4", "at 5")
		says(t, errorText{q.Submit(order(s, 7, s, 7), gpu.Fill(b.All(), []byte{1}))}, `semaphore "tokens"`, "signal 7", "waits")
		d.StallDevice(0)
		must(t, q.Submit(gpu.Order{Signal: pts(s, 6)}, gpu.Fill(b.All(), []byte{1})))
		must(t, s.Signal(6))
		d.ResumeDevice(0)
		err := s.Wait(minute(t), 7) // the host has signalled 6, so the fill fails with ErrValue when it is done
		says(t, errorText{err}, `fill on queue "decode" of `+name, `semaphore "tokens"`, "signal 6", "at 6")
		var failed *gpu.SubmitError
		if !errors.As(err, &failed) || failed.Queue != `queue "decode"` || failed.Device != name || !errors.Is(err, gpu.ErrValue) {
			t.Errorf("%#v", failed)
		}
		q.SetName("")
		s.SetName("")
		if got := fmt.Sprint(s, q); got != "a semaphore queue 1 of "+name {
			t.Errorf("got %s", got)
		}
	})
}

// TestNamesWork checks that parked, in-flight and failed work is reported with the names of its
// kernels and with its labels.
func TestNamesWork(t *testing.T) {
	onEach(t, 1, func(t *testing.T, d *simdriver.Driver, _ driver.Caps) {
		dev := openDevice(t, d, 0, gpu.Options{Queues: 2})
		name, on := dev.Info().Name, " on queue 0 of "+dev.Info().Name
		x, k := kernelOf(t, dev, "nothing")
		b := allocate(t, dev, 8)
		launch := gpu.Launch(k, gpu.Grid{}, uint64(0))
		host, a, c := named(t, "host"), named(t, "a"), named(t, "c")
		must(t, dev.Queue(0).Submit(order(host, 1, a, 1), launch.Label("layer 3")))
		must(t, dev.Queue(0).Submit(order(host, 1, a, 2), launch))
		must(t, dev.Queue(0).Submit(order(a, 9, c, 1), gpu.Fill(b.All(), []byte{1}).Label("clear")))
		must(t, x.Close()) // the launches hold the module
		list := dev.Parked()
		for i, want := range []string{`launch of nothing ("layer 3")` + on, "launch of nothing" + on, `fill ("clear")` + on} {
			says(t, list[i], want+", parked")
		}
		if p := list[0]; p.Op != "launch" || p.Kernel != "nothing" || p.Label != "layer 3" || list[2].Kernel != "" {
			t.Errorf("%+v", list)
		}
		d.StallDevice(0)
		must(t, host.Signal(1))
		inFlight(t, dev, 2)
		must(t, dev.Queue(1).Submit(order(a, 1, c, 2), gpu.HostCall(func() error { return nil })))
		if list := dev.Parked(); len(list) != 2 || len(list[1].Waits) != 1 || list[1].Waits[0].Producer != `launch of nothing ("layer 3")`+on+", in flight" {
			t.Errorf("%v", list)
		}
		must(t, d.LoseDevice(0, io.ErrUnexpectedEOF))
		d.ResumeDevice(0)
		err := a.Wait(minute(t), 2)
		says(t, errorText{err}, `gpu: launch of nothing ("layer 3") on queue 0 of `+name+": ")
		var failed *gpu.SubmitError
		if !errors.As(err, &failed) || failed.Op != "launch" || failed.Kernel != "nothing" || failed.Label != "layer 3" {
			t.Errorf("%#v", failed)
		}
	})
}

// TestParked checks that Device.Parked lists the parked operations, and names the work that will
// signal the points that they wait for.
func TestParked(t *testing.T) {
	onEach(t, 2, func(t *testing.T, d *simdriver.Driver, _ driver.Caps) {
		g, err := gpu.OpenGroup(d, gpu.Options{Queues: 2})
		must(t, err)
		defer g.Close()
		dev, other := g.Devices()[0], g.Devices()[1]
		dev.Queue(1).SetName("side")
		b := allocate(t, dev, 64)
		host, mid, end, stuck, far := named(t, "host"), named(t, "mid"), named(t, "end"), named(t, "stuck"), named(t, "far")
		in, flight := named(t, "in"), named(t, "flight")
		name := dev.Info().Name
		if list := dev.Parked(); len(list) > 0 {
			t.Errorf("nothing is parked, and listed is %v", list)
		}
		d.StallDevice(0)
		must(t, dev.Queue(0).Submit(gpu.Order{Signal: pts(flight, 2)}, gpu.Fill(b.All(), []byte{1})))
		inFlight(t, dev, 1)
		leave := make(chan struct{})
		must(t, dev.Queue(0).Submit(gpu.Order{Signal: pts(in, 1)}, gpu.HostCall(func() error { <-leave; return nil })))
		o := order(host, 3, mid, 9)
		must(t, dev.Queue(1).Submit(o, gpu.Fill(b.All(), []byte{2})))
		time.Sleep(time.Second)
		o = order(mid, 8, end, 1)
		o.Wait = append(o.Wait, gpu.Point{Semaphore: in, Value: 1}, gpu.Point{Semaphore: flight, Value: 1})
		must(t, dev.Queue(0).Submit(o, gpu.HostCall(func() error { return nil })))
		must(t, dev.Queue(0).Submit(gpu.Order{Wait: []gpu.Point{{Semaphore: flight, Value: 1}, {Semaphore: far, Value: 1}}}, gpu.Copy(b.Range(0, 8), b.Range(8, 8))))
		must(t, other.Queue(0).Submit(order(stuck, 1, far, 1), gpu.Barrier()))
		time.Sleep(time.Second)

		list := dev.Parked()
		var got []string
		for _, p := range list {
			got = append(got, p.String())
		}
		want := []string{
			`fill on queue "side" of ` + name + `, parked for 2s, waits for semaphore "host" to reach 3, which is at 0 (to be signalled by: nothing that was submitted here)`,
			`host call on queue 0 of ` + name + `, parked for 1s, waits for semaphore "mid" to reach 8, which is at 0 (to be signalled by: fill on queue "side" of ` + name + `, parked); ` +
				`for semaphore "in" to reach 1, which is at 0 (to be signalled by: host call on queue 0 of ` + name + `, running); ` +
				`for semaphore "flight" to reach 1, which is at 0 (to be signalled by: fill on queue 0 of ` + name + `, in flight)`,
			`copy on queue 0 of ` + name + `, parked for 1s, waits for semaphore "far" to reach 1, which is at 0 (to be signalled by: nothing that was submitted here)`,
		}
		if g, w := strings.Join(got, "\n"), strings.Join(want, "\n"); g != w {
			t.Errorf("listed is\n%s\nwant\n%s", g, w)
		}
		if w := list[0].Waits[0]; w.Semaphore != host || w.Value != 3 || w.Current != 0 || w.Producer != "" || list[0].Op != "fill" || list[0].Age != 2*time.Second {
			t.Errorf("%+v", list[0])
		}
		if n := dev.Stats().Parked; n != len(list) {
			t.Errorf("%d are parked, and %d listed", n, len(list))
		}
		close(leave)
		d.ResumeDevice(0)
		gpu.FailAll(io.EOF, host, stuck)
		end.Wait(minute(t), 1)
		far.Wait(minute(t), 1)
		eventually(t, "nothing is parked", func() bool { return len(dev.Parked())+len(other.Parked()) == 0 })
		must(t, dev.Close())
		if list := dev.Parked(); len(list) > 0 {
			t.Errorf("of a closed device: %v", list)
		}
	})
}

// TestWaitEndedSays checks the error of a wait whose context ends. The error must name the
// semaphore, its value, and the work that will signal the awaited value, if there is any.
func TestWaitEndedSays(t *testing.T) {
	onEach(t, 1, func(t *testing.T, d *simdriver.Driver, _ driver.Caps) {
		dev, s, x := openDevice(t, d, 0, gpu.Options{Queues: 2}), named(t, "tokens"), named(t, "x")
		why := errors.New("the client has gone")
		short, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		gone, leave := context.WithCancelCause(t.Context())
		leave(why)
		d.StallDevice(0)
		must(t, s.Signal(5))
		must(t, dev.Queue(1).Submit(gpu.Order{Signal: pts(s, 7)}, gpu.Fill(allocate(t, dev, 64).All(), []byte{1})))
		inFlight(t, dev, 1)
		err := s.Wait(short, 6)
		if !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
			t.Errorf("%v is no end of time", err)
		}
		want := `gpu: wait for semaphore "tokens" to reach 6, which is at 5, to be signalled by: fill on queue 1 of ` + dev.Info().Name + `, in flight: context deadline exceeded`
		d.ResumeDevice(0)
		must(t, s.Wait(minute(t), 7))
		if err.Error() != want { // the error describes the moment when the wait ended
			t.Errorf("%v\nwant\n%s", err, want)
		}
		for name, err := range map[string]error{
			"Wait":    x.Wait(gone, 2),
			"WaitAll": gpu.WaitAll(gone, gpu.Point{Semaphore: s, Value: 7}, gpu.Point{Semaphore: x, Value: 2}, gpu.Point{Semaphore: s, Value: 9}),
			"WaitAny": second(gpu.WaitAny(gone, gpu.Point{Semaphore: x, Value: 2}, gpu.Point{Semaphore: s, Value: 9})),
		} {
			if !errors.Is(err, context.Canceled) || !errors.Is(err, why) {
				t.Errorf("%s: %v is no cancellation, or not the client's", name, err)
			}
			says(t, errorText{err}, `gpu: wait for semaphore "x" to reach 2, which is at 0, and nothing that was issued signals it`, ": context canceled: the client has gone")
			if strings.Contains(err.Error(), "1 points more") != (name != "Wait") {
				t.Errorf("%s: %v", name, err)
			}
		}
	})
}

func second[T any](_ T, err error) error { return err }

// TestStagingStats checks the statistics of pinned staging memory for transfers and for data in a
// recording.
func TestStagingStats(t *testing.T) {
	onEach(t, 1, func(t *testing.T, d *simdriver.Driver, _ driver.Caps) {
		dev, s := openDevice(t, d, 0, gpu.Options{StageSize: 4096}), semaphores(t, 1)[0]
		q, b := dev.Queue(0), allocate(t, dev, 4096)
		is := func(when string, want gpu.StagingStats) {
			t.Helper()
			if got := dev.Stats().Staging; got != want {
				t.Errorf("%s: %+v; want %+v", when, got, want)
			}
		}
		is("at first", gpu.StagingStats{})
		d.StallDevice(0)
		must(t, q.Submit(gpu.Order{Signal: pts(s, 1)}, gpu.UploadCopy(b.Range(0, 1000), make([]byte, 1000))))
		must(t, q.Submit(gpu.Order{Signal: pts(s, 2)}, gpu.Download(make([]byte, 4096), b.All())))
		synctest.Wait()
		is("in flight", gpu.StagingStats{Held: 8192, Used: 1024 + 4096, Peak: 1024 + 4096})
		d.ResumeDevice(0)
		must(t, s.Wait(minute(t), 2))
		is("over", gpu.StagingStats{Held: 8192, Peak: 1024 + 4096})
		c := commandBuffer(t, dev, gpu.AutoMode)
		recorded(t)(c.Add(gpu.UploadCopy(b.Range(0, 300), make([]byte, 300))))
		// The recorded data takes a block of 512 bytes, which needs more pinned memory.
		is("recorded", gpu.StagingStats{Held: 12288, Used: 512, Peak: 1024 + 4096})
		must(t, c.Close())
		must(t, dev.Close())
		is("closed", gpu.StagingStats{Peak: 1024 + 4096})
	})
}
