// Package secureenv reads the environment, unless the program has more rights than its caller.
//
// The caller of a set-user-ID or set-group-ID program, or of a program with file capabilities,
// chooses its environment. A variable that names a file to load or write would give the caller the
// program's rights. So in such a program every variable counts as unset, as in C's secure_getenv.
// All packages that programs import look up variables through this package. SECURITY.md lists the
// variables.
package secureenv

import (
	"errors"
	"os"
	"sync"
)

// elevated reports whether the program has more rights than its caller. On Linux it stays true
// after the program has dropped its rights, since the environment is still the caller's.
var elevated = sync.OnceValue(isElevated)

// errElevated explains why no folder is taken from the environment.
var errElevated = errors.New("this program has more rights than its caller, so no folder is taken from the environment")

// Lookup is [os.LookupEnv], and finds nothing if the program has more rights than its caller.
func Lookup(name string) (string, bool) {
	if elevated() {
		return "", false
	}
	return os.LookupEnv(name)
}

// Get is [os.Getenv], and returns "" if the program has more rights than its caller.
func Get(name string) string {
	v, _ := Lookup(name)
	return v
}

// UserCacheDir is [os.UserCacheDir], and fails if the program has more rights than its caller.
func UserCacheDir() (string, error) {
	if elevated() {
		return "", errElevated
	}
	return os.UserCacheDir()
}

// TempDir is [os.TempDir], and returns /tmp if the program has more rights than its caller.
func TempDir() string {
	if elevated() {
		return "/tmp"
	}
	return os.TempDir()
}

// identities reports whether the program runs with another user's or group's rights. On Windows all
// IDs are -1, so it returns false.
func identities() bool { return os.Getuid() != os.Geteuid() || os.Getgid() != os.Getegid() }

// Program returns the path of the running program. It returns "" if the path is unknown, or if the
// program has more rights than its caller, who may have linked it into any folder.
func Program() string {
	if elevated() {
		return ""
	}
	path, err := os.Executable()
	if err != nil {
		return ""
	}
	return path
}
