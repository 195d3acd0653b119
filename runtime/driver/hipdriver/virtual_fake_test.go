//go:build linux && (amd64 || arm64) && !nogpu

package hipdriver

import "testing"

// TestWithoutVirtualMem tests devices whose hardware or library has no virtual memory.
func TestWithoutVirtualMem(t *testing.T) {
	api := suite
	t.Run("old library", func(t *testing.T) {
		f := newFake(t, 5_02_00000)
		api.Virtual(t, f, f.device())
	})
	t.Run("hardware", func(t *testing.T) {
		f := newFake(t, 6_04_00000)
		f.Set("attr 89", 1) // makes the attribute read 0
		api.Virtual(t, f, f.device())
	})
}
