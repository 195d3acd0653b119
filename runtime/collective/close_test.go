package collective_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/puregpu/puregpu/runtime/collective"
	"github.com/puregpu/puregpu/runtime/driver/simdriver"
	"github.com/puregpu/puregpu/runtime/gpu"
)

// TestShutdown checks that closing a communicator ends with an error if a group waits for a rank
// that never joins the group. It also checks that Shutdown of an idle communicator succeeds, even
// with a context that has ended.
func TestShutdown(t *testing.T) {
	for name, shut := range map[string]func(t *testing.T, c *collective.Communicator) error{
		"Close":                  func(t *testing.T, c *collective.Communicator) error { return c.Close() },
		"Shutdown":               func(t *testing.T, c *collective.Communicator) error { return c.Shutdown(in(t, time.Second)) },
		"Shutdown of its device": func(t *testing.T, c *collective.Communicator) error { return c.Device().Shutdown(in(t, time.Second)) },
	} {
		for _, lazy := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, lazy %v", name, lazy), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					d := newSim(t, simdriver.Config{Devices: 2, LazyComms: lazy})
					g, err := gpu.OpenGroup(d, gpu.Options{})
					must(t, err)
					defer g.Close() // may return the communicator's error again
					comms, err := collective.NewAll(minute(t), g.Devices(), collective.Options{})
					must(t, err)
					s := semaphores(t, 1)[0]
					must(t, submitGroup(comms[0], gpu.Order{Signal: pts(s, 1)}, sum(allocate(t, g.Devices()[0], 64))))
					eventually(t, "the group is issued", func() bool { return calls(d, 0, simdriver.OpCollect) > 0 })
					err = shut(t, comms[0])
					if !errors.Is(err, gpu.ErrClosed) || !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "under way") {
						t.Errorf("%v, though work was under way", err)
					}
					hasFailed(t, "the group", s, gpu.ErrClosed)
					if again := shut(t, comms[0]); !errors.Is(again, err) && again.Error() != err.Error() {
						t.Errorf("again: %v", again)
					}
				})
			})
		}
	}
	t.Run("with nothing under way", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			d := newSim(t, simdriver.Config{Devices: 2})
			_, comms := openCommunicators(t, d, 2, collective.Options{})
			ended, cancel := context.WithCancel(context.Background())
			cancel()
			for _, c := range comms {
				must(t, c.Shutdown(ended))
			}
		})
	})
}

// TestThreadEnds checks that Close of a communicator waits until the communicator's thread has made
// its last driver call.
func TestThreadEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &stubbornDriver{Driver: newSim(t, simdriver.Config{})}
		_, comms := openCommunicators(t, d, 1, collective.Options{})
		held, closed := make(chan struct{}), make(chan error, 1)
		d.unbind = func() { <-held }
		go func() { closed <- comms[0].Close() }()
		synctest.Wait()
		if len(closed) > 0 {
			t.Error("it is closed, and its thread still calls the driver")
		}
		close(held)
		must(t, <-closed)
	})
}

// TestCloseBeforeListed closes a device while New makes a communicator on it: the communicator's
// stream exists, and the device does not list the communicator yet. Close of the device must wait
// for the communicator's thread.
func TestCloseBeforeListed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &stubbornDriver{Driver: newSim(t, simdriver.Config{})}
		dev := openDevice(t, d, 0, gpu.Options{})
		id, err := collective.NewID(dev)
		must(t, err)
		held, closed, made := make(chan struct{}), make(chan error, 1), make(chan error, 1)
		d.stream = func() { <-held }
		go func() {
			_, err := collective.New(t.Context(), dev, collective.Options{ID: id, Count: 1})
			made <- err
		}()
		synctest.Wait()
		go func() { closed <- dev.Close() }()
		synctest.Wait()
		if len(closed) > 0 {
			t.Error("the device is closed, and the communicator's thread still calls the driver")
		}
		close(held)
		if err := <-made; !errors.Is(err, gpu.ErrClosed) {
			t.Errorf("the communicator: %v", err)
		}
		must(t, <-closed)
	})
}

// TestLingers checks that Shutdown returns when its context ends, if the library waits for the
// other ranks to close.
func TestLingers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newSim(t, simdriver.Config{Devices: 2, LingerComms: true})
		_, comms := openCommunicators(t, d, 2, collective.Options{})
		start := time.Now()
		err := comms[0].Shutdown(in(t, time.Second))
		if !errors.Is(err, gpu.ErrClosed) || !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "other ranks") {
			t.Errorf("%v, though the other rank stays", err)
		}
		if took := time.Since(start); took > 2*time.Second {
			t.Errorf("it took %v", took)
		}
		if again := comms[0].Close(); again != err {
			t.Errorf("again: %v", again)
		}
		comms[1].Close()
	})
}
