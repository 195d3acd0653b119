package gpu

import (
	"bytes"
	"encoding"
	"encoding/binary"

	"github.com/puregpu/puregpu/runtime/driver"
)

var (
	_ encoding.BinaryMarshaler   = MemoryHandle{}
	_ encoding.BinaryUnmarshaler = (*MemoryHandle)(nil)
	_ encoding.BinaryMarshaler   = EventHandle{}
	_ encoding.BinaryUnmarshaler = (*EventHandle)(nil)
)

// A MemoryHandle names memory for other processes of the machine: see [Buffer.Export]. Its fields are what other programs exchange, too:
// with CUDA Handle is a cudaIpcMemHandle_t (C: CUipcMemHandle), as PyTorch and CuPy have it, of the allocation that begins Offset bytes before
// the memory. Encoded by MarshalBinary it is some 120 bytes that say what they are, for Go programs to send to each other; package
// encoding/gob does that by itself.
type MemoryHandle struct {
	Driver string           // that it is of: "cuda"; "" where nobody has told
	Device [16]byte         // UUID of the device whose memory it is; zero where nobody has told
	Handle driver.MemHandle // of the allocation
	Offset uint64           // bytes from the begin of the allocation
	Size   uint64           // bytes
	Pooled bool             // it is of a pool, and Handle a CUmemPoolPtrExportData with CUDA: see [ImportedPool.Import]
}

// An EventHandle names an event for other processes of the machine: see [SharedEvent]. With CUDA Handle is a cudaIpcEventHandle_t
// (C: CUipcEventHandle), as PyTorch and CuPy have it. It is encoded as a [MemoryHandle] is.
type EventHandle struct {
	Driver string             // that it is of: "cuda"; "" where nobody has told
	Device [16]byte           // UUID of the device that it was made on; zero where nobody has told
	Handle driver.EventHandle //
}

// How handles begin when they are encoded: what they are of, and the version of the encoding. Behind that come the driver's name, with
// a byte that says how long it is, the UUID, the handle, and of memory offset and size, eight bytes each, the lowest first.
const (
	memoryMagic = "puregpu memory\x01"
	pooledMagic = "puregpu pooled\x01" // memory of a pool
	eventMagic  = "puregpu event\x01"
)

// MarshalBinary encodes the handle. Its error, of a name of a driver that has more than 255 bytes, is [ErrArgument].
func (h MemoryHandle) MarshalBinary() ([]byte, error) {
	magic := memoryMagic
	if h.Pooled {
		magic = pooledMagic
	}
	data, err := encodeHandle(magic, h.Driver, h.Device, h.Handle)
	if err != nil {
		return nil, err
	}
	data = binary.LittleEndian.AppendUint64(data, h.Offset)
	return binary.LittleEndian.AppendUint64(data, h.Size), nil
}

// UnmarshalBinary decodes what MarshalBinary has encoded. Anything else is [ErrArgument], and changes nothing.
func (h *MemoryHandle) UnmarshalBinary(data []byte) error {
	if h == nil {
		return argument("decode", "no handle to decode to")
	}
	d, magic := decoder{data: data}, memoryMagic
	pooled := bytes.HasPrefix(data, []byte(pooledMagic))
	if pooled {
		magic = pooledMagic
	}
	got := MemoryHandle{Pooled: pooled, Driver: d.begin(magic), Device: d.uuid(), Handle: d.handle(), Offset: d.number(), Size: d.number()}
	if err := d.end("memory"); err != nil {
		return err
	}
	*h = got
	return nil
}

// MarshalBinary encodes the handle. Its error, of a name of a driver that has more than 255 bytes, is [ErrArgument].
func (h EventHandle) MarshalBinary() ([]byte, error) {
	return encodeHandle(eventMagic, h.Driver, h.Device, h.Handle)
}

// UnmarshalBinary decodes what MarshalBinary has encoded. Anything else is [ErrArgument], and changes nothing.
func (h *EventHandle) UnmarshalBinary(data []byte) error {
	if h == nil {
		return argument("decode", "no handle to decode to")
	}
	d := decoder{data: data}
	got := EventHandle{Driver: d.begin(eventMagic), Device: d.uuid(), Handle: d.handle()}
	if err := d.end("event"); err != nil {
		return err
	}
	*h = got
	return nil
}

func encodeHandle(magic, driver string, device [16]byte, handle [64]byte) ([]byte, error) {
	if len(driver) > 255 {
		return nil, argument("encode", "the name of a driver of %d bytes; it can have 255", len(driver))
	}
	data := append([]byte(magic), byte(len(driver)))
	data = append(data, driver...)
	data = append(data, device[:]...)
	return append(data, handle[:]...), nil
}

// A decoder takes data apart. Where that is too short what it returns is zero, and wrong is set.
type decoder struct {
	data  []byte
	wrong bool
}

func (d *decoder) next(n int) []byte {
	if n > len(d.data) {
		d.wrong = true
		return make([]byte, n)
	}
	part := d.data[:n]
	d.data = d.data[n:]
	return part
}

// begin returns the name of the driver.
func (d *decoder) begin(magic string) string {
	d.wrong = string(d.next(len(magic))) != magic || d.wrong
	return string(d.next(int(d.next(1)[0])))
}

func (d *decoder) uuid() [16]byte   { return [16]byte(d.next(16)) }
func (d *decoder) handle() [64]byte { return [64]byte(d.next(64)) }
func (d *decoder) number() uint64   { return binary.LittleEndian.Uint64(d.next(8)) }

// end returns an error unless the data was a handle, and nothing else.
func (d *decoder) end(what string) error {
	if d.wrong || len(d.data) > 0 {
		return argument("decode", "the data is no handle of %s that this version of package gpu knows: give what MarshalBinary has returned, whole", what)
	}
	return nil
}
