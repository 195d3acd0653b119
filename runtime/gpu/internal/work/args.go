package work

import (
	"unsafe"

	"github.com/puregpu/puregpu/runtime/driver"
)

// A Layout is the sizes of a kernel's arguments in bytes, in order. In memory, each argument begins at a word of 8 bytes of its own.
type Layout []int

// Words returns how many words the arguments take.
func (l Layout) Words() (words int) {
	for _, size := range l {
		words += (size + 7) / 8
	}
	return words
}

// Append appends the arguments to words. Those whose value is nil are zero, as all are if values is nil.
func (l Layout) Append(words []uint64, values []unsafe.Pointer) []uint64 {
	word := len(words)
	words = append(words, make([]uint64, l.Words())...) // which makes nothing where there is room
	if values == nil {
		return words
	}
	for i, size := range l {
		if values[i] != nil {
			SetArg(unsafe.Pointer(&words[word]), values[i], size)
		}
		word += (size + 7) / 8
	}
	return words
}

// Point appends a pointer to each of the arguments that begin at words[0]. The words must stay where they are from then on.
func (l Layout) Point(args []unsafe.Pointer, words []uint64) []unsafe.Pointer {
	word := 0
	for _, size := range l {
		args = append(args, unsafe.Pointer(&words[word]))
		word += (size + 7) / 8
	}
	return args
}

// SetArg copies a value to an argument of so many bytes.
func SetArg(arg, value unsafe.Pointer, size int) {
	copy(unsafe.Slice((*byte)(arg), size), unsafe.Slice((*byte)(value), size))
}

// Address returns where an argument that is an address lies.
func Address(arg unsafe.Pointer) *driver.Ptr { return (*driver.Ptr)(arg) }
