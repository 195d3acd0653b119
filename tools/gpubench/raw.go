package main

// An api makes the raw side's calls on one device. It has rawStreams streams, rawEvents events and
// a buffer of fillSize bytes.
type api interface {
	fill(stream int) error
	record(event, stream int) error
	recordTime(stream int) error // record another event, which stores the time
	query(event int) (done bool, err error)
	wait(stream, event int) error
	close() error
	bind() error // make the device current on the thread
	unbind() error

	// The next methods need two devices. other is another device of the same driver.
	follow(stream int, other api, event int) error                 // wait for an event of the device other
	copyTo(stream int, other api, dst, src uint64, n uint64) error // copy bytes from this device to the device other

	// The next methods need a device with memory pools.
	keep() error                                  // keep freed memory in the current pool, as package gpu does
	alloc(stream int) (address uint64, err error) // allocate allocSize bytes from the current pool
	free(stream int, address uint64) error
	fillAt(stream int, address uint64) error // fill the first fillSize bytes

	load() error // load the empty kernel for the calls below
	launch(stream int) error
	chain(n int) (rawGraph, error) // needs a device with graphs
}

// A rawGraph is a graph of empty kernels, one after the other.
type rawGraph interface {
	set(node int, to uint64) error // set the argument of a node's kernel, for later launches
	launch(stream int) error
	close() error
}

const (
	fillSize    = 4096 // bytes
	fillPattern = 0x01020304
	allocSize   = 1 << 20
	rawStreams  = 2
	rawEvents   = 64 // recorded again and again in turn, as hand-written programs do
)
