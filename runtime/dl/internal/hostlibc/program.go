//go:build linux && amd64 && puregpu_static && !nogpu && !cgo

package hostlibc

import (
	"os"
	"strings"
	"syscall"
	"unsafe"

	goruntime "github.com/puregpu/puregpu/internal/this-go-is-too-new/build-with-ldflags-checklinkname-0/or-see-docs-new-go"
)

const (
	dtNeeded   = 1
	dtHash     = 4
	dtStrTab   = 5
	dtSymTab   = 6
	dtRela     = 7
	dtRelaSize = 8
	dtRelaEnt  = 9
	dtStrSize  = 10
	dtSymEnt   = 11
	dtDebug    = 21
	dtFlags    = 30

	bindNow  = 8
	globDat  = 6  // R_X86_64_GLOB_DAT: the address of a symbol
	tlsDelta = 18 // R_X86_64_TPOFF64: the offset of the TLS block from the thread pointer
)

// needed lists the libraries with the imported functions. Since glibc 2.34 all functions are in
// libc.so.6.
var needed = []string{"libc.so.6", "libpthread.so.0", "libdl.so.2"}

// tlsSize is the size of the program's TLS block: one pointer, Go's current g.
const tlsSize = 8

// A program is the image that the loader uses as the main program of the process: headers and a
// dynamic section, without a file. Its relocations make the loader fill the variable table. The
// functions that the program exports belong to this package.
type program struct {
	region
	headers uintptr
	count   int
}

// newProgram makes a program. Its addresses are absolute, as in a program linked at a fixed
// address.
func newProgram(loaderPath string) (*program, error) {
	const (
		headersAt = 0
		headers   = 6
		dynamicAt = headersAt + headers*56
		dynamic   = 16
		relaAt    = dynamicAt + dynamic*16
		symbolsAt = relaAt + (len(imports)+1)*24
		symbols   = 1 + len(imports) + len(exports)
		hashAt    = symbolsAt + symbols*24
		stringsAt = hashAt + (2+1+symbols)*4
	)
	texts := []byte{0}
	text := func(s string) uint64 {
		texts = append(append(texts, s...), 0)
		return uint64(len(texts) - 1 - len(s))
	}
	interp := text(loaderPath)
	var names, libraries []uint64
	for _, name := range append(imports[:], exports[:]...) {
		names = append(names, text(name))
	}
	for _, l := range needed {
		libraries = append(libraries, text(l))
	}
	size := (uintptr(stringsAt+len(texts)) + page - 1) &^ (page - 1)
	base, err := mmap(0, size, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_PRIVATE|syscall.MAP_ANON, -1, 0)
	if err != nil {
		return nil, err
	}
	b, at := memory(base, size), uint64(base)

	path := uint64(len(loaderPath)) + 1
	for i, s := range [headers]segment{
		{kind: ptPhdr, flags: readable, offset: headersAt, addr: at + headersAt, fileSize: headers * 56, size: headers * 56, align: 8},
		{kind: ptInterp, flags: readable, offset: uint64(stringsAt) + interp, addr: at + uint64(stringsAt) + interp, fileSize: path, size: path, align: 1},
		{kind: ptLoad, flags: readable | writable, offset: 0, addr: at, fileSize: uint64(size), size: uint64(size), align: page},
		{kind: ptDynamic, flags: readable | writable, offset: dynamicAt, addr: at + dynamicAt, fileSize: dynamic * 16, size: dynamic * 16, align: 8},
		{kind: ptTLS, flags: readable, offset: 0, addr: at, fileSize: 0, size: tlsSize, align: 8},
		{kind: ptStack, flags: readable | writable, align: 16},
	} {
		s.put(b[headersAt+i*56:])
	}

	d := b[dynamicAt:dynamicAt]
	entry := func(tag, value uint64) { d = le.AppendUint64(le.AppendUint64(d, tag), value) }
	for _, l := range libraries {
		entry(dtNeeded, l)
	}
	entry(dtHash, at+uint64(hashAt))
	entry(dtStrTab, at+uint64(stringsAt))
	entry(dtStrSize, uint64(len(texts)))
	entry(dtSymTab, at+uint64(symbolsAt))
	entry(dtSymEnt, 24)
	entry(dtRela, at+uint64(relaAt))
	entry(dtRelaSize, uint64(len(imports)+1)*24)
	entry(dtRelaEnt, 24)
	entry(dtFlags, bindNow)
	entry(dtDebug, 0)

	slot := uint64(uintptr(unsafe.Pointer(&table[0])))
	r := b[relaAt:relaAt]
	for i := range imports {
		r = le.AppendUint64(le.AppendUint64(le.AppendUint64(r, slot+8*uint64(i)), uint64(i+1)<<32|globDat), 0)
	}
	le.AppendUint64(le.AppendUint64(le.AppendUint64(r, slot+8*uint64(len(imports))), tlsDelta), 0)

	const function, global, weak = 2, 1 << 4, 2 << 4
	sym := b[symbolsAt+24 : symbolsAt+24]
	for i, name := range names {
		kind, section, value := byte(global|function), byte(0), uint64(0) // an undefined symbol, which another library defines
		switch {
		case i == rseqSize:
			kind = weak
		case i >= len(imports):
			section, value = 1, uint64(entries.refuse)
		}
		sym = append(le.AppendUint32(sym, uint32(name)), kind, 0, section, 0)
		sym = le.AppendUint64(le.AppendUint64(sym, value), 0)
	}

	// The hash table has one bucket: a chain of all defined symbols.
	h := le.AppendUint32(le.AppendUint32(b[hashAt:hashAt], 1), uint32(symbols))
	h = le.AppendUint32(h, uint32(1+len(imports)))
	for i := range symbols {
		next := 0
		if i > len(imports) && i+1 < symbols {
			next = i + 1
		}
		h = le.AppendUint32(h, uint32(next))
	}
	copy(b[stringsAt:], texts)
	return &program{region: region{base, size}, headers: base + headersAt, count: headers}, nil
}

// Entries of the auxiliary vector.
const (
	atNull      = 0
	atPhdr      = 3
	atPhent     = 4
	atPhnum     = 5
	atBase      = 7
	atEntry     = 9
	atSecure    = 23
	atRSeqSize  = 27
	atRSeqAlign = 28
)

// newStack makes a stack for a thread that starts in the loader. The program's arguments, the
// environment and the auxiliary vector are where the kernel would put them. newStack returns the
// stack's memory and the initial stack pointer.
func newStack(ld *loader, p *program, entry uintptr) (stack region, sp uintptr, err error) {
	const size = 1 << 20
	var words []uint64
	var texts []byte
	var pointers []int // indexes of words that are offsets into texts, and become addresses
	text := func(s string) {
		pointers = append(pointers, len(words))
		words = append(words, uint64(len(texts)))
		texts = append(append(texts, s...), 0)
	}
	words = append(words, uint64(len(os.Args)))
	for _, arg := range os.Args {
		text(arg)
	}
	words = append(words, 0)
	for _, v := range environment(os.Environ()) {
		text(v)
	}
	words = append(words, 0)
	aux := goruntime.Auxv()
	for i := 0; i+1 < len(aux); i += 2 {
		switch aux[i] {
		case atNull, atPhdr, atPhent, atPhnum, atBase, atEntry, atRSeqSize, atRSeqAlign:
			continue
		}
		words = append(words, uint64(aux[i]), uint64(aux[i+1]))
	}
	words = append(words, atPhdr, uint64(p.headers), atPhent, 56, atPhnum, uint64(p.count),
		atBase, uint64(ld.base), atEntry, uint64(entry), atNull, 0)

	total := (uintptr(len(words)*8+len(texts)) + size + page - 1) &^ (page - 1)
	// MAP_GROWSDOWN is for libraries that need an executable stack: glibc changes this stack like
	// one made by the kernel.
	const flags = syscall.MAP_PRIVATE | syscall.MAP_ANON | syscall.MAP_NORESERVE | syscall.MAP_STACK | syscall.MAP_GROWSDOWN
	base, err := mmap(0, total, syscall.PROT_READ|syscall.PROT_WRITE, flags, -1, 0)
	if err != nil {
		return region{}, 0, err
	}
	textsAt := base + total - uintptr(len(texts))
	sp = (textsAt - uintptr(len(words)*8)) &^ 15
	for _, i := range pointers {
		words[i] += uint64(textsAt)
	}
	copy(memory(textsAt, uintptr(len(texts))), texts)
	b := memory(sp, uintptr(len(words)*8))
	for i, w := range words {
		le.PutUint64(b[i*8:], w)
	}
	return region{base, total}, sp, nil
}

// environment returns the environment for C. It is env with restartable sequences turned off, and
// without LD_TRACE_LOADED_OBJECTS.
func environment(env []string) []string {
	const tunables = "GLIBC_TUNABLES="
	noRSeq := tunables + "glibc.pthread.rseq=0"
	var out []string
	for _, v := range env {
		switch {
		case strings.HasPrefix(v, "LD_TRACE_LOADED_OBJECTS="): // the loader would end the process
		case strings.HasPrefix(v, tunables):
			noRSeq = v + ":glibc.pthread.rseq=0"
		default:
			out = append(out, v)
		}
	}
	return append(out, noRSeq)
}
