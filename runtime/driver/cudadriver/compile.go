package cudadriver

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/puregpu/puregpu/nvrtc"
	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/driver/internal/compilelog"
)

var _ driver.Compilers = (*device)(nil)

// An nvrtcLibrary is NVRTC, with what is asked of it once.
type nvrtcLibrary struct {
	*nvrtc.Library
	archs []int // that it can compile for, in ascending order: 90 for sm_90
	build string
}

// openNVRTC returns a function that opens NVRTC when it is called for the first time.
func openNVRTC(opt nvrtc.Options) func() (*nvrtcLibrary, error) {
	return sync.OnceValues(func() (*nvrtcLibrary, error) {
		lib, err := nvrtc.Open(opt)
		if err != nil {
			return nil, unsupported{err} // which says what was looked for and where, and what to install
		}
		l := &nvrtcLibrary{Library: lib, build: buildOf(lib.Path())}
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

// buildOf tells apart the files of one version, whose names have more of it: libnvrtc.so.12.4.127.
func buildOf(path string) string {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	}
	fi, err := os.Stat(path)
	if err != nil {
		return filepath.Base(path)
	}
	return fmt.Sprintf("%s %d %d", filepath.Base(path), fi.Size(), fi.ModTime().UnixNano())
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
	return &compilerFor{lib: lib, target: target}, nil
}

// target returns what to compile for: the architecture itself, or the newest one before it whose PTX the driver can compile.
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
		return "", fmt.Errorf("it compiles for none of sm_%d and older, but for %v: %w", arch, l.archs, driver.ErrUnsupported)
	}
	return fmt.Sprintf("compute_%d", best), nil
}

// compilerFor compiles for one architecture. It does not change.
type compilerFor struct {
	lib    *nvrtcLibrary
	target string
}

func (c *compilerFor) Info() driver.CompilerInfo {
	return driver.CompilerInfo{Name: "NVRTC", Version: nvrtc.FormatVersion(c.lib.Version()), Build: c.lib.build, Target: c.target}
}

// Compile returns a cubin where the target is a device's architecture, and PTX otherwise.
func (c *compilerFor) Compile(src *driver.Source) (driver.Code, error) {
	code, err := c.compile(src)
	if err == nil {
		return code, nil
	}
	by := c.Info()
	return driver.Code{}, wrap("compile", &driver.CompileError{Source: src.Name, Compiler: by.Name + " " + by.Version, Target: c.target,
		Messages: compilelog.Parse(code.Log), Log: code.Log, Err: err})
}

// compile returns the log also beside an error.
func (c *compilerFor) compile(src *driver.Source) (code driver.Code, err error) {
	names := slices.Sorted(maps.Keys(src.Headers))
	var headers []string
	for _, name := range names {
		headers = append(headers, src.Headers[name])
	}
	includeNames, err := nvrtc.Texts(names...)
	if err != nil {
		return code, err
	}
	headerTexts, err := nvrtc.Texts(headers...)
	if err != nil {
		return code, err
	}
	options := src.Options
	if !slices.ContainsFunc(options, namesArch) {
		options = append([]string{"--gpu-architecture=" + c.target}, options...)
	}
	optionTexts, err := nvrtc.Texts(options...)
	if err != nil {
		return code, err
	}
	p, err := c.lib.CreateProgram(src.Text, src.Name, headerTexts, includeNames)
	if err != nil {
		return code, err
	}
	defer c.lib.DestroyProgram(&p)
	for _, name := range src.Names {
		if err := c.lib.AddNameExpression(p, name); err != nil {
			return code, fmt.Errorf("name expression %q: %w", name, err)
		}
	}
	err = c.lib.CompileProgram(p, optionTexts)
	if log, logErr := fetch(p, c.lib.GetProgramLogSize, c.lib.GetProgramLog); logErr == nil {
		code.Log = strings.TrimSpace(strings.TrimRight(strings.ToValidUTF8(string(log), "?"), "\x00"))
	}
	if err != nil {
		return code, err
	}
	code.Names = map[string]string{}
	for _, name := range src.Names {
		lowered, err := c.lib.GetLoweredName(p, name)
		if err != nil {
			return code, fmt.Errorf("name expression %q: %w", name, err)
		}
		code.Names[name] = lowered
	}
	if code.Image, err = fetch(p, c.lib.GetCUBINSize, c.lib.GetCUBIN); err != nil {
		return code, err
	}
	if len(code.Image) > 0 {
		return code, nil
	}
	code.Image, err = fetch(p, c.lib.GetPTXSize, c.lib.GetPTX)
	if err == nil && len(strings.Trim(string(code.Image), "\x00")) == 0 {
		err = errNoCode
	}
	return code, err
}

// errNoCode is the outcome of options such as -dlto.
var errNoCode = fmt.Errorf("the options give neither a cubin nor PTX, which could be loaded: %w", driver.ErrUnsupported)

// namesArch reports whether an option says for which architecture to compile.
func namesArch(option string) bool {
	name, _, _ := strings.Cut(strings.TrimLeft(option, "-"), "=")
	return strings.HasPrefix(option, "-") && (name == "arch" || name == "gpu-architecture")
}

// fetch returns what a pair of functions gives.
func fetch(p nvrtc.Program, size func(nvrtc.Program) (uint64, error), get func(nvrtc.Program, []byte) error) ([]byte, error) {
	n, err := size(p)
	if err != nil || n == 0 {
		return nil, err
	}
	b := make([]byte, n)
	if err := get(p, b); err != nil {
		return nil, err
	}
	return b, nil
}
