// Package work defines the operations that a device executes, and translates them for the driver:
// into native calls on a stream, or into nodes of a graph. It does not know queues, buffers or
// recordings. The caller that issues an operation provides the addresses of its operands.
//
// To add a kind of operation, add a constant and its name here, and cases in [Op.Run] and
// [Op.Node]. Add a row to the table of the package's test, which tries every kind.
package work

import (
	"encoding/binary"
	mathbits "math/bits"
)

// A Kind is a kind of operation.
type Kind uint8

// The kinds of operations.
const (
	Barrier     Kind = iota
	Fill             // fill memory with a pattern of 1, 2 or 4 bytes
	Fill8            // fill memory with a pattern of 8 bytes whose halves differ
	Copy             // copy between buffers
	Upload           // copy from pinned host memory to a buffer
	Download         // copy from a buffer to pinned host memory
	Prefetch         // migrate managed memory to a device or to the host
	Launch           // launch a kernel
	Nothing          // do nothing in the stream; in a recording, a command with nothing to do
	Timestamp        // record a timing event, in a recording
	EventRecord      // record a shared event
	EventWait        // make the stream wait for a shared event
	ValueWrite       // write a 64-bit value to memory
	ValueWait        // make the stream wait until a 64-bit value in memory is at least Op.Value

	// Op.Run cannot translate the following kinds, except Native.
	Alloc   // allocate memory of a pool in stream order
	Free    // free memory of a pool in stream order
	Execute // execute a recording
	Collect // run a group of collective operations of a communicator
	Native  // call a function of the program that issues work to the stream itself

	// The following kinds run on goroutines of the host. They begin when all waits are reached.
	HostCall // call a function of the program
	Notify   // call a function of the program after the signals have been given
	Transfer // upload or download in pieces
	// Control reads a number from memory and executes recordings accordingly. In a recording, nodes
	// of a graph may do this instead of the host.
	Control
	kinds // the number of kinds
)

var names = [kinds]string{
	"barrier", "fill", "fill", "copy", "upload", "download", "prefetch", "launch", "nothing", "timestamp", "event record", "event wait",
	"value write", "value wait", "alloc", "free", "execute", "collective", "native", "host call", "notify", "transfer", "control",
}

// String returns the name of the kind for error messages.
func (k Kind) String() string { return names[k] }

// plain is a set of kinds, with one bit for each kind: see Kind.Plain.
const (
	plain = 1<<Barrier | 1<<Fill | 1<<Fill8 | 1<<Copy | 1<<ValueWrite | 1<<ValueWait | 1<<Alloc | 1<<Free
)

// Waits reports whether operations of the kind make the stream wait for other code: for a shared
// event or for a value in memory.
func (k Kind) Waits() bool { return k == EventWait || k == ValueWait }

// Plain reports whether an [Op] and device addresses are all that operations of the kind need.
func (k Kind) Plain() bool { return plain>>k&1 != 0 }

// OnHost reports whether operations of the kind run on goroutines of the host and not in a stream.
func (k Kind) OnHost() bool { return k >= HostCall }

// ByLane reports whether a communicator's thread issues operations of the kind (see engine.Lane).
func (k Kind) ByLane() bool { return k == Collect }

// Unasked reports whether nobody usually waits for operations of the kind if they have no signals.
func (k Kind) Unasked() bool { return k == Alloc || k == Free }

// An Op is an operation without its operands (addresses, devices, events). It contains no pointers.
type Op struct {
	Kind    Kind
	Unit    uint8  // Count is in units of 1<<Unit bytes; 0 except for fills
	To      uint8  // target of a prefetch, a [driver.MemKind]
	Pattern uint32 // pattern of a fill, or low half of an 8-byte pattern or of a value
	High    uint32 // high half of an 8-byte pattern or of a value
	// Count is the number of units that a fill covers. For a copy or a prefetch it is the number of
	// bytes covered, and for an alloc the number of bytes to set to zero.
	Count uint64
}

// Pattern returns the bytes of a pattern as a number, the first byte lowest. ok reports whether
// Fill supports patterns of this length.
func Pattern(pattern []byte) (bits uint64, ok bool) {
	switch len(pattern) {
	case 1:
		return uint64(pattern[0]), true
	case 2:
		return uint64(binary.LittleEndian.Uint16(pattern)), true
	case 4:
		return uint64(binary.LittleEndian.Uint32(pattern)), true
	case 8:
		return binary.LittleEndian.Uint64(pattern), true
	}
	return 0, false
}

// SetFill makes o a fill of the given number of bytes, a multiple of width. bits has the pattern,
// of width bytes.
func (o *Op) SetFill(bits, width, bytes uint64) {
	o.Kind, o.Pattern, o.High, o.Unit = Fill, uint32(bits), uint32(bits>>32), uint8(mathbits.TrailingZeros64(width))
	if width == 8 {
		if o.Unit = 2; o.Pattern != o.High {
			o.Kind, o.Unit = Fill8, 3
		}
	}
	o.Count = bytes >> o.Unit
}

// SetValue makes o an operation of the given kind with a 64-bit value: ValueWrite or ValueWait.
func (o *Op) SetValue(kind Kind, value uint64) {
	o.Kind, o.Pattern, o.High = kind, uint32(value), uint32(value>>32)
}

// Value returns the 64-bit value of a ValueWrite or ValueWait.
func (o *Op) Value() uint64 { return uint64(o.High)<<32 | uint64(o.Pattern) }

// Copies reports whether the operation copies, and so may involve the memory of another device.
func (o *Op) Copies() bool { return o.Kind == Copy || o.Kind == Upload || o.Kind == Download }

// Bytes returns the number of bytes that a fill, copy or prefetch covers, or that an alloc zeroes.
func (o *Op) Bytes() uint64 { return o.Count << o.Unit }

// Cut shortens a fill or a copy to at most the given number of bytes.
func (o *Op) Cut(bytes uint64) { o.Count = min(o.Count, bytes>>o.Unit) }
