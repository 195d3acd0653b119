package kernelobject

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
)

// cubin reads a cubin that CheckCubin has accepted. The parameters of its kernels, and of functions
// that they call, are in sections .nv.info.NAME.
func cubin(image []byte, b *budget) Code {
	c := Code{Form: FormCubin, Arch: cubinArch(image)}
	all := sections(image)
	relocatable := elf.Type(binary.LittleEndian.Uint16(image[16:])) == elf.ET_REL
	// Sections and names may overlap. So that reading them does not take long, the total that is
	// read does not exceed the file's size.
	left, names := len(image), len(image)
	fits := func(left *int, n int) bool {
		*left -= n
		return *left >= 0
	}
	for i := range all {
		s := &all[i]
		if name, ok := bytes.CutPrefix(s.name, []byte(".nv.info.")); ok && fits(&names, len(s.name)) && b.kernel(len(name)) {
			k := Kernel{Name: string(name), Called: true}
			if fits(&left, len(s.data)) {
				k.Params, k.Told = kernelParams(s.data, b)
			}
			c.Kernels = append(c.Kernels, k)
		}
	}
	kernels := make(map[string]*Kernel, len(c.Kernels))
	for i := range c.Kernels {
		kernels[c.Kernels[i].Name] = &c.Kernels[i]
	}
	for i := range all {
		s := &all[i]
		if name, ok := bytes.CutPrefix(s.name, []byte(".nv.shared.")); ok && kernels[string(name)] != nil {
			kernels[string(name)].Shared = s.size
		}
	}
	const entry = 0x10 // flag of a symbol that is a kernel
	undefined := make(map[string]bool)
	for i := range all {
		if all[i].kind != elf.SHT_SYMTAB || !fits(&left, len(all[i].data)) {
			continue
		}
		for _, sym := range symbols(all, &all[i]) {
			name := sym.name
			switch bind, typ := elf.ST_BIND(sym.info), elf.ST_TYPE(sym.info); {
			case len(name) == 0, !fits(&names, len(name)):
			case sym.section == elf.SHN_UNDEF:
				if relocatable && bind == elf.STB_GLOBAL && !ofDriver(string(name)) && !undefined[string(name)] && b.variable(len(name)) {
					undefined[string(name)] = true
					c.Undefined = append(c.Undefined, string(name))
				}
			case typ == elf.STT_FUNC:
				if k := kernels[string(name)]; k != nil && sym.other&entry != 0 {
					k.Called = false
				}
			case typ == elf.STT_OBJECT && uint64(sym.section) < uint64(len(all)):
				in := all[sym.section].name
				constant := bytes.Equal(in, []byte(".nv.constant3"))
				if (constant || bytes.Equal(in, []byte(".nv.global")) || bytes.Equal(in, []byte(".nv.global.init"))) && b.variable(len(name)) {
					c.Variables = append(c.Variables, Variable{
						Name: string(name), Size: sym.size, Constant: constant, Init: bytes.HasSuffix(in, []byte(".init")),
						Visible: bind == elf.STB_GLOBAL,
					})
				}
			}
		}
	}
	return c
}

// cubinArch returns a cubin's architecture from the flags in its header.
func cubinArch(image []byte) string {
	flags := binary.LittleEndian.Uint32(image[48:])
	sm := flags & 0xff
	if image[elf.EI_ABIVERSION] >= 8 {
		sm = flags >> 8 & 0xff
	}
	if sm == 0 {
		return ""
	}
	return fmt.Sprintf("sm_%d", sm)
}

// Attributes in .nv.info.NAME, named as in the output of cuobjdump.
const (
	paramCbank     = 0x0a
	kparamInfo     = 0x17
	cbankParamSize = 0x19
	kparamInfoV2   = 0x45
)

// kernelParams reads the parameters in a kernel's attributes. Each attribute has a format, a kind
// and a word; in format 4 the word is the length of data that follow. The parameters' total size is
// an attribute too. The result is false if the last parameter does not end at that size, or if an
// attribute is invalid.
func kernelParams(info []byte, b *budget) ([]Param, bool) {
	type placed struct {
		ordinal, offset, size int
	}
	le := binary.LittleEndian
	var found []placed
	end, size := 0, 0
	for len(info) > 0 {
		if len(info) < 4 || info[0] < 1 || info[0] > 4 {
			return nil, false
		}
		format, kind, word := info[0], info[1], int(le.Uint16(info[2:]))
		info = info[4:]
		var data []byte
		if format == 4 {
			if word > len(info) {
				return nil, false
			}
			data, info = info[:word], info[word:]
		}
		switch kind {
		case kparamInfo, kparamInfoV2: // word: index; halves: number, offset; word: size
			if len(data) != 12 {
				return nil, false
			}
			length := le.Uint32(data[8:])
			if kind == kparamInfo {
				length >>= 18
			}
			if !b.param(0) {
				return nil, false
			}
			p := placed{int(le.Uint16(data[4:])), int(le.Uint16(data[6:])), int(min(length, 1<<20))}
			found = append(found, p)
			end = max(end, p.offset+p.size)
		case cbankParamSize:
			size = max(size, word)
		case paramCbank: // a symbol; halves: offset, size
			if len(data) != 8 {
				return nil, false
			}
			size = max(size, int(le.Uint16(data[6:])))
		}
	}
	if end != size {
		return nil, false
	}
	slices.SortStableFunc(found, func(a, b placed) int { return a.ordinal - b.ordinal })
	params := make([]Param, len(found))
	for i, p := range found {
		if p.ordinal == i { // all parameters before p are known, and so is p's position
			params[i].Size = p.size
		}
	}
	return params, true
}

// ofDriver reports whether the driver may define a symbol: printing, the heap, assertions, launches
// from the device, and other names with CUDA's prefixes.
func ofDriver(symbol string) bool {
	switch symbol {
	case "vprintf", "vfprintf", "malloc", "free":
		return true
	}
	return strings.HasPrefix(symbol, "__") || strings.HasPrefix(symbol, "cuda") || strings.HasPrefix(symbol, "cnp")
}
