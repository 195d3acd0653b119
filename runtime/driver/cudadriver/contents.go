package cudadriver

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"slices"
	"strings"
)

// The driver tells the size of a kernel's parameter by its number, and how many there are only by failing for the first
// that is not there. Debuggers and compute-sanitizer count that failure as the program's. Images tell the number as well:
// PTX declares the parameters, and a cubin has them in a section .nv.info.<kernel>. This file reads it from there. It
// trusts nothing: of what it does not understand it says nothing.

// contents is what an image says of its code.
type contents struct {
	params map[string]int // by kernel, its number of parameters, or untold; of a cubin's other functions it is of no use

	// undefined are the symbols that a relocatable cubin refers to and that neither it nor the driver defines.
	undefined []string
}

// untold stands for a number of parameters that the image does not tell.
const untold = -1

// note notes a kernel. A fat binary has it for each architecture; one that is compressed says nothing.
func (c *contents) note(kernel string, params int) {
	if had, ok := c.params[kernel]; ok && had != params {
		params = untold
	}
	if c.params == nil {
		c.params = map[string]int{}
	}
	c.params[kernel] = params
}

// number returns how many parameters a kernel has, or untold.
func (c *contents) number(kernel string) int {
	if n, ok := c.params[kernel]; ok {
		return n
	}
	return untold
}

// inspect reads an image that prepare has found to be whole.
func inspect(image []byte) *contents {
	c := new(contents)
	if len(image) >= fatbinHeader && binary.LittleEndian.Uint32(image) == fatbinMagic {
		le := binary.LittleEndian
		header, rest := uint64(le.Uint16(image[6:])), le.Uint64(image[8:])
		for entries := image[header : header+rest]; len(entries) > 0; {
			header, size := uint64(le.Uint32(entries[4:])), le.Uint64(entries[8:])
			c.code(entries[header : header+size])
			entries = entries[header+size:]
		}
	} else {
		c.code(image)
	}
	return c
}

// code reads a cubin or PTX.
func (c *contents) code(image []byte) {
	if bytes.HasPrefix(image, []byte(elf.ELFMAG)) {
		if checkCubin(image) == nil {
			c.cubin(image)
		}
	} else if isPTX(image) {
		text, _, _ := bytes.Cut(image, []byte{0})
		c.ptx(text)
	}
}

// An elfSection is a section of a cubin; data is nil if it has none in the file. debug/elf takes no cubin: the version in
// its header is that of CUDA.
type elfSection struct {
	name uint32
	kind elf.SectionType
	link uint32
	data []byte
}

// sections returns the sections of an image that checkCubin has passed, and the table of their names.
func sections(image []byte) (all []elfSection, names []byte) {
	le, size := binary.LittleEndian, uint64(len(image))
	at, entry := le.Uint64(image[40:]), uint64(le.Uint16(image[58:]))
	if at == 0 || at > size || entry < 64 {
		return nil, nil
	}
	table := image[at:]
	num, index := uint64(le.Uint16(image[60:])), uint32(le.Uint16(image[62:]))
	// The header has no room for large numbers. They are in the first section.
	if num == 0 && len(table) >= 64 {
		num = le.Uint64(table[32:])
	}
	if index == uint32(elf.SHN_XINDEX) && len(table) >= 64 {
		index = le.Uint32(table[40:])
	}
	for ; num > 0 && uint64(len(table)) >= entry; num-- {
		s := elfSection{name: le.Uint32(table), kind: elf.SectionType(le.Uint32(table[4:])), link: le.Uint32(table[40:])}
		off, length := le.Uint64(table[24:]), le.Uint64(table[32:])
		if s.kind != elf.SHT_NOBITS && length <= size && off <= size-length {
			s.data = image[off : off+length]
		}
		all = append(all, s)
		table = table[entry:]
	}
	if uint64(index) < uint64(len(all)) {
		names = all[index].data
	}
	return all, names
}

// cubin notes the kernels, and the symbols that are missing.
func (c *contents) cubin(image []byte) {
	const info = ".nv.info."
	all, names := sections(image)
	relocatable := elf.Type(binary.LittleEndian.Uint16(image[16:])) == elf.ET_REL
	for _, s := range all {
		if name := from(names, s.name); bytes.HasPrefix(name, []byte(info)) {
			name, _, _ = bytes.Cut(name[len(info):], []byte{0})
			c.note(string(name), countParams(s.data))
		}
		if relocatable && s.kind == elf.SHT_SYMTAB && uint64(s.link) < uint64(len(all)) {
			c.symbols(s.data, all[s.link].data)
		}
	}
}

// from returns what begins at an offset.
func from(b []byte, at uint32) []byte { return b[min(uint64(at), uint64(len(b))):] }

// Attributes in .nv.info.<kernel>, by the names that cuobjdump prints.
const (
	paramCbank     = 0x0a
	kparamInfo     = 0x17
	cbankParamSize = 0x19
	kparamInfoV2   = 0x45
)

// countParams counts the parameters in the attributes of a kernel. Each attribute has a format, a kind, and a word, which
// for the fourth format is the length of data that follow. What does not add up to the size of all parameters, which is an
// attribute too, is untold.
func countParams(info []byte) int {
	le := binary.LittleEndian
	n, end, size := 0, 0, 0
	for len(info) > 0 {
		if len(info) < 4 || info[0] < 1 || info[0] > 4 {
			return untold
		}
		format, kind, word := info[0], info[1], int(le.Uint16(info[2:]))
		info = info[4:]
		var data []byte
		if format == 4 {
			if word > len(info) {
				return untold
			}
			data, info = info[:word], info[word:]
		}
		switch kind {
		case kparamInfo, kparamInfoV2: // a word for their index, halves for number and offset, a word with the size
			if len(data) != 12 {
				return untold
			}
			length := le.Uint32(data[8:])
			if kind == kparamInfo {
				length >>= 18
			}
			n++
			end = max(end, int(le.Uint16(data[6:]))+int(length))
		case cbankParamSize:
			size = max(size, word)
		case paramCbank: // a symbol, halves for offset and size
			if len(data) != 8 {
				return untold
			}
			size = max(size, int(le.Uint16(data[6:])))
		}
	}
	if end != size {
		return untold
	}
	return n
}

// symbols notes the symbols of a table that neither the image nor the driver defines.
func (c *contents) symbols(table, names []byte) {
	le := binary.LittleEndian
	for ; len(table) >= elf.Sym64Size; table = table[elf.Sym64Size:] {
		if elf.ST_BIND(table[4]) != elf.STB_GLOBAL || elf.SectionIndex(le.Uint16(table[6:])) != elf.SHN_UNDEF {
			continue
		}
		b, _, _ := bytes.Cut(from(names, le.Uint32(table)), []byte{0})
		if name := string(b); name != "" && !ofDriver(name) && !slices.Contains(c.undefined, name) {
			c.undefined = append(c.undefined, name)
		}
	}
}

// ofDriver reports whether the driver may define a symbol: printing, the heap, assertions, launches from the device, and
// whatever else begins like names of CUDA's own.
func ofDriver(symbol string) bool {
	switch symbol {
	case "vprintf", "vfprintf", "malloc", "free":
		return true
	}
	return strings.HasPrefix(symbol, "__") || strings.HasPrefix(symbol, "cuda") || strings.HasPrefix(symbol, "cnp")
}

// ptx notes the kernels of a text: .entry name, and in parentheses a .param for each parameter.
func (c *contents) ptx(text []byte) {
	t := tokens{text}
	for token := t.next(); token != nil; {
		if string(token) != ".entry" {
			token = t.next()
			continue
		}
		kernel, n := string(t.next()), 0
		if kernel == "" {
			return
		}
		if token = t.next(); string(token) == "(" {
			for token = t.next(); token != nil && string(token) != ")"; token = t.next() {
				if string(token) == ".param" {
					n++
				}
			}
			if token == nil {
				n = untold
			}
		}
		c.note(kernel, n)
	}
}

// tokens are the tokens of PTX that are left.
type tokens struct{ text []byte }

// next returns a word, which may begin with a dot and has none inside, or what else there is, a character each. Comments and
// what is in quotes is left out. It returns nil at the end.
func (t *tokens) next() []byte {
	for len(t.text) > 0 {
		b := t.text
		switch {
		case bytes.HasPrefix(b, []byte("//")):
			_, t.text, _ = bytes.Cut(b, []byte("\n"))
		case bytes.HasPrefix(b, []byte("/*")):
			_, t.text, _ = bytes.Cut(b[2:], []byte("*/"))
		case b[0] == '"':
			_, t.text, _ = bytes.Cut(b[1:], []byte(`"`))
		case b[0] <= ' ':
			t.text = b[1:]
		default:
			n := 1
			if b[0] == '.' || inWord(b[0]) {
				for n < len(b) && inWord(b[n]) {
					n++
				}
			}
			t.text = b[n:]
			return b[:n]
		}
	}
	return nil
}

func inWord(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '$' || c == '%'
}
