package driver_test

import (
	"testing"

	"github.com/puregpu/puregpu/runtime/driver"
)

func TestLinkKind(t *testing.T) {
	for kind, want := range map[driver.LinkKind]string{
		driver.LinkUnknown: "unknown", driver.LinkNone: "none", driver.LinkSelf: "self", driver.LinkPCIe: "PCIe", driver.LinkXGMI: "xGMI", driver.LinkNVLink: "NVLink",
		-1: "LinkKind(-1)", 6: "LinkKind(6)",
	} {
		if got := kind.String(); got != want {
			t.Errorf("kind %d is %q, want %q", int(kind), got, want)
		}
	}
}
