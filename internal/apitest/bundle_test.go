package apitest

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	bundled   = regexp.MustCompile(`'(\^TestGPU[^']*)'`)
	groupOf   = regexp.MustCompile(`\{"([^"]+)", `)
	testOf    = regexp.MustCompile(`\{name: "([^"]+)"`)
	gpuTest   = regexp.MustCompile(`(?m)^func (TestGPU\w*)\(`)
	oneOfMany = regexp.MustCompile(`^(\^\w*)\((.*)\)(\$)$`)
)

// TestBundle checks that every test named in tools/bundle/items.sh exists. Go's -run reports no
// error for a pattern that matches no test.
func TestBundle(t *testing.T) {
	script, err := os.ReadFile("../../tools/bundle/items.sh")
	if err != nil {
		t.Fatal(err)
	}
	names := [3][]string{ // top-level tests, groups, and tests in a group
		found(t, gpuTest, "../../runtime/driver/cudadriver/*_test.go"),
		found(t, groupOf, "../../runtime/gpu/gputest/gputest.go"),
		found(t, testOf, "../../runtime/gpu/gputest/*.go"),
	}
	patterns := 0
	for _, m := range bundled.FindAllStringSubmatch(string(script), -1) {
		for level, part := range strings.Split(m[1], "/") {
			for _, pattern := range alternatives(part) {
				patterns++
				re, err := regexp.Compile(pattern)
				if err != nil {
					t.Errorf("tools/bundle/items.sh: %v", err)
				} else if level >= len(names) || !matches(re, names[level]) {
					t.Errorf("tools/bundle/items.sh: no test matches %s", pattern)
				}
			}
		}
	}
	if patterns < 10 {
		t.Errorf("%d patterns were found", patterns)
	}
}

// alternatives divides ^a(b|c)$ into ^ab$ and ^ac$.
func alternatives(pattern string) (all []string) {
	m := oneOfMany.FindStringSubmatch(pattern)
	if m == nil {
		return []string{pattern}
	}
	for _, x := range strings.Split(m[2], "|") {
		all = append(all, m[1]+x+m[3])
	}
	return all
}

func matches(re *regexp.Regexp, names []string) bool {
	for _, name := range names {
		if re.MatchString(strings.ReplaceAll(name, " ", "_")) {
			return true
		}
	}
	return false
}

// found returns the names that a pattern captures in files.
func found(t *testing.T, re *regexp.Regexp, files string) (all []string) {
	paths, err := filepath.Glob(files)
	if err != nil || paths == nil {
		t.Fatalf("%s: %v", files, err)
	}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range re.FindAllStringSubmatch(string(text), -1) {
			all = append(all, m[1])
		}
	}
	return all
}
