package nvrtc

import (
	"fmt"

	"github.com/puregpu/puregpu/runtime/dl"
)

// Texts returns texts for C, such as options of [Library.CompileProgram] and headers of
// [Library.CreateProgram]: copies that end with a zero byte. Go frees the copies when the slice is
// no longer used. The library keeps no pointers to the copies. If a text contains a zero byte, the
// error names the text and is [dl.ErrNUL].
func Texts(texts ...string) ([]*byte, error) {
	out, err := dl.CStrings(texts...)
	if err != nil {
		return nil, fmt.Errorf("nvrtc: %w", err)
	}
	return out, nil
}
