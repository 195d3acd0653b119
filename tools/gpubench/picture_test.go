package main

import (
	"encoding/xml"
	"errors"
	"flag"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/puregpu/puregpu/runtime/driver"
)

var update = flag.Bool("update", false, "write the golden file")

// drawn returns a picture with points for three sizes. If all is set, the picture has the lines of
// PyTorch and of puregpu in two ways; otherwise only puregpu's line for one process.
func drawn(file string, all bool) *picture {
	p := &picture{file: file}
	p.begin(&env{count: 4, info: driver.Info{Name: "GPU <4>"}})
	p.remark("NCCL 2.28.3 & more")
	p.remark("and what is not drawn")
	figure := func(of allReduce, raw, pure float64) {
		r := result{Of: &of, Unit: gigabytes, Puregpu: &pure}
		if all {
			r.Raw = &raw
		}
		p.print(r)
	}
	for i, size := range []uint64{1 << 20, 1 << 30, 1 << 10} {
		rate := []float64{90, 340, 0.1}[i]
		figure(allReduce{size, 4, inOne, busBandwidth}, rate+10, rate)
		if all {
			figure(allReduce{size, 4, inMany, busBandwidth}, rate, rate+5)
		}
		figure(allReduce{size, 4, inOne, "algorithm bandwidth"}, 1e6, 1e6)
	}
	p.print(result{Of: &allReduce{1, 4, inMany, busBandwidth}, NotRun: "not run: nobody"})
	p.print(result{Row: "of something else"})
	return p
}

// wellFormed returns the number of elements of each kind in a picture.
func wellFormed(t *testing.T, svg string) map[string]int {
	t.Helper()
	count := map[string]int{}
	d := xml.NewDecoder(strings.NewReader(svg))
	d.Strict = true
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return count
		}
		if err != nil {
			t.Fatalf("%v in\n%s", err, svg)
		}
		if e, ok := token.(xml.StartElement); ok {
			count[e.Name.Local]++
		}
	}
}

func TestPicture(t *testing.T) {
	file := filepath.Join(t.TempDir(), "p.svg")
	if err := drawn(file, true).end(); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	got := string(b)
	if n := wellFormed(t, got); n["svg"] != 1 || n["polyline"] != 3 || n["path"] != 3*4 {
		t.Errorf("elements: %v", n)
	}
	for _, s := range []string{"4 × GPU &lt;4&gt;", "NCCL 2.28.3 &amp; more", ">PyTorch<", ">puregpu, one process<", ">puregpu, processes<", ">1 KiB<", ">1 GiB<", ">400<"} {
		if !strings.Contains(got, s) {
			t.Errorf("there is no %s", s)
		}
	}
	if strings.Contains(got, "%!") || strings.Contains(got, "NaN") || strings.Contains(got, "not drawn") {
		t.Error("there is what should not be")
	}
	golden := filepath.Join("testdata", "picture.svg")
	if *update {
		if err := os.WriteFile(golden, b, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("got\n%s\nwant\n%s\nIf the change is meant, run go test with -update.", got, want)
	}

	if n := wellFormed(t, string(drawn("", false).svg())); n["polyline"] != 1 {
		t.Errorf("of one way: %v", n)
	}
	one := &picture{}
	one.begin(&env{})
	rate := 0.0
	one.print(result{Of: &allReduce{1, 1, inOne, busBandwidth}, Puregpu: &rate})
	if s := string(one.svg()); wellFormed(t, s)["polyline"] != 1 || strings.Contains(s, "NaN") {
		t.Errorf("of one size, and nothing: %s", s)
	}
	empty := &picture{file: file + ".none"}
	empty.begin(&env{})
	if err := empty.end(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(empty.file); err == nil {
		t.Error("a picture of nothing was written")
	}
	if err := drawn(filepath.Join(file, "in a file"), true).end(); err == nil || !strings.HasPrefix(err.Error(), "-svg: ") {
		t.Errorf("into a file that cannot be: %v", err)
	}
}

func TestNiceStep(t *testing.T) {
	for highest, want := range map[float64]float64{0: 1, 0.5: 0.1, 1: 0.2, 6: 1, 6.1: 2, 29: 5, 31: 10, 350: 100, 480: 100, 601: 200, 900: 200} {
		if got := niceStep(highest); got < 0.999*want || got > 1.001*want {
			t.Errorf("up to %v: %v, want %v", highest, got, want)
		}
	}
}
