package hiprtc

import (
	"fmt"

	"github.com/puregpu/puregpu/runtime/dl"
)

// Texts returns texts as C reads them, as options of [Library.CompileProgram] and headers of [Library.CreateProgram]: copies
// that end with a zero byte. Go frees them once the slice is no longer used; the library keeps none of them. The error of a
// text with a zero byte in it tells which one it is, and is [dl.ErrNUL].
func Texts(texts ...string) ([]*byte, error) {
	out, err := dl.CStrings(texts...)
	if err != nil {
		return nil, fmt.Errorf("hiprtc: %w", err)
	}
	return out, nil
}
