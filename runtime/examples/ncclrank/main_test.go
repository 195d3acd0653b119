package main

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/puregpu/puregpu/runtime/examples/internal/example"
)

// TestRun reduces where there are a GPU and NCCL, and elsewhere wants to be told what is missing.
func TestRun(t *testing.T) {
	var out bytes.Buffer
	err := run(&out)
	var missing *example.MissingError
	switch {
	case errors.As(err, &missing):
		t.Log(err)
	case err != nil:
		t.Errorf("%v\n%s", err, &out)
	case strings.Count(out.String(), " elements: ok\n") < len(ways):
		t.Errorf("printed\n%s", &out)
	default:
		t.Logf("\n%s", &out)
	}
}

func TestNoLibrary(t *testing.T) {
	for _, env := range []string{"PUREGPU_CUDA_LIBRARY", "PUREGPU_NCCL_LIBRARY"} {
		t.Setenv(env, t.TempDir()+"/absent.so")
	}
	var stdout, stderr bytes.Buffer
	if code := example.Main("ncclrank", nil, &stdout, &stderr, run); code != 0 || stderr.Len() > 0 || !strings.HasPrefix(stdout.String(), "ncclrank: not run: cuda: ") {
		t.Errorf("exit status %d, %q, %q", code, &stdout, &stderr)
	}
	if code := example.Main("ncclrank", []string{"-require-gpu"}, &stdout, &stderr, run); code != 1 || !strings.HasPrefix(stderr.String(), "ncclrank: cuda: ") {
		t.Errorf("-require-gpu: exit status %d, %q", code, &stderr)
	}
}
