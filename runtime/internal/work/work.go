// Package work says what a piece of work for a device is, and translates it for the driver: into
// calls on a stream, or into nodes of a graph. It knows no queue, buffer or recording: who issues
// an operation finds out where its operands are.
//
// A new kind of operation is a constant here with its name, a case in [Op.Run] and one in
// [Op.Node], and a row in the table of the package's test, which tries every kind.
package work

import "math/bits"

// A Kind is a kind of operation.
type Kind uint8

// The kinds of operations.
const (
	Barrier     Kind = iota
	Fill             // with a pattern of 1, 2 or 4 bytes
	Fill8            // with one of 8 bytes, the halves of which differ
	Copy             // between buffers
	Upload           // from pinned memory
	Download         // to pinned memory
	Prefetch         // of managed memory
	Dispatch         // of a kernel
	Nothing          // takes a place in a stream; in a recording what is left of a command that has nothing to do
	Timestamp        // in recordings
	EventRecord      // of an event that others use as well
	EventWait        // for the last record of such an event
	ValueWrite       // of 64 bits to memory
	ValueWait        // until memory has such a value, or a higher one
	Alloca           // from a pool; this and the following only the runtime can do
	Dealloca         // to a pool
	Execute          // a recording
	Collect          // collective operations of a channel
	Native           // what a function of the program gives to the stream
	HostCall         // of a function of the program; this and the following begin when all waits have been reached
	Notify           // likewise
	Transfer         // in pieces
	kinds            // how many there are
)

var names = [kinds]string{
	"barrier", "fill", "fill", "copy", "upload", "download", "prefetch", "dispatch", "nothing", "timestamp", "event record", "event wait",
	"value write", "value wait", "alloca", "dealloca", "execute", "collective", "native", "host call", "notify", "transfer",
}

// String returns the kind's name in errors.
func (k Kind) String() string { return names[k] }

// Sets of kinds, a bit each.
const (
	plain = 1<<Barrier | 1<<Fill | 1<<Fill8 | 1<<Copy | 1<<ValueWrite | 1<<ValueWait | 1<<Alloca | 1<<Dealloca
)

// Waits reports whether the stream waits for what others bring.
func (k Kind) Waits() bool { return k == EventWait || k == ValueWait }

// Plain reports whether operations of the kind need no more than addresses, devices and an [Op].
func (k Kind) Plain() bool { return plain>>k&1 != 0 }

// OnHost reports whether operations of the kind are calls of functions, on goroutines.
func (k Kind) OnHost() bool { return k >= HostCall }

// ByLane reports whether operations of the kind are issued by a lane.
func (k Kind) ByLane() bool { return k == Collect }

// Unasked reports whether mostly nobody asks when operations of the kind are done, if they signal
// nothing.
func (k Kind) Unasked() bool { return k == Alloca || k == Dealloca }

// An Op is what is done, whatever it is done with. It keeps nothing alive.
type Op struct {
	Kind    Kind
	Unit    uint8  // log2 of the bytes that one of Count is; of all but fills it is 0
	To      uint8  // of a prefetch, the [driver.MemKind]
	Pattern uint32 // of a fill, or the low half of a value
	High    uint32 // the other half of a pattern of 8 bytes, or of a value
	Count   uint64 // what a fill, a copy or a prefetch writes, or an alloca zeroes
}

// IsPattern reports whether memory can be filled with a pattern.
func IsPattern(pattern []byte) bool {
	n := len(pattern)
	return n == 1 || n == 2 || n == 4 || n == 8
}

// SetFill makes the operation one that fills memory with a pattern, and so many bytes, which are a
// multiple of the pattern's.
func (o *Op) SetFill(pattern []byte, bytes uint64) {
	v := uint64(0)
	for i, b := range pattern {
		v |= uint64(b) << (8 * i)
	}
	o.Kind, o.Pattern, o.High, o.Unit = Fill, uint32(v), uint32(v>>32), uint8(bits.TrailingZeros8(uint8(len(pattern))))
	if len(pattern) == 8 {
		if o.Unit = 2; o.Pattern != o.High {
			o.Kind, o.Unit = Fill8, 3
		}
	}
	o.Count = bytes >> o.Unit
}

// SetValue makes the operation one of a kind that is about a value.
func (o *Op) SetValue(kind Kind, value uint64) {
	o.Kind, o.Pattern, o.High = kind, uint32(value), uint32(value>>32)
}

// Value returns the value that an operation is about.
func (o *Op) Value() uint64 { return uint64(o.High)<<32 | uint64(o.Pattern) }

// Copies reports whether the operation is a copy, which may be of another device's memory.
func (o *Op) Copies() bool { return o.Kind == Copy || o.Kind == Upload || o.Kind == Download }

// Bytes returns how many bytes a fill, a copy or a prefetch writes, or an alloca zeroes.
func (o *Op) Bytes() uint64 { return o.Count << o.Unit }

// Cut leaves of a fill or a copy no more than so many bytes.
func (o *Op) Cut(bytes uint64) { o.Count = min(o.Count, bytes>>o.Unit) }
