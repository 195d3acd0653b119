package diskcache

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/puregpu/puregpu/internal/filelock"
)

func data(n int, seed uint64) []byte {
	b := make([]byte, n)
	r := rand.New(rand.NewPCG(seed, 0))
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return b
}

func names(t *testing.T, dir string) (all []string) {
	t.Helper()
	files, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		all = append(all, f.Name())
	}
	return all
}

// folder makes a folder that only this user can write to, with any umask.
func folder(t testing.TB) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "cache")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	return dir
}

func (c Cache) file(key Key) string { return filepath.Join(c.Dir, key.name()) }

func (c Cache) has(t *testing.T, key Key, want []byte) {
	t.Helper()
	got, ok := c.Get(key)
	if ok != (want != nil) || !bytes.Equal(got, want) {
		t.Errorf("%x: %d bytes, %v; want %d", key[:4], len(got), ok, len(want))
	}
}

func (c Cache) put(t *testing.T, key Key, b []byte) {
	t.Helper()
	if err := c.Put(key, b); err != nil {
		t.Fatal(err)
	}
}

func TestKeyOf(t *testing.T) {
	seen := map[Key]string{}
	for _, parts := range [][]string{nil, {""}, {"", ""}, {"a"}, {"a", ""}, {"", "a"}, {"ab"}, {"a", "b"}, {"a\x00", "b"}, {"a", "\x00b"}} {
		key := KeyOf(parts...)
		if was, ok := seen[key]; ok {
			t.Errorf("%q and %s have the same key", parts, was)
		}
		seen[key] = fmt.Sprintf("%q", parts)
	}
	if again := KeyOf("a", "b"); KeyOf("a", "b") != again {
		t.Error("one list has two keys")
	}
}

func TestCache(t *testing.T) {
	c := Cache{Dir: filepath.Join(t.TempDir(), "one", "two"), Max: 1 << 20}
	a, b := KeyOf("a"), KeyOf("b")
	c.has(t, a, nil)
	c.put(t, a, data(1000, 1))
	c.put(t, b, []byte{})
	c.has(t, a, data(1000, 1))
	c.has(t, b, []byte{})
	c.put(t, a, data(3000, 2))
	Cache{Dir: c.Dir, Max: c.Max}.has(t, a, data(3000, 2))
	if n := names(t, c.Dir); len(n) != 2 {
		t.Errorf("the folder has %q", n)
	}
	if err := c.Put(a, make([]byte, 1<<20)); err == nil {
		t.Error("more than the bound was put")
	}
	c.has(t, a, data(3000, 2))
}

// TestNoEntry puts damaged files at the name of an entry. Get finds nothing, and the next Put
// replaces the file.
func TestNoEntry(t *testing.T) {
	key, other, want := KeyOf("key"), KeyOf("other"), data(5000, 1)
	make := func(t *testing.T) (c Cache, whole []byte) {
		c = Cache{Dir: folder(t), Max: 1 << 20}
		c.put(t, key, want)
		whole, err := os.ReadFile(c.file(key))
		if err != nil {
			t.Fatal(err)
		}
		return c, whole
	}
	write := func(t *testing.T, c Cache, b []byte) {
		if err := os.WriteFile(c.file(key), b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	anew := func(t *testing.T, c Cache) {
		t.Helper()
		c.has(t, key, nil)
		c.put(t, key, want)
		c.has(t, key, want)
	}
	t.Run("cut off", func(t *testing.T) {
		c, whole := make(t)
		for _, n := range []int{0, 1, len(magic), header - 1, header, header + 1, len(whole) - 1} {
			write(t, c, whole[:n])
			anew(t, c)
		}
	})
	t.Run("longer", func(t *testing.T) {
		c, whole := make(t)
		write(t, c, append(bytes.Clone(whole), 0))
		anew(t, c)
	})
	t.Run("a byte is another", func(t *testing.T) {
		c, whole := make(t)
		for i := 0; i < len(whole); i += 1 + i/header*97 {
			b := bytes.Clone(whole)
			b[i] ^= 0x10
			write(t, c, b)
			anew(t, c)
		}
	})
	t.Run("another key's", func(t *testing.T) {
		c, _ := make(t)
		c.put(t, other, data(10, 3))
		if err := os.Rename(c.file(other), c.file(key)); err != nil {
			t.Fatal(err)
		}
		anew(t, c)
	})
	t.Run("another format's", func(t *testing.T) {
		c, whole := make(t)
		copy(whole, "puregpu\x02")
		write(t, c, whole)
		anew(t, c)
	})
	t.Run("zeros", func(t *testing.T) {
		c, whole := make(t)
		clear(whole)
		write(t, c, whole)
		anew(t, c)
	})
	t.Run("more than the bound", func(t *testing.T) {
		c, _ := make(t)
		if err := os.Truncate(c.file(key), 1<<40); err != nil {
			t.Skip(err)
		}
		anew(t, c)
	})
	t.Run("a folder", func(t *testing.T) {
		c, _ := make(t)
		if err := os.Remove(c.file(key)); err != nil {
			t.Fatal(err)
		}
		if err := os.MkdirAll(filepath.Join(c.file(key), "x"), 0o700); err != nil {
			t.Fatal(err)
		}
		c.has(t, key, nil)
		if err := c.Put(key, want); err == nil {
			t.Error("a folder was replaced")
		}
		if n := names(t, c.Dir); len(n) != 1 {
			t.Errorf("left behind: %q", n)
		}
	})
}

// TestNoFolder uses folders that cannot be written. Put returns an error, and Get finds nothing.
func TestNoFolder(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	dirs := []string{filepath.Join(file, "below"), file, "\x00"}
	if runtime.GOOS != "windows" && os.Getuid() != 0 { // Windows and root ignore the permission bits of a folder
		locked := filepath.Join(t.TempDir(), "locked")
		if err := os.Mkdir(locked, 0o500); err != nil {
			t.Fatal(err)
		}
		dirs = append(dirs, locked)
	}
	for _, dir := range dirs {
		c := Cache{Dir: dir, Max: 1 << 20}
		if err := c.Put(KeyOf("a"), data(10, 1)); err == nil {
			t.Errorf("%q: put", dir)
		}
		c.has(t, KeyOf("a"), nil)
	}
}

func TestBound(t *testing.T) {
	const most = 10 * block
	c := Cache{Dir: folder(t), Max: most}
	others := []string{"notes.txt", "0123.code", hex64 + ".code.bak"}
	for _, name := range others {
		if err := os.WriteFile(filepath.Join(c.Dir, name), data(100, 1), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	past := time.Now().Add(-24 * time.Hour)
	key := func(i int) Key { return KeyOf(fmt.Sprint(i)) }
	for i := range 9 {
		c.put(t, key(i), data(1000, uint64(i)))
		at := past.Add(time.Duration(i) * time.Minute)
		if err := os.Chtimes(c.file(key(i)), at, at); err != nil {
			t.Fatal(err)
		}
	}
	c.has(t, key(0), data(1000, 0)) // now entry 0 is the most recently used
	c.put(t, key(9), data(2*block, 9))
	for i := range 10 {
		want := data(1000, uint64(i))
		switch i {
		case 1, 2:
			want = nil
		case 9:
			want = data(2*block, 9)
		}
		c.has(t, key(i), want)
	}
	for _, name := range others {
		if _, err := os.Stat(filepath.Join(c.Dir, name)); err != nil {
			t.Errorf("somebody else's file: %v", err)
		}
	}
	for i := range 100 {
		c.put(t, key(i), data(i*300, uint64(i)))
		var total int64
		for _, name := range names(t, c.Dir) {
			if fi, err := os.Stat(filepath.Join(c.Dir, name)); err == nil && isEntry(name) {
				total += onDisk(fi.Size())
			}
		}
		if total > most {
			t.Fatalf("%d bytes after %d entries, more than %d", total, i, most)
		}
		c.has(t, key(i), data(i*300, uint64(i)))
	}
}

// TestLeftovers puts entries into a folder with incomplete files. The incomplete files must not
// make Put evict entries, however large the files are. Put must remove the incomplete files that no
// process is writing.
func TestLeftovers(t *testing.T) {
	const most = 10 * block
	c := Cache{Dir: folder(t), Max: most}
	key := func(i int) Key { return KeyOf(fmt.Sprint(i)) }
	for i := range 9 {
		c.put(t, key(i), data(1000, uint64(i)))
	}
	root, err := os.OpenRoot(c.Dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	live, name, err := begin(root)
	if err != nil {
		t.Fatal(err)
	}
	defer live.Close()
	if err := filelock.Try(live); errors.Is(err, errors.ErrUnsupported) {
		t.Skip("no locks here")
	}
	if _, err := live.Write(data(20*block, 1)); err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		if err := os.WriteFile(filepath.Join(c.Dir, fmt.Sprintf("put-%d.tmp", i)), data(20*block, 1), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	c.put(t, key(9), data(1000, 9))
	for i := range 10 {
		c.has(t, key(i), data(1000, uint64(i)))
	}
	if n := names(t, c.Dir); len(n) != 11 || !slices.Contains(n, name) {
		t.Errorf("beside 10 entries and the file that is being written, %s, there is something else: %q", name, n)
	}
	if err := live.Close(); err != nil {
		t.Fatal(err)
	}
	c.put(t, key(9), data(1000, 9))
	if n := names(t, c.Dir); len(n) != 10 {
		t.Errorf("beside 10 entries there is something else: %q", n)
	}
}

var hex64 = strings.Repeat("0f", 32)

// TestGoroutines puts and gets a few keys from many goroutines. Only some fit in the cache. Get
// must return the right data or none.
func TestGoroutines(t *testing.T) {
	c := Cache{Dir: folder(t), Max: 5 * block}
	var all sync.WaitGroup
	for g := range 8 {
		all.Go(func() {
			r := rand.New(rand.NewPCG(uint64(g), 1))
			for range 100 {
				n := r.IntN(10)
				key, want := KeyOf(fmt.Sprint(n)), data(500*n, uint64(n))
				if got, ok := c.Get(key); ok && !bytes.Equal(got, want) {
					t.Errorf("%d: wrong data", n)
				}
				if err := c.Put(key, want); err != nil {
					t.Errorf("%d: %v", n, err)
				}
			}
		})
	}
	all.Wait()
}

const child = "PUREGPU_TEST_DISKCACHE"

// TestProcesses starts 100 processes that get the same key and put its data. One file with the
// right data remains.
func TestProcesses(t *testing.T) {
	key, want := KeyOf("shared"), data(100_000, 7)
	if dir := os.Getenv(child); dir != "" {
		c := Cache{Dir: dir, Max: 1 << 20}
		if got, ok := c.Get(key); ok && !bytes.Equal(got, want) {
			t.Fatal("wrong data")
		}
		c.put(t, key, want)
		c.has(t, key, want)
		return
	}
	program, err := os.Executable()
	if err != nil {
		t.Skip(err)
	}
	if err := exec.Command(program, "-test.run=^$").Run(); errors.Is(err, syscall.ENOEXEC) {
		t.Skip("needs to start itself, which under an emulator the system cannot do")
	}
	c := Cache{Dir: folder(t), Max: 1 << 20}
	var all sync.WaitGroup
	for range 100 {
		all.Go(func() {
			cmd := exec.Command(program, "-test.run=^TestProcesses$")
			cmd.Env = append(os.Environ(), child+"="+c.Dir)
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
	all.Wait()
	c.has(t, key, want)
	if n := names(t, c.Dir); len(n) != 1 {
		t.Errorf("they leave %q", n)
	}
}

// TestKilled starts a process that is writing an entry. Put must not remove the file while the
// process lives, and must remove it after the process has been killed.
func TestKilled(t *testing.T) {
	if dir := os.Getenv(child); dir != "" {
		root, err := os.OpenRoot(dir)
		if err != nil {
			t.Fatal(err)
		}
		_, name, err := begin(root)
		fmt.Println(name, err)
		select {}
	}
	program, err := os.Executable()
	if err != nil {
		t.Skip(err)
	}
	c := Cache{Dir: folder(t), Max: 1 << 20}
	cmd := exec.Command(program, "-test.run=^TestKilled$")
	cmd.Env = append(os.Environ(), child+"="+c.Dir)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); errors.Is(err, syscall.ENOEXEC) {
		t.Skip("needs to start itself, which under an emulator the system cannot do")
	} else if err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	name, _ := strings.CutSuffix(strings.TrimSpace(line), " <nil>")
	c.put(t, KeyOf("a"), data(10, 1))
	if n := names(t, c.Dir); len(n) != 2 || !slices.Contains(n, name) {
		t.Errorf("the file %q of a process that lives is not among %q (%v)", name, n, err)
	}
	cmd.Process.Kill()
	cmd.Wait()
	c.put(t, KeyOf("a"), data(10, 1))
	if n := names(t, c.Dir); len(n) != 1 {
		t.Errorf("the file of a process that was killed stays: %q", n)
	}
}

func BenchmarkGet(b *testing.B) {
	for _, size := range []int{4 << 10, 64 << 10, 1 << 20} {
		b.Run(fmt.Sprintf("%dKiB", size>>10), func(b *testing.B) {
			c := Cache{Dir: folder(b), Max: 1 << 30}
			key := KeyOf("a")
			if err := c.Put(key, data(size, 1)); err != nil {
				b.Fatal(err)
			}
			for b.Loop() {
				if _, ok := c.Get(key); !ok {
					b.Fatal("nothing")
				}
			}
		})
	}
}
