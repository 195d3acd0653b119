package checkpoint

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
)

// A DType is the type of a tensor's numbers.
type DType uint8

// The types that weights may have. The zero DType is a type that this program does not use.
const (
	BF16   DType = iota + 1 // brain float, 16 bits
	F16                     // IEEE half precision
	F32                     // IEEE single precision
	F8E4M3                  // float, 8 bits: 4 of exponent and 3 of mantissa, without infinities
)

// typesOf has the size and the DType of each type that safetensors names.
var typesOf = map[string]struct {
	size  int64
	dtype DType
}{
	"BF16": {2, BF16}, "F16": {2, F16}, "F32": {4, F32}, "F8_E4M3": {1, F8E4M3},
	"BOOL": {size: 1}, "I8": {size: 1}, "U8": {size: 1}, "F8_E5M2": {size: 1}, "I16": {size: 2}, "U16": {size: 2},
	"I32": {size: 4}, "U32": {size: 4}, "I64": {size: 8}, "U64": {size: 8}, "F64": {size: 8},
}

// String returns the name that safetensors uses.
func (d DType) String() string {
	for name, t := range typesOf {
		if t.dtype == d && d != 0 {
			return name
		}
	}
	return "unsupported"
}

// Size returns the bytes of a number, or 0 for the zero DType.
func (d DType) Size() int { return int(typesOf[d.String()].size) }

// A Tensor is an array of numbers in a file of the checkpoint, in row-major order.
type Tensor struct {
	Name  string
	DType DType
	Shape []int
	Size  int64 // in bytes

	stored string // the type's name in the file
	begin  int64  // offset behind the header
	data   *io.SectionReader
}

// ReadAt reads bytes of the tensor, beginning at the offset off. So a Tensor is an [io.ReaderAt],
// which gpu.ReadFrom takes. ReadAt may be called by several goroutines at the same time.
func (t *Tensor) ReadAt(p []byte, off int64) (int, error) { return t.data.ReadAt(p, off) }

// maxHeader is the largest header that a safetensors file may have.
const maxHeader = 100 << 20

// readHeader returns the tensors of a safetensors file. The file has the length of a JSON header in
// 8 bytes, the header, and the numbers. readHeader checks that the tensors fill the rest of the
// file, in some order, without gaps and without overlaps.
func readHeader(r io.ReaderAt, size int64) ([]*Tensor, error) {
	var length [8]byte
	if _, err := r.ReadAt(length[:], 0); err != nil && size >= 8 {
		return nil, err
	}
	n := binary.LittleEndian.Uint64(length[:])
	if size < 8 || n > maxHeader || int64(n) > size-8 {
		return nil, fmt.Errorf("a header of %d bytes does not fit into the file's %d: truncated, or not safetensors", n, size)
	}
	header := make([]byte, n)
	if k, err := r.ReadAt(header, 8); k < len(header) {
		return nil, err
	}
	start := 8 + int64(n)
	tensors, err := parseHeader(header, size-start)
	if err != nil {
		return nil, fmt.Errorf("header: %w", err)
	}
	var end int64
	for _, t := range tensors {
		t.data = io.NewSectionReader(r, start+t.begin, t.Size)
		if t.begin != end {
			return nil, fmt.Errorf("tensor %s begins at %d, and the one before it ends at %d", t.Name, t.begin, end)
		}
		end = t.begin + t.Size
	}
	if end != size-start {
		return nil, fmt.Errorf("the tensors end at %d, and the file has %d bytes for them: truncated?", end, size-start)
	}
	return tensors, nil
}

// parseHeader returns the tensors that a header lists, sorted by offset.
func parseHeader(header []byte, size int64) ([]*Tensor, error) {
	d := json.NewDecoder(bytes.NewReader(header))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return nil, errors.New("not a JSON object")
	}
	var list []*Tensor
	seen := make(map[string]bool)
	for d.More() {
		t, err := d.Token()
		if err != nil {
			return nil, err
		}
		name := t.(string) // the decoder returns only strings as an object's keys
		if seen[name] {
			return nil, fmt.Errorf("tensor %s is listed twice", name)
		}
		seen[name] = true
		if name == "__metadata__" {
			var metadata map[string]string
			if err := d.Decode(&metadata); err != nil {
				return nil, fmt.Errorf("__metadata__: %w", err)
			}
			continue
		}
		tensor, err := parseTensor(d, size)
		if err != nil {
			return nil, fmt.Errorf("tensor %s: %w", name, err)
		}
		tensor.Name = name
		list = append(list, tensor)
	}
	if _, err := d.Token(); err != nil { // the closing brace
		return nil, err
	}
	if rest := bytes.Trim(header[d.InputOffset():], " \t\r\n"); len(rest) > 0 {
		return nil, fmt.Errorf("%d bytes follow the JSON object", len(rest))
	}
	slices.SortFunc(list, func(a, b *Tensor) int {
		return cmp.Or(cmp.Compare(a.begin, b.begin), cmp.Compare(a.Size, b.Size))
	})
	return list, nil
}

// parseTensor reads one entry of a header and checks that the tensor's numbers lie within size
// bytes.
func parseTensor(d *json.Decoder, size int64) (*Tensor, error) {
	var e struct {
		DType   string  `json:"dtype"`
		Shape   []int   `json:"shape"`
		Offsets []int64 `json:"data_offsets"`
	}
	if err := d.Decode(&e); err != nil {
		return nil, err
	}
	t, ok := typesOf[e.DType]
	if !ok {
		return nil, fmt.Errorf("dtype %q is unknown", e.DType)
	}
	bytes := t.size
	for _, n := range e.Shape {
		if n < 0 || n > 0 && bytes > math.MaxInt64/int64(n) {
			return nil, fmt.Errorf("shape %v is not possible", e.Shape)
		}
		bytes *= int64(n)
	}
	if len(e.Offsets) != 2 || e.Offsets[0] < 0 || e.Offsets[1] < e.Offsets[0] || e.Offsets[1] > size {
		return nil, fmt.Errorf("data_offsets %v do not lie in the file's %d bytes of numbers", e.Offsets, size)
	}
	if got := e.Offsets[1] - e.Offsets[0]; got != bytes {
		return nil, fmt.Errorf("data_offsets %v hold %d bytes, and %s of shape %v has %d", e.Offsets, got, e.DType, e.Shape, bytes)
	}
	return &Tensor{DType: t.dtype, Shape: e.Shape, Size: bytes, stored: e.DType, begin: e.Offsets[0]}, nil
}
