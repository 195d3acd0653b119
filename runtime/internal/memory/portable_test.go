package memory_test

import (
	"reflect"
	"sync/atomic"
	"testing"

	"github.com/puregpu/puregpu/runtime/driver/simdriver"
	"github.com/puregpu/puregpu/runtime/gpu"
	"github.com/puregpu/puregpu/runtime/internal/memory"
)

// TestTrimOfClosed trims a pool while the device is being closed and engine.Device.Stay returns an
// error. The slab must still be freed on a bound thread.
func TestTrimOfClosed(t *testing.T) {
	d, err := gpu.Open(simdriver.New(simdriver.Config{Strict: true}), 0, gpu.Options{})
	if err != nil {
		t.Fatal(err)
	}
	pool, err := d.NewPool(gpu.PoolOptions{Portable: true, InitialSize: 1 << 16})
	if err != nil {
		t.Fatal(err)
	}
	p := (*memory.PoolHandle)(pool).Pool()
	e := p.Device().Engine
	phase := (*atomic.Int32)(reflect.ValueOf(e).Elem().FieldByName("phase").Addr().UnsafePointer())
	was := phase.Load()
	for !e.IsLeaving() {
		phase.Add(1)
	}
	if err := p.TrimBlocks(); err != nil {
		t.Error(err)
	}
	phase.Store(was)
	if err := d.Close(); err != nil {
		t.Error(err)
	}
}
