package hipdriver

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"unsafe"

	"github.com/puregpu/puregpu/hip"
)

// The library gets the address of an image and no length. It believes what the image says of its size, so this file makes
// sure that an image is one, and whole, before the library reads past its end.

const (
	bundleMagic     = "__CLANG_OFFLOAD_BUNDLE__"
	compressedMagic = "CCOB"
	page            = 4096 // what the library may look at of any image, and how the code objects in a bundle are aligned
)

// inspect reports what form an image has, and for a bundle what it has code for. An error says why a device of an
// architecture cannot take it. Devices that are none of AMD's take what they will.
func inspect(image []byte, arch string) (form string, targets []string, _ error) {
	bad := func(err error) (string, []string, error) {
		return "", nil, fmt.Errorf("%w: %w", err, hip.ErrorInvalidImage)
	}
	switch {
	case len(image) == 0:
		return bad(fmt.Errorf("the image is empty"))
	case arch != "" && !strings.HasPrefix(arch, "gfx"):
		return "image", nil, nil
	case bytes.HasPrefix(image, []byte(elf.ELFMAG)):
		if err := checkCodeObject(image); err != nil {
			return bad(err)
		}
		return "code object", nil, nil
	case bytes.HasPrefix(image, []byte(bundleMagic)):
		targets, err := checkBundle(image)
		if err != nil {
			return bad(err)
		}
		return "bundle", targets, nil
	case bytes.HasPrefix(image, []byte(compressedMagic)):
		if err := checkCompressed(image); err != nil {
			return bad(err)
		}
		return "compressed bundle", nil, nil
	case isPTX(image):
		return bad(fmt.Errorf("PTX is code for NVIDIA's GPUs; one of AMD's takes a code object or a bundle of them, which hipcc --genco writes"))
	}
	return bad(fmt.Errorf("neither a code object nor a bundle of them, which hipcc --genco writes; it begins with %q", image[:min(len(image), 16)]))
}

// checkCodeObject reports what is wrong with an ELF file.
func checkCodeObject(image []byte) error {
	f, err := elf.NewFile(bytes.NewReader(image))
	if err != nil {
		return fmt.Errorf("an ELF file of %d bytes is broken or was cut off: %w", len(image), err)
	}
	switch {
	case f.Class != elf.ELFCLASS64 || f.Data != elf.ELFDATA2LSB:
		return fmt.Errorf("an ELF file of %v and %v is no code object", f.Class, f.Data)
	case f.Machine == elf.EM_CUDA:
		return fmt.Errorf("a cubin is code for NVIDIA's GPUs; one of AMD's takes a code object or a bundle of them, which hipcc --genco writes")
	case f.Machine != elf.EM_AMDGPU:
		return fmt.Errorf("an ELF file for %v is no code object", f.Machine)
	}
	size := uint64(len(image))
	for i, p := range f.Progs {
		if p.Filesz > size || p.Off > size-p.Filesz {
			return fmt.Errorf("a code object of %d bytes was cut off: its segment %d should be the %d bytes at %d", size, i, p.Filesz, p.Off)
		}
	}
	for _, s := range f.Sections {
		if s.Type != elf.SHT_NULL && s.Type != elf.SHT_NOBITS && (s.FileSize > size || s.Offset > size-s.FileSize) {
			return fmt.Errorf("a code object of %d bytes was cut off: its section %q should be the %d bytes at %d", size, s.Name, s.FileSize, s.Offset)
		}
	}
	return nil
}

// checkBundle goes through a bundle's entries, and returns what architectures those for devices are for.
func checkBundle(image []byte) (targets []string, _ error) {
	le, size := binary.LittleEndian, uint64(len(image))
	at := uint64(len(bundleMagic))
	room := func(n uint64) error {
		if n > size-at {
			return fmt.Errorf("a bundle of %d bytes was cut off in its list of entries", size)
		}
		return nil
	}
	if err := room(8); err != nil {
		return nil, err
	}
	entries := le.Uint64(image[at:])
	at += 8
	for i := range entries {
		if err := room(24); err != nil {
			return nil, err
		}
		offset, length, name := le.Uint64(image[at:]), le.Uint64(image[at+8:]), le.Uint64(image[at+16:])
		at += 24
		if err := room(name); err != nil {
			return nil, err
		}
		id := string(image[at : at+name])
		at += name
		if length > size || offset > size-length {
			return nil, fmt.Errorf("a bundle of %d bytes was cut off: its entry %d, %q, should be the %d bytes at %d", size, i, id, length, offset)
		}
		// hipv4-amdgcn-amd-amdhsa--gfx90a:sramecc+:xnack-
		if _, target, ok := strings.Cut(id, "--"); ok && strings.HasPrefix(id, "hip") && !slices.Contains(targets, target) {
			targets = append(targets, target)
		}
	}
	if entries == 0 {
		return nil, fmt.Errorf("a bundle has no code in it")
	}
	return targets, nil
}

// checkCompressed reports what is wrong with the head of a compressed bundle. Its first version does not tell its size.
func checkCompressed(image []byte) error {
	le, size := binary.LittleEndian, uint64(len(image))
	if size < 24 {
		return fmt.Errorf("a compressed bundle of %d bytes was cut off", size)
	}
	want := uint64(0)
	switch le.Uint16(image[4:]) {
	case 2:
		want = uint64(le.Uint32(image[8:]))
	case 3:
		want = le.Uint64(image[8:])
	}
	if want > size {
		return fmt.Errorf("a compressed bundle of %d bytes was cut off: it should have %d", size, want)
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

// keep returns a copy of an image for the library to read as long as it likes: at the beginning of a page, with a page's
// worth of it to look at, and with NULs behind.
func keep(image []byte) []byte {
	b := make([]byte, page+max(page, len(image)+1))
	skip := -uintptr(unsafe.Pointer(unsafe.SliceData(b))) % page
	b = b[skip:]
	copy(b, image)
	return b[:max(page, len(image)+1)]
}
