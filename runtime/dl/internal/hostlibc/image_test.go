//go:build linux && amd64 && puregpu_static && !nogpu && !cgo

package hostlibc

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// anyLoader returns the contents of the machine's loader.
func anyLoader(t testing.TB) []byte {
	for _, path := range loaders {
		if data, err := os.ReadFile(path); err == nil {
			return data
		}
	}
	t.Skip("no glibc here")
	return nil
}

func TestReadLoader(t *testing.T) {
	data := anyLoader(t)
	segments, entry, err := readLoader(data)
	if err != nil || entry == 0 || len(segments) < 2 {
		t.Fatalf("%d segments, entry %#x, %v", len(segments), entry, err)
	}
	change := func(f func(b []byte)) []byte {
		b := slices.Clone(data)
		f(b)
		return b
	}
	headers := le.Uint64(data[32:])
	for _, tt := range []struct {
		name, want string
		data       []byte
	}{
		{"empty", "not an ELF file", nil},
		{"text", "not an ELF file", []byte(strings.Repeat("text ", 100))},
		{"cut", "a damaged ELF file", data[:100]},
		{"half", "a damaged ELF file", data[:len(data)/2]},
		{"arm64", "not for amd64", change(func(b []byte) { le.PutUint16(b[18:], 183) })},
		{"fixed place", "not a dynamic loader", change(func(b []byte) { le.PutUint16(b[16:], 2) })},
		{"headers elsewhere", "a damaged ELF file", change(func(b []byte) { le.PutUint64(b[32:], 1<<63) })},
		{"huge", "a damaged ELF file", change(func(b []byte) { le.PutUint64(b[headers+40:], 1<<40) })},
		{"entry outside", "a damaged ELF file", change(func(b []byte) { le.PutUint64(b[24:], 1<<40) })},
		{"another loader", "not glibc's loader", change(func(b []byte) {
			copy(b[strings.Index(string(b), "\x00_rtld_global_ro\x00"):], "\x00_rtld_global_xx")
		})},
	} {
		if _, _, err := readLoader(tt.data); err == nil || err.Error() != tt.want {
			t.Errorf("%s: %v, want %q", tt.name, err, tt.want)
		}
	}
}

// TestMapIrregular checks that mapping a named pipe does not wait for a writer.
func TestMapIrregular(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o666); err != nil {
		t.Fatal(err)
	}
	late := time.AfterFunc(20*time.Second, func() { panic("it blocks") })
	defer late.Stop()
	if _, err := mapLoader(pipe); err == nil || !strings.HasSuffix(err.Error(), ": a named pipe, not a regular file") {
		t.Error(err)
	}
}

func FuzzReadLoader(f *testing.F) {
	f.Add(anyLoader(f)[:4096])
	f.Fuzz(func(t *testing.T, data []byte) {
		segments, _, err := readLoader(data)
		if err != nil {
			return
		}
		for _, s := range segments {
			if s.fileSize > s.size || s.offset+s.fileSize > uint64(len(data)) {
				t.Errorf("%+v of a file of %d bytes", s, len(data))
			}
		}
	})
}

func TestMapLoaderErrors(t *testing.T) {
	dir := t.TempDir()
	text := filepath.Join(dir, "text")
	if err := os.WriteFile(text, []byte("a text, and of some length: more than an ELF file's header has."), 0o666); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		dir:                          "a directory, not a regular file",
		filepath.Join(dir, "absent"): "no such file",
		text:                         "not a",
		"/dev/null":                  "a device, not a regular file",
	} {
		if _, err := mapLoader(path); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", path, err, want)
		}
	}
}

func TestEnvironment(t *testing.T) {
	const ours = "GLIBC_TUNABLES=glibc.pthread.rseq=0"
	for _, tt := range []struct{ env, want []string }{
		{nil, []string{ours}},
		{[]string{"A=1", "LD_LIBRARY_PATH=/x"}, []string{"A=1", "LD_LIBRARY_PATH=/x", ours}},
		{[]string{"LD_TRACE_LOADED_OBJECTS=1", "A="}, []string{"A=", ours}},
		{[]string{"GLIBC_TUNABLES=glibc.malloc.check=1", "B=2"}, []string{"B=2", "GLIBC_TUNABLES=glibc.malloc.check=1:glibc.pthread.rseq=0"}},
	} {
		if got := environment(tt.env); !slices.Equal(got, tt.want) {
			t.Errorf("environment(%q) = %q, want %q", tt.env, got, tt.want)
		}
	}
}
