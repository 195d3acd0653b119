package dltest_test

import (
	"testing"

	"github.com/puregpu/puregpu/nccl"
	"github.com/puregpu/puregpu/runtime/dl/dltest"
)

// A package of bindings has a test like this one, which the tool bindgen writes. The test calls
// every function of the package in a C library that records the arguments.
func ExampleABI() {
	testABI := func(t *testing.T) {
		dltest.ABI(t, "internal/abi", func(path string) (any, error) {
			return nccl.Open(nccl.Options{Path: path}) // Open of the tested package
		})
	}
	_ = testABI // func TestABI(t *testing.T)
}
