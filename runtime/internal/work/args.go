package work

import (
	"slices"
	"unsafe"

	"github.com/puregpu/puregpu/runtime/driver"
)

// A Layout lists the sizes of a kernel's arguments in bytes, in order. In memory, each argument
// begins at an 8-byte word of its own. An argument whose size is a multiple of 64 bytes begins at a
// line: an address that is a multiple of 64. CUDA requires that of a tensor map. So memory for
// arguments must begin at a line too: see [Align].
type Layout []int

// line is the number of words in a line of 64 bytes.
const line = 8

// lined reports whether an argument with this size must begin at a line.
func lined(size int) bool { return size%(8*line) == 0 }

// up rounds a word index up to the next index that begins a line.
func up(word int) int { return (word + line - 1) &^ (line - 1) }

// At returns the index of the word at which an argument with this size begins, if word is the index
// of the first free word.
func At(word, size int) int {
	if lined(size) {
		return up(word)
	}
	return word
}

// Words returns the number of words that an argument takes.
func Words(size int) int { return (size + 7) / 8 }

// Begin returns the index of the first word, not below word, at which the arguments can begin.
func (l Layout) Begin(word int) int {
	if word%line == 0 || !slices.ContainsFunc(l, lined) {
		return word
	}
	return up(word)
}

// Words returns the number of words that the arguments need, gaps included.
func (l Layout) Words() (words int) {
	for _, size := range l {
		words = At(words, size) + Words(size)
	}
	return words
}

// Append appends the arguments to words and returns the result. The arguments begin at
// Begin(len(words)). The memory of words must begin at a line. values[i] points to argument i; a
// nil pointer stands for a zero argument. If values is nil, all arguments are zero.
func (l Layout) Append(words []uint64, values []unsafe.Pointer) []uint64 {
	word := l.Begin(len(words))
	// The compiler extends words without allocating this slice.
	words = append(words, make([]uint64, word+l.Words()-len(words))...)
	if values == nil {
		return words
	}
	for i, size := range l {
		word = At(word, size)
		if values[i] != nil {
			SetArg(unsafe.Pointer(&words[word]), values[i], size)
		}
		word += Words(size)
	}
	return words
}

// Point appends a pointer to each argument to args. The first argument begins at words[0]. The
// pointers point into the memory of words.
func (l Layout) Point(args []unsafe.Pointer, words []uint64) []unsafe.Pointer {
	word := 0
	for _, size := range l {
		word = At(word, size)
		args = append(args, unsafe.Pointer(&words[word]))
		word += Words(size)
	}
	return args
}

// Align returns words if its memory begins at a line. Otherwise it copies words to memory that
// begins at a line, and returns the copy. The capacity of the result is at least the capacity of
// words.
func Align(words []uint64) []uint64 {
	if uintptr(unsafe.Pointer(unsafe.SliceData(words)))%(8*line) == 0 {
		return words
	}
	room := make([]uint64, cap(words)+line-1)
	skip := -uintptr(unsafe.Pointer(unsafe.SliceData(room))) % (8 * line) / 8
	return append(room[skip:skip:len(room)], words...)
}

// Padding is the largest number of words that AlignEnd appends.
const Padding = line - 1

// AlignEnd appends zero words until the next word begins a line.
func AlignEnd(words []uint64) []uint64 {
	return append(words, make([]uint64, up(len(words))-len(words))...)
}

// SetArg copies size bytes from value to arg.
func SetArg(arg, value unsafe.Pointer, size int) {
	switch size { // most arguments have one of these sizes, and a call to copy would take longer
	case 4:
		*(*[4]byte)(arg) = *(*[4]byte)(value)
		return
	case 8:
		*(*[8]byte)(arg) = *(*[8]byte)(value)
		return
	}
	copy(unsafe.Slice((*byte)(arg), size), unsafe.Slice((*byte)(value), size))
}

// Address converts a pointer to an argument that is a device address.
func Address(arg unsafe.Pointer) *driver.Ptr { return (*driver.Ptr)(arg) }

// Addresses returns the Layout of n arguments that are device addresses.
func Addresses(n int) Layout {
	l := make(Layout, n)
	for i := range l {
		l[i] = 8
	}
	return l
}
