package main

// An api is the calls that the raw side makes, on its thread, with two streams, some events and a buffer.
type api interface {
	fill(stream int) error
	record(event, stream int) error
	recordTime(stream int) error // one more event, which notes the time
	query(event int) (done bool, err error)
	wait(stream, event int) error
	close() error
	bind() error // make the device current on the thread
	unbind() error

	// With two devices, other being another one of the same kind.
	follow(stream int, other api, event int) error                 // wait for an event of another device
	copyTo(stream int, other api, dst, src uint64, n uint64) error // bytes from this device to another one

	// Where the device has memory pools.
	keep() error                                  // have the current one keep what it has, as package gpu does
	alloc(stream int) (address uint64, err error) // allocSize bytes, from there
	free(stream int, address uint64) error
	fillAt(stream int, address uint64) error // the first fillSize bytes

	load() error // the empty kernel, for what follows
	launch(stream int) error
	chain(n int) (rawGraph, error) // where the device has graphs
}

// A rawGraph is a graph of empty kernels, one after the other.
type rawGraph interface {
	set(node int, to uint64) error // give a kernel an argument, from its next launch on
	launch(stream int) error
	close() error
}

const (
	fillSize    = 4096 // bytes
	fillPattern = 0x01020304
	allocSize   = 1 << 20
	rawStreams  = 2
	rawEvents   = 64 // recorded anew again and again, as hand-written programs do
)
