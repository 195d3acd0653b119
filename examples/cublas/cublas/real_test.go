package cublas_test

import (
	"errors"
	"path/filepath"
	"testing"

	"github.com/puregpu/puregpu/cuda"
	"github.com/puregpu/puregpu/examples/cublas/cublas"
	"github.com/puregpu/puregpu/runtime/dl"
)

// TestReal opens the cuBLAS of this machine, which needs no GPU for it, and asks what needs none.
func TestReal(t *testing.T) {
	l, err := cublas.Open(cublas.Options{})
	if errors.Is(err, dl.ErrNotFound) || errors.Is(err, dl.ErrUnsupported) {
		t.Skip(err)
	} else if err != nil {
		t.Fatal(err)
	}
	major, err := l.GetProperty(cuda.MajorVersion)
	if err != nil || major != int32(l.Version()/10000) {
		t.Errorf("major version %d, %v, and Open found %s", major, err, cublas.FormatVersion(l.Version()))
	}
	for _, m := range l.Missing() {
		t.Logf("%s lacks %s of set %s", filepath.Base(l.Path()), m.Name, m.Set)
		if l.Version() == 120405 { // the release of the table
			t.Errorf("%s is declared and missing", m.Name)
		}
	}
	text, err := l.GetStatusName(cublas.StatusNotSupported)
	if err != nil || text != "CUBLAS_STATUS_NOT_SUPPORTED" {
		t.Errorf("status is called %q, %v", text, err)
	}
	if err := l.Destroy(0); !errors.Is(err, cublas.StatusNotInitialized) {
		t.Errorf("destroying no handle: %v", err)
	}
}
