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
	Target string // what of the ID names an architecture; "" of what is for the host
	Code   []byte
}

// Bundle goes through a bundle's entries.
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
			return nil, fmt.Errorf("a bundle of %d bytes was cut off: its entry %d, %q, should be the %d bytes at %d", size, i, e.ID, length, offset)
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

// CheckCompressed reports what is wrong with the head of a compressed bundle. Its first version does not tell its size.
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

// CodeObject reads a code object that CheckCodeObject has passed. What it says of its kernels is in a note, in MessagePack.
func CodeObject(image []byte) Code {
	c := Code{Form: FormCodeObject}
	all := sections(image)
	left, names := len(image), len(image) // sections and names may overlap in a file that is made to be slow
	for i := range all {
		s := &all[i]
		if left -= len(s.data); left < 0 {
			break
		}
		switch s.kind {
		case elf.SHT_NOTE:
			if meta := amdNote(s.data); meta != nil && c.Kernels == nil {
				c.amd(meta)
			}
		case elf.SHT_DYNSYM:
			for _, sym := range symbols(all, s) {
				if names -= len(sym.name); names < 0 || elf.ST_TYPE(sym.info) != elf.STT_OBJECT || bytes.HasSuffix(sym.name, []byte(".kd")) || len(sym.name) == 0 {
					continue // .kd is what describes a kernel
				}
				c.Variables = append(c.Variables, Variable{Name: string(sym.name), Size: sym.size, Extern: sym.section == elf.SHN_UNDEF})
			}
		}
	}
	return c
}

// amdNote returns the metadata among notes, nil if there is none.
func amdNote(notes []byte) map[string]any {
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
			v, err := unpack(d)
			if err != nil {
				return nil
			}
			m, _ := v.(map[string]any)
			return m
		}
		notes = notes[min(pad(name)+pad(desc), uint64(len(notes))):]
	}
	return nil
}

// amd takes what metadata say.
func (c *Code) amd(meta map[string]any) {
	if target, ok := meta["amdhsa.target"].(string); ok {
		if _, arch, ok := strings.Cut(target, "--"); ok {
			c.Arch = arch
		}
	}
	kernels, _ := meta["amdhsa.kernels"].([]any)
	for _, v := range kernels {
		m, _ := v.(map[string]any)
		name, _ := m[".name"].(string)
		if name == "" {
			continue
		}
		k := Kernel{Name: name, Told: true, Shared: number(m[".group_segment_fixed_size"])}
		if list, ok := m[".reqd_workgroup_size"].([]any); ok && len(list) == 3 {
			for i := range list {
				k.Threads[i] = int(min(number(list[i]), 1<<16))
			}
		}
		args, _ := m[".args"].([]any)
		for _, a := range args {
			a, _ := a.(map[string]any)
			kind, _ := a[".value_kind"].(string)
			if strings.HasPrefix(kind, "hidden_") { // the runtime sets these
				continue
			}
			p := Param{Size: int(min(number(a[".size"]), 1<<20)), Pointer: kind == "global_buffer" || kind == "dynamic_shared_pointer"}
			p.Name, _ = a[".name"].(string)
			k.Params = append(k.Params, p)
		}
		c.Kernels = append(c.Kernels, k)
	}
}

// number returns a number of metadata, 0 if it is none.
func number(v any) uint64 {
	n, _ := v.(uint64)
	return n
}

// unpack reads a value of MessagePack: maps with texts as keys, arrays, texts, numbers that are not negative, booleans. Of other values
// it returns nil.
func unpack(b []byte) (any, error) {
	u := unpacker{b}
	return u.value(0)
}

type unpacker struct{ b []byte }

var errPacked = errors.New("what was packed was cut off, or is none")

// take returns the next n bytes.
func (u *unpacker) take(n uint64) ([]byte, error) {
	if n > uint64(len(u.b)) {
		return nil, errPacked
	}
	b := u.b[:n]
	u.b = u.b[n:]
	return b, nil
}

// count reads a number of so many bytes.
func (u *unpacker) count(n uint64) (uint64, error) {
	b, err := u.take(n)
	x := uint64(0)
	for _, c := range b {
		x = x<<8 | uint64(c)
	}
	return x, err
}

func (u *unpacker) value(depth int) (any, error) {
	const deepest = 32
	if depth > deepest {
		return nil, errPacked
	}
	first, err := u.take(1)
	if err != nil {
		return nil, err
	}
	c := first[0]
	text := func(n uint64, err error) (any, error) {
		if err != nil {
			return nil, err
		}
		b, err := u.take(n)
		return string(b), err
	}
	skip := func(n uint64, err error) (any, error) {
		if err == nil {
			_, err = u.take(n)
		}
		return nil, err
	}
	switch {
	case c < 0x80:
		return uint64(c), nil
	case c < 0x90:
		return u.pairs(uint64(c&15), depth)
	case c < 0xa0:
		return u.list(uint64(c&15), depth)
	case c < 0xc0:
		return text(uint64(c&31), nil)
	case c >= 0xe0: // a negative number
		return nil, nil
	}
	switch c {
	case 0xc2, 0xc3:
		return c == 0xc3, nil
	case 0xc4, 0xc5, 0xc6: // bytes
		return skip(u.count(1 << (c - 0xc4)))
	case 0xc7, 0xc8, 0xc9: // an extension: length, kind, bytes
		n, err := u.count(1 << (c - 0xc7))
		return skip(n+1, err)
	case 0xca, 0xcb: // floats
		return skip(4<<(c-0xca), nil)
	case 0xcc, 0xcd, 0xce, 0xcf:
		n, err := u.count(1 << (c - 0xcc))
		return n, err
	case 0xd0, 0xd1, 0xd2, 0xd3: // signed, by their bits
		n, err := u.count(1 << (c - 0xd0))
		if err != nil || n>>(8<<(c-0xd0)-1) != 0 {
			return nil, err
		}
		return n, nil
	case 0xd4, 0xd5, 0xd6, 0xd7, 0xd8:
		return skip(1+1<<(c-0xd4), nil)
	case 0xd9, 0xda, 0xdb:
		return text(u.count(1 << (c - 0xd9)))
	case 0xdc, 0xdd:
		n, err := u.count(2 << (c - 0xdc))
		if err != nil {
			return nil, err
		}
		return u.list(n, depth)
	case 0xde, 0xdf:
		n, err := u.count(2 << (c - 0xde))
		if err != nil {
			return nil, err
		}
		return u.pairs(n, depth)
	}
	return nil, nil // nil
}

// list reads an array of n values.
func (u *unpacker) list(n uint64, depth int) (any, error) {
	if n > uint64(len(u.b)) { // each has a byte at least
		return nil, errPacked
	}
	var all []any
	for range n {
		v, err := u.value(depth + 1)
		if err != nil {
			return nil, err
		}
		all = append(all, v)
	}
	return all, nil
}

// pairs reads a map of n keys and values.
func (u *unpacker) pairs(n uint64, depth int) (any, error) {
	if n > uint64(len(u.b))/2 {
		return nil, errPacked
	}
	all := make(map[string]any)
	for range n {
		k, err := u.value(depth + 1)
		if err != nil {
			return nil, err
		}
		v, err := u.value(depth + 1)
		if err != nil {
			return nil, err
		}
		if k, ok := k.(string); ok {
			all[k] = v
		}
	}
	return all, nil
}
