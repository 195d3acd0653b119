package simdriver

import (
	"fmt"
	"os"

	"github.com/puregpu/puregpu/internal/secureenv"
	"github.com/puregpu/puregpu/runtime/driver"
)

var _ driver.MemSharing = (*device)(nil)

// A sharedMem is memory that was exported by ExportShareable.
type sharedMem struct {
	name    string
	origin  *allocation // the exported allocation, which may have been freed
	first   *byte       // the first byte of the memory
	holders int         // number of allocations that have the memory, in all processes; at 0 the export ends
}

// lose removes the allocation a from the holders of the exported memory that a has, if any. The
// allocation was freed, or its process has ended. The caller holds m.mu.
func (m *Machine) lose(a *allocation) {
	s := a.shared
	if s == nil {
		return
	}
	a.shared = nil
	if s.holders--; s.holders == 0 {
		delete(m.shared, s.name)
	}
}

// nameFile makes a file without a path. Its content is the name of an export in the [Machine].
func nameFile(name string) (*os.File, error) {
	f, err := os.CreateTemp(secureenv.TempDir(), "simulated-memory-*")
	if err != nil {
		return nil, err
	}
	os.Remove(f.Name())
	if _, err = f.WriteString(name); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// nameIn returns the name in a file of nameFile. For any other file the result is arbitrary.
func nameIn(f *os.File) string {
	text := make([]byte, 64)
	n, _ := f.ReadAt(text, 0)
	return string(text[:n])
}

// ExportShareable returns a file that names memory of the [Machine]. The file is valid while a
// process has the memory. Unlike a descriptor of CUDA, the file alone does not keep the memory
// alive.
func (v *device) ExportShareable(m driver.Mem) (*os.File, error) {
	if err := v.enterIf(codeExportShareable, true, v.d.caps.MemSharing); err != nil {
		return nil, err
	}
	a := v.space.find(m.Ptr)
	switch {
	case a == nil || a.base != m.Ptr:
		return nil, failf(codeExportShareable, "memory at %#x: %w: no allocation of device %d begins there", uint64(m.Ptr), ErrInvalidValue, v.index)
	case a.kind != driver.ShareableMem || a.origin != nil:
		return nil, failf(codeExportShareable, "memory at %#x: %w: it was not allocated as shareable memory", uint64(m.Ptr), ErrInvalidValue)
	}
	first := a.touch()
	k := v.d.machine
	k.mu.Lock()
	if a.shared == nil {
		k.exported++
		a.shared = &sharedMem{name: fmt.Sprintf("simulated shareable memory %d", k.exported), origin: a, first: first, holders: 1}
		if k.shared == nil {
			k.shared = map[string]*sharedMem{}
		}
		k.shared[a.shared.name] = a.shared
	}
	name := a.shared.name
	k.mu.Unlock()
	f, err := nameFile(name)
	if err != nil {
		return nil, fail(codeExportShareable, err)
	}
	return f, nil
}

// sharedPages returns the number of pages that size bytes take. A page has 2 MiB, as CUDA's pages
// usually do.
func sharedPages(size uint64) uint64 { return (size + 2<<20 - 1) / (2 << 20) }

// ImportShareable makes the memory that a file names accessible at a new address. As with CUDA,
// size may be less than the size of the memory if both take the same number of pages. Importing
// memory of another device needs Caps.Peers and a link between the devices.
func (v *device) ImportShareable(f *os.File, size uint64) (driver.Mem, error) {
	if err := v.enterIf(codeImportShareable, true, v.d.caps.MemSharing); err != nil {
		return driver.Mem{}, err
	}
	name, k := nameIn(f), v.d.machine
	k.mu.Lock()
	defer k.mu.Unlock()
	s := k.shared[name]
	switch {
	case s == nil:
		return driver.Mem{}, failf(codeImportShareable, "file %s: %w: it names no shareable memory, or no process has that memory any more", f.Name(), ErrInvalidHandle)
	case size == 0 || size > s.origin.size || sharedPages(size) != sharedPages(s.origin.size):
		return driver.Mem{}, failf(codeImportShareable, "%d bytes: %w: the memory has %d, and can only be imported as a whole", size, ErrInvalidValue, s.origin.size)
	case !v.reaches(s.origin.dev):
		return driver.Mem{}, failf(codeImportShareable, "memory of device %d on device %d: the hardware has no link: %w", s.origin.dev.index, v.index, driver.ErrUnsupported)
	}
	a := &allocation{kind: driver.ShareableMem, size: size, dev: v, origin: s.origin, opens: 1, shared: s}
	a.data.Store(s.first)
	v.space.mu.Lock()
	err := v.space.place(a)
	v.space.mu.Unlock()
	if err != nil {
		return driver.Mem{}, fail(codeImportShareable, err)
	}
	s.holders++
	return driver.Mem{Kind: driver.ShareableMem, Ptr: a.base, Size: size}, nil
}
