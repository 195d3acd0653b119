//go:build linux && (amd64 || arm64) && !nogpu

package drivertest

import (
	"errors"
	"maps"
	"strings"
	"testing"
	"unsafe"

	"github.com/puregpu/puregpu/runtime/driver"
)

// NodeOps returns operations of all kinds except those of conditionals, on 64 bytes at p. The third
// operation has the attributes attrs.
func NodeOps(p driver.Ptr, attrs driver.LaunchAttrs, child driver.Graph) []driver.NodeOp {
	return []driver.NodeOp{
		{Kind: driver.EmptyNode},
		{Kind: driver.KernelNode, Launch: driver.Launch{Function: 0xf000}},
		{Kind: driver.KernelNode, Launch: driver.Launch{Function: 0xf000, Attrs: attrs}},
		{Kind: driver.FillNode, Dst: p, Pattern: 1, Width: 4, Count: 4},
		{Kind: driver.CopyNode, Dst: p + 32, Src: p, Count: 32},
		{Kind: driver.ChildNode, Child: child},
		{Kind: driver.RecordNode, Event: Event0},
	}
}

// All returns calls of d's methods, by the Op of their errors. It leaves out Bind, Unbind, Close,
// Compiler, and the methods of driver.Comms and driver.VirtualMem.
func (a *API) All(d Device) map[string]func() error {
	buf := make([]uint64, 8)
	p, ptr := unsafe.Pointer(&buf[0]), driver.Ptr(uintptr(unsafe.Pointer(&buf[0])))
	pooled, _ := d.AllocAsync(Stream0, a.Pool0, 64)
	caps := d.Caps()
	attrs := a.Attrs
	attrs.Cooperative = caps.Cooperative
	g := a.Graph(d)
	all := map[string]func() error{
		"new stream": func() error {
			if caps.PriorityRange[0] != caps.PriorityRange[1] {
				if _, err := d.NewPriorityStream(-1); err != nil {
					return err
				}
				if err := a.Destroy(d, Stream0); err != nil { // destroys the new stream: the fake returns Stream0 each time
					return err
				}
			}
			_, err := d.NewStream()
			return err
		},
		"destroy stream": func() error { return d.DestroyStream(Stream0) },
		"new event":      func() error { _, err := d.NewEvent(); return err },
		"destroy event":  func() error { return d.DestroyEvent(Event0) },
		"record":         func() error { return d.Record(Event0, Stream0) },
		"query":          func() error { _, err := d.Query(Event0); return err },
		"wait":           func() error { return d.StreamWait(Stream0, Event0) },
		"alloc": func() error {
			for kind := driver.DeviceMem; kind <= driver.ManagedMem; kind++ {
				m, err := d.Alloc(kind, 64)
				if err != nil {
					return err
				}
				if err := d.Free(m); err != nil {
					return err
				}
			}
			return nil
		},
		"free": func() error {
			if err := d.Free(driver.Mem{Kind: driver.HostMem}); err != nil {
				return err
			}
			return d.Free(driver.Mem{})
		},
		"register":   func() error { _, err := d.Register(p, 64); return err },
		"unregister": func() error { return d.Unregister(p) },
		"prefetch": func() error {
			if err := d.Prefetch(Stream0, ptr, 64, driver.DeviceMem); err != nil {
				return err
			}
			return d.Prefetch(Stream0, ptr, 64, driver.HostMem)
		},
		"fill": func() error {
			if err := d.Fill(Stream0, ptr, 1, 4, 4); err != nil {
				return err
			}
			return d.FillStrided(Stream0, ptr, 1, 8, 4)
		},
		"copy": func() error {
			if err := d.Copy(Stream0, ptr+32, ptr, 32); err != nil {
				return err
			}
			return d.CopyPeer(Stream0, ptr+32, d, ptr, d, 32)
		},
		"upload":   func() error { return d.Upload(Stream0, ptr, unsafe.Add(p, 32), 32) },
		"download": func() error { return d.Download(Stream0, unsafe.Add(p, 32), ptr, 32) },
		"load":     func() error { _, err := d.Load(a.Image); return err },
		"unload":   func() error { return d.Unload(Module0) },
		"function": func() error { _, _, err := d.Function(Module0, "count"); return err },
		"global":   func() error { _, _, err := d.Global(Module0, "variable"); return err },
		"launch": func() error {
			if err := d.Launch(Stream0, &driver.Launch{Function: 0xf000}); err != nil {
				return err
			}
			return d.Launch(Stream0, &driver.Launch{Function: 0xf000, Attrs: attrs})
		},
		"memory info": func() error { _, _, err := d.MemInfo(); return err },
		"link":        func() error { _, err := d.Link(a.Neighbour(d)); return err },
		"occupancy":   func() error { _, err := d.Occupancy(0xf000, 64, 0); return err },

		"default pool":       func() error { _, err := d.DefaultPool(); return err },
		"current pool":       func() error { _, err := d.CurrentPool(); return err },
		"set current pool":   func() error { return d.SetCurrentPool(a.Pool0) },
		"new pool":           func() error { _, err := d.NewPool(a.PoolDesc); return err },
		"destroy pool":       func() error { return d.DestroyPool(a.Pool1) },
		"pool attribute":     func() error { _, err := d.PoolAttr(a.Pool0, driver.PoolThreshold); return err },
		"set pool attribute": func() error { return d.SetPoolAttr(a.Pool0, driver.PoolReuseEvents, 0) },
		"trim pool":          func() error { return d.TrimPool(a.Pool0, 0) },
		"access pool":        func() error { return d.AccessPool(a.Pool0, d, true) },
		"alloc async":        func() error { _, err := d.AllocAsync(Stream0, a.Pool0, 64); return err },
		"free async":         func() error { return d.FreeAsync(Stream0, pooled) },

		"new graph":     func() error { _, err := d.NewGraph(); return err },
		"destroy graph": func() error { return d.DestroyGraph(g.Old) },
		"add node": func() error {
			for i := range g.Ops {
				if _, err := d.AddNode(g.Graph, g.Nodes[:i], &g.Ops[i]); err != nil {
					return err
				}
			}
			return nil
		},
		"instantiate":  func() error { _, err := d.Instantiate(g.Graph); return err },
		"destroy exec": func() error { return d.DestroyExec(g.OldExec) },
		"set node": func() error {
			for i := range g.Ops {
				if k := g.Ops[i].Kind; k == driver.EmptyNode || k == driver.RecordNode {
					continue
				}
				if err := d.SetNode(g.Exec, g.Nodes[i], &g.Ops[i]); err != nil {
					return err
				}
			}
			return nil
		},
		"launch graph": func() error { return d.LaunchGraph(Stream0, g.Exec) },

		"export memory": func() error { _, err := d.ExportMem(driver.Mem{Ptr: ptr, Size: 64}); return err },
		"open memory": func() error {
			h, err := d.ExportMem(driver.Mem{Ptr: ptr, Size: 64})
			if err == nil {
				_, err = d.OpenMem(h)
			}
			return err
		},
		"close memory": func() error { return d.CloseMem(driver.Mem{Ptr: ptr}) },
		"adopt stream": func() error { _, err := d.AdoptStream(Stream0); return err },
		"capturing":    func() error { _, err := d.Capturing(Stream0); return err },
		"enter": func() error {
			was, err := d.Enter()
			if err != nil {
				return err
			}
			return d.Leave(was)
		},
		"leave": func() error { return a.Leave(d) },
		"begin capture": func() error {
			err := d.BeginCapture(Stream0)
			d.EndCapture(Stream0)
			return err
		},
		"end capture": func() error {
			d.BeginCapture(Stream0)
			_, err := d.EndCapture(Stream0)
			return err
		},
		"new timer": func() error { _, err := d.NewTimer(); return err },
		"elapsed":   func() error { _, err := d.Elapsed(Event0, Event0); return err },
	}
	if a.More != nil {
		maps.Copy(all, a.More(d))
	}
	return all
}

// Submitting lists the submitting operations of All, which any thread may call.
var Submitting = []string{
	"record", "query", "wait", "fill", "copy", "upload", "download", "prefetch", "launch", "alloc async", "free async", "set node",
	"launch graph", "capturing", "elapsed",
}

// PoolOps and GraphOps list the operations that need pools and graphs.
var (
	PoolOps = strings.Split("default pool, current pool, set current pool, new pool, destroy pool, pool attribute, set pool attribute, "+
		"trim pool, access pool, alloc async, free async", ", ")
	GraphOps = strings.Split("new graph, destroy graph, add node, instantiate, destroy exec, set node, launch graph, begin capture, end capture", ", ")
)

// Unsupported checks that operations of All return ErrUnsupported without a native call. The text
// of the error must contain says.
func (a *API) Unsupported(t *testing.T, f Library, d Device, ops []string, says string) {
	t.Helper()
	calls := a.All(d)
	f.Calls()
	for _, op := range ops {
		err := calls[op]()
		e, is := err.(*driver.Error)
		if !is || e.Op != op || e.Lost || e.OOM || !errors.Is(err, driver.ErrUnsupported) || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v; want %s", op, err, says)
		}
	}
	f.Want("")
}

// Function loads a kernel of the fake library.
func (a *API) Function(t testing.TB, d driver.Device, kernel string) (driver.Function, driver.FuncInfo) {
	t.Helper()
	m, err := d.Load(a.Image)
	OK(t, err)
	f, info, err := d.Function(m, kernel)
	OK(t, err)
	return f, info
}
