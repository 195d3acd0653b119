package cudadriver

import (
	"maps"
	"runtime"
	"slices"
	"strings"
	"sync"

	"github.com/puregpu/puregpu/internal/tried"
	"github.com/puregpu/puregpu/nvjitlink"
	"github.com/puregpu/puregpu/nvrtc"
	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/driver/internal/rtc"
)

// openNVJitLink returns a function that opens nvJitLink at its first call.
func openNVJitLink(opt nvjitlink.Options) func() (*nvjitlink.Library, error) {
	return sync.OnceValues(func() (*nvjitlink.Library, error) {
		lib, err := nvjitlink.Open(opt)
		if err != nil {
			return nil, unsupported{err} // the error says what was searched for, where, and what to install
		}
		if err := tried.NotReady(lib); err != nil {
			return nil, err // the error names each file that was found, with the error of that file
		}
		return lib, nil
	})
}

// linkerFor compiles several sources for one architecture and links them. It is immutable.
type linkerFor struct {
	*compilerFor
	link  *nvjitlink.Library
	build string
}

// Info describes both libraries, because the code depends on both.
func (c *linkerFor) Info() driver.CompilerInfo {
	info := c.compilerFor.Info()
	info.Version += ", nvJitLink " + nvjitlink.FormatVersion(c.link.Version())
	info.Build += "\n" + c.build
	return info
}

// Compile compiles a source and the sources of its Link, and links them. The error is for the first
// source that fails to compile, or for the first source if linking fails.
func (c *linkerFor) Compile(src *driver.Source) (driver.Code, error) {
	all := append([]driver.Source{*src}, src.Link...)
	code := driver.Code{Names: map[string]string{}}
	var logs []string
	parts := make([][]byte, len(all))
	for i := range all {
		one, err := c.compile(&all[i], c.optionsFor(&all[i]), c.ltoir)
		if err != nil {
			return driver.Code{}, wrap("compile", rtc.Error(c.Info(), all[i].Name, one.Log, err))
		}
		parts[i], logs = one.Image, append(logs, one.Log)
		maps.Copy(code.Names, one.Names)
	}
	image, log, err := c.linked(all, parts, c.linkOptions(src))
	if err != nil {
		return driver.Code{}, wrap("compile", rtc.Error(c.Info(), src.Name, log, err))
	}
	code.Image, logs = image, append(logs, log)
	code.Log = strings.Join(slices.DeleteFunc(logs, func(log string) bool { return log == "" }), "\n")
	return code, nil
}

// optionsFor returns NVRTC's options for a source. It adds the architecture and -dlto unless the
// source's own options have them, because NVRTC refuses duplicates.
func (c *linkerFor) optionsFor(src *driver.Source) []string {
	options := rtc.Options(src, "--gpu-architecture="+c.target, archOptions...)
	if slices.Contains(options, "-dlto") || slices.Contains(options, "--dlink-time-opt") {
		return options
	}
	return append([]string{"-dlto"}, options...)
}

// ltoir returns the LTO-IR of a compiled program.
func (c *linkerFor) ltoir(p nvrtc.Program) ([]byte, error) {
	return rtc.Fetch(p, c.lib.GetLTOIRSize, c.lib.GetLTOIR)
}

// linkOptions returns nvJitLink's options. They include the compilation's architecture, unless
// LinkOptions have -arch. If the compilation's architecture is included and virtual, the linker
// makes PTX, as NVRTC would without a linker.
func (c *linkerFor) linkOptions(src *driver.Source) []string {
	options := []string{"-lto"}
	if !slices.ContainsFunc(src.LinkOptions, func(o string) bool { return strings.HasPrefix(o, "-arch=") }) {
		target := c.target
		for i, o := range src.Options {
			name, value, ok := strings.Cut(o, "=")
			if !slices.Contains(archOptions, name) {
				continue
			}
			if ok {
				target = value
			} else if i+1 < len(src.Options) {
				target = src.Options[i+1]
			}
		}
		if arch, virtual := strings.CutPrefix(target, "compute_"); virtual {
			options, target = append(options, "-ptx"), "sm_"+arch
		}
		options = append(options, "-arch="+target)
	}
	for _, o := range src.LinkOptions {
		if !slices.Contains(options, o) {
			options = append(options, o)
		}
	}
	return options
}

// linked links the LTO-IR of sources. It returns the linker's log even with an error.
func (c *linkerFor) linked(sources []driver.Source, parts [][]byte, options []string) (image []byte, log string, err error) {
	texts, err := nvjitlink.Texts(options...)
	if err != nil {
		return nil, "", err
	}
	runtime.LockOSThread() // nvJitLink ties the memory of a linker to the thread
	defer runtime.UnlockOSThread()
	h, err := c.link.Create(texts)
	if err != nil {
		return nil, "options of the linker: " + strings.Join(options, " "), err
	}
	defer c.link.Destroy(&h)
	for i, part := range parts {
		if err = c.link.AddData(h, nvjitlink.InputLTOIR, part, sources[i].Name); err != nil {
			break
		}
	}
	if err == nil {
		err = c.link.Complete(h)
	}
	var said []string
	for _, get := range []func() ([]byte, error){
		func() ([]byte, error) { return rtc.Fetch(h, c.link.GetErrorLogSize, c.link.GetErrorLog) },
		func() ([]byte, error) { return rtc.Fetch(h, c.link.GetInfoLogSize, c.link.GetInfoLog) },
	} {
		if text, err := get(); err == nil && len(text) > 0 {
			said = append(said, rtc.Text(text))
		}
	}
	log = strings.TrimSpace(strings.Join(said, "\n"))
	if err != nil {
		return nil, log, err
	}
	if slices.Contains(options, "-ptx") {
		image, err = rtc.Fetch(h, c.link.GetLinkedPtxSize, c.link.GetLinkedPtx)
	} else {
		image, err = rtc.Fetch(h, c.link.GetLinkedCubinSize, c.link.GetLinkedCubin)
	}
	return image, log, err
}
