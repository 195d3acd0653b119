// Command size compares two programs: one imports package cuda and opens nothing, the other prints
// hello. size prints the size of each file and the time of a run. It fails if the first file is
// larger by more than -limit bytes.
//
//	size [-limit BYTES] [-runs N]
//
// Run it in the module's root.
package main

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"
)

func main() {
	limit := flag.Int64("limit", 3<<20, "`bytes` that the bindings may add")
	runs := flag.Int("runs", 50, "runs of each program")
	flag.Parse()
	if flag.NArg() > 0 {
		fmt.Fprintf(os.Stderr, "size: takes no arguments, got %q\n", flag.Args())
		flag.Usage()
		os.Exit(2)
	}
	if err := compare(*limit, max(1, *runs)); err != nil {
		fmt.Fprintln(os.Stderr, "size:", err)
		os.Exit(1)
	}
}

func compare(limit int64, runs int) error {
	dir, err := os.MkdirTemp("", "size")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	names := []string{"hello", "cuda"}
	var sizes [2]int64
	for i, name := range names {
		bin := filepath.Join(dir, name)
		build := exec.Command("go", "build", "-o", bin, "./tools/size/testdata/"+name)
		build.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := build.CombinedOutput(); err != nil {
			return fmt.Errorf("build %s: %v\n%s", name, err, out)
		}
		info, err := os.Stat(bin)
		if err != nil {
			return err
		}
		sizes[i] = info.Size()
	}
	var times [2][]time.Duration
	for range runs {
		for i, name := range names { // in turns, so that other load falls on both programs
			start := time.Now()
			if err := exec.Command(filepath.Join(dir, name)).Run(); err != nil {
				return fmt.Errorf("run %s: %v", name, err)
			}
			times[i] = append(times[i], time.Since(start))
		}
	}
	for i, name := range names {
		fmt.Printf("%-6s %9d bytes, %8v a run (median of %d)\n", name, sizes[i], median(times[i]), runs)
	}
	more := sizes[1] - sizes[0]
	fmt.Printf("%-6s %9d bytes, %8v a run\n", "more", more, median(times[1])-median(times[0]))
	if more > limit {
		return fmt.Errorf("the bindings add %d bytes, more than %d", more, limit)
	}
	return nil
}

func median(v []time.Duration) time.Duration {
	slices.Sort(v)
	return v[len(v)/2].Round(time.Microsecond)
}
