package gpu

import (
	"reflect"
	"sync/atomic"
	"testing"

	"github.com/puregpu/puregpu/runtime/driver/simdriver"
)

// TestTrimOfClosed has a trim come to a slab when the device is being closed, and waits for nobody any more: the slab is freed on a thread to
// which the device is bound all the same.
func TestTrimOfClosed(t *testing.T) {
	checkLeaks(t)
	d, err := Open(simdriver.New(simdriver.Config{Strict: true}), 0, Options{})
	if err != nil {
		t.Fatal(err)
	}
	p, err := d.NewPool(PoolOptions{Portable: true, InitialSize: 1 << 16})
	if err != nil {
		t.Fatal(err)
	}
	phase := (*atomic.Int32)(reflect.ValueOf(&d.native).Elem().FieldByName("phase").Addr().UnsafePointer())
	was := phase.Load()
	for !d.native.IsLeaving() {
		phase.Add(1)
	}
	if err := p.blocks.Trim(0, p.order()); err != nil {
		t.Error(err)
	}
	phase.Store(was)
	if err := d.Close(); err != nil {
		t.Error(err)
	}
}
