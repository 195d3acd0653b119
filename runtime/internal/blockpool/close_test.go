package blockpool

import (
	"errors"
	"testing"
)

func TestClose(t *testing.T) {
	const k = 1024
	p, src := newTest(t, Config{SlabSize: k})
	a, b, c := mustAlloc(t, p, k, 0, nil), mustAlloc(t, p, k, 0, nil), mustAlloc(t, p, k, 0, nil)
	mustFree(t, p, a, Mark{0, 1})
	o := &fakeOrder{}
	if live, err := p.Close(o); live != 2 || err != nil {
		t.Fatal(live, err)
	}
	if src.held != 3*k {
		t.Errorf("released %d bytes whose work was not done", 3*k-src.held)
	}
	o.done[0] = 1
	if live, err := p.Close(o); live != 2 || err != nil || src.held != 2*k {
		t.Fatal(live, err, src.held)
	}
	if _, err := p.Alloc(k, 0, o); !errors.Is(err, ErrClosed) {
		t.Error(err)
	}
	mustFree(t, p, b, Mark{0, 2})
	mustFree(t, p, c, Mark{})
	if err := p.Maintain(noLimit, o); err != nil || src.held != k {
		t.Error(err, src.held)
	}
	o.done[0] = 2
	src.failBack = func(uint64) error { return errInjected }
	if err := p.Maintain(noLimit, o); !errors.Is(err, errInjected) || src.refused != 1 || p.Stats().Reserved != 0 {
		t.Error(err, src.refused)
	}
	if err := p.Maintain(noLimit, o); err != nil || src.refused != 1 {
		t.Error(err, src.refused)
	}
	if live, err := p.Close(o); live != 0 || err != nil {
		t.Error(live, err)
	}
}

func TestDestroy(t *testing.T) {
	const k = 1024
	p, src := newTest(t, Config{SlabSize: k})
	a, b := mustAlloc(t, p, k, 0, nil), mustAlloc(t, p, k, 0, nil)
	mustFree(t, p, b, Mark{0, 1})
	src.failBack = func(base uint64) error {
		if base == a.Addr {
			return errInjected
		}
		return nil
	}
	if live, err := p.Destroy(); live != 1 || !errors.Is(err, errInjected) {
		t.Error(live, err)
	}
	if s := p.Stats(); src.held != 0 || src.refused != 1 || s.Reserved != 0 || s.Used != 0 || s.Live != 0 {
		t.Errorf("%+v; the source has %d", s, src.held)
	}
	if err := p.Free(a.Addr, Mark{}); !errors.Is(err, ErrClosed) {
		t.Error(err)
	}
	if _, err := p.Alloc(1, 0, nil); !errors.Is(err, ErrClosed) {
		t.Error(err)
	}
	if err := p.Maintain(noLimit, nil); err != nil {
		t.Error(err)
	}
	if live, err := p.Destroy(); live != 0 || err != nil {
		t.Error(live, err)
	}
	// No error: a goroutine may call Trim just when the pool is destroyed.
	if err := p.Trim(0, allDone{}); err != nil {
		t.Error(err)
	}
}

// TestTrimUnused checks that Trim works on a pool that has never allocated.
func TestTrimUnused(t *testing.T) {
	p, _ := newTest(t, Config{})
	if err := p.Trim(0, allDone{}); err != nil {
		t.Error(err)
	}
}

func TestCloseFixed(t *testing.T) {
	p, err := Fixed(0, 1024, Config{})
	if err != nil {
		t.Fatal(err)
	}
	b := mustAlloc(t, p, 1, 0, nil)
	if live, err := p.Close(nil); live != 1 || err != nil || p.Stats().Reserved != 1024 {
		t.Error(live, err)
	}
	mustFree(t, p, b, Mark{})
	if err := p.Maintain(noLimit, nil); err != nil || p.Stats().Reserved != 0 {
		t.Error(err, p.Stats())
	}
}

// TestCloseWhileGrowing closes a pool while the source makes a slab for the pool. Alloc must return
// ErrClosed, and the source must get the slab back.
func TestCloseWhileGrowing(t *testing.T) {
	p, src := newTest(t, Config{})
	closed := make(chan error)
	src.failGrow = func(uint64) error {
		p.mu.Lock()
		p.closed = true // as Close does before it waits for the source
		p.mu.Unlock()
		go func() {
			_, err := p.Close(nil)
			closed <- err
		}()
		return nil
	}
	if _, err := p.Alloc(1, 0, nil); !errors.Is(err, ErrClosed) {
		t.Error(err)
	}
	if err := <-closed; err != nil || src.held != 0 {
		t.Error(err, src.held)
	}
}
