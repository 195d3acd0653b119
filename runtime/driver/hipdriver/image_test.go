package hipdriver

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
	"unsafe"

	"github.com/puregpu/puregpu/hip"
	"github.com/puregpu/puregpu/testdata/kernels"
)

// codeObject makes a minimal code object: a header, a segment of 100 bytes, and two sections.
func codeObject() []byte {
	const segments, data, sections = 64, 64 + 56, 64 + 56 + 100
	b := make([]byte, sections+3*64)
	copy(b, "\x7fELF\x02\x01\x01\x40")
	le := binary.LittleEndian
	le.PutUint16(b[16:], 3)   // ET_DYN: a shared object
	le.PutUint16(b[18:], 224) // EM_AMDGPU
	le.PutUint32(b[20:], 1)
	le.PutUint64(b[32:], segments)
	le.PutUint64(b[40:], sections)
	le.PutUint16(b[52:], 64)
	le.PutUint16(b[54:], 56)
	le.PutUint16(b[56:], 1)
	le.PutUint16(b[58:], 64)
	le.PutUint16(b[60:], 3)
	le.PutUint16(b[62:], 2)
	le.PutUint32(b[segments:], 1)
	le.PutUint64(b[segments+8:], data)
	le.PutUint64(b[segments+32:], 100)
	for i, s := range []struct {
		name, kind   uint32
		offset, size uint64
	}{{1, 1, data, 90}, {7, 3, data + 90, 10}} {
		h := b[sections+64*(i+1):]
		le.PutUint32(h, s.name)
		le.PutUint32(h[4:], s.kind)
		le.PutUint64(h[24:], s.offset)
		le.PutUint64(h[32:], s.size)
	}
	copy(b[data+90:], "\x00.text\x00\x00\x00\x00")
	return b
}

// bundle makes a bundle of entries with the given names. Each entry has 10 bytes.
func bundle(names ...string) []byte {
	le := binary.LittleEndian
	head := 32
	for _, n := range names {
		head += 24 + len(n)
	}
	b := le.AppendUint64([]byte("__CLANG_OFFLOAD_BUNDLE__"), uint64(len(names)))
	for i, n := range names {
		b = le.AppendUint64(b, uint64(head+10*i))
		b = le.AppendUint64(b, 10)
		b = le.AppendUint64(b, uint64(len(n)))
		b = append(b, n...)
	}
	return append(b, make([]byte, 10*len(names))...)
}

// compressed makes the header of a compressed bundle of a version, with the given size.
func compressed(version uint16, size uint64) []byte {
	b := binary.LittleEndian.AppendUint16([]byte("CCOB"), version)
	b = binary.LittleEndian.AppendUint16(b, 1)
	b = binary.LittleEndian.AppendUint64(b, size)
	return append(b, make([]byte, 24)...)
}

// with returns a copy of b with v at offset i.
func with(b []byte, i int, v ...byte) []byte {
	b = bytes.Clone(b)
	copy(b[i:], v)
	return b
}

const host, gfx90a, gfx942 = "host-x86_64-unknown-linux-gnu-", "hipv4-amdgcn-amd-amdhsa--gfx90a:sramecc+:xnack-", "hip-amdgcn-amd-amdhsa--gfx942"

func TestInspect(t *testing.T) {
	ones := bytes.Repeat([]byte{0xff}, 8)
	for name, c := range map[string]struct {
		image   []byte
		form    string // if empty, inspect returns an error
		says    string
		targets []string
	}{
		"code object":                   {image: codeObject(), form: "code object"},
		"code object and more":          {image: append(codeObject(), 1, 2, 3), form: "code object"},
		"code object without its end":   {image: codeObject()[:len(codeObject())-1], says: "is broken or was cut off"},
		"code object's beginning":       {image: codeObject()[:20], says: "is broken or was cut off"},
		"code object's long segment":    {image: with(codeObject(), 64+32, 0, 9), says: "its segment 0 should be the 2304 bytes at 120"},
		"code object's endless segment": {image: with(codeObject(), 64+8, ones[:7]...), says: "was cut off"},
		"code object's long section":    {image: with(codeObject(), 64+56+100+64+32, 0, 9), says: `its section ".text" should be`},
		"code object's empty section":   {image: with(with(codeObject(), 64+56+100+64+32, 0, 9), 64+56+100+64+4, 8), form: "code object"},
		"cubin":                         {image: with(codeObject(), 18, 190), says: "a cubin is code for NVIDIA's GPUs"},
		"host's ELF":                    {image: with(codeObject(), 18, 62), says: "EM_X86_64"},
		"ELF of 32 bits":                {image: with(codeObject(), 4, 1), says: ""},
		"bundle":                        {image: bundle(host, gfx90a, gfx942), form: "bundle", targets: []string{"gfx90a:sramecc+:xnack-", "gfx942"}},
		"bundle of one twice":           {image: bundle(gfx942, gfx942), form: "bundle", targets: []string{"gfx942"}},
		"bundle of nothing":             {image: bundle(), says: "no code in it"},
		"bundle's magic":                {image: []byte("__CLANG_OFFLOAD_BUNDLE__"), says: "was cut off in its list"},
		"bundle's list":                 {image: bundle(gfx90a)[:40], says: "was cut off in its list"},
		"bundle's name":                 {image: bundle(gfx90a)[:70], says: "was cut off in its list"},
		"bundle's endless name":         {image: with(bundle(gfx90a), 48, ones...), says: "was cut off in its list"},
		"bundle of far too many":        {image: with(bundle(gfx90a), 24, ones...), says: "was cut off"},
		"bundle without its end":        {image: bundle(host, gfx942)[:len(bundle(host, gfx942))-1], says: `its entry 1, "hip-amdgcn-amd-amdhsa--gfx942", should be the 10 bytes at`},
		"bundle's endless entry":        {image: with(bundle(gfx90a), 40, ones...), says: "its entry 0"},
		"compressed":                    {image: compressed(1, 1<<40), form: "compressed bundle"},
		"compressed 2":                  {image: compressed(2, 40), form: "compressed bundle"},
		"compressed 2 cut off":          {image: compressed(2, 41), says: "it should have 41"},
		"compressed 3":                  {image: compressed(3, 40), form: "compressed bundle"},
		"compressed 3 cut off":          {image: compressed(3, 1<<40), says: "was cut off: it should have"},
		"compressed's beginning":        {image: compressed(1, 1)[:23], says: "a compressed bundle of 23 bytes was cut off"},
		"PTX":                           {image: kernels.Saxpy, says: "PTX is code for NVIDIA's GPUs"},
		"PTX after comments":            {image: []byte("\n// a\n/* b\n*/ .version 6.4\n"), says: "PTX is code"},
		"C":                             {image: []byte("__global__ void f() {}"), says: `begins with "__global__ void "`},
		"nil":                           {image: nil, says: "the image is empty"},
		"empty":                         {image: []byte{}, says: "the image is empty"},
		"NULs":                          {image: []byte{0, 0, 0}, says: `begins with "\x00\x00\x00"`},
	} {
		for _, arch := range []string{"gfx90a", ""} {
			form, targets, err := inspect(c.image, arch)
			if c.form == "" {
				if !errors.Is(err, hip.ErrorInvalidImage) || !strings.Contains(err.Error(), c.says) {
					t.Errorf("%s: %v", name, err)
				}
			} else if err != nil || form != c.form || !slices.Equal(targets, c.targets) {
				t.Errorf("%s: form %q, targets %q, %v", name, form, targets, err)
			}
		}
	}
	// Devices that are not AMD's accept any image.
	if form, _, err := inspect(kernels.Saxpy, "sm_90"); form != "image" || err != nil {
		t.Errorf("PTX for a device that is not AMD's: form %q, %v", form, err)
	}
	if _, _, err := inspect(nil, "sm_90"); !errors.Is(err, hip.ErrorInvalidImage) {
		t.Errorf("an empty image for a device that is not AMD's: %v", err)
	}
}

// TestManyTargets reads a bundle of 200,000 entries for as many architectures. A quadratic search
// would take minutes.
func TestManyTargets(t *testing.T) {
	const n = 200_000
	le := binary.LittleEndian
	b := le.AppendUint64([]byte("__CLANG_OFFLOAD_BUNDLE__"), n)
	for i := range n {
		id := fmt.Sprintf("hip--gfx%d", i)
		b = le.AppendUint64(le.AppendUint64(le.AppendUint64(b, 0), 0), uint64(len(id)))
		b = append(b, id...)
	}
	start := time.Now()
	targets, err := checkBundle(b)
	if took := time.Since(start); err != nil || took > time.Minute || len(targets) != mostTargets || targets[1] != "gfx1" {
		t.Errorf("%v; %d targets after %v: %.3q", err, len(targets), took, targets)
	}
}

func TestKeep(t *testing.T) {
	for _, n := range []int{1, 10, page - 1, page, page + 1, 10 * page} {
		image := bytes.Repeat([]byte{7}, n)
		k := keep(image)
		if len(k) < page || len(k) <= n || !bytes.Equal(k[:n], image) || bytes.ContainsFunc(k[n:], func(r rune) bool { return r != 0 }) {
			t.Errorf("%d bytes are kept as %d", n, len(k))
		}
		if uintptr(unsafe.Pointer(&k[0]))%page != 0 {
			t.Errorf("%d bytes are kept at %p", n, &k[0])
		}
		image[0] = 8
		if k[0] != 7 {
			t.Error("the kept copy is the caller's memory")
		}
	}
}

func FuzzInspect(f *testing.F) {
	f.Add(codeObject())
	f.Add(bundle(host, gfx90a))
	f.Add(compressed(2, 30))
	f.Add(kernels.Saxpy)
	f.Fuzz(func(t *testing.T, image []byte) {
		form, _, err := inspect(image, "gfx90a")
		if (err == nil) != (form != "") {
			t.Errorf("%d bytes of form %q, %v", len(image), form, err)
		}
	})
}
