package kernels

import (
	"bytes"
	"strings"
	"testing"
)

func TestText(t *testing.T) {
	for _, test := range []struct {
		name   string
		image  []byte
		target string         // with the version of PTX in front
		params map[string]int // of each kernel
	}{
		{"saxpy", Saxpy, "6.4 sm_52", map[string]int{"saxpy": 4}},
		{"basic", Basic, "6.4 sm_50", map[string]int{"index": 4, "words": 3, "ids": 1}},
		{"dense", Dense, "6.4 sm_50", map[string]int{"dense": 7}},
		{"meet", Meet, "6.4 sm_50", map[string]int{"meet": 3}},
		{"ring", Ring, "7.8 sm_90", map[string]int{"ring": 1}},
		{"dependent", Dependent, "7.8 sm_90", map[string]int{"lead": 3, "follow": 3}},
		{"empty", Empty, "6.4 sm_50", map[string]int{"empty": 1}},
	} {
		t.Run(test.name, func(t *testing.T) {
			if n := bytes.IndexByte(test.image, 0); n != len(test.image)-1 {
				t.Errorf("the first NUL is at %d of %d bytes, want it at the end alone", n, len(test.image))
			}
			for i, c := range test.image[:len(test.image)-1] {
				if c >= 0x80 {
					t.Fatalf("byte %d is %#x: PTX is ASCII", i, c)
				}
			}
			version, target, _ := strings.Cut(test.target, " ")
			for _, want := range []string{".version " + version + "\n", ".address_size 64\n", ".target " + target + "\n"} {
				if !bytes.Contains(test.image, []byte(want)) {
					t.Errorf("the text lacks %q", want)
				}
			}
			if n := bytes.Count(test.image, []byte(".entry ")); n != len(test.params) {
				t.Errorf("%d kernels, want %d", n, len(test.params))
			}
			for kernel, want := range test.params {
				_, text, found := bytes.Cut(test.image, []byte(".visible .entry "+kernel+"("))
				text, _, _ = bytes.Cut(text, []byte("{"))
				if n := bytes.Count(text, []byte(".param ")); !found || n != want {
					t.Errorf("kernel %s: found is %v, with %d parameters, want %d", kernel, found, n, want)
				}
			}
		})
	}
}
