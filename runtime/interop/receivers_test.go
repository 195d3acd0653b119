package interop_test

import (
	"testing"

	"github.com/puregpu/puregpu/runtime/internal/testkit"
	"github.com/puregpu/puregpu/runtime/interop"
)

// TestNilAndZeroReceivers tests B143.
func TestNilAndZeroReceivers(t *testing.T) {
	testkit.Receivers(t,
		testkit.Receiver{Nil: (*interop.Event)(nil)},
		testkit.Receiver{Nil: (*interop.Pool)(nil)},
	)
}
