package engine_test

import (
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/driver/simdriver"
	"github.com/puregpu/puregpu/runtime/gpu"
)

// TestWaitForClosed: work fails that was about to have its stream wait for another device when that one was lost and closed.
func TestWaitForClosed(t *testing.T) {
	d := simdriver.New(simdriver.Config{Devices: 2})
	defer d.Kill() // the stalled stream is left
	var devs [2]*gpu.Device
	var mem [2]*gpu.Buffer
	for i := range devs {
		var err error
		if devs[i], err = gpu.Open(d, i, gpu.Options{}); err != nil {
			t.Fatal(err)
		}
		defer devs[i].Close()
		if mem[i], err = devs[i].Alloc(gpu.DeviceMem, 64); err != nil {
			t.Fatal(err)
		}
	}
	d.StallDevice(0)
	s, u := new(gpu.Semaphore), new(gpu.Semaphore)
	if err := devs[0].Queue(0).Fill(gpu.Order{Signal: []gpu.Point{s.At(1)}}, mem[0].All(), []byte{1}); err != nil {
		t.Fatal(err)
	}
	loan := native(devs[0])
	loan.LentMutex().Lock() // holds the wait up
	result := make(chan error)
	go func() {
		result <- devs[1].Queue(0).Fill(gpu.Order{Wait: []gpu.Point{s.At(1)}, Signal: []gpu.Point{u.At(1)}}, mem[1].All(), []byte{1})
	}()
	untilIn("(*loan).add(")
	native(devs[0]).MarkLost(io.ErrUnexpectedEOF) // but what is in flight has not failed yet
	loan.EndLoan()                                // as Close does
	loan.LentMutex().Unlock()
	if err := <-result; err != nil {
		t.Fatal(err)
	}
	if err := u.Wait(t.Context(), 1); !errors.Is(err, gpu.ErrClosed) {
		t.Errorf("Wait = %v", err)
	}
	native(devs[0]).FailInFlight()
	if err := s.Wait(t.Context(), 1); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("what it waited for: %v", err)
	}
}

// TestLostWhileFollowed loses a device after a submission of another one has found its work in flight, and before that has its stream wait
// for it, when nobody can find the wait yet: the submission itself finds the loss, also where only its waits get into the stream.
func TestLostWhileFollowed(t *testing.T) {
	for name, submit := range map[string]func(q *gpu.Queue, p *gpu.Pool, b *gpu.Buffer, o gpu.Order) error{
		"a fill": func(q *gpu.Queue, _ *gpu.Pool, b *gpu.Buffer, o gpu.Order) error {
			return q.Fill(o, b.All(), []byte{1})
		},
		"an allocation without memory": func(q *gpu.Queue, p *gpu.Pool, _ *gpu.Buffer, o gpu.Order) error {
			_, err := q.Alloca(o, p, 1<<20)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			d := simdriver.New(simdriver.Config{Devices: 2})
			var devs [2]*gpu.Device
			var mem [2]*gpu.Buffer
			check := func(err error) {
				t.Helper()
				if err != nil {
					t.Fatal(err)
				}
			}
			for i := range devs {
				var err error
				devs[i], err = gpu.Open(d, i, gpu.Options{Spin: -1, Poll: -1})
				check(err)
				defer devs[i].Close()
				mem[i], err = devs[i].Alloc(gpu.DeviceMem, 64)
				check(err)
			}
			p, err := devs[1].NewPool(gpu.PoolOptions{MaxSize: 1 << 20})
			check(err)
			_, err = devs[1].Queue(0).Alloca(gpu.Order{}, p, 1<<20)
			check(err)
			d.StallDevice(0)
			s, u := new(gpu.Semaphore), new(gpu.Semaphore)
			check(devs[0].Queue(0).Fill(gpu.Order{Signal: []gpu.Point{s.At(1)}}, mem[0].All(), []byte{1}))
			native(devs[0]).LentMutex().Lock() // holds the wait up
			result := make(chan error)
			go func() {
				result <- submit(devs[1].Queue(0), p, mem[1], gpu.Order{Wait: []gpu.Point{s.At(1)}, Signal: []gpu.Point{u.At(1)}})
			}()
			untilIn("(*loan).add(")
			d.LoseDevice(0, nil)
			native(devs[0]).MarkLost(io.ErrUnexpectedEOF) // and nobody can find who waits
			native(devs[0]).FailInFlight()
			native(devs[0]).LentMutex().Unlock()
			check(<-result)
			if err := native(devs[1]).Failed(); !errors.Is(err, driver.ErrLost) || !strings.Contains(err.Error(), native(devs[0]).Info.Name) {
				t.Errorf("the device whose stream waits for the lost one: %v", err)
			}
			if _, err := u.Query(); err == nil {
				t.Error("the work has not failed")
			}
		})
	}
}

// TestFailedByClose: work in flight of a lost device has failed when Close returns, even if the goroutine that found the loss has not failed it yet.
func TestFailedByClose(t *testing.T) {
	d := simdriver.New(simdriver.Config{})
	dev, err := gpu.Open(d, 0, gpu.Options{})
	if err != nil {
		t.Fatal(err)
	}
	b, err := dev.Alloc(gpu.DeviceMem, 64)
	if err != nil {
		t.Fatal(err)
	}
	d.StallDevice(0)
	s := new(gpu.Semaphore)
	if err := dev.Queue(0).Fill(gpu.Order{Signal: []gpu.Point{s.At(1)}}, b.All(), []byte{1}); err != nil {
		t.Fatal(err)
	}
	native(dev).MarkLost(io.ErrUnexpectedEOF)
	d.LoseDevice(0, nil)
	dev.Close()
	if _, err := s.Query(); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("Query = %v", err)
	}
}
