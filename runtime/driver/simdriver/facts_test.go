package simdriver_test

import (
	"testing"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/driver/simdriver"
)

func TestMemInfo(t *testing.T) {
	_, vs := open(t, simdriver.Config{Devices: 2, Memory: 1 << 20})
	v, w := vs[0], vs[1]
	free := func(want uint64) {
		t.Helper()
		free, total, err := v.(driver.MemInfo).MemInfo()
		if free != want || total != 1<<20 || err != nil {
			t.Errorf("%d of %d bytes are free, %v; want %d", free, total, err, want)
		}
	}
	free(1 << 20)
	m := alloc(t, v, driver.DeviceMem, 4096)
	alloc(t, v, driver.HostMem, 4096)
	alloc(t, w, driver.DeviceMem, 4096)
	free(1<<20 - 4096)
	check(t, v.Free(m))
	free(1 << 20)
	// Memory reserved by a pool is not free.
	p, s := pool(t, v, 0), stream(t, v)
	async := allocAsync(t, v, s, p, 100)
	check(t, drain(t, v, s))
	reserved, err := pools(v).PoolAttr(p, driver.PoolReserved)
	check(t, err)
	free(1<<20 - reserved)
	check(t, pools(v).FreeAsync(s, async))
	check(t, drain(t, v, s))
	check(t, pools(v).TrimPool(p, 0))
	free(1 << 20)
}

func TestLinks(t *testing.T) {
	pcie := driver.Link{Kind: driver.LinkPCIe, Rank: 1, Hops: 2}
	none := driver.Link{Kind: driver.LinkNone, Rank: -1}
	for _, c := range []struct {
		name     string
		config   simdriver.Config
		to, back driver.Link
	}{
		{"usual", simdriver.Config{}, driver.Link{Atomics: true, Arrays: true}, driver.Link{Atomics: true, Arrays: true}},
		{"apart", simdriver.Config{Apart: true}, none, none},
		{"chosen", simdriver.Config{Apart: true, Links: func(from, to int) driver.Link {
			if from < to {
				return pcie
			}
			return none
		}}, pcie, none},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.config.Devices = 2
			_, vs := open(t, c.config)
			for i, want := range []driver.Link{c.to, c.back} {
				v, w := vs[i], vs[1-i]
				if got, err := v.(driver.Links).Link(w); got != want || err != nil {
					t.Errorf("from %d: %+v, %v; want %+v", i, got, err, want)
				}
				if got, err := v.(driver.Links).Link(v); got != (driver.Link{Kind: driver.LinkSelf, Atomics: true, Arrays: true}) || err != nil {
					t.Errorf("from %d to itself: %+v, %v", i, got, err)
				}
				err := peers(v).EnablePeer(w)
				access := pools(w).AccessPool(pool(t, w, 0), v, true)
				if want.Kind == driver.LinkNone {
					refused(t, err, driver.ErrUnsupported, "no link")
					refused(t, access, driver.ErrUnsupported, "no link")
				} else {
					check(t, err)
					check(t, access)
				}
			}
			_, others := open(t, c.config)
			refused(t, second(vs[0].(driver.Links).Link(others[1])), simdriver.ErrInvalidValue, "not a device of this driver")
			refused(t, second(vs[0].(driver.Links).Link(nil)), simdriver.ErrInvalidValue)
		})
	}
}

func TestOccupancy(t *testing.T) {
	_, vs := open(t, simdriver.Config{Devices: 2, Kernels: kernels(map[string]any{"k": func(*simdriver.Grid) {}})})
	v := vs[0].(driver.Occupancy)
	f := function(t, vs[0], "k")
	for _, c := range []struct {
		threads int
		shared  uint32
		want    int
	}{
		{1, 0, 32},   // the number of blocks is the limit
		{64, 0, 32},  // the numbers of blocks and threads are limits
		{65, 0, 21},  // three warps per block; 64 warps fit on a multiprocessor
		{96, 0, 21},  // three warps per block
		{128, 0, 16}, // the number of threads is the limit
		{1024, 0, 2},
		{32, 10 << 10, 10},
		{32, 10<<10 + 1, 9},
		{1024, 96 << 10, 1},
	} {
		if got, err := v.Occupancy(f, c.threads, c.shared); got != c.want || err != nil {
			t.Errorf("blocks of %d threads with %d bytes: %d, %v; want %d", c.threads, c.shared, got, err, c.want)
		}
	}
	for _, c := range []struct {
		threads int
		shared  uint32
	}{{0, 0}, {-1, 0}, {1025, 0}, {1, 96<<10 + 1}, {1, 1<<32 - 1}} {
		refused(t, second(v.Occupancy(f, c.threads, c.shared)), simdriver.ErrInvalidValue, "occupancy", "kernel k")
	}
	refused(t, second(vs[1].(driver.Occupancy).Occupancy(f, 1, 0)), simdriver.ErrInvalidHandle)
	refused(t, second(v.Occupancy(0, 1, 0)), simdriver.ErrInvalidHandle)

	// A kernel with static shared memory.
	own, info, err := vs[0].Function(must(vs[0].Load([]byte(".version 6.4\n.visible .entry k()\n{\n.shared .align 4 .b8 s[30000];\nret;\n}\n")))(t), "k")
	check(t, err)
	if info.SharedMem != 30000 {
		t.Fatalf("%+v", info)
	}
	if got, err := v.Occupancy(own, 32, 4000); got != 3 || err != nil {
		t.Errorf("%d, %v", got, err)
	}
}

// TestNoFacts checks that MemInfo, Link and Occupancy fail on devices whose Caps lack them, with
// faults, and on a lost device.
func TestNoFacts(t *testing.T) {
	for _, c := range []struct {
		name   string
		config simdriver.Config
		want   error
	}{
		{"nothing", simdriver.Config{Caps: &driver.Caps{}}, driver.ErrUnsupported},
		{"faults", simdriver.Config{Faults: []simdriver.Fault{
			{Op: simdriver.OpMemInfo, Err: errTest}, {Op: simdriver.OpLink, Err: errTest}, {Op: simdriver.OpOccupancy, Err: errTest}}}, errTest},
		{"lost", simdriver.Config{Faults: []simdriver.Fault{{Op: simdriver.OpNewEvent, Lost: true, Err: errTest}}}, driver.ErrLost},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, vs := open(t, c.config)
			v := vs[0]
			if c.name == "lost" {
				refused(t, second(v.NewEvent()), driver.ErrLost)
			}
			_, _, err := v.(driver.MemInfo).MemInfo()
			refused(t, err, c.want, "memory info")
			refused(t, second(v.(driver.Links).Link(v)), c.want, "link")
			refused(t, second(v.(driver.Occupancy).Occupancy(1, 1, 0)), c.want, "occupancy")
		})
	}
}
