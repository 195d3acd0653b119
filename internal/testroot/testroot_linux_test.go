package testroot

import (
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
)

// fails runs TestUnavailable in a separate process, with the environment variable CI as given. It
// returns whether the test failed, and its output.
func fails(t *testing.T, ci string) (failed bool, said string) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self, "-test.run=^TestUnavailable$", "-test.v")
	cmd.Env = append(os.Environ(), "PUREGPU_TEST_UNAVAILABLE=1", "CI="+ci)
	out, err := cmd.CombinedOutput()
	return err != nil, string(out)
}

// TestUnavailable checks that Unavailable fails a test in CI and skips it elsewhere.
func TestUnavailable(t *testing.T) {
	if os.Getenv("PUREGPU_TEST_UNAVAILABLE") != "" {
		Unavailable(t, "no chroot")
		return
	}
	if failed, said := fails(t, ""); failed || !strings.Contains(said, "--- SKIP") || !strings.Contains(said, "no chroot") {
		t.Errorf("without CI it fails: %v, and says\n%s", failed, said)
	}
	if failed, said := fails(t, "true"); !failed || !strings.Contains(said, "this must run in CI: no chroot") {
		t.Errorf("with CI it fails: %v, and says\n%s", failed, said)
	}
}

// TestEmulated checks that a program for amd64 is not reported as emulated.
func TestEmulated(t *testing.T) {
	if emulated() && runtime.GOARCH == "amd64" {
		t.Error("this program is said to be emulated")
	}
}
