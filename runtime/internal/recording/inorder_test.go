package recording_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/puregpu/puregpu/runtime/collective"
	"github.com/puregpu/puregpu/runtime/driver/simdriver"
	"github.com/puregpu/puregpu/runtime/gpu"
)

// openSim opens a simulated GPU, which is closed when the test ends.
func openSim(t *testing.T) *gpu.Device {
	t.Helper()
	dev, err := gpu.Open(newSim(t, simdriver.Config{}), 0, gpu.Options{})
	must(t, err)
	t.Cleanup(func() { dev.Close() }) // Close returns the loss if the test has lost the device
	return dev
}

// TestInOrder records fills and copies of one buffer without barriers, and a nested recording. With
// InOrder each command must find the result of the previous command, in both modes.
func TestInOrder(t *testing.T) {
	for _, mode := range []gpu.Mode{gpu.StreamMode, gpu.GraphMode} {
		dev := openSim(t)
		x := allocate(t, dev, 64)
		child, err := dev.NewCommandBuffer(gpu.CommandOptions{Mode: mode})
		must(t, err)
		recorded(t)(child.Add(gpu.Copy(x.Range(32, 16), x.Range(16, 16))))
		must(t, child.End())
		c, err := dev.NewCommandBuffer(gpu.CommandOptions{Mode: mode, InOrder: true})
		must(t, err)
		for i := range 16 {
			recorded(t)(c.Add(gpu.Fill(x.All(), []byte{byte(i)})))
		}
		recorded(t)(c.Add(gpu.Copy(x.Range(48, 16), x.Range(0, 16))))
		recorded(t)(c.Add(gpu.Fill(x.Range(0, 32), []byte{77})))
		recorded(t)(c.Add(gpu.Execute(child)))
		recorded(t)(c.Add(gpu.Fill(x.Range(0, 32), []byte{78})))
		must(t, c.End())
		for range 20 {
			s := semaphores(t, 1)[0]
			must(t, dev.Queue(0).Submit(gpu.Order{Signal: pts(s, 1)}, gpu.Execute(c)))
			b := bytesOf(t, dev.Queue(0), x, pts(s, 1)...)
			if b[0] != 78 || b[31] != 78 || b[32] != 77 || b[47] != 77 || b[48] != 15 || b[63] != 15 {
				t.Fatalf("mode %d: %v", mode, b)
			}
		}
		must(t, c.Close())
		must(t, child.Close())
		must(t, x.Close())
	}
}

// TestForgottenBarrier omits a barrier. The simulated driver must fail the execution. The error
// must name the second command by number, label and kind, and say that nothing orders the two
// commands.
func TestForgottenBarrier(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector finds it, too")
	}
	dev := openSim(t)
	x, y := allocate(t, dev, 64), allocate(t, dev, 64)
	c := commandBuffer(t, dev, gpu.GraphMode)
	recorded(t)(c.Add(gpu.Fill(y.All(), []byte{1})))
	recorded(t)(c.Add(gpu.Fill(x.All(), []byte{2}).Label("weights")))
	recorded(t)(c.Add(gpu.Copy(y.Range(0, 32), x.Range(32, 32)).Label("publish")))
	must(t, c.End())
	s := dev.Queue(0).NewStream()
	if err := s.Do(gpu.Execute(c)); err != nil && !errors.As(err, new(*simdriver.OrderError)) {
		t.Fatal(err)
	}
	err := s.Wait(minute(t))
	var wrong *simdriver.OrderError
	if !errors.As(err, &wrong) {
		t.Fatalf("without a barrier: %v", err)
	}
	for _, want := range []string{`command 2 ("publish"), copy`, "nothing orders them"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q does not say %q", err, want)
		}
	}
}

// TestBindingSlice binds elements, and checks that too few elements are refused.
func TestBindingSlice(t *testing.T) {
	dev := openSim(t)
	c := commandBuffer(t, dev, gpu.GraphMode)
	x, err := gpu.BindingSlice[float32](c, 16)
	must(t, err)
	recorded(t)(c.Add(x.Fill(1.5)))
	must(t, c.End())
	y, err := gpu.AllocSlice[float32](dev, gpu.DeviceMem, 20)
	must(t, err)
	s, got := dev.Queue(0).NewStream(), make([]float32, 20)
	must(t, s.Do(y.Fill(0), gpu.Execute(c, y.Slice(4, 20).Range()), y.Download(got)))
	must(t, s.Wait(minute(t)))
	if got[3] != 0 || got[4] != 1.5 || got[19] != 1.5 {
		t.Errorf("%v", got)
	}
	if err := dev.Queue(0).NewStream().Do(gpu.Execute(c, y.Slice(5, 20).Range())); !errors.Is(err, gpu.ErrArgument) && !errors.Is(err, gpu.ErrRange) {
		t.Errorf("15 elements for 16: %v", err)
	}
	if _, err := gpu.BindingSlice[float32](nil, 1); !errors.Is(err, gpu.ErrArgument) {
		t.Errorf("of no command buffer: %v", err)
	}
}

// TestInOrderCollectives records two collectives one after the other. With InOrder they are two
// groups, otherwise one. A collective that names a command to come after is a group of its own.
func TestInOrderCollectives(t *testing.T) {
	for _, x := range []struct {
		inOrder, named bool
		groups         uint64
	}{{false, false, 1}, {true, false, 2}, {false, true, 2}} {
		d := newSim(t, simdriver.Config{})
		g, comms := openCommunicators(t, d, 1, collective.Options{})
		dev := g.Devices()[0]
		b := allocate(t, dev, 64)
		c, err := dev.NewCommandBuffer(gpu.CommandOptions{InOrder: x.inOrder})
		must(t, err)
		first := recorded(t)(c.Add(comms[0].Group(sum(b))))
		if x.named {
			recorded(t)(c.Add(comms[0].Group(sum(b)), first))
		} else {
			recorded(t)(c.Add(comms[0].Group(sum(b))))
		}
		must(t, c.End())
		before, s := calls(d, 0, simdriver.OpCollect), semaphores(t, 1)[0]
		must(t, dev.Queue(0).Submit(gpu.Order{Signal: pts(s, 1)}, gpu.Execute(c)))
		must(t, s.Wait(minute(t), 1))
		if n := calls(d, 0, simdriver.OpCollect) - before; n != x.groups {
			t.Errorf("in order %t, named %t: %d groups, want %d", x.inOrder, x.named, n, x.groups)
		}
		must(t, c.Close())
		must(t, b.Close())
	}
}

// TestRecordedLabels checks that the error of a recorded host call has the command's label, not
// that of the execution.
func TestRecordedLabels(t *testing.T) {
	dev := openSim(t)
	c := commandBuffer(t, dev, gpu.AutoMode)
	recorded(t)(c.Add(gpu.HostCall(func() error { return errHostCall }).Label("save")))
	must(t, c.End())
	s := dev.Queue(0).NewStream()
	must(t, s.Do(gpu.Execute(c).Label("step")))
	err := s.Wait(minute(t))
	var failed *gpu.SubmitError
	if !errors.As(err, &failed) || failed.Label != "save" {
		t.Errorf("%v", err)
	}
}
