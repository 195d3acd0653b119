package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

const keyring = "/usr/share/keyrings/debian-archive-keyring.gpg"

// Addresses of packages that have left the mirror: an archive of suites that are no longer
// supported, and a snapshot of a day on which Debian still had the packages of all units.
const (
	archive  = "http://archive.debian.org/debian"
	snapshot = "http://snapshot.debian.org/archive/debian/20261124T000000Z"
)

// mirror returns the address of Debian's packages.
func mirror() (string, error) {
	if m := os.Getenv("DEBIAN_MIRROR"); m != "" {
		return m, nil
	}
	files := []string{"/etc/apt/sources.list"}
	for _, pattern := range []string{"/etc/apt/sources.list.d/*.list", "/etc/apt/sources.list.d/*.sources"} {
		more, _ := filepath.Glob(pattern)
		files = append(files, more...)
	}
	address := regexp.MustCompile(`(?m)^[^#\n]*?(https?://\S+/debian)/?(\s|$)`)
	for _, name := range files {
		text, _ := os.ReadFile(name)
		if m := address.FindSubmatch(text); m != nil {
			return string(m[1]), nil
		}
	}
	return "", errors.New("apt has no source of Debian's packages; name one in DEBIAN_MIRROR")
}

// fetch unpacks the unit's packages in dir/NAME/root and returns that folder. It does not fetch
// them twice.
func (u *unit) fetch(ctx context.Context, dir string) (string, error) {
	dir = filepath.Join(dir, u.name)
	root, done := filepath.Join(dir, "root"), filepath.Join(dir, "unpacked")
	if _, err := os.Stat(done); err == nil {
		return root, nil
	}
	for _, program := range []string{"apt-get", "dpkg"} {
		if _, err := exec.LookPath(program); err != nil {
			return "", fmt.Errorf("no %s to fetch Debian's packages with: %w", program, err)
		}
	}
	if _, err := os.Stat(keyring); err != nil {
		return "", fmt.Errorf("no keys to check the signatures of Debian's packages; install debian-archive-keyring (%w)", err)
	}
	first, err := mirror()
	if err != nil {
		return "", err
	}
	var errs []error
	for _, source := range []string{first, archive, snapshot} {
		for i := range u.suites {
			suites := u.suites[i:]
			if !u.closure {
				suites = suites[:1] // try one suite after the other
			} else if i > 0 {
				break
			}
			debs, err := u.download(ctx, dir, source, suites, root)
			if err == nil && len(debs) > 0 {
				err = unpack(ctx, debs, root, len(u.headers) > 0 || u.bind)
			}
			if err == nil {
				return root, os.WriteFile(done, nil, 0o666)
			}
			errs = append(errs, fmt.Errorf("%s %s: %w", source, strings.Join(suites, ", "), err))
			if ctx.Err() != nil {
				return "", fmt.Errorf("%w: %w", context.Cause(ctx), errors.Join(errs...))
			}
		}
	}
	return "", errors.Join(errs...)
}

// download fetches the unit's packages from a source and returns the files. It uses lists, a cache
// and a system state of its own. For a unit with headers it first tries to fetch only the beginning
// of large packages, and unpacks the headers below root. If that succeeds it returns no files.
// Otherwise it fetches the whole packages.
func (u *unit) download(ctx context.Context, dir, source string, suites []string, root string) ([]string, error) {
	for _, name := range []string{"lists", "cache"} {
		if err := os.RemoveAll(filepath.Join(dir, name)); err != nil {
			return nil, err
		}
	}
	for _, name := range []string{"lists/partial", "cache/archives/partial"} {
		if err := os.MkdirAll(filepath.Join(dir, name), 0o777); err != nil {
			return nil, err
		}
	}
	var list strings.Builder
	components := "non-free"
	switch {
	case u.components != "":
		components = u.components
	case u.closure:
		components = "main contrib non-free"
	}
	for _, suite := range suites {
		// The lists of an archive have an expiry date in the past.
		valid := map[bool]string{true: "yes", false: "no"}[source != archive && source != snapshot]
		fmt.Fprintf(&list, "deb [arch=amd64 signed-by=%s check-valid-until=%s] %s %s %s\n", keyring, valid, source, suite, components)
	}
	for name, text := range map[string]string{"sources.list": list.String(), "status": ""} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o666); err != nil {
			return nil, err
		}
	}
	apt := func(args ...string) (string, error) { return apt(ctx, dir, "apt-get", args...) }
	if _, err := apt("update", "--error-on=any"); err != nil {
		return nil, err
	}
	command := append([]string{"download"}, u.packages...)
	if u.closure {
		command = append([]string{"install", "-y", "--download-only", "--no-install-recommends", "-t", suites[0]}, u.packages...)
	}
	if len(u.headers) > 0 {
		said, err := apt(append([]string{"download", "--print-uris"}, u.packages...)...)
		if err != nil {
			return nil, err
		}
		files, err := packageFiles(said)
		if err != nil {
			return nil, err
		}
		if slices.ContainsFunc(files, func(f packageFile) bool { return f.size > part }) {
			if err := fetchHeaders(ctx, files, root, u.headers); err == nil || ctx.Err() != nil {
				return nil, ctx.Err()
			} // otherwise fetch the whole package, which apt checks
		}
	}
	if _, err := apt(command...); err != nil {
		return nil, err
	}
	return filepath.Glob(filepath.Join(dir, "cache/archives/*.deb"))
}

// apt runs a program of apt with the lists, the cache and the state in a folder, and returns its
// output.
func apt(ctx context.Context, dir, program string, args ...string) (string, error) {
	settings := []string{"-qq"}
	for _, s := range []string{
		"Dir::Etc::sourcelist=" + dir + "/sources.list", "Dir::Etc::sourceparts=-", "Dir::Etc::preferencesparts=-", "Dir::State::Lists=" + dir + "/lists",
		"Dir::State::status=" + dir + "/status", "Dir::Cache=" + dir + "/cache", "APT::Architecture=amd64", "APT::Architectures::=amd64",
		"APT::Sandbox::User=root", "Debug::NoLocking=1", "Acquire::Languages=none", "Acquire::Retries=2", "Acquire::http::Timeout=60",
	} {
		settings = append(settings, "-o", s)
	}
	cmd := exec.CommandContext(ctx, program, append(settings, args...)...)
	cmd.Dir = filepath.Join(dir, "cache/archives")
	cmd.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive", "LC_ALL=C")
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	cmd.WaitDelay = time.Second // programs started by apt-get keep the pipe open longer
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("%s %s: %w: %s", program, args[0], err, lastLines(said.String(), 3))
	}
	return said.String(), nil
}

// unpack unpacks packages, or only the headers in them, and removes the package files.
func unpack(ctx context.Context, debs []string, root string, headers bool) error {
	if len(debs) == 0 {
		return errors.New("apt-get fetched no package")
	}
	if err := os.RemoveAll(root); err != nil {
		return err
	}
	for _, deb := range debs {
		cmd := exec.CommandContext(ctx, "dpkg", "-x", deb, root)
		if headers {
			script := `set -e; mkdir -p "$2"; dpkg-deb -c "$1" | grep ' \./usr/include' >/dev/null || exit 0; dpkg-deb --fsys-tarfile "$1" | tar -x -C "$2" --wildcards './usr/include*'`
			cmd = exec.CommandContext(ctx, "sh", "-c", script, "sh", deb, root)
		}
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("unpacking %s: %w: %s", deb, err, lastLines(string(out), 3))
		}
		if err := os.Remove(deb); err != nil {
			return err
		}
	}
	return nil
}

func lastLines(text string, n int) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "; ")
}

// find returns the file below root that matches a pattern. If several match, it returns the one
// with the longest name: libcuda.so.550.163.01 and not libcuda.so.1.
func find(root, pattern string) (string, error) {
	var files []string
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		if ok, _ := filepath.Match(pattern, d.Name()); ok && !strings.HasSuffix(d.Name(), ".gz") {
			files = append(files, path)
		}
		return nil
	})
	if err != nil {
		return "", err
	}
	if len(files) == 0 {
		return "", fmt.Errorf("the packages have no %s; they are unpacked in %s", pattern, root)
	}
	return slices.MaxFunc(files, func(a, b string) int {
		return cmp.Or(cmp.Compare(len(filepath.Base(a)), len(filepath.Base(b))), strings.Compare(b, a))
	}), nil
}

// libraryDirs returns the folders below root with shared libraries, except folders of gconv and
// folders with NVIDIA's driver. If nvJitLink found that driver, it would use the driver instead of
// its own code.
func libraryDirs(root string) ([]string, error) {
	var dirs []string
	driver := map[string]bool{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.Contains(d.Name(), ".so") {
			return err
		}
		dir := filepath.Dir(path)
		dirs = append(dirs, dir)
		driver[dir] = driver[dir] || strings.HasPrefix(d.Name(), "libcuda.so")
		return nil
	})
	dirs = slices.DeleteFunc(dirs, func(dir string) bool { return driver[dir] || strings.Contains(dir, "/gconv") })
	slices.Sort(dirs)
	return slices.Compact(dirs), err
}
