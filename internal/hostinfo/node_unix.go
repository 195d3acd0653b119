//go:build unix

package hostinfo

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// try opens a device node as drivers' libraries do, and closes it: capability nodes only for
// reading, all others for reading and writing.
func try(path string) error {
	mode := os.O_RDWR
	if strings.HasPrefix(filepath.Base(path), "nvidia-cap") {
		mode = os.O_RDONLY
	}
	f, err := os.OpenFile(path, mode|syscall.O_NONBLOCK|syscall.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	return f.Close()
}

func owner(fi fs.FileInfo) (uid, gid int) {
	if st, ok := fi.Sys().(*syscall.Stat_t); ok {
		return int(st.Uid), int(st.Gid)
	}
	return -1, -1
}

func isEPERM(err error) bool { return errors.Is(err, syscall.EPERM) }

func isENXIO(err error) bool { return errors.Is(err, syscall.ENXIO) || errors.Is(err, syscall.ENODEV) }
