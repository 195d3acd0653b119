package simdriver_test

import (
	"errors"
	"os"
	"runtime"
	"testing"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/driver/simdriver"
)

func sharing(v driver.Device) driver.PoolSharing { return v.(driver.PoolSharing) }

// A lending is memory of a pool of process a. Process b has opened the memory. Each process has a
// stream.
type lending struct {
	ds       []*simdriver.Driver
	a, b     driver.Device
	sa, sb   driver.Stream
	pool     driver.Pool // pool of process a
	file     *os.File
	imported driver.Pool // the pool as process b has imported it
	mem      driver.Mem
	name     driver.MemHandle
	open     driver.Mem
}

// lend allocates memory from a pool in one process, and opens the memory in another process.
func lend(t *testing.T) *lending {
	t.Helper()
	ds, vs := processes(t, 2, simdriver.Config{})
	l := &lending{ds: ds, a: vs[0], b: vs[1]}
	l.sa, l.sb = stream(t, l.a), stream(t, l.b)
	l.pool = must(pools(l.a).NewPool(driver.PoolDesc{Shareable: true}))(t)
	l.file = must(sharing(l.a).ExportPool(l.pool))(t)
	t.Cleanup(func() { l.file.Close() })
	l.imported = must(sharing(l.b).ImportPool(l.file))(t)
	allocAsync(t, l.a, l.sa, l.pool, 1024) // so that the shared block is not at offset 0
	l.mem = allocAsync(t, l.a, l.sa, l.pool, 1024)
	check(t, drain(t, l.a, l.sa))
	l.name = must(sharing(l.a).ExportPoolMem(l.mem))(t)
	l.open = must(sharing(l.b).OpenPoolMem(l.imported, l.name))(t)
	return l
}

// TestPoolSharing uses memory of a pool in another process.
func TestPoolSharing(t *testing.T) {
	l := lend(t)
	if l.open.Size != 1024 || l.open.Kind != driver.DeviceMem || l.open.Host != nil {
		t.Errorf("opened %+v", l.open)
	}
	check(t, l.a.Fill(l.sa, l.mem.Ptr, 1, 1, 1024))
	check(t, drain(t, l.a, l.sa))
	check(t, l.b.Fill(l.sb, l.open.Ptr+512, 2, 1, 512))
	check(t, drain(t, l.b, l.sb))
	if got := read(t, l.a, l.mem.Ptr, 1024); got[0] != 1 || got[511] != 1 || got[512] != 2 || got[1023] != 2 {
		t.Errorf("%v", got)
	}
	check(t, sharing(l.b).ClosePoolMem(l.open))
	refused(t, sharing(l.b).ClosePoolMem(l.open), simdriver.ErrInvalidValue)
	check(t, pools(l.b).DestroyPool(l.imported))
	check(t, pools(l.a).FreeAsync(l.sa, l.mem))
	check(t, drain(t, l.a, l.sa))
}

// TestPoolSharingMistakes checks that wrong uses of memory of another process's pool lose the
// device.
func TestPoolSharingMistakes(t *testing.T) {
	for name, c := range map[string]struct {
		use func(t *testing.T, l *lending) error
		say string
	}{
		"behind the end": {func(t *testing.T, l *lending) error { return l.b.Fill(l.sb, l.open.Ptr+1000, 1, 1, 100) }, "only 24 bytes remain there"},
		"freed": {func(t *testing.T, l *lending) error {
			check(t, pools(l.a).FreeAsync(l.sa, l.mem))
			check(t, drain(t, l.a, l.sa))
			_, err := sharing(l.b).OpenPoolMem(l.imported, l.name)
			refused(t, err, simdriver.ErrInvalidHandle, "it was freed")
			return l.b.Fill(l.sb, l.open.Ptr, 1, 1, 1)
		}, "were freed there or closed here"},
		"freed by its pool": {func(t *testing.T, l *lending) error {
			check(t, pools(l.a).FreeAsync(l.sa, l.mem))
			check(t, pools(l.a).FreeAsync(l.sa, driver.Mem{Kind: l.mem.Kind, Ptr: l.mem.Ptr - 1024, Size: 1024}))
			check(t, drain(t, l.a, l.sa))
			check(t, pools(l.a).TrimPool(l.pool, 0))
			return l.b.Fill(l.sb, l.open.Ptr, 1, 1, 1)
		}, "were freed there or closed here"},
		"not allocated yet": {func(t *testing.T, l *lending) error {
			check(t, l.ds[0].StallStream(l.sa))
			name := must(sharing(l.a).ExportPoolMem(allocAsync(t, l.a, l.sa, l.pool, 64)))(t)
			o := must(sharing(l.b).OpenPoolMem(l.imported, name))(t)
			return l.b.Fill(l.sb, o.Ptr, 1, 1, 1)
		}, "is not made yet"},
		"closed": {func(t *testing.T, l *lending) error {
			check(t, sharing(l.b).ClosePoolMem(l.open))
			return l.b.Fill(l.sb, l.open.Ptr, 1, 1, 1)
		}, "were freed there or closed here"},
	} {
		t.Run(name, func(t *testing.T) {
			l := lend(t)
			check(t, c.use(t, l))
			err := drain(t, l.b, l.sb)
			refused(t, err, driver.ErrLost, c.say)
			if e, ok := errors.AsType[*simdriver.AccessError](err); !ok || e.Base < l.open.Ptr-2048 || e.Base > l.open.Ptr+2048 {
				t.Errorf("%+v, and it was opened at %#x", e, uint64(l.open.Ptr))
			}
			// The device of the other process still works.
			check(t, l.a.Fill(l.sa, allocAsync(t, l.a, l.sa, l.pool, 64).Ptr, 1, 1, 1))
		})
	}
}

// TestPoolSharerKilled kills the process that owns the pool. Opened memory keeps its contents, and
// no more memory can be opened.
func TestPoolSharerKilled(t *testing.T) {
	l := lend(t)
	check(t, l.a.Fill(l.sa, l.mem.Ptr, 1, 1, 1024))
	check(t, drain(t, l.a, l.sa))
	check(t, l.ds[0].StallStream(l.sa))
	check(t, l.a.Fill(l.sa, l.mem.Ptr, 2, 1, 1024))
	check(t, l.ds[1].StallStream(l.sb))
	check(t, l.b.Fill(l.sb, l.open.Ptr, 3, 1, 512))
	l.ds[0].Kill()
	pools(l.a).FreeAsync(l.sa, l.mem) // as a program does that finds the device lost
	pools(l.a).DestroyPool(l.pool)
	check(t, l.ds[1].ResumeStream(l.sb))
	check(t, drain(t, l.b, l.sb))
	if got := read(t, l.b, l.open.Ptr, 1024); got[0] != 3 || got[511] != 3 || got[512] != 1 || got[1023] != 1 {
		t.Errorf("%v", got)
	}
	_, err := sharing(l.b).OpenPoolMem(l.imported, l.name)
	refused(t, err, simdriver.ErrInvalidHandle, "its process has ended")
	_, err = sharing(l.b).ImportPool(l.file)
	refused(t, err, simdriver.ErrInvalidHandle, "the pool's process has ended")
	l.a.Close()
	if got := read(t, l.b, l.open.Ptr, 1024); got[0] != 3 {
		t.Error("the memory is gone after its process was killed")
	}
	check(t, sharing(l.b).ClosePoolMem(l.open))
	check(t, pools(l.b).DestroyPool(l.imported))
}

// TestPoolImporterKilled kills a process that has opened memory of another process's pool.
func TestPoolImporterKilled(t *testing.T) {
	l := lend(t)
	check(t, l.ds[1].StallStream(l.sb))
	check(t, l.b.Fill(l.sb, l.open.Ptr, 3, 1, 512))
	l.ds[1].Kill()
	refused(t, l.b.Fill(l.sb, l.open.Ptr, 3, 1, 512), simdriver.ErrKilled)
	check(t, l.a.Fill(l.sa, l.mem.Ptr, 2, 1, 1024))
	check(t, pools(l.a).FreeAsync(l.sa, l.mem))
	check(t, drain(t, l.a, l.sa))
	sharing(l.b).ClosePoolMem(l.open)
	pools(l.b).DestroyPool(l.imported)
	check(t, pools(l.a).FreeAsync(l.sa, driver.Mem{Kind: l.mem.Kind, Ptr: l.mem.Ptr - 1024, Size: 1024}))
	check(t, drain(t, l.a, l.sa))
	check(t, pools(l.a).DestroyPool(l.pool))
	if n := l.ds[0].Counters().Devices[0]; n.Bytes != 0 {
		t.Errorf("%d bytes remain", n.Bytes)
	}
}

// TestPoolSharingFaults makes every call fail.
func TestPoolSharingFaults(t *testing.T) {
	ds, vs := processes(t, 2, simdriver.Config{Strict: true})
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	check(t, vs[0].Bind())
	check(t, vs[1].Bind())
	a, b, s := sharing(vs[0]), sharing(vs[1]), stream(t, vs[0])
	p := must(pools(vs[0]).NewPool(driver.PoolDesc{Shareable: true}))(t)
	f := must(a.ExportPool(p))(t)
	defer f.Close()
	imported := must(b.ImportPool(f))(t)
	m := allocAsync(t, vs[0], s, p, 64)
	name := must(a.ExportPoolMem(m))(t)
	o := must(b.OpenPoolMem(imported, name))(t)
	two := func(_ any, err error) error { return err }
	for _, c := range []struct {
		op   simdriver.Op
		d    *simdriver.Driver
		call func() error
	}{
		{simdriver.OpExportPool, ds[0], func() error { return two(a.ExportPool(p)) }},
		{simdriver.OpExportPoolMem, ds[0], func() error { return two(a.ExportPoolMem(m)) }},
		{simdriver.OpImportPool, ds[1], func() error { return two(b.ImportPool(f)) }},
		{simdriver.OpOpenPoolMem, ds[1], func() error { return two(b.OpenPoolMem(imported, name)) }},
		// ClosePoolMem closes the memory although it fails.
		{simdriver.OpClosePoolMem, ds[1], func() error { return b.ClosePoolMem(o) }},
	} {
		fault := c.d.Inject(simdriver.Fault{Op: c.op, N: 1})
		refused(t, c.call(), simdriver.ErrInjected)
		if fault.Hits() != 1 || c.d.Counters().Calls[c.op] == 0 {
			t.Errorf("%s: %d hits", c.op, fault.Hits())
		}
	}
	refused(t, b.ClosePoolMem(o), simdriver.ErrInvalidValue)
	check(t, pools(vs[0]).FreeAsync(s, m))
	check(t, drain(t, vs[0], s))
}
