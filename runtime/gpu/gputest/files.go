package gputest

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/puregpu/puregpu/runtime/gpu"
)

// A memory is a file in memory, of a fixed size.
type memory struct {
	mu   sync.Mutex
	data []byte
}

func (m *memory) WriteAt(p []byte, at int64) (int, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	n := copy(m.data[min(at, int64(len(m.data))):], p)
	if n < len(p) {
		return n, io.ErrShortWrite
	}
	return n, nil
}

func (m *memory) ReadAt(p []byte, at int64) (int, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return bytes.NewReader(m.data).ReadAt(p, at)
}

// A reader is a function that implements [io.ReaderAt].
type reader func(p []byte, at int64) (int, error)

func (f reader) ReadAt(p []byte, at int64) (int, error) { return f(p, at) }

// A writer is a function that implements [io.WriterAt].
type writer func(p []byte, at int64) (int, error)

func (f writer) WriteAt(p []byte, at int64) (int, error) { return f(p, at) }

// small are options with which transfers move in pieces of 4,096 bytes.
var small = gpu.Options{StageSize: 4096}

var files = []test{
	{name: "B110 whole files of various numbers of pieces", options: small, run: func(e *env) {
		for _, n := range []int{0, 1, 4095, 4096, 4097, 3 * 4096, 7*4096 + 5} {
			b, s := e.buffer(uint64(n)), e.sem()
			in, out := random(n, 1), &memory{data: make([]byte, n)}
			e.must(e.q(0).Submit(signal(s, 1), gpu.ReadFrom(b.All(), bytes.NewReader(in), 0)))
			e.must(e.q(1).Submit(between(s, 1, s, 2), gpu.WriteTo(out, 0, b.All())))
			e.wait(s, 2)
			e.same("the file", out.data, in)
		}
	}},
	{name: "B110 parts of files, in parts of buffers", options: small, run: func(e *env) {
		const n, size = 2*4096 + 100, 4 * 4096
		in, out := random(size, 2), &memory{data: bytes.Repeat([]byte{0xee}, size)}
		b, s := e.buffer(size), e.sem()
		e.must(e.q(0).Submit(signal(s, 1), gpu.ReadFrom(b.Range(33, n), bytes.NewReader(in), 777)))
		e.must(e.q(0).Submit(between(s, 1, s, 2), gpu.WriteTo(out, 55, b.Range(32, n+2))))
		e.wait(s, 2)
		want := bytes.Repeat([]byte{0xee}, size)
		copy(want[55:], make([]byte, n+2))
		copy(want[56:], in[777:777+n])
		e.same("the file", out.data, want)
		want = make([]byte, size)
		copy(want[33:], in[777:777+n])
		e.same("the buffer", e.read(b), want)
	}},
	{name: "B110 reads and writes wait, and are waited for", options: small, run: func(e *env) {
		const n = 3 * 4096
		f := &memory{data: make([]byte, n)}
		a, b, host, s := e.buffer(n), e.buffer(n), e.sem(), e.sem()
		e.must(e.q(0).Submit(between(host, 1, s, 1), gpu.Fill(a.All(), []byte{7})))
		e.must(e.q(1).Submit(between(s, 1, s, 2), gpu.WriteTo(f, 0, a.All())))
		e.must(e.q(2).Submit(between(s, 2, s, 3), gpu.ReadFrom(b.All(), f, 0)))
		e.must(e.q(3).Submit(between(s, 3, s, 4), gpu.Fill(b.Range(0, 1), []byte{8})))
		if f.data[0] != 0 {
			e.Error("written before it was to be")
		}
		e.must(host.Signal(1))
		e.wait(s, 4)
		e.same("what came round", e.read(b), append([]byte{8}, bytes.Repeat([]byte{7}, n-1)...))
	}},
	{name: "B110 a large file is written and read back unchanged", run: func(e *env) {
		const n = 9<<20 + 12345
		name := filepath.Join(e.TempDir(), "file")
		in := random(n, 3)
		e.must(os.WriteFile(name, in, 0o666))
		f, err := os.OpenFile(name, os.O_RDWR, 0)
		e.must(err)
		defer f.Close()
		a, b, s := e.buffer(n), e.buffer(n), e.sem()
		e.must(e.q(0).Submit(signal(s, 1), gpu.ReadFrom(a.All(), f, 0)))
		e.must(e.q(1).Submit(between(s, 1, s, 2), gpu.Copy(b.All(), a.All())))
		e.must(e.q(2).Submit(between(s, 2, s, 3), gpu.Fill(a.All(), []byte{0})))
		e.must(e.q(3).Submit(between(s, 2, s, 4), gpu.WriteTo(f, n, b.All())))
		e.wait(s, 4)
		out, err := os.ReadFile(name)
		e.must(err)
		e.same("the file", out, append(in, in...))
	}},
	{name: "B110 many at once", options: small, run: func(e *env) {
		const files, n = 16, 5*4096 + 1
		var all []gpu.Point
		var outs []*memory
		for i := range files {
			b, s := e.buffer(n), e.sem()
			outs = append(outs, &memory{data: make([]byte, n)})
			e.must(e.q(i).Submit(signal(s, 1), gpu.ReadFrom(b.All(), bytes.NewReader(random(n, uint64(i))), 0)))
			e.must(e.q(i+1).Submit(between(s, 1, s, 2), gpu.WriteTo(outs[i], 0, b.All())))
			all = append(all, gpu.Point{Semaphore: s, Value: 2})
		}
		e.must(gpu.WaitAll(e.ctx, all...))
		for i := range files {
			e.same("a file", outs[i].data, random(n, uint64(i)))
		}
	}},
	{name: "B110 a failed read or write fails its signals, and nothing else", options: small, run: func(e *env) {
		const n = 8 * 4096
		b := e.buffer(n)
		after := func(pieces int, f func(p []byte, at int64) (int, error)) func(p []byte, at int64) (int, error) {
			var done atomic.Int64 // the calls so far, by several goroutines
			return func(p []byte, at int64) (int, error) {
				if done.Add(1) > int64(pieces) {
					return f(p, at)
				}
				return len(p), nil
			}
		}
		for name, x := range map[string]struct {
			submit func(o gpu.Order) error
			kind   error
		}{
			"a file that is too short": {func(o gpu.Order) error {
				return e.q(0).Submit(o, gpu.ReadFrom(b.All(), bytes.NewReader(make([]byte, n-1)), 0))
			}, io.ErrUnexpectedEOF},
			"a file without the part": {func(o gpu.Order) error {
				return e.q(0).Submit(o, gpu.ReadFrom(b.Range(0, 8), bytes.NewReader(make([]byte, 8)), 1<<40))
			}, io.ErrUnexpectedEOF},
			"a reader that reads less": {func(o gpu.Order) error {
				return e.q(0).Submit(o, gpu.ReadFrom(b.All(), reader(func(p []byte, at int64) (int, error) { return len(p) - 1, nil }), 0))
			}, io.ErrUnexpectedEOF},
			"a reader that fails": {func(o gpu.Order) error {
				return e.q(0).Submit(o, gpu.ReadFrom(b.All(), reader(after(5, func([]byte, int64) (int, error) { return 7, io.ErrClosedPipe })), 0))
			}, io.ErrClosedPipe},
			"a reader that panics": {func(o gpu.Order) error {
				return e.q(0).Submit(o, gpu.ReadFrom(b.All(), reader(after(4, func([]byte, int64) (int, error) { panic("no more") })), 0))
			}, nil},
			"a reader that ends its goroutine": {func(o gpu.Order) error {
				return e.q(0).Submit(o, gpu.ReadFrom(b.All(), reader(after(4, func([]byte, int64) (int, error) { runtime.Goexit(); return 0, nil })), 0))
			}, nil},
			"a writer that is full": {func(o gpu.Order) error {
				return e.q(0).Submit(o, gpu.WriteTo(&memory{data: make([]byte, n-1)}, 0, b.All()))
			}, io.ErrShortWrite},
			"a writer that is small": {func(o gpu.Order) error { return e.q(0).Submit(o, gpu.WriteTo(&memory{}, 0, b.Range(0, 1))) }, io.ErrShortWrite},
			"a writer that fails": {func(o gpu.Order) error {
				return e.q(0).Submit(o, gpu.WriteTo(writer(after(5, func([]byte, int64) (int, error) { return 0, io.ErrClosedPipe })), 0, b.All()))
			}, io.ErrClosedPipe},
			"a writer that panics": {func(o gpu.Order) error {
				return e.q(0).Submit(o, gpu.WriteTo(writer(after(2, func([]byte, int64) (int, error) { panic("no more") })), 0, b.All()))
			}, nil},
		} {
			s, y, x := x.submit, x.kind, e.sems(3)
			e.must(s(gpu.Order{Signal: []gpu.Point{{Semaphore: x[0], Value: 1}, {Semaphore: x[1], Value: 1}}}))
			e.must(e.q(1).Submit(between(x[1], 1, x[2], 1), gpu.Fill(b.All(), []byte{0xbd})))
			for _, s := range x {
				err := s.Wait(e.ctx, 1)
				var se *gpu.SubmitError
				if !errors.As(err, &se) || se.Op != "transfer" || y != nil && !errors.Is(err, y) {
					e.Errorf("%s: %v", name, err)
				}
			}
			good := e.sem()
			e.must(e.q(0).Submit(signal(good, 1), gpu.Fill(b.All(), []byte{1})))
			e.wait(good, 1)
		}
		e.holds(b, 1)
		e.settled(e.devs[0])
	}},
	{name: "B110 B109 a transfer whose wait fails does not begin", options: small, run: func(e *env) {
		const n = 3 * 4096
		b, host, s := e.buffer(n), e.sem(), e.sems(4)
		data := bytes.Repeat([]byte{9}, n)
		e.must(e.q(0).Submit(between(host, 1, s[0], 1), gpu.ReadFrom(b.All(), reader(func([]byte, int64) (int, error) { e.Error("it reads"); return 0, io.EOF }), 0)))
		e.must(e.q(0).Submit(between(host, 1, s[1], 1), gpu.WriteTo(writer(func([]byte, int64) (int, error) { e.Error("it writes"); return 0, io.EOF }), 0, b.All())))
		e.must(e.q(0).Submit(between(host, 1, s[2], 1), gpu.Upload(b.All(), data)))
		e.must(e.q(0).Submit(between(host, 1, s[3], 1), gpu.Download(data, b.All())))
		host.Fail(io.ErrNoProgress)
		for _, s := range s {
			e.failed(s, 1, io.ErrNoProgress)
		}
		e.holds(b, 0)
		e.same("the host's memory", data, bytes.Repeat([]byte{9}, n))
	}},
	{name: "B110 a buffer may be closed while a file is read", options: small, run: func(e *env) {
		const n = 6 * 4096
		d := e.devs[0]
		b, err := d.Alloc(gpu.DeviceMem, n)
		e.must(err)
		begun, s := make(chan struct{}), e.sem()
		first := sync.OnceFunc(func() { close(begun) })
		cont := make(chan struct{})
		e.must(e.q(0).Submit(signal(s, 1), gpu.ReadFrom(b.All(), reader(func(p []byte, at int64) (int, error) {
			first()
			<-cont
			return len(p), nil
		}), 0)))
		<-begun
		e.must(b.Close())
		if d.Stats().Buffers != 1 {
			e.Error("freed while it is used")
		}
		close(cont)
		e.wait(s, 1)
		e.until("it is freed", func() bool { return d.Stats().Buffers == 0 })
	}},
	{name: "B82 invalid reads and writes", run: func(e *env) {
		b, s := e.buffer(64), e.sem()
		r := bytes.NewReader(make([]byte, 64))
		for name, c := range map[string]struct{ err, kind error }{
			"nothing to read from":      {e.q(0).Submit(signal(s, 1), gpu.ReadFrom(b.All(), nil, 0)), gpu.ErrArgument},
			"a negative offset":         {e.q(0).Submit(signal(s, 1), gpu.ReadFrom(b.All(), r, -1)), gpu.ErrArgument},
			"no buffer to read into":    {e.q(0).Submit(signal(s, 1), gpu.ReadFrom(gpu.Range{}, r, 0)), gpu.ErrArgument},
			"reading behind the end":    {e.q(0).Submit(signal(s, 1), gpu.ReadFrom(b.Range(60, 8), r, 0)), gpu.ErrRange},
			"nothing to write to":       {e.q(0).Submit(signal(s, 1), gpu.WriteTo(nil, 0, b.All())), gpu.ErrArgument},
			"a negative offset, again":  {e.q(0).Submit(signal(s, 1), gpu.WriteTo(&memory{}, -1, b.All())), gpu.ErrArgument},
			"no buffer to write":        {e.q(0).Submit(signal(s, 1), gpu.WriteTo(&memory{}, 0, gpu.Range{})), gpu.ErrArgument},
			"writing from behind it":    {e.q(0).Submit(signal(s, 1), gpu.WriteTo(&memory{}, 0, b.Range(65, 0))), gpu.ErrRange},
			"a wait for no semaphore":   {e.q(0).Submit(gpu.Order{Wait: []gpu.Point{{}}}, gpu.ReadFrom(b.All(), r, 0)), gpu.ErrArgument},
			"a signal of no semaphore":  {e.q(0).Submit(gpu.Order{Signal: []gpu.Point{{}}}, gpu.WriteTo(&memory{}, 0, b.All())), gpu.ErrArgument},
			"an upload of another size": {e.q(0).Submit(signal(s, 1), gpu.Upload(b.All(), make([]byte, 65))), gpu.ErrArgument},
		} {
			if !errors.Is(c.err, c.kind) {
				e.Errorf("%s: %v; want %v", name, c.err, c.kind)
			}
		}
		e.at(s, 0)
	}},
}
