package model

import (
	"encoding/binary"
	"fmt"
	"io"
	"math"

	"github.com/puregpu/puregpu/runtime/examples/llama/internal/checkpoint"
	"github.com/puregpu/puregpu/runtime/smallfloat"
)

// A source is a tensor as it goes to the device.
type source struct {
	io.ReaderAt
	name      string // the module's name: the weight's name without ".weight"
	rows      int
	size      int64 // bytes
	quantised bool
}

// source returns the weight of a module. Float32 numbers are converted to the model's type.
func (l *loader) source(name string) source {
	t, err := l.ck.Tensor(name + ".weight")
	if err != nil {
		l.fail(err)
		return source{}
	}
	s := source{ReaderAt: t, name: name, rows: t.Shape[0], size: t.Size}
	switch t.DType {
	case l.kind:
	case checkpoint.F8E4M3:
		s.quantised = true
	case checkpoint.F32:
		s.ReaderAt, s.size = narrowed{t, l.kind}, t.Size/2
	default:
		l.fail(fmt.Errorf("model: %s has numbers of type %v, and the embedding is %v: store all in one type", t.Name, t.DType, l.kind))
	}
	return s
}

// strided reads a part of each row of a matrix.
type strided struct {
	io.ReaderAt
	row         int64 // bytes of a whole row
	first, size int64 // bytes of the part
}

func (s strided) ReadAt(p []byte, at int64) (n int, err error) {
	for n < len(p) {
		row, in := at/s.size, at%s.size
		piece := p[n:min(len(p), n+int(s.size-in))]
		k, err := s.ReaderAt.ReadAt(piece, row*s.row+s.first+in)
		n, at = n+k, at+int64(k)
		if k < len(piece) {
			return n, err
		}
	}
	return n, nil
}

// narrowed reads float32 numbers as BFloat16 or Float16.
type narrowed struct {
	io.ReaderAt
	kind checkpoint.DType
}

func (s narrowed) ReadAt(p []byte, at int64) (int, error) {
	wide := make([]byte, 2*len(p))
	n, err := s.ReaderAt.ReadAt(wide, 2*at)
	for i := range n / 4 {
		x := math.Float32frombits(binary.LittleEndian.Uint32(wide[4*i:]))
		bits := uint16(smallfloat.ToBFloat16(x))
		if s.kind == checkpoint.F16 {
			bits = uint16(smallfloat.ToFloat16(x))
		}
		binary.LittleEndian.PutUint16(p[2*i:], bits)
	}
	return n / 2, err
}

// memory reads bytes of the host's memory.
type memory []byte

func (m memory) ReadAt(p []byte, at int64) (int, error) {
	n := copy(p, m[min(at, int64(len(m))):])
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}
