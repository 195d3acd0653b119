package gpu

import (
	"context"
	"slices"
	"time"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/internal/engine"
	"github.com/puregpu/puregpu/runtime/internal/observe"
	"github.com/puregpu/puregpu/runtime/internal/sema"
	"github.com/puregpu/puregpu/runtime/internal/work"
)

// A Tracer observes devices. It is a [trace.Tracer]; other packages cannot implement it.
//
// [trace.Tracer]: https://pkg.go.dev/github.com/puregpu/puregpu/runtime/trace#Tracer
type Tracer interface {
	// Observe returns the observer of a device that is being opened. It runs on the device's thread,
	// before the device has events. pools returns the bytes that the device's pools have reserved
	// and use, and blocks while it queries the driver.
	Observe(dev *Device, core *engine.Device, pools func() (reserved, used uint64)) (observe.Device, error)
}

// observe gives the device its observer, if the options name a tracer.
func (d *Device) observe() (err error) {
	if d.opt.Tracer != nil {
		d.observer, err = d.opt.Tracer.Observe(d, &d.native, d.poolBytes)
	}
	return err
}

// happened tells the observer, if there is one, of an event that began at began and ends now.
func (d *Device) happened(what observe.Event, began time.Time, label string, bytes uint64, err error) {
	if d.observer != nil {
		d.observer.Happened(what, began, label, bytes, err)
	}
}

// observed begins to observe a submission, for its Timing and for the device's observer. It returns
// an error if the Timing cannot be used.
func (r *record) observed(o *Order) error {
	if o.Timing != nil {
		if err := r.time(o); err != nil {
			return err
		}
	}
	if by := r.q.dev.observer; by != nil {
		r.Observers = append(r.Observers, by.Submitted(&r.Submission, r.describe()))
	}
	return nil
}

// describe returns what an observer is told of a submission.
func (r *record) describe() observe.Description {
	d := observe.Description{Queue: r.q, Label: r.label, Bytes: r.Op.Bytes(), Part: r.part}
	switch r.Op.Kind {
	case work.Dispatch:
		d.Grid, d.Block, d.Bytes = r.launch.Grid, r.launch.Block, 0
	case work.Alloca, work.Dealloca:
		if r.buffer != nil {
			d.Bytes = r.buffer.mem.Size
		}
	}
	if r.kernel != nil {
		d.Kernel = r.kernel.name
	}
	if r.recording != nil {
		p := &r.recording.parts[r.part]
		d.Commands, d.Graph = p.to-p.from, p.graph
	}
	return d
}

// describe returns what an observer is told of a command.
func (c *CommandBuffer) describe(i int) observe.Command {
	cmd := c.cmds.at(i)
	d := observe.Command{Index: i, Kind: cmd.op.Kind, Bytes: cmd.op.Bytes()}
	if cmd.op.Kind == work.Dispatch {
		d.Grid, d.Block, d.Kernel, d.Bytes = cmd.launch.Grid, cmd.launch.Block, c.kernels[cmd.launch.Function], 0
	}
	return d
}

// timesCommands reports whether the commands of recordings are timed one by one. If so, graphs are
// avoided.
func (d *Device) timesCommands() bool { return d.observer != nil && d.observer.TimesCommands() }

// nameKernel remembers a kernel's name if commands are timed.
func (c *CommandBuffer) nameKernel(k *Kernel) {
	if c.dev.timesCommands() {
		if c.kernels == nil {
			c.kernels = map[driver.Function]string{}
		}
		c.kernels[k.fn] = k.name
	}
}

// nameKernels takes over the kernel names of a nested recording.
func (c *CommandBuffer) nameKernels(child *CommandBuffer) {
	if c.kernels == nil && len(child.kernels) > 0 {
		c.kernels = map[driver.Function]string{}
	}
	for fn, name := range child.kernels {
		c.kernels[fn] = name
	}
}

// noteSignal tells the observer of a semaphore, if there is one, that the host has signalled it or
// is about to fail it.
func noteSignal(s *sema.Semaphore, value uint64, err error) {
	if o := observe.OfSemaphore(s); o != nil {
		o.Signalled(s, value, err)
	}
}

// waits returns the observer of a wait for points, or nil.
func waits(ctx context.Context, points []Point, all bool) observe.Wait {
	for _, p := range points {
		if o := observe.OfSemaphore(&p.Semaphore.sema); o != nil {
			if w := o.Waits(ctx, all); w != nil {
				return w
			}
		}
	}
	return nil
}

// poolBytes returns how many bytes the device's pools have reserved and use. It blocks while it
// queries the driver. It also traces by how much native pools have grown or shrunk.
func (d *Device) poolBytes() (reserved, used uint64) {
	d.pools.mu.Lock()
	pools := slices.Clone(d.pools.all)
	d.pools.mu.Unlock()
	for _, p := range pools {
		s, err := p.Stats()
		if err != nil { // the pool has been closed
			continue
		}
		reserved, used = reserved+s.Reserved, used+s.Used
		d.pools.mu.Lock()
		if !p.closed.Load() { // its close records that all was given back
			p.traceReserved(s.Reserved)
		}
		d.pools.mu.Unlock()
	}
	return reserved, used
}

// traceReserved traces by how much a native pool has grown or shrunk since the last call. bytes is
// its reserved size now. The driver does not tell when the size changed.
func (p *Pool) traceReserved(bytes uint64) {
	if p.dev.observer == nil || p.blocks != nil {
		return
	}
	switch was := p.sampled.Swap(bytes); {
	case bytes > was:
		p.dev.happened(observe.Grow, time.Now(), "", bytes-was, nil)
	case bytes < was:
		p.dev.happened(observe.Shrink, time.Now(), "", was-bytes, nil)
	}
}

// traceNative queries how much memory a native pool has reserved, and calls traceReserved. It runs
// on a bound thread.
func (p *Pool) traceNative() {
	if p.dev.observer != nil {
		if bytes, err := p.dev.faces.pooling.PoolAttr(p.native, driver.PoolReserved); err == nil {
			p.traceReserved(bytes)
		}
	}
}
