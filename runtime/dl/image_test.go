package dl

import (
	"bytes"
	"encoding/binary"
	"testing"
)

// elfFile returns an ELF file of size bytes whose header has one segment of need bytes.
func elfFile(class, data byte, typ, machine uint16, need uint64, size int) []byte {
	b := make([]byte, max(size, 64+56))
	copy(b, "\x7fELF")
	b[4], b[5] = class, data
	le := binary.LittleEndian
	le.PutUint16(b[16:], typ)
	le.PutUint16(b[18:], machine)
	le.PutUint64(b[32:], 64)
	le.PutUint16(b[54:], 56)
	le.PutUint16(b[56:], 1)
	le.PutUint32(b[64:], elfSegment)
	le.PutUint64(b[64+32:], need)
	return b[:size]
}

func TestInspectELF(t *testing.T) {
	for _, c := range []struct {
		name   string
		file   []byte
		goarch string
		want   fault
	}{
		{"good", elfFile(2, 1, 3, 62, 4096, 4096), "amd64", fault{}},
		{"good arm64", elfFile(2, 1, 3, 183, 4096, 4096), "arm64", fault{}},
		{"empty", nil, "amd64", fault{plain: "an empty file"}},
		{"text", []byte("hello"), "amd64", fault{plain: "not an ELF library"}},
		{"script", []byte("/* GNU ld script\nINPUT(libx.so.1)"), "amd64", fault{plain: "a linker script, not a library"}},
		{"32-bit", elfFile(1, 1, 3, 3, 4096, 4096), "amd64", fault{plain: "a 32-bit library, but this process is 64-bit"}},
		{"big-endian", elfFile(2, 2, 3, 62, 4096, 4096), "amd64", fault{plain: "a big-endian library, but this process is little-endian"}},
		{"arm64 on amd64", elfFile(2, 1, 3, 183, 4096, 4096), "amd64", fault{plain: "a library for arm64, but this process is for amd64"}},
		{"amd64 on arm64", elfFile(2, 1, 3, 62, 4096, 4096), "arm64", fault{plain: "a library for amd64, but this process is for arm64"}},
		{"odd machine", elfFile(2, 1, 3, 2, 4096, 4096), "amd64", fault{plain: "a library for ELF machine 2, but this process is for amd64"}},
		{"object", elfFile(2, 1, 1, 62, 4096, 4096), "amd64", fault{plain: "an ELF file, but not a shared library"}},
		{"short header", elfFile(2, 1, 3, 62, 4096, 40), "amd64", fault{plain: "truncated: only 40 bytes"}},
		{"short segment headers", elfFile(2, 1, 3, 62, 0, 100), "amd64", fault{plain: "truncated: 100 bytes of at least 120", harmful: true}},
		{"short segment", elfFile(2, 1, 3, 62, 5000, 4096), "amd64", fault{plain: "truncated: 4096 bytes of at least 5000", harmful: true}},
	} {
		if got := inspectELF(bytes.NewReader(c.file), int64(len(c.file)), c.goarch); got != c.want {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
	}
}

func TestInspectPE(t *testing.T) {
	pe := func(machine uint16, size int) []byte {
		b := make([]byte, 256)
		copy(b, "MZ")
		b[60] = 128
		copy(b[128:], "PE\x00\x00")
		binary.LittleEndian.PutUint16(b[132:], machine)
		return b[:size]
	}
	for _, c := range []struct {
		name string
		file []byte
		want string
	}{
		{"good", pe(0x8664, 256), ""},
		{"empty", nil, "an empty file"},
		{"text", []byte("hello"), "not a Windows DLL"},
		{"one byte", []byte("M"), "not a Windows DLL"},
		{"32-bit", pe(0x14c, 256), "a 32-bit library, but this process is 64-bit"},
		{"arm64", pe(0xaa64, 256), "a library for arm64, but this process is for amd64"},
		{"short", pe(0x8664, 40), "truncated: only 40 bytes"},
		{"shorter than its header says", pe(0x8664, 100), "truncated: only 100 bytes"},
		{"DOS", append([]byte("MZ"), make([]byte, 200)...), "not a Windows DLL"},
	} {
		if got := inspectPE(bytes.NewReader(c.file), int64(len(c.file)), "amd64"); got.plain != c.want {
			t.Errorf("%s: %q, want %q", c.name, got.plain, c.want)
		}
	}
}
