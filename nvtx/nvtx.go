// Package nvtx marks a program's activities for NVIDIA's profilers: NVTX 3, the NVIDIA Tools
// Extension, without cgo. Nsight Systems and Nsight Compute show the marks and ranges next to the
// GPU's activities.
//
//	defer nvtx.Start("load the model").End()
//
// NVTX is not a library. A tool names its own library in the environment variable
// NVTX_INJECTION64_PATH. Like the C headers, this package loads that library and calls the
// functions that the library writes to a table. The first use of the package loads the library,
// once. Without a tool each call does nothing, allocates nothing, and costs one atomic load. There
// is no tool on platforms where package dl loads no libraries, and in programs with more privileges
// than their caller.
//
// # Threads and goroutines
//
// NVTX has two kinds of ranges. [Start] begins a range of the process, which any goroutine can end.
// [Push] begins a range of the calling thread. Thread ranges nest, and tools assign to a range the
// GPU work that the thread submits meanwhile. Goroutines move between threads, so Push locks the
// calling goroutine to its thread until [ThreadRange.Pop]. Tools also assign GPU work to a range of
// the process if the range begins and ends on one thread, but only Push makes sure of that.
//
// All functions may be called concurrently. A text ends at its first NUL.
package nvtx

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/puregpu/puregpu/internal/secureenv"
	"github.com/puregpu/puregpu/runtime/dl"
)

// Variable is the environment variable by which a tool names its library.
const Variable = "NVTX_INJECTION64_PATH"

// The state of the package. It changes once.
const (
	fresh    = iota // the tool is not loaded yet
	attached        // a tool is attached
	absent          // there is no tool, or it cannot be used
)

var (
	state   atomic.Uint32
	once    sync.Once
	loadErr error // written by load
)

// Enabled reports whether a tool is attached. Programs call it to skip work that only a tool needs,
// such as formatting messages.
func Enabled() bool { return state.Load() != absent && load() }

// Err says why the library that the environment variable names is not used. It returns nil if the
// library is used, or if the variable is not set or is ignored.
func Err() error {
	load()
	return loadErr
}

// load loads the tool, once, and reports whether a tool is attached.
func load() bool {
	once.Do(func() {
		now := uint32(absent)
		if path := secureenv.Get(Variable); path != "" {
			if err := attach(path); err != nil {
				loadErr = fmt.Errorf("nvtx: the library that the environment variable %s names is not used: %w", Variable, err)
			} else {
				now = attached
			}
		}
		state.Store(now)
	})
	return state.Load() == attached
}

// tool is the tool's library.
var tool dl.Library

var toolSpec = dl.Spec{
	Package: "nvtx",
	Name:    "the tool's library",
	Sets:    []dl.Set{{Name: "nothing"}, {Name: "injection", Doc: "how NVTX gives a tool its table of functions"}},
	Symbols: []dl.Symbol{{Name: "InitializeInjectionNvtx2", Set: 1, Sig: "w"}},
	Hint:    "the profiler sets the variable: start the program with the profiler, or unset " + Variable,
}

// attach loads the tool's library and lets it fill the tables.
func attach(path string) error {
	if err := tool.Open(&toolSpec, nil, dl.Options{Path: path}); err != nil {
		return err
	}
	exportTable, err := makeTables()
	if err != nil {
		return err
	}
	ok, err := tool.Slow(0, exportTable)
	if err != nil {
		return err
	}
	if uint32(ok) == 0 {
		return errors.New("its function InitializeInjectionNvtx2 returned 0: the tool does not want to be attached")
	}
	return nil
}
