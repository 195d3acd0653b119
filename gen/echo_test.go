//go:build ((linux && (amd64 || arm64)) || (windows && amd64)) && !nogpu

package gen

import (
	"testing"

	"github.com/puregpu/puregpu/cublas"
	"github.com/puregpu/puregpu/cublaslt"
	"github.com/puregpu/puregpu/cuda"
	"github.com/puregpu/puregpu/cudnn"
	"github.com/puregpu/puregpu/cufft"
	"github.com/puregpu/puregpu/cufile"
	"github.com/puregpu/puregpu/cupti"
	"github.com/puregpu/puregpu/curand"
	"github.com/puregpu/puregpu/cusolver"
	"github.com/puregpu/puregpu/cusparse"
	"github.com/puregpu/puregpu/hip"
	"github.com/puregpu/puregpu/hipblas"
	"github.com/puregpu/puregpu/hipfft"
	"github.com/puregpu/puregpu/hiprand"
	"github.com/puregpu/puregpu/hiprtc"
	"github.com/puregpu/puregpu/nccl"
	"github.com/puregpu/puregpu/nvjitlink"
	"github.com/puregpu/puregpu/nvml"
	"github.com/puregpu/puregpu/nvrtc"
	"github.com/puregpu/puregpu/runtime/dl/dltest"
)

// TestEcho checks that each method of each package passes its arguments to C and returns what C
// returns. It opens each package with an echo library.
func TestEcho(t *testing.T) {
	open := map[string]func(path string) (any, error){
		"cufft":     func(path string) (any, error) { return cufft.Open(cufft.Options{Path: path}) },
		"cufile":    func(path string) (any, error) { return cufile.Open(cufile.Options{Path: path}) },
		"cuda":      func(path string) (any, error) { return cuda.Open(cuda.Options{Path: path}) },
		"cupti":     func(path string) (any, error) { return cupti.Open(cupti.Options{Path: path}) },
		"curand":    func(path string) (any, error) { return curand.Open(curand.Options{Path: path}) },
		"cublas":    func(path string) (any, error) { return cublas.Open(cublas.Options{Path: path}) },
		"cublaslt":  func(path string) (any, error) { return cublaslt.Open(cublaslt.Options{Path: path}) },
		"cusparse":  func(path string) (any, error) { return cusparse.Open(cusparse.Options{Path: path}) },
		"cusolver":  func(path string) (any, error) { return cusolver.Open(cusolver.Options{Path: path}) },
		"cudnn":     func(path string) (any, error) { return cudnn.Open(cudnn.Options{Path: path}) },
		"hipblas":   func(path string) (any, error) { return hipblas.Open(hipblas.Options{Path: path}) },
		"hipfft":    func(path string) (any, error) { return hipfft.Open(hipfft.Options{Path: path}) },
		"hiprand":   func(path string) (any, error) { return hiprand.Open(hiprand.Options{Path: path}) },
		"hiprtc":    func(path string) (any, error) { return hiprtc.Open(hiprtc.Options{Path: path}) },
		"hip":       func(path string) (any, error) { return hip.Open(hip.Options{Path: path}) },
		"nccl":      func(path string) (any, error) { return nccl.Open(nccl.Options{Path: path}) },
		"nvjitlink": func(path string) (any, error) { return nvjitlink.Open(nvjitlink.Options{Path: path}) },
		"nvml":      func(path string) (any, error) { return nvml.Open(nvml.Options{Path: path}) },
		"nvrtc":     func(path string) (any, error) { return nvrtc.Open(nvrtc.Options{Path: path}) },
	}
	for _, name := range Libraries() {
		t.Run(name, func(t *testing.T) {
			if open[name] == nil {
				t.Fatalf("no Open function for package %s: add it to this test", name)
			}
			p, err := load(name)
			if err != nil {
				t.Fatal(err)
			}
			source, err := p.echoSource()
			if err != nil {
				t.Fatal(err)
			}
			dltest.Prove(t, name, source, p.proof(), open[name])
		})
	}
}
