package compile_test

import (
	"reflect"
	"testing"

	"github.com/puregpu/puregpu/runtime/compile"
	"github.com/puregpu/puregpu/runtime/driver"
)

// A recording is a driver whose compiler stores the last source.
type recording struct {
	driver.Driver
	last *driver.Source
}

func (r *recording) Open(i int) (driver.Device, error) {
	d, err := r.Driver.Open(i)
	return recordingDevice{d, r}, err
}

type recordingDevice struct {
	driver.Device
	of *recording
}

func (d recordingDevice) Caps() driver.Caps {
	return driver.Caps{RerecordEvents: true, KernelParams: true, Compile: true}
}

func (d recordingDevice) Compiler() (driver.Compiler, error) {
	c, err := d.Device.(driver.Compilers).Compiler()
	return recordingCompiler{c, d.of}, err
}

type recordingCompiler struct {
	driver.Compiler
	of *recording
}

func (c recordingCompiler) Linker() (driver.Compiler, error) { return c, nil }

func (c recordingCompiler) Compile(src *driver.Source) (driver.Code, error) {
	c.of.last = src
	return c.Compiler.Compile(src)
}

// TestOptions checks that Options.Compile adds the options, linked sources and headers of the
// Options to those of the source, and does not change the caller's source.
func TestOptions(t *testing.T) {
	r := &recording{Driver: newSim(t, 1)}
	dev := openDevice(t, r)
	own := make([]string, 1, 8)
	own[0] = "-DA"
	src := compile.Source{
		Name: "s.cu", Text: "extern \"C\" __global__ void saxpy();", Headers: map[string]string{"a.h": "", "b.h": "// b"}, Options: own,
		Link: []compile.Source{{Name: "l.cu"}}, LinkOptions: []string{"-lto"},
	}
	options := compile.Options{
		Headers: map[string]string{"a.h": "// a", "c.h": "// c"}, Options: []string{"-DB"},
		Link: []compile.Source{{Name: "m.cu"}}, LinkOptions: []string{"-g"}, Revision: "2",
	}
	for range 2 {
		code, info, err := options.Compile(dev, src)
		must(t, err)
		must(t, code.Close())
		want := &driver.Source{
			Name: src.Name, Text: src.Text, Headers: map[string]string{"a.h": "// a", "b.h": "// b", "c.h": "// c"}, Options: []string{"-DA", "-DB"},
			Link: []driver.Source{{Name: "l.cu"}, {Name: "m.cu"}}, LinkOptions: []string{"-lto", "-g"},
		}
		if !reflect.DeepEqual(r.last, want) || info.Target != "sim" {
			t.Errorf("%+v\nwant %+v, %+v", r.last, want, info)
		}
	}
	if own[:2][1] != "" || len(src.Headers) != 2 || src.Headers["a.h"] != "" {
		t.Errorf("the source has changed: %+v", src)
	}
}

// TestOptionsCache checks that Options.Compile uses the cache of the Options, and that a Revision
// of the Options replaces the Revision of the source.
func TestOptionsCache(t *testing.T) {
	d := newCompiling(t, 1)
	dev := openDevice(t, d)
	options := compile.Options{Cache: newCache(t)}
	src := compile.Source{Text: "saxpy", Options: []string{"-I."}, Revision: "1"}
	for _, c := range []struct {
		revision string
		cached   bool
	}{{"", false}, {"", true}, {"2", false}, {"2", true}, {"1", true}} {
		options.Revision = c.revision
		code, info, err := options.Compile(dev, src)
		must(t, err)
		must(t, code.Close())
		if info.Cached != c.cached || info.CacheErr != nil {
			t.Errorf("with revision %q: %+v", c.revision, info)
		}
	}
}
