package main

// An api is the calls that the raw side makes, on its thread, with two streams, some events and a buffer.
type api interface {
	fill(stream int) error
	record(event, stream int) error
	query(event int) (done bool, err error)
	wait(stream, event int) error
	close() error
}

const (
	fillSize    = 4096 // bytes
	fillPattern = 0x01020304
	rawStreams  = 2
	rawEvents   = 64 // recorded anew again and again, as hand-written programs do
)
