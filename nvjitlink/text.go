package nvjitlink

import (
	"fmt"

	"github.com/puregpu/puregpu/runtime/dl"
)

// Texts returns texts for C, such as options of [Library.Create]: copies that end with a zero byte.
// Go frees the copies when the slice is no longer used. The library keeps no pointers to them. If a
// text contains a zero byte, the error names the text and is [dl.ErrNUL].
func Texts(texts ...string) ([]*byte, error) {
	out, err := dl.CStrings(texts...)
	if err != nil {
		return nil, fmt.Errorf("nvjitlink: %w", err)
	}
	return out, nil
}
