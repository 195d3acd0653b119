package cudadriver

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"strings"
	"testing"
	"unsafe"

	"github.com/puregpu/puregpu/cuda"
	"github.com/puregpu/puregpu/testdata/kernels"
)

// cubin makes a minimal cubin: a header and two tables.
func cubin() []byte {
	b := make([]byte, 64+2*56+3*64)
	copy(b, "\x7fELF\x02\x01\x01\x33")
	le := binary.LittleEndian
	le.PutUint16(b[16:], 2)
	le.PutUint16(b[18:], uint16(elf.EM_CUDA))
	le.PutUint32(b[20:], 0x82)
	le.PutUint64(b[32:], 64+3*64)
	le.PutUint64(b[40:], 64)
	le.PutUint16(b[54:], 56)
	le.PutUint16(b[56:], 2)
	le.PutUint16(b[58:], 64)
	le.PutUint16(b[60:], 3)
	return b
}

// fatbin makes a fat binary with entries of the given sizes, including headers of 64 bytes.
func fatbin(sizes ...int) []byte {
	b := make([]byte, 16)
	le := binary.LittleEndian
	for _, n := range sizes {
		e := make([]byte, n)
		le.PutUint16(e, 2)
		le.PutUint32(e[4:], 64)
		le.PutUint64(e[8:], uint64(n-64))
		b = append(b, e...)
	}
	le.PutUint32(b, 0xba55ed50)
	le.PutUint16(b[4:], 1)
	le.PutUint16(b[6:], 16)
	le.PutUint64(b[8:], uint64(len(b)-16))
	return b
}

// with returns a copy of b with v at offset i.
func with(b []byte, i int, v ...byte) []byte {
	b = bytes.Clone(b)
	copy(b[i:], v)
	return b
}

func TestPrepare(t *testing.T) {
	ptx := strings.TrimSuffix(string(kernels.Saxpy), "\x00")
	for name, c := range map[string]struct {
		image []byte
		form  string // if empty, prepare returns an error
		says  string
	}{
		"PTX":                        {[]byte(ptx), "PTX", ""},
		"PTX with NUL":               {[]byte(ptx + "\x00"), "PTX", ""},
		"PTX with NULs":              {[]byte(ptx + "\x00\x00"), "PTX", ""},
		"PTX after comments":         {[]byte("\n// a\n/* b\n*/ // c\r\n\t.version 6.4\n"), "PTX", ""},
		"PTX with NUL in it":         {[]byte(".version\x006.4"), "", "a NUL byte at 8 of 12 bytes"},
		"nil":                        {nil, "", "the image is empty"},
		"empty":                      {[]byte{}, "", "the image is empty"},
		"NULs":                       {[]byte{0, 0, 0}, "", `begins with "\x00\x00\x00"`},
		"C":                          {[]byte("__global__ void f() {}"), "", `begins with "__global__ void "`},
		"comment without end":        {[]byte("/* .version"), "", "neither PTX"},
		"comment at the end":         {[]byte("// .version"), "", "neither PTX"},
		"cubin":                      {cubin(), "cubin", ""},
		"cubin's beginning":          {cubin()[:20], "", "was cut off"},
		"cubin's header":             {cubin()[:64], "", "was cut off: its program headers"},
		"cubin without its end":      {cubin()[:len(cubin())-1], "", "was cut off: its program headers"},
		"cubin with a far table":     {with(cubin(), 40, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff), "", "was cut off: its section headers"},
		"host's ELF":                 {with(cubin(), 18, 62), "", "EM_X86_64"},
		"AMD's ELF":                  {with(cubin(), 18, 224), "", "EM_AMDGPU"},
		"ELF of 32 bits":             {with(cubin(), 4, 1), "", "ELFCLASS32"},
		"fat binary":                 {fatbin(100), "fat binary", ""},
		"fat binary of three":        {fatbin(72, 64, 1000), "fat binary", ""},
		"fat binary's magic":         {fatbin()[:4], "", "was cut off"},
		"fat binary without entries": {fatbin(), "", "no code in it"},
		"fat binary without its end": {fatbin(100)[:100], "", "it should have 100 after a header of 16"},
		"fat binary far too long":    {with(fatbin(), 8, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff), "", "was cut off"},
		"fat binary's short header":  {with(fatbin(100), 6, 15), "", "was cut off"},
		"entry without length":       {with(fatbin(100, 80), 16+100+4, 0), "", "an entry of 0 and 16 bytes in the last 80"},
		"entry too long":             {with(fatbin(100, 80), 16+100+8, 17), "", "an entry of 64 and 17 bytes in the last 80"},
		"endless entry":              {with(fatbin(100), 16+8, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff), "", "an entry of 64 and"},
		"half an entry":              {with(fatbin(100), 16+8, 26), "", "ends with 10 bytes"},
	} {
		before := bytes.Clone(c.image)
		got, form, err := prepare(c.image)
		if !bytes.Equal(c.image, before) {
			t.Errorf("%s: the image has changed", name)
		}
		if c.form == "" {
			if got != nil || !errors.Is(err, cuda.ErrorInvalidImage) || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		if err != nil || form != c.form || !bytes.Equal(bytes.TrimRight(got, "\x00"), bytes.TrimRight(c.image, "\x00")) {
			t.Errorf("%s: form %q, %v", name, form, err)
		} else if c.form == "PTX" && got[len(got)-1] != 0 {
			t.Errorf("%s does not end in NUL", name)
		}
	}
	b := make([]byte, 1+len(cubin()))
	copy(b[1:], cubin())
	if got, _, err := prepare(b[1:]); err != nil || uintptr(unsafe.Pointer(&got[0]))%8 != 0 || !bytes.Equal(got, cubin()) {
		t.Errorf("a cubin at an odd address: %v", err)
	}
}

func FuzzPrepare(f *testing.F) {
	f.Add(kernels.Saxpy)
	f.Add(cubin())
	f.Add(fatbin(80, 64))
	f.Fuzz(func(t *testing.T, image []byte) {
		got, form, err := prepare(image)
		if (err == nil) != (form != "") || err == nil && len(got) < len(image) {
			t.Errorf("%d bytes of form %q, %v", len(got), form, err)
		}
	})
}
