package nvtx

import (
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/puregpu/puregpu/runtime/dl"
)

// A call is the memory for one call of the tool's functions. It is on the heap, so it stays in
// place if the tool calls back into Go.
type call struct {
	frame struct {
		dl.Frame
		args [3]uintptr
	}
	attributes attributes
	text       []byte
}

// attributes is nvtxEventAttributes_t.
type attributes struct {
	version     uint16
	size        uint16
	category    uint32
	colorType   int32
	color       uint32
	payloadType int32
	_           int32
	payload     uint64
	messageType int32
	message     uintptr
}

// Types of the message in attributes.
const (
	messageASCII      = 1
	messageRegistered = 3
)

// colorARGB is the type of the colour in attributes.
const colorARGB = 1

var calls = sync.Pool{New: func() any { return new(call) }}

// maxText bounds the memory that a call keeps for texts.
const maxText = 4096

// put makes the memory available to another call.
func (c *call) put() {
	if cap(c.text) > maxText {
		c.text = nil
	}
	calls.Put(c)
}

// do calls a function of the tool, if the tool has it. Every call passes three arguments; a C
// function with fewer parameters ignores the rest.
func (c *call) do(module, function int, args ...uintptr) uintptr {
	fn := atomic.LoadUintptr(&tables.slots[module][function])
	if fn == 0 {
		return 0
	}
	f := &c.frame
	clear(f.args[copy(f.args[:], args):])
	if !dl.Fast {
		r, _ := dl.CallAddr(fn, f.args[0], f.args[1], f.args[2])
		runtime.KeepAlive(c)
		return r
	}
	f.Fn, f.Ret = fn, 0
	dl.Call(3, unsafe.Pointer(f))
	return f.Ret
}

// cString returns the address of a C string with the text, up to the text's first NUL. The address
// is valid until cString is called again.
func (c *call) cString(text string) uintptr {
	if i := strings.IndexByte(text, 0); i >= 0 {
		text = text[:i]
	}
	c.text = append(append(c.text[:0], text...), 0)
	return uintptr(unsafe.Pointer(&c.text[0]))
}

// event returns the address of the attributes of an event in a domain with the given handle.
func (c *call) event(e *Event, domain uintptr) uintptr {
	a := &c.attributes
	*a = attributes{version: version, size: uint16(unsafe.Sizeof(*a)), category: e.Category, payloadType: e.Payload.kind, payload: e.Payload.bits}
	if e.Color != 0 {
		a.colorType, a.color = colorARGB, uint32(e.Color)
	}
	text := e.Message
	if s := e.String; s != nil {
		text = s.text
		if s.domain == e.Domain {
			a.message = s.register(c, domain)
		}
	}
	if a.messageType = messageRegistered; a.message == 0 {
		a.messageType, a.message = messageASCII, c.cString(text)
	}
	return uintptr(unsafe.Pointer(a))
}
