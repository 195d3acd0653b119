package cuda

import (
	"errors"
	"testing"
	"unsafe"

	"github.com/puregpu/puregpu/runtime/dl"
)

// TestArraysOfOneCountHaveOneLength: a nil slice has length 0. Only an array that may be NULL
// whatever the count may be nil beside a longer one.
func TestArraysOfOneCountHaveOneLength(t *testing.T) {
	l := new(Library) // not open: a call that the lengths allow returns ErrNotOpen
	options, nodes := []JitOption{1, 2}, []GraphNode{1, 2}
	for _, test := range []struct {
		name string
		call func() error
		ok   bool
	}{
		{"options without values", func() error { _, err := l.LinkCreate(options, nil); return err }, false},
		{"options with one value", func() error { _, err := l.LinkCreate(options, []uintptr{1}); return err }, false},
		{"values without options", func() error { _, err := l.LinkCreate(nil, []uintptr{1}); return err }, false},
		{"as many options and values", func() error { _, err := l.LinkCreate(options, []uintptr{1, 2}); return err }, true},
		{"an option of a library without a value", func() error {
			_, err := l.LibraryLoadData(unsafe.Pointer(&[1]byte{}), nil, nil, []LibraryOption{LibraryBinaryIsPreserved}, nil)
			return err
		}, true},
		{"an option of a library in a file without a value", func() error {
			_, err := l.LibraryLoadFromFile("a", nil, nil, []LibraryOption{LibraryOptionHostUniversalFunctionAndDataTable}, nil)
			return err
		}, false},
		{"neither options nor values", func() error { _, err := l.LinkCreate(nil, nil); return err }, true},
		{"edges without ends", func() error { _, err := l.GraphGetEdges(1, nodes, nil, nil); return err }, false},
		{"edges without data", func() error { return l.GraphAddDependencies(1, nodes, nodes, nil) }, true},
		{"edges with data of one", func() error { return l.GraphAddDependencies(1, nodes, nodes, make([]GraphEdgeData, 1)) }, false},
	} {
		err := test.call()
		if _, refused := errors.AsType[*dl.LengthError](err); refused == test.ok || test.ok && !errors.Is(err, dl.ErrNotOpen) {
			t.Errorf("%s: %v", test.name, err)
		}
	}
}

// TestRefusedArgumentsAreNamed: the error of a call that is not made names the package, the
// function and the arguments.
func TestRefusedArgumentsAreNamed(t *testing.T) {
	l := new(Library)
	_, lengths := l.LinkCreate([]JitOption{1, 2}, nil)
	_, text := l.ModuleGetFunction(1, "a\x00b")
	if !errors.Is(text, dl.ErrNUL) {
		t.Errorf("%v is not ErrNUL", text)
	}
	for want, err := range map[string]error{
		"cuda: cuLinkCreate_v2: options has 2 elements and optionValues has 0; both must have the same number": lengths,
		"cuda: cuModuleGetFunction: name: string contains a NUL byte":                                          text,
	} {
		if err == nil || err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
}
