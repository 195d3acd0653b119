//go:build linux && (amd64 || arm64) && !nogpu

package drivertest

import (
	"strings"
	"testing"

	"github.com/puregpu/puregpu/runtime/dl"
	"github.com/puregpu/puregpu/runtime/driver"
)

// Numbers of errors that CUDA and HIP have in common.
const (
	InvalidValue       = 1
	OutOfMemory        = 2
	NoDevice           = 100
	InvalidDevice      = 101
	InvalidContext     = 201
	NoPeers            = 217
	InvalidHandle      = 400
	IllegalState       = 401
	NotFound           = 500
	NotReady           = 600
	IllegalAddress     = 700
	NotSupported       = 801
	CaptureInvalidated = 901
	Unknown            = 999
)

// names are the names of those errors without what is an API's own.
var names = map[int]string{
	InvalidValue: "invalidvalue", OutOfMemory: "outofmemory", NoDevice: "nodevice", InvalidDevice: "invaliddevice",
	InvalidContext: "invalidcontext", NoPeers: "peeraccessunsupported", InvalidHandle: "invalidhandle", IllegalState: "illegalstate",
	NotFound: "notfound", NotReady: "notready", IllegalAddress: "illegaladdress", NotSupported: "notsupported",
	CaptureInvalidated: "streamcaptureinvalidated", Unknown: "unknown",
}

// A Result is an error of an API.
type Result interface {
	error
	Name() string
}

// A Device has what the drivers of all APIs can do.
type Device interface {
	driver.Device
	driver.Adopter
	driver.Capturer
	driver.Compilers
	driver.Comms
	driver.Graphs
	driver.IPCMem
	driver.Links
	driver.MemInfo
	driver.Natives
	driver.Occupancy
	driver.Peers
	driver.Pools
	driver.Prefetcher
	driver.Priorities
	driver.Timers
}

// A Library is a fake of an API's library.
type Library interface {
	File() string
	Set(name string, value int)
	Calls() []string
	Want(calls ...string)
	Live() int

	// Open makes a driver over the library, with pools of the API if the driver has them only on
	// request.
	Open(pools bool) (driver.Driver, error)
	// Device opens device 0, with or without pools, and binds it to the test's thread, which it
	// locks until the test ends.
	Device(pools bool) Device
	// Clean fails the test if the calling thread remembers an error of the API.
	Clean(what string)
	// Left fails the test if the library has objects, or holds on to device dev, after an Open that
	// failed.
	Left(what string, dev int)
}

// An API is what differs between APIs. Functions are the names of the API's, calls are as a fake
// records them.
type API struct {
	Name   string                                   // of the driver
	Prefix string                                   // of functions
	File   string                                   // the library's name
	Result func(code int) Result                    // for a number
	Wrap   func(op string, err error) *driver.Error // what the driver makes of a function's error
	Sticky map[int]bool                             // codes that mean that the device is lost

	Release dl.Version // that most tests have
	Fake    func(t testing.TB, release dl.Version) Library
	// Open makes a driver over the library in a file, with those for communicators and for
	// compiling in files that are named.
	Open func(lib, comm, compiler string) (driver.Driver, error)

	Devices    DevicesTest
	OpenErrors OpenErrorsTest
	Calls      CallsTest
	Errors     ErrorsTest
	Pools      PoolsTest
	Hot        HotTest
	Compile    CompileTest
	Comm       CommTest
	Capture    CaptureTest
	Facts      FactsTest
	Adopt      AdoptTest
	IPC        []IPCTest
	Peers      PeersTest
	Priorities map[int]int // by the priorities that are asked for

	Image []byte      // that the fake loads
	Pool0 driver.Pool // the default pool of device 0
	Pool1 driver.Pool // the first that is made

	// The rest is for All.
	Attrs     driver.LaunchAttrs // of a launch, if the device has cooperative launches those are asked for too
	PoolDesc  driver.PoolDesc
	Destroy   func(Device, driver.Stream) error // calls the library itself
	Neighbour func(Device) driver.Device        // of the same library
	Leave     func(Device) error                // Leave for what is current
	Graph     func(Device) Graph
	More      func(Device) map[string]func() error // operations that only this API has
}

// A Graph is what operations on graphs use.
type Graph struct {
	Graph, Old driver.Graph // Old is destroyed
	Exec       driver.Exec
	OldExec    driver.Exec // is destroyed
	Nodes      []driver.Node
	Ops        []driver.NodeOp
}

// Run runs the suite.
func Run(t *testing.T, a *API) {
	for n, name := range names {
		got := strings.ToLower(strings.ReplaceAll(a.Result(n).Name(), "_", ""))
		if got = strings.TrimPrefix(strings.TrimPrefix(got, "cudaerror"), "hiperror"); got != name {
			t.Fatalf("error %d is %s, want %s", n, got, name)
		}
	}
	for _, test := range []struct {
		name string
		run  func(*testing.T, *API)
	}{
		{"Devices", testDevices}, {"OpenErrors", testOpenErrors}, {"Calls", testCalls}, {"Errors", testErrors}, {"Lost", testLost},
		{"BadArguments", testBadArguments}, {"Priorities", testPriorities}, {"Pools", testPools}, {"PoolAttrs", testPoolAttrs},
		{"PoolErrors", testPoolErrors}, {"SubmittingAllocatesNothing", testAllocs}, {"CaptureErrors", testCaptureErrors},
		{"AdoptStream", testAdopt}, {"Facts", testFacts}, {"IPC", testIPC}, {"Peers", testPeers}, {"Compile", testCompile}, {"CompileErrors", testCompileErrors},
		{"NoCompiler", testNoCompiler}, {"WithCompiler", testWithCompiler}, {"NoComms", testNoComms}, {"WithComms", testWithComms},
	} {
		t.Run(test.name, func(t *testing.T) { test.run(t, a) })
	}
}
