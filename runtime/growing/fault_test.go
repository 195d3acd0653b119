package growing_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/puregpu/puregpu/runtime/driver/simdriver"
	"github.com/puregpu/puregpu/runtime/gpu"
	"github.com/puregpu/puregpu/runtime/growing"
)

// TestFaults makes each call of the driver for growing memory fail, one at a time, while two
// memories are used. A method that fails must not change the size, and nothing may leak.
func TestFaults(t *testing.T) {
	needsSharing(t)
	for _, op := range []simdriver.Op{simdriver.OpReserveAddresses, simdriver.OpNewPages, simdriver.OpMapPages, simdriver.OpAccessPages,
		simdriver.OpUnmapPages, simdriver.OpFreePages, simdriver.OpFreeAddresses} {
		for _, f := range []simdriver.Fault{{}, {OOM: true}, {Lost: true}} {
			t.Run(fmt.Sprintf("%s, out of memory %t, lost %t", op, f.OOM, f.Lost), func(t *testing.T) {
				for n := uint64(1); ; n++ {
					f.Op, f.N = op, n
					if !lives(t, f) {
						return
					}
				}
			})
		}
	}
}

// lives uses two memories while the driver has a fault. It returns false if no call has failed.
func lives(t *testing.T, f simdriver.Fault) bool {
	d := newSim(t, simdriver.Config{})
	dev, err := gpu.Open(d, 0, gpu.Options{})
	must(t, err)
	fault := d.Inject(f)
	sizes := map[*growing.Memory]uint64{}
	does := func(m *growing.Memory, size uint64, err error) {
		if err == nil {
			sizes[m] = size
		} else if !errors.Is(err, simdriver.ErrInjected) && !errors.Is(err, gpu.ErrOutOfMemory) && !errors.Is(err, gpu.ErrLost) &&
			!errors.Is(err, gpu.ErrRange) { // of memory that has not grown before
			t.Errorf("%v: %v", f, err)
		}
		if m.Size() != sizes[m] {
			t.Errorf("%v: the size is %d, want %d", f, m.Size(), sizes[m])
		}
	}
	a, err := growing.Reserve(dev, 8*page, growing.Options{})
	b, err2 := growing.Reserve(dev, 8*page, growing.Options{})
	if err != nil || err2 != nil {
		if !errors.Is(errors.Join(err, err2), simdriver.ErrInjected) && !errors.Is(errors.Join(err, err2), gpu.ErrOutOfMemory) {
			t.Error(err, err2)
		}
	} else {
		does(a, 2*page, a.Grow(2*page))
		does(a, 3*page, a.Grow(3*page))
		does(b, page, b.Grow(page))
		does(b, sizes[b]+2*page, b.Share(t.Context(), a, page, 2*page))
		if s := dev.Queue(0).NewStream(); s.Do(gpu.Fill(b.Buffer().All(), []byte{1})) == nil {
			s.Wait(minute(t))
		}
		does(a, min(page, sizes[a]), a.Shrink(page))
		before := min(page, sizes[a])
		eventually(t, "the pages are unmapped", func() bool {
			return before == 0 || f.Lost || mapped(d, 0) <= 6*page
		}, dev)
		must(t, a.Close())
	}
	hits := fault.Hits()
	if err := dev.Close(); err != nil && f.Op != simdriver.OpUnmapPages && f.Op != simdriver.OpFreePages && f.Op != simdriver.OpFreeAddresses && !f.Lost {
		t.Errorf("%v: close: %v", f, err)
	}
	return hits+fault.Hits() > 0
}
