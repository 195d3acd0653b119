package interop

import (
	"bytes"
	"encoding"
	"encoding/binary"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/internal/errs"
)

var (
	_ encoding.BinaryMarshaler   = MemoryHandle{}
	_ encoding.BinaryUnmarshaler = (*MemoryHandle)(nil)
	_ encoding.BinaryMarshaler   = EventHandle{}
	_ encoding.BinaryUnmarshaler = (*EventHandle)(nil)
)

// A MemoryHandle names memory for other processes of the machine: see [ExportMemory]. Programs that
// are not written in Go can exchange its fields. With CUDA, the field Handle is a
// cudaIpcMemHandle_t (C: CUipcMemHandle), as PyTorch and CuPy use it, unless Pooled is set. Handle
// names the whole allocation, which begins Offset bytes before the memory. MarshalBinary encodes
// the handle in about 120 self-describing bytes, for exchange between Go programs. Package
// encoding/gob calls MarshalBinary.
type MemoryHandle struct {
	Driver string           // the exporting driver, for example "cuda"; "" if unknown
	Device [16]byte         // the UUID of the device that has the memory; zero if unknown
	Handle driver.MemHandle // names the allocation
	Offset uint64           // bytes from the beginning of the allocation
	Size   uint64           // in bytes
	// Pooled says that the memory is from a pool. With CUDA, Handle is then a
	// CUmemPoolPtrExportData: see [Pool.Import].
	Pooled bool
}

// An EventHandle names an event for other processes of the machine: see [Event]. With CUDA, the
// field Handle is a cudaIpcEventHandle_t (C: CUipcEventHandle), as PyTorch and CuPy use it.
// MarshalBinary encodes the EventHandle for exchange between Go programs.
type EventHandle struct {
	Driver string             // the exporting driver, for example "cuda"; "" if unknown
	Device [16]byte           // UUID of the device on which the event was made; zero if unknown
	Handle driver.EventHandle // names the event
}

// Encoded handles begin with a magic string, which says what they name and ends with the version of
// the encoding. Then come a byte with the length of the driver's name, the name, the UUID and the
// handle. An encoded MemoryHandle ends with the fields Offset and Size, eight bytes each, in
// little-endian order.
const (
	memoryMagic = "puregpu memory\x01"
	pooledMagic = "puregpu pooled\x01" // memory of a pool
	eventMagic  = "puregpu event\x01"
)

// MarshalBinary encodes the handle. If the driver's name has more than 255 bytes, the error is
// [gpu.ErrArgument].
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

// UnmarshalBinary decodes the result of MarshalBinary. If data is anything else, the error is
// [gpu.ErrArgument], and the handle stays unchanged.
func (h *MemoryHandle) UnmarshalBinary(data []byte) error {
	if h == nil {
		return errs.Argument("decode", "no handle to decode to")
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

// MarshalBinary encodes the handle. If the driver's name has more than 255 bytes, the error is
// [gpu.ErrArgument].
func (h EventHandle) MarshalBinary() ([]byte, error) {
	return encodeHandle(eventMagic, h.Driver, h.Device, h.Handle)
}

// UnmarshalBinary decodes the result of MarshalBinary. If data is anything else, the error is
// [gpu.ErrArgument], and the handle stays unchanged.
func (h *EventHandle) UnmarshalBinary(data []byte) error {
	if h == nil {
		return errs.Argument("decode", "no handle to decode to")
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
		return nil, errs.Argument("encode", "the name of a driver of %d bytes; it can have 255", len(driver))
	}
	data := append([]byte(magic), byte(len(driver)))
	data = append(data, driver...)
	data = append(data, device[:]...)
	return append(data, handle[:]...), nil
}

// A decoder reads the parts of an encoded handle. If the data is too short, the decoder's methods
// return zeros and set decoder.wrong.
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

// begin reads the magic string and the driver's name, and returns the name. If the data has another
// magic string, begin sets d.wrong.
func (d *decoder) begin(magic string) string {
	d.wrong = string(d.next(len(magic))) != magic || d.wrong
	return string(d.next(int(d.next(1)[0])))
}

func (d *decoder) uuid() [16]byte   { return [16]byte(d.next(16)) }
func (d *decoder) handle() [64]byte { return [64]byte(d.next(64)) }
func (d *decoder) number() uint64   { return binary.LittleEndian.Uint64(d.next(8)) }

// end returns an error if decoding has failed or bytes are left.
func (d *decoder) end(what string) error {
	if d.wrong || len(d.data) > 0 {
		return errs.Argument("decode", "the data is no handle of %s that this version of package interop knows: give what MarshalBinary has returned, whole", what)
	}
	return nil
}
