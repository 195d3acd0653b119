package nvjitlink_test

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"

	"github.com/puregpu/puregpu/nvjitlink"
	"github.com/puregpu/puregpu/runtime/dl"
)

// A program that does not need linking continues without nvJitLink.
func ExampleOpen() {
	os.Setenv("PUREGPU_NVJITLINK_LIBRARY", "/no/such/libnvJitLink.so.12") // simulates a machine without nvJitLink
	defer os.Unsetenv("PUREGPU_NVJITLINK_LIBRARY")

	l, err := nvjitlink.Open(nvjitlink.Options{})
	if errors.Is(err, dl.ErrNotFound) || errors.Is(err, dl.ErrUnsupported) {
		fmt.Println("no nvJitLink here: each module by itself")
		return
	}
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("nvJitLink", nvjitlink.FormatVersion(l.Version()))
	// Output: no nvJitLink here: each module by itself
}

// link makes machine code from PTX. An error contains the linker's messages.
func link(l *nvjitlink.Library, arch string, ptx ...[]byte) ([]byte, error) {
	options, err := nvjitlink.Texts("-arch=" + arch)
	if err != nil {
		return nil, err
	}
	runtime.LockOSThread() // all calls for a linker come from one thread
	defer runtime.UnlockOSThread()
	linker, err := l.Create(options)
	if err != nil {
		return nil, err
	}
	defer l.Destroy(&linker)
	explain := func(err error) error {
		size, sizeErr := l.GetErrorLogSize(linker)
		if sizeErr != nil || size == 0 {
			return err
		}
		log := make([]byte, size)
		if logErr := l.GetErrorLog(linker, log); logErr != nil {
			return err
		}
		return fmt.Errorf("%w\n%s", err, strings.TrimRight(string(log), "\x00\n"))
	}
	for i, text := range ptx {
		if err := l.AddData(linker, nvjitlink.InputPTX, text, fmt.Sprintf("input %d", i)); err != nil {
			return nil, explain(err)
		}
	}
	if err := l.Complete(linker); err != nil {
		return nil, explain(err)
	}
	size, err := l.GetLinkedCubinSize(linker)
	if err != nil {
		return nil, err
	}
	cubin := make([]byte, size)
	return cubin, l.GetLinkedCubin(linker, cubin)
}

func ExampleLibrary_Complete() {
	l, err := nvjitlink.Open(nvjitlink.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	cubin, err := link(l, "sm_90", []byte(".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry nothing() { ret; }\n"))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%d bytes of machine code for a module\n", len(cubin))
}
