package simdriver_test

import (
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/driver/simdriver"
)

func TestCommMem(t *testing.T) {
	_, vs := open(t, simdriver.Config{Devices: 2, Memory: 1 << 20})
	v, s := vs[0], stream(t, vs[0])
	m := alloc(t, v, driver.CommMem, 100)
	if m.Kind != driver.CommMem || m.Host != nil || m.Size != 100 {
		t.Errorf("memory %+v", m)
	}
	check(t, v.Fill(s, m.Ptr, 'x', 1, 100))
	check(t, drain(t, v, s))
	if b := read(t, v, m.Ptr, 100); b[0] != 'x' || b[99] != 'x' {
		t.Errorf("memory %q", b)
	}
	refused(t, second(v.Alloc(driver.CommMem, 1<<20)), driver.ErrOutOfMemory)
	as := m
	as.Kind = driver.DeviceMem
	refused(t, v.Free(as), simdriver.ErrInvalidValue)
	refused(t, vs[1].Free(m), simdriver.ErrInvalidValue)
	check(t, v.Free(m))
	refused(t, v.Free(m), simdriver.ErrInvalidValue, "freed already")
}

func TestRegisterComm(t *testing.T) {
	x := newCluster(t, 2, simdriver.Config{})
	v, w := comms(x.vs[0]), comms(x.vs[1])
	m, other := alloc(t, x.vs[0], driver.CommMem, 8192), alloc(t, x.vs[1], driver.CommMem, 8192)
	plain := alloc(t, x.vs[0], driver.DeviceMem, 8192)
	for say, err := range map[string]error{
		"not made with CommMem":                second(v.RegisterComm(x.cs[0], plain.Ptr, 8)),
		"device 0 has no memory":               second(v.RegisterComm(x.cs[0], other.Ptr, 8)),
		"ends earlier":                         second(v.RegisterComm(x.cs[0], m.Ptr+8, 8192)),
		"0 bytes":                              second(v.RegisterComm(x.cs[0], m.Ptr, 0)),
		"the memory was not made with CommMem": second(v.NewWindow(x.cs[0], plain.Ptr, 8, false)),
		"a multiple of 4096 bytes":             second(v.NewWindow(x.cs[0], m.Ptr+8, 8, false)),
	} {
		refused(t, err, simdriver.ErrInvalidValue, say)
	}
	h := must(v.RegisterComm(x.cs[0], m.Ptr+4096, 100))(t)
	again := must(v.RegisterComm(x.cs[0], m.Ptr, 8192))(t)
	if n := x.d.Counters().Devices[0].CommMemory; n != 2 {
		t.Errorf("%d registrations", n)
	}
	refused(t, x.vs[0].Free(m), simdriver.ErrBusy, "registered")
	refused(t, w.ReleaseCommMemory(x.cs[1], h), simdriver.ErrInvalidHandle, "belongs to rank 0")
	check(t, v.ReleaseCommMemory(x.cs[0], h))
	refused(t, v.ReleaseCommMemory(x.cs[0], h), simdriver.ErrInvalidHandle, "was released")
	check(t, v.ReleaseCommMemory(x.cs[0], again))
	must(v.RegisterComm(x.cs[0], m.Ptr, 8192))(t)
	check(t, v.DestroyComm(x.cs[0])) // this releases the registration too
	if n := x.d.Counters().Devices[0].CommMemory; n != 0 {
		t.Errorf("%d registrations", n)
	}
	check(t, x.vs[0].Free(m))
}

// TestMixedMemory tests ranks that use registered memory together with ranks that do not.
func TestMixedMemory(t *testing.T) {
	const registered, symmetric = 1, 2
	gather := driver.CommOp{Kind: driver.AllGather, Type: driver.Int8, Count: 4}
	for _, c := range []struct {
		op         driver.CommOp
		how        [2]int // the function that registers each rank's memory
		dst        [2]int // offset of Dst on each rank
		inPlace    bool
		unequal    string
		registered uint64 // bytes to register; 0 means all
	}{
		{op: sum(driver.Mem{}), how: [2]int{registered, registered}},
		{op: sum(driver.Mem{}), how: [2]int{symmetric, symmetric}},
		{op: sum(driver.Mem{}), how: [2]int{registered, 0}, unequal: "a source that is not registered, and rank 0 registered"},
		{op: sum(driver.Mem{}), how: [2]int{0, registered}, unequal: "a source that is registered, and rank 0 not registered"},
		{op: sum(driver.Mem{}), how: [2]int{registered, registered}, registered: 3},
		{op: gather, how: [2]int{registered, registered}, dst: [2]int{64, 128}},
		{op: gather, how: [2]int{symmetric, symmetric}, dst: [2]int{64, 128},
			unequal: "a destination that is at offset 128 of a symmetric window, and rank 0 at offset 64 of a symmetric window"},
		{op: gather, how: [2]int{symmetric, symmetric}, dst: [2]int{64, 64}},
		{op: gather, how: [2]int{symmetric, symmetric}, dst: [2]int{64, 64}, inPlace: true},
		{op: driver.CommOp{Kind: driver.Broadcast, Count: 4}, how: [2]int{registered, 0}, unequal: "a destination that is not registered"},
		{op: driver.CommOp{Kind: driver.Send, Count: 4}, how: [2]int{registered, registered}},
		{op: driver.CommOp{Kind: driver.Send, Count: 4}, how: [2]int{registered, 0}, unequal: "memory that is not registered, and rank 0 registered"},
	} {
		x := newCluster(t, 2, simdriver.Config{Deterministic: true})
		var ms []driver.Mem
		for _, v := range x.vs {
			ms = append(ms, alloc(t, v, driver.CommMem, 4096))
		}
		handles := make([]driver.CommMemory, 2)
		x.each(t, func(i int, v driver.Comms) (err error) {
			size := uint64(4096)
			if c.registered != 0 {
				size = c.registered
			}
			if c.how[i] == registered {
				handles[i], err = v.RegisterComm(x.cs[i], ms[i].Ptr, size)
			}
			if c.how[i] == symmetric {
				handles[i], err = v.NewWindow(x.cs[i], ms[i].Ptr, size, true)
			}
			return err
		})
		for i, m := range ms {
			op := c.op
			op.Src, op.Dst = m.Ptr, m.Ptr
			if op.Kind == driver.AllGather {
				op.Dst = m.Ptr + driver.Ptr(c.dst[i])
				if c.inPlace {
					op.Src = op.Dst + driver.Ptr(4*i)
				}
			}
			if op.Kind == driver.Send {
				op.Kind, op.Peer = driver.Send+driver.CommOpKind(i), 1-i
			}
			check(t, x.collect(i, op))
			if handles[i] != 0 && c.registered == 0 {
				refused(t, comms(x.vs[i]).ReleaseCommMemory(x.cs[i], handles[i]), simdriver.ErrBusy)
			}
		}
		x.d.Run()
		for i, v := range x.vs {
			if c.unequal != "" {
				refused(t, comms(v).CommError(x.cs[i]), simdriver.ErrMismatch, c.unequal)
				continue
			}
			check(t, comms(v).CommError(x.cs[i]))
			if handles[i] != 0 {
				check(t, comms(v).ReleaseCommMemory(x.cs[i], handles[i]))
			}
		}
	}
}

// TestNewWindow runs in a synctest bubble, to know when a rank waits for the others.
func TestNewWindow(t *testing.T) { synctest.Test(t, newWindow) }

func newWindow(t *testing.T) {
	x := newCluster(t, 3, simdriver.Config{})
	var ms []driver.Mem
	for _, v := range x.vs {
		ms = append(ms, alloc(t, v, driver.CommMem, 8192))
	}
	window := func(i int, size uint64) <-chan error {
		return begin(func() error { return second(comms(x.vs[i]).NewWindow(x.cs[i], ms[i].Ptr+4096, size, false)) })
	}
	a, b := window(0, 100), window(1, 100)
	synctest.Wait()
	if n := len(a) + len(b); n != 0 {
		t.Errorf("%d calls do not wait for all ranks", n)
	}
	c := window(2, 100)
	for _, done := range []<-chan error{a, b, c} {
		check(t, until(t, done))
	}
	if n := x.d.Counters().Devices[2].CommMemory; n != 1 {
		t.Errorf("%d windows", n)
	}
	// A waiting NewWindow returns when another rank leaves.
	a = window(0, 100)
	synctest.Wait()
	check(t, comms(x.vs[0]).CommError(x.cs[0]))
	y := newCluster(t, 2, simdriver.Config{})
	m := alloc(t, y.vs[0], driver.CommMem, 64)
	d := begin(func() error { return second(comms(y.vs[0]).NewWindow(y.cs[0], m.Ptr, 64, false)) })
	synctest.Wait()
	check(t, comms(y.vs[1]).DestroyComm(y.cs[1]))
	y.broken(t, simdriver.ErrRankGone, "rank 1 was destroyed before it called new window", 0)
	check(t, comms(y.vs[0]).AbortComm(y.cs[0]))
	refused(t, until(t, d), simdriver.ErrAborted)

	// Ranks give different sizes.
	b = window(1, 101)
	for i, done := range []<-chan error{a, b} {
		refused(t, until(t, done), simdriver.ErrMismatch, "rank 1 calls new window of 101 bytes, and rank 0 new window of 100 bytes", fmt.Sprint("rank ", i, " of"))
	}
	refused(t, until(t, window(2, 100)), simdriver.ErrMismatch)
	x.broken(t, simdriver.ErrMismatch, "101 bytes", 0, 1, 2)
}
