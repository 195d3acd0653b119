package nvrtc

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

func TestErrorsTellNameNumberAndMeaning(t *testing.T) {
	known := 0
	for r := range Result(100) {
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
		if !errors.Is(fmt.Errorf("compile: %w", err), r) || errors.Is(err, r+1) {
			t.Errorf("%v is not %s alone", err, r.Name())
		}
		want := fmt.Sprintf("nvrtc: %s (%d): ", r.Name(), int32(r))
		if !strings.HasPrefix(err.Error(), want) || len(err.Error()) == len(want) {
			t.Errorf("message %q, want %q and what it means", err, want)
		}
	}
	if known != 18 {
		t.Errorf("%d codes are known, want 18", known)
	}
	if err := Result(77).asError(); err.Error() != "nvrtc: unknown code 77" {
		t.Errorf("message of an unknown code: %q", err)
	}
}
