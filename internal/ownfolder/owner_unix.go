//go:build unix

package ownfolder

import (
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

func checkOwner(fi fs.FileInfo, orRoot bool) error {
	s, ok := fi.Sys().(*syscall.Stat_t)
	if !ok {
		return fmt.Errorf("its owner is not known, %w", ErrForeign)
	}
	if user := os.Geteuid(); uint64(s.Uid) != uint64(user) && !(orRoot && s.Uid == 0) {
		return fmt.Errorf("it belongs to user %d and this process runs as user %d, %w", s.Uid, user, ErrForeign)
	}
	if perm := fi.Mode().Perm(); perm&0o022 != 0 {
		return fmt.Errorf("its mode %#o lets others write to it, %w", perm, ErrForeign)
	}
	return nil
}
