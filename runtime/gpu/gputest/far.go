package gputest

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/puregpu/puregpu/runtime/driver"
)

// farVariable is an environment variable that StartFar sets for the process that it starts.
const farVariable = "PUREGPU_TEST_FAR"

// StartFar starts this program again in another process, which runs only the test function with the
// name test. This function must call [BeFar]. The process ends when t ends. StartFar does not work
// on Windows.
func StartFar(t *testing.T, test string) Far {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	in, to, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	from, out, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe, "-test.run=^"+test+"$", "-test.timeout=2m")
	cmd.Env = append(os.Environ(), farVariable+"=1")
	cmd.ExtraFiles = []*os.File{in, out}
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	err = cmd.Start()
	in.Close()
	out.Close()
	if err != nil {
		t.Fatal(err)
	}
	ended, killed := make(chan error, 1), false
	go func() { ended <- cmd.Wait() }()
	t.Cleanup(func() {
		to.Close()
		defer from.Close()
		if killed {
			return
		}
		late := time.AfterFunc(20*time.Second, func() { cmd.Process.Kill() })
		defer late.Stop()
		if err := <-ended; err != nil {
			t.Errorf("the other process: %v:\n%s", err, said.Bytes())
		}
	})
	return Far{To: to, From: from, Kill: func() {
		killed = true
		cmd.Process.Kill()
		<-ended
	}}
}

// BeFar calls [RunFar] in a process that StartFar has started, and skips the test in all other
// processes.
func BeFar(t *testing.T, open func() (driver.Driver, error)) {
	t.Helper()
	if os.Getenv(farVariable) == "" {
		t.Skip("this is not the other process")
	}
	d, err := open()
	if err != nil {
		t.Fatal(err)
	}
	var from io.Reader = os.NewFile(3, "questions")
	var to io.Writer = os.NewFile(4, "answers")
	if err := RunFar(d, from, to); err != nil {
		t.Fatal(fmt.Errorf("far: %w", err))
	}
}
