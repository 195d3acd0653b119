// Package nvtxtest attaches a tool to NVTX. The tool records the calls that it receives.
package nvtxtest

import (
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"unsafe"

	"github.com/puregpu/puregpu/internal/testlib"
	"github.com/puregpu/puregpu/nvtx"
	"github.com/puregpu/puregpu/runtime/dl"
)

// Fake describes the tool's library.
var Fake = testlib.Fake{File: "libtool.so", Source: "nvtx.c"}

// childVariable is set in a process that [Child] starts.
const childVariable = "PUREGPU_TEST_NVTX_CHILD"

// Child runs the test again in a child process whose environment names the tool's library, since a
// process loads a tool only once. In the child it returns true. In the parent it waits for the
// child and returns false; if the test failed in the child, it fails in the parent. Child skips the
// test where no tool can be attached.
func Child(t *testing.T, library string) bool {
	t.Helper()
	if os.Getenv(childVariable) == t.Name() {
		return true
	}
	if _, err := dl.Callback(func() {}); err != nil || runtime.GOOS != "linux" {
		t.Skip("no tool can be attached in this build")
	}
	cmd := exec.Command(os.Args[0], "-test.run=^"+regexp.QuoteMeta(t.Name())+"$", "-test.v=false")
	cmd.Env = append(os.Environ(), childVariable+"="+t.Name(), nvtx.Variable+"="+library)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("with the tool: %v\n%s", err, out)
	}
	return false
}

// A Tool is the tool's library in this process.
type Tool struct {
	t   testing.TB
	lib dl.Library
	buf []byte
}

// The functions of the tool's library that tests call.
const (
	take = iota
	headers
	layout
)

var spec = dl.Spec{
	Package: "nvtxtest", Name: "the fake tool",
	Sets:    []dl.Set{{Name: "all"}},
	Symbols: []dl.Symbol{{Name: "fake_take", Sig: "ww"}, {Name: "fake_headers"}, {Name: "fake_layout", Sig: "w"}},
}

// Attach runs the test in a child process with the tool, as [Child] does. Attach returns the tool
// in the child, and nil in the parent.
func Attach(t *testing.T) *Tool {
	t.Helper()
	path := os.Getenv(nvtx.Variable)
	if os.Getenv(childVariable) != t.Name() {
		path = Fake.Build(t)
	}
	if !Child(t, path) {
		return nil
	}
	x := &Tool{t: t, buf: make([]byte, 1<<20)}
	if err := x.lib.Open(&spec, nil, dl.Options{Path: path}); err != nil {
		t.Fatal(err)
	}
	if !nvtx.Enabled() {
		t.Fatalf("the tool is not attached: %v", nvtx.Err())
	}
	x.Wrote()
	return x
}

func (x *Tool) call(fn int, args ...uintptr) uintptr {
	r, err := x.lib.Slow(fn, args...)
	if err != nil {
		x.t.Fatal(err)
	}
	return r
}

// Wrote returns the calls that the tool has recorded since Wrote was last called. A line that
// begins with BAD fails the test.
func (x *Tool) Wrote() []string {
	x.t.Helper()
	n := x.call(take, uintptr(unsafe.Pointer(&x.buf[0])), uintptr(len(x.buf)))
	lines := strings.Split(strings.TrimSuffix(string(x.buf[:n]), "\n"), "\n")
	if n == 0 {
		return nil
	}
	for _, line := range lines {
		if strings.HasPrefix(line, "BAD") {
			x.t.Errorf("the tool says %s", line)
		}
	}
	return lines
}

// Layout returns the size of nvtxEventAttributes_t and the offsets of its fields. The result real
// is true if they come from NVIDIA's headers.
func (x *Tool) Layout() (layoutOf []int32, real bool) {
	layoutOf = make([]int32, 10)
	x.call(layout, uintptr(unsafe.Pointer(&layoutOf[0])))
	return layoutOf, uint32(x.call(headers)) != 0
}
