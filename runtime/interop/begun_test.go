package interop_test

import (
	"errors"
	"io"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/driver/simdriver"
	"github.com/puregpu/puregpu/runtime/gpu"
	"github.com/puregpu/puregpu/runtime/interop"
)

// TestLaunchEvents checks that work that waits for a launch's event does not run before the launch
// has begun. It also checks the errors of Begun.
func TestLaunchEvents(t *testing.T) {
	onEach(t, 2, func(t *testing.T, d *simdriver.Driver, caps driver.Caps) {
		dev, second := openDevice(t, d, 0, gpu.Options{}), openDevice(t, d, 1, gpu.Options{})
		e, err := interop.NewEvent(dev)
		must(t, err)
		foreign, err := interop.NewEvent(second)
		must(t, err)
		x, err := dev.Load(simdriver.Image("nothing"))
		must(t, err)
		k, err := x.Kernel("nothing")
		must(t, err)
		launch := func(e *interop.Event) gpu.Op { return interop.Begun(gpu.Launch(k, gpu.GridFor(1, 1), uint64(0)), e) }
		s := dev.Queue(0).NewStream()
		if !caps.LaunchEvents {
			err := s.Do(launch(e))
			if !errors.Is(err, driver.ErrUnsupported) || !strings.Contains(err.Error(), "Simulated GPU 0 records no event when a launch has begun") {
				t.Errorf("without: %v", err)
			}
		} else {
			d.StallDevice(0)
			must(t, s.Do(launch(e)))
			w := dev.Queue(1).NewStream()
			must(t, w.Do(interop.WaitEvent(e)))
			synctest.Wait()
			if v, err := w.Point().Semaphore.Query(); v != 0 || err != nil {
				t.Errorf("the wait is over before the launch begins: %d, %v", v, err)
			}
			d.ResumeDevice(0)
			must(t, w.Wait(minute(t)))
			must(t, s.Wait(minute(t)))

			// A launch fails if its wait fails, or if the driver refuses it.
			never, failed := semaphores(t, 1)[0], dev.Queue(0).NewStream()
			must(t, failed.After(never.At(1)))
			must(t, failed.Do(launch(e)))
			never.Fail(io.ErrNoProgress)
			if err := failed.Wait(minute(t)); !errors.Is(err, io.ErrNoProgress) {
				t.Errorf("behind a wait that fails: %v", err)
			}
			d.Inject(simdriver.Fault{Op: simdriver.OpLaunch})
			failed = dev.Queue(0).NewStream()
			must(t, failed.Do(launch(e)))
			if err := failed.Wait(minute(t)); !errors.Is(err, simdriver.ErrInjected) {
				t.Errorf("a launch that is refused: %v", err)
			}
			if err := dev.Queue(0).Submit(gpu.Order{}, launch(foreign)); !errors.Is(err, gpu.ErrArgument) || !strings.Contains(err.Error(), "is of device Simulated GPU 1") {
				t.Errorf("an event of another device: %v", err)
			}
		}
		must(t, errors.Join(e.Close(), foreign.Close(), x.Close()))
	})
}

// TestMakingOpsAllocatesNothing checks that making Ops of package interop allocates nothing.
func TestMakingOpsAllocatesNothing(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	onEach(t, 1, func(t *testing.T, d *simdriver.Driver, caps driver.Caps) {
		dev := openDevice(t, d, 0, gpu.Options{})
		x, err := dev.Load(simdriver.Image("nothing"))
		must(t, err)
		k, err := x.Kernel("nothing")
		must(t, err)
		e, err := interop.NewEvent(dev)
		must(t, err)
		word := allocate(t, dev, 8).All()
		launch := gpu.Launch(k, gpu.GridFor(1, 1), uint64(0))
		var op gpu.Op
		if n := testing.AllocsPerRun(100, func() {
			op = interop.Begun(launch, e)
			op = interop.RecordEvent(e)
			op = interop.WaitEvent(e)
			op = interop.WriteValue(word, 1)
			op = interop.WaitValue(word, 1)
		}); n > 0 {
			t.Errorf("%v allocations for Ops such as %v", n, op)
		}
		must(t, errors.Join(e.Close(), x.Close()))
	})
}
