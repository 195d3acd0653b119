//go:build linux && (amd64 || arm64) && !nogpu

package main

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestOthers checks, with a fake CuPy and a fake CUDA driver, that the rows of the group "others"
// have the times of both sides. A missing library is no failure; an error in Python is one.
func TestOthers(t *testing.T) {
	if race || testing.Short() {
		t.Skip("it starts processes of Python, one after the other")
	}
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skip("no python3")
	}
	buildCUDA(t)
	stub, err := filepath.Abs("testdata/python")
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("PYTHONPATH", stub)
	t.Setenv("PYTHONDONTWRITEBYTECODE", "1")
	e, err := newEnv(options{device: "0", python: "python3"})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := e.close(); err != nil {
			t.Error(err)
		}
	}()
	seen := map[string]int{}
	for _, b := range otherBenches() {
		if strings.Contains(b.rows[0].name, "PyTorch") {
			continue // the fake PyTorch is only for the group collectives
		}
		for _, r := range b.measure(e, 1, &progress{}) {
			_, lib, _ := strings.Cut(r.Row, ": ")
			seen[lib]++
			switch {
			case (lib == "CuPy" || lib == byHand) && (r.Raw == nil || r.Puregpu == nil):
				t.Errorf("%+v", r)
			case lib == "cuda.core" && !strings.Contains(r.NotRun, "cuda"):
				t.Errorf("%+v; want that it is not there", r)
			}
		}
	}
	if seen["CuPy"] != 6 || seen[byHand] != 6 || seen["cuda.core"] != 6 {
		t.Errorf("rows: %v", seen)
	}
	b := otherBenches()[0]
	b.open = func(e *env) (sides, error) { return beside(e, "CuPy", "dance") }
	if r := b.measure(e, 1, &progress{})[0]; !strings.Contains(r.Error, "dance") {
		t.Errorf("a work that there is not: %+v", r)
	}
}
