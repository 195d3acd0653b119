package extract

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"testing/fstest"

	"modernc.org/cc/v4"

	"github.com/puregpu/puregpu/symbols"
)

// A source is what one translation unit is made of: the headers themselves, stand-ins for the system headers they
// include, and macros defined in front. Nothing is read from the machine and no compiler is run.
type source struct {
	main    string            // the header to parse
	files   fs.FS             // headers
	stubs   map[string]string // stand-ins, by the name in #include
	defines string            // #define lines
	keep    func(file string) bool
	inline  bool // inline functions are functions too
}

// The compiler's own macros that these headers look at, for LP64.
const predefined = `
#define __SIZE_TYPE__ unsigned long
#define __PTRDIFF_TYPE__ long
#define __WCHAR_TYPE__ int
#define __INT8_TYPE__ signed char
#define __UINT8_TYPE__ unsigned char
#define __UINT16_TYPE__ unsigned short
#define __UINT32_TYPE__ unsigned int
#define __UINT64_TYPE__ unsigned long
#define __INTPTR_TYPE__ long
#define __UINTPTR_TYPE__ unsigned long
#define __LP64__ 1
#define _LP64 1
#define __GNUC__ 12
#define __x86_64__ 1
#define __linux__ 1
#define __STDC_VERSION__ 201112L
`

const stdint = `
typedef signed char int8_t; typedef unsigned char uint8_t;
typedef short int16_t; typedef unsigned short uint16_t;
typedef int int32_t; typedef unsigned int uint32_t;
typedef long int64_t; typedef unsigned long uint64_t;
typedef long intptr_t; typedef unsigned long uintptr_t;
`

// cTypes are the typedefs that come from C itself; a table names them as they are.
var cTypes = map[string]bool{
	"size_t": true, "int8_t": true, "uint8_t": true, "int16_t": true, "uint16_t": true, "int32_t": true,
	"uint32_t": true, "int64_t": true, "uint64_t": true, "intptr_t": true, "uintptr_t": true, "bool": true,
}

var systemHeaders = map[string]string{
	"stdlib.h":  "typedef __SIZE_TYPE__ size_t;\n#define NULL ((void*)0)\n",
	"stddef.h":  "typedef __SIZE_TYPE__ size_t;\n#define NULL ((void*)0)\n",
	"string.h":  "typedef __SIZE_TYPE__ size_t;\n",
	"stdint.h":  stdint,
	"stdbool.h": "#define bool _Bool\n",
	"limits.h":  "#define INT_MIN (-2147483647-1)\n#define INT_MAX 2147483647\n",
	"stdio.h":   "",
	"assert.h":  "",
}

// A header is a parsed translation unit: the parts that the caller asked to keep, in source order.
type header struct {
	table symbols.Table // handles, scalars, aliases, enums, structs, callbacks, constants
	funcs []function
	alias map[string]string // macros that give one identifier for another

	opaque  map[string]string // names that structs without a definition go by, and their tags
	refused []refusal
}

// A refusal is a declaration that no table can hold.
type refusal struct {
	name string
	err  error
}

// A function is a prototype with the comment in front of it.
type function struct {
	symbols.Function
	doc comment
}

func parse(s source) (h *header, err error) {
	defer func() {
		if p := recover(); p != nil { // there are headers that the front end does not survive
			h, err = nil, fmt.Errorf("%s: the C front end gave up: %v", s.main, p)
		}
		err = inFolder(s.files, err)
	}()
	abi, err := cc.NewABI("linux", "amd64")
	if err != nil {
		return nil, err
	}
	files := fstest.MapFS{}
	for _, set := range []map[string]string{systemHeaders, s.stubs} {
		for name, text := range set {
			files[name] = &fstest.MapFile{Data: []byte(text)}
		}
	}
	all := overlayFS{files, s.files}
	text, err := fs.ReadFile(all, s.main)
	if err != nil {
		return nil, err
	}
	cfg := &cc.Config{
		ABI: abi, FS: all, FSOnly: true, Header: true, EvalAllMacros: true, UnsignedEnums: true,
		IncludePaths: []string{"", "."}, SysIncludePaths: []string{"."},
	}
	ast, err := translate(cfg, []cc.Source{
		{Name: "<predefined>", Value: predefined + s.defines},
		{Name: "<builtin>", Value: cc.Builtin},
		{Name: s.main, Value: string(text)},
	})
	if errors.Is(err, errEndless) {
		if c := cycle(all, s.main); c != "" {
			err = fmt.Errorf("%s: %w", c, err)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", s.main, err)
	}
	w := &walker{keep: s.keep, seen: map[string]bool{}, named: map[string]string{}}
	w.out.alias, w.out.opaque = map[string]string{}, map[string]string{}
	w.inline = s.inline
	w.walk(ast)
	for i, r := range w.out.refused {
		w.out.refused[i].err = fmt.Errorf("%s: %w", s.main, r.err)
	}
	w.macros(ast)
	return &w.out, nil
}

// overlayFS looks a file up among the stand-ins first. It puts an empty line behind each: a literal that a backslash at the end of the
// last line continues would have the front end search for its end without end.
type overlayFS [2]fs.FS

func (o overlayFS) Open(name string) (fs.File, error) {
	name = path.Clean(name)
	text, err := fs.ReadFile(o[0], name)
	if err != nil {
		text, err = fs.ReadFile(o[1], name)
	}
	if err != nil {
		return nil, err
	}
	return fstest.MapFS{name: {Data: append(text, "\n\n"...)}}.Open(name)
}
