// Package secureenv reads the environment, unless the program has rights that its caller does not have.
//
// Whoever starts a set-user-ID or set-group-ID program, or one with file capabilities, chooses its environment. A variable that names
// a file to load, or one to write, would give the caller the program's rights. So in such a program every variable counts as unset, as
// for secure_getenv of C. All of the project's packages read the environment here. SECURITY.md lists the variables.
package secureenv

import (
	"errors"
	"os"
	"sync"
)

// elevated reports whether the program has rights that its caller does not have. What it has given up since it started does not count:
// the environment is still the caller's.
var elevated = sync.OnceValue(isElevated)

// errElevated is why there is no folder to take from the environment.
var errElevated = errors.New("this program has more rights than its caller, so no folder is taken from the environment")

// Lookup is [os.LookupEnv], and finds nothing if the program has rights that its caller does not have.
func Lookup(name string) (string, bool) {
	if elevated() {
		return "", false
	}
	return os.LookupEnv(name)
}

// Get is [os.Getenv], and returns "" if the program has rights that its caller does not have.
func Get(name string) string {
	v, _ := Lookup(name)
	return v
}

// UserCacheDir is [os.UserCacheDir], and fails if the program has rights that its caller does not have.
func UserCacheDir() (string, error) {
	if elevated() {
		return "", errElevated
	}
	return os.UserCacheDir()
}

// TempDir is [os.TempDir]. It is /tmp if the program has rights that its caller does not have.
func TempDir() string {
	if elevated() {
		return "/tmp"
	}
	return os.TempDir()
}

// identities reports whether the program runs with another user's or group's rights. Windows has no such programs, and there all
// numbers are -1.
func identities() bool { return os.Getuid() != os.Geteuid() || os.Getgid() != os.Getegid() }

// Program returns the path of the program that runs, or "" if it is unknown, or the program has rights that its caller does not have: the
// caller may have linked it into a folder of its own.
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
