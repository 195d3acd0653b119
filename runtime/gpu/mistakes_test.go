package gpu_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/driver/simdriver"
	"github.com/puregpu/puregpu/runtime/gpu"
	"github.com/puregpu/puregpu/runtime/internal/testkit"
)

// TestMistakeErrors checks that the error of a wrong call says what is wrong (B82).
func TestMistakeErrors(t *testing.T) {
	d := newSim(t, simdriver.Config{Devices: 2})
	dev := openDevice(t, d, 0, gpu.Options{StageSize: 16})
	q, ctx := dev.Queue(0), minute(t)
	b, foreign := allocate(t, dev, 64), allocate(t, openDevice(t, newSim(t, simdriver.Config{}), 0, gpu.Options{}), 64)
	x, err := gpu.AllocSlice[float32](dev, gpu.DeviceMem, 8)
	must(t, err)
	none, host := gpu.Slice[float32]{}, make([]float32, 8)
	notThere := "the indices given to Slice are reversed, negative or too large"
	record := func(add func(c *gpu.CommandBuffer) error) error {
		c, err := dev.NewCommandBuffer(gpu.CommandOptions{})
		must(t, err)
		defer c.Close()
		return add(c)
	}
	type stream = *gpu.Stream
	for _, c := range []struct {
		name string
		call func(s stream) error
		is   error
		says string
	}{
		{"upload to a reversed slice", func(s stream) error { return s.Do(x.Slice(5, 2).Upload(host[:3])) }, gpu.ErrRange, notThere},
		{"fill of memory of a driver that was opened again", func(s stream) error { return s.Fill(foreign.All(), []byte{1}) }, gpu.ErrArgument, "fill: the buffer is of another device: the driver sim was opened twice"},
		{"upload of much to a reversed slice", func(s stream) error { return s.Do(x.Slice(5, 2).Upload(host)) }, gpu.ErrRange, notThere},
		{"upload of a copy to a slice that is too long", func(s stream) error { return s.Do(x.Slice(2, 9).UploadCopy(host[:7])) }, gpu.ErrRange, notThere},
		{"download of a reversed slice", func(s stream) error { return s.Do(x.Slice(5, 2).Download(host[:3])) }, gpu.ErrRange, notThere},
		{"fill of a negative slice", func(s stream) error { return s.Do(x.Slice(-1, 2).Fill(1)) }, gpu.ErrRange, notThere},
		{"copy from a reversed slice", func(s stream) error { return s.Do(x.CopyFrom(x.Slice(5, 2))) }, gpu.ErrRange, notThere},
		{"copy to a reversed slice", func(s stream) error { return s.Do(x.Slice(5, 2).CopyFrom(x)) }, gpu.ErrRange, notThere},
		{"slice of a reversed slice", func(s stream) error { return s.Do(x.Slice(5, 2).Slice(0, 1).Fill(1)) }, gpu.ErrRange, notThere},
		{"recorded copy from a reversed slice", func(stream) error {
			return record(func(c *gpu.CommandBuffer) error {
				_, err := c.Add(gpu.Copy(b.Range(0, 12), x.Slice(5, 2).Range()))
				return err
			})
		}, gpu.ErrRange, notThere},
		{"recorded upload to a reversed slice", func(stream) error {
			return record(func(c *gpu.CommandBuffer) error {
				_, err := c.Add(gpu.UploadCopy(x.Slice(5, 2).Range(), make([]byte, 12)))
				return err
			})
		}, gpu.ErrRange, notThere},
		{"recorded fill of a reversed slice", func(stream) error {
			return record(func(c *gpu.CommandBuffer) error {
				_, err := c.Add(gpu.Fill(x.Slice(5, 2).Range(), make([]byte, 4)))
				return err
			})
		}, gpu.ErrRange, notThere},
		{"upload to no slice", func(s stream) error { return s.Do(none.Upload(host[:1])) }, gpu.ErrArgument, "upload: no buffer"},
		{"copy from no slice", func(s stream) error { return s.Do(x.CopyFrom(none)) }, gpu.ErrArgument, "copy: no buffer"},
		{"copy to no slice", func(s stream) error { return s.Do(none.CopyFrom(x)) }, gpu.ErrArgument, "copy: no buffer"},
		{"upload behind the end", func(s stream) error { return s.Upload(b.Range(60, 8), make([]byte, 64)) }, gpu.ErrRange, "8 bytes at 60 of a buffer of 64"},
		{"copy behind the end", func(s stream) error { return s.Copy(b.Range(0, 80), b.Range(40, 9)) }, gpu.ErrRange, "80 bytes at 0 of a buffer of 64"},
		{"upload of less", func(s stream) error { return s.Upload(b.All(), make([]byte, 3)) }, gpu.ErrArgument, "3 bytes of data for a range of 64"},
		{"download of less", func(s stream) error { return s.Do(gpu.Download(make([]byte, 3), b.All())) }, gpu.ErrArgument, "3 bytes of memory for a range of 64"},
		{"copy of less", func(s stream) error { return s.Copy(b.Range(0, 8), b.Range(40, 9)) }, gpu.ErrArgument, "from 9 bytes to 8"},
		{"wait for no stream", func(stream) error { return stream(nil).Wait(ctx) }, gpu.ErrArgument, "wait: a nil or zero Stream"},
		{"no stream after a point", func(stream) error { return stream(nil).After() }, gpu.ErrArgument, "after: a nil or zero Stream"},
	} {
		if err := c.call(q.NewStream()); !errors.Is(err, c.is) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v; want it to say %q", c.name, err, c.says)
		}
	}
	want := func(what string, err, is error, says string) {
		t.Helper()
		if !errors.Is(err, is) || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v; want it to say %q", what, err, says)
		}
	}
	timing, err := dev.NewTiming()
	must(t, err)
	duration := func() error { _, err := timing.Duration(); return err }
	want("a timing before it is used", duration(), gpu.ErrArgument, "given to no operation")
	host1, s := semaphores(t, 1)[0], semaphores(t, 1)[0]
	must(t, q.Submit(gpu.Order{Wait: pts(host1, 1), Signal: pts(s, 1)}, gpu.Fill(b.All(), []byte{1}).Timed(timing)))
	want("a timing of a parked operation", duration(), gpu.ErrArgument, "not done")
	must(t, d.StallDevice(0))
	must(t, host1.Signal(1))
	inFlight(t, dev, 1)
	want("a timing of an operation in flight", duration(), gpu.ErrArgument, "not done")
	must(t, d.ResumeDevice(0))
	must(t, s.Wait(ctx, 1))
	must(t, duration())
	must(t, q.Submit(gpu.Order{Wait: pts(host1, 2), Signal: pts(s, 2)}, gpu.Fill(b.All(), []byte{1}).Timed(timing)))
	want("a timing that is used again", duration(), gpu.ErrArgument, "not done")
	host1.Fail(errors.New("given up"))
	if err := s.Wait(ctx, 2); err == nil {
		t.Fatal("it has not failed")
	}
	want("a timing of an operation that failed", duration(), gpu.ErrArgument, "has failed")

	c, err := dev.NewCommandBuffer(gpu.CommandOptions{})
	must(t, err)
	from, err := c.Timestamp()
	must(t, err)
	to, err := c.Timestamp()
	must(t, err)
	elapsed := func() error { _, err := c.Elapsed(from, to); return err }
	want("elapsed time of what is recorded", elapsed(), gpu.ErrArgument, "given no execution")
	must(t, c.End())
	want("elapsed time before an execution", elapsed(), gpu.ErrArgument, "given no execution")
	must(t, d.StallDevice(0))
	st := q.NewStream()
	must(t, st.Do(gpu.Execute(c)))
	want("elapsed time of an execution in flight", elapsed(), gpu.ErrArgument, "not done")
	must(t, d.ResumeDevice(0))
	must(t, st.Wait(ctx))
	must(t, elapsed())
}

// TestTimingOfHostCalls times executions of recordings with host calls. The time must last from the
// start of the first launch to the end of the last launch. Without launches it must be the sum of
// the times of the host calls.
func TestTimingOfHostCalls(t *testing.T) {
	onEach(t, 1, func(t *testing.T, d *simdriver.Driver, caps driver.Caps) {
		if !caps.Timers {
			t.Skip("no times")
		}
		_, dev, sleep := testkit.OpenSleeper(t, caps, gpu.Options{})
		timing, err := dev.NewTiming()
		must(t, err)
		for _, x := range []struct {
			name, parts string
			want        time.Duration
		}{
			{"B197 a host call in front", "hd", 1000},
			{"B197 a host call behind", "dh", 1000},
			{"B197 host calls around", "hdh", 1000},
			{"B197 host calls around and between", "hhdhdhh", 2000 + 50},
			{"B197 host calls alone", "hh", 100},
			{"B197 a host call", "h", 50},
		} {
			all, err := dev.NewCommandBuffer(gpu.CommandOptions{})
			must(t, err)
			for _, p := range x.parts {
				op := sleep.Launch(gpu.GridFor(1, 1), testkit.SleepArgs{Nanoseconds: 1000})
				if p == 'h' {
					op = gpu.HostCall(func() error { time.Sleep(50 * time.Nanosecond); return nil })
				}
				_, err := all.Add(op)
				must(t, err)
			}
			must(t, all.End())
			s := semaphores(t, 1)[0]
			must(t, dev.Queue(0).Submit(gpu.Order{Signal: pts(s, 1)}, gpu.Execute(all).Timed(timing)))
			must(t, s.Wait(minute(t), 1))
			took, err := timing.Duration()
			// A host call between two launches begins late, because the host must first see that
			// the first launch is done.
			exact := strings.Count(x.parts, "d") <= 1
			if err != nil || took < x.want || exact && took != x.want || took > x.want+time.Second {
				t.Errorf("%s: %v, %v; want %v", x.name, took, err, x.want)
			}
		}
	})
}
