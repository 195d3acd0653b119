//go:build linux && (amd64 || arm64) && !nogpu

package drivertest

import (
	"bytes"
	"errors"
	"fmt"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"
	"unsafe"

	"github.com/puregpu/puregpu/runtime/dl"
	"github.com/puregpu/puregpu/runtime/driver"
)

// DevicesTest describes the results of Devices with some settings of the fake.
type DevicesTest struct {
	Settings map[string]int          // settings with which the Info of device 1 is One
	One      driver.Info             // the Info of device 1 with Settings
	Odd      map[string]int          // more settings, with which device 0 satisfies IsOdd
	IsOdd    func(*driver.Info) bool // checks the Info of device 0 with Odd
}

func testDevices(t *testing.T, a *API) {
	f := a.Fake(t, a.Release)
	setAll(f, a.Devices.Settings)
	d := open(t, f, false)
	infos, err := d.Devices()
	if err != nil || len(infos) != 2 || d.Name() != a.Name {
		t.Fatalf("driver %q, devices %v, %v", d.Name(), infos, err)
	}
	want := a.Devices.One
	if infos[1] != want {
		t.Errorf("device 1 is\n%+v, want\n%+v", infos[1], want)
	}
	infos[1].Name = "mine"
	if again, _ := d.Devices(); again[1] != want {
		t.Error("Devices returns the driver's own slice")
	}
	f.Calls()
	if d.Devices(); len(f.Calls()[0]) != 0 {
		t.Error("Devices calls the library")
	}
	setAll(f, a.Devices.Odd)
	infos, err = open(t, f, false).Devices()
	if err != nil || !a.Devices.IsOdd(&infos[0]) {
		t.Errorf("device 0 is %+v, %v", infos[0], err)
	}
}

// OpenErrorsTest lists the functions that can fail while a driver and a device are opened.
type OpenErrorsTest struct {
	// Init has, for each function that New calls, the code that the function returns, the Op of
	// New's error, and a part of the error's text.
	Init map[string]struct {
		Code int
		Op   string
		Says string
	}
	Device []string // functions that must succeed when device 1 is opened
	Lost   string   // a function that Open calls, and that can return that the device is lost
}

func testOpenErrors(t *testing.T, a *API) {
	if d, err := a.Open(filepath.Join(t.TempDir(), a.File), "", ""); d != nil || !errors.Is(err, dl.ErrNotFound) {
		t.Errorf("an absent library: %v, %v", d, err)
	}
	f := a.Fake(t, a.Release)
	for name, c := range a.OpenErrors.Init {
		f.Set(name, c.Code)
		d, err := f.Open(false)
		if e, ok := errors.AsType[*driver.Error](err); d != nil || !ok || e.Op != c.Op || !errors.Is(err, a.Result(c.Code)) || !strings.Contains(err.Error(), c.Says) {
			t.Errorf("%s fails: %v, %v", name, d, err)
		}
		f.Clean(name + " fails")
		f.Set(name, 0)
	}
	d := open(t, f, false)
	for _, index := range []int{-1, 2} {
		if dev, err := d.Open(index); dev != nil || !errors.Is(err, a.Result(InvalidDevice)) {
			t.Errorf("device %d: %v, %v", index, dev, err)
		}
	}
	// A failed Open leaves nothing behind, whichever function fails.
	for _, name := range a.OpenErrors.Device {
		f.Set(name, OutOfMemory)
		dev, err := d.Open(1)
		if dev != nil || !errors.Is(err, driver.ErrOutOfMemory) || !errors.Is(err, a.Result(OutOfMemory)) || !strings.Contains(err.Error(), "device 1 (Fake 1)") {
			t.Errorf("%s fails: %v, %v", name, dev, err)
		}
		f.Left(name+" fails", 1)
		f.Set(name, 0)
	}
	f.Set(a.OpenErrors.Lost, IllegalAddress)
	if dev, err := d.Open(1); dev != nil || !errors.Is(err, driver.ErrLost) {
		t.Errorf("a device lost at once: %v, %v", dev, err)
	}
}

// CallsTest lists the library calls of each part of testCalls.
type CallsTest struct {
	Events, Memory, Register, ReadOnly, Hints, Function, Launch, End []string

	Info   driver.FuncInfo // the FuncInfo of kernel "count"
	Global uint64          // size of the variable that Global finds
}

func testCalls(t *testing.T, a *API) {
	f := a.Fake(t, a.Release)
	d := f.Device(false)
	ok := func(err error) {
		t.Helper()
		OK(t, err)
	}
	s, err := d.NewStream()
	ok(err)
	e, err := d.NewEvent()
	ok(err)
	ok(d.Record(e, s))
	done, err := d.Query(e)
	if ok(err); !done {
		t.Error("the event is not done")
	}
	f.Set(a.Prefix+"EventQuery", NotReady)
	done, err = d.Query(e)
	if ok(err); done {
		t.Error("the event is done")
	}
	ok(d.StreamWait(s, e))
	timer, err := d.NewTimer()
	ok(err)
	if took, err := d.Elapsed(timer, timer); took != 1500*time.Microsecond || err != nil {
		t.Errorf("Elapsed = %v, %v", took, err)
	}
	f.Want(a.Calls.Events...)

	dev, err := d.Alloc(driver.DeviceMem, 32)
	if ok(err); dev.Host != nil || dev.Ptr == 0 || dev.Size != 32 || dev.Kind != driver.DeviceMem {
		t.Errorf("%+v", dev)
	}
	host, err := d.Alloc(driver.HostMem, 32)
	if ok(err); host.Host == nil || uint64(host.Ptr) != uint64(uintptr(host.Host))|1<<62 || host.Kind != driver.HostMem {
		t.Errorf("%+v", host)
	}
	managed, err := d.Alloc(driver.ManagedMem, 32)
	if ok(err); uint64(managed.Ptr) != uint64(uintptr(managed.Host)) || managed.Ptr == 0 || managed.Kind != driver.ManagedMem {
		t.Errorf("%+v", managed)
	}
	out := unsafe.Slice((*byte)(host.Host), 32)
	ok(d.Fill(s, dev.Ptr, 0xa1a2a3a4, 4, 8))
	ok(d.Fill(s, dev.Ptr, 0xb1b2b3b4, 2, 4))
	ok(d.Fill(s, dev.Ptr, 0xc1c2c3c4, 1, 2))
	ok(d.Copy(s, managed.Ptr, dev.Ptr, 32))
	ok(d.Download(s, host.Host, managed.Ptr, 32))
	want := append([]byte{0xc4, 0xc4, 0xb4, 0xb3, 0xb4, 0xb3, 0xb4, 0xb3}, bytes.Repeat([]byte{0xa4, 0xa3, 0xa2, 0xa1}, 6)...)
	if !bytes.Equal(out, want) {
		t.Errorf("%x, want %x", out, want)
	}
	out[0] = 1
	ok(d.Upload(s, dev.Ptr, host.Host, 32))
	ok(d.Fill(s, dev.Ptr, 0, 1, 0))
	ok(d.FillStrided(s, dev.Ptr, 0, 8, 0))
	ok(d.Copy(s, dev.Ptr, host.Ptr, 0))
	ok(d.Upload(s, dev.Ptr, nil, 0))
	ok(d.Download(s, nil, dev.Ptr, 0))
	ok(d.Free(dev))
	ok(d.Free(host))
	ok(d.Free(managed))
	f.Want(a.Calls.Memory...)

	mine := make([]uint64, 8)
	p, err := d.Register(unsafe.Pointer(&mine[0]), 64)
	if ok(err); uint64(p) != uint64(uintptr(unsafe.Pointer(&mine[0])))|1<<62 {
		t.Errorf("registered memory is at %#x", p)
	}
	ok(d.Unregister(unsafe.Pointer(&mine[0])))
	f.Want(a.Calls.Register...)
	if r, is := d.(driver.ReadOnlyRegistrar); is {
		p, err = r.RegisterReadOnly(unsafe.Pointer(&mine[0]), 64)
		ok(err)
		ok(d.Unregister(unsafe.Pointer(&mine[0])))
		f.Want(a.Calls.ReadOnly...)
	}

	combined, err := d.Alloc(driver.WriteCombinedMem, 32)
	if ok(err); combined.Host == nil || combined.Ptr == 0 || combined.Kind != driver.WriteCombinedMem {
		t.Errorf("%+v", combined)
	}
	ok(d.Free(combined))
	ok(d.Prefetch(s, p, 100, driver.DeviceMem))
	ok(d.Prefetch(s, p, 100, driver.HostMem))
	ok(d.Prefetch(s, p, 0, driver.HostMem))
	f.Want(a.Calls.Hints...)

	fn, info := a.Function(t, d, "count")
	if !reflect.DeepEqual(info, a.Calls.Info) {
		t.Errorf("%+v", info)
	}
	f.Want(a.Calls.Function...)
	if p, n, err := d.Global(Module0, "variable"); p == 0 || n != a.Calls.Global || err != nil {
		t.Errorf("the variable is %#x, %d bytes, %v", p, n, err)
	}
	f.Calls()
	counter, by := new(uint64), new(uint32)
	*by = 5
	l := &driver.Launch{
		Function: fn, Grid: [3]uint32{2, 3, 4}, Block: [3]uint32{5, 6, 7}, SharedMem: 8,
		Args: []unsafe.Pointer{unsafe.Pointer(&counter), unsafe.Pointer(by)},
	}
	ok(d.Launch(s, l))
	if *counter != 5 {
		t.Errorf("the kernel counts %d", *counter)
	}
	l.Grid, l.Block, l.SharedMem = [3]uint32{2}, [3]uint32{0, 6}, 0
	ok(d.Launch(s, l))
	if *counter != 10 {
		t.Errorf("the kernel counts %d", *counter)
	}
	f.Want(a.Calls.Launch...)
	ok(d.Unload(Module0))
	ok(d.DestroyEvent(e))
	ok(d.DestroyStream(s))
	f.Want(a.Calls.End...)
}

// ErrorsTest describes the functions that can fail.
type ErrorsTest struct {
	Functions map[string][]string // the functions that each operation of All may call
	Refused   []int               // codes besides InvalidHandle that mean neither a lost device, nor out of memory, nor unsupported
	Before    func(Device)        // if not nil, called before a function is made to fail
}

// testErrors checks the error of each operation of All when one of the operation's native functions
// fails, for each kind of error.
func testErrors(t *testing.T, a *API) {
	f := a.Fake(t, a.Release)
	d := f.Device(true)
	type kind struct {
		code                   int
		lost, oom, unsupported bool
	}
	kinds := []kind{
		{code: InvalidHandle},
		{code: OutOfMemory, oom: true},
		{code: NotSupported, unsupported: true},
		{code: IllegalAddress, lost: true},
	}
	for _, code := range a.Errors.Refused {
		kinds = append(kinds, kind{code: code})
	}
	calls := a.All(d)
	calls["bind"] = d.Bind
	for op, call := range calls {
		for _, fn := range a.Errors.Functions[op] {
			if a.Errors.Before != nil {
				a.Errors.Before(d)
			}
			for _, c := range kinds {
				f.Set(fn, c.code)
				live, code := f.Live(), a.Result(c.code)
				err := call()
				e, ok := err.(*driver.Error)
				if !ok {
					t.Errorf("%s with %s failing: %v", op, fn, err)
				} else if e.Driver != a.Name || e.Op != op || e.Lost != c.lost || e.OOM != c.oom || !errors.Is(err, code) ||
					errors.Is(err, driver.ErrLost) != c.lost || errors.Is(err, driver.ErrOutOfMemory) != c.oom ||
					errors.Is(err, driver.ErrUnsupported) != c.unsupported ||
					!strings.HasPrefix(err.Error(), a.Name+": "+op+": device 0 (Fake 0): ") || !strings.Contains(err.Error(), code.Name()) {
					t.Errorf("%s with %s failing: %+v: %v", op, fn, *e, err)
				}
				if n := f.Live(); n > live {
					t.Errorf("%s with %s failing leaves %d objects", op, fn, n-live)
				}
				f.Clean(op + " with " + fn + " failing")
				f.Set(fn, 0)
			}
		}
		if a.Errors.Functions[op] == nil {
			t.Errorf("no function for %s", op)
		}
	}
}

// testLost checks which error codes mean a lost device, and which mean out of memory.
func testLost(t *testing.T, a *API) {
	for r := range 1100 {
		if e := a.Wrap("test", a.Result(r)); e.Lost != a.Sticky[r] || e.OOM != (r == OutOfMemory) {
			t.Errorf("%v: lost %t, out of memory %t", a.Result(r), e.Lost, e.OOM)
		}
	}
	if e := a.Wrap("test", errors.New("no code")); e.Lost || e.OOM {
		t.Errorf("%+v", e)
	}
}

func testBadArguments(t *testing.T, a *API) {
	d := a.Fake(t, a.Release).Device(false)
	_, _, noKernel := d.Function(Module0, "_Z5emptyv")
	_, _, nul := d.Function(Module0, "a\x00b")
	_, _, noVariable := d.Global(Module0, "x")
	_, noKind := d.Alloc(7, 1)
	handle, value := error(a.Result(InvalidHandle)), error(a.Result(InvalidValue))
	for name, c := range map[string]struct {
		err  error
		want error
		says string
	}{
		"stream 0 for record":        {d.Record(Event0, 0), handle, "stream 0x0: not a stream that NewStream or AdoptStream accepts"},
		"legacy stream for wait":     {d.StreamWait(1, Event0), handle, "stream 0x1"},
		"thread's stream for fill":   {d.Fill(2, 64, 0, 1, 1), handle, "stream 0x2"},
		"stream 0 for strided":       {d.FillStrided(0, 64, 0, 8, 1), handle, "stream 0x0"},
		"stream 0 for copy":          {d.Copy(0, 64, 0, 1), handle, "stream 0x0"},
		"stream 0 for peers":         {d.CopyPeer(0, 64, d, 0, d, 1), handle, "stream 0x0"},
		"stream 0 for upload":        {d.Upload(0, 64, nil, 1), handle, "stream 0x0"},
		"stream 0 for download":      {d.Download(0, nil, 64, 1), handle, "stream 0x0"},
		"stream 0 for launch":        {d.Launch(0, &driver.Launch{}), handle, "stream 0x0"},
		"stream 0 for a graph":       {d.LaunchGraph(0, 1), handle, "stream 0x0"},
		"stream 0 for prefetching":   {d.Prefetch(0, 0, 1, driver.HostMem), handle, "stream 0x0"},
		"stream 0 to destroy":        {d.DestroyStream(0), handle, "stream 0x0"},
		"fill of width 3":            {d.Fill(Stream0, 64, 0, 3, 5), value, "5 elements of 3 bytes at 0x40 in stream 0x5000: the width must be"},
		"free of no kind":            {d.Free(driver.Mem{Kind: 7}), value, "memory of unknown kind 7"},
		"alloc of no kind":           {noKind, value, "memory of unknown kind 7"},
		"prefetch to managed memory": {d.Prefetch(Stream0, 0, 1, driver.ManagedMem), value, "prefetch"},
		"missing kernel":             {noKernel, a.Result(NotFound), "mangled"},
		"kernel with NUL":            {nul, dl.ErrNUL, "NUL"},
		"variable not there":         {noVariable, a.Result(NotFound), `variable "x"`},
	} {
		if e, is := errors.AsType[*driver.Error](c.err); !is || e.Lost || !errors.Is(c.err, c.want) || !strings.Contains(c.err.Error(), c.says) {
			t.Errorf("%s: %v", name, c.err)
		}
	}
}

func testPriorities(t *testing.T, a *API) {
	f := a.Fake(t, a.Release)
	d := f.Device(false)
	for priority, want := range a.Priorities {
		s, err := d.NewPriorityStream(priority)
		OK(t, err)
		f.Want(fmt.Sprintf("%sStreamCreateWithPriority(1, %d)", a.Prefix, want))
		OK(t, d.DestroyStream(s))
		f.Calls()
	}
	f.Set(a.Prefix+"StreamCreateWithPriority", OutOfMemory)
	if s, err := d.NewPriorityStream(-1); s != 0 || !errors.Is(err, driver.ErrOutOfMemory) || !strings.Contains(err.Error(), "priority -1") {
		t.Errorf("stream %#x, %v", uintptr(s), err)
	}
}

// HotTest describes devices whose calls must not allocate.
type HotTest struct {
	Releases []dl.Version
	Attrs    driver.LaunchAttrs
	Sets     func(d Device, sets bool) // changes whether submitting calls set the thread's device
	More     func(t *testing.T, d Device, m driver.Mem, l *driver.Launch) map[string]func() error
}

// errSink keeps the compiler from removing the calls.
var errSink error

// fewestAllocs returns the smallest number of allocations of a call in up to three measurements.
// [testing.AllocsPerRun] counts allocations of the whole process, and a goroutine that an earlier
// test left running may add to one measurement.
func fewestAllocs(call func()) float64 {
	n := testing.AllocsPerRun(100, call)
	for range 2 {
		if n == 0 {
			break
		}
		n = min(n, testing.AllocsPerRun(100, call))
	}
	return n
}

// testAllocs checks that submitting calls and Bind do not allocate. It calls them through an
// interface, as the runtime does.
func testAllocs(t *testing.T, a *API) {
	if !dl.Fast {
		t.Skip("no fast path in this build")
	}
	for _, release := range a.Hot.Releases {
		f := a.Fake(t, release)
		d := f.Device(true)
		m, err := d.Alloc(driver.HostMem, 64)
		OK(t, err)
		fn, _ := a.Function(t, d, "count")
		counter, by := new(uint64), new(uint32)
		launch := &driver.Launch{Function: fn, Grid: [3]uint32{1, 1, 1}, Block: [3]uint32{1, 1, 1}, Args: []unsafe.Pointer{unsafe.Pointer(&counter), unsafe.Pointer(by)}}
		ex := *launch
		ex.Attrs = a.Hot.Attrs
		exec := a.Graph(d).Exec
		ready := true
		calls := map[string]func() error{
			"Record":     func() error { return d.Record(Event0, Stream0) },
			"StreamWait": func() error { return d.StreamWait(Stream0, Event0) },
			"Query": func() error {
				done, err := d.Query(Event0)
				if done != ready {
					t.Errorf("Query = %t", done)
				}
				return err
			},
			"Fill 1":                  func() error { return d.Fill(Stream0, m.Ptr, 0x12345678, 1, 64) },
			"Fill 2":                  func() error { return d.Fill(Stream0, m.Ptr, 0x12345678, 2, 32) },
			"Fill 4":                  func() error { return d.Fill(Stream0, m.Ptr, 0x12345678, 4, 16) },
			"FillStrided":             func() error { return d.FillStrided(Stream0, m.Ptr, 0x12345678, 16, 4) },
			"Copy":                    func() error { return d.Copy(Stream0, m.Ptr+32, m.Ptr, 32) },
			"Upload":                  func() error { return d.Upload(Stream0, m.Ptr+32, m.Host, 32) },
			"Download":                func() error { return d.Download(Stream0, m.Host, m.Ptr+32, 32) },
			"Launch":                  func() error { return d.Launch(Stream0, launch) },
			"Launch, with attributes": func() error { return d.Launch(Stream0, &ex) },
			"LaunchGraph":             func() error { return d.LaunchGraph(Stream0, exec) },
			"AllocAsync and FreeAsync": func() error {
				m, err := d.AllocAsync(Stream0, a.Pool0, 64)
				if err != nil {
					return err
				}
				return d.FreeAsync(Stream0, m)
			},
			"Elapsed":   func() error { _, err := d.Elapsed(Event0, Event0); return err },
			"Capturing": func() error { _, err := d.Capturing(Stream0); return err },
			"Bind":      d.Bind,
		}
		if a.Hot.More != nil {
			for name, call := range a.Hot.More(t, d, m, launch) {
				calls[name] = call
			}
		}
		for name, call := range calls {
			states := []bool{true}
			if name == "Query" {
				states = []bool{true, false}
			}
			for _, ready = range states {
				if !ready {
					f.Set(a.Prefix+"EventQuery", NotReady)
				}
				for _, sets := range []bool{true, false} {
					a.Hot.Sets(d, sets)
					if n := fewestAllocs(func() { errSink = call() }); n != 0 || errSink != nil {
						t.Errorf("release %d: %s allocates %v times, with %v", release, name, n, errSink)
					}
				}
			}
		}
		OK(t, d.Free(m))
	}
}

func open(t testing.TB, f Library, pools bool) driver.Driver {
	t.Helper()
	d, err := f.Open(pools)
	OK(t, err)
	return d
}

func setAll(f Library, settings map[string]int) {
	for name, value := range settings {
		f.Set(name, value)
	}
}
