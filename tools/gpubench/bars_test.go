package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/puregpu/puregpu/runtime/driver"
)

// TestBars checks that each figure has a bar in proportion, and that a missing figure has none.
func TestBars(t *testing.T) {
	file := filepath.Join(t.TempDir(), "bars.svg")
	c := &barChart{file: file}
	c.begin(&env{info: driver.Info{Name: "GPU <4>"}})
	if err := c.end(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(file); err == nil {
		t.Error("a picture of nothing")
	}
	for i, with := range others {
		for _, ahead := range []bool{false, true} {
			pure, raw := 1000.0, 1000*float64(i+1)
			r := result{With: &comparison{"launch", ahead, with}, Puregpu: &pure, Raw: &raw}
			if with == "CuPy" && ahead {
				r.Raw = nil // not run
			}
			c.print(r)
		}
	}
	c.print(result{Row: "of something else"})
	if err := c.end(); err != nil {
		t.Fatal(err)
	}
	svg, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if n := wellFormed(t, string(svg))["rect"]; n != 1+5+4 {
		t.Errorf("%d rectangles, want the background and 9 bars", n)
	}
	for _, want := range []string{"GPU &lt;4&gt;", ">puregpu<", ">cuda.core<", `width="470.0"`, `width="117.5"`, ">4 µs<", "launch, and wait", "launch, 2,000 ahead"} {
		if !strings.Contains(string(svg), want) {
			t.Errorf("no %s in\n%s", want, svg)
		}
	}
	if err := (&barChart{file: t.TempDir(), work: c.work}).end(); err == nil {
		t.Error("a folder is no file, and no error")
	}
}
