package hiprtc_test

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/puregpu/puregpu/hiprtc"
	"github.com/puregpu/puregpu/runtime/dl"
)

// A program that ships code objects continues without hipRTC.
func ExampleOpen() {
	os.Setenv("PUREGPU_HIPRTC_LIBRARY", "/no/such/libhiprtc.so.6") // simulates a machine without ROCm
	defer os.Unsetenv("PUREGPU_HIPRTC_LIBRARY")

	l, err := hiprtc.Open(hiprtc.Options{})
	if errors.Is(err, dl.ErrNotFound) || errors.Is(err, dl.ErrUnsupported) {
		fmt.Println("no hipRTC here: using the code that came along")
		return
	}
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("hipRTC", hiprtc.FormatVersion(l.Version()))
	// Output: no hipRTC here: using the code that came along
}

func ExampleTexts() {
	if _, err := hiprtc.Texts("--offload-arch=gfx90a", "-I/usr\x00/include"); err != nil {
		fmt.Println(err)
	}
	// Output: hiprtc: text 1, "-I/usr\x00/include": string contains a NUL byte
}

// compile makes a code object from HIP C++. If the source is wrong, the error has the compiler's
// messages.
func compile(l *hiprtc.Library, source, file string, options ...string) ([]byte, error) {
	program, err := l.CreateProgram(source, file, nil, nil)
	if err != nil {
		return nil, err
	}
	defer l.DestroyProgram(&program)
	texts, err := hiprtc.Texts(options...)
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
	size, err := l.GetCodeSize(program)
	if err != nil {
		return nil, err
	}
	code := make([]byte, size)
	return code, l.GetCode(program, code)
}

func ExampleLibrary_CompileProgram() {
	l, err := hiprtc.Open(hiprtc.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	code, err := compile(l, `extern "C" __global__ void twice(float *x) { x[threadIdx.x] *= 2; }`, "twice.hip", "--offload-arch=gfx90a")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%d bytes of code for a module\n", len(code))
}
