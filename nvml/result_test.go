package nvml

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

func TestErrorsTellNameNumberAndMeaning(t *testing.T) {
	known := 0
	for r := range Result(1100) {
		if strings.HasPrefix(r.Name(), "Result(") {
			continue
		}
		known++
		err := r.asError()
		if r == Success {
			if err != nil {
				t.Errorf("success is the error %v", err)
			}
			continue
		}
		if !errors.Is(fmt.Errorf("ask: %w", err), r) || errors.Is(err, r+1) {
			t.Errorf("%v is not %s alone", err, r.Name())
		}
		want := fmt.Sprintf("nvml: %s (%d): ", r.Name(), int32(r))
		if !strings.HasPrefix(err.Error(), want) || len(err.Error()) == len(want) {
			t.Errorf("message %q, want %q and what it means", err, want)
		}
	}
	if known != 32 {
		t.Errorf("%d codes are known, want 32", known)
	}
	if err := Result(77).asError(); err.Error() != "nvml: unknown code 77" {
		t.Errorf("message of an unknown code: %q", err)
	}
}
