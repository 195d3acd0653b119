package gpu

import (
	"unsafe"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/internal/engine"
	"github.com/puregpu/puregpu/runtime/internal/errs"
	"github.com/puregpu/puregpu/runtime/internal/memory"
	"github.com/puregpu/puregpu/runtime/internal/recording"
)

// A MemKind is a kind of memory.
type MemKind = driver.MemKind

// Kinds of memory.
const (
	DeviceMem  = driver.DeviceMem  // the device's own memory
	HostMem    = driver.HostMem    // pinned host memory, accessible to all devices of the driver
	ManagedMem = driver.ManagedMem // memory with one address for the host and devices
	CommMem    = driver.CommMem    // DeviceMem that package collective can register; the driver must have communicators

	// WriteCombinedMem is like HostMem, but for data that the host writes sequentially and
	// completely and hardly ever reads. Devices may read it faster. The host reads it very slowly.
	WriteCombinedMem = driver.WriteCombinedMem

	// ShareableMem is the device's own memory that processes share by a file: see ExportMemoryFile
	// of package interop. Other devices cannot use it in kernels and fills, or to write values and
	// wait for values, even if they have access to the device's other memory. Copies from and to
	// any device work. ShareableMem is allocated in whole pages, mostly of 2 MiB. CUDA on Linux and
	// the simulated GPU support it ([driver.Caps].MemSharing).
	ShareableMem = driver.ShareableMem
)

// Alignment is the alignment of allocated memory in bytes: the address of each allocation that is
// not empty is a multiple of Alignment.
const Alignment = memory.Alignment

// A Buffer is memory. The memory is freed when the buffer has been closed and no submission,
// command buffer or pool holds the buffer any more. [Free] frees memory that [Alloc] allocated, in
// the order of a queue's work.
type Buffer memory.Buffer

// in returns the buffer of package memory.
func (b *Buffer) in() *memory.Buffer { return (*memory.Buffer)(b) }

// Has reports whether the device supports a kind of memory. For CommMem, it reports whether the
// driver supports communicators. Only [Device.Alloc] finds out whether the library for
// communicators is installed.
func (d *Device) Has(kind MemKind) bool {
	if d.isZero() {
		return false
	}
	switch kind {
	case DeviceMem, HostMem, WriteCombinedMem:
		return true
	case ManagedMem:
		return d.native.Caps.Managed
	case CommMem:
		return d.native.Caps.Comms
	case ShareableMem:
		return d.faces.MemSharing != nil
	}
	return false
}

// Alloc allocates a buffer of size bytes. It blocks while the driver allocates. If the device does
// not support the kind of memory, the error is [ErrUnsupported]. A buffer of 0 bytes has no memory,
// so it may be of any kind. If there is no memory, Alloc waits for up to a second while closed
// buffers that are no longer used, and unused memory of pools, are freed. Then Alloc tries once
// more. If the second attempt fails too, the error is [ErrOutOfMemory]. While a stream waits for
// other code, such as a value in memory, nothing is freed.
func (d *Device) Alloc(kind MemKind, size uint64) (*Buffer, error) {
	if d.isZero() {
		return nil, errs.Zero("alloc", "Device")
	}
	b, err := d.memory.Alloc(kind, size)
	return (*Buffer)(b), err
}

// ImportHost makes a buffer from the program's own memory and pins it for all devices of the
// driver, so that transfers need no extra copy. It blocks while the driver pins the memory. If the
// device cannot pin memory, the error is [ErrUnsupported].
//
// The memory must stay allocated, at the same address, until the buffer has been closed and is no
// longer used. Then the function freed, unless it is nil, is called on a goroutine of its own. If
// closing the device leaves native objects to the driver, freed may never be called.
//
// The same memory may be imported again on this device when its buffer has been closed and the work
// that uses the buffer is done. The second ImportHost waits until the driver has unpinned the
// memory, but for at most about a second; then it fails. While a stream waits for other code, such
// as a value in memory, nothing is unpinned. To import the memory on another device, wait for
// freed.
func (d *Device) ImportHost(mem []byte, freed func()) (*Buffer, error) {
	return d.importHost(mem, freed, false)
}

// ImportHostReadOnly is like [Device.ImportHost], for memory that the device only reads. Operations
// that would write to it return [ErrArgument]. Kernels are not checked, and must not write to it.
// Most NVIDIA devices accept memory that the program itself cannot write, such as a file that is
// mapped for reading.
func (d *Device) ImportHostReadOnly(mem []byte, freed func()) (*Buffer, error) {
	return d.importHost(mem, freed, true)
}

func (d *Device) importHost(mem []byte, freed func(), read bool) (*Buffer, error) {
	if d.isZero() {
		return nil, errs.Zero("import", "Device")
	}
	b, err := d.memory.ImportHost(mem, freed, read)
	return (*Buffer)(b), err
}

// Device returns the device on which the buffer was made, or nil for a nil or zero buffer.
func (b *Buffer) Device() *Device {
	if !b.in().Exists() {
		return nil
	}
	return deviceOf(b.in().Device().Engine)
}

// Kind returns the kind of memory.
func (b *Buffer) Kind() MemKind {
	return b.in().Kind()
}

// Size returns the size in bytes. For growing memory (package growing), it returns how many bytes
// work may use now.
func (b *Buffer) Size() uint64 {
	return b.in().Size()
}

// Ptr returns the address on the device, which is valid until the memory is freed. It is 0 for a
// closed buffer, for pool memory that is not allocated yet or has been freed, and for a buffer of
// [CommandBuffer.Binding] or [CommandBuffer.Scratch].
func (b *Buffer) Ptr() driver.Ptr {
	return b.in().Ptr()
}

// Bytes returns the memory as the host sees it. The slice is nil if the host cannot access the
// memory, and for the buffers for which [Buffer.Ptr] returns 0. Otherwise the slice may be used
// until the memory is freed. Use semaphores to know when its contents are valid.
func (b *Buffer) Bytes() []byte {
	return b.in().Bytes()
}

// All returns the whole buffer as a Range for operations. For a nil buffer, All returns the zero
// Range, which operations refuse.
func (b *Buffer) All() Range { return Range{b, 0, b.Size()} }

// Range returns a part of the buffer; offset and size are in bytes. The operation that uses the
// range checks that the range lies inside the buffer.
func (b *Buffer) Range(offset, size uint64) Range { return Range{b, offset, size} }

// Close releases the buffer, and returns nil. Earlier submissions, and command buffers in which the
// buffer is recorded, may still use it. Later calls that submit or record an operation with the
// buffer return [ErrClosed]. Do not close a buffer before a host call that uses it has returned.
// Closing again does nothing.
func (b *Buffer) Close() error {
	return b.in().Close()
}

// A Range is a part of a buffer, in bytes.
type Range struct {
	Buffer       *Buffer
	Offset, Size uint64
}

// in returns the range as a Range of package memory.
func (r Range) in() memory.Range {
	return memory.Range{Buffer: r.Buffer.in(), Offset: r.Offset, Size: r.Size}
}

// The functions ranges and commands cast slices of Range and Command to slices of the internal
// types. These lines do not compile if the layouts differ.
var (
	_ [unsafe.Offsetof(Range{}.Offset)]struct{} = [unsafe.Offsetof(memory.Range{}.Offset)]struct{}{}
	_ [unsafe.Offsetof(Range{}.Size)]struct{}   = [unsafe.Offsetof(memory.Range{}.Size)]struct{}{}
	_ [unsafe.Sizeof(Command(0))]struct{}       = [unsafe.Sizeof(recording.Command(0))]struct{}{}
)

// ranges returns ranges as Ranges of package memory. It does not copy them: the types have the same
// layout.
func ranges(r []Range) []memory.Range {
	return unsafe.Slice((*memory.Range)(unsafe.Pointer(unsafe.SliceData(r))), len(r))
}

// check checks that the operation op of a queue can use the range, and returns the address of the
// range.
func (r Range) check(op string, q *Queue) (engine.Address, error) {
	return r.in().Check(op, q.dev.mem())
}

// checkTo is like check, for a range that the operation writes.
func (r Range) checkTo(op string, q *Queue) (engine.Address, error) {
	return r.in().CheckTo(op, q.dev.mem())
}
