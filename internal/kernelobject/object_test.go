package kernelobject

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/puregpu/puregpu/testdata/kernels"
)

// untold means that the parameters are unknown.
const untold = -1

// image reads a file that NVIDIA's tools made. The sources beside it say how it was made.
func image(t testing.TB, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("..", "..", "runtime", "driver", "cudadriver", "testdata", "images", name))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// show writes code as text, one line for each item.
func show(codes []Code) string {
	var b strings.Builder
	for _, c := range codes {
		fmt.Fprintf(&b, "%s for %q\n", c.Form, c.Arch)
		for _, k := range c.Kernels {
			what := "kernel"
			if k.Called {
				what = "function"
			}
			fmt.Fprintf(&b, "%s %s(", what, k.Name)
			for i, p := range k.Params {
				if i > 0 {
					b.WriteString(", ")
				}
				fmt.Fprintf(&b, "%s:%d", p.Type, p.Size)
				if p.Name != "" {
					fmt.Fprintf(&b, " %s", p.Name)
				}
				if p.Pointer {
					b.WriteString("*")
				}
			}
			b.WriteString(")")
			if !k.Told {
				b.WriteString(" untold")
			}
			if k.Shared > 0 {
				fmt.Fprintf(&b, " shared %d", k.Shared)
			}
			if k.Threads[0] > 0 {
				fmt.Fprintf(&b, " threads %v", k.Threads)
			}
			if k.Cluster[0] > 0 {
				fmt.Fprintf(&b, " cluster %v", k.Cluster)
			}
			b.WriteString("\n")
		}
		for _, v := range c.Variables {
			fmt.Fprintf(&b, "variable %s of %d", v.Name, v.Size)
			for name, is := range map[string]bool{" constant": v.Constant, " initial": v.Init, " extern": v.Extern} {
				if is {
					b.WriteString(name)
				}
			}
			b.WriteString("\n")
		}
		for _, u := range c.Undefined {
			fmt.Fprintf(&b, "undefined %s\n", u)
		}
	}
	return b.String()
}

func TestRead(t *testing.T) {
	ptx := func(text string) []byte { return []byte(".version 7.8\n.target sm_90a, debug\n" + text) }
	const of90a = "PTX for \"sm_90a\"\n"
	const three = "kernel none()\nkernel small(u8:1 a, u16:2 b, b8:3 c)\nkernel big(b8:5000 a, u32:4 b, u64:8 c)\n"
	threeSizes := strings.NewReplacer("u8:1 a, u16:2 b, b8:3 c", ":1, :2, :3", "b8:5000 a, u32:4 b, u64:8 c", ":5000, :4, :8")
	cubin3 := "cubin for \"sm_90\"\n" + lines(threeSizes.Replace(three), 2, 1, 0)
	for name, c := range map[string]struct {
		image []byte
		want  string
	}{
		"saxpy":             {kernels.Saxpy, "PTX for \"sm_52\"\nkernel saxpy(u64:8 saxpy_n, f32:4 saxpy_a, u64:8 saxpy_x, u64:8 saxpy_y)\n"},
		"PTX":               {image(t, "params.ptx"), "PTX for \"sm_70\"\n" + three},
		"cubin":             {image(t, "params.cubin"), cubin3},
		"fat binary":        {image(t, "params.fatbin"), "PTX for \"sm_70\"\n" + three + cubin3},
		"compressed":        {image(t, "compressed.fatbin"), cubin3},
		"relocatable cubin": {image(t, "unresolved.cubin"), "cubin for \"sm_90\"\nkernel calls(:8)\nundefined table\nundefined other\n"},
		"linked cubin":      {image(t, "linked.cubin"), "cubin for \"sm_90\"\n"},

		"attributes": {ptx(".visible .entry k(.param .u64 .ptr .global .align 16 a, .param .align 4 .b8 b[4][3], .param .v2 .f32 c)\n.maxntid 256, 1, 1 .reqntid 64, 2\n.reqnctapercluster 2 { .shared .align 4 .b8 s[100]; .shared .u64 x; }"),
			of90a + "kernel k(u64:8 a*, b8:12 b, f32:8 c) shared 108 threads [64 2 1] cluster [2 1 1]\n"},
		"variables": {ptx(".visible .const .align 4 .b8 coeff[64];\n.global .align 8 .f64 sum = 0d0000000000000000;\n.extern .global .u32 other;\n.global .attribute(.managed) .align 4 .u32 m;\n.global .align 4 .b8 t[4] = {1, 2, 3, 4};\n.visible .entry f() { .global .u32 no; }\n.extern .shared .align 16 .b8 dyn[];\n.global .texref tex;"),
			of90a + "kernel f()\nvariable coeff of 64 constant\nvariable sum of 8 initial\nvariable other of 4 extern\nvariable m of 4\nvariable t of 4 initial\nvariable tex of 0\n"},
		"cut off":                  {ptx(".entry a(.param .u64 x, .param"), of90a + "kernel a() untold\n"},
		"unknown types":            {ptx(".entry a(.param .pred p, .param .u64 x)"), of90a + "kernel a(:0 p, u64:8 x)\n"},
		"quoted":                   {ptx(".file 1 \".entry a(\" .entry b()"), of90a + "kernel b()\n"},
		"endless arrays":           {ptx(".entry a(.param .b8 x[4294967295][4294967295][4294967295], .param .b8 y[9999999])"), of90a + "kernel a(b8:0 x, b8:0 y)\n"},
		"empty code object's note": {codeObjectOf(note(0x80)), "code object for \"\"\n"},
		"code object": {codeObjectOf(note(pack(map[string]any{
			"amdhsa.target": "amdgcn-amd-amdhsa--gfx90a",
			"amdhsa.kernels": []any{map[string]any{
				".name": "scale", ".group_segment_fixed_size": 512, ".reqd_workgroup_size": []any{64, 1, 1},
				".args": []any{
					map[string]any{".name": "n", ".size": 4, ".offset": 0, ".value_kind": "by_value"},
					map[string]any{".name": "x", ".size": 8, ".offset": 8, ".value_kind": "global_buffer", ".address_space": "global"},
					map[string]any{".size": 4, ".offset": 16, ".value_kind": "hidden_block_count_x"},
				},
			}},
		})...)), "code object for \"gfx90a\"\nkernel scale(:4 n, :8 x*) shared 512 threads [64 1 1]\n"},
	} {
		codes, err := Read(c.image)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		got := show(codes)
		if name == "linked cubin" { // a linked cubin also contains functions of the driver
			if !strings.Contains(got, "kernel calls(:8)\n") || !strings.Contains(got, "kernel heap(:8)\n") || !strings.Contains(got, "function other()\n") {
				t.Errorf("%s:\n%s", name, got)
			}
			continue
		}
		if got != c.want {
			t.Errorf("%s:\n%s\nwant\n%s", name, got, c.want)
		}
	}
}

// TestVisible checks that Visible is set only for variables that other files may name.
func TestVisible(t *testing.T) {
	ptx := PTX([]byte(".version 7.8\n.visible .const .b8 a[64];\n.global .u32 b = 1;\n.visible .global .b8 c[2] = {1, 2};\n.visible .entry f() { .global .u32 no; }\n.global .u32 d;\n"))
	for i, want := range []bool{true, false, true, false} {
		if v := ptx.Variables[i]; v.Visible != want {
			t.Errorf("%s is visible: %v", v.Name, v.Visible)
		}
	}
}

// lines returns the lines of a text in a given order.
func lines(text string, order ...int) string {
	all := strings.SplitAfter(text, "\n")
	out := ""
	for _, i := range order {
		out += all[i]
	}
	return out
}

// pack writes a value as MessagePack. Texts, lists and maps must be short.
func pack(v any) []byte {
	switch v := v.(type) {
	case int:
		if v < 128 {
			return []byte{byte(v)}
		}
		return binary.BigEndian.AppendUint16([]byte{0xcd}, uint16(v))
	case string:
		return append([]byte{0xd9, byte(len(v))}, v...)
	case []any:
		b := []byte{0xdc, 0, byte(len(v))}
		for _, x := range v {
			b = append(b, pack(x)...)
		}
		return b
	case map[string]any:
		b := []byte{0xde, 0, byte(len(v))}
		for k, x := range v {
			b = append(append(b, pack(k)...), pack(x)...)
		}
		return b
	}
	panic(v)
}

// note makes a note of AMD's metadata.
func note(packed ...byte) []byte {
	le := binary.LittleEndian
	b := le.AppendUint32(le.AppendUint32(le.AppendUint32(nil, 7), uint32(len(packed))), 32)
	b = append(append(b, "AMDGPU\x00\x00"...), packed...)
	return append(b, make([]byte, -len(b)&3)...)
}

// codeObjectOf makes a code object that contains only a note.
func codeObjectOf(note []byte) []byte {
	const table = 64
	b := make([]byte, table+2*64)
	copy(b, "\x7fELF\x02\x01\x01\x40")
	le := binary.LittleEndian
	le.PutUint16(b[16:], 3)
	le.PutUint16(b[18:], 224)
	le.PutUint64(b[40:], table)
	le.PutUint16(b[58:], 64)
	le.PutUint16(b[60:], 2)
	h := b[table+64:]
	le.PutUint32(h[4:], 7)
	le.PutUint64(h[24:], uint64(len(b)))
	le.PutUint64(h[32:], uint64(len(note)))
	return append(b, note...)
}

// bundle makes a bundle of code for one architecture.
func bundle(target string, code []byte) []byte {
	le := binary.LittleEndian
	id := "hipv4-amdgcn-amd-amdhsa--" + target
	b := le.AppendUint64([]byte(bundleMagic), 1)
	b = le.AppendUint64(b, uint64(len(bundleMagic)+8+24+len(id)))
	b = le.AppendUint64(b, uint64(len(code)))
	b = le.AppendUint64(b, uint64(len(id)))
	return append(append(b, id...), code...)
}

func TestBundle(t *testing.T) {
	code := codeObjectOf(note(pack(map[string]any{"amdhsa.kernels": []any{map[string]any{".name": "k"}}})...))
	codes, err := Read(bundle("gfx942:xnack-", code))
	if got, want := show(codes), "code object for \"gfx942:xnack-\"\nkernel k()\n"; err != nil || got != want {
		t.Errorf("%v:\n%s\nwant\n%s", err, got, want)
	}
}

// TestMakeFatbin checks that Read reads what MakeFatbin makes of PTX and a cubin, and that the
// entry of the cubin is the same as nvcc's.
func TestMakeFatbin(t *testing.T) {
	fat := image(t, "params.fatbin")
	entries, err := Fatbin(fat)
	if err != nil || len(entries) != 2 {
		t.Fatalf("%d entries, %v", len(entries), err)
	}
	text, ok := entries[0].unpack(newBudget(len(fat)))
	if !ok || !entries[0].PTX || !IsPTX(text) {
		t.Fatalf("the PTX is %q", text)
	}
	made, err := MakeFatbin(text, image(t, "params.cubin"))
	if err != nil {
		t.Fatal(err)
	}
	codes, err := Read(made)
	want, _ := Read(fat)
	if err != nil || show(codes) != show(want) {
		t.Errorf("%v:\n%s\nwant\n%s", err, show(codes), show(want))
	}
	cubin := len(made) - 72 - len(image(t, "params.cubin"))
	if theirs := fat[len(fat)-72-len(image(t, "params.cubin")):]; !bytes.Equal(made[cubin:], theirs) {
		t.Errorf("the entry of the cubin begins with\n% x\nwant\n% x", made[cubin:][:72], theirs[:72])
	}
	for _, bad := range [][]byte{fat, []byte(".version 7.8"), []byte(".version 8.0\n.target sm_90a\n"), []byte("C")} {
		if _, err := MakeFatbin(bad); err == nil {
			t.Errorf("a fat binary of %.10q", bad)
		}
	}
}

// attribute makes an attribute of a kernel, with data or with only a word.
func attribute(kind byte, word uint16, data ...byte) []byte {
	format := byte(3)
	if data != nil {
		format, word = 4, uint16(len(data))
	}
	return append([]byte{format, kind, byte(word), byte(word >> 8)}, data...)
}

// TestKernelParams checks which attributes tell the parameters, and that contradictory ones do not.
func TestKernelParams(t *testing.T) {
	first := attribute(kparamInfo, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xf0, 0x21, 0)  // parameter 0: 8 bytes at offset 0
	second := attribute(kparamInfo, 0, 0, 0, 0, 0, 1, 0, 8, 0, 0, 0xf0, 0x11, 0) // parameter 1: 4 bytes at offset 8
	large := attribute(kparamInfoV2, 0, 0, 0, 0, 0, 2, 0, 12, 0, 0, 0x50, 0, 0)
	size := func(n uint16) []byte { return attribute(cbankParamSize, n) }
	for name, c := range map[string]struct {
		info [][]byte
		want int // number of parameters, or untold
	}{
		"nothing":                 {nil, 0},
		"two":                     {[][]byte{second, first, size(12)}, 2},
		"three":                   {[][]byte{size(0x500c), large, first, second}, 3},
		"where they are":          {[][]byte{first, attribute(paramCbank, 0, 7, 0, 0, 0, 0x60, 1, 8, 0)}, 1},
		"other kinds":             {[][]byte{attribute(0x1b, 0xff), {1, 0x2a, 0, 0}, first, {2, 0x50, 1, 0}, size(8)}, 1},
		"no size":                 {[][]byte{first}, untold},
		"a size alone":            {[][]byte{size(4)}, untold},
		"the last is missing":     {[][]byte{first, size(12)}, untold},
		"short data":              {[][]byte{attribute(kparamInfo, 0, 1, 2), size(12)}, untold},
		"short place":             {[][]byte{first, attribute(paramCbank, 0, 8, 0), size(8)}, untold},
		"data that is cut off":    {[][]byte{size(8), first[:12]}, untold},
		"a head that is cut off":  {[][]byte{first, size(8), {4, 1}}, untold},
		"a format that is not":    {[][]byte{first, size(8), {5, 1, 0, 0}}, untold},
		"a format that is none":   {[][]byte{first, size(8), {0, 0, 0, 0}}, untold},
		"the largest sizes there": {[][]byte{attribute(kparamInfoV2, 0, bytes.Repeat([]byte{0xff}, 12)...), size(8)}, untold},
	} {
		params, told := kernelParams(slices.Concat(c.info...), newBudget(1000))
		if got := len(params); told != (c.want != untold) || told && got != c.want {
			t.Errorf("%s: %d, told is %v; want %d", name, got, told, c.want)
		}
	}
}

// TestOverlapping checks that Read takes no more than seconds for files in which all sections
// overlap.
func TestOverlapping(t *testing.T) {
	const size = 4 << 20
	le := binary.LittleEndian
	cubin := image(t, "params.cubin")[:64]
	header := bytes.Repeat([]byte{1}, size)
	copy(header, cubin)
	le.PutUint64(header[32:], 0)
	le.PutUint16(header[56:], 0)
	le.PutUint64(header[40:], 64)
	le.PutUint16(header[58:], 64)
	for _, kind := range []uint32{1, 2, 7, 11} { // sections of data, symbols, notes and dynamic symbols
		for _, machine := range []uint16{190, 224} {
			le.PutUint16(header[18:], machine)
			n := uint16(30000)
			le.PutUint16(header[60:], n)
			le.PutUint16(header[62:], n-1)
			for i := range int(n) {
				s := header[64+64*i:]
				le.PutUint32(s, uint32(i))
				le.PutUint32(s[4:], kind)
				le.PutUint64(s[24:], 0)
				le.PutUint64(s[32:], size)
				le.PutUint32(s[40:], uint32(i%2))
			}
			copy(header[64+64*int(n):], strings.Repeat(".nv.info.k", 1000))
			start := time.Now()
			codes, err := Read(header)
			if took := time.Since(start); took > 20*time.Second {
				t.Errorf("machine %d, sections of kind %d: %d codes, %v, in %v", machine, kind, len(codes), err, took)
			}
		}
	}
}

// FuzzRead reads arbitrary bytes, and checks that the result is not larger than the input allows.
func FuzzRead(f *testing.F) {
	f.Add([]byte(kernels.Basic))
	for _, name := range []string{"params.cubin", "params.fatbin", "compressed.fatbin", "unresolved.cubin", "linked.cubin", "params.ptx", "unresolved.ptx"} {
		f.Add(image(f, name))
	}
	object := codeObjectOf(note(pack(map[string]any{"amdhsa.target": "x--gfx90a", "amdhsa.kernels": []any{map[string]any{".name": "k", ".args": []any{map[string]any{".size": 8}}}}})...))
	f.Add(object)
	f.Add(bundle("gfx90a", object))
	f.Fuzz(func(t *testing.T, image []byte) {
		codes, err := Read(image)
		if err != nil && codes != nil {
			t.Errorf("%d codes, and %v", len(codes), err)
		}
		size := 256*len(image) + 256 // compression may hide this many bytes
		for _, c := range codes {
			n := len(c.Variables)
			for _, k := range c.Kernels {
				n += len(k.Name) + len(k.Params)
				k.Sizes()
			}
			for _, u := range c.Undefined {
				n += len(u)
			}
			if n > size {
				t.Errorf("%d bytes of image have %d of names and parameters", len(image), n)
			}
		}
		PTX(image)
	})
}
