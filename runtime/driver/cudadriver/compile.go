package cudadriver

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/puregpu/puregpu/internal/cudaheaders"
	"github.com/puregpu/puregpu/internal/tried"
	"github.com/puregpu/puregpu/nvrtc"
	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/driver/internal/rtc"
)

var (
	_ driver.Compilers = (*device)(nil)
	_ driver.Linkers   = (*compilerFor)(nil)
)

// An nvrtcLibrary is NVRTC and the architectures that it supports.
type nvrtcLibrary struct {
	*nvrtc.Library
	archs []int // supported architectures, ascending: 90 for sm_90
	build string
}

// openNVRTC returns a function that opens NVRTC when it is called for the first time.
func openNVRTC(opt nvrtc.Options) func() (*nvrtcLibrary, error) {
	return sync.OnceValues(func() (*nvrtcLibrary, error) {
		lib, err := nvrtc.Open(opt)
		if err != nil {
			return nil, unsupported{err} // the error says what was searched for, where, and what to install
		}
		if err := tried.NotReady(lib); err != nil {
			return nil, err // the error names each file that was found, with its own error
		}
		l := &nvrtcLibrary{Library: lib, build: rtc.Build(lib.Path())}
		n, err := lib.GetNumSupportedArchs()
		if err != nil {
			return nil, err
		}
		archs := make([]int32, n)
		if n > 0 {
			if err := lib.GetSupportedArchs(archs); err != nil {
				return nil, err
			}
		}
		for _, a := range archs {
			l.archs = append(l.archs, int(a))
		}
		slices.Sort(l.archs)
		return l, nil
	})
}

// Compiler returns NVRTC for the device's architecture.
func (d *device) Compiler() (driver.Compiler, error) {
	lib, err := d.nvrtc()
	if err != nil {
		return nil, d.fail("compile", err, "NVRTC")
	}
	target, err := lib.target(10*d.info.Major + d.info.Minor)
	if err != nil {
		return nil, d.fail("compile", err, "NVRTC %s", nvrtc.FormatVersion(lib.Version()))
	}
	c := &compilerFor{lib: lib, target: target}
	c.linker = func() (driver.Compiler, error) {
		if !lib.HasSymbol("nvrtcGetLTOIR") {
			return nil, d.fail("compile", driver.ErrUnsupported, "NVRTC %s cannot make LTO-IR; install 12.0 or newer", nvrtc.FormatVersion(lib.Version()))
		}
		nvjitlink, err := d.nvjitlink()
		if err != nil {
			return nil, d.fail("compile", err, "nvJitLink, which links sources")
		}
		return &linkerFor{compilerFor: c, link: nvjitlink, build: rtc.Build(nvjitlink.Path())}, nil
	}
	return c, nil
}

// target returns the architecture to compile for. If NVRTC supports arch, target returns the real
// architecture, such as sm_90. Otherwise target returns the newest older architecture that NVRTC
// supports, as a virtual one such as compute_80: NVRTC then makes PTX, which the driver compiles.
func (l *nvrtcLibrary) target(arch int) (string, error) {
	if slices.Contains(l.archs, arch) {
		return fmt.Sprintf("sm_%d", arch), nil
	}
	best := 0
	for _, a := range l.archs {
		if a < arch {
			best = a
		}
	}
	if best == 0 {
		return "", fmt.Errorf("it compiles neither for sm_%d nor for an older architecture, only for %v: %w", arch, l.archs, driver.ErrUnsupported)
	}
	return fmt.Sprintf("compute_%d", best), nil
}

// compilerFor compiles for one architecture. It is immutable.
type compilerFor struct {
	lib    *nvrtcLibrary
	target string
	linker func() (driver.Compiler, error)
}

// Linker returns a compiler that uses NVRTC and nvJitLink.
func (c *compilerFor) Linker() (driver.Compiler, error) { return c.linker() }

func (c *compilerFor) Info() driver.CompilerInfo {
	return driver.CompilerInfo{Name: "NVRTC", Version: nvrtc.FormatVersion(c.lib.Version()), Build: c.lib.build, Target: c.target}
}

// Compile returns a cubin if the target is a real architecture, and PTX otherwise.
func (c *compilerFor) Compile(src *driver.Source) (driver.Code, error) {
	options := rtc.Options(src, "--gpu-architecture="+c.target, archOptions...)
	code, err := c.compile(src, options, c.output)
	if err != nil {
		return driver.Code{}, wrap("compile", rtc.Error(c.Info(), src.Name, code.Log, err))
	}
	return code, nil
}

// compile is [rtc.Compile] with a search for headers: see [cudaheaders.Compile].
func (c *compilerFor) compile(src *driver.Source, options []string, output func(nvrtc.Program) ([]byte, error)) (code driver.Code, err error) {
	with := *src
	note, err := cudaheaders.Compile(c.lib.Path(), src.Headers, options, func(headers map[string]string, options []string) (log string, err error) {
		with.Headers = headers
		code, err = rtc.Compile(c.lib, &with, options, output)
		return code.Log, err
	})
	if note != "" {
		code.Log += fmt.Sprintf("\n%s: note: %s: name its folder by the option -I, or put its text into Headers", src.Name, note)
	}
	return code, err
}

// archOptions are the options that select the architecture.
var archOptions = []string{"-arch", "--gpu-architecture", "-gpu-architecture"}

// output returns the cubin of a compiled program, or the PTX if there is no cubin.
func (c *compilerFor) output(p nvrtc.Program) ([]byte, error) {
	image, err := rtc.Fetch(p, c.lib.GetCUBINSize, c.lib.GetCUBIN)
	if err != nil || len(image) > 0 {
		return image, err
	}
	image, err = rtc.Fetch(p, c.lib.GetPTXSize, c.lib.GetPTX)
	if err == nil && len(strings.Trim(string(image), "\x00")) == 0 {
		err = errNoCode
	}
	return image, err
}

// errNoCode is the error if options such as -dlto made neither a cubin nor PTX.
var errNoCode = fmt.Errorf("the options give neither a cubin nor PTX, so nothing can be loaded: %w", driver.ErrUnsupported)
