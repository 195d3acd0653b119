package gpu_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/driver/simdriver"
	"github.com/puregpu/puregpu/runtime/gpu"
	"github.com/puregpu/puregpu/runtime/internal/standin"
)

// double returns a function for Native. The function submits a Go function to the stream. The Go
// function reads n numbers from the first range, and writes each number times 2 to the second
// range.
func double(n int) func(gpu.NativeCall) error {
	return func(v gpu.NativeCall) error {
		src, dst := v.Ptrs[0], v.Ptrs[1]
		return v.Device.(standin.Device).RunGo(v.Stream, "double", nil, func(m standin.Memory) error {
			from, err := standin.Read[float32](m, src, n)
			if err != nil {
				return err
			}
			to, err := standin.Write[float32](m, dst, n)
			if err != nil {
				return err
			}
			for i, x := range from {
				to[i] = 2 * x
			}
			return nil
		})
	}
}

// TestStandIn runs Go functions as work of the simulated GPU: in a stream, and in a recording that
// is executed with different memory.
func TestStandIn(t *testing.T) {
	for _, mode := range []gpu.Mode{gpu.GraphMode, gpu.StreamMode} {
		onEach(t, 1, func(t *testing.T, d *simdriver.Driver, caps driver.Caps) {
			if !caps.Native || mode == gpu.GraphMode && !caps.Capture {
				t.Skip("no access to streams, or no capture")
			}
			dev := openDevice(t, d, 0, gpu.Options{})
			x, err := gpu.AllocSlice[float32](dev, gpu.DeviceMem, 100)
			must(t, err)
			y, err := gpu.AllocSlice[float32](dev, gpu.DeviceMem, 300)
			must(t, err)
			st := dev.Queue(0).NewStream()
			must(t, st.Do(x.Fill(3), gpu.Native("", double(100), x.Range(), y.Range()), y.Slice(0, 100).CopyFrom(x)))
			must(t, st.Do(gpu.Native("", double(100), x.Range(), y.Slice(0, 100).Range())))
			c := commandBuffer(t, dev, mode)
			to, err := gpu.BindingSlice[float32](c, 100)
			must(t, err)
			a := recorded(t)(c.Add(gpu.Native("", double(100), y.Slice(0, 100).Range(), to.Range())))
			recorded(t)(c.Add(gpu.Native("", double(100), to.Range(), x.Range()), a))
			must(t, c.End())
			for i := 1; i < 3; i++ {
				must(t, st.Do(gpu.Execute(c, y.Slice(i*100, (i+1)*100).Range())))
			}
			got, back := make([]float32, 300), make([]float32, 100)
			must(t, st.Do(y.Download(got), x.Download(back)))
			must(t, st.Wait(in(t, time.Minute)))
			if got[99] != 6 || got[100] != 12 || got[299] != 12 || back[0] != 24 {
				t.Errorf("%v %v %v %v", got[99], got[100], got[299], back[0])
			}
			must(t, c.Close())
			must(t, dev.Close())
		})
	}
}

// TestStandInFails checks that a Go function that accesses memory out of bounds loses the device,
// with an error that names the function.
func TestStandInFails(t *testing.T) {
	d := newSim(t, simdriver.Config{})
	dev := openDevice(t, d, 0, gpu.Options{})
	x := allocate(t, dev, 256)
	st := dev.Queue(0).NewStream()
	must(t, st.Do(gpu.Native("", double(100), x.All(), x.All())))
	if err := st.Wait(in(t, time.Minute)); !errors.Is(err, gpu.ErrLost) || !strings.Contains(err.Error(), "double") {
		t.Errorf("out of bounds: %v", err)
	}
	_ = dev.Close()
}
