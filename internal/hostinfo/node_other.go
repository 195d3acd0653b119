//go:build !unix

package hostinfo

import "io/fs"

func try(string) error { return nil }

func owner(fs.FileInfo) (uid, gid int) { return -1, -1 }

func isEPERM(error) bool { return false }

func isENXIO(error) bool { return false }
