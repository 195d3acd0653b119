package kernelobject

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"
)

// allocated returns the number of bytes that a function allocates, including garbage.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// mostAllocated is the limit of allocation while reading a file of n bytes. A slice that grows by
// append allocates about five times its final size.
func mostAllocated(n int) uint64 { return 6 * newBudget(n).left }

// lz4Repeat compresses a text of size bytes: head, followed by period repeatedly.
func lz4Repeat(head, period string, size int) []byte {
	length := func(b []byte, n int) []byte {
		for n -= 15; n >= 255; n -= 255 {
			b = append(b, 255)
		}
		return append(b, byte(n))
	}
	literals := head + period
	b := length([]byte{0xff}, len(literals))
	b = append(b, literals...)
	b = binary.LittleEndian.AppendUint16(b, uint16(len(period)))
	return length(b, size-len(literals)-4)
}

// fatbinOf makes a fat binary of copies of one entry of LZ4-compressed PTX.
func fatbinOf(copies int, code []byte, size int) []byte {
	le := binary.LittleEndian
	e := make([]byte, fatbinFullEntry)
	le.PutUint16(e, fatbinPTX)
	le.PutUint32(e[4:], fatbinFullEntry)
	le.PutUint64(e[8:], uint64(len(code)))
	le.PutUint64(e[40:], fatbinLZ4)
	le.PutUint64(e[56:], uint64(size))
	entries := bytes.Repeat(append(e, code...), copies)
	b := make([]byte, fatbinHeader)
	le.PutUint32(b, fatbinMagic)
	le.PutUint16(b[6:], fatbinHeader)
	le.PutUint64(b[8:], uint64(len(entries)))
	return append(b, entries...)
}

// TestCompressedBounds checks that Read bounds memory for fat binaries whose entries unpack to far
// more than the file, also if there are many entries.
func TestCompressedBounds(t *testing.T) {
	for name, period := range map[string]string{
		"parameters": ".param x,", "kernels": ".entry a ", "variables": ".const x;", "comments": "/*    */",
	} {
		head := ".version 8 "
		if name == "parameters" {
			head += ".entry a("
		}
		const size = 4 << 20
		code := lz4Repeat(head, period, size)
		if text, ok := lz4(code, size); !ok || !strings.HasPrefix(string(text), head+period+period) {
			t.Fatalf("%s: the test's own compression is wrong", name)
		}
		for _, copies := range []int{1, 60} {
			image := fatbinOf(copies, code, size)
			var codes []Code
			var err error
			start := time.Now()
			bytes := allocated(func() { codes, err = Read(image) })
			if most := mostAllocated(len(image)); bytes > most {
				t.Errorf("%s, %d entries: reading %d bytes allocated %d, want at most %d", name, copies, len(image), bytes, most)
			}
			if took := time.Since(start); took > time.Minute {
				t.Errorf("%s, %d entries: reading %d bytes took %v", name, copies, len(image), took)
			}
			small := copies == 1 && name == "comments" // unpacks to only 4 MiB, so it is not refused
			if small && (err != nil || len(codes) != 1) || !small && copies > 1 && (err == nil || !strings.Contains(err.Error(), "--no-compress")) {
				t.Errorf("%s, %d entries: %d codes, %v", name, copies, len(codes), err)
			}
		}
	}
}

// TestPlainBounds checks that Read accepts uncompressed files with as many small items as fit, and
// bounds the memory for them.
func TestPlainBounds(t *testing.T) {
	const size = 4 << 20
	fill := func(head, period string) []byte {
		return []byte(head + strings.Repeat(period, (size-len(head))/len(period)))
	}
	list := func(n int, item ...byte) []byte { // MessagePack
		b := binary.BigEndian.AppendUint32([]byte{0xdd}, uint32(n))
		return append(b, bytes.Repeat(item, n)...)
	}
	object := func(key string, value []byte) []byte {
		return append(append([]byte{0x81, 0xd9, byte(len(key))}, key...), value...)
	}
	oneKernel := func(args []byte) []byte {
		k := append([]byte{0x82}, pack(".name")...)
		k = append(append(k, pack("k")...), pack(".args")...)
		return object("amdhsa.kernels", append([]byte{0x91}, append(k, args...)...))
	}
	nested := bytes.Repeat([]byte{0x91}, size)
	for name, image := range map[string][]byte{
		"PTX of kernels":        fill(".version 8 ", ".entry a "),
		"PTX of parameters":     fill(".version 8 .entry a(", ".param x,"),
		"PTX of variables":      fill(".version 8 ", ".const x;"),
		"PTX of comments":       fill(".version 8 ", ".entry/* */"),
		"PTX of quotes":         fill(".version 8 ", `.entry "`),
		"note of numbers":       codeObjectOf(note(list(size, 1)...)),
		"note of empty maps":    codeObjectOf(note(list(size, 0x80)...)),
		"note of empty lists":   codeObjectOf(note(list(size, 0x90)...)),
		"note of maps in maps":  codeObjectOf(note(nested...)),
		"note of other keys":    codeObjectOf(note(object("other", list(size, 0x80))...)),
		"note of kernels":       codeObjectOf(note(object("amdhsa.kernels", list(size/9, []byte("\x81\xa5.name\xa1k")...))...)),
		"note of empty kernels": codeObjectOf(note(object("amdhsa.kernels", list(size, 0x80))...)),
		"note of arguments":     codeObjectOf(note(oneKernel(list(size/8, []byte("\x81\xa5.size\x08")...))...)),
		"note of no arguments":  codeObjectOf(note(oneKernel(list(size, 0x80))...)),
	} {
		var codes []Code
		var err error
		start := time.Now()
		bytes := allocated(func() { codes, err = Read(image) })
		most := mostAllocated(len(image))
		if codes != nil && len(codes[0].Kernels) <= 1 && len(codes[0].Variables) == 0 && strings.HasPrefix(name, "note") && name != "note of arguments" {
			most = 1 << 20 // the notes have nothing to return
		}
		if bytes > most {
			t.Errorf("%s: reading %d bytes allocated %d, want at most %d", name, len(image), bytes, most)
		}
		if took := time.Since(start); err != nil || took > time.Minute {
			t.Errorf("%s: %v, after %v", name, err, took)
		}
	}
}

// TestTimeBounds checks that reading does not search all items of a file again for each item: that
// would take hours for these files.
func TestTimeBounds(t *testing.T) {
	le := binary.LittleEndian
	undefined := func(n int) []byte { // a relocatable cubin with n undefined symbols
		b := bytes.Clone(image(t, "unresolved.cubin")[:64])
		table := make([]byte, 3*64)
		names := []byte{0}
		var syms []byte
		for i := range n {
			s := make([]byte, 24)
			le.PutUint32(s, uint32(len(names)))
			s[4] = 1 << 4 // a global symbol
			syms = append(syms, s...)
			names = append(names, fmt.Sprintf("f%x\x00", i)...)
		}
		for i, s := range []struct {
			kind uint32
			data []byte
		}{{}, {2, syms}, {3, names}} {
			h := table[64*i:]
			le.PutUint32(h[4:], s.kind)
			le.PutUint64(h[24:], uint64(len(b)))
			le.PutUint64(h[32:], uint64(len(s.data)))
			le.PutUint32(h[40:], 2)
			b = append(b, s.data...)
		}
		le.PutUint64(b[32:], 0)
		le.PutUint16(b[56:], 0)
		le.PutUint64(b[40:], uint64(len(b)))
		le.PutUint16(b[58:], 64)
		le.PutUint16(b[60:], 3)
		return append(b, table...)
	}
	const n = 200_000
	start := time.Now()
	codes, err := Read(undefined(n))
	if err != nil || len(codes) != 1 || len(codes[0].Undefined) != n {
		t.Errorf("%d codes, %v; want one with %d undefined symbols", len(codes), err, n)
	}
	for name, ir := range map[string]string{
		"no parenthesis":  strings.Repeat("tt.func @", maxTriton/9),
		"one parenthesis": strings.Repeat("tt.func @", maxTriton/9-1) + "(",
		"one long name":   "tt.func @" + strings.Repeat("x", maxTriton-10) + "(",
	} {
		if p, err := TritonIR([]byte(ir), "k"); err == nil {
			t.Errorf("%s: parameters %v", name, p)
		}
	}
	name := strings.Repeat("tt.func @", maxTriton/18)
	if _, err := ReadTriton([]byte(`{"name": "` + name + `", "num_warps": 4, "shared": 0}`)); err == nil {
		t.Errorf("a kernel's name of %d bytes", len(name))
	}
	if took := time.Since(start); took > time.Minute {
		t.Errorf("%v", took)
	}
}
