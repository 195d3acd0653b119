package gpu_test

import (
	"errors"
	"testing"

	"github.com/puregpu/puregpu/runtime/driver/simdriver"
	"github.com/puregpu/puregpu/runtime/gpu"
)

// TestImportHostReadOnly has the driver refuse to pin memory for reading: then it is pinned as other memory is, unless that cannot
// be done either.
func TestImportHostReadOnly(t *testing.T) {
	d := newSim(t, simdriver.Config{})
	dev := openDevice(t, d, 0, gpu.Options{})
	broken, worse := errors.New("broken"), errors.New("worse")
	mem := []byte("memory")
	d.Inject(simdriver.Fault{Op: simdriver.OpRegister, N: 1, Err: broken})
	b, err := dev.ImportHostReadOnly(mem, nil)
	must(t, err)
	if got := content(t, dev.Queue(0), b); string(got) != string(mem) {
		t.Errorf("%q", got)
	}
	if err := dev.Queue(0).Fill(gpu.Order{}, b.All(), []byte{1}); !errors.Is(err, gpu.ErrArgument) {
		t.Errorf("Fill = %v", err)
	}
	must(t, b.Close())
	d.Inject(simdriver.Fault{Op: simdriver.OpRegister, N: 1, Err: broken})
	d.Inject(simdriver.Fault{Op: simdriver.OpRegister, N: 2, Err: worse})
	if b, err := dev.ImportHostReadOnly(make([]byte, 8), nil); b != nil || !errors.Is(err, broken) {
		t.Errorf("ImportHostReadOnly = %v, %v", b, err)
	}
	must(t, dev.Close())
}
