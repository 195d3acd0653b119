package cufile

import (
	"sync/atomic"
	"unsafe"

	"github.com/puregpu/puregpu/cuda"
)

// A Memory is a piece of device memory: Size bytes, Offset bytes after Base. Base is an address
// returned by [cuda.Library.MemAlloc] or another function that allocates, or the base of a
// [Buffer]. Newer releases accept host memory too: convert its address to a cuda.DevicePtr, and
// keep the memory in place.
type Memory struct {
	Base         cuda.DevicePtr
	Offset, Size int64
}

// A Buffer is device memory pinned for direct transfers. Close unpins it once.
type Buffer struct {
	lib    *Library
	memory Memory
	closed atomic.Bool
}

// NewBuffer pins size bytes of device memory with [Library.BufRegister].
func (l *Library) NewBuffer(base cuda.DevicePtr, size int64) (*Buffer, error) {
	if err := l.BufRegister(base, uint64(size), 0); err != nil {
		return nil, err
	}
	return &Buffer{lib: l, memory: Memory{Base: base, Size: size}}, nil
}

// Memory returns the whole buffer.
func (b *Buffer) Memory() Memory { return b.memory }

// Close unpins the buffer with [Library.BufDeregister]. The memory stays allocated, and must not be
// freed before Close returns. Later calls do nothing.
func (b *Buffer) Close() error {
	if b.closed.Swap(true) {
		return nil
	}
	return b.lib.BufDeregister(b.memory.Base)
}

// SetDevPtr sets DevPtrBase to a device address. The field's Go type is for addresses in host
// memory.
func (p *IOParamsUBatch) SetDevPtr(base cuda.DevicePtr) {
	*(*cuda.DevicePtr)(unsafe.Pointer(&p.DevPtrBase)) = base
}
