package interop

import (
	"fmt"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/gpu"
	"github.com/puregpu/puregpu/runtime/internal/engine"
	"github.com/puregpu/puregpu/runtime/internal/errs"
)

// AdoptStream makes a queue from a stream that the program or a library has made with the driver's
// own API (C: CUstream, hipStream_t). The queue's work is in order with other work of the stream:
// an operation runs after the work that the stream has received before the operation is issued, and
// before work that the stream receives later. To learn when an operation has been issued, call
// [gpu.Semaphore.WaitIssued] for a point that the operation signals.
//
// The queue behaves like the device's own queues and has the stream's priority, with these
// differences. [gpu.Device.Queue] and [gpu.Device.Pick] do not return it. Other code may put long
// or blocking work into the stream, and the queue's work behind it waits as long. So use another
// queue for work that must not wait for other code. The queue cannot allocate or free pool memory:
// the error is [gpu.ErrUnsupported]. Allocate and free on one of the device's own queues, and order
// the two queues by semaphores. When a lost device is closed, or Close gives up, the queue's work
// counts as ended, also for [gpu.Order].Free. But the stream may still be running the work, since
// the device cannot end the stream.
//
// The caller keeps ownership of the stream, may use it meanwhile from any thread, and must keep it
// until the queue is closed ([gpu.Queue.Close]). The stream must be of this device, and, with CUDA,
// of the device's primary context. Default streams are refused, because they differ between
// contexts and threads. Streams of the device's own queues are refused too. Operations that are
// issued while the stream is being captured fail with [driver.ErrBusy], and do not become part of
// the graph. Do not begin a capture while an operation is being issued. AdoptStream blocks while
// the driver does. If the driver cannot adopt streams ([driver.Caps].Adopt), the error is
// [gpu.ErrUnsupported].
func AdoptStream(dev *gpu.Device, stream driver.Stream) (*gpu.Queue, error) {
	const op = "adopt a stream"
	in := gpu.Inside(dev)
	switch err := in.Ready(op); {
	case err != nil:
		return nil, err
	case in.Faces.Adopter == nil:
		return nil, fmt.Errorf("gpu: %s on %s: %w", op, in.Engine.Info.Name, driver.ErrUnsupported)
	case stream == 0:
		return nil, errs.Argument(op, "no stream; the default stream is another one with each context, and cannot be adopted")
	}
	for _, tl := range in.Engine.All() {
		if tl.Stream == stream && !tl.Adopted {
			return nil, errs.Argument(op, "stream %#x is that of %v", uintptr(stream), tl.Queue)
		}
	}
	var tl *engine.Timeline
	err := in.Engine.Do(func() error {
		priority, err := in.Faces.Adopter.AdoptStream(stream)
		if err == nil {
			tl = in.NewQueue(stream, priority)
			tl.Adopted = true
			in.Engine.AddTimeline(tl)
		}
		return err
	})
	if err != nil {
		in.Engine.Check(err)
		return nil, fmt.Errorf("gpu: %s on %s: %w", op, in.Engine.Info.Name, err)
	}
	return tl.Queue.(*gpu.Queue), nil
}
