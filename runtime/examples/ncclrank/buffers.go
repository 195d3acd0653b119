package main

import (
	"errors"
	"fmt"
	"unsafe"

	"github.com/puregpu/puregpu/cuda"
)

// buffers are what a reduction reads and writes: the send buffer holds 0, 1, 2 and so on.
type buffers struct {
	lib        *cuda.Library
	stream     cuda.Stream
	send, recv cuda.DevicePtr
	host       []float32
}

func newBuffers(lib *cuda.Library, n int) (_ *buffers, err error) {
	b := &buffers{lib: lib, host: make([]float32, n)}
	defer func() {
		if err != nil {
			err = errors.Join(err, b.free())
		}
	}()
	if b.stream, err = lib.StreamCreate(0); err != nil {
		return nil, fmt.Errorf("create a stream: %w", err)
	}
	for _, p := range []*cuda.DevicePtr{&b.send, &b.recv} {
		if *p, err = lib.MemAlloc(b.size()); err != nil {
			return nil, fmt.Errorf("allocate %d bytes: %w", b.size(), err)
		}
	}
	for i := range b.host {
		b.host[i] = float32(i) // exact up to 1<<24
	}
	if err := lib.MemcpyHtoD(b.send, unsafe.Pointer(&b.host[0]), b.size()); err != nil {
		return nil, fmt.Errorf("copy to the device: %w", err)
	}
	return b, nil
}

func (b *buffers) size() uint64 { return uint64(len(b.host)) * 4 }

// clear fills the receive buffer with what no reduction gives: a not-a-number.
func (b *buffers) clear() error {
	if err := b.lib.MemsetD32(b.recv, 0xffffffff, uint64(len(b.host))); err != nil {
		return fmt.Errorf("clear the receive buffer: %w", err)
	}
	// A fill may still be under way when it returns, and the stream of the reduction does not wait for it.
	if err := b.lib.CtxSynchronize(); err != nil {
		return fmt.Errorf("wait for the fill: %w", err)
	}
	return nil
}

// check waits for the reduction and compares: of one rank the sum and the average are what the rank sent.
func (b *buffers) check() error {
	if err := b.lib.StreamSynchronize(b.stream); err != nil {
		return fmt.Errorf("wait for the stream: %w", err)
	}
	clear(b.host)
	if err := b.lib.MemcpyDtoH(unsafe.Pointer(&b.host[0]), b.recv, b.size()); err != nil {
		return fmt.Errorf("copy from the device: %w", err)
	}
	for i, got := range b.host {
		if got != float32(i) {
			return fmt.Errorf("element %d of %d is %v, want %d", i, len(b.host), got, i)
		}
	}
	return nil
}

// free gives back what newBuffers took, as far as it came.
func (b *buffers) free() (err error) {
	for _, p := range []cuda.DevicePtr{b.send, b.recv} {
		if p != 0 {
			err = errors.Join(err, b.lib.MemFree(p))
		}
	}
	if b.stream != 0 {
		err = errors.Join(err, b.lib.StreamDestroy(b.stream))
	}
	return err
}
