package examples_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/puregpu/puregpu/cuda"
)

func Example() {
	lib, err := cuda.Open(cuda.Options{})
	if err != nil {
		fmt.Println(err) // every file that was tried, what was wrong with it, and what to install
		return
	}
	if err := lib.Init(0); err != nil {
		fmt.Println(err) // cuda.ErrorNoDevice, say
		return
	}
	dev, err := lib.DeviceGet(0)
	if err != nil {
		fmt.Println(err)
		return
	}
	name, err := lib.DeviceGetName(dev)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(name)
}

// TestREADME compares the program in README.md with the example above, which the compiler has seen.
func TestREADME(t *testing.T) {
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	self, err := os.ReadFile("readme_test.go")
	if err != nil {
		t.Fatal(err)
	}
	program := between(t, string(readme), "```go\n", "```\n")
	if got, want := between(t, program, "func main() {\n", "\n}\n"), between(t, string(self), "func Example() {\n", "\n}\n"); got != want {
		t.Errorf("the program in README.md is\n%s\n\nand the example that is tested\n%s", got, want)
	}
	if n := strings.Count(string(readme), "\n"); n >= 150 {
		t.Errorf("README.md has %d lines; it should stay below 150", n)
	}
}

// TestExample runs the example: it must come to an end with a GPU and without.
func TestExample(t *testing.T) { Example() }

// between returns what stands in s between the first begin and the next end.
func between(t *testing.T, s, begin, end string) string {
	t.Helper()
	_, s, found := strings.Cut(s, begin)
	if !found {
		t.Fatalf("%q not found", begin)
	}
	s, _, found = strings.Cut(s, end)
	if !found {
		t.Fatalf("%q not found after %q", end, begin)
	}
	return s
}
