package model

import (
	"fmt"

	"github.com/puregpu/puregpu/runtime/gpu"
)

// A layout divides device memory into ranges, one after the other. If mem is nil, the layout only
// counts the bytes.
type layout struct {
	mem  *gpu.Buffer
	used uint64
	err  error // the first error
}

func (l *layout) fail(err error) {
	if l.err == nil {
		l.err = err
	}
}

// take returns the next size bytes of the memory.
func (l *layout) take(size uint64) gpu.Range {
	at := l.used
	l.used += (size + gpu.Alignment - 1) / gpu.Alignment * gpu.Alignment
	if l.mem == nil {
		return gpu.Range{}
	}
	return l.mem.Range(at, size)
}

// takeSlice returns memory for n elements.
func takeSlice[T any](l *layout, n int) gpu.Slice[T] {
	r := l.take(uint64(n) * uint64(len(gpu.BytesOf(make([]T, 1)))))
	if l.mem == nil {
		return gpu.Slice[T]{}
	}
	s, err := gpu.SliceOf[T](r)
	if err != nil {
		l.fail(err)
	}
	return s
}

// sized returns n bytes as text, in MB or GB.
func sized(n uint64) string {
	if n < 1e9 {
		return fmt.Sprintf("%.1f MB", float64(n)/1e6)
	}
	return fmt.Sprintf("%.1f GB", float64(n)/1e9)
}
