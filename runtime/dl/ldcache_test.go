package dl

import (
	"encoding/binary"
	"slices"
	"strings"
	"testing"
)

// cacheOf makes a cache in ldconfig's format.
func cacheOf(entries ...[2]string) []byte {
	b := []byte(cacheMagic)
	b = binary.LittleEndian.AppendUint32(b, uint32(len(entries)))
	b = append(b, make([]byte, cacheHead-len(b))...)
	at := uint32(cacheHead + cacheEntry*len(entries))
	var texts []byte
	for _, e := range entries {
		b = binary.LittleEndian.AppendUint32(b, cacheFlags["amd64"])
		for _, text := range e {
			b = binary.LittleEndian.AppendUint32(b, at+uint32(len(texts)))
			texts = append(append(texts, text...), 0)
		}
		b = append(b, make([]byte, 12)...)
	}
	return append(b, texts...)
}

func TestLookUp(t *testing.T) {
	cache := cacheOf([2]string{"libcuda.so.1", "/opt/a/libcuda.so.1"}, [2]string{"libc.so.6", "/lib/libc.so.6"}, [2]string{"libcuda.so.1", "/opt/b/libcuda.so.1"},
		[2]string{"libcuda.so.1", "relative/libcuda.so.1"}, [2]string{"libcuda.so.1", "/opt/a/libcuda.so.1"})
	want := []string{"/opt/a/libcuda.so.1", "/opt/b/libcuda.so.1"}
	if got := lookUp(cache, "libcuda.so.1", "amd64"); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if got := lookUp(append([]byte("ld.so-1.7.0 and what belongs to it"), cache...), "libcuda.so.1", "amd64"); !slices.Equal(got, want) {
		t.Errorf("behind an older cache: %q, want %q", got, want)
	}
	for name, got := range map[string][]string{
		"another machine":           lookUp(cache, "libcuda.so.1", "arm64"),
		"another name":              lookUp(cache, "libcuda.so", "amd64"),
		"a machine that is unknown": lookUp(cache, "libcuda.so.1", "riscv64"),
		"no cache":                  lookUp([]byte("text "+string(cache)), "libcuda.so.1", "amd64"),
	} {
		if got != nil {
			t.Errorf("%s: %q", name, got)
		}
	}
	hwcap := slices.Clone(cache)
	binary.LittleEndian.PutUint64(hwcap[cacheHead+16:], 1<<62) // hardware that the first entry needs
	if got, want := lookUp(hwcap, "libcuda.so.1", "amd64"), []string{want[1], want[0]}; !slices.Equal(got, want) {
		t.Errorf("with a library for another processor: %q, want %q", got, want)
	}
	for n := range cache { // cut at any length
		for _, p := range lookUp(cache[:n], "libcuda.so.1", "amd64") {
			if !slices.Contains(want, p) {
				t.Errorf("cut at %d: %q", n, p)
			}
		}
	}
}

func FuzzLookUp(f *testing.F) {
	f.Add(cacheOf([2]string{"libcuda.so.1", "/opt/libcuda.so.1"}))
	f.Add([]byte(cacheMagic + strings.Repeat("\xff", 60)))
	f.Fuzz(func(t *testing.T, cache []byte) {
		for _, p := range lookUp(cache, "libcuda.so.1", "amd64") {
			if !strings.HasPrefix(p, "/") {
				t.Errorf("%q", p)
			}
		}
	})
}
