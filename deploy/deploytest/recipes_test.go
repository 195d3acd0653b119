package deploytest

import (
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/puregpu/puregpu/internal/testlib"
	"github.com/puregpu/puregpu/symbols"
)

// A builder carries out container files and keeps the finished build stages.
type builder struct {
	debian  string // a root folder with Debian's C library, musl and busybox
	scratch string
	built   map[string]string // root folders of finished build stages, keyed by their inputs
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// newBuilder skips the test if root folders cannot be made here. In CI the test fails instead.
func newBuilder(t *testing.T) *builder {
	t.Helper()
	unavailable := t.Skipf
	if os.Getenv("CI") != "" {
		unavailable = t.Fatalf
	}
	b := &builder{debian: os.Getenv("PUREGPU_TEST_DEBIAN"), scratch: t.TempDir(), built: map[string]string{}}
	if b.debian == "" {
		unavailable("PUREGPU_TEST_DEBIAN names no folder with Debian's packages: run make test-deploy")
	}
	if out, err := exec.Command("unshare", "-m", "chroot", "/", "true").CombinedOutput(); err != nil {
		unavailable("no root folder can be entered here, which takes the rights of root: %v, %s", err, out)
	}
	return b
}

// inside resolves the links in a path within a root folder.
func inside(t *testing.T, root, path string) string {
	t.Helper()
	for range 20 {
		var done string
		again := false
		for part := range strings.SplitSeq(strings.Trim(path, "/"), "/") {
			done += "/" + part
			target, err := os.Readlink(filepath.Join(root, done))
			if err != nil {
				continue
			}
			if !filepath.IsAbs(target) {
				target = filepath.Join(filepath.Dir(done), target)
			}
			path, again = target+strings.TrimPrefix("/"+strings.Trim(path, "/"), done), true
			break
		}
		if !again {
			return filepath.Join(root, path)
		}
	}
	t.Fatalf("%s: too many links", path)
	return ""
}

func copyFile(t *testing.T, to, from string) {
	t.Helper()
	in, err := os.Open(from)
	check(t, err)
	defer in.Close()
	info, err := in.Stat()
	check(t, err)
	check(t, os.MkdirAll(filepath.Dir(to), 0o755))
	out, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, info.Mode().Perm())
	check(t, err)
	_, err = io.Copy(out, in)
	check(t, err)
	check(t, out.Close())
	check(t, os.Chmod(to, info.Mode().Perm()|0o444))
}

// debianImage makes a stand-in for debian:bookworm-slim.
func (b *builder) debianImage(t *testing.T, dir string) {
	t.Helper()
	for _, name := range []string{"bin", "lib", "lib64"} {
		check(t, os.MkdirAll(filepath.Join(dir, "usr", name), 0o755))
		check(t, os.Symlink("usr/"+name, filepath.Join(dir, name)))
	}
	lib := "/usr/lib/x86_64-linux-gnu"
	check(t, filepath.WalkDir(filepath.Join(b.debian, lib), func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Name() == "gconv" {
			return fs.SkipDir
		}
		if name := d.Name(); err == nil && !d.IsDir() && strings.Contains(name, ".so") {
			copyFile(t, filepath.Join(dir, lib, name), inside(t, b.debian, lib+"/"+name))
		}
		return err
	}))
	copyFile(t, filepath.Join(dir, "usr/lib64/ld-linux-x86-64.so.2"), inside(t, b.debian, "/lib64/ld-linux-x86-64.so.2"))
	b.busybox(t, dir)
	check(t, os.MkdirAll(filepath.Join(dir, "etc"), 0o755))
	check(t, os.WriteFile(filepath.Join(dir, "etc/debian_version"), []byte("12.0\n"), 0o644))
}

// alpineImage makes a stand-in for alpine: musl and busybox.
func (b *builder) alpineImage(t *testing.T, dir string) {
	t.Helper()
	copyFile(t, filepath.Join(dir, "lib/ld-musl-x86_64.so.1"), inside(t, b.debian, "/usr/lib/x86_64-linux-musl/libc.so"))
	b.busybox(t, dir)
}

func (b *builder) busybox(t *testing.T, dir string) {
	t.Helper()
	copyFile(t, filepath.Join(dir, "bin/busybox"), inside(t, b.debian, "/bin/busybox"))
	check(t, os.Symlink("busybox", filepath.Join(dir, "bin/sh")))
}

// runInBuild runs a shell command in a root folder that has the host's programs and the module's
// files. The mounts are in a namespace that ends with the command.
func (b *builder) runInBuild(t *testing.T, dir, workdir, arg, command string) {
	t.Helper()
	source, err := os.Getwd()
	check(t, err)
	goenv := func(name string) string {
		out, err := exec.Command("go", "env", name).Output()
		check(t, err)
		return strings.TrimSpace(string(out))
	}
	goroot, cache, modules := goenv("GOROOT"), goenv("GOCACHE"), goenv("GOMODCACHE")
	script := `
		set -eu
		root=$1 workdir=$2 source=$3
		bind() { mkdir -p "$root$2"; mount --rbind "$1" "$root$2"; }
		for f in /usr /bin /lib /lib64 /etc /dev /proc; do [ ! -d $f ] || bind $f $f; done
		mkdir -p "$root/tmp"
		bind "$source" "$workdir"
		bind "$4" "$4"; bind "$5" "$5"; bind "$6" "$6"
		exec chroot "$root" /usr/bin/env -i HOME=/ PATH="$4/bin:/usr/bin:/bin" GOCACHE="$5" GOMODCACHE="$6" GOFLAGS="-mod=readonly -buildvcs=false" GOTOOLCHAIN=local "$7" sh -c "cd $workdir && $8"
	`
	for _, name := range []string{cache, modules} {
		check(t, os.MkdirAll(name, 0o755))
	}
	cmd := exec.Command("unshare", "-m", "sh", "-c", script, "sh", dir, workdir, source, goroot, cache, modules, arg, command)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("RUN %s: %v\n%s", command, err, out)
	}
}

// run starts the image's program as the image's user, with only the image's environment, and
// returns its output.
func (i image) run(t *testing.T, args ...string) (string, error) {
	t.Helper()
	for _, name := range []string{"dev", "proc", "tmp"} {
		check(t, os.MkdirAll(filepath.Join(i.dir, name), 0o755))
	}
	check(t, os.Chmod(filepath.Join(i.dir, "tmp"), 0o1777))
	script := `
		set -eu
		root=$1
		shift
		mount -t proc proc "$root/proc" || mount --rbind /proc "$root/proc"
		mount --rbind /dev "$root/dev"
		exec env -i "$@"
	`
	command := append([]string{"unshare", "-m", "sh", "-c", script, "sh", i.dir}, i.env...)
	command = append(command, "/usr/sbin/chroot", "--userspec="+i.user, i.dir, i.entrypoint)
	out, err := exec.Command(command[0], append(command[1:], args...)...).CombinedOutput()
	return string(out), err
}

// fakeCUDA compiles a fake CUDA driver 13.0 with two devices.
func fakeCUDA(t *testing.T) string {
	t.Helper()
	tab, err := symbols.Load("cuda")
	check(t, err)
	lib := testlib.Fake{File: "libcuda.so.1", Source: "../../runtime/driver/cudadriver/testdata/driver.c", Defines: []string{"VERSION=13000", "DEVICES=2"}}
	for _, f := range tab.Funcs {
		if !strings.HasPrefix(f.Symbol, "cuGetProcAddress") {
			lib.Symbols = append(lib.Symbols, f.Symbol)
		}
	}
	return lib.Build(t)
}

// TestRecipes carries out each container file and starts programs in the image: without a GPU, and
// with a driver in the folder that container runtimes use.
func TestRecipes(t *testing.T) {
	b := newBuilder(t)
	t.Chdir("../..") // the root of the module, which has the programs and the fake driver's C source
	driver := fakeCUDA(t)
	files, err := filepath.Glob("deploy/*.Containerfile")
	if err != nil || len(files) != 3 {
		t.Fatalf("the recipes are %v, %v", files, err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".Containerfile"), func(t *testing.T) {
			first := b.make(t, file, "./runtime/examples/first")
			if out, err := first.run(t); err != nil {
				t.Errorf("without a GPU, a program that takes a simulated one: %v\n%s", err, out)
			}
			img := b.make(t, file, "./tools/gpuinfo")
			if out, _ := img.run(t); !strings.Contains(out, "No CUDA driver: not found") {
				t.Errorf("without a driver gpuinfo says\n%s", out)
			}
			for _, folder := range []string{"/usr/local/nvidia/lib64", "/usr/lib64", "/usr/lib/x86_64-linux-gnu"} {
				if strings.HasPrefix(filepath.Base(file), "glibc") && folder == "/usr/lib64" {
					continue // container runtimes do not use this folder in Debian's images
				}
				name := filepath.Join(img.dir, folder, "libcuda.so.1")
				copyFile(t, name, driver)
				out, err := img.run(t)
				found := regexp.MustCompile(fmt.Sprintf("file: (/usr)?%s/libcuda.so.1\n", strings.TrimPrefix(folder, "/usr"))) // Debian's /lib is a link
				if err != nil || !found.MatchString(out) || !strings.Contains(out, "CUDA device 1: ") {
					t.Errorf("with a driver in %s: %v; want %v and two devices\n%.2000s", folder, err, found, out)
				}
				check(t, os.Remove(name))
			}
		})
	}
}
