// Package cublas binds the few functions of cuBLAS that tests and benchmarks of native work call.
// cuBLAS is a library that does not know this module and submits work to a stream. Programs should
// use package cublas of the module's root instead.
package cublas

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"unsafe"

	"github.com/puregpu/puregpu/cuda"
	"github.com/puregpu/puregpu/runtime/dl"
)

// A Library is an open cuBLAS.
type Library struct {
	dl.Library
	fns [numFuncs]uintptr
}

const (
	fnCreate = iota
	fnDestroy
	fnSetStream
	fnSetWorkspace
	fnSgemm
	fnGetProperty
	numFuncs
)

var symbols = [numFuncs]dl.Symbol{
	fnCreate:       {Name: "cublasCreate_v2", Sig: "w"},
	fnDestroy:      {Name: "cublasDestroy_v2", Sig: "w"},
	fnSetStream:    {Name: "cublasSetStream_v2", Sig: "ww"},
	fnSetWorkspace: {Name: "cublasSetWorkspace_v2", Sig: "www"},
	fnSgemm:        {Name: "cublasSgemm_v2", Sig: "wwwwwwwwwwwwww"},
	fnGetProperty:  {Name: "cublasGetProperty", Sig: "ww"},
}

// lightSpec describes cuBLASLt, which cuBLAS depends on. The system's loader does not find it in
// Python packages, so Open loads it first, by its path.
var lightSpec = dl.Spec{
	Name: "cuBLASLt", Package: "cublas",
	Names: []string{"libcublasLt.so.13", "libcublasLt.so.12"},
	Sets:  []dl.Set{{Name: "core"}}, Symbols: []dl.Symbol{{Name: "cublasLtGetVersion"}},
}

const variable = "PUREGPU_CUBLAS_LIBRARY"

// packages returns the folder of NVIDIA's libraries in a Python installation.
func packages(python string) string {
	return filepath.Join(filepath.Dir(python), "../lib/python3*/site-packages/nvidia/*/lib")
}

// Open loads cuBLAS 12 or 13. If opt.Path or PUREGPU_CUBLAS_LIBRARY names a file, Open tries only
// that file. Otherwise Open tries opt.Dirs and the system's libraries, and then Python packages,
// such as those that PyTorch installs.
func Open(opt dl.Options) (*Library, error) {
	dirs := []string{"/usr/local/cuda/lib64", "/usr/local/lib/python3*/dist-packages/nvidia/*/lib"}
	if python, err := exec.LookPath("python3"); err == nil {
		dirs = append(dirs, packages(python))
		if to, err := os.Readlink(python); err == nil && filepath.IsAbs(to) { // the python3 of a virtual environment is a link to another Python, which may have the packages
			dirs = append(dirs, packages(to))
		}
	}
	light := lightSpec
	light.Dirs = dirs
	if file := os.Getenv(variable); file != "" {
		light.Dirs = append([]string{filepath.Dir(file)}, dirs...)
	}
	if opt.Path == "" {
		new(dl.Library).Open(&light, nil, dl.Options{Logger: opt.Logger}) // if this fails, opening cuBLAS reports the missing library
	}
	l := new(Library)
	err := l.Library.Open(&dl.Spec{
		Name: "cuBLAS", Package: "cublas", Env: variable,
		Names: []string{"libcublas.so.13", "libcublas.so.12"}, Dirs: dirs,
		Symbols: symbols[:], Sets: []dl.Set{{Name: "core"}},
		Version: askVersion, Floor: 12000,
		Format: func(v dl.Version) string { return strconv.Itoa(int(v/1000)) + "." + strconv.Itoa(int(v%1000)) },
		Hint:   "install NVIDIA's cuBLAS, or name its file in " + variable,
	}, l.fns[:], opt)
	if err != nil {
		return nil, err
	}
	return l, nil
}

func askVersion(l *dl.Library) (v dl.Version, err error) {
	for i, unit := range []dl.Version{1000, 1} { // the major and the minor version
		n := new(int32)
		if err := check(l.Slow(fnGetProperty, uintptr(i), uintptr(unsafe.Pointer(n)))); err != nil {
			return 0, fmt.Errorf("cublasGetProperty: %w", err)
		}
		v += unit * dl.Version(*n)
	}
	return v, nil
}

// A Status is an error code of cuBLAS.
type Status int32

func (s Status) Error() string { return fmt.Sprintf("cublas: status %d", int32(s)) }

func check(full uintptr, err error) error {
	if s := Status(full); err == nil && s != 0 {
		return s
	}
	return err
}

// A Handle is a context of cuBLAS, for one thread at a time.
type Handle uintptr

// Create makes a handle on the current device. It allocates memory there and may take a tenth of a
// second.
func (l *Library) Create() (Handle, error) {
	h := new(Handle)
	err := check(l.Slow(fnCreate, uintptr(unsafe.Pointer(h))))
	return *h, err
}

// Destroy waits for the device and frees the handle.
func (l *Library) Destroy(h Handle) error { return check(l.Slow(fnDestroy, uintptr(h))) }

// SetStream makes the handle submit to a stream, and resets the handle's workspace.
func (l *Library) SetStream(h Handle, s cuda.Stream) error {
	return check(l.Slow(fnSetStream, uintptr(h), uintptr(s)))
}

// SetWorkspace gives the handle device memory to compute in. The memory's address must be a
// multiple of 256.
func (l *Library) SetWorkspace(h Handle, p cuda.DevicePtr, size uint64) error {
	return check(l.Slow(fnSetWorkspace, uintptr(h), uintptr(p), uintptr(size)))
}

// Sgemm computes c = alpha·a·b + beta·c with column-major matrices: a is m by k, b is k by n. lda,
// ldb and ldc are the distances between columns, in elements. It allocates nothing.
func (l *Library) Sgemm(h Handle, m, n, k int, alpha *float32, a cuda.DevicePtr, lda int, b cuda.DevicePtr, ldb int, beta *float32, c cuda.DevicePtr, ldc int) error {
	const asItIs = 0 // no transposition
	if addr := dl.Load(&l.fns[fnSgemm]); addr != 0 {
		var frame struct {
			dl.Frame
			handle, transA, transB, m, n, k uintptr
			alpha                           *float32
			a, lda, b, ldb                  uintptr
			beta                            *float32
			c, ldc                          uintptr
		}
		frame.Fn, frame.handle, frame.transA, frame.transB = addr, uintptr(h), asItIs, asItIs
		frame.m, frame.n, frame.k, frame.alpha, frame.beta = uintptr(m), uintptr(n), uintptr(k), alpha, beta
		frame.a, frame.lda, frame.b, frame.ldb, frame.c, frame.ldc = uintptr(a), uintptr(lda), uintptr(b), uintptr(ldb), uintptr(c), uintptr(ldc)
		if s := Status(dl.Call(14, unsafe.Pointer(&frame))); s != 0 {
			return s
		}
		return nil
	}
	return check(l.Slow(fnSgemm, uintptr(h), asItIs, asItIs, uintptr(m), uintptr(n), uintptr(k), uintptr(unsafe.Pointer(alpha)),
		uintptr(a), uintptr(lda), uintptr(b), uintptr(ldb), uintptr(unsafe.Pointer(beta)), uintptr(c), uintptr(ldc)))
}

// A Multiplier multiplies square n by n matrices, with its own handle and workspace. Products in
// flight at the same time would share the workspace, so they must be in one stream, or in sequence
// in one graph.
type Multiplier struct {
	lib    *Library
	handle Handle
	n      int
	work   cuda.DevicePtr
	size   uint64
	stream cuda.Stream // the stream that the handle has now
}

// NewMultiplier makes a Multiplier on the current device. Its workspace is size bytes of device
// memory at the address work.
func (l *Library) NewMultiplier(n int, work cuda.DevicePtr, size uint64) (*Multiplier, error) {
	h, err := l.Create()
	if err != nil {
		return nil, err
	}
	return &Multiplier{lib: l, handle: h, n: n, work: work, size: size}, nil
}

var zero, one float32 = 0, 1

// Multiply submits c = a·b to a stream, which must not be the default stream, 0. The device must be
// current.
func (m *Multiplier) Multiply(s cuda.Stream, c, a, b cuda.DevicePtr) error {
	if m.stream != s { // setting the stream resets the workspace, so both are set, and only if the stream changes
		if err := m.lib.SetStream(m.handle, s); err != nil {
			return err
		}
		m.stream = 0
		if err := m.lib.SetWorkspace(m.handle, m.work, m.size); err != nil {
			return err
		}
		m.stream = s
	}
	return m.lib.Sgemm(m.handle, m.n, m.n, m.n, &one, a, m.n, b, m.n, &zero, c, m.n)
}

// Close destroys the handle.
func (m *Multiplier) Close() error { return m.lib.Destroy(m.handle) }
