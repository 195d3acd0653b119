package kernelobject

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
)

const (
	bundleMagic     = "__CLANG_OFFLOAD_BUNDLE__"
	compressedMagic = "CCOB"
)

// A BundleEntry is an entry of a bundle.
type BundleEntry struct {
	ID     string // such as hipv4-amdgcn-amd-amdhsa--gfx90a:sramecc+:xnack-
	Target string // the architecture in the ID; "" for host code
	Code   []byte
}

// Bundle lists a bundle's entries.
func Bundle(image []byte) ([]BundleEntry, error) {
	le, size := binary.LittleEndian, uint64(len(image))
	at := uint64(len(bundleMagic))
	room := func(n uint64) error {
		if at > size || n > size-at {
			return fmt.Errorf("a bundle of %d bytes was cut off in its list of entries", size)
		}
		return nil
	}
	if err := room(8); err != nil {
		return nil, err
	}
	entries := le.Uint64(image[at:])
	at += 8
	var all []BundleEntry
	for i := range entries {
		if err := room(24); err != nil {
			return nil, err
		}
		offset, length, name := le.Uint64(image[at:]), le.Uint64(image[at+8:]), le.Uint64(image[at+16:])
		at += 24
		if err := room(name); err != nil {
			return nil, err
		}
		e := BundleEntry{ID: string(image[at : at+name])}
		at += name
		if length > size || offset > size-length {
			return nil, fmt.Errorf("a bundle of %d bytes was cut off: its entry %d, %.64q, should be the %d bytes at %d", size, i, e.ID, length, offset)
		}
		e.Code = image[offset : offset+length]
		if _, target, ok := strings.Cut(e.ID, "--"); ok && strings.HasPrefix(e.ID, "hip") {
			e.Target = target
		}
		all = append(all, e)
	}
	if entries == 0 {
		return nil, errors.New("a bundle has no code in it")
	}
	return all, nil
}

// CheckCompressed returns an error if a compressed bundle was cut off. A header of version 1 does
// not state the size, so CheckCompressed then only checks that the header is complete.
func CheckCompressed(image []byte) error {
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

// codeObject reads a code object that CheckCodeObject has accepted. The description of its kernels
// is a note in MessagePack.
func codeObject(image []byte, b *budget) Code {
	c := Code{Form: FormCodeObject}
	all := sections(image)
	left, names := len(image), len(image) // limits, so that overlapping sections or names do not take long
	for i := range all {
		s := &all[i]
		if left -= len(s.data); left < 0 {
			break
		}
		switch s.kind {
		case elf.SHT_NOTE:
			if c.Kernels == nil {
				c.amd(amdNote(s.data), b)
			}
		case elf.SHT_DYNSYM:
			for _, sym := range symbols(all, s) {
				if names -= len(sym.name); names < 0 || elf.ST_TYPE(sym.info) != elf.STT_OBJECT || bytes.HasSuffix(sym.name, []byte(".kd")) || len(sym.name) == 0 || !b.variable(len(sym.name)) {
					continue // .kd is a kernel's descriptor
				}
				c.Variables = append(c.Variables, Variable{Name: string(sym.name), Size: sym.size, Extern: sym.section == elf.SHN_UNDEF, Visible: elf.ST_BIND(sym.info) == elf.STB_GLOBAL})
			}
		}
	}
	return c
}

// amdNote returns the MessagePack metadata among notes, or nil.
func amdNote(notes []byte) []byte {
	const kind = 32 // NT_AMDGPU_METADATA
	le := binary.LittleEndian
	pad := func(n uint32) uint64 { return (uint64(n) + 3) &^ 3 }
	for len(notes) >= 12 {
		name, desc, typ := le.Uint32(notes), le.Uint32(notes[4:]), le.Uint32(notes[8:])
		notes = notes[12:]
		if pad(name)+uint64(desc) > uint64(len(notes)) {
			return nil
		}
		n := notes[:name]
		d := notes[pad(name):][:desc]
		if typ == kind && bytes.Equal(bytes.TrimRight(n, "\x00"), []byte("AMDGPU")) {
			return d
		}
		notes = notes[min(pad(name)+pad(desc), uint64(len(notes))):]
	}
	return nil
}

// amd takes kernels from the metadata. If the metadata is broken, it takes none.
func (c *Code) amd(meta []byte, b *budget) {
	var arch string
	var kernels []Kernel
	u := unpacker{b: meta}
	u.fields(func(key string) {
		switch key {
		case "amdhsa.target":
			_, arch, _ = strings.Cut(string(u.text()), "--")
		case "amdhsa.kernels":
			kernels = nil
			u.items(func() {
				if k := u.kernel(b); k.Name != "" && b.kernel(len(k.Name)) {
					kernels = append(kernels, k)
				}
			})
		default:
			u.skip()
		}
	})
	if !u.broken {
		c.Arch, c.Kernels = arch, kernels
	}
}

// kernel reads the metadata of a kernel.
func (u *unpacker) kernel(b *budget) Kernel {
	k := Kernel{Told: true}
	u.fields(func(key string) {
		switch key {
		case ".name":
			k.Name = string(u.text())
		case ".group_segment_fixed_size":
			k.Shared = u.number()
		case ".reqd_workgroup_size":
			var threads [3]int
			i := 0
			u.items(func() {
				if n := u.number(); i < len(threads) {
					threads[i] = int(min(n, 1<<16))
				}
				i++
			})
			if i == len(threads) {
				k.Threads = threads
			}
		case ".args":
			k.Params, k.Told = nil, true
			u.items(func() {
				p, hidden, told := u.arg()
				switch {
				case hidden: // the runtime sets it
				case !told || !b.param(len(p.Name)):
					k.Told = false
				case k.Told:
					k.Params = append(k.Params, p)
				}
			})
			if !k.Told {
				k.Params = nil
			}
		default:
			u.skip()
		}
	})
	return k
}

// arg reads the metadata of an argument. The result hidden is set for an argument that the runtime
// adds, and told if the metadata has the argument's size.
func (u *unpacker) arg() (p Param, hidden, told bool) {
	u.fields(func(key string) {
		switch key {
		case ".name":
			p.Name = string(u.text())
		case ".size":
			p.Size, told = int(min(u.number(), 1<<20)), true
		case ".value_kind":
			kind := string(u.text())
			hidden = strings.HasPrefix(kind, "hidden_")
			p.Pointer = kind == "global_buffer" || kind == "dynamic_shared_pointer"
		default:
			u.skip()
		}
	})
	return p, hidden, told
}
