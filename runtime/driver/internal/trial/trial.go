// Package trial checks whether a thread can submit to a device that is not current on it. The
// documentation of the GPU APIs does not say so for all calls, so drivers try the calls when they
// open a device.
package trial

import (
	"bytes"
	"errors"
	"fmt"
	"runtime"
	"unsafe"

	"github.com/puregpu/puregpu/runtime/driver"
)

// Run reports whether a device's submitting methods work on a thread where the device is not
// current. elsewhere(f) calls f on such a thread. The calling thread must be bound to the device.
// image has a kernel "empty" without parameters; if image is nil, Run tries no kernel. wait(s)
// waits for the stream s.
//
// An error means that the device is unusable. Run needs a stream, an event and a little memory, and
// with Caps.Timers a timer. Run does not try a kernel, a pool or a graph that cannot be made.
func Run(d driver.Device, image []byte, elsewhere func(f func() error) error, wait func(driver.Stream) error) (anywhere bool, err error) {
	t := trial{d: d}
	defer func() {
		if end := t.destroy(); end != nil {
			anywhere, err = false, errors.Join(err, end)
		}
	}()
	if err := t.create(image); err != nil {
		return false, err
	}
	err = elsewhere(t.submit)
	if late := wait(t.stream); late != nil {
		return false, late
	}
	if err == nil {
		err = elsewhere(t.ask)
	}
	if errors.Is(err, driver.ErrLost) {
		return false, err
	}
	// The expected error is a missing context or device. Other errors have the same result: the
	// driver makes the device current around each submitting call.
	return err == nil, nil
}

// OnAnother calls a function on another locked thread, and waits for it. The caller's goroutine
// must be locked to its thread.
func OnAnother(f func() error) error {
	result := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		result <- f()
	}()
	return <-result
}

// A trial holds the objects for one call of each submitting method.
type trial struct {
	d      driver.Device
	stream driver.Stream
	event  driver.Event
	dev    driver.Mem
	host   driver.Mem
	module driver.Module
	kernel driver.Function // 0 if there is none
	pools  driver.Pools
	pool   driver.Pool // 0 if there is none
	pooled driver.Mem  // memory allocated from the pool
	graphs driver.Graphs
	graph  driver.Graph
	nodes  []driver.Node
	ops    []driver.NodeOp // operations of the nodes
	exec   driver.Exec     // 0 if there is none
	timers driver.Timers
	timer  driver.Event
}

const size = 64

// create makes the trial's objects. After an error the caller destroys the objects made so far.
func (t *trial) create(image []byte) (err error) {
	d, caps := t.d, t.d.Caps()
	if t.stream, err = d.NewStream(); err != nil {
		return err
	}
	if t.event, err = d.NewEvent(); err != nil {
		return err
	}
	if t.dev, err = d.Alloc(driver.DeviceMem, size); err != nil {
		return err
	}
	if t.host, err = d.Alloc(driver.HostMem, size); err != nil {
		return err
	}
	if image != nil {
		// Loading may fail, because the CUDA driver may lack its compiler, or have it disabled.
		if t.module, err = d.Load(image); err == nil {
			t.kernel, _, err = d.Function(t.module, "empty")
		}
		if errors.Is(err, driver.ErrLost) {
			return err
		}
	}
	if caps.Pools {
		// The pool grows here, so that the later allocation on another thread needs no memory from
		// the system. The pool gives the memory back when the stream is synchronized.
		t.pools = d.(driver.Pools)
		if t.pool, err = t.pools.DefaultPool(); err == nil {
			err = errors.Join(t.alloc(), t.free())
		}
		if errors.Is(err, driver.ErrLost) {
			return err
		} else if err != nil {
			t.pool = 0
		}
	}
	if caps.Graphs {
		t.graphs = d.(driver.Graphs)
		if t.graph, err = t.graphs.NewGraph(); err == nil {
			if err = t.addNodes(); err == nil {
				t.exec, err = t.graphs.Instantiate(t.graph)
			}
			if err == nil {
				if err = t.setNodes(); err != nil {
					t.nodes = nil // SetNode fails on the bound thread too, so submit does not try it
				}
			}
		}
		if errors.Is(err, driver.ErrLost) {
			return err
		}
	}
	if caps.Timers {
		t.timers = d.(driver.Timers)
		t.timer, err = t.timers.NewTimer()
		return err
	}
	return nil
}

// addNodes adds a fill, a copy, and, if there is a kernel, a launch, in a chain.
func (t *trial) addNodes() error {
	t.ops = []driver.NodeOp{
		{Kind: driver.FillNode, Dst: t.dev.Ptr, Width: 4, Count: size / 4},
		{Kind: driver.CopyNode, Dst: t.dev.Ptr, Src: t.dev.Ptr + size/2, Count: size / 2},
	}
	if t.kernel != 0 {
		t.ops = append(t.ops, driver.NodeOp{Kind: driver.KernelNode, Launch: t.launch()})
	}
	for i := range t.ops {
		n, err := t.graphs.AddNode(t.graph, t.nodes[max(i-1, 0):], &t.ops[i])
		if err != nil {
			return err
		}
		t.nodes = append(t.nodes, n)
	}
	return nil
}

// setNodes sets the nodes' operations with SetNode and SetNodes.
func (t *trial) setNodes() error {
	t.ops[0].Pattern ^= pattern
	t.ops[1].Dst, t.ops[1].Src = t.ops[1].Src, t.ops[1].Dst
	return errors.Join(t.graphs.SetNode(t.exec, t.nodes[0], &t.ops[0]), t.graphs.SetNodes(t.exec, t.nodes, t.ops))
}

// launch returns a launch of the kernel.
func (t *trial) launch() driver.Launch {
	one := [3]uint32{1, 1, 1}
	return driver.Launch{Function: t.kernel, Grid: one, Block: one}
}

// alloc allocates memory from the pool, if there is a pool.
func (t *trial) alloc() (err error) {
	if t.pool != 0 {
		t.pooled, err = t.pools.AllocAsync(t.stream, t.pool, size)
	}
	return err
}

// free frees the memory that alloc allocated.
func (t *trial) free() error {
	if t.pooled.Ptr == 0 {
		return nil
	}
	if err := t.pools.FreeAsync(t.stream, t.pooled); err != nil {
		return err
	}
	t.pooled = driver.Mem{}
	return nil
}

// pattern is the pattern of submit's dense fills.
const pattern = 0x01020304

// submit calls every submitting method except Elapsed and the methods of [driver.Values],
// [driver.Adopter] and [driver.Prefetcher]. t.ask calls Elapsed.
func (t *trial) submit() error {
	const half = size / 2
	d, lower, upper := t.d, t.dev.Ptr, t.dev.Ptr+half
	for _, try := range []func() error{
		func() error { return d.Fill(t.stream, lower, pattern, 1, half) },
		func() error { return d.Fill(t.stream, lower, pattern, 2, half/2) },
		func() error { return d.Fill(t.stream, lower, pattern, 4, half/4) },
		func() error { return d.FillStrided(t.stream, lower, pattern+1, 8, half/8) },
		func() error { return d.Copy(t.stream, upper, lower, half) },
		func() error { // within this device, because opening it must not need other devices
			if !d.Caps().Peers {
				return nil
			}
			return d.(driver.Peers).CopyPeer(t.stream, upper, d, lower, d, half)
		},
		func() error { return d.Download(t.stream, t.host.Host, upper, half) },
		func() error { return d.Upload(t.stream, lower, unsafe.Add(t.host.Host, half), half) },
		func() error { return d.Record(t.event, t.stream) },
		func() error { return d.StreamWait(t.stream, t.event) },
		func() error { _, err := d.Query(t.event); return err },
		func() error {
			if t.kernel == 0 {
				return nil
			}
			l := t.launch()
			return d.Launch(t.stream, &l)
		},
		t.alloc,
		t.free,
		func() error {
			if t.exec == 0 || t.nodes == nil {
				return nil
			}
			return t.setNodes()
		},
		func() error {
			if t.exec == 0 {
				return nil
			}
			return t.graphs.LaunchGraph(t.stream, t.exec)
		},
		func() error {
			if t.timer == 0 {
				return nil
			}
			return d.Record(t.timer, t.stream)
		},
	} {
		if err := try(); err != nil {
			return err
		}
	}
	return nil
}

// ask checks the downloaded data after the work is complete, and calls Elapsed.
func (t *trial) ask() error {
	want := bytes.Repeat([]byte{5, 3, 2, 1, 4, 3, 2, 1}, size/2/8)
	if got := unsafe.Slice((*byte)(t.host.Host), size/2); !bytes.Equal(got, want) {
		return fmt.Errorf("the first work gave %x", got)
	}
	if t.timer == 0 {
		return nil
	}
	_, err := t.timers.Elapsed(t.timer, t.timer)
	return err
}

// destroy destroys the objects that were made.
func (t *trial) destroy() error {
	var errs []error
	if t.timer != 0 {
		errs = append(errs, t.d.DestroyEvent(t.timer))
	}
	if t.exec != 0 {
		errs = append(errs, t.graphs.DestroyExec(t.exec))
	}
	if t.graph != 0 {
		errs = append(errs, t.graphs.DestroyGraph(t.graph))
	}
	errs = append(errs, t.free())
	if t.module != 0 {
		errs = append(errs, t.d.Unload(t.module))
	}
	if t.host.Host != nil {
		errs = append(errs, t.d.Free(t.host))
	}
	if t.dev.Ptr != 0 {
		errs = append(errs, t.d.Free(t.dev))
	}
	if t.event != 0 {
		errs = append(errs, t.d.DestroyEvent(t.event))
	}
	if t.stream != 0 {
		errs = append(errs, t.d.DestroyStream(t.stream))
	}
	return errors.Join(errs...)
}
