//go:build nogpu || !((linux && (amd64 || arm64)) || (windows && amd64))

package cupti

import (
	"errors"
	"testing"

	"github.com/puregpu/puregpu/runtime/dl"
)

func TestOpenUnsupported(t *testing.T) {
	l, err := Open(Options{})
	if l != nil || !errors.Is(err, dl.ErrUnsupported) || !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("Open: %v, %v", l, err)
	}
}
