package main

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/puregpu/puregpu/runtime/examples/internal/example"
)

// TestRun computes where there is a GPU, and elsewhere wants to be told what is missing.
func TestRun(t *testing.T) {
	var out bytes.Buffer
	err := run(&out)
	var missing *example.MissingError
	switch {
	case errors.As(err, &missing):
		t.Log(err)
	case err != nil:
		t.Error(err)
	case !strings.HasPrefix(out.String(), "saxpy: 1048576 elements on ") || !strings.HasSuffix(out.String(), ": ok\n"):
		t.Errorf("printed %q", &out)
	}
}

func TestNoDriver(t *testing.T) {
	t.Setenv("PUREGPU_CUDA_LIBRARY", t.TempDir()+"/absent.so")
	var stdout, stderr bytes.Buffer
	if code := example.Main("saxpy", nil, &stdout, &stderr, run); code != 0 || stderr.Len() > 0 || !strings.HasPrefix(stdout.String(), "saxpy: not run: cuda: ") {
		t.Errorf("exit status %d, %q, %q", code, &stdout, &stderr)
	}
	if code := example.Main("saxpy", []string{"-require-gpu"}, &stdout, &stderr, run); code != 1 || !strings.HasPrefix(stderr.String(), "saxpy: cuda: ") {
		t.Errorf("-require-gpu: exit status %d, %q", code, &stderr)
	}
}
