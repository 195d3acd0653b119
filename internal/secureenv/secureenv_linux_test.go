package secureenv

import (
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

var tell = flag.Bool("tell", false, "print what the package tells, and end")

const variable = "PUREGPU_TEST_VARIABLE"

func TestMain(m *testing.M) {
	flag.Parse()
	if *tell {
		v, found := Lookup(variable)
		_, err := UserCacheDir()
		fmt.Printf("%v %q %q %v %v %s %q\n", more(), Get(variable), v, found, err == nil, TempDir(), os.Getenv(variable))
		return
	}
	os.Exit(m.Run())
}

// more reports whether the process has rights that its user does not have.
func more() bool {
	status, _ := os.ReadFile("/proc/self/status")
	return os.Getuid() != os.Geteuid() || os.Getgid() != os.Getegid() || !strings.Contains(string(status), "CapEff:\t0000000000000000")
}

// TestElevated checks that variables count as unset in a program that has more rights than its
// caller for any reason, and only then.
func TestElevated(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root can make a program of another user's and start one as another user")
	}
	dir, err := os.MkdirTemp("", "secureenv")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	const user, group = 65534, 65534
	capability := []uint32{0x02000001, 1 << 10, 0, 0, 0} // revision 2 with the flag effective; the capability is CAP_NET_BIND_SERVICE
	for _, c := range []struct {
		name     string
		mode     os.FileMode
		uid, gid int
		capable  bool
		elevated bool
	}{
		{name: "its own rights", mode: 0o755},
		{name: "set-user-ID", mode: 0o755 | os.ModeSetuid, elevated: true},
		{name: "set-group-ID", mode: 0o755 | os.ModeSetgid, elevated: true},
		{name: "set-user-ID to itself", mode: 0o755 | os.ModeSetuid, uid: user},
		{name: "set-user-ID to a user without rights", mode: 0o755 | os.ModeSetuid, uid: 65533, elevated: true},
		{name: "a file capability", mode: 0o755, capable: true, elevated: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			program := filepath.Join(dir, strings.ReplaceAll(c.name, " ", "-"))
			copyProgram(t, program)
			for _, err := range []error{os.Chmod(dir, 0o755), os.Chown(program, c.uid, c.gid), os.Chmod(program, c.mode)} {
				if err != nil {
					t.Fatal(err)
				}
			}
			if c.capable {
				var attr []byte
				for _, v := range capability {
					attr = binary.LittleEndian.AppendUint32(attr, v)
				}
				if err := syscall.Setxattr(program, "security.capability", attr, 0); err != nil {
					t.Skip("no file capability can be set here: ", err)
				}
			}
			cmd := exec.Command(program, "-tell")
			cmd.Env = []string{variable + "=value", "HOME=/home", "TMPDIR=/elsewhere"}
			cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: user, Gid: group}}
			out, err := cmd.CombinedOutput()
			if errors.Is(err, syscall.ENOEXEC) {
				t.Skip("needs to start itself, which under an emulator the system cannot do")
			}
			if err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			rights, got, _ := strings.Cut(strings.TrimSpace(string(out)), " ")
			if c.elevated && rights == "false" {
				t.Skip("the system gave the program no more rights, as in a folder mounted nosuid")
			}
			want := `"value" "value" true true /elsewhere "value"`
			if c.elevated {
				want = `"" "" false false /tmp "value"`
			}
			if got != want {
				t.Errorf("Get, Lookup, UserCacheDir, TempDir and os.Getenv tell\n%s, want\n%s", got, want)
			}
		})
	}
}

func copyProgram(t *testing.T, to string) {
	t.Helper()
	in, err := os.Open("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o755)
	if err != nil {
		t.Fatal(err)
	}
	_, err = io.Copy(out, in)
	if err2 := out.Close(); err != nil || err2 != nil {
		t.Fatal(err, err2)
	}
}
