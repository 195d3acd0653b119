package simdriver_test

import (
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
	"unsafe"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/driver/simdriver"
)

func values(v driver.Device) driver.Values { return v.(driver.Values) }

// word returns the number at the start of memory that the host can use.
func word(m driver.Mem) *atomic.Uint64 { return (*atomic.Uint64)(m.Host) }

// TestValues passes a number between the host and two streams, in each kind of memory that can hold
// values.
func TestValues(t *testing.T) {
	for _, c := range []struct {
		name string
		mem  func(t *testing.T, v driver.Device) driver.Mem
	}{
		{"host", func(t *testing.T, v driver.Device) driver.Mem { return alloc(t, v, driver.HostMem, 64) }},
		{"write-combined", func(t *testing.T, v driver.Device) driver.Mem { return alloc(t, v, driver.WriteCombinedMem, 64) }},
		{"registered", func(t *testing.T, v driver.Device) driver.Mem {
			own := make([]uint64, 8)
			p := unsafe.Pointer(unsafe.SliceData(own))
			return driver.Mem{Ptr: must(v.Register(p, 64))(t), Host: p}
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, vs := open(t, simdriver.Config{})
			v := vs[0]
			m := c.mem(t, v)
			out := alloc(t, v, driver.DeviceMem, 100)
			a, b := stream(t, v), stream(t, v)
			const n = 100
			for i := range uint64(n) { // the value goes from the host to stream a, to stream b, and back to the host
				check(t, values(v).WaitValue(a, m.Ptr, 3*i+1))
				check(t, v.Fill(a, out.Ptr+driver.Ptr(i), uint32(i), 1, 1))
				check(t, values(v).WriteValue(a, m.Ptr, 3*i+2))
				check(t, values(v).WaitValue(b, m.Ptr, 3*i+2))
				check(t, v.Copy(b, out.Ptr+driver.Ptr((i+1)%n), out.Ptr+driver.Ptr(i), 1))
				check(t, values(v).WriteValue(b, m.Ptr, 3*i+3))
			}
			for i := range uint64(n) {
				if now := word(m).Load(); now != 3*i {
					t.Fatalf("%d before turn %d", now, i)
				}
				word(m).Store(3*i + 1)
				for word(m).Load() < 3*i+3 {
					time.Sleep(time.Microsecond)
				}
				if got := read(t, v, out.Ptr+driver.Ptr((i+1)%n), 1); got[0] != byte(i) {
					t.Fatalf("turn %d has left %d", i, got[0])
				}
			}
			check(t, drain(t, v, a))
		})
	}
}

// TestValueCompared checks that values are compared by the sign of their difference, as in CUDA.
func TestValueCompared(t *testing.T) {
	_, vs := open(t, simdriver.Config{})
	v := vs[0]
	m := alloc(t, v, driver.HostMem, 8)
	for _, c := range []struct {
		at, want uint64
		reached  bool
	}{{0, 0, true}, {1, 0, true}, {0, 1, false}, {1<<63 - 1, 1<<63 - 1, true}, {1<<63 - 1, 0, true}, {1 << 63, 1, true}, {1 << 63, 0, false},
		{0, 1<<64 - 1, true}, {1<<64 - 1, 0, false}} {
		word(m).Store(c.at)
		s := stream(t, v)
		check(t, values(v).WaitValue(s, m.Ptr, c.want))
		e := record(t, v, s)
		if c.reached {
			check(t, wait(t, v, e))
			continue
		}
		pending(t, v, e)
		word(m).Store(c.want)
		check(t, wait(t, v, e))
	}
}

// TestValueNever waits for a value that never comes. Close returns an error that names the stream.
// Losing the device drops the wait.
func TestValueNever(t *testing.T) {
	d, vs := open(t, simdriver.Config{Devices: 2})
	for i, v := range vs {
		m := alloc(t, v, driver.HostMem, 8)
		s := stream(t, v)
		check(t, values(v).WaitValue(s, m.Ptr, 1))
		pending(t, v, record(t, v, s))
		refused(t, v.DestroyStream(s), driver.ErrBusy, "2 operations are pending")
		if i == 1 {
			check(t, d.LoseDevice(1, nil))
			if err := v.DestroyStream(s); !errors.Is(err, driver.ErrLost) {
				t.Error(err)
			}
			continue
		}
		refused(t, v.Close(), simdriver.ErrBusy, "stream")
	}
}

// TestValueBubble waits for a value in a synctest bubble, whose clock advances meanwhile.
func TestValueBubble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, vs := open(t, simdriver.Config{})
		v := vs[0]
		m := alloc(t, v, driver.HostMem, 8)
		s := stream(t, v)
		began := time.Now()
		check(t, values(v).WaitValue(s, m.Ptr, 5))
		e := record(t, v, s)
		time.Sleep(time.Minute)
		if done, err := v.Query(e); done || err != nil {
			t.Errorf("done %v, %v", done, err)
		}
		word(m).Store(5)
		time.Sleep(time.Millisecond)
		synctest.Wait()
		if done, err := v.Query(e); !done || err != nil {
			t.Errorf("%v after it was to come: done %v, %v", time.Since(began), done, err)
		}
	})
}

// TestValueSteps checks that Step executes a wait only after the wait's value has come.
func TestValueSteps(t *testing.T) {
	d, vs := open(t, simdriver.Config{Deterministic: true})
	v := vs[0]
	m := alloc(t, v, driver.HostMem, 16)
	a, b := stream(t, v), stream(t, v)
	check(t, values(v).WaitValue(a, m.Ptr, 1))
	check(t, values(v).WriteValue(a, m.Ptr+8, 7))
	if d.Step() {
		t.Fatal("a wait is over before its value has come")
	}
	check(t, values(v).WriteValue(b, m.Ptr, 1))
	if n := d.Run(); n != 3 || (*[2]uint64)(m.Host)[1] != 7 {
		t.Errorf("%d steps leave %v", n, *(*[2]uint64)(m.Host))
	}
}

// TestValueProcesses waits for a value that another process writes.
func TestValueProcesses(t *testing.T) {
	_, vs := processes(t, 2, simdriver.Config{})
	a, b := vs[0], vs[1]
	m := alloc(t, a, driver.DeviceMem, 16)
	o := must(shared(b).OpenMem(must(shared(a).ExportMem(m))(t)))(t)
	sa, sb := stream(t, a), stream(t, b)
	for i := range uint64(50) {
		check(t, values(a).WaitValue(sa, m.Ptr, 2*i+1))
		check(t, values(a).WriteValue(sa, m.Ptr, 2*i+2))
		check(t, values(b).WriteValue(sb, o.Ptr, 2*i+1))
		check(t, values(b).WaitValue(sb, o.Ptr, 2*i+2))
	}
	check(t, drain(t, b, sb))
	check(t, drain(t, a, sa))
}

// TestValueErrors tests values that the call refuses, values that lose the device when they
// execute, and faults.
func TestValueErrors(t *testing.T) {
	d, vs := open(t, simdriver.Config{Devices: 4})
	both := func(v driver.Device, s driver.Stream, p driver.Ptr, do func(err error)) {
		t.Helper()
		do(values(v).WriteValue(s, p, 1))
		do(values(v).WaitValue(s, p, 1))
	}
	v := vs[0]
	m, s := alloc(t, v, driver.DeviceMem, 64), stream(t, v)
	both(v, s, m.Ptr+4, func(err error) { refused(t, err, simdriver.ErrInvalidValue, "multiple of 8") })
	both(v, s, alloc(t, v, driver.ManagedMem, 8).Ptr, func(err error) { refused(t, err, simdriver.ErrInvalidValue, "managed") })
	both(v, 0, m.Ptr, func(err error) { refused(t, err, simdriver.ErrInvalidHandle, "no such stream") })
	both(vs[1], s, m.Ptr, func(err error) { refused(t, err, simdriver.ErrInvalidHandle, "belongs to device 0") })
	check(t, v.(driver.Capturer).BeginCapture(s))
	both(v, s, m.Ptr, func(err error) { refused(t, err, simdriver.ErrInvalidValue, "capturing") })
	if _, err := v.(driver.Capturer).EndCapture(s); err == nil {
		t.Error("an uncaptured operation gives a graph")
	}
	for _, op := range []simdriver.Op{simdriver.OpWriteValue, simdriver.OpWaitValue} {
		d.Inject(simdriver.Fault{Op: op, Device: 0, N: 1})
	}
	both(v, s, m.Ptr, func(err error) { refused(t, err, simdriver.ErrInjected) })
	check(t, values(v).WriteValue(s, m.Ptr, 1))
	check(t, values(v).WaitValue(s, m.Ptr, 1))
	check(t, drain(t, v, s))

	d.Inject(simdriver.Fault{Op: simdriver.OpWaitValue, Device: 0, N: 1, AtExecution: true})
	check(t, values(v).WaitValue(s, m.Ptr, 1<<40)) // the fault comes before the wait
	refused(t, drain(t, v, s), simdriver.ErrInjected, "wait value")
	for i, do := range []func(v driver.Device, s driver.Stream, p driver.Ptr) error{
		func(v driver.Device, s driver.Stream, p driver.Ptr) error { return values(v).WriteValue(s, p, 1) },
		func(v driver.Device, s driver.Stream, p driver.Ptr) error { return values(v).WaitValue(s, p, 1) },
	} {
		v := vs[i+1]
		s, m := stream(t, v), alloc(t, v, driver.DeviceMem, 8)
		check(t, v.Free(m))
		check(t, do(v, s, m.Ptr))
		var e *simdriver.AccessError
		if err := drain(t, v, s); !errors.As(err, &e) || !e.Freed || e.Size != 8 {
			t.Errorf("memory that was freed: %v", err)
		}
	}
	v = vs[3] // the memory is freed while the stream waits
	s, m = stream(t, v), alloc(t, v, driver.DeviceMem, 8)
	check(t, values(v).WaitValue(s, m.Ptr, 1))
	e := record(t, v, s)
	pending(t, v, e)
	check(t, v.Free(m))
	if err := wait(t, v, e); !errors.Is(err, driver.ErrLost) {
		t.Errorf("freed memory: %v", err)
	}
	caps := simdriver.HIPCaps()
	_, vs = open(t, simdriver.Config{Caps: &caps})
	both(vs[0], stream(t, vs[0]), 8, func(err error) { refused(t, err, driver.ErrUnsupported) })
}
