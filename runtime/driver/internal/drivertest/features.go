//go:build linux && (amd64 || arm64) && !nogpu

package drivertest

import (
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/puregpu/puregpu/runtime/dl"
	"github.com/puregpu/puregpu/runtime/driver"
)

// PoolsTest lists the library calls of testPools, and differences between the APIs.
type PoolsTest struct {
	Releases                   []dl.Version
	Current, New, Use, Destroy []string

	Attrs          map[driver.PoolAttr]uint64 // attributes that can be set
	Reads          []int                      // native attributes that PoolAttr reads, in order
	Reserved, Used string                     // the API's names of the attributes for reserved and used memory, in errors
	Refused        map[string]driver.PoolDesc // descriptions that NewPool refuses; a key is a text that the error contains
}

func testPools(t *testing.T, a *API) {
	for _, release := range a.Pools.Releases {
		t.Run(fmt.Sprint(release), func(t *testing.T) {
			f := a.Fake(t, release)
			d := f.Device(true)
			p, err := d.DefaultPool()
			if OK(t, err); p != a.Pool0 {
				t.Errorf("the default pool is %#x", p)
			}
			OK(t, d.SetCurrentPool(a.Pool1))
			p, err = d.CurrentPool()
			if OK(t, err); p != a.Pool1 {
				t.Errorf("the current pool is %#x", p)
			}
			OK(t, d.SetCurrentPool(a.Pool0))
			f.Want(a.Pools.Current...)

			p, err = d.NewPool(driver.PoolDesc{Kind: driver.DeviceMem, MaxSize: 100})
			if OK(t, err); p != a.Pool1 {
				t.Errorf("pool %#x", p)
			}
			f.Want(a.Pools.New...)

			m, err := d.AllocAsync(Stream0, p, 64)
			if OK(t, err); m.Kind != driver.DeviceMem || m.Ptr == 0 || m.Host != nil || m.Size != 64 {
				t.Errorf("%+v", m)
			}
			if none, err := d.AllocAsync(Stream0, p, 64); !errors.Is(err, driver.ErrOutOfMemory) || errors.Is(err, driver.ErrLost) || none != (driver.Mem{}) {
				t.Errorf("beyond the limit: %+v, %v", none, err)
			}
			OK(t, d.FreeAsync(Stream0, m))
			OK(t, d.TrimPool(p, 1<<20))
			f.Want(a.Pools.Use...)
			if err := d.DestroyPool(a.Pool0); !errors.Is(err, a.Result(InvalidValue)) {
				t.Errorf("destroying the default pool: %v", err)
			}
			f.Calls()
			OK(t, d.DestroyPool(p))
			f.Want(a.Pools.Destroy...)
		})
	}
}

func testPoolAttrs(t *testing.T, a *API) {
	f := a.Fake(t, a.Release)
	d := f.Device(true)
	for attr, value := range a.Pools.Attrs {
		OK(t, d.SetPoolAttr(a.Pool1, attr, 1))
		OK(t, d.SetPoolAttr(a.Pool1, attr, value))
		got, err := d.PoolAttr(a.Pool1, attr)
		if OK(t, err); got != value {
			t.Errorf("attribute %d is %d, want %d", attr, got, value)
		}
	}
	f.Calls()
	OK(t, d.SetPoolAttr(a.Pool1, driver.PoolReuseEvents, 0))
	OK(t, d.SetPoolAttr(a.Pool1, driver.PoolReuseInternal, 0))
	OK(t, d.SetPoolAttr(a.Pool1, driver.PoolThreshold, 1<<40))
	OK(t, d.SetPoolAttr(a.Pool1, driver.PoolReservedHigh, 0))
	var calls []string
	for _, c := range []string{"1, 0", "3, 0", "4, 1099511627776", "6, 0"} {
		calls = append(calls, fmt.Sprintf("%sMemPoolSetAttribute(%#x, %s)", a.Prefix, a.Pool1, c))
	}
	for attr := driver.PoolReuseEvents; attr <= driver.PoolUsedHigh; attr++ {
		_, err := d.PoolAttr(a.Pool1, attr)
		OK(t, err)
	}
	for _, native := range a.Pools.Reads {
		calls = append(calls, fmt.Sprintf("%sMemPoolGetAttribute(%#x, %d)", a.Prefix, a.Pool1, native))
	}
	f.Want(calls...)

	_, none := d.PoolAttr(a.Pool1, driver.PoolUsedHigh+1)
	_, negative := d.PoolAttr(a.Pool1, -1)
	for name, c := range map[string]struct {
		err  error
		says string
	}{
		"reserved":        {d.SetPoolAttr(a.Pool1, driver.PoolReserved, 0), fmt.Sprintf("%s of pool %#x to 0", a.Pools.Reserved, a.Pool1)},
		"used":            {d.SetPoolAttr(a.Pool1, driver.PoolUsed, 0), a.Pools.Used},
		"half a switch":   {d.SetPoolAttr(a.Pool1, driver.PoolReuseEvents, 1<<32), "a switch is 0 or 1"},
		"none to set":     {d.SetPoolAttr(a.Pool1, driver.PoolUsedHigh+1, 0), "no attribute 8"},
		"negative to set": {d.SetPoolAttr(a.Pool1, -1, 0), "no attribute -1"},
		"none":            {none, "no attribute 8"},
		"negative":        {negative, "no attribute -1"},
	} {
		if !errors.Is(c.err, a.Result(InvalidValue)) || !strings.Contains(c.err.Error(), c.says) {
			t.Errorf("%s: %v", name, c.err)
		}
	}
}

func testPoolErrors(t *testing.T, a *API) {
	f := a.Fake(t, a.Release)
	d := f.Device(true)
	if _, err := d.AllocAsync(0, a.Pool0, 1); !errors.Is(err, a.Result(InvalidHandle)) || !strings.Contains(err.Error(), "stream 0x0") {
		t.Errorf("stream 0 to allocate: %v", err)
	}
	if err := d.FreeAsync(2, driver.Mem{}); !errors.Is(err, a.Result(InvalidHandle)) || !strings.Contains(err.Error(), "stream 0x2") {
		t.Errorf("stream 2 to free: %v", err)
	}
	for _, kind := range []driver.MemKind{driver.CommMem, 7} {
		if p, err := d.NewPool(driver.PoolDesc{Kind: kind}); p != 0 || !errors.Is(err, a.Result(InvalidValue)) || !strings.Contains(err.Error(), fmt.Sprintf("kind of memory %d", kind)) {
			t.Errorf("no kind of pool: %#x, %v", p, err)
		}
	}
	for says, desc := range a.Pools.Refused {
		if p, err := d.NewPool(desc); p != 0 || !errors.Is(err, driver.ErrUnsupported) || !strings.Contains(err.Error(), says) {
			t.Errorf("%+v: %#x, %v", desc, p, err)
		}
	}
	f.Want("")
}

// CaptureTest lists the calls that begin and end a capture.
type CaptureTest struct {
	Releases   []dl.Version
	Begin, End string
	Graph      driver.Graph // the graph that the fake returns, or 0 if it varies
}

func testCaptureErrors(t *testing.T, a *API) {
	for _, release := range a.Capture.Releases {
		t.Run(fmt.Sprint(release), func(t *testing.T) {
			f := a.Fake(t, release)
			d := f.Device(false)
			end := func() error {
				t.Helper()
				g, err := d.EndCapture(Stream0)
				if (g == 0) != (err != nil) || err == nil && a.Capture.Graph != 0 && g != a.Capture.Graph {
					t.Errorf("graph %#x, %v", g, err)
				}
				return err
			}
			for _, s := range []driver.Stream{0, 1, 2} { // the default streams
				_, err := d.EndCapture(s)
				for op, err := range map[string]error{"begin capture": d.BeginCapture(s), "end capture": err} {
					if !errors.Is(err, a.Result(InvalidHandle)) || !strings.HasPrefix(err.Error(), fmt.Sprintf("%s: %s: device 0 (Fake 0): stream %#x: ", a.Name, op, uintptr(s))) {
						t.Errorf("%v", err)
					}
				}
			}
			f.Want("")
			if err := end(); !errors.Is(err, a.Result(IllegalState)) {
				t.Errorf("ending a capture that was not begun: %v", err)
			}
			f.Calls()
			OK(t, d.BeginCapture(Stream0))
			if err := d.BeginCapture(Stream0); !errors.Is(err, a.Result(IllegalState)) {
				t.Errorf("begun twice: %v", err)
			}
			OK(t, end())
			f.Want(a.Capture.Begin, a.Capture.Begin, a.Capture.End)
			f.Set("no graph", 1)
			OK(t, d.BeginCapture(Stream0))
			if err := end(); !errors.Is(err, a.Result(CaptureInvalidated)) || errors.Is(err, driver.ErrLost) || !strings.Contains(err.Error(), "stream 0x5000: there is no graph") {
				t.Errorf("%v", err)
			}
			f.Set("no graph", 0)
			OK(t, d.BeginCapture(Stream0))
			OK(t, end())
			f.Clean("capture")
		})
	}
}

// AdoptTest lists the calls that adopt a stream.
type AdoptTest struct {
	Releases []dl.Version
	Calls    []string
	Each     string // word that follows "a default stream is another one with each" in the error, such as "device"
}

func testAdopt(t *testing.T, a *API) {
	for _, release := range a.Adopt.Releases {
		t.Run(fmt.Sprint(release), func(t *testing.T) {
			f := a.Fake(t, release)
			d := f.Device(false)
			f.Set("priority", 1)
			priority, err := d.AdoptStream(Stream0)
			if OK(t, err); priority != -1 {
				t.Errorf("priority %d", priority)
			}
			f.Want(a.Adopt.Calls...)
			for _, s := range []driver.Stream{0, 1, 2} {
				if _, err := d.AdoptStream(s); !errors.Is(err, a.Result(InvalidHandle)) || !strings.Contains(err.Error(), "a default stream is another one with each "+a.Adopt.Each) {
					t.Errorf("stream %d: %v", s, err)
				}
			}
			f.Want("")
			captures := func(want bool) {
				t.Helper()
				f.Calls()
				got, err := d.Capturing(Stream0)
				if OK(t, err); got != want {
					t.Errorf("captures %v, want %v", got, want)
				}
				f.Want(a.Prefix + "StreamIsCapturing(0x5000)")
			}
			captures(false)
			if d.Caps().Capture {
				OK(t, d.BeginCapture(Stream0))
				captures(true)
				_, err := d.EndCapture(Stream0)
				OK(t, err)
				captures(false)
			}
		})
	}
}

// IPCTest lists the calls of a release that open and close another process's memory.
type IPCTest struct {
	Release dl.Version
	Calls   []string
	Range   string // the function that returns the allocation's size
}

func testIPC(t *testing.T, a *API) {
	for _, c := range a.IPC {
		f := a.Fake(t, c.Release)
		d := f.Device(false)
		m, err := d.Alloc(driver.DeviceMem, 4096)
		OK(t, err)
		h, err := d.ExportMem(m)
		OK(t, err)
		f.Calls()
		o, err := d.OpenMem(h)
		OK(t, err)
		if o.Kind != driver.DeviceMem || o.Ptr != m.Ptr || o.Size != 4096-256 || o.Host != nil {
			t.Errorf("opened %+v", o) // the fake says that the allocation begins 256 bytes before the opened address
		}
		OK(t, d.CloseMem(o))
		f.Want(c.Calls...)
		OK(t, d.Free(m))
		if f.Live() != 0 {
			t.Errorf("%d objects are left", f.Live())
		}

		f.Set("own process", 1)
		if _, err := d.OpenMem(h); !errors.Is(err, driver.ErrSameProcess) || !errors.Is(err, a.Result(InvalidContext)) || !strings.Contains(err.Error(), "device 0 (Fake 0)") {
			t.Errorf("a handle of this process: %v", err)
		}
		f.Set("own process", 0)
		// OpenMem succeeds even if the size of the memory is unknown.
		f.Set(c.Range, InvalidValue)
		o, err = d.OpenMem(h)
		if OK(t, err); o.Size != 0 {
			t.Errorf("opened %+v", o)
		}
		OK(t, d.CloseMem(o))
		if _, err = d.OpenMem(driver.MemHandle{}); err == nil || errors.Is(err, driver.ErrSameProcess) || errors.Is(err, driver.ErrUnsupported) {
			t.Errorf("no handle: %v", err)
		}
		f.Clean("OpenMem")
		if _, err := d.ExportMem(driver.Mem{Kind: driver.HostMem}); !errors.Is(err, driver.ErrUnsupported) {
			t.Errorf("memory of the host: %v", err)
		}
	}
}

// PeersTest describes how EnablePeer can fail.
type PeersTest struct {
	Releases []dl.Version
	Enable   string // the function that enables access
	Codes    []int  // results of Enable, besides NoPeers, that mean that there is no link
}

func testPeers(t *testing.T, a *API) {
	runtime.LockOSThread() // the devices are current on this thread
	defer runtime.UnlockOSThread()
	for _, release := range a.Peers.Releases {
		f := a.Fake(t, release)
		drv := open(t, f, false)
		var devs [2]Device
		for i := range devs {
			d, err := drv.Open(i)
			OK(t, err)
			defer d.Close()
			devs[i] = d.(Device)
		}
		d, two := devs[0], devs[1]
		if !d.Caps().Peers {
			t.Errorf("%+v", d.Caps())
		}
		OK(t, d.Bind())
		f.Calls()
		OK(t, d.EnablePeer(d)) // a device needs no access to itself
		f.Want("")
		type refusal struct {
			fn   string
			code int
			want error
			lost bool
		}
		refusals := []refusal{
			{"apart", 1, driver.ErrUnsupported, false},
			{a.Prefix + "DeviceCanAccessPeer", InvalidDevice, a.Result(InvalidDevice), false},
			{a.Peers.Enable, InvalidValue, a.Result(InvalidValue), false},
			{a.Peers.Enable, InvalidContext, a.Result(InvalidContext), false},
			{a.Peers.Enable, IllegalAddress, driver.ErrLost, true},
		}
		for _, code := range append(a.Peers.Codes, NoPeers) {
			refusals = append(refusals, refusal{a.Peers.Enable, code, driver.ErrUnsupported, false}, refusal{a.Peers.Enable, code, a.Result(code), false})
		}
		for _, c := range refusals {
			f.Set(c.fn, c.code)
			err := d.EnablePeer(two)
			f.Set(c.fn, 0)
			e, ok := err.(*driver.Error)
			if !ok || e.Op != "enable peer" || !errors.Is(err, c.want) || e.Lost != c.lost {
				t.Errorf("%s fails with %d: %v", c.fn, c.code, err)
			}
			f.Clean("EnablePeer")
		}
		OK(t, d.EnablePeer(two))
		s, err := d.NewStream()
		OK(t, err)
		other, err := open(t, a.Fake(t, release), false).Open(1)
		OK(t, err)
		defer other.Close()
		for what, v := range map[string]driver.Device{"nothing": nil, "of another library": other} {
			for _, err := range []error{d.EnablePeer(v), d.CopyPeer(s, 8, d, 8, v, 8), d.CopyPeer(s, 8, v, 8, d, 8)} {
				if !errors.Is(err, a.Result(InvalidDevice)) {
					t.Errorf("%s: %v", what, err)
				}
			}
		}
	}
}

// FactsTest describes the facts of a device and its links.
type FactsTest struct {
	Env       string // environment variable with the path of an optional library, or ""
	Total     uint64 // bytes of memory
	MemInfo   string // the call that returns free and total memory
	Settings  map[string]int
	Links     []LinkTest
	Occupancy string // the function that computes occupancy
}

// A LinkTest is a set of settings and the link that Link must return.
type LinkTest struct {
	Set  map[string]int
	Want driver.Link
}

func testFacts(t *testing.T, a *API) {
	if a.Facts.Env != "" {
		t.Setenv(a.Facts.Env, filepath.Join(t.TempDir(), "absent"))
	}
	f := a.Fake(t, a.Release)
	d := f.Device(false)
	if free, total, err := d.MemInfo(); free != 60<<30 || total != a.Facts.Total || err != nil {
		t.Errorf("%d of %d bytes are free, %v", free, total, err)
	}
	f.Want(a.Facts.MemInfo)
	setAll(f, a.Facts.Settings)
	for _, c := range a.Facts.Links {
		setAll(f, c.Set)
		if got, err := d.Link(a.Neighbour(d)); got != c.Want || err != nil {
			t.Errorf("with %v: %+v, %v; want %+v", c.Set, got, err, c.Want)
		}
		f.Clean("Link")
		for name := range c.Set {
			f.Set(name, 0)
		}
	}
	if got, err := d.Link(d); got != (driver.Link{Kind: driver.LinkSelf, Atomics: true, Arrays: true}) || err != nil {
		t.Errorf("to itself: %+v, %v", got, err)
	}
	foreign, err := open(t, a.Fake(t, a.Release), false).Open(1)
	OK(t, err)
	defer foreign.Close()
	for _, to := range []driver.Device{nil, foreign} {
		if _, err := d.Link(to); !errors.Is(err, a.Result(InvalidDevice)) {
			t.Errorf("to %v: %v", to, err)
		}
	}
	f.Calls()
	if blocks, err := d.Occupancy(0xf000, 96, 4096); blocks != 21 || err != nil {
		t.Errorf("%d blocks, %v", blocks, err)
	}
	f.Want(a.Facts.Occupancy + "(0xf000, 96, 4096)")
}
