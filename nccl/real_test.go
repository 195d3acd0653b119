//go:build linux && (amd64 || arm64) && !nogpu

package nccl

import (
	"cmp"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/puregpu/puregpu/runtime/dl"
)

// openReal opens the RCCL that PUREGPU_RCCL_LIBRARY names, or this machine's NCCL. Opening either
// needs no GPU.
func openReal(t *testing.T) *Library {
	t.Helper()
	open, env := Open, spec.Env
	if os.Getenv(rcclSpec.Env) != "" {
		open, env = OpenRCCL, rcclSpec.Env
	}
	l, err := open(Options{})
	if os.Getenv(env) == "" && errors.Is(err, dl.ErrNotFound) {
		t.Skipf("no NCCL: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("version %s, %s", FormatVersion(l.Version()), l.Path())
	return l
}

// TestRealSymbols checks the table's since-versions against the library. RCCL reports the release
// of NCCL that it is based on, and may lack some functions of that release.
func TestRealSymbols(t *testing.T) {
	l := openReal(t)
	if v, err := l.GetVersion(); err != nil || dl.Version(v) != l.Version() || l.Version() == 0 {
		t.Errorf("version %d, %v; Open found %d", v, err, l.Version())
	}
	lacks := l.Missing()
	rccl := os.Getenv(rcclSpec.Env) != ""
	for _, s := range symbols {
		i := slices.IndexFunc(lacks, func(m dl.MissingSymbol) bool { return m.Name == s.Name })
		switch set := sets[s.Set].Name; {
		case strings.HasPrefix(set, "rccl") != rccl && strings.HasPrefix(set, "rccl"):
			if i < 0 {
				t.Errorf("NCCL has %s of set %s", s.Name, set)
			}
		case i >= 0 && s.Since <= l.Version():
			if rccl {
				t.Logf("%s is missing, since %s", s.Name, FormatVersion(s.Since))
			} else {
				t.Errorf("%s lacks %s, since %s", FormatVersion(l.Version()), s.Name, FormatVersion(s.Since))
			}
		case i < 0 && s.Since > l.Version() && rccl: // RCCL had ncclGather and ncclScatter before NCCL did
			t.Logf("%s is there, since %s", s.Name, FormatVersion(s.Since))
		case i < 0 && s.Since > l.Version():
			t.Errorf("%s has %s, since %s", FormatVersion(l.Version()), s.Name, FormatVersion(s.Since))
		}
	}
}

// TestRealWithoutDevice calls functions that work without a GPU. Making a communicator must return
// an error on a machine without a GPU.
func TestRealWithoutDevice(t *testing.T) {
	l := openReal(t)
	texts := map[string]Result{}
	for r := Success; !strings.HasPrefix(r.Name(), "Result("); r++ {
		text, err := l.GetErrorString(r)
		if err != nil || text == "" {
			t.Errorf("the library describes %s as %q, %v", r.Name(), text, err)
		}
		if other, ok := texts[text]; ok && !strings.Contains(text, "unknown") {
			t.Errorf("the library describes %s and %s as %q", other.Name(), r.Name(), text)
		}
		texts[text] = r
	}
	// RCCL 5.4 needs a GPU for GroupEnd.
	if err := cmp.Or(l.GroupStart(), l.GroupEnd()); err != nil && (os.Getenv(rcclSpec.Env) == "" || !errors.Is(err, ErrorUnhandledCUDA)) {
		t.Errorf("an empty group: %v", err)
	}
	if _, err := l.CommCount(0); !errors.Is(err, ErrorInvalidArgument) {
		t.Errorf("the ranks of no communicator: %v, want %v", err, ErrorInvalidArgument)
	}
	comms := make([]Comm, 1)
	if err := l.CommInitAll(comms, []int32{0}); err == nil {
		t.Log("there is a GPU")
		if err := l.CommDestroy(comms[0]); err != nil {
			t.Error(err)
		}
	} else if code, ok := errors.AsType[Result](err); !ok || code == Success {
		t.Errorf("a communicator without a GPU: %v", err)
	} else {
		t.Logf("a communicator without a GPU: %v", err)
	}
}
