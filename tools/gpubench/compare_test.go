package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestCompare checks the output and the exit status of -compare for known figures and for missing
// ones.
func TestCompare(t *testing.T) {
	const dynamic, static = 0, 1
	for _, c := range []struct {
		name string
		// change gets three runs each of a dynamic and a static program, in turns, with 40 ns a C
		// function and 4 µs a launch. It returns what -compare reads.
		change func(docs []contents) []contents
		code   int
		want   string
	}{
		{"equal", func(docs []contents) []contents { return docs }, 0, `calls/cuLaunchKernel +4 µs +4 µs +1\.000 +≤ 1\.02× +ok`},
		{"medians", func(docs []contents) []contents {
			*docs[static].Rows[0].Puregpu = 4000 // one disturbed run
			*docs[2+dynamic].Rows[0].Puregpu = 1
			*docs[2+static].Rows[0].Puregpu = 50
			return docs
		}, 0, `calls/a C function +40 ns +50 ns +1\.250 +≤ 1\.30× +ok`},
		{"a verdict", func(docs []contents) []contents { return docs }, 0,
			`\nstatic to dynamic: calls/a C function 1\.000 \(≤ 1\.30×\) ok, calls/cuLaunchKernel 1\.000 \(≤ 1\.02×\) ok\n$`},
		{"a slow call", func(docs []contents) []contents {
			*docs[static].Rows[0].Puregpu, *docs[2+static].Rows[0].Puregpu = 53, 53
			return docs
		}, 1, `calls/a C function +40 ns +53 ns +1\.325 +≤ 1\.30× +MISS`},
		{"a slow launch", func(docs []contents) []contents {
			*docs[static].Rows[1].Puregpu, *docs[4+static].Rows[1].Puregpu = 4090, 4100
			return docs
		}, 1, `calls/cuLaunchKernel +4 µs +4\.09 µs +1\.022 +≤ 1\.02× +MISS`},
		{"a slow program both ways", func(docs []contents) []contents {
			for i := range docs {
				*docs[i].Rows[1].Puregpu *= 3
				// A missed goal does not matter here.
				docs[i].Rows[1].Goal = &goalResult{Max: 1.02, Of: ofRaw}
			}
			return docs
		}, 0, `calls/cuLaunchKernel +12 µs +12 µs +1\.000 +≤ 1\.02× +ok`},
		{"no goal", func(docs []contents) []contents {
			for i := range docs {
				docs[i].Rows = append(docs[i].Rows, result{Row: "calls/other", Unit: ns, Puregpu: new(float64(100 + 100*(i%2)))})
			}
			return docs
		}, 0, `calls/other +100 ns +200 ns +2\.000 +- +-`},
		{"a row that failed", func(docs []contents) []contents {
			docs[2+static].Rows[1].Error = "broken"
			return docs
		}, 2, `3\.json has no figure of calls/cuLaunchKernel: failed: broken`},
		{"a row that was not run", func(docs []contents) []contents {
			docs[static].Rows[0] = result{Row: "calls/a C function", NotRun: "not run: name the C side with -c"}
			return docs
		}, 2, `1\.json has no figure of calls/a C function: not run: name the C side`},
		{"a row that is missing", func(docs []contents) []contents {
			docs[dynamic].Rows = docs[dynamic].Rows[:1]
			return docs
		}, 2, `0\.json has no figure of calls/cuLaunchKernel: the run did not measure it: run the group calls on CUDA`},
		{"two turns", func(docs []contents) []contents { return docs[:4] }, 2, `takes at least 6 files, .* got 4`},
		{"half a turn", func(docs []contents) []contents { return append(docs, docs[0]) }, 2, `got 7`},
		{"another device", func(docs []contents) []contents {
			docs[3].Device = "another"
			return docs
		}, 2, `0\.json and .*3\.json are from different machines`},
	} {
		t.Run(c.name, func(t *testing.T) {
			var docs []contents
			for range 6 {
				docs = append(docs, contents{Device: "a GPU", Driver: "cuda", Platform: platform(), CPUs: 2, Rows: []result{
					{Row: "calls/a C function", Unit: ns, Puregpu: new(float64(40))}, {Row: "calls/cuLaunchKernel", Unit: ns, Puregpu: new(float64(4000))},
				}})
			}
			args := []string{"-compare"}
			dir := t.TempDir()
			for i, d := range c.change(docs) {
				text, err := json.Marshal(d)
				if err != nil {
					t.Fatal(err)
				}
				name := filepath.Join(dir, fmt.Sprintf("%d.json", i))
				if err := os.WriteFile(name, text, 0o666); err != nil {
					t.Fatal(err)
				}
				args = append(args, name)
			}
			code, stdout, stderr := runBench(t, args...)
			if code != c.code || !regexp.MustCompile(c.want).MatchString(stdout+stderr) {
				t.Errorf("exit status %d, want %d and %s; it said\n%s%s", code, c.code, c.want, stdout, stderr)
			}
		})
	}
}

// TestCompareFiles checks that -compare reads the output of -json, and refuses other files.
func TestCompareFiles(t *testing.T) {
	sim := filepath.Join(t.TempDir(), "sim.json")
	code, stdout, stderr := runBench(t, "-sim", "-rounds", "1", "-json", "-run", "^latency/empty submission")
	if code > 1 {
		t.Fatalf("exit status %d, %s", code, stderr)
	}
	if err := os.WriteFile(sim, []byte(stdout), 0o666); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ file, want string }{
		{sim, sim + " has no figure of calls/a C function: the run did not measure it: run the group calls on CUDA"},
		{"compare_test.go", "compare_test.go is not output of -json"},
		{"absent.json", "absent.json: no such file"},
	} {
		code, _, stderr := runBench(t, "-compare", c.file, c.file, c.file, c.file, c.file, c.file)
		if code != 2 || !strings.Contains(stderr, c.want) {
			t.Errorf("%s: exit status %d, %q, want %q", c.file, code, stderr, c.want)
		}
	}
	if code, _, stderr := runBench(t, "-compare", "-sim", sim); code != 2 || !strings.Contains(stderr, "-compare takes no other flag") {
		t.Errorf("with another flag: exit status %d, %q", code, stderr)
	}
}
