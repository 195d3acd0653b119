package collective_test

import (
	"testing"

	"github.com/puregpu/puregpu/runtime/collective"
	"github.com/puregpu/puregpu/runtime/internal/testkit"
)

// TestNilAndZeroReceivers calls methods of nil and zero values of the package's types. It tests
// B143.
func TestNilAndZeroReceivers(t *testing.T) {
	testkit.Receivers(t,
		testkit.Receiver{Nil: (*collective.Communicator)(nil)},
		testkit.Receiver{Nil: (*collective.Memory)(nil)},
	)
}
