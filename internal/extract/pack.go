package extract

import (
	"strconv"

	"modernc.org/cc/v4"
)

// The C front end lays structs out as if nothing packed them. Those that are packed have to be found, and refused where that makes a difference.

// maxAlign is the alignment from which on packing changes nothing: no type of C's that a table takes has a larger one.
const maxAlign = 8

// packs are the pragmas pack of a translation unit. Those that one file makes for another are not followed.
type packs struct {
	files map[string]map[int]int // by file and line, the alignment that holds from there on; 0 if nothing is packed
	stack []int
	now   int
}

// pragma notes a pragma. Each file is read several times, which notes the same.
func (p *packs) pragma(tokens []cc.Token) error {
	if len(tokens) < 3 || tokens[0].SrcStr() != "pack" {
		return nil
	}
	n := 0 // of pack()
	for _, t := range tokens[1:] {
		switch s := t.SrcStr(); s {
		case "push":
			p.stack = append(p.stack, p.now)
			n = p.now
		case "pop":
			if last := len(p.stack) - 1; last >= 0 {
				n, p.stack = p.stack[last], p.stack[:last]
			}
		default:
			if v, err := strconv.Atoi(s); err == nil {
				n = v
			}
		}
	}
	p.now = n
	at := tokens[0].Position()
	if p.files[at.Filename] == nil {
		p.files[at.Filename] = map[int]int{}
	}
	p.files[at.Filename][at.Line] = n
	return nil
}

// at returns the alignment that holds at a line of a file.
func (p *packs) at(file string, line int) (n int) {
	last := 0
	for from, x := range p.files[file] {
		if from < line && from > last {
			last, n = from, x
		}
	}
	return n
}

// packedByAttribute reports whether a declaration has the attribute packed.
func packedByAttribute(tokens []cc.Token) bool {
	depth := 0 // of brackets in an attribute
	for i, t := range tokens {
		switch s := t.SrcStr(); {
		case depth == 0:
			if (s == "__attribute__" || s == "__attribute") && i+1 < len(tokens) {
				depth = -1 // its bracket comes
			}
		case s == "(":
			depth = max(depth, 0) + 1
		case s == ")":
			depth--
		case depth > 0 && (s == "packed" || s == "__packed__"):
			return true
		}
	}
	return false
}

// repacked reports whether a struct has another layout when no member is aligned to more than n.
func repacked(t cc.Type, fields int, field func(int) *cc.Field, union bool, n int) bool {
	if n <= 0 || n >= maxAlign {
		return false
	}
	end, align := int64(0), int64(1)
	for i := range fields {
		f := field(i)
		if f.IsBitfield() {
			return true // whose place depends on the compiler
		}
		a := int64(max(1, min(f.Type().Align(), n)))
		align = max(align, a)
		if union {
			end = max(end, f.Type().Size())
			continue
		}
		if roundUp(end, a) != f.Offset() {
			return true
		}
		end = f.Offset() + f.Type().Size()
	}
	return roundUp(end, align) != t.Size()
}

func roundUp(n, to int64) int64 { return (n + to - 1) / to * to }
