package hipdriver

import (
	"fmt"
	"maps"
	"regexp"
	"strings"
	"sync"

	"github.com/puregpu/puregpu/hiprtc"
	"github.com/puregpu/puregpu/internal/tried"
	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/driver/internal/rtc"
)

var _ driver.Compilers = (*device)(nil)

// openHIPRTC returns a function that opens hipRTC at its first call.
func openHIPRTC(opt hiprtc.Options) func() (*hiprtc.Library, error) {
	return sync.OnceValues(func() (*hiprtc.Library, error) {
		lib, err := hiprtc.Open(opt)
		if err != nil {
			return nil, unsupported{err} // the error says what was searched for, where, and what to install
		}
		if err := tried.NotReady(lib); err != nil {
			return nil, err // the error names each file that was found, with the error of that file
		}
		return lib, nil
	})
}

// Compiler returns hipRTC for the device's architecture. It does not change the thread's last
// error, which belongs to the HIP runtime.
func (d *device) Compiler() (driver.Compiler, error) {
	if !strings.HasPrefix(d.info.Arch, "gfx") {
		return nil, d.refuse("compile", driver.ErrUnsupported, "hipRTC compiles for AMD's architectures, not for %s", d.arch())
	}
	lib, err := d.hiprtc()
	if err != nil {
		return nil, d.refuse("compile", err, "hipRTC")
	}
	return &compilerFor{lib: lib, build: rtc.Build(lib.Path()), arch: d.info.Arch}, nil
}

// compilerFor compiles for one architecture. It is immutable.
type compilerFor struct {
	lib   *hiprtc.Library
	build string
	arch  string // without features such as xnack, so that the code runs with any setting of them
}

func (c *compilerFor) Info() driver.CompilerInfo {
	info := driver.CompilerInfo{Name: "hipRTC", Build: c.build, Target: c.arch}
	if v := c.lib.Version(); v != 0 {
		info.Version = hiprtc.FormatVersion(v)
	}
	return info
}

// Compile compiles a source to a code object.
func (c *compilerFor) Compile(src *driver.Source) (driver.Code, error) {
	options := rtc.Options(src, "--offload-arch="+c.arch, "--offload-arch", "--gpu-architecture")
	code, err := rtc.Compile(c.lib, filled(src), options, c.output)
	code.Log = named(code.Log, src.Name)
	if err != nil {
		return driver.Code{}, wrap("compile", rtc.Error(c.Info(), src.Name, code.Log, err))
	}
	return code, nil
}

func (c *compilerFor) output(p hiprtc.Program) ([]byte, error) {
	image, err := rtc.Fetch(p, c.lib.GetCodeSize, c.lib.GetCode)
	if err == nil && len(image) == 0 {
		err = errNoCode
	}
	return image, err
}

// errNoCode is the error if options such as -fgpu-rdc made no code object. From 5.3 on, hipRTC
// makes bitcode for such options.
var errNoCode = fmt.Errorf("the options give no code object, so nothing can be loaded: %w", driver.ErrUnsupported)

// filled returns the source with a newline in place of each empty text, because HIP 5.2 refuses an
// empty source or header.
func filled(src *driver.Source) *driver.Source {
	own := *src
	own.Headers = maps.Clone(src.Headers)
	if own.Text == "" {
		own.Text = "\n"
	}
	for name, text := range own.Headers {
		if text == "" {
			own.Headers[name] = "\n"
		}
	}
	return &own
}

// temporary matches the paths that the compiler gives to sources and headers in its messages:
// /tmp/comgr-1f2e3d/include/, or /tmp/comgr-314-0-1f2e3d/include/ since HIP 7. HIP 5.2 calls every
// source CompileSource.
var temporary = regexp.MustCompile(`[^\s'"]*[/\\]comgr-[0-9A-Za-z-]+[/\\](?:include[/\\]|input[/\\](CompileSource\b)?)`)

// named replaces temporary paths in a log with the names that the caller has given to the source
// and headers.
func named(log, source string) string {
	return temporary.ReplaceAllStringFunc(log, func(path string) string {
		if strings.HasSuffix(path, "CompileSource") {
			return source
		}
		return ""
	})
}
