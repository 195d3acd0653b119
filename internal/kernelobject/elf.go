package kernelobject

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
)

const elfHeader = 64 // size of the header of a 64-bit file

// CheckCubin reports errors in a cubin. It checks the header, and that the tables are within the
// file: a truncated file lacks the table at its end. It does not check sections, since some of
// CUDA's section kinds take no space in the file.
func CheckCubin(image []byte) error {
	if len(image) < elfHeader {
		return fmt.Errorf("an ELF file of %d bytes was cut off", len(image))
	}
	if c, d := classOf(image); c != elf.ELFCLASS64 || d != elf.ELFDATA2LSB {
		return fmt.Errorf("an ELF file of %v and %v is not a cubin for this driver", c, d)
	}
	if m := elf.Machine(binary.LittleEndian.Uint16(image[18:])); m != elf.EM_CUDA {
		return fmt.Errorf("an ELF file for %v is not a cubin", m)
	}
	return checkTables(image, "cubin")
}

// CheckCodeObject reports errors in a code object. It checks the header, and that the tables,
// segments and sections are within the file.
func CheckCodeObject(image []byte) error {
	if len(image) < elfHeader {
		return fmt.Errorf("an ELF file of %d bytes is broken or was cut off", len(image))
	}
	if c, d := classOf(image); c != elf.ELFCLASS64 || d != elf.ELFDATA2LSB {
		return fmt.Errorf("an ELF file of %v and %v is not a code object", c, d)
	}
	le := binary.LittleEndian
	switch m := elf.Machine(le.Uint16(image[18:])); m {
	case elf.EM_AMDGPU:
	case elf.EM_CUDA:
		return errors.New("a cubin is code for NVIDIA's GPUs; one of AMD's takes a code object or a bundle of them, which hipcc --genco writes")
	default:
		return fmt.Errorf("an ELF file for %v is not a code object", m)
	}
	if err := checkTables(image, "code object"); err != nil {
		return fmt.Errorf("an ELF file of %d bytes is broken or was cut off: %w", len(image), err)
	}
	size := uint64(len(image))
	at, entry := le.Uint64(image[32:]), uint64(le.Uint16(image[54:]))
	for i := range uint64(le.Uint16(image[56:])) {
		if entry < 56 {
			return fmt.Errorf("a code object has segment headers of %d bytes", entry)
		}
		p := image[at+i*entry:]
		if off, n := le.Uint64(p[8:]), le.Uint64(p[32:]); n > size || off > size-n {
			return fmt.Errorf("a code object of %d bytes was cut off: its segment %d should be the %d bytes at %d", size, i, n, off)
		}
	}
	for _, s := range sections(image) {
		if s.kind != elf.SHT_NULL && s.kind != elf.SHT_NOBITS && s.data == nil {
			return fmt.Errorf("a code object of %d bytes was cut off: its section %.64q should be the %d bytes at %d", size, s.name, s.size, s.off)
		}
	}
	return nil
}

func classOf(image []byte) (elf.Class, elf.Data) {
	return elf.Class(image[elf.EI_CLASS]), elf.Data(image[elf.EI_DATA])
}

// checkTables reports the first table of a 64-bit ELF file that is not within the file.
func checkTables(image []byte, what string) error {
	le, size := binary.LittleEndian, uint64(len(image))
	for _, t := range []struct {
		name       string
		off        uint64
		entry, num uint16
	}{
		{"program headers", le.Uint64(image[32:]), le.Uint16(image[54:]), le.Uint16(image[56:])},
		{"section headers", le.Uint64(image[40:]), le.Uint16(image[58:]), le.Uint16(image[60:])},
	} {
		if length := uint64(t.entry) * uint64(t.num); length > size || t.off > size-length {
			return fmt.Errorf("a %s of %d bytes was cut off: its %s should be the %d bytes at %d", what, size, t.name, length, t.off)
		}
	}
	return nil
}

// An elfSection is a section of an ELF file. data is nil if the section takes no space in the file
// or is not within it. Package debug/elf rejects cubins: the version in their header is CUDA's.
type elfSection struct {
	name []byte
	kind elf.SectionType
	off  uint64
	size uint64
	link uint32
	data []byte
}

// sections returns the sections of a 64-bit ELF file with a valid header.
func sections(image []byte) (all []elfSection) {
	le, size := binary.LittleEndian, uint64(len(image))
	at, entry := le.Uint64(image[40:]), uint64(le.Uint16(image[58:]))
	if at == 0 || at > size || entry < 64 {
		return nil
	}
	table := image[at:]
	num, index := uint64(le.Uint16(image[60:])), uint32(le.Uint16(image[62:]))
	// Large numbers do not fit into the file's header: they are in the header of the first section.
	if num == 0 && len(table) >= 64 {
		num = le.Uint64(table[32:])
	}
	if index == uint32(elf.SHN_XINDEX) && len(table) >= 64 {
		index = le.Uint32(table[40:])
	}
	var at0 []uint32 // offsets of the sections' names
	for ; num > 0 && uint64(len(table)) >= entry; num-- {
		s := elfSection{kind: elf.SectionType(le.Uint32(table[4:])), link: le.Uint32(table[40:])}
		s.off, s.size = le.Uint64(table[24:]), le.Uint64(table[32:])
		if s.kind != elf.SHT_NOBITS && s.size <= size && s.off <= size-s.size {
			s.data = image[s.off : s.off+s.size]
		}
		all, at0 = append(all, s), append(at0, le.Uint32(table))
		table = table[entry:]
	}
	if uint64(index) < uint64(len(all)) {
		for i := range all {
			all[i].name = cstring(all[index].data, at0[i])
		}
	}
	return all
}

// maxName limits the length of a name, in bytes. Without the limit, a table without zeros could
// give every symbol a long name.
const maxName = 8 << 10

// cstring returns the text at an offset of a table, or nothing if it is too long.
func cstring(b []byte, at uint32) []byte {
	b = b[min(uint64(at), uint64(len(b))):]
	b = b[:min(len(b), maxName)]
	n := bytes.IndexByte(b, 0)
	if n < 0 && len(b) == maxName {
		return nil
	}
	if n < 0 {
		n = len(b)
	}
	return b[:n]
}

// An elfSymbol is a symbol of a table.
type elfSymbol struct {
	name        []byte
	info, other byte
	section     elf.SectionIndex
	size        uint64
}

// symbols returns the symbols of the symbol table s. The parameter all has the file's sections,
// including s.
func symbols(all []elfSection, s *elfSection) (list []elfSymbol) {
	if uint64(s.link) >= uint64(len(all)) {
		return nil
	}
	le, names := binary.LittleEndian, all[s.link].data
	for t := s.data; len(t) >= elf.Sym64Size; t = t[elf.Sym64Size:] {
		list = append(list, elfSymbol{
			name: cstring(names, le.Uint32(t)), info: t[4], other: t[5],
			section: elf.SectionIndex(le.Uint16(t[6:])), size: le.Uint64(t[16:]),
		})
	}
	return list
}
