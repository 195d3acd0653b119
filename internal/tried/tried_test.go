package tried

import (
	"errors"
	"testing"

	"github.com/puregpu/puregpu/runtime/dl"
)

// opened is a library for which some files were tried.
type opened struct {
	path     string
	attempts []dl.Attempt
}

func (o opened) Path() string           { return o.path }
func (o opened) Attempts() []dl.Attempt { return o.attempts }

var errBroken = errors.New("broken")

func TestNotReady(t *testing.T) {
	absent := dl.Attempt{Path: "libx.so", Source: "system loader", Err: dl.ErrNotFound}
	broken := dl.Attempt{Path: "/a/libx.so", Source: "directory /a", File: "/a/libx.so", Err: errBroken}
	stub := dl.Attempt{Path: "/b/libx.so", Source: "directory $B", Err: dl.ErrStub}
	ready := dl.Attempt{Path: "/c/libx.so", Source: "Options.Path", File: "/c/libx.so"}
	for name, c := range map[string]struct {
		library opened
		want    string
	}{
		"ready":    {opened{"/c/libx.so", []dl.Attempt{absent, broken, ready}}, ""},
		"not open": {opened{}, ""},
		"broken": {opened{"/a/libx.so", []dl.Attempt{absent, broken, stub}},
			"broken\n\t/a/libx.so: broken\n\t/b/libx.so (directory $B): stub library, only for linking"},
	} {
		err := NotReady(c.library)
		if (err == nil) != (c.want == "") || err != nil && (err.Error() != c.want || !errors.Is(err, errBroken)) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
	if err := With(errBroken, opened{"/c/libx.so", []dl.Attempt{stub, ready}}); !errors.Is(err, errBroken) ||
		err.Error() != "broken\n\t/b/libx.so (directory $B): stub library, only for linking\n\t/c/libx.so (Options.Path): broken" {
		t.Errorf("%v", err)
	}
	if err := With(nil, opened{}); err != nil {
		t.Errorf("%v", err)
	}
}
