//go:build nogpu || !((linux && (amd64 || arm64)) || (windows && amd64))

package nccl

import (
	"errors"
	"testing"

	"github.com/puregpu/puregpu/runtime/dl"
)

func TestOpenUnsupported(t *testing.T) {
	for name, open := range map[string]func(Options) (*Library, error){"Open": Open, "OpenRCCL": OpenRCCL} {
		l, err := open(Options{})
		if l != nil || !errors.Is(err, dl.ErrUnsupported) || !errors.Is(err, errors.ErrUnsupported) {
			t.Errorf("%s: %v, %v", name, l, err)
		}
	}
	if err := new(Library).GroupStart(); !errors.Is(err, dl.ErrNotOpen) {
		t.Errorf("GroupStart: %v", err)
	}
}
