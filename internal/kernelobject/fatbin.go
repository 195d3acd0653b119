package kernelobject

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// A fat binary is a header and entries, each with its own header. The fields needed here are in the
// first 64 bytes of an entry's header; nvcc's headers are longer.
const (
	fatbinMagic      = 0xba55ed50
	fatbinHeader     = 16 // magic, version, size of the header, size of the rest
	fatbinEntry      = 16 // the least size of an entry's header: kind, version, size of the header, size of the rest
	fatbinFullEntry  = 64
	fatbinPTX        = 1
	fatbinCubin      = 2
	fatbinLZ4        = 0x2000
	fatbinZstd       = 0x8000
	fatbinHost64     = 0x11 // flags for a 64-bit host and Linux
	maxUncompressed  = 64 << 20
	fatbinVersion    = 0x0101
	fatbinCubinMinor = 7
)

// A FatbinEntry is an entry of a fat binary.
type FatbinEntry struct {
	Arch string // such as sm_90; "" if unknown
	PTX  bool
	Code []byte // the code as in the file, which may be compressed

	compressed bool   // compressed with LZ4
	zstd       bool   // compressed with zstd, which this package does not read
	size       uint64 // uncompressed size
}

// IsFatbin reports whether an image begins like a fat binary.
func IsFatbin(image []byte) bool {
	return len(image) >= 4 && binary.LittleEndian.Uint32(image) == fatbinMagic
}

// Fatbin lists a fat binary's entries. It refuses an entry whose header is too short: on a length
// of 0 the driver loops forever.
func Fatbin(image []byte) ([]FatbinEntry, error) {
	if len(image) < fatbinHeader {
		return nil, fmt.Errorf("a fat binary of %d bytes was cut off", len(image))
	}
	le := binary.LittleEndian
	header, rest := uint64(le.Uint16(image[6:])), le.Uint64(image[8:])
	if size := uint64(len(image)); header < fatbinHeader || header > size || rest > size-header {
		return nil, fmt.Errorf("a fat binary of %d bytes was cut off: it should have %d after a header of %d", size, rest, header)
	}
	if rest == 0 {
		return nil, errors.New("a fat binary has no code in it")
	}
	var all []FatbinEntry
	for entries := image[header : header+rest]; len(entries) > 0; {
		if len(entries) < fatbinEntry {
			return nil, fmt.Errorf("a fat binary ends with %d bytes that are not an entry", len(entries))
		}
		header, size, left := uint64(le.Uint32(entries[4:])), le.Uint64(entries[8:]), uint64(len(entries))
		if header < fatbinEntry || header > left || size > left-header {
			return nil, fmt.Errorf("a fat binary has an entry of %d and %d bytes in the last %d", header, size, left)
		}
		e := FatbinEntry{PTX: le.Uint16(entries) == fatbinPTX, Code: entries[header : header+size]}
		if header >= fatbinFullEntry {
			if sm := le.Uint32(entries[28:]); sm > 0 && sm < 1000 {
				e.Arch = fmt.Sprintf("sm_%d", sm)
			}
			flags := le.Uint64(entries[40:])
			if used := uint64(le.Uint32(entries[16:])); used > 0 && used <= size { // the bytes after used are padding
				e.Code = e.Code[:used]
			}
			e.compressed, e.zstd, e.size = flags&fatbinLZ4 != 0, flags&fatbinZstd != 0, le.Uint64(entries[56:])
		}
		all = append(all, e)
		entries = entries[header+size:]
	}
	return all, nil
}

// unpack returns the entry's uncompressed code. It returns false if it cannot undo the compression
// or the code exceeds the budget.
func (e *FatbinEntry) unpack(b *budget) ([]byte, bool) {
	switch {
	case e.zstd:
		return nil, false
	case !e.compressed:
		return e.Code, true
	case e.size > maxUncompressed || e.size/256 > uint64(len(e.Code)): // LZ4 cannot compress 256 bytes into one
		return nil, false
	case !b.take(e.size):
		return nil, false
	}
	return lz4(e.Code, int(e.size))
}

// read reads the entry's code. It returns false for a form or a compression that it does not
// support, and for broken code.
func (e *FatbinEntry) read(b *budget) (Code, bool) {
	image, ok := e.unpack(b)
	if !ok {
		return Code{}, false
	}
	var c Code
	switch FormOf(image) {
	case FormCubin:
		if CheckCubin(image) != nil {
			return Code{}, false
		}
		c = cubin(image, b)
	case FormPTX:
		text, _, _ := bytes.Cut(image, []byte{0})
		c = ptx(text, b)
	default:
		return Code{}, false
	}
	if e.Arch != "" {
		c.Arch = e.Arch
	}
	return c, true
}

// lz4 decompresses an LZ4 block.
func lz4(src []byte, size int) ([]byte, bool) {
	dst := make([]byte, 0, size)
	// length returns a length: n, from the token, plus the bytes that follow if n is 15.
	length := func(n int) (int, bool) {
		if n != 15 {
			return n, true
		}
		for {
			if len(src) == 0 || n > size {
				return 0, false
			}
			b := src[0]
			src = src[1:]
			n += int(b)
			if b != 255 {
				return n, true
			}
		}
	}
	for len(src) > 0 {
		token := src[0]
		src = src[1:]
		n, ok := length(int(token >> 4))
		if !ok || n > len(src) || n > size-len(dst) {
			return nil, false
		}
		dst, src = append(dst, src[:n]...), src[n:]
		if len(src) == 0 {
			break // the last sequence has only literals
		}
		if len(src) < 2 {
			return nil, false
		}
		back := int(binary.LittleEndian.Uint16(src))
		src = src[2:]
		if n, ok = length(int(token & 15)); !ok {
			return nil, false
		}
		n += 4
		if back == 0 || back > len(dst) || n > size-len(dst) {
			return nil, false
		}
		for from := len(dst) - back; n > 0; { // copied in steps: the copy may include bytes that it has just written
			part := dst[from:min(len(dst), from+n)]
			dst, n = append(dst, part...), n-len(part)
		}
	}
	return dst, len(dst) == size
}

// MakeFatbin makes an uncompressed fat binary of cubins and PTX, each for its own architecture.
func MakeFatbin(images ...[]byte) ([]byte, error) {
	le := binary.LittleEndian
	out := make([]byte, fatbinHeader)
	for i, image := range images {
		codes, err := Read(image)
		if err != nil {
			return nil, fmt.Errorf("image %d: %w", i, err)
		}
		kind, minor, major := uint16(0), uint16(0), uint16(0)
		switch FormOf(image) {
		case FormPTX:
			kind = fatbinPTX
			minor, major = ptxVersion(image)
			image = append(bytes.TrimRight(image, "\x00"), 0)
		case FormCubin:
			kind, minor, major = fatbinCubin, fatbinCubinMinor, 1
		default:
			return nil, fmt.Errorf("image %d is a %s, but a fat binary holds cubins and PTX", i, FormOf(image))
		}
		sm, err := strconv.ParseUint(strings.TrimPrefix(codes[0].Arch, "sm_"), 10, 16)
		if err != nil { // an architecture for only one device, such as sm_90a
			return nil, fmt.Errorf("image %d is for %q, which is not supported: use nvcc -fatbin", i, codes[0].Arch)
		}
		e := make([]byte, fatbinFullEntry+8)
		le.PutUint16(e, kind)
		le.PutUint16(e[2:], fatbinVersion)
		le.PutUint32(e[4:], uint32(len(e)))
		padded := (len(image) + 7) &^ 7
		le.PutUint64(e[8:], uint64(padded))
		le.PutUint16(e[24:], minor)
		le.PutUint16(e[26:], major)
		le.PutUint32(e[28:], uint32(sm))
		le.PutUint64(e[40:], fatbinHost64)
		out = append(append(out, e...), image...)
		out = append(out, make([]byte, padded-len(image))...)
	}
	le.PutUint32(out, fatbinMagic)
	le.PutUint16(out[4:], 1)
	le.PutUint16(out[6:], fatbinHeader)
	le.PutUint64(out[8:], uint64(len(out)-fatbinHeader))
	return out, nil
}

// ptxVersion returns the PTX version that a text states.
func ptxVersion(text []byte) (minor, major uint16) {
	_, rest, _ := bytes.Cut(text, []byte(".version"))
	fmt.Sscanf(string(rest[:min(len(rest), 32)]), " %d.%d", &major, &minor)
	return minor, major
}
