package collective_test

import (
	"testing"

	"github.com/puregpu/puregpu/runtime/collective"
	"github.com/puregpu/puregpu/runtime/internal/testkit"
)

// TestNilAndZeroReceivers tests B143: methods of nil and zero values do not panic.
func TestNilAndZeroReceivers(t *testing.T) {
	testkit.Receivers(t,
		testkit.Receiver{Nil: (*collective.Communicator)(nil)},
		testkit.Receiver{Nil: (*collective.Memory)(nil)},
	)
}
