package cudadriver

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"unsafe"

	"github.com/puregpu/puregpu/cuda"
)

// The driver gets the address of an image and no length. It believes what the image says of its size, so this file makes
// sure that an image is whole before the driver reads past its end.

const (
	fatbinMagic  = 0xba55ed50
	fatbinHeader = 16  // magic, version and size of the header, size of what follows
	fatbinEntry  = 16  // at least: kind, version, size of the entry's header, size of what follows
	elfHeader    = 64  // of 64 bits
	machineCUDA  = 190 // EM_CUDA
)

// prepare checks an image and returns it as the driver takes it, with a word for its form.
func prepare(image []byte) (_ []byte, form string, _ error) {
	switch {
	case len(image) == 0:
		return nil, "", fmt.Errorf("the image is empty: %w", cuda.ErrorInvalidImage)
	case bytes.HasPrefix(image, []byte(elf.ELFMAG)):
		if err := checkCubin(image); err != nil {
			return nil, "", fmt.Errorf("%w: %w", err, cuda.ErrorInvalidImage)
		}
		return aligned(image), "cubin", nil
	case len(image) >= 4 && binary.LittleEndian.Uint32(image) == fatbinMagic:
		if err := checkFatbin(image); err != nil {
			return nil, "", fmt.Errorf("%w: %w", err, cuda.ErrorInvalidImage)
		}
		return aligned(image), "fat binary", nil
	case isPTX(image):
		text := bytes.TrimRight(image, "\x00")
		if i := bytes.IndexByte(text, 0); i >= 0 {
			return nil, "", fmt.Errorf("a NUL byte at %d of %d bytes of PTX would end the text there: %w", i, len(text), cuda.ErrorInvalidImage)
		}
		if len(text) < len(image) {
			return image, "PTX", nil
		}
		return append(bytes.Clone(text), 0), "PTX", nil
	}
	return nil, "", fmt.Errorf("neither PTX, which begins with .version, nor a cubin nor a fat binary; it begins with %q: %w",
		image[:min(len(image), 16)], cuda.ErrorInvalidImage)
}

// checkCubin reports what is wrong with an ELF file. The tables' places are checked, since a file that was cut off lacks
// the one at its end; sections are not, since some of CUDA's own kinds take no room in the file.
func checkCubin(image []byte) error {
	if len(image) < elfHeader {
		return fmt.Errorf("an ELF file of %d bytes was cut off", len(image))
	}
	if elf.Class(image[elf.EI_CLASS]) != elf.ELFCLASS64 || elf.Data(image[elf.EI_DATA]) != elf.ELFDATA2LSB {
		return fmt.Errorf("an ELF file of %v and %v is no cubin for this driver", elf.Class(image[elf.EI_CLASS]), elf.Data(image[elf.EI_DATA]))
	}
	le := binary.LittleEndian
	if m := le.Uint16(image[18:]); m != machineCUDA {
		return fmt.Errorf("an ELF file for %v is no cubin", elf.Machine(m))
	}
	size := uint64(len(image))
	for _, t := range []struct {
		name       string
		off        uint64
		entry, num uint16
	}{
		{"program headers", le.Uint64(image[32:]), le.Uint16(image[54:]), le.Uint16(image[56:])},
		{"section headers", le.Uint64(image[40:]), le.Uint16(image[58:]), le.Uint16(image[60:])},
	} {
		if length := uint64(t.entry) * uint64(t.num); length > size || t.off > size-length {
			return fmt.Errorf("a cubin of %d bytes was cut off: its %s should be the %d bytes at %d", size, t.name, length, t.off)
		}
	}
	return nil
}

// checkFatbin goes through a fat binary's entries as the driver will, which goes round for ever where one has no length.
func checkFatbin(image []byte) error {
	if len(image) < fatbinHeader {
		return fmt.Errorf("a fat binary of %d bytes was cut off", len(image))
	}
	le := binary.LittleEndian
	header, rest := uint64(le.Uint16(image[6:])), le.Uint64(image[8:])
	if size := uint64(len(image)); header < fatbinHeader || header > size || rest > size-header {
		return fmt.Errorf("a fat binary of %d bytes was cut off: it should have %d after a header of %d", size, rest, header)
	}
	if rest == 0 {
		return errors.New("a fat binary has no code in it")
	}
	for entries := image[header : header+rest]; len(entries) > 0; {
		if len(entries) < fatbinEntry {
			return fmt.Errorf("a fat binary ends with %d bytes that are no entry", len(entries))
		}
		header, size, left := uint64(le.Uint32(entries[4:])), le.Uint64(entries[8:]), uint64(len(entries))
		if header < fatbinEntry || header > left || size > left-header {
			return fmt.Errorf("a fat binary has an entry of %d and %d bytes in the last %d", header, size, left)
		}
		entries = entries[header+size:]
	}
	return nil
}

// isPTX reports whether a text begins as PTX has to: with the directive .version, after space and comments.
func isPTX(text []byte) bool {
	for {
		text = bytes.TrimLeft(text, " \t\r\n\f\v")
		switch {
		case bytes.HasPrefix(text, []byte("//")):
			_, text, _ = bytes.Cut(text, []byte("\n"))
		case bytes.HasPrefix(text, []byte("/*")):
			_, text, _ = bytes.Cut(text[2:], []byte("*/"))
		default:
			return bytes.HasPrefix(text, []byte(".version"))
		}
	}
}

// aligned returns image at an address that suits its headers, as C expects of it: a slice can begin anywhere.
func aligned(image []byte) []byte {
	if uintptr(unsafe.Pointer(unsafe.SliceData(image)))%8 == 0 {
		return image
	}
	return bytes.Clone(image)
}
