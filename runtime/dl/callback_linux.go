//go:build linux && (amd64 || arm64) && !nogpu

package dl

import (
	"errors"

	"github.com/ebitengine/purego"
)

func newCallback(fn any) (uintptr, error) {
	if fn == nil {
		return 0, errors.New("cannot make a C callback of nil")
	}
	return purego.NewCallback(fn), nil
}
