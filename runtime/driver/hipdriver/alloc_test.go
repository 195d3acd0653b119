//go:build linux && (amd64 || arm64) && !nogpu

package hipdriver

import (
	"testing"
	"unsafe"

	"github.com/puregpu/puregpu/hip"
	"github.com/puregpu/puregpu/runtime/dl"
	"github.com/puregpu/puregpu/runtime/driver"
)

// errSink keeps the compiler from dropping what a test computes.
var errSink error

// TestSubmittingAllocatesNothing goes through the interface, as the runtime does.
func TestSubmittingAllocatesNothing(t *testing.T) {
	if !dl.Fast {
		t.Skip("no fast path in this build")
	}
	for _, release := range []dl.Version{hip64, hip71} { // 7.1 has a function for strided fills
		f := newFake(t, release)
		dev := f.device(WithPools())
		var d driver.Device = dev
		m, err := d.Alloc(driver.HostMem, 64)
		if err != nil {
			t.Fatal(err)
		}
		fn, _ := function(t, d, "count")
		counter, by := new(uint64), new(uint32)
		launch := &driver.Launch{Function: fn, Grid: [3]uint32{1, 1, 1}, Block: [3]uint32{1, 1, 1}, Args: []unsafe.Pointer{unsafe.Pointer(&counter), unsafe.Pointer(by)}}
		ex := *launch
		ex.Attrs = driver.LaunchAttrs{Cooperative: true, Priority: -1, Carveout: 50}
		ready := true
		for name, call := range map[string]func() error{
			"Record":     func() error { return d.Record(event0, stream0) },
			"StreamWait": func() error { return d.StreamWait(stream0, event0) },
			"Query": func() error {
				done, err := d.Query(event0)
				if done != ready {
					t.Errorf("Query = %t", done)
				}
				return err
			},
			"Fill 1":                  func() error { return d.Fill(stream0, m.Ptr, 0x12345678, 1, 64) },
			"Fill 2":                  func() error { return d.Fill(stream0, m.Ptr, 0x12345678, 2, 32) },
			"Fill 4":                  func() error { return d.Fill(stream0, m.Ptr, 0x12345678, 4, 16) },
			"FillStrided":             func() error { return d.FillStrided(stream0, m.Ptr, 0x12345678, 16, 4) },
			"Copy":                    func() error { return d.Copy(stream0, m.Ptr+32, m.Ptr, 32) },
			"Upload":                  func() error { return d.Upload(stream0, m.Ptr+32, m.Host, 32) },
			"Download":                func() error { return d.Download(stream0, m.Host, m.Ptr+32, 32) },
			"Launch":                  func() error { return d.Launch(stream0, launch) },
			"Launch, with attributes": func() error { return d.Launch(stream0, &ex) },
			"LaunchGraph":             func() error { return d.(driver.Graphs).LaunchGraph(stream0, exec0) },
			"AllocAsync and FreeAsync": func() error {
				m, err := d.(driver.Pools).AllocAsync(stream0, pool0, 64)
				if err != nil {
					return err
				}
				return d.(driver.Pools).FreeAsync(stream0, m)
			},
			"Bind": d.Bind,
		} {
			states := []bool{true}
			if name == "Query" {
				states = []bool{true, false}
			}
			for _, ready = range states {
				if !ready {
					f.set("hipEventQuery", int(hip.ErrorNotReady))
				}
				for _, dev.sets = range []bool{true, false} {
					if n := testing.AllocsPerRun(100, func() { errSink = call() }); n != 0 || errSink != nil {
						t.Errorf("HIP %s: %s allocates %v times, with %v", hip.FormatVersion(release), name, n, errSink)
					}
				}
			}
		}
		if err := d.Free(m); err != nil {
			t.Error(err)
		}
	}
}
