package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/puregpu/puregpu/internal/cudaheaders"
	"github.com/puregpu/puregpu/internal/kernelobject"
	"github.com/puregpu/puregpu/nvrtc"
	"github.com/puregpu/puregpu/runtime/dl"
)

// errNoCompiler means that there is no compiler.
var errNoCompiler = errors.New("no compiler")

// missing is the error of a compiler that is not installed, or does not work here.
type missing string

func (m missing) Error() string        { return string(m) }
func (m missing) Is(target error) bool { return target == errNoCompiler }

// installCUDA and installHIP are advice if there is no compiler.
const (
	installCUDA = `install the CUDA toolkit, which has nvcc, or NVRTC alone (pip install nvidia-cuda-nvrtc-cu12), and name its library in PUREGPU_NVRTC_LIBRARY if it is not found. ` +
		`Or compile on another machine and give the PTX too: kernelgen %[1]s.cu %[1]s.ptx. Or have the program compile the source when it runs: kernelgen -runtime %[1]s.cu`
	installHIP = `install ROCm, which has hipcc, or name the file of hipcc in HIPCC. ` +
		`Or compile on another machine and give the code object too: kernelgen %[1]s.hip %[1]s.hsaco. Or have the program compile the source when it runs: kernelgen -runtime %[1]s.hip`
)

// install returns advice if there is no compiler for a source.
func (g *generator) install(source string) string {
	text := installCUDA
	if isHIP(source, g.archs) {
		text = installHIP
	}
	name := filepath.Base(source)
	return fmt.Sprintf(text, strings.TrimSuffix(name, filepath.Ext(name)))
}

// A compiler compiles a source for architectures. It returns the image and its file extension.
type compiler struct {
	name string
	// compile returns an error that is errNoCompiler if the compiler is not installed.
	compile func(g *generator, source string) (image []byte, ext string, err error)
}

// compilers lists, by the result of isHIP, the compilers in the order in which they are tried.
var compilers = map[bool][]compiler{
	false: {{"nvcc", nvcc}, {"clang", clang}, {"nvrtc", nvrtcCompile}},
	true:  {{"hipcc", hipcc}},
}

// isHIP reports whether a source or an architecture is for AMD devices.
func isHIP(source string, archs []string) bool {
	return strings.HasSuffix(source, ".hip") || len(archs) > 0 && strings.HasPrefix(archs[0], "gfx")
}

// compile compiles with the first compiler that is installed and works, or with the one that the
// command line names.
func (g *generator) compile(source string) ([]byte, string, error) {
	var reasons []string
	some := false // a compiler works, but not for the architectures of g.archs
	for _, c := range compilers[isHIP(source, g.archs)] {
		if g.compiler != "" && g.compiler != c.name {
			continue
		}
		image, ext, err := c.compile(g, source)
		switch {
		case err == nil:
			return image, ext, nil
		case !errors.Is(err, errNoCompiler) && g.works(c, source, g.archs):
			return nil, "", fmt.Errorf("compile %s with %s: %w", filepath.Base(source), c.name, err)
		}
		if !errors.Is(err, errNoCompiler) {
			usual := []string{"compute_75"}
			if isHIP(source, g.archs) {
				usual = []string{"gfx90a"}
			}
			some = some || g.works(c, source, usual)
			err = fmt.Errorf("%s compiles nothing for %s here: %s", c.name, strings.Join(g.archs, ","), firstError(err.Error()))
		}
		reasons = append(reasons, err.Error())
	}
	if reasons == nil {
		return nil, "", fmt.Errorf("compiler %q does not compile %s", g.compiler, filepath.Base(source))
	}
	if some { // the command line may be wrong
		return nil, "", fmt.Errorf("compile %s: %s", filepath.Base(source), strings.Join(reasons, "; "))
	}
	return nil, "", fmt.Errorf("%w: %s", errNoCompiler, strings.Join(reasons, "; "))
}

// works reports whether a compiler that failed can compile an empty kernel for the architectures.
// Debian's clang cannot without CUDA's headers, nvcc cannot without a host compiler.
func (g *generator) works(c compiler, source string, archs []string) bool {
	dir, err := os.MkdirTemp("", "kernelgen")
	if err != nil {
		return true
	}
	defer os.RemoveAll(dir)
	probe := filepath.Join(dir, "probe"+filepath.Ext(source))
	if err := os.WriteFile(probe, []byte("extern \"C\" __global__ void probe() {}\n"), 0o666); err != nil {
		return true
	}
	plain := *g
	plain.archs, plain.options = archs, nil // the options may be wrong
	_, _, err = c.compile(&plain, probe)
	return err == nil
}

// firstError returns the first line of a compiler's output that reports an error, or else the first
// line.
func firstError(text string) string {
	lines := strings.Split(text, "\n")
	for _, line := range lines {
		if strings.Contains(line, "error:") || strings.Contains(line, "fatal") {
			return strings.TrimSpace(line)
		}
	}
	return strings.TrimSpace(lines[0])
}

// program finds a compiler. An environment variable may name its file.
func program(variable string, names ...string) (string, error) {
	if file := os.Getenv(variable); file != "" {
		names = []string{file}
	}
	for _, name := range names {
		if file, err := exec.LookPath(name); err == nil {
			return file, nil
		}
	}
	return "", missing("no program " + strings.Join(names, " or "))
}

// output runs a compiler that writes a file, and returns the file's contents.
func output(dir, file string, args ...string) ([]byte, error) {
	tmp, err := os.MkdirTemp("", "kernelgen")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(tmp)
	out := filepath.Join(tmp, "out")
	cmd := exec.Command(file, append(args, "-o", out)...)
	cmd.Dir = dir
	var text bytes.Buffer
	cmd.Stdout, cmd.Stderr = &text, &text
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("%w\n%s", err, bytes.TrimSpace(text.Bytes()))
	}
	return os.ReadFile(out)
}

// number returns the number of an architecture, with the letter behind it if there is one: 80 of
// sm_80, 90a of sm_90a.
func number(arch string) (string, error) {
	for _, prefix := range []string{"sm_", "compute_"} {
		if n, ok := strings.CutPrefix(arch, prefix); ok {
			if _, err := strconv.Atoi(strings.TrimRight(n, "af")); err == nil {
				return n, nil
			}
		}
	}
	return "", fmt.Errorf("%q is no architecture: give compute_75 for PTX, or sm_75 for machine code", arch)
}

func nvcc(g *generator, source string) ([]byte, string, error) {
	file, err := program("NVCC", "nvcc")
	if err != nil {
		return nil, "", err
	}
	dir, name := filepath.Split(source)
	args := append([]string{}, g.options...)
	if len(g.archs) == 1 {
		form, ext := "-cubin", ".cubin"
		if strings.HasPrefix(g.archs[0], "compute_") {
			form, ext = "-ptx", ".ptx"
		}
		image, err := output(dir, file, append(args, form, "-arch="+g.archs[0], name)...)
		return image, ext, err
	}
	args = append(args, "-fatbin", "--no-compress")
	for _, arch := range g.archs {
		n, err := number(arch)
		if err != nil {
			return nil, "", err
		}
		args = append(args, fmt.Sprintf("-gencode=arch=compute_%s,code=%s", n, arch))
	}
	image, err := output(dir, file, append(args, name)...)
	return image, ".fatbin", err
}

// clang makes PTX. It needs the headers of a CUDA toolkit, and none of its programs.
func clang(g *generator, source string) ([]byte, string, error) {
	file, err := program("CLANG", "clang++", "clang")
	if err != nil {
		return nil, "", err
	}
	dir, name := filepath.Split(source)
	return g.each(func(arch string) ([]byte, error) {
		n, err := number(arch)
		if err != nil {
			return nil, err
		}
		if strings.HasPrefix(arch, "sm_") {
			return nil, fmt.Errorf("clang makes PTX here: give compute_%s in place of %s", n, arch)
		}
		args := append([]string{"-x", "cuda", "--cuda-device-only", "--cuda-gpu-arch=sm_" + n, "-O3", "-S"}, g.options...)
		return output(dir, file, append(args, name)...)
	})
}

// each compiles for each architecture separately, and joins several images to a fat binary.
func (g *generator) each(compile func(arch string) ([]byte, error)) ([]byte, string, error) {
	var images [][]byte
	for _, arch := range g.archs {
		image, err := compile(arch)
		if err != nil {
			return nil, "", err
		}
		images = append(images, image)
	}
	if len(images) > 1 {
		image, err := kernelobject.MakeFatbin(images...)
		return image, ".fatbin", err
	}
	if kernelobject.FormOf(images[0]) == kernelobject.FormCubin {
		return images[0], ".cubin", nil
	}
	return images[0], ".ptx", nil
}

func hipcc(g *generator, source string) ([]byte, string, error) {
	file, err := program("HIPCC", "hipcc")
	if err != nil {
		return nil, "", err
	}
	dir, name := filepath.Split(source)
	args := []string{"--genco"}
	for _, arch := range g.archs {
		args = append(args, "--offload-arch="+arch)
	}
	image, err := output(dir, file, append(append(args, g.options...), name)...)
	return image, ".hsaco", err
}

func nvrtcCompile(g *generator, source string) ([]byte, string, error) {
	lib, err := nvrtc.Open(nvrtc.Options{})
	if errors.Is(err, dl.ErrNotFound) || errors.Is(err, dl.ErrUnsupported) {
		if file := os.Getenv("PUREGPU_NVRTC_LIBRARY"); file != "" {
			return nil, "", missing("no library NVRTC: PUREGPU_NVRTC_LIBRARY names " + file)
		}
		return nil, "", missing("no library NVRTC")
	} else if err != nil {
		return nil, "", err
	}
	text, err := os.ReadFile(source)
	if err != nil {
		return nil, "", err
	}
	return g.each(func(arch string) ([]byte, error) {
		if _, err := number(arch); err != nil {
			return nil, err
		}
		return compileProgram(lib, source, string(text), arch, g.options)
	})
}

// compileProgram compiles with NVRTC, and searches for headers of the toolkit. If the source is
// wrong, the error has NVRTC's messages.
func compileProgram(lib *nvrtc.Library, source, text, arch string, options []string) (image []byte, err error) {
	name := filepath.Base(source)
	options = append([]string{"--gpu-architecture=" + arch, "-I" + filepath.Dir(source)}, options...)
	note, err := cudaheaders.Compile(lib.Path(), nil, options, func(headers map[string]string, options []string) (log string, err error) {
		if image, err = compileOnce(lib, name, text, arch, headers, options); err != nil {
			log = err.Error()
		}
		return log, err
	})
	if note != "" {
		err = fmt.Errorf("%w\n%s: note: %s: name its folder by -options -IFOLDER", err, name, note)
	}
	return image, err
}

// compileOnce compiles with NVRTC. If the source is wrong, the error has NVRTC's messages.
func compileOnce(lib *nvrtc.Library, name, text, arch string, headers map[string]string, options []string) ([]byte, error) {
	var names, texts []string
	for name, text := range headers {
		names, texts = append(names, name), append(texts, text)
	}
	includeNames, err := nvrtc.Texts(names...)
	if err != nil {
		return nil, err
	}
	headerTexts, err := nvrtc.Texts(texts...)
	if err != nil {
		return nil, err
	}
	program, err := lib.CreateProgram(text, name, headerTexts, includeNames)
	if err != nil {
		return nil, err
	}
	defer lib.DestroyProgram(&program)
	args, err := nvrtc.Texts(options...)
	if err != nil {
		return nil, err
	}
	if err := lib.CompileProgram(program, args); err != nil {
		size, sizeErr := lib.GetProgramLogSize(program)
		if sizeErr != nil || size == 0 {
			return nil, err
		}
		log := make([]byte, size)
		if lib.GetProgramLog(program, log) != nil {
			return nil, err
		}
		return nil, fmt.Errorf("%w\n%s", err, bytes.Trim(log, "\x00\n"))
	}
	size, get := lib.GetPTXSize, lib.GetPTX
	if strings.HasPrefix(arch, "sm_") {
		size, get = lib.GetCUBINSize, lib.GetCUBIN
	}
	n, err := size(program)
	if err != nil {
		return nil, err
	}
	image := make([]byte, n)
	if err := get(program, image); err != nil {
		return nil, err
	}
	if strings.HasPrefix(arch, "compute_") {
		image = bytes.TrimRight(image, "\x00")
	}
	return image, nil
}
