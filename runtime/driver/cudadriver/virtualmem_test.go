//go:build linux && (amd64 || arm64) && !nogpu

package cudadriver

import "testing"

// TestWithoutVirtualMem tests devices whose hardware or library has no virtual memory.
func TestWithoutVirtualMem(t *testing.T) {
	t.Run("library", func(t *testing.T) {
		f := newFake(t, 13000, "NOVIRTUAL")
		suite.Virtual(t, f, f.device())
	})
	t.Run("hardware", func(t *testing.T) {
		f := newFake(t, 13000)
		f.Set("attr 102", 1) // makes the attribute read 0
		suite.Virtual(t, f, f.device())
	})
}
