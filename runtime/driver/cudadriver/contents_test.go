package cudadriver

import (
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/puregpu/puregpu/cuda"
	"github.com/puregpu/puregpu/testdata/kernels"
)

// image reads a file of testdata/images. The sources there say how the file was made.
func image(t testing.TB, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", "images", name))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestInspect(t *testing.T) {
	three := map[string]int{"none": 0, "small": 3, "big": 3}
	heap := map[string]int{"heap": 1, "other": 0}
	ptx := func(text string) []byte { return []byte(".version 6.4\n" + text) }
	for name, c := range map[string]struct {
		image     []byte
		params    map[string]int
		undefined []string
	}{
		"saxpy":                           {kernels.Saxpy, map[string]int{"saxpy": 4}, nil},
		"basic":                           {kernels.Basic, map[string]int{"index": 4, "words": 3, "ids": 1}, nil},
		"dense":                           {kernels.Dense, map[string]int{"dense": 7}, nil},
		"empty":                           {kernels.Empty, map[string]int{"empty": 1}, nil},
		"the first work's":                {[]byte(emptyPTX), map[string]int{"empty": 0}, nil},
		"PTX":                             {image(t, "params.ptx"), three, nil},
		"cubin":                           {image(t, "params.cubin"), three, nil},
		"fat binary":                      {image(t, "params.fatbin"), three, nil},
		"compressed fat binary":           {image(t, "compressed.fatbin"), three, nil},
		"PTX of which symbols are absent": {image(t, "unresolved.ptx"), map[string]int{"calls": 1}, nil},
		"relocatable cubin, unresolved":   {image(t, "unresolved.cubin"), map[string]int{"calls": 1}, []string{"table", "other"}},
		"the same in a fat binary":        {image(t, "unresolved.fatbin"), map[string]int{"calls": 1}, []string{"table", "other"}},
		"relocatable cubin, resolved":     {image(t, "resolving.cubin"), heap, nil},
		"linked cubin":                    {image(t, "linked.cubin"), map[string]int{"calls": 1, "heap": 1, "other": 0}, nil},
		"cubin without sections":          {cubin(), nil, nil},
		"fat binary of nothing known":     {fatbin(80, 64), nil, nil},

		"comments":           {ptx("// .entry a()\n/* .entry b() */ .entry/**/c // (\n(.param /* .param */ .u64 p // .param\n)"), map[string]int{"c": 1}, nil},
		"text in quotes":     {ptx(`.file 1 ".entry a(" .entry b()`), map[string]int{"b": 0}, nil},
		"without spaces":     {ptx(".visible.entry _Z1aPf(.param.u64.ptr.global.align 4 x,.param.align 8.b8 y[16]){ld.param.u64 %rd1,[x];}.entry $b{}"), map[string]int{"_Z1aPf": 2, "$b": 0}, nil},
		"functions":          {ptx(".func (.param .b32 r) f(.param .b32 x) {} .visible .entry a(.param .u8 x)"), map[string]int{"a": 1}, nil},
		"declared, defined":  {ptx(".entry a(.param .u8 x);\n.entry a(.param .u8 y) {}"), map[string]int{"a": 1}, nil},
		"twice, differently": {ptx(".entry a(.param .u8 x) {} .entry a() {} .entry a() {}"), map[string]int{"a": untold}, nil},
		"cut off":            {ptx(".entry a(.param .u8 x"), map[string]int{"a": untold}, nil},
		"cut off sooner":     {ptx(".entry"), nil, nil},
	} {
		got := inspect(c.image)
		if !maps.Equal(got.params, c.params) || !slices.Equal(got.undefined, c.undefined) {
			t.Errorf("%s: %v, undefined %v; want %v, %v", name, got.params, got.undefined, c.params, c.undefined)
		}
	}
	if n := inspect(kernels.Saxpy).number("another"); n != untold {
		t.Errorf("a missing kernel has %d parameters", n)
	}
}

// TestSections reads section tables at wrong offsets.
func TestSections(t *testing.T) {
	whole := image(t, "params.cubin")
	le := binary.LittleEndian
	at, num := le.Uint64(whole[40:]), le.Uint16(whole[60:])
	want := inspect(whole).params
	if num == 0 || len(want) != 3 {
		t.Fatalf("%d sections, kernels %v", num, want)
	}
	// Numbers that are too large for the header's fields are in section 0.
	many := with(with(whole, 60, 0, 0), 62, 0xff, 0xff)
	le.PutUint64(many[at+32:], uint64(num))
	le.PutUint32(many[at+40:], uint32(le.Uint16(whole[62:])))
	if got := inspect(many).params; !maps.Equal(got, want) {
		t.Errorf("of many sections: %v", got)
	}
	for name, b := range map[string][]byte{
		"no table":          with(whole, 40, 0, 0, 0, 0, 0, 0, 0, 0),
		"no names":          with(whole, 62, 0xfe, 0xff),
		"entries too small": with(whole, 58, 8),
		"far too many":      with(with(whole, 60, 0, 0), int(at)+32, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff),
	} {
		if got := inspect(b); name != "far too many" && got.params != nil {
			t.Errorf("%s: %v", name, got.params)
		}
	}
}

// TestManyTargets reads a fat binary of 200,000 entries for as many architectures. A quadratic
// search would take minutes.
func TestManyTargets(t *testing.T) {
	le := binary.LittleEndian
	b := make([]byte, 16)
	le.PutUint32(b, 0xba55ed50)
	le.PutUint16(b[6:], 16)
	for i := range 200_000 {
		text := fmt.Sprintf(".version 8\n.target sm_%d\n", i)
		e := make([]byte, 16)
		le.PutUint16(e, 1)
		le.PutUint32(e[4:], 16)
		le.PutUint64(e[8:], uint64(len(text)))
		b = append(append(b, e...), text...)
	}
	le.PutUint64(b[8:], uint64(len(b)-16))
	start := time.Now()
	c := inspect(b)
	if took := time.Since(start); took > time.Minute || len(c.targets) != mostTargets || c.targets[1] != "sm_1 as PTX" {
		t.Errorf("%d targets after %v: %.3q", len(c.targets), took, c.targets)
	}
}

// TestUnresolved checks the errors for images with missing symbols.
func TestUnresolved(t *testing.T) {
	err := inspect(image(t, "unresolved.cubin")).explain(cuda.ErrorInvalidImage)
	if !errors.Is(err, cuda.ErrorInvalidImage) || !strings.HasPrefix(err.Error(), "unresolved symbol table, other: ") {
		t.Error(err)
	}
	c := &contents{undefined: strings.Split("a b c d e f g", " ")}
	if err := c.explain(cuda.ErrorNotFound); !strings.HasPrefix(err.Error(), "unresolved symbol a, b, c, d, e and 2 more: ") {
		t.Error(err)
	}
	if err := new(contents).explain(cuda.ErrorNotFound); err != cuda.ErrorNotFound {
		t.Error(err)
	}
}

func FuzzInspect(f *testing.F) {
	f.Add(kernels.Basic)
	for _, name := range []string{"params.cubin", "params.fatbin", "compressed.fatbin", "unresolved.cubin", "linked.cubin"} {
		f.Add(image(f, name))
	}
	f.Fuzz(func(t *testing.T, image []byte) {
		image, _, err := prepare(image)
		if err != nil {
			return
		}
		c := inspect(image)
		for name, n := range c.params {
			if n < untold || n > len(image) {
				t.Errorf("kernel %q has %d parameters", name, n)
			}
		}
	})
}
