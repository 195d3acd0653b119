//go:build linux && amd64 && puregpu_static && !nogpu && !cgo

package hostlibc

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"syscall"
	"unsafe"

	"github.com/puregpu/puregpu/internal/regular"
)

var le = binary.LittleEndian

const page = 4096

const (
	ptLoad    = 1
	ptDynamic = 2
	ptInterp  = 3
	ptPhdr    = 6
	ptTLS     = 7
	ptStack   = 0x6474e551

	executable = 1
	writable   = 2
	readable   = 4
)

// A segment is a program header.
type segment struct {
	kind, flags                         uint32
	offset, addr, fileSize, size, align uint64
}

func (s segment) put(b []byte) {
	le.PutUint32(b, s.kind)
	le.PutUint32(b[4:], s.flags)
	for i, v := range []uint64{s.offset, s.addr, s.addr, s.fileSize, s.size, s.align} {
		le.PutUint64(b[8+8*i:], v)
	}
}

func segmentOf(b []byte) segment {
	return segment{
		kind: le.Uint32(b), flags: le.Uint32(b[4:]),
		offset: le.Uint64(b[8:]), addr: le.Uint64(b[16:]), fileSize: le.Uint64(b[32:]), size: le.Uint64(b[40:]), align: le.Uint64(b[48:]),
	}
}

// A region is memory outside Go's heap.
type region struct{ base, size uintptr }

func (r region) unmap() { syscall.Syscall(syscall.SYS_MUNMAP, r.base, r.size, 0) }

// A loader is a dynamic loader in memory.
type loader struct {
	region
	path  string
	entry uintptr
}

// mapLoader maps the dynamic loader in the file at path, as the kernel maps a program's loader.
func mapLoader(path string) (*loader, error) {
	f, fi, err := regular.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if fi.Size() < 64 || fi.Size() > 64<<20 {
		return nil, errors.New("not a dynamic loader")
	}
	data := make([]byte, fi.Size())
	if _, err := f.ReadAt(data, 0); err != nil {
		return nil, err
	}
	segments, entry, err := readLoader(data)
	if err != nil {
		return nil, err
	}

	end := uint64(0)
	for _, s := range segments {
		end = max(end, s.addr+s.size)
	}
	end = (end + page - 1) &^ (page - 1)
	base, err := mmap(0, uintptr(end), 0, syscall.MAP_PRIVATE|syscall.MAP_ANON, -1, 0)
	if err != nil {
		return nil, fmt.Errorf("cannot map it: %w", err)
	}
	ld := &loader{region: region{base, uintptr(end)}, path: path, entry: base + uintptr(entry)}
	for _, s := range segments {
		prot := protection(s.flags)
		start, fileEnd := s.addr&^(page-1), (s.addr+s.fileSize+page-1)&^(page-1)
		skip := s.addr - start
		if fileEnd > start {
			_, err := mmap(base+uintptr(start), uintptr(fileEnd-start), prot, syscall.MAP_PRIVATE|syscall.MAP_FIXED, int(f.Fd()), int64(s.offset-skip))
			if err != nil {
				ld.unmap()
				return nil, fmt.Errorf("cannot map it: %w", err)
			}
		}
		if s.size > s.fileSize {
			if zeros := fileEnd - (s.addr + s.fileSize); zeros > 0 && s.flags&writable != 0 {
				clear(memory(base+uintptr(s.addr+s.fileSize), uintptr(zeros)))
			}
			if memEnd := (s.addr + s.size + page - 1) &^ (page - 1); memEnd > fileEnd {
				const flags = syscall.MAP_PRIVATE | syscall.MAP_FIXED | syscall.MAP_ANON
				if _, err := mmap(base+uintptr(fileEnd), uintptr(memEnd-fileEnd), prot, flags, -1, 0); err != nil {
					ld.unmap()
					return nil, fmt.Errorf("cannot map it: %w", err)
				}
			}
		}
	}
	return ld, nil
}

// readLoader returns the segments of a dynamic loader and its entry, or says why data is not
// glibc's loader.
func readLoader(data []byte) ([]segment, uint64, error) {
	switch {
	case len(data) < 64 || string(data[:4]) != "\x7fELF":
		return nil, 0, errors.New("not an ELF file")
	case data[4] != 2 || data[5] != 1 || le.Uint16(data[18:]) != 62:
		return nil, 0, errors.New("not for amd64")
	case le.Uint16(data[16:]) != 3:
		return nil, 0, errors.New("not a dynamic loader")
	}
	offset, n := le.Uint64(data[32:]), uint64(le.Uint16(data[56:]))
	if le.Uint16(data[54:]) != 56 || offset > uint64(len(data)) || n*56 > uint64(len(data))-offset {
		return nil, 0, errors.New("a damaged ELF file")
	}
	var loads []segment
	var dynamic segment
	end := uint64(0)
	for i := range n {
		s := segmentOf(data[offset+i*56:])
		switch s.kind {
		case ptInterp:
			return nil, 0, errors.New("not a dynamic loader but a program that needs one")
		case ptDynamic:
			dynamic = s
		case ptLoad:
			if s.fileSize > s.size || s.offset > uint64(len(data)) || s.fileSize > uint64(len(data))-s.offset ||
				s.addr < end || s.size > 1<<30 || s.addr > 1<<30 || s.addr%page != s.offset%page {
				return nil, 0, errors.New("a damaged ELF file")
			}
			end = (s.addr + s.size + page - 1) &^ (page - 1)
			loads = append(loads, s)
		}
	}
	entry := le.Uint64(data[24:])
	if len(loads) == 0 || loads[0].addr >= page || entry >= end {
		return nil, 0, errors.New("a damaged ELF file")
	}
	if !names(data, dynamic, "_rtld_global_ro") {
		return nil, 0, errors.New("not glibc's loader")
	}
	return loads, entry, nil
}

// names reports whether the dynamic string table of an ELF file contains name.
func names(data []byte, dynamic segment, name string) bool {
	if dynamic.offset > uint64(len(data)) || dynamic.fileSize > uint64(len(data))-dynamic.offset {
		return false
	}
	var strings, size uint64
	for d := data[dynamic.offset:][:dynamic.fileSize]; len(d) >= 16; d = d[16:] {
		switch le.Uint64(d) {
		case dtStrTab:
			strings = le.Uint64(d[8:])
		case dtStrSize:
			size = le.Uint64(d[8:])
		}
	}
	// In loaders, addresses up to the first writable segment are file offsets, and the strings are
	// before that segment.
	if strings == 0 || strings > uint64(len(data)) || size > uint64(len(data))-strings {
		return false
	}
	return bytes.Contains(data[strings:][:size], []byte("\x00"+name+"\x00"))
}

func protection(flags uint32) int {
	prot := 0
	if flags&readable != 0 {
		prot |= syscall.PROT_READ
	}
	if flags&writable != 0 {
		prot |= syscall.PROT_WRITE
	}
	if flags&executable != 0 {
		prot |= syscall.PROT_EXEC
	}
	return prot
}

func mmap(addr, size uintptr, prot, flags, fd int, offset int64) (uintptr, error) {
	p, _, errno := syscall.Syscall6(syscall.SYS_MMAP, addr, size, uintptr(prot), uintptr(flags), uintptr(fd), uintptr(offset))
	if errno != 0 {
		return 0, errno
	}
	return p, nil
}

// memory returns the size bytes at addr, which are outside Go's heap.
func memory(addr, size uintptr) []byte {
	return unsafe.Slice((*byte)(*(*unsafe.Pointer)(unsafe.Pointer(&addr))), size)
}
