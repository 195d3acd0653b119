//go:build linux && (amd64 || arm64) && !nogpu

package drivertest

import (
	"strings"
	"testing"

	"github.com/puregpu/puregpu/runtime/dl"
	"github.com/puregpu/puregpu/runtime/driver"
)

// Codes of errors that CUDA and HIP share.
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

// names has the name of each of these error codes, without the API's prefix.
var names = map[int]string{
	InvalidValue: "invalidvalue", OutOfMemory: "outofmemory", NoDevice: "nodevice", InvalidDevice: "invaliddevice",
	InvalidContext: "invalidcontext", NoPeers: "peeraccessunsupported", InvalidHandle: "invalidhandle", IllegalState: "illegalstate",
	NotFound: "notfound", NotReady: "notready", IllegalAddress: "illegaladdress", NotSupported: "notsupported",
	CaptureInvalidated: "streamcaptureinvalidated", Unknown: "unknown",
}

// A Result is an error code of an API.
type Result interface {
	error
	Name() string
}

// A Device has the methods that the drivers of all APIs implement.
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
	driver.VirtualMem
}

// A Library is a fake library of an API. Its first methods are those of [Fake].
type Library interface {
	File() string
	Set(name string, value int)
	Calls() []string
	Want(calls ...string)
	Live() int

	// Open makes a driver over the library. If pools is true, Open requests pools from drivers that
	// have pools only on request.
	Open(pools bool) (driver.Driver, error)
	// Device opens device 0, with or without pools, and binds it to the test's thread, which stays
	// locked until the test ends.
	Device(pools bool) Device
	// Clean fails the test if the API has a last error on the calling thread.
	Clean(what string)
	// Left fails the test if an Open that failed has left objects in the library, or a reference to
	// device dev.
	Left(what string, dev int)
}

// An API holds what differs between APIs, and descriptions of the tests. Functions are
// given by the API's names, and calls by the text that a fake records.
type API struct {
	Name   string                                   // name of the driver
	Prefix string                                   // prefix of the functions
	File   string                                   // file name of the library
	Result func(code int) Result                    // makes the API's error from its code
	Wrap   func(op string, err error) *driver.Error // makes the driver's error from a function's error
	Sticky map[int]bool                             // codes that mean that the device is lost

	Release dl.Version // the release that most tests use
	Fake    func(t testing.TB, release dl.Version) Library
	// Open makes a driver over the libraries with the given file names.
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
	Priorities map[int]int // the expected priority by requested priority

	Image []byte      // an image that the fake loads
	Pool0 driver.Pool // the default pool of device 0
	Pool1 driver.Pool // the first pool that NewPool makes

	// The following fields are for All.
	Attrs     driver.LaunchAttrs // attributes of a launch; All adds Cooperative if the device supports it
	PoolDesc  driver.PoolDesc
	Destroy   func(Device, driver.Stream) error // destroys a stream by a direct call of the library
	Neighbour func(Device) driver.Device        // returns another device of the same library
	Leave     func(Device) error                // calls Leave with a value that Enter returns
	Graph     func(Device) Graph
	More      func(Device) map[string]func() error // returns calls of methods that only this API has
}

// A Graph holds the objects for operations on graphs.
type Graph struct {
	Graph, Old driver.Graph // Old was destroyed
	Exec       driver.Exec
	OldExec    driver.Exec // was destroyed
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
		{"VirtualMem", testVirtualMem}, {"VirtualMemErrors", testVirtualMemErrors},
	} {
		t.Run(test.name, func(t *testing.T) { test.run(t, a) })
	}
}
