package dltest_test

import (
	"testing"

	"github.com/puregpu/puregpu/nccl"
	"github.com/puregpu/puregpu/runtime/dl/dltest"
)

// A package of bindings has a test that calls each of its functions in a C library that records the
// arguments. The tool bindgen writes the test.
func ExampleABI() {
	testABI := func(t *testing.T) {
		dltest.ABI(t, "internal/abi", func(path string) (any, error) {
			return nccl.Open(nccl.Options{Path: path}) // Open of the tested package
		})
	}
	_ = testABI // func TestABI(t *testing.T)
}
