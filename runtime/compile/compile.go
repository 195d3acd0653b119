// Package compile compiles CUDA C++ and HIP C++ for a device at run time, and keeps the code on
// disk.
//
//	code, _, err := compile.Compile(dev, compile.Source{Name: "saxpy.cu", Text: text})
//
// For a source that is known when the program is built, tools/kernelgen writes Go code that calls
// this package, and a type for each kernel. The type's method Launch takes the kernel's parameters
// as arguments.
//
// CUDA's compiler is NVRTC, a library of NVIDIA's toolkit. The driver does not include NVRTC. The
// compiled code is for the exact architecture of the device. If NVRTC is too old to know that
// architecture, the code is PTX for the newest architecture that NVRTC knows. HIP's compiler is
// hipRTC, a part of ROCm. This package has not been tested with an AMD GPU. On a simulated GPU
// kernels are registered Go functions: only the names of the kernels in a source matter, and all of
// these kernels must be registered.
//
// [Cache] describes the code that is kept on disk.
package compile

import (
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"sync"

	"github.com/puregpu/puregpu/internal/ownfolder"
	"github.com/puregpu/puregpu/internal/secureenv"
	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/gpu"
	"github.com/puregpu/puregpu/runtime/internal/diskcache"
)

// Info describes how a program was compiled.
type Info struct {
	Compiler string // "NVRTC 12.4", "NVRTC 12.4, nvJitLink 12.4", "hipRTC 6.4.43484"
	Target   string // the compiler's default architecture for the device: "sm_90", "gfx90a"
	Log      string // the compiler's output, such as warnings

	Cached   bool  // the code was found on disk
	CacheErr error // why the code could not be kept on disk, or nil
}

// A Cache is a folder of compiled code, which processes may share. The zero Cache is the user's own
// folder.
//
// Code is found again only if all its inputs are the same: all fields of the source, the compiler,
// the compiler's version and the architecture. The cache does not see files that the compiler
// reads. A source may read files if it has an option such as -I, or includes a header that is not
// in [Source].Headers. The code of such a source is kept only if [Source].Revision is set.
//
// A user who can write to the folder decides which code runs on the device. So the folder is used
// only if it belongs to the user of the process or to root, and no other user can write to it. On
// Windows the program has to ensure that no other user can. A folder that is not used, or cannot be
// written, is not an error: [Info].CacheErr has the reason.
type Cache struct {
	// Dir is the folder. Compile makes it if it does not exist. "" means puregpu in
	// [os.UserCacheDir].
	Dir string

	// Size is the limit in bytes. The entries that were not used for the longest time are removed
	// first. 0 means 256 MiB. If Size is negative, no code is kept or looked up.
	Size int64
}

// Compile compiles a source for a device with the zero [Cache], and loads the code. See
// [Cache.Compile].
func Compile(dev *gpu.Device, src Source) (*gpu.Module, Info, error) {
	return Cache{}.Compile(dev, src)
}

// CompileAll compiles a source for several devices with the zero [Cache], and loads the code. See
// [Cache.CompileAll].
func CompileAll(devs []*gpu.Device, src Source) ([]*gpu.Module, []Info, error) {
	return Cache{}.CompileAll(devs, src)
}

// Compile compiles a source for a device and loads the code. The compiler works on the caller's
// goroutine, for up to some seconds, and cannot be cancelled. Meanwhile the compiler holds no
// resources of the device: the device works and may be closed.
//
// The first call looks for the compiler's library. If there is no compiler, the error is
// [driver.ErrUnsupported] and says what to install. Sources with Link are linked by nvJitLink, a
// library of NVIDIA's toolkit. The first call with Link looks for that library. On HIP the error
// for a source with Link is [driver.ErrUnsupported].
//
// If the compiler refuses the source, the error is a [*driver.CompileError] with file and line of
// each message:
//
//	if e, ok := errors.AsType[*driver.CompileError](err); ok {
//		for _, m := range e.Messages { … m.File, m.Line, m.Text … }
//	}
func (c Cache) Compile(dev *gpu.Device, src Source) (*gpu.Module, Info, error) {
	all, infos, err := c.CompileAll([]*gpu.Device{dev}, src)
	if err != nil {
		return nil, Info{}, err
	}
	return all[0], infos[0], nil
}

// CompileAll is like [Cache.Compile], for several devices, such as the devices of a [gpu.Group].
// CompileAll compiles once for all devices that take the same code. The modules and the Infos are
// in the order of the devices. If CompileAll returns an error, no module stays loaded.
func (c Cache) CompileAll(devs []*gpu.Device, src Source) ([]*gpu.Module, []Info, error) {
	src, err := src.check()
	if err != nil {
		return nil, nil, err
	}
	compilers := make([]driver.Compiler, len(devs))
	err = each(len(devs), func(i int) (err error) {
		compilers[i], err = compilerFor(devs[i], src)
		return err
	})
	if err != nil {
		return nil, nil, err
	}
	var programs []*program
	byKey := map[diskcache.Key]*program{}
	of := make([]*program, len(devs)) // program of each device
	for i, dev := range devs {
		key := src.key(compilers[i].Info())
		p := byKey[key]
		if p == nil {
			p = &program{dev: dev, compiler: compilers[i], key: key}
			byKey[key], programs = p, append(programs, p)
		}
		of[i] = p
	}
	if err := each(len(programs), func(i int) error { return programs[i].make(c, src) }); err != nil {
		return nil, nil, err
	}
	all, infos := make([]*gpu.Module, len(devs)), make([]Info, len(devs))
	err = each(len(devs), func(i int) (err error) {
		infos[i] = of[i].info
		if all[i], err = devs[i].LoadCode(of[i].code); err != nil {
			return fmt.Errorf("compile: code of %s: %w", src.Name, err)
		}
		return nil
	})
	if err != nil {
		for _, x := range all {
			x.Close()
		}
		return nil, nil, err
	}
	return all, infos, nil
}

// each calls fn for every number below n at the same time, waits, and joins the errors.
func each(n int, fn func(i int) error) error {
	if n == 1 {
		return fn(0)
	}
	errs := make([]error, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { errs[i] = fn(i) })
	}
	wg.Wait()
	return errors.Join(errs...)
}

// compilerFor returns the compiler of a device, or the device's linker if the source needs one.
func compilerFor(dev *gpu.Device, src Source) (driver.Compiler, error) {
	c, err := dev.Compiler()
	if err == nil && len(src.Link) > 0 {
		c, err = c.(driver.Linkers).Linker()
	}
	if err != nil {
		return nil, fmt.Errorf("compile: %s: %w", src.Name, err)
	}
	return c, nil
}

// A program is the compiled code of a source, for devices that all take the same code.
type program struct {
	dev      *gpu.Device // the first of these devices
	compiler driver.Compiler
	key      diskcache.Key
	code     driver.Code
	info     Info
}

// make gets the code from the disk, or compiles it and stores it there.
func (p *program) make(c Cache, src Source) error {
	by := p.compiler.Info()
	p.info = Info{Compiler: strings.TrimSpace(by.Name + " " + by.Version), Target: by.Target}
	disk, err := c.open(by)
	if err == nil && disk != nil && src.mayReadFiles() {
		disk, err = nil, errFiles
	}
	p.info.CacheErr = err
	if disk != nil {
		if data, ok := disk.Get(p.key); ok {
			if p.code, ok = unpack(data); ok {
				p.info.Log, p.info.Cached = p.code.Log, true
				return nil
			}
		}
	}
	if p.code, err = p.compiler.Compile(src.forDriver()); err != nil {
		return fmt.Errorf("compile: %s on %s: %w", src.Name, p.dev.Info().Name, err)
	}
	p.info.Log = p.code.Log
	if disk != nil {
		p.info.CacheErr = disk.Put(p.key, pack(p.code))
		p.warn()
	}
	return nil
}

// If p.info.CacheErr says that the cache's folder is not trusted, warn logs that, once for each
// device.
func (p *program) warn() {
	if once, ok := p.compiler.(interface{ Once(func()) }); ok && errors.Is(p.info.CacheErr, ownfolder.ErrForeign) {
		once.Once(func() {
			slog.Warn("compile: compiled code is not kept", "device", p.dev.Info().Name, "err", p.info.CacheErr)
		})
	}
}

// open returns the cache on disk. It returns nil without an error if code must not be kept: the
// cache is turned off, or only this process can use the code.
func (c Cache) open(by driver.CompilerInfo) (*diskcache.Cache, error) {
	if c.Size < 0 || by.Transient {
		return nil, nil
	}
	disk := &diskcache.Cache{Dir: c.Dir, Max: c.Size}
	if disk.Max == 0 {
		disk.Max = 256 << 20
	}
	if disk.Dir == "" {
		dir, err := secureenv.UserCacheDir()
		if err != nil {
			return nil, err
		}
		disk.Dir = filepath.Join(dir, "puregpu")
	}
	return disk, nil
}
