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
	first   *byte
	holders int // number of allocations of the memory in all processes; without any the memory is freed
}

// lose records that a process has freed an allocation. Other processes may have imported its
// memory. The caller holds mu.
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

// ExportShareable returns a file that names memory of the [Machine]. The memory exists while a
// process has it. Unlike a descriptor of CUDA, the file alone does not keep the memory alive.
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

// sharedPages returns the number of pages of 2 MiB that memory takes. CUDA's pages usually have
// this size.
func sharedPages(size uint64) uint64 { return (size + 2<<20 - 1) / (2 << 20) }

// ImportShareable maps the memory that a file names at a new address. As with CUDA, size may leave
// out bytes of the last page. The memory may be on another device if there is a link to that
// device.
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
	case s.origin.dev.index != v.index && (v.d.apart || !v.d.caps.Peers):
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
