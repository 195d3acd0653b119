package blockpool

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/puregpu/puregpu/runtime/driver"
)

func newTest(t *testing.T, c Config) (*Pool, *fakeSource) {
	t.Helper()
	src := newSource()
	p, err := New(src, c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.verify(t) })
	return p, src
}

func mustAlloc(t *testing.T, p *Pool, size uint64, timeline int, o Order) Block {
	t.Helper()
	b, err := p.Alloc(size, timeline, o)
	if err != nil {
		t.Fatal(err)
	}
	p.verify(t)
	return b
}

func mustFree(t *testing.T, p *Pool, b Block, after Mark) {
	t.Helper()
	if err := p.Free(b.Addr, after); err != nil {
		t.Fatal(err)
	}
	p.verify(t)
}

// fill allocates all memory of a pool in blocks of one size.
func fill(t *testing.T, p *Pool, size uint64) (blocks []Block) {
	t.Helper()
	for {
		b, err := p.Alloc(size, 0, nil)
		if err != nil {
			return blocks
		}
		blocks = append(blocks, b)
	}
}

// TestReuse frees the four quarters of a full pool with different marks, and then allocates.
func TestReuse(t *testing.T) {
	const k = 1024
	tests := []struct {
		name  string
		marks [4]Mark // with a negative timeline, the block stays allocated
		rule  WaitRule
		done  map[int]uint64
		cover map[[2]int]uint64
		size  uint64
		on    int
		at    int // the quarter that the allocation must get, or -1 for none
		wait  Mark
	}{
		{name: "same timeline", marks: [4]Mark{{1, 5}, {0, 9}, {2, 1}, {3, 1}}, size: k, at: 1},
		{name: "without a mark", marks: [4]Mark{{1, 5}, {2, 9}, {2, 1}, {}}, size: k, at: 3},
		{name: "unmarked in another timeline's number", marks: [4]Mark{{1, 5}, {2, 9}, {2, 0}, {3, 1}}, size: k, at: 2},
		{name: "covered", marks: [4]Mark{{1, 5}, {2, 9}, {2, 1}, {3, 1}}, cover: map[[2]int]uint64{{0, 2}: 4}, size: k, at: 2},
		{name: "covered for another", marks: [4]Mark{{1, 5}, {2, 9}, {2, 1}, {3, 1}}, cover: map[[2]int]uint64{{1, 2}: 4}, size: k, at: 0, wait: Mark{1, 5}},
		{name: "done", marks: [4]Mark{{1, 5}, {2, 9}, {2, 1}, {3, 1}}, done: map[int]uint64{3: 1}, size: k, at: 3},
		{name: "own before done", marks: [4]Mark{{1, 5}, {2, 9}, {3, 1}, {0, 7}}, done: map[int]uint64{1: 5}, size: k, at: 3},
		{name: "one wait", marks: [4]Mark{{-1, 0}, {2, 9}, {-1, 0}, {-1, 0}}, size: k, at: 1, wait: Mark{2, 9}},
		{name: "the last done in time", marks: [4]Mark{{-1, 0}, {2, 9}, {2, 3}, {2, 5}}, done: map[int]uint64{2: 4}, size: k, at: 2},
		{name: "the older of equal ones", marks: [4]Mark{{-1, 0}, {2, 9}, {-1, 0}, {2, 4}}, size: k, at: 3, wait: Mark{2, 4}},
		{name: "wait last", marks: [4]Mark{{-1, 0}, {2, 9}, {-1, 0}, {-1, 0}}, rule: GrowThenWait, size: k, at: 1, wait: Mark{2, 9}},
		{name: "never wait", marks: [4]Mark{{-1, 0}, {2, 9}, {-1, 0}, {-1, 0}}, rule: NeverWait, size: k, at: -1},
		{name: "never wait, done", marks: [4]Mark{{-1, 0}, {2, 9}, {-1, 0}, {-1, 0}}, rule: NeverWait, done: map[int]uint64{2: 9}, size: k, at: 1},
		{name: "nothing free", marks: [4]Mark{{-1, 0}, {-1, 0}, {-1, 0}, {-1, 0}}, size: 1, at: -1},
		{name: "own neighbours", marks: [4]Mark{{1, 5}, {0, 9}, {0, 1}, {3, 1}}, size: 2 * k, at: 1},
		{name: "equal marks", marks: [4]Mark{{1, 5}, {3, 7}, {3, 7}, {3, 1}}, size: 2 * k, at: 1, wait: Mark{3, 7}},
		{name: "neighbours that are done", marks: [4]Mark{{-1, 0}, {1, 9}, {2, 7}, {3, 1}}, done: map[int]uint64{1: 9, 2: 7}, size: 2 * k, at: 1},
		{name: "neighbours done and covered", marks: [4]Mark{{1, 5}, {2, 9}, {3, 7}, {-1, 0}}, done: map[int]uint64{2: 9}, cover: map[[2]int]uint64{{0, 3}: 7}, size: 2 * k, at: 1},
		{name: "neighbours of one timeline", marks: [4]Mark{{1, 5}, {-1, 0}, {3, 8}, {3, 7}}, size: 2 * k, at: 2, wait: Mark{3, 8}},
		{name: "neighbours, one of them done", marks: [4]Mark{{1, 5}, {2, 9}, {-1, 0}, {3, 7}}, done: map[int]uint64{1: 5}, size: 2 * k, at: 0, wait: Mark{2, 9}},
		{name: "neighbours of two timelines", marks: [4]Mark{{1, 5}, {2, 9}, {1, 4}, {3, 7}}, size: 2 * k, at: -1},
		{name: "a row behind another", marks: [4]Mark{{1, 5}, {2, 9}, {0, 4}, {2, 7}}, size: 3 * k, at: 1, wait: Mark{2, 9}},
		{name: "all", marks: [4]Mark{{0, 5}, {}, {2, 9}, {0, 4}}, size: 4 * k, at: 0, wait: Mark{2, 9}},
		{name: "a part of a row", marks: [4]Mark{{0, 5}, {2, 9}, {0, 4}, {2, 7}}, size: k + 1, at: 0, wait: Mark{2, 9}},
		{name: "more than there is", marks: [4]Mark{}, size: 4*k + 1, at: -1},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			p, err := Fixed(1<<20, 4*k, Config{Waits: test.rule})
			if err != nil {
				t.Fatal(err)
			}
			var o fakeOrder
			for tl, seq := range test.done {
				o.done[tl] = seq
			}
			for tls, seq := range test.cover {
				o.cover[tls[0]][tls[1]] = seq
			}
			for i, b := range fill(t, p, k) {
				if m := test.marks[i]; m.Timeline >= 0 {
					mustFree(t, p, b, m)
				}
			}
			before := p.Stats()
			b, err := p.Alloc(test.size, test.on, &o)
			p.verify(t)
			if test.at < 0 {
				if !errors.Is(err, driver.ErrOutOfMemory) {
					t.Fatalf("got %+v, %v", b, err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if b.Addr != 1<<20+uint64(test.at)*k || b.Wait != test.wait {
				t.Errorf("got %+v", b)
			}
			if err := p.Cancel(b.Addr); err != nil {
				t.Fatal(err)
			}
			p.verify(t)
			if now := p.Stats(); now.Largest < before.Largest || now.Used != before.Used {
				t.Errorf("cancel left %+v of %+v", now, before)
			}
			if c, err := p.Alloc(test.size, test.on, &o); c != b || err != nil {
				t.Errorf("after a cancel: %+v, %v", c, err)
			}
		})
	}
}

func TestBestFit(t *testing.T) {
	p, _ := newTest(t, Config{Initial: 1 << 20})
	var blocks []Block
	for _, size := range []uint64{4096, 1024, 2048, 1280, 8192} {
		blocks = append(blocks, mustAlloc(t, p, size, 0, nil), mustAlloc(t, p, 256, 0, nil))
	}
	rest := mustAlloc(t, p, p.Stats().Largest, 0, nil)
	for i := 0; i < len(blocks); i += 2 {
		m := Mark{0, uint64(i + 1)}
		if i == 4 {
			m = Mark{} // the block of 2048 bytes
		}
		mustFree(t, p, blocks[i], m)
	}
	for _, test := range []struct {
		size uint64
		want int
	}{{1100, 6}, {1, 2}, {1500, 4}, {5000, 8}, {4000, 0}} {
		if b := mustAlloc(t, p, test.size, 0, nil); b.Addr != blocks[test.want].Addr {
			t.Errorf("%d bytes came from %#x, not %#x", test.size, b.Addr, blocks[test.want].Addr)
		}
	}
	mustFree(t, p, rest, Mark{})
}

// TestBestFitOfAll puts suitable blocks on several timelines.
func TestBestFitOfAll(t *testing.T) {
	for _, covered := range []bool{true, false} {
		p, _ := newTest(t, Config{Initial: 1 << 20, MaxSize: 1 << 20})
		var blocks []Block
		for i := range 5 {
			blocks = append(blocks, mustAlloc(t, p, 256*[]uint64{50, 17, 18, 16, 40}[i], 0, nil), mustAlloc(t, p, 256, 0, nil))
		}
		mustAlloc(t, p, p.Stats().Largest, 0, nil)
		o := &fakeOrder{}
		for i := range 5 {
			tl := 1 + i%3
			mustFree(t, p, blocks[2*i], Mark{tl, uint64(i + 1)})
			if covered {
				o.cover[0][tl] = uint64(i + 1)
			}
		}
		for _, want := range []int{1, 2, 4, 0} { // 19 units: the block of 18 is too small, and is in the class of 19
			size := []uint64{50, 17, 18, 16, 40}[want]
			if want == 4 {
				size = 19
			}
			b := mustAlloc(t, p, 256*size, 0, o)
			if b.Addr != blocks[2*want].Addr || (b.Wait == Mark{}) != covered {
				t.Errorf("block %d: got %+v", want, b)
			}
		}
	}
}

// TestNextClass looks for a block in a size class that has only smaller blocks.
func TestNextClass(t *testing.T) {
	p, src := newTest(t, Config{Initial: 1 << 20})
	a := mustAlloc(t, p, 256*18, 0, nil)
	mustAlloc(t, p, 256, 0, nil)
	b := mustAlloc(t, p, 256*200, 0, nil)
	mustAlloc(t, p, p.Stats().Largest, 0, nil)
	mustFree(t, p, a, Mark{})
	mustFree(t, p, b, Mark{})
	if c := mustAlloc(t, p, 256*19, 0, nil); c.Addr != b.Addr || src.grows != 1 {
		t.Errorf("got %+v, grown %d times", c, src.grows)
	}
	for size := uint64(1); size < 1<<63; size += 1 + size/5 {
		var s set
		if s.class(size) > s.class(size+1) || s.class(math.MaxUint64) >= classes {
			t.Errorf("class of %d is %d, of the next %d", size, s.class(size), s.class(size+1))
		}
	}
}

func TestMerge(t *testing.T) {
	for _, order := range [][3]int{{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}} {
		p, err := Fixed(0, 3*256, Config{})
		if err != nil {
			t.Fatal(err)
		}
		blocks := fill(t, p, 256)
		for _, i := range order {
			mustFree(t, p, blocks[i], Mark{3, 7})
		}
		if s := p.Stats(); s.Free != 1 || s.Largest != 3*256 || s.Merges != 2 || s.Splits != 2 {
			t.Errorf("%v: %+v", order, s)
		}
	}
}

// TestPipeline allocates on one timeline and frees on another one, whose work always lags. A free
// block must not get a newer mark than the one with which it was freed. Otherwise the first
// timeline would always have to wait.
func TestPipeline(t *testing.T) {
	p, src := newTest(t, Config{SlabSize: 64 * 256})
	var o fakeOrder
	var behind []Block
	for seq := uint64(1); seq < 1000; seq++ {
		b := mustAlloc(t, p, 256, 0, &o)
		if b.Wait != (Mark{}) {
			t.Fatalf("wait for %v", b.Wait)
		}
		behind = append(behind, b)
		if len(behind) > 16 {
			mustFree(t, p, behind[0], Mark{1, seq})
			behind = behind[1:]
		}
		if seq > 32 {
			o.cover[0][1] = seq - 32
		}
	}
	if src.grows != 1 {
		t.Errorf("grown %d times", src.grows)
	}
}

func TestErrors(t *testing.T) {
	p, _ := newTest(t, Config{Initial: 4096, MaxSize: 8192})
	a := mustAlloc(t, p, 300, 0, nil)
	b := mustAlloc(t, p, 300, 0, nil)
	mustFree(t, p, b, Mark{0, 1})
	tests := []struct {
		name string
		call func() error
		want error
	}{
		{"zero size", func() error { _, err := p.Alloc(0, 0, nil); return err }, ErrSize},
		{"overflow", func() error { _, err := p.Alloc(math.MaxUint64-254, 0, nil); return err }, ErrSize},
		{"huge", func() error { _, err := p.Alloc(math.MaxUint64-256, 0, nil); return err }, driver.ErrOutOfMemory},
		{"over the limit", func() error { _, err := p.Alloc(8193, 0, nil); return err }, driver.ErrOutOfMemory},
		{"negative timeline", func() error { _, err := p.Alloc(1, -1, nil); return err }, ErrTimeline},
		{"large timeline", func() error { _, err := p.Alloc(1, MaxTimelines, nil); return err }, ErrTimeline},
		{"free behind a negative timeline", func() error { return p.Free(a.Addr, Mark{-1, 1}) }, ErrTimeline},
		{"free behind a large timeline", func() error { return p.Free(a.Addr, Mark{MaxTimelines, 1}) }, ErrTimeline},
		{"double free", func() error { return p.Free(b.Addr, Mark{}) }, ErrDoubleFree},
		{"inside", func() error { return p.Free(a.Addr+256, Mark{}) }, ErrInside},
		{"one byte inside", func() error { return p.Free(a.Addr+1, Mark{}) }, ErrInside},
		{"before", func() error { return p.Free(a.Addr-1, Mark{}) }, ErrUnknown},
		{"behind", func() error { return p.Free(a.Addr+4096, Mark{}) }, ErrUnknown},
		{"nowhere", func() error { return p.Free(0, Mark{}) }, ErrUnknown},
		{"cancel of what is free", func() error { return p.Cancel(b.Addr) }, ErrDoubleFree},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			was := p.Stats()
			if err := test.call(); !errors.Is(err, test.want) || !strings.HasPrefix(err.Error(), "blockpool: ") {
				t.Errorf("got %v", err)
			}
			p.verify(t)
			if now := p.Stats(); now.Used != was.Used || now.Live != was.Live || now.Reserved > was.Reserved {
				t.Errorf("%+v became %+v", was, now)
			}
		})
	}
	mustFree(t, p, a, Mark{MaxTimelines - 1, 1})
	if err := p.Free(a.Addr, Mark{}); !errors.Is(err, ErrDoubleFree) {
		t.Error(err)
	}
}

func TestAllocErrorText(t *testing.T) {
	e := &AllocError{Size: 100, Used: 10, Reserved: 20, Largest: 5, Limit: 30, Err: errLimit}
	want := "blockpool: no block of 100 bytes: 10 used of 20 reserved, the largest free block has 5, the limit is 30: the pool has reached its limit"
	if got := e.Error(); got != want {
		t.Error(got)
	}
	e.Limit, e.Err = 0, nil
	want = "blockpool: no block of 100 bytes: 10 used of 20 reserved, the largest free block has 5, no limit"
	if got := e.Error(); got != want {
		t.Error(got)
	}
	for _, test := range []struct {
		err  error
		want bool
	}{{nil, true}, {errLimit, true}, {driver.ErrOutOfMemory, true}, {driver.ErrLost, false}} {
		e.Err = test.err
		if got := errors.Is(e, driver.ErrOutOfMemory); got != test.want {
			t.Errorf("%v is out of memory: %t", test.err, got)
		}
	}
}

func TestConfig(t *testing.T) {
	for _, test := range []struct {
		name       string
		base, size uint64
		c          Config
		ok         bool
	}{
		{"plain", 1 << 20, 1024, Config{}, true},
		{"at zero", 0, 1024, Config{}, true},
		{"bytes", 3, 5, Config{Align: 1}, true},
		{"odd alignment", 1 << 20, 1024, Config{Align: 3}, false},
		{"nothing", 1 << 20, 0, Config{}, false},
		{"past the end", math.MaxUint64 - 1, 1024, Config{}, false},
		{"no aligned block", 1, 510, Config{}, false},
		{"one aligned block", 1, 511, Config{}, true},
		{"the last", math.MaxUint64 - 300, 300, Config{Align: 16}, true},
		{"none before the end", math.MaxUint64 - 100, 100, Config{}, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			p, err := Fixed(test.base, test.size, test.c)
			if (err == nil) != test.ok {
				t.Fatal(err)
			}
			if err != nil {
				return
			}
			p.verify(t)
			b := mustAlloc(t, p, p.Stats().Largest, 0, nil)
			if b.Addr%p.align != 0 || b.Addr < test.base || b.Addr+b.Size > test.base+test.size {
				t.Errorf("got %+v", b)
			}
		})
	}
}

// TestAllocs checks that calls allocate nothing unless they grow the pool.
func TestAllocs(t *testing.T) {
	p, _ := newTest(t, Config{Initial: 1 << 20, MaxSize: 1 << 20})
	o := &fakeOrder{}
	seq := uint64(0)
	for _, test := range []struct {
		name string
		f    func()
	}{
		{"same timeline", func() {
			b, _ := p.Alloc(4096, 0, o)
			seq++
			p.Free(b.Addr, Mark{0, seq})
		}},
		{"covered", func() {
			b, _ := p.Alloc(1<<20, 0, o)
			seq++
			p.Free(b.Addr, Mark{1, seq})
			o.cover[0][1] = seq
		}},
		{"wait", func() {
			b, err := p.Alloc(1<<20, 2, o)
			if err != nil || b.Wait.Seq != seq {
				t.Errorf("%+v, %v", b, err)
			}
			seq++
			p.Free(b.Addr, Mark{1, seq})
		}},
		{"joined", func() {
			var b [4]Block
			for i := range b {
				b[i], _ = p.Alloc(1<<18, 0, allDone{})
			}
			for i := range b {
				seq++
				p.Free(b[i].Addr, Mark{0, seq})
			}
			c, err := p.Alloc(1<<20, 0, o)
			if err != nil {
				t.Error(err)
			}
			p.Cancel(c.Addr)
			c, _ = p.Alloc(1<<20, 0, o)
			p.Free(c.Addr, Mark{0, seq})
		}},
		{"settled", func() {
			b, _ := p.Alloc(1<<19, 0, allDone{})
			c, _ := p.Alloc(1<<19, 0, allDone{})
			seq++
			p.Free(b.Addr, Mark{0, seq})
			p.Free(c.Addr, Mark{1, seq})
			b, err := p.Alloc(1<<20, 2, allDone{})
			if err != nil {
				t.Error(err)
			}
			p.Free(b.Addr, Mark{})
		}},
		{"statistics", func() { p.Stats() }},
	} {
		if n := testing.AllocsPerRun(200, test.f); n != 0 {
			t.Errorf("%s: %v allocations", test.name, n)
		}
	}
	if s := p.Stats(); s.Live != 0 || s.Misses != 0 {
		t.Errorf("%+v", s)
	}
}

// TestAsks checks that a block of the same timeline is found without a call of the Order.
func TestAsks(t *testing.T) {
	p, _ := newTest(t, Config{})
	o := &fakeOrder{}
	mustFree(t, p, mustAlloc(t, p, 1000, 0, o), Mark{0, 1})
	o.asked = 0
	mustAlloc(t, p, 1000, 0, o)
	if o.asked != 0 {
		t.Errorf("the Order was called %d times", o.asked)
	}
}
