package memory

import (
	"context"
	"slices"
	"sync/atomic"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/internal/engine"
	"github.com/puregpu/puregpu/runtime/internal/errs"
	"github.com/puregpu/puregpu/runtime/internal/faces"
	"github.com/puregpu/puregpu/runtime/internal/leaks"
	"github.com/puregpu/puregpu/runtime/internal/observe"
)

// A Device is the memory of one device: its buffers, its pools, and the pinned memory for
// transfers.
type Device struct {
	Engine *engine.Device
	Faces  *faces.Faces
	Stage  Stage
	// Observer is nil without a tracer. It is set while the device is being opened.
	Observer observe.Device
	// Leaks reports dropped buffers and pools. It is nil unless the program asks for reports.
	Leaks *leaks.Reporter

	buffers  books
	pools    pools
	current  atomic.Pointer[PoolHandle]
	sweeping atomic.Bool     // a timer will sweep the closed pools again
	delays   delays          // delays of parked Frees and of trims
	kept     context.Context // ends when the memory is left to the driver
	leave    context.CancelFunc
}

// Init sets up the memory of a device. stageSize is the least number of bytes that Stage pins at
// once.
func (d *Device) Init(e *engine.Device, f *faces.Faces, stageSize int) {
	d.Engine, d.Faces = e, f
	d.Stage.dev, d.Stage.size = d, stageSize
	d.kept, d.leave = context.WithCancel(context.Background())
}

// LeaveToDriver is called instead of Close if the memory is left to the driver. LeaveToDriver ends
// the trims of growing memory, and the calls of Share that wait for these trims.
func (d *Device) LeaveToDriver() { d.leave() }

// Failed returns why the device accepts no more work, or nil.
func (d *Device) Failed() error { return d.Engine.Failed() }

// ready is like Failed, but d may be nil or zero. The error for such a Device names the operation
// op.
func (d *Device) ready(op string) error {
	if d == nil || d.Engine == nil {
		return errs.Zero(op, "Device")
	}
	return d.Engine.Failed()
}

// FreeUnused first waits for parked Frees, and for trims of growing memory, whose memory nothing
// uses any more: these end soon (delays.awaitReady). Then it has the reclaimer free unused memory
// and trim the pools, and waits until this is done. It skips this second step if the device is
// closed, or a stream may be waiting for other code. It returns early if the context ends.
func (d *Device) FreeUnused(ctx context.Context) {
	d.delays.awaitReady(ctx)
	freed := make(chan struct{})
	if d.Engine.AwaitsOthers() || !d.Engine.Reclaim(d.trimPools, func() { close(freed) }) {
		return
	}
	select {
	case <-freed:
	case <-ctx.Done():
	}
}

// HasNativeMemory reports whether any buffer has memory of a driver's pool.
func (d *Device) HasNativeMemory() bool { return d.buffers.haveNative() }

// FreePooled frees the memory that buffers have from pools, while the device is being closed. A
// driver's pool frees the memory in the stream h, or in the stream that allocated it if h is 0.
// FreePooled runs on the pending-queue thread.
func (d *Device) FreePooled(h driver.Stream) []error { return d.buffers.close(true, h) }

// Close frees all buffers, and destroys all pools except the driver's default pool, which it only
// trims. It runs on the pending-queue thread, when no stream is left.
func (d *Device) Close() []error {
	// Close the pools first, because slabs.Release may add buffers to free.
	return append(d.pools.close(), d.buffers.close(false, 0)...)
}

// Streams returns the streams that were made to reserve memory for new pools, and that could not be
// destroyed because they were busy.
func (d *Device) Streams() []driver.Stream {
	d.pools.mu.Lock()
	defer d.pools.mu.Unlock()
	return slices.Clone(d.pools.streams)
}
