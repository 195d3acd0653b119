package work

import (
	"math/rand/v2"
	"slices"
	"testing"
	"unsafe"
)

// bytesAt returns the n bytes at an address.
func bytesAt(p unsafe.Pointer, n int) []byte { return unsafe.Slice((*byte)(p), n) }

// layouts have arguments that fill a word, fill it in part, take several words, or begin at a line.
// words is the number of words that each layout needs.
var layouts = []struct {
	Layout
	words int
}{{nil, 0}, {Layout{8}, 1}, {Layout{4}, 1}, {Layout{1, 2, 4, 8}, 4}, {Layout{9, 8, 3}, 4}, {Layout{16, 1, 24, 7, 8}, 8}, {Layout{4096, 1}, 513},
	{Layout{64}, 8}, {Layout{8, 128, 4}, 25}, {Layout{1, 1, 64, 64, 63, 65}, 41}, {Layout{8, 32704, 8}, 8 + 4088 + 1}, {Layout{32760, 4}, 4096}}

func TestLayout(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for _, c := range layouts {
		l, words := c.Layout, c.words
		data := make([][]byte, len(l))
		values := make([]unsafe.Pointer, len(l))
		for i, size := range l {
			data[i] = make([]byte, size)
			for j := range data[i] {
				data[i][j] = byte(random.Uint32())
			}
			values[i] = unsafe.Pointer(&data[i][0])
		}
		if n := l.Words(); n != words {
			t.Errorf("%v: %d words, want %d", l, n, words)
		}
		lines := slices.ContainsFunc(l, func(size int) bool { return size%64 == 0 })
		before, begin := []uint64{1, 2, 3}, 3
		if lines {
			begin = 8
		}
		all := Align(l.Append(slices.Clone(before), values))
		if n := l.Begin(3); n != begin || len(all) != begin+words || !slices.Equal(all[:3], before) {
			t.Fatalf("%v: %d words from %d on, of which the first are %v", l, len(all), n, all[:3])
		}
		args := l.Point(nil, all[begin:])
		if len(args) != len(l) {
			t.Fatalf("%v: %d pointers", l, len(args))
		}
		for i, size := range l {
			if !slices.Equal(bytesAt(args[i], size), data[i]) {
				t.Errorf("%v: argument %d is %x, want %x", l, i, bytesAt(args[i], size), data[i])
			}
			if align := map[bool]uintptr{true: 64, false: 8}[size%64 == 0]; uintptr(args[i])%align != 0 {
				t.Errorf("%v: argument %d is not aligned to %d bytes", l, i, align)
			}
		}
	}
}

// TestAlign checks the alignment of memory that begins at each word of a line.
func TestAlign(t *testing.T) {
	room := make([]uint64, 64)
	for i := range 16 {
		words := room[i : i+3 : i+11]
		words[0], words[2] = uint64(i), 7
		got := Align(words)
		if uintptr(unsafe.Pointer(&got[0]))%64 != 0 || !slices.Equal(got, words) || cap(got) < cap(words) {
			t.Errorf("from word %d on: %v of %d, at %p", i, got, cap(got), got)
		}
		if again := Align(got); &again[0] != &got[0] || &again[:cap(again)][0] != &got[0] {
			t.Errorf("from word %d on: Align moves aligned memory", i)
		}
		for n := range 20 {
			if got := AlignEnd(room[:n]); len(got) != (n+7)/8*8 {
				t.Errorf("%d words become %d", n, len(got))
			}
		}
	}
	if n := testing.AllocsPerRun(10, func() { room = Align(Align(room)) }); n > 1 {
		t.Errorf("%v allocations", n)
	}
	Align(nil)
}

// TestLayoutAgain writes arguments over earlier ones. Arguments without a value must become zero,
// and nothing may be allocated.
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
