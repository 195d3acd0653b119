package rendezvous

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// asRank is the environment variable that makes this test binary a rank instead of a test; it names
// the way to exchange ids.
const asRank = "PUREGPU_TEST_RENDEZVOUS"

// beRank takes part in two exchanges, as the environment says, and prints the received ids.
func beRank() error {
	var s sharer = TCP{}
	if path, ok := strings.CutPrefix(os.Getenv(asRank), "files:"); ok {
		s = File{Path: path}
	}
	rank, count, err := s.Place()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	for _, name := range []string{"one", "two"} {
		var id []byte
		if rank == 0 {
			id = []byte("id of " + name)
		}
		if id, err = s.Share(ctx, name, id); err != nil {
			return err
		}
		fmt.Printf("%s for rank %d of %d\n", id, rank, count)
	}
	return nil
}

// TestProcesses checks that processes exchange ids if a launcher's variables are all that they get.
func TestProcesses(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Skip(err)
	}
	if err := exec.Command(self, "-test.run=^$").Run(); errors.Is(err, syscall.ENOEXEC) {
		t.Skip("needs to start itself, which under an emulator the system cannot do")
	}
	host, port, _ := net.SplitHostPort(freeAddress(t))
	n, _ := strconv.Atoi(port)
	if n <= PortOffset {
		t.Skip("no port for the store")
	}
	master := []string{"MASTER_ADDR=" + host, "MASTER_PORT=" + strconv.Itoa(n-PortOffset)}
	files := asRank + "=files:" + t.TempDir()
	for name, test := range map[string]struct{ all, each []string }{
		"torchrun": {slices.Concat(master, []string{asRank + "=tcp", "WORLD_SIZE=3", "TORCHELASTIC_RUN_ID=none"}), []string{"RANK=%d", "TORCHELASTIC_RESTART_COUNT=%d"}},
		"Open MPI": {[]string{files, "OMPI_COMM_WORLD_SIZE=3", "PMIX_NAMESPACE=job@1"}, []string{"OMPI_COMM_WORLD_RANK=%d"}},
		"Slurm":    {[]string{files, "SLURM_STEP_NUM_TASKS=3", "SLURM_JOB_ID=1", "SLURM_STEP_ID=0"}, []string{"SLURM_PROCID=%d"}},
	} {
		t.Run(name, func(t *testing.T) {
			each(t, 3, func(rank int) error {
				cmd := exec.CommandContext(t.Context(), self)
				for _, v := range os.Environ() {
					if strings.HasPrefix(v, "PATH=") || strings.HasPrefix(v, "SystemRoot=") || strings.HasPrefix(v, "TMP") {
						cmd.Env = append(cmd.Env, v)
					}
				}
				cmd.Env = append(cmd.Env, test.all...)
				for _, v := range test.each {
					cmd.Env = append(cmd.Env, fmt.Sprintf(v, rank))
				}
				var out bytes.Buffer
				cmd.Stdout, cmd.Stderr = &out, &out
				err := cmd.Run()
				if want := fmt.Sprintf("id of one for rank %d of 3\nid of two for rank %[1]d of 3\n", rank); err != nil || out.String() != want {
					return fmt.Errorf("%v, printed\n%swant\n%s", err, &out, want)
				}
				return nil
			})
		})
	}
}
