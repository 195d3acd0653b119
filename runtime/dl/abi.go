package dl

import (
	"fmt"
	"unsafe"
)

// An abi says how a platform passes the arguments of a C call.
type abi uint8

const (
	sysv64  abi = iota // System V, amd64: Linux
	aapcs64            // arm64: Linux
	win64              // Microsoft x64
)

// A place is a kind of storage for an argument word.
type place uint8

const (
	inInt   place = iota // integer register
	inFloat              // vector register
	inStack              // 8-byte stack word
)

// A move puts one word of an argument in its place.
type move struct {
	arg   uint8  // index of the argument
	to    place  // kind of storage that the word goes to
	index uint16 // register number, or number of the stack word
	from  int16  // byte offset of a struct's word in the struct; -1: the argument word itself
	size  uint8  // for a word of a struct: number of its bytes
}

// arrange appends the places of the words of a call to the slice moves, and returns the slice. sig
// is the call's signature, and a is the ABI. For a struct, the argument word is the struct's
// address. If the ABI passes the struct by reference, C gets this address.
func arrange(a abi, sig string, moves []move) ([]move, error) {
	ints, floats, stack := 0, 0, 0 // registers and stack words used so far
	maxInts := 6
	if a == aapcs64 {
		maxInts = 8
	}
	sig, _ = cutResult(sig)
	for arg := 0; sig != ""; arg++ {
		p, rest, err := nextParam(sig)
		if err != nil {
			return nil, err
		}
		if arg == maxParams {
			return nil, fmt.Errorf("more than %d parameters", maxParams)
		}
		sig = rest
		m := move{arg: uint8(arg), from: -1}

		if a == win64 {
			// Each parameter takes one slot, counted here as a stack word. callSlow's call passes the
			// first four slots in registers, each in an integer and in a vector register.
			m.to, m.index = inStack, uint16(stack)
			if p.kind == 'h' && (p.size == 4 || p.size == 8) { // the slot holds the struct itself
				m.from, m.size = 0, uint8(p.size)
			}
			moves = append(moves, m)
			stack++
			continue
		}
		if p.kind == 'h' {
			step, fits := 8, p.size <= 16 // amd64: one double or two floats in a register
			if a == aapcs64 {
				step, fits = p.elem, true
			}
			n := (p.size + step - 1) / step
			if fits = fits && floats+n <= 8; !fits {
				step, n = 8, p.words()
				if a == aapcs64 {
					floats = 8 // AAPCS64 6.8.2 C.3: later arguments get no vector register
				}
			}
			for w := range n {
				m.from, m.size = int16(w*step), uint8(min(step, p.size-w*step))
				if fits {
					m.to, m.index = inFloat, uint16(floats)
					floats++
				} else {
					m.to, m.index = inStack, uint16(stack)
					stack++
				}
				moves = append(moves, m)
			}
			continue
		}
		if p.kind == 'f' || p.kind == 'd' {
			if floats < 8 {
				m.to, m.index = inFloat, uint16(floats)
				floats++
			} else {
				m.to, m.index = inStack, uint16(stack)
				stack++
			}
			moves = append(moves, m)
			continue
		}
		if p.kind == 's' && p.size > 16 && a == aapcs64 {
			p = param{kind: 'w'} // the struct is passed by reference
		}
		n := p.words()
		inRegisters := ints+n <= maxInts
		if p.kind == 's' && p.size > 16 {
			inRegisters = false // SysV class MEMORY
		}
		if !inRegisters && a == aapcs64 {
			ints = maxInts // AAPCS64 6.8.2 C.13: later arguments get no integer register
		}
		for w := range n {
			if p.kind == 's' {
				m.from, m.size = int16(w*8), uint8(min(8, p.size-w*8))
			}
			if inRegisters {
				m.to, m.index = inInt, uint16(ints)
				ints++
			} else {
				m.to, m.index = inStack, uint16(stack)
				stack++
			}
			moves = append(moves, m)
		}
	}
	return moves, nil
}

// stackWords returns how many stack words the given moves fill.
func stackWords(moves []move) int {
	n := 0
	for _, m := range moves {
		if m.to == inStack {
			n++
		}
	}
	return n
}

// value returns the word that m moves.
func (m move) value(args []uintptr) uintptr {
	w := args[m.arg]
	if m.from < 0 {
		return w
	}
	var b [8]byte
	p := *(*unsafe.Pointer)(unsafe.Pointer(&w))
	copy(b[:], unsafe.Slice((*byte)(unsafe.Add(p, int(m.from))), int(m.size)))
	return *(*uintptr)(unsafe.Pointer(&b))
}
