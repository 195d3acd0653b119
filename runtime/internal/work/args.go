package work

import (
	"slices"
	"unsafe"

	"github.com/puregpu/puregpu/runtime/driver"
)

// A Layout is the sizes of a kernel's arguments in bytes, in order. In memory, each argument begins
// at a word of 8 bytes of its own, and one whose size is a multiple of 64 bytes at a line of 64
// bytes, as CUDA wants of a tensor map. So memory for arguments begins at a line as well: see
// [Align].
type Layout []int

// line is how many words a line has.
const line = 8

// lined reports whether an argument of a size begins at a line.
func lined(size int) bool { return size%(8*line) == 0 }

// up returns the first word at or behind one that begins a line.
func up(word int) int { return (word + line - 1) &^ (line - 1) }

// at returns where an argument of a size begins, at or behind a word.
func at(word, size int) int {
	if lined(size) {
		return up(word)
	}
	return word
}

// Begin returns the first word, at or behind one, at which the arguments can begin.
func (l Layout) Begin(word int) int {
	if word%line == 0 || !slices.ContainsFunc(l, lined) {
		return word
	}
	return up(word)
}

// Words returns how many words the arguments take.
func (l Layout) Words() (words int) {
	for _, size := range l {
		words = at(words, size) + (size+7)/8
	}
	return words
}

// Append appends the arguments to words, which begin at a line, from Begin(len(words)) on. Those
// whose value is nil are zero, as all are if values is nil.
func (l Layout) Append(words []uint64, values []unsafe.Pointer) []uint64 {
	word := l.Begin(len(words))
	words = append(words, make([]uint64, word+l.Words()-len(words))...) // which makes nothing where there is room
	if values == nil {
		return words
	}
	for i, size := range l {
		word = at(word, size)
		if values[i] != nil {
			SetArg(unsafe.Pointer(&words[word]), values[i], size)
		}
		word += (size + 7) / 8
	}
	return words
}

// Point appends a pointer to each of the arguments that begin at words[0]. The words must stay
// where they are from then on.
func (l Layout) Point(args []unsafe.Pointer, words []uint64) []unsafe.Pointer {
	word := 0
	for _, size := range l {
		word = at(word, size)
		args = append(args, unsafe.Pointer(&words[word]))
		word += (size + 7) / 8
	}
	return args
}

// Align returns words in memory that begins at a line: the same, or a copy with room for as many.
func Align(words []uint64) []uint64 {
	if uintptr(unsafe.Pointer(unsafe.SliceData(words)))%(8*line) == 0 {
		return words
	}
	room := make([]uint64, cap(words)+line-1)
	skip := -uintptr(unsafe.Pointer(unsafe.SliceData(room))) % (8 * line) / 8
	return append(room[skip:skip:len(room)], words...)
}

// AlignEnd appends words until the next one begins a line.
func AlignEnd(words []uint64) []uint64 {
	return append(words, make([]uint64, up(len(words))-len(words))...)
}

// SetArg copies a value to an argument of so many bytes.
func SetArg(arg, value unsafe.Pointer, size int) {
	copy(unsafe.Slice((*byte)(arg), size), unsafe.Slice((*byte)(value), size))
}

// Address returns where an argument that is an address lies.
func Address(arg unsafe.Pointer) *driver.Ptr { return (*driver.Ptr)(arg) }

// Addresses returns the layout of n arguments that are addresses.
func Addresses(n int) Layout {
	l := make(Layout, n)
	for i := range l {
		l[i] = 8
	}
	return l
}
