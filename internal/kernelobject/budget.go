package kernelobject

import "unsafe"

// A budget bounds the memory for reading one file: the unpacked size of its compressed entries, and
// the returned kernels, parameters and variables. All entries of a file share one budget. An
// uncompressed file never exceeds the budget: the shortest kernel declaration costs some 14 bytes
// for each byte of its text, and the budget has more than 16 for each byte of the file.
type budget struct {
	left uint64
	over bool // an item did not fit
}

// newBudget returns the budget for a file of n bytes.
func newBudget(n int) *budget {
	return &budget{left: 16<<20 + 16*uint64(n)}
}

// take takes n bytes from the budget, and reports whether they fit. After the first failure every
// call fails.
func (b *budget) take(n uint64) bool {
	if b.over || n > b.left {
		b.over = true
		return false
	}
	b.left -= n
	return true
}

// kernel, param and variable take the memory of one item from the budget. texts is the number of
// bytes of the item's names and types.
func (b *budget) kernel(texts int) bool {
	return b.take(uint64(unsafe.Sizeof(Kernel{})) + uint64(texts))
}
func (b *budget) param(texts int) bool { return b.take(uint64(unsafe.Sizeof(Param{})) + uint64(texts)) }
func (b *budget) variable(texts int) bool {
	return b.take(uint64(unsafe.Sizeof(Variable{})) + uint64(texts))
}
