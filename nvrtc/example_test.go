package nvrtc_test

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/puregpu/puregpu/nvrtc"
	"github.com/puregpu/puregpu/runtime/dl"
)

// A program that ships PTX continues without NVRTC.
func ExampleOpen() {
	os.Setenv("PUREGPU_NVRTC_LIBRARY", "/no/such/libnvrtc.so.12") // simulates a machine without NVRTC
	defer os.Unsetenv("PUREGPU_NVRTC_LIBRARY")

	l, err := nvrtc.Open(nvrtc.Options{})
	if errors.Is(err, dl.ErrNotFound) || errors.Is(err, dl.ErrUnsupported) {
		fmt.Println("no NVRTC here: using the PTX that came along")
		return
	}
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("NVRTC", nvrtc.FormatVersion(l.Version()))
	// Output: no NVRTC here: using the PTX that came along
}

func ExampleTexts() {
	if _, err := nvrtc.Texts("--gpu-architecture=compute_80", "-I/usr\x00/include"); err != nil {
		fmt.Println(err)
	}
	// Output: nvrtc: text 1, "-I/usr\x00/include": string contains a NUL byte
}

// compile makes PTX from CUDA C++. If the source is wrong, the error has the compiler's messages.
func compile(l *nvrtc.Library, source, file string, options ...string) ([]byte, error) {
	program, err := l.CreateProgram(source, file, nil, nil)
	if err != nil {
		return nil, err
	}
	defer l.DestroyProgram(&program)
	texts, err := nvrtc.Texts(options...)
	if err != nil {
		return nil, err
	}
	if err := l.CompileProgram(program, texts); err != nil {
		size, sizeErr := l.GetProgramLogSize(program)
		if sizeErr != nil || size == 0 {
			return nil, err
		}
		log := make([]byte, size)
		if logErr := l.GetProgramLog(program, log); logErr != nil {
			return nil, err
		}
		return nil, fmt.Errorf("%w\n%s", err, strings.TrimRight(string(log), "\x00\n"))
	}
	size, err := l.GetPTXSize(program)
	if err != nil {
		return nil, err
	}
	ptx := make([]byte, size)
	return ptx, l.GetPTX(program, ptx)
}

func ExampleLibrary_CompileProgram() {
	l, err := nvrtc.Open(nvrtc.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	ptx, err := compile(l, `extern "C" __global__ void twice(float *x) { x[threadIdx.x] *= 2; }`, "twice.cu", "--gpu-architecture=compute_80")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%d bytes of PTX for a module\n", len(ptx))
}
