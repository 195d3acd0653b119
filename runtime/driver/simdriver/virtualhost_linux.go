//go:build amd64 || arm64 || riscv64 || loong64 || ppc64le

package simdriver

import (
	"fmt"
	"os"
	"syscall"
	"unsafe"

	"github.com/puregpu/puregpu/internal/secureenv"
)

// A pageMemory says where pages are in their device's file.
type pageMemory struct{ offset int64 }

// A pageStore holds the physical memory of a device in a file without a path. Parts of the file are
// mapped at the host addresses of reservations.
type pageStore struct {
	file *os.File // the garbage collector closes the file with the device
	end  int64
	old  map[uint64][]int64 // offsets of free places by size
}

// alloc allocates size bytes of the file. They are zero.
func (s *pageStore) alloc(size uint64) (m pageMemory, err error) {
	if s.file == nil {
		if s.file, err = pageFile(); err != nil {
			return m, err
		}
		s.old = make(map[uint64][]int64)
	}
	if free := s.old[size]; len(free) > 0 {
		s.old[size] = free[:len(free)-1]
		return pageMemory{free[len(free)-1]}, nil
	}
	if err := s.file.Truncate(s.end + int64(size)); err != nil {
		return m, err
	}
	s.end += int64(size)
	return pageMemory{s.end - int64(size)}, nil
}

// pageFile makes a file without a path. The file is in /dev/shm, and so in memory, if it can be
// made there.
func pageFile() (*os.File, error) {
	f, err := os.CreateTemp("/dev/shm", "simulated-pages-*")
	if err != nil {
		f, err = os.CreateTemp(secureenv.TempDir(), "simulated-pages-*")
	}
	if err == nil {
		os.Remove(f.Name())
	}
	return f, err
}

// free frees memory of alloc.
func (s *pageStore) free(m pageMemory, size uint64) {
	const keepSize, punchHole = 1, 2
	if syscall.Fallocate(int(s.file.Fd()), keepSize|punchHole, m.offset, int64(size)) != nil {
		return // the file system cannot free the place, so it is not used again
	}
	s.old[size] = append(s.old[size], m.offset)
}

// place maps memory at a host address.
func (s *pageStore) place(at unsafe.Pointer, m pageMemory, size uint64) error {
	_, err := mmap(at, size, syscall.MAP_SHARED|syscall.MAP_FIXED, s.file.Fd(), m.offset)
	return err
}

// clear unmaps memory from a host address. It maps other memory there, because operations of a lost
// device may still be executing.
func (s *pageStore) clear(at unsafe.Pointer, _ pageMemory, size uint64) error {
	_, err := mmap(at, size, anonymous|syscall.MAP_FIXED, ^uintptr(0), 0)
	return err
}

const anonymous = syscall.MAP_PRIVATE | syscall.MAP_ANON | syscall.MAP_NORESERVE

// reserveHost returns host addresses that take no memory until they are touched.
func reserveHost(size uint64) (unsafe.Pointer, error) {
	return mmap(nil, size, anonymous, ^uintptr(0), 0)
}

// freeHost gives host addresses back.
func freeHost(p unsafe.Pointer, size uint64) {
	syscall.Syscall(syscall.SYS_MUNMAP, uintptr(p), uintptr(size), 0)
}

func mmap(at unsafe.Pointer, size uint64, flags int, fd uintptr, offset int64) (unsafe.Pointer, error) {
	p, _, e := syscall.Syscall6(syscall.SYS_MMAP, uintptr(at), uintptr(size), syscall.PROT_READ|syscall.PROT_WRITE, uintptr(flags), fd, uintptr(offset))
	if e != 0 {
		return nil, fmt.Errorf("map %d bytes of host memory: %w", size, e)
	}
	return *(*unsafe.Pointer)(unsafe.Pointer(&p)), nil // not memory of the Go heap
}
