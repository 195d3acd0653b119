package dl_test

import (
	"errors"
	"fmt"

	"github.com/puregpu/puregpu/runtime/dl"
)

// A zero Library is not open.
func ExampleLibrary() {
	var l dl.Library
	_, err := l.Slow(0)
	fmt.Println(errors.Is(err, dl.ErrNotOpen))
	fmt.Print(l.Explain())
	// Output:
	// true
	// library: not opened yet
}
