package work

import (
	"math/rand/v2"
	"slices"
	"testing"
	"unsafe"
)

// bytesAt returns what is at an address.
func bytesAt(p unsafe.Pointer, n int) []byte { return unsafe.Slice((*byte)(p), n) }

// layouts are arguments of sizes that fill a word, do not, and take several.
var layouts = []Layout{nil, {8}, {4}, {1, 2, 4, 8}, {9, 8, 3}, {16, 1, 24, 7, 8}, {4096, 1}}

func TestLayout(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for _, l := range layouts {
		data := make([][]byte, len(l))
		values := make([]unsafe.Pointer, len(l))
		words := 0
		for i, size := range l {
			data[i] = make([]byte, size)
			for j := range data[i] {
				data[i][j] = byte(random.Uint32())
			}
			values[i] = unsafe.Pointer(&data[i][0])
			words += (size + 7) / 8
		}
		if n := l.Words(); n != words {
			t.Errorf("%v: %d words, want %d", l, n, words)
		}
		before := []uint64{1, 2, 3}
		all := l.Append(slices.Clone(before), values)
		if len(all) != 3+words || !slices.Equal(all[:3], before) {
			t.Fatalf("%v: %d words behind 3, of which the first are %v", l, len(all), all[:3])
		}
		args := l.Point(nil, all[3:])
		if len(args) != len(l) {
			t.Fatalf("%v: %d pointers", l, len(args))
		}
		for i, size := range l {
			if !slices.Equal(bytesAt(args[i], size), data[i]) {
				t.Errorf("%v: argument %d is %x, want %x", l, i, bytesAt(args[i], size), data[i])
			}
			if uintptr(args[i])%8 != 0 {
				t.Errorf("%v: argument %d does not begin at a word", l, i)
			}
		}
	}
}

// TestLayoutAgain lays arguments where others were before: what is not given is zero, and nothing is allocated.
func TestLayoutAgain(t *testing.T) {
	l := Layout{4, 8, 12}
	value := [12]byte{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}
	values := []unsafe.Pointer{unsafe.Pointer(&value), nil, unsafe.Pointer(&value)}
	words := []uint64{1 << 63, 1 << 63, 1 << 63, 1 << 63}
	args := make([]unsafe.Pointer, 0, 3)
	n := testing.AllocsPerRun(10, func() {
		words = l.Append(words[:0], values)
		args = l.Point(args[:0], words)
	})
	if n != 0 {
		t.Errorf("%v allocations", n)
	}
	if want := []uint64{0x04030201, 0, 0x0807060504030201, 0x0c0b0a09}; !slices.Equal(words, want) {
		t.Errorf("%x, want %x", words, want)
	}
	*Address(args[1]) = 0x1234
	if words[1] != 0x1234 {
		t.Errorf("%x where the address was put", words[1])
	}
	SetArg(args[2], unsafe.Pointer(&value[4]), 2)
	if words[2] != 0x0807060504030605 {
		t.Errorf("%x after a value of 2 bytes was set", words[2])
	}
	if words = l.Append(words[:0], nil); slices.ContainsFunc(words, func(w uint64) bool { return w != 0 }) {
		t.Errorf("%x without values", words)
	}
}
