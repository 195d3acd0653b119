package nccl

import (
	"fmt"
	"unsafe"

	"github.com/puregpu/puregpu/runtime/dl"
)

// A Library is an open NCCL or RCCL. The zero Library is not open: its methods return [dl.ErrNotOpen]. It must not be
// copied. All methods may be called concurrently; what the library itself allows of a communicator is another matter,
// and it allows one thread at a time.
type Library struct {
	dl.Library
	fns [numFuncs]uintptr
}

// Options say where to look; the zero value is the usual way.
type Options = dl.Options

// A DevicePtr is an address in device memory, the same number as cuda.DevicePtr or hip.DevicePtr.
type DevicePtr uint64

// Open loads NCCL and resolves its functions. It tries opt.Path, else the file that PUREGPU_NCCL_LIBRARY names, else
// libnccl.so.2 and libnccl.so by the system's own rules. Where NCCL is absent or too old the error says so, and nothing
// else is affected: CUDA does not need it.
func Open(opt Options) (*Library, error) { return open(&ncclSpec, opt) }

// OpenRCCL loads RCCL, AMD's implementation, in the same way: PUREGPU_RCCL_LIBRARY, librccl.so.1, librccl.so, and the
// folders of ROCm. It has not been run on an AMD GPU.
func OpenRCCL(opt Options) (*Library, error) { return open(&rcclSpec, opt) }

func open(spec *dl.Spec, opt Options) (*Library, error) {
	l := new(Library)
	if err := l.Library.Open(spec, l.fns[:], opt); err != nil {
		return nil, err
	}
	return l, nil
}

var ncclSpec = dl.Spec{
	Name: "NCCL", Package: "nccl", Env: "PUREGPU_NCCL_LIBRARY",
	Names: ncclNames, Dirs: ncclDirs, Symbols: symbols[:], Sets: sets[:],
	Format: FormatVersion, Floor: floor, Version: askVersion,
	Hint: "install NVIDIA's NCCL 2.3.5 or newer (package libnccl2), or name its file in PUREGPU_NCCL_LIBRARY",
}

var rcclSpec = dl.Spec{
	Name: "RCCL", Package: "nccl", Env: "PUREGPU_RCCL_LIBRARY",
	Names: rcclNames, Dirs: rcclDirs, Symbols: symbols[:], Sets: sets[:],
	Format: FormatVersion, Floor: floor, Version: askVersion,
	Hint: "install AMD's RCCL (package rccl), or name its file in PUREGPU_RCCL_LIBRARY",
}

// floor is the oldest release that has the required functions.
const floor = 2305

func askVersion(l *dl.Library) (dl.Version, error) {
	p := new(int32)
	if err := check(l.Slow(fnGetVersion, uintptr(unsafe.Pointer(p)))); err != nil {
		return 0, fmt.Errorf("ncclGetVersion: %w", err)
	}
	return dl.Version(*p), nil
}

// FormatVersion prints a version number as GetVersion gives it: 22803 is 2.28.3, and up to 2.8 the number has one digit
// less for the minor version.
func FormatVersion(v dl.Version) string {
	if v < 10000 {
		return fmt.Sprintf("%d.%d.%d", v/1000, v%1000/100, v%100)
	}
	return fmt.Sprintf("%d.%d.%d", v/10000, v%10000/100, v%100)
}
