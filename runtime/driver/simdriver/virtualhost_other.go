//go:build !linux || !(amd64 || arm64 || riscv64 || loong64 || ppc64le)

package simdriver

import (
	"fmt"
	"unsafe"

	"github.com/puregpu/puregpu/runtime/driver"
)

// A pageMemory holds the contents of pages while they are not mapped.
type pageMemory struct{ *pageContents }

type pageContents struct {
	data   []byte // nil if the pages are mapped, or were never mapped
	mapped bool
}

// A pageStore makes the physical memory of a device. On this platform mapped pages are the host
// memory at their addresses, so pages can be mapped at one place only.
type pageStore struct{}

func (*pageStore) alloc(uint64) (pageMemory, error) { return pageMemory{new(pageContents)}, nil }

func (*pageStore) free(pageMemory, uint64) {}

func (*pageStore) place(at unsafe.Pointer, m pageMemory, size uint64) error {
	if m.mapped {
		return fmt.Errorf("on this platform the simulator maps pages at one place only: %w", driver.ErrUnsupported)
	}
	b := unsafe.Slice((*byte)(at), size)
	if m.data == nil {
		clear(b)
	}
	copy(b, m.data)
	m.data, m.mapped = nil, true
	return nil
}

func (*pageStore) clear(at unsafe.Pointer, m pageMemory, size uint64) error {
	m.data, m.mapped = append([]byte(nil), unsafe.Slice((*byte)(at), size)...), false
	return nil
}

func reserveHost(size uint64) (unsafe.Pointer, error) {
	if uint64(int(size)) != size || int(size) < 0 {
		return nil, fmt.Errorf("%d bytes of host memory", size)
	}
	return unsafe.Pointer(unsafe.SliceData(make([]uint64, size/8))), nil
}

// freeHost does nothing, because the garbage collector frees the addresses.
func freeHost(unsafe.Pointer, uint64) {}
