package extract

import (
	_ "embed"
	"fmt"
	"strings"
	"sync"
)

// numbers lists the numeric macros of the C library's headers, as found by system/gen.go.
//
//go:embed system/numbers.txt
var numbers string

// A system holds stand-ins for the headers of the C library, of Linux and of the compiler.
type system struct {
	headers map[string]string // text by name
	differs map[string]bool   // macros with a different number on arm64
}

// features is a file that every stand-in for the C library includes first. _GNU_SOURCE has an
// effect only if it is defined before features is included for the first time.
const (
	featuresFile = "puregpu/features"
	features     = "#ifndef PUREGPU_FEATURES\n#define PUREGPU_FEATURES\n#ifdef _GNU_SOURCE\n#define PUREGPU_GNU\n#endif\n#endif\n" + cdefs + glibc
	glibc        = "#ifndef __GLIBC_PREREQ\n#define __GLIBC_PREREQ(major, minor) ((__GLIBC__ << 16) + __GLIBC_MINOR__ >= ((major) << 16) + (minor))\n#endif\n"
)

// vectors are the types of compiler headers for vector instructions. Declarations that use these
// types are refused.
const vectors = `
#ifndef PUREGPU_VECTORS
#define PUREGPU_VECTORS
typedef int __m64 __attribute__((vector_size(8)));
typedef float __m128 __attribute__((vector_size(16)));
typedef long long __m128i __attribute__((vector_size(16)));
typedef double __m128d __attribute__((vector_size(16)));
typedef float __m256 __attribute__((vector_size(32)));
typedef long long __m256i __attribute__((vector_size(32)));
typedef double __m256d __attribute__((vector_size(32)));
typedef float __m512 __attribute__((vector_size(64)));
typedef long long __m512i __attribute__((vector_size(64)));
typedef double __m512d __attribute__((vector_size(64)));
#endif
`

const numbersOf = "puregpu/numbers/" // the file with a header's numeric macros has this prefix and the header's name

// standIns returns the stand-ins for system headers. A stand-in for a header of the C library has
// the types that headers of GPU libraries use. It also has all numeric macros, since a header of a
// GPU library may test for any macro with #ifdef.
var standIns = sync.OnceValue(func() *system {
	s := &system{map[string]string{}, map[string]bool{}}
	s.headers[featuresFile] = features
	for _, name := range strings.Fields(`mmintrin.h xmmintrin.h emmintrin.h pmmintrin.h tmmintrin.h smmintrin.h nmmintrin.h wmmintrin.h
		immintrin.h x86intrin.h cpuid.h arm_neon.h`) {
		s.headers[name] = vectors
	}
	for name, text := range systemHeaders {
		s.headers[name] = "#include <" + featuresFile + ">\n" + text
	}
	file := ""
	for line := range strings.Lines(numbers) {
		switch f := strings.Fields(line); f[0] {
		case "#":
			file = numbersOf + f[1]
		case ">":
			text, ok := s.headers[f[1]]
			if !ok {
				text = "#include <" + featuresFile + ">\n" + posix
			}
			for _, of := range f[2:] {
				include := "#include <" + numbersOf
				if of, is := strings.CutSuffix(of, "+"); is { // with _GNU_SOURCE only
					text += "#ifdef PUREGPU_GNU\n" + include + of + ">\n#endif\n"
					continue
				}
				text += include + of + ">\n"
			}
			s.headers[f[1]] = text
		default:
			name, value, _ := strings.Cut(strings.TrimSpace(line), " ")
			condition := "#ifndef " + name
			value, gnu := strings.CutSuffix(value, " gnu")
			if gnu {
				condition = "#if defined PUREGPU_GNU && !defined " + name
			}
			value, differs := strings.CutSuffix(value, " !")
			s.differs[name] = s.differs[name] || differs
			s.headers[file] += fmt.Sprintf("%s\n#define %s %s\n#endif\n", condition, name, value)
		}
	}
	return s
})
