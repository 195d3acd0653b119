package extract

import (
	_ "embed"
	"fmt"
	"strings"
	"sync"
)

// numbers has the macros of the C library's headers that have a number, as system/gen.go found them.
//
//go:embed system/numbers.txt
var numbers string

// A system is what stands for the headers of the C library and of Linux.
type system struct {
	headers map[string]string // text by name
	differs map[string]bool   // macros with another number on arm64
}

const numbersOf = "puregpu/numbers/" // of a header, in the name of a file

// standIns returns the stand-ins for the C library. Each has the types that headers of libraries name, and all macros with a
// number: a header that asks for one with #ifdef must get the answer that a compiler gives.
var standIns = sync.OnceValue(func() *system {
	s := &system{map[string]string{}, map[string]bool{}}
	for name, text := range systemHeaders {
		s.headers[name] = text
	}
	file := ""
	for line := range strings.Lines(numbers) {
		switch f := strings.Fields(line); f[0] {
		case "#":
			file = numbersOf + f[1]
		case ">":
			text, ok := s.headers[f[1]]
			if !ok {
				text = posix
			}
			for _, of := range f[2:] {
				text += "#include <" + numbersOf + of + ">\n"
			}
			s.headers[f[1]] = text
		default:
			name, value, _ := strings.Cut(strings.TrimSpace(line), " ")
			value, differs := strings.CutSuffix(value, " !")
			s.differs[name] = s.differs[name] || differs
			s.headers[file] += fmt.Sprintf("#ifndef %s\n#define %s %s\n#endif\n", name, name, value)
		}
	}
	return s
})
