//go:build linux && (amd64 || arm64)

package kernels

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/puregpu/puregpu/nvrtc"
	"github.com/puregpu/puregpu/runtime/dl"
	"github.com/puregpu/puregpu/runtime/driver"
)

// TestCompile compiles the kernels for several devices and models, which needs NVRTC and no GPU. If
// PUREGPU_LLAMA_CUBINS names a folder, the test compiles for all devices and writes the code there,
// for cuobjdump -res-usage.
func TestCompile(t *testing.T) {
	lib, err := nvrtc.Open(nvrtc.Options{})
	if errors.Is(err, dl.ErrNotFound) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	devices := []driver.Info{
		{Arch: "sm_90", Major: 9, Processors: 132, SharedOptIn: 232448, ProcessorSharedMem: 233472},
		{Arch: "sm_80", Major: 8, Processors: 108, SharedOptIn: 166912, ProcessorSharedMem: 167936},
		{Arch: "sm_86", Major: 8, Processors: 82, SharedOptIn: 101376, ProcessorSharedMem: 102400},
	}
	for _, info := range devices {
		for i := range 8 {
			d := Dims{Layers: 1, Width: 2048, Heads: 32, KVHeads: 8, HeadDim: int32(64 << (i & 1)), FFN: 5632, Vocab: 32000, MaxPages: 64,
				Half: int32(i >> 1 & 1), FP8: int32(i >> 2)}
			name := fmt.Sprintf("%s.%d.half%d.fp8%d", info.Arch, d.HeadDim, d.Half, d.FP8)
			t.Run(name, func(t *testing.T) {
				dir := os.Getenv("PUREGPU_LLAMA_CUBINS")
				if dir == "" && (i%7 != 0 || testing.Short() && (info.Arch != "sm_90" || i > 0)) {
					t.Skip("a few are enough")
				}
				p, err := newPlan(&d, info)
				if err != nil {
					t.Fatal(err)
				}
				code, err := cubin(lib, append(p.options(&d), "--gpu-architecture="+info.Arch))
				if err != nil {
					t.Fatal(err)
				}
				if dir != "" {
					if err := os.WriteFile(filepath.Join(dir, name+".cubin"), code, 0o600); err != nil {
						t.Fatal(err)
					}
				}
			})
		}
	}
}

func cubin(l *nvrtc.Library, options []string) ([]byte, error) {
	var names, texts []string
	for _, name := range []string{"number.h", "product.h", "attend.h", "sample.h"} {
		text, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		names, texts = append(names, name), append(texts, string(text))
	}
	text, err := os.ReadFile("llama.cu")
	if err != nil {
		return nil, err
	}
	headers, err1 := nvrtc.Texts(texts...)
	includes, err2 := nvrtc.Texts(names...)
	flags, err3 := nvrtc.Texts(options...)
	if err := errors.Join(err1, err2, err3); err != nil {
		return nil, err
	}
	program, err := l.CreateProgram(string(text), "llama.cu", headers, includes)
	if err != nil {
		return nil, err
	}
	defer l.DestroyProgram(&program)
	for _, kind := range []string{"qkv", "gateUp", "add", "logits"} {
		for _, rows := range []int{8, 16, 32, 64} {
			if err := l.AddNameExpression(program, fmt.Sprintf("%sMany<%d>", kind, rows)); err != nil {
				return nil, err
			}
		}
	}
	if err := l.CompileProgram(program, flags); err != nil {
		size, _ := l.GetProgramLogSize(program)
		log := make([]byte, size)
		l.GetProgramLog(program, log)
		return nil, fmt.Errorf("%w\n%s", err, strings.TrimRight(string(log), "\x00\n"))
	}
	size, err := l.GetCUBINSize(program)
	if err != nil {
		return nil, err
	}
	code := make([]byte, size)
	return code, l.GetCUBIN(program, code)
}
