package interop

import (
	"github.com/puregpu/puregpu/runtime/gpu"
	"github.com/puregpu/puregpu/runtime/internal/inside"
	"github.com/puregpu/puregpu/runtime/internal/memory"
	"github.com/puregpu/puregpu/runtime/internal/work"
)

// WriteValue returns an Op that writes a 64-bit number below 1<<63 to a range of 8 bytes at an
// address that is a multiple of 8 (C: cuStreamWriteValue64). A reader that finds the number also
// finds everything that the queue's stream wrote before. The reader may be the host with an atomic
// load, another stream with [WaitValue], a kernel, or another process that shares the memory. So
// the number tells code that uses no semaphores how far the stream has come.
//
// The memory may be device memory, [gpu.HostMem], imported, shared, or from a portable pool. It may
// be another device's if [gpu.Fill] could fill it. Managed memory and memory of a driver's pool are
// [gpu.ErrArgument], because CUDA does not support the operation in such memory. Other sizes,
// addresses and numbers are [gpu.ErrArgument] too. WriteValue does not block. If the device does
// not support WriteValue ([driver.Caps].Values), the error is [gpu.ErrUnsupported].
//
// In a recording the value is the same in each execution, and the operation never becomes a node of
// a graph. The operation runs after everything that was recorded before it, and before everything
// recorded later.
func WriteValue(r gpu.Range, value uint64) gpu.Op { return valueOp(work.ValueWrite, r, value) }

// WaitValue returns an Op that waits until the number in a range is at least value (C:
// cuStreamWaitValue64 with CU_STREAM_WAIT_VALUE_GEQ). Later work of the queue's stream runs after
// that, and sees everything that was written before the number. The range, the value and the errors
// are as for [WriteValue]. The writer must write the number as a whole, the host with an atomic
// store, and never write 1<<63 or more.
//
// The stream waits, not the host. No later work of the queue's stream begins before the wait has
// ended, even if no semaphore orders that work after the operation. So use a separate queue for
// such waits, and never put the work that writes the number behind such a wait. If another queue of
// the same device writes the number, submit that work first: the driver does not know this order,
// and its streams may share hardware queues. A driver may also wait for its streams in calls that
// load code. Device memory, code and recordings that the program releases meanwhile are freed
// later: when no stream waits for a number or for another process's event any more. Otherwise the
// driver would block for the wait and delay all other work. If the number is never written, only
// the work behind the wait hangs: in the same native stream, or ordered after the wait by
// semaphores. To recover, fail the semaphore that the wait signals ([gpu.Semaphore.Fail]) and write
// the number, or close the device. Close gives up after ten seconds ([gpu.CloseError]).
//
// In a recording the operation has the same order as [WriteValue].
func WaitValue(r gpu.Range, value uint64) gpu.Op { return valueOp(work.ValueWait, r, value) }

func valueOp(kind work.Kind, r gpu.Range, value uint64) gpu.Op {
	in := memory.Range{Buffer: (*memory.Buffer)(r.Buffer), Offset: r.Offset, Size: r.Size}
	return gpu.OpOf(inside.Op{Kind: kind, Range: in, Value: value})
}
