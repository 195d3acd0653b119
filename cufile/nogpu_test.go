//go:build nogpu || !(linux && (amd64 || arm64))

package cufile

import (
	"errors"
	"testing"

	"github.com/puregpu/puregpu/runtime/dl"
)

func TestOpenUnsupported(t *testing.T) {
	l, err := Open(Options{})
	if l != nil || err == nil {
		t.Errorf("Open: %v, %v", l, err)
	}
	if _, err := new(Library).NewDriver(); !errors.Is(err, dl.ErrNotOpen) {
		t.Errorf("NewDriver: %v", err)
	}
}
