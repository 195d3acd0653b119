package blockpool

import (
	"errors"
	"math"
	"reflect"
	"testing"

	"github.com/puregpu/puregpu/runtime/driver"
)

func TestSlabSizes(t *testing.T) {
	const m = 1 << 20
	for _, test := range []struct {
		unit, size, want uint64
	}{
		{0, 1, 2 * m},
		{0, m, 2 * m},
		{0, m + 1, 20 * m},
		{0, 10 * m, 20 * m},
		{0, 10*m + 1, 12 * m},
		{0, 40 * m, 40 * m},
		{4096, 1, 4096},
		{4096, 5000, 8192},
		{3 * m, 7 * m, 9 * m},
	} {
		p, src := newTest(t, Config{SlabSize: test.unit})
		mustAlloc(t, p, test.size, 0, nil)
		if src.held != test.want {
			t.Errorf("a block of %d made a slab of %d, not %d", test.size, src.held, test.want)
		}
	}
	p, _ := newTest(t, Config{})
	if n := p.slabFor(math.MaxUint64 &^ 255); n != math.MaxUint64&^255 {
		t.Errorf("%#x", n)
	}
}

func TestInitial(t *testing.T) {
	p, src := newTest(t, Config{Initial: 1000})
	if s := p.Stats(); s.Reserved != 1024 || s.Largest != 1024 || s.Grown != 1 {
		t.Errorf("%+v", s)
	}
	mustAlloc(t, p, 1024, 0, nil)
	if src.grows != 1 {
		t.Errorf("grown %d times", src.grows)
	}
	src = newSource()
	src.failGrow = func(uint64) error { return errInjected }
	if _, err := New(src, Config{Initial: 1}); !errors.Is(err, errInjected) {
		t.Error(err)
	}
	if _, err := New(newSource(), Config{Initial: math.MaxUint64}); !errors.Is(err, ErrSize) {
		t.Error(err)
	}
	if _, err := New(newSource(), Config{Initial: 1 << 20, MaxSize: 1 << 19}); !errors.Is(err, errLimit) || !errors.Is(err, driver.ErrOutOfMemory) {
		t.Error(err)
	}
}

// TestGrowLess uses a source without memory for the usual slab. The pool must then ask for just
// enough.
func TestGrowLess(t *testing.T) {
	p, src := newTest(t, Config{})
	src.capacity = 1 << 20
	mustAlloc(t, p, 1000, 0, nil)
	if src.grows != 2 || src.held != 1024 {
		t.Errorf("%d bytes in %d calls", src.held, src.grows)
	}
	p, src = newTest(t, Config{MaxSize: 1 << 20})
	mustAlloc(t, p, 1000, 0, nil)
	if src.grows != 1 || src.held != 1<<20 {
		t.Errorf("%d bytes in %d calls", src.held, src.grows)
	}
}

// TestMakeRoom needs a slab that fits only if empty slabs are released first.
func TestMakeRoom(t *testing.T) {
	const k = 1024
	setUp := func(t *testing.T, c Config, capacity uint64) (*Pool, *fakeSource, []Block) {
		c.SlabSize = k
		p, src := newTest(t, c)
		src.capacity = capacity
		var blocks []Block
		for range 4 {
			blocks = append(blocks, mustAlloc(t, p, k, 0, nil))
		}
		return p, src, blocks
	}
	t.Run("limit", func(t *testing.T) {
		p, src, blocks := setUp(t, Config{MaxSize: 4 * k}, 0)
		for _, b := range blocks {
			mustFree(t, p, b, Mark{1, 1})
		}
		mustAlloc(t, p, 2*k, 0, allDone{})
		if src.held != 4*k || src.releases != 2 {
			t.Errorf("%d bytes held after %d releases", src.held, src.releases)
		}
	})
	t.Run("source", func(t *testing.T) {
		p, src, blocks := setUp(t, Config{}, 4*k)
		for _, b := range blocks[1:] {
			mustFree(t, p, b, Mark{1, 1})
		}
		mustAlloc(t, p, 3*k, 0, allDone{})
		if src.held != 4*k || src.releases != 3 {
			t.Errorf("%d bytes held after %d releases", src.held, src.releases)
		}
	})
	t.Run("not done", func(t *testing.T) {
		p, src, blocks := setUp(t, Config{}, 4*k)
		for _, b := range blocks {
			mustFree(t, p, b, Mark{1, 1})
		}
		_, err := p.Alloc(2*k, 0, never{})
		var e *AllocError
		if !errors.As(err, &e) || !reflect.DeepEqual(e, &AllocError{Size: 2 * k, Reserved: 4 * k, Largest: k, Err: e.Err}) || !errors.Is(err, driver.ErrOutOfMemory) {
			t.Errorf("%+v", err)
		}
		if src.releases != 0 {
			t.Errorf("%d releases", src.releases)
		}
	})
	t.Run("not enough", func(t *testing.T) {
		p, src, blocks := setUp(t, Config{MaxSize: 4 * k}, 0)
		for _, b := range blocks[2:] {
			mustFree(t, p, b, Mark{})
		}
		if _, err := p.Alloc(3*k, 0, allDone{}); !errors.Is(err, driver.ErrOutOfMemory) {
			t.Error(err)
		}
		if _, err := p.Alloc(5*k, 0, allDone{}); !errors.Is(err, driver.ErrOutOfMemory) {
			t.Error(err)
		}
		if src.held != 2*k {
			t.Errorf("%d bytes held", src.held)
		}
		if s := p.Stats(); s.Failures != 2 || s.Misses != 6 {
			t.Errorf("%+v", s)
		}
	})
	t.Run("more than the limit", func(t *testing.T) {
		p, src, blocks := setUp(t, Config{MaxSize: 4 * k}, 0)
		mustFree(t, p, blocks[0], Mark{})
		if _, err := p.Alloc(4*k+1, 0, allDone{}); !errors.Is(err, driver.ErrOutOfMemory) {
			t.Error(err)
		}
		if src.releases != 0 {
			t.Errorf("%d releases for nothing", src.releases)
		}
	})
	t.Run("lost", func(t *testing.T) {
		p, src, _ := setUp(t, Config{}, 0)
		src.failGrow = func(uint64) error { return driver.ErrLost }
		_, err := p.Alloc(k, 0, nil)
		if !errors.Is(err, driver.ErrLost) || errors.Is(err, driver.ErrOutOfMemory) {
			t.Error(err)
		}
	})
	t.Run("release fails", func(t *testing.T) {
		p, src, blocks := setUp(t, Config{}, 4*k)
		for _, b := range blocks {
			mustFree(t, p, b, Mark{})
		}
		src.failBack = func(uint64) error { return errInjected }
		_, err := p.Alloc(2*k, 0, allDone{})
		if !errors.Is(err, errInjected) || !errors.Is(err, driver.ErrOutOfMemory) {
			t.Error(err)
		}
		if s := p.Stats(); s.Reserved != 0 || src.refused != 4 {
			t.Errorf("%+v", s)
		}
	})
}

// TestGrowForever uses a source that makes slabs without room for a block, and does not take every
// second one back.
func TestGrowForever(t *testing.T) {
	p, src := newTest(t, Config{MaxSize: 1 << 20})
	// These slabs have no room for a block.
	src.grow = func(size uint64) (uint64, uint64, error) { return uint64(src.grows) << 30, 200, nil }
	src.failBack = func(uint64) error {
		if src.releases%2 == 1 {
			return errInjected
		}
		return nil
	}
	if _, err := p.Alloc(1<<20, 0, allDone{}); err == nil || src.grows > 6 {
		t.Errorf("%v after %d calls", err, src.grows)
	}
}

// TestBadSlabs checks which slabs of a source the pool uses, and which it gives back.
func TestBadSlabs(t *testing.T) {
	const k = 1024
	for _, test := range []struct {
		name      string
		base, got uint64
		ok, back  bool
	}{
		{"good", 1 << 20, k, true, false},
		{"more", 1 << 20, 2 * k, true, false},
		{"more than the limit", 1 << 20, 64 * k, false, true},
		{"less", 1 << 20, k / 2, false, true},
		{"nothing", 1 << 20, 0, false, false},
		{"misaligned", 1<<20 + 1, k, false, true},
		{"misaligned but large", 1<<20 + 1, k + 256, true, false},
		{"past the end", math.MaxUint64, k, false, false},
		{"the same", 1 << 30, k, false, false},
		{"overlapping", 1<<30 - k + 1, k, false, false},
		{"overlapping at the end", 1<<30 + k - 1, k, false, false},
		{"in front", 1<<30 - k, k, true, false},
		{"behind", 1<<30 + k, k, true, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			for _, failBack := range []error{nil, errInjected} {
				p, src := newTest(t, Config{SlabSize: k, MaxSize: 8 * k})
				src.grow = func(uint64) (uint64, uint64, error) { return 1 << 30, k, nil }
				mustAlloc(t, p, k, 0, nil)
				src.grow = func(uint64) (uint64, uint64, error) { return test.base, test.got, nil }
				src.failBack = func(uint64) error { return failBack }
				_, err := p.Alloc(k, 0, nil)
				p.verify(t)
				if (err == nil) != test.ok {
					t.Fatal(err)
				}
				if (src.releases > 0) != test.back {
					t.Errorf("%d releases", src.releases)
				}
				want := uint64(k)
				if test.ok {
					want += test.got
				}
				if s := p.Stats(); s.Reserved != want || test.back && failBack != nil && !errors.Is(err, failBack) {
					t.Errorf("reserved %d, not %d: %v", s.Reserved, want, err)
				}
			}
		})
	}
}

func TestTrim(t *testing.T) {
	const k = 1024
	p, src := newTest(t, Config{SlabSize: k})
	var blocks []Block
	for range 5 {
		blocks = append(blocks, mustAlloc(t, p, k, 0, nil))
	}
	reserved := func(want uint64) {
		t.Helper()
		p.verify(t)
		if s := p.Stats(); s.Reserved != want*k || src.held != want*k || s.Slabs != int(want) {
			t.Fatalf("%+v; the source has %d; want %d", s, src.held, want*k)
		}
	}
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	check(p.Trim(0, allDone{}))
	reserved(5)
	mustFree(t, p, blocks[0], Mark{0, 5})
	check(p.Trim(0, never{}))
	check(p.Trim(0, nil))
	reserved(5)
	check(p.Trim(4*k+1, allDone{}))
	reserved(5)
	check(p.Trim(4*k, allDone{}))
	reserved(4)
	for _, b := range blocks[1:] {
		mustFree(t, p, b, Mark{1, 1})
	}
	check(p.Maintain(2*k, allDone{}))
	reserved(2)
	check(p.Maintain(k+1, allDone{}))
	reserved(2)
	check(p.Maintain(k, allDone{}))
	reserved(1)
	src.failBack = func(uint64) error { return errInjected }
	if err := p.Trim(0, allDone{}); !errors.Is(err, errInjected) || src.refused != 1 {
		t.Error(err, src.refused)
	}
	reserved(0)
	check(p.Trim(0, allDone{}))
	if s := p.Stats(); s.ReservedHigh != 5*k || s.UsedHigh != 5*k || s.Released != 5 {
		t.Errorf("%+v", s)
	}
	p, err := Fixed(0, k, Config{})
	check(err)
	check(p.Trim(0, allDone{}))
	check(p.Maintain(0, allDone{}))
	if s := p.Stats(); s.Reserved != k {
		t.Errorf("%+v", s)
	}
}
