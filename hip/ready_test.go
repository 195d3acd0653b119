//go:build linux && (amd64 || arm64) && !nogpu

package hip

import (
	"errors"
	"testing"

	"github.com/puregpu/puregpu/runtime/dl"
)

func TestReady(t *testing.T) {
	for code, want := range map[string]error{"0": nil, "100": ErrorNoDevice, "101": ErrorInvalidDevice, "2": ErrorOutOfMemory} {
		l := openFake(t, 60443484, "INIT_RESULT="+code)
		err := ready(&l.Library)
		if !errors.Is(err, want) || errors.Is(err, dl.ErrNoDevice) != (code == "100" || code == "101") {
			t.Errorf("%s: %v, want %v", code, err, want)
		}
	}
}
