package gputest

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/gob"
	"errors"
	"fmt"
	"io"
	"os"
	"testing"
	"time"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/gpu"
	"github.com/puregpu/puregpu/runtime/interop"
)

// A Far is a connection to another process, the far process, which runs [RunFar]. The process of
// the test is the near process.
type Far struct {
	To   io.WriteCloser // the far process's input; closing To ends the process
	From io.Reader      // the far process's output
	Kill func()         // ends the process at once
}

// A farQuestion is a request to the far process, and a farAnswer is its answer.
type (
	farQuestion struct {
		Do     string
		Memory interop.MemoryHandle
		Event  *interop.EventHandle // nil if devices cannot share events
	}
	farAnswer struct {
		Err    string // "" if there is no error
		Memory interop.MemoryHandle
		Event  *interop.EventHandle
		Data   []byte
	}
)

// RunFar does the work of the far process in the suite's tests. It opens device 0 of a driver, and
// executes and answers requests until its input ends. Waits of the far process fail one minute
// after its start.
func RunFar(d driver.Driver, from io.Reader, to io.Writer) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	dev, err := gpu.Open(d, 0, gpu.Options{Queues: 2})
	if err != nil {
		return err
	}
	f := &far{dev: dev, ctx: ctx}
	in, out := gob.NewDecoder(from), gob.NewEncoder(to)
	for {
		var q farQuestion
		err := in.Decode(&q)
		if errors.Is(err, io.EOF) {
			err = nil
		} else if err == nil {
			a, failed := f.answer(&q)
			if failed != nil {
				a.Err = failed.Error()
			}
			if err = out.Encode(a); err == nil {
				continue
			}
		}
		return errors.Join(err, dev.Close())
	}
}

// The type far is the state of the far process.
type far struct {
	dev       *gpu.Device
	ctx       context.Context
	own, near *gpu.Buffer // memory of the far process, and imported memory of the near process
	// The field ready has an event of the far process, and the field there an event of the near
	// process. Both are nil if the devices cannot share events.
	ready, there *interop.Event
	left         chan struct{} // gets one value after near is freed, and one after the imported event is
	s            gpu.Semaphore
	n            uint64 // the value of s that the last operation signals
}

func (f *far) answer(q *farQuestion) (a farAnswer, err error) {
	switch q.Do {
	case "meet":
		f.left = make(chan struct{}, 2)
		freed := func() { f.left <- struct{}{} }
		if f.near, err = interop.ImportMemory(f.dev, q.Memory, freed); err != nil {
			return a, err
		}
		if f.own, err = f.dev.Alloc(gpu.DeviceMem, q.Memory.Size); err != nil {
			return a, err
		}
		if a.Memory, err = interop.ExportMemory(f.own); err != nil || q.Event == nil {
			return a, err
		}
		if f.there, err = interop.ImportEvent(f.dev, *q.Event, freed); err != nil {
			return a, err
		}
		if f.ready, err = interop.NewSharedEvent(f.dev); err != nil {
			return a, err
		}
		h, err := f.ready.Export()
		a.Event = &h
		return a, err
	case "turn": // copy the near process's data
		q := f.dev.Queue(0)
		if f.there != nil {
			err = q.Submit(f.next(), interop.WaitEvent(f.there))
		}
		err = errors.Join(err, q.Submit(f.next(), gpu.Copy(f.own.All(), f.near.All())))
		if f.ready == nil {
			return a, errors.Join(err, f.s.Wait(f.ctx, f.n))
		}
		return a, errors.Join(err, q.Submit(f.next(), interop.RecordEvent(f.ready)), f.s.WaitIssued(f.ctx, f.n))
	case "read": // return the contents of memory that the near process has exported
		freed := make(chan struct{})
		b, err := interop.ImportMemory(f.dev, q.Memory, func() { close(freed) })
		if err != nil {
			return a, err
		}
		a.Data = make([]byte, b.Size())
		err = errors.Join(f.dev.Queue(1).Submit(f.next(), gpu.Download(a.Data, b.All())), f.s.Wait(f.ctx, f.n), b.Close())
		return a, errors.Join(err, isFreed(f.ctx, freed))
	case "values": // replace each odd number in the near process's memory by the next number
		for i := range uint64(valueTurns) {
			err = errors.Join(err, f.dev.Queue(0).Submit(f.next(), interop.WaitValue(f.near.Range(0, 8), 2*i+1)), f.dev.Queue(0).Submit(f.next(), interop.WriteValue(f.near.Range(0, 8), 2*i+2)))
		}
		return a, errors.Join(err, f.s.WaitIssued(f.ctx, f.n))
	case "busy": // record an event after slow device work
		const size = 1 << 30
		b, err := f.dev.Alloc(gpu.DeviceMem, size)
		for i := 0; err == nil && i < 1000; i++ {
			err = f.dev.Queue(0).Submit(f.next(), gpu.Fill(b.All(), []byte{byte(i)}))
		}
		return a, errors.Join(err, f.dev.Queue(0).Submit(f.next(), interop.RecordEvent(f.ready)), f.s.WaitIssued(f.ctx, f.n))
	case "leave":
		err := errors.Join(f.s.Wait(f.ctx, f.n), f.near.Close())
		if f.there != nil {
			err = errors.Join(err, f.there.Close(), isFreed(f.ctx, f.left))
		}
		return a, errors.Join(err, isFreed(f.ctx, f.left))
	}
	return a, fmt.Errorf("a far process knows no %q", q.Do)
}

// next returns the Order of a new operation of f. The operation waits for the previous one.
func (f *far) next() gpu.Order {
	f.n++
	return gpu.Order{Wait: points(&f.s, f.n-1), Signal: points(&f.s, f.n)}
}

// isFreed waits until a channel has a value or is closed. If the context ends first, isFreed
// returns an error.
func isFreed(ctx context.Context, c <-chan struct{}) error {
	select {
	case <-c:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("memory or an event is not given back: %w", ctx.Err())
	}
}

// The type other is a test's connection to the far process.
type other struct {
	*env
	Far
	in  *gob.Decoder
	out *gob.Encoder
}

// other starts the far process. The process ends with the test. If the harness cannot start
// processes, the test is skipped.
func (e *env) other() *other {
	e.Helper()
	if e.h.Far == nil {
		e.Skip("needs another process")
	}
	o := &other{env: e, Far: e.h.Far(e.T)}
	e.Cleanup(func() { o.To.Close() })
	o.in, o.out = gob.NewDecoder(o.From), gob.NewEncoder(o.To)
	return o
}

// ask sends a request to the far process, and returns its answer. The error comes from the
// connection or from the far process.
func (o *other) ask(q farQuestion) (a farAnswer, err error) {
	if err := o.out.Encode(q); err != nil {
		return a, fmt.Errorf("the other process does not listen: %w", err)
	}
	if err := o.in.Decode(&a); err != nil {
		return a, fmt.Errorf("the other process does not answer: %w", err)
	}
	if a.Err != "" {
		err = fmt.Errorf("the other process: %s", a.Err)
	}
	return a, err
}

// exported exports a buffer, or skips the test if the device cannot export it.
func (e *env) exported(b *gpu.Buffer) interop.MemoryHandle {
	e.Helper()
	h, err := interop.ExportMemory(b)
	if errors.Is(err, driver.ErrUnsupported) {
		e.Skip("processes share no memory")
	}
	e.must(err)
	return h
}

// viaFile exports a buffer as a file, and imports the file on a device.
func (e *env) viaFile(b *gpu.Buffer, on *gpu.Device) *gpu.Buffer {
	e.Helper()
	f, err := interop.ExportMemoryFile(b)
	e.must(err)
	in, err := interop.ImportMemoryFile(on, f, b.Size(), nil)
	e.must(errors.Join(err, f.Close()))
	return in
}

// A table has the objects with which the near process exchanges memory with the far process. The
// buffer own is memory of the near process. The buffer far is memory of the far process, imported
// by the near process. The semaphore s orders the operations of the near process: the last
// operation signals the value n.
type table struct {
	*other
	own, far *gpu.Buffer
	// The field there has an event of the near process, and the field ready an event of the far
	// process. Both are nil if the devices cannot share events.
	there, ready *interop.Event
	s            *gpu.Semaphore
	n            uint64
}

// table makes memory in each process, and shares it with the other process. If the devices can
// share events, table also makes and shares an event in each process.
func (o *other) table(size uint64) *table {
	o.Helper()
	d := o.devs[0]
	t := &table{other: o, own: o.buffer(size), s: o.sem()}
	q := farQuestion{Do: "meet", Memory: o.exported(t.own)}
	var err error
	t.there, err = interop.NewSharedEvent(d)
	if !errors.Is(err, driver.ErrUnsupported) {
		o.must(err)
		h, err := t.there.Export()
		o.must(err)
		q.Event = &h
	}
	a, err := o.ask(q)
	o.must(err)
	t.far, err = interop.ImportMemory(d, a.Memory, nil)
	o.must(err)
	if a.Event != nil {
		t.ready, err = interop.ImportEvent(d, *a.Event, nil)
		o.must(err)
	}
	return t
}

// next returns the Order of a new operation of t. The operation waits for the previous one.
func (t *table) next() gpu.Order {
	t.n++
	return between(t.s, t.n-1, t.s, t.n)
}

// turn fills t.own, and makes the far process copy t.own to t.far. The next operation of t runs
// after the copy. If the devices can share events, the two processes wait only until work is
// issued.
func (t *table) turn(pattern []byte) error {
	q := t.q(0)
	err := q.Submit(t.next(), gpu.Fill(t.own.All(), pattern))
	if t.there != nil {
		err = errors.Join(err, q.Submit(t.next(), interop.RecordEvent(t.there)), t.s.WaitIssued(t.ctx, t.n))
	} else {
		err = errors.Join(err, t.s.Wait(t.ctx, t.n))
	}
	if err != nil {
		return err
	}
	if _, err := t.ask(farQuestion{Do: "turn"}); err != nil {
		return err
	}
	if t.ready == nil {
		return nil
	}
	return errors.Join(q.Submit(t.next(), interop.WaitEvent(t.ready)), t.s.WaitIssued(t.ctx, t.n))
}

var processes = []test{
	{name: "B160 another process reads exported memory, whole or in part", run: func(e *env) {
		sizes := []uint64{4, 100, 1 << 10, 4 << 10, 100_000, 2 << 20, 3<<20 + 4}
		o := e.other()
		var all []*gpu.Buffer
		for i, size := range sizes { // small buffers may share one block of the driver
			b, s := e.buffer(size), e.sem()
			e.must(e.q(0).Submit(signal(s, 1), gpu.Upload(b.All(), random(int(size), uint64(i)))))
			e.wait(s, 1)
			all = append(all, b)
		}
		for i, b := range all {
			h, want := e.exported(b), random(int(sizes[i]), uint64(i))
			for range 2 {
				a, err := o.ask(farQuestion{Do: "read", Memory: h})
				e.must(err)
				e.same(fmt.Sprintf("%d bytes", sizes[i]), a.Data, want)
			}
			h.Offset, h.Size = sizes[i]/4, sizes[i]/2
			a, err := o.ask(farQuestion{Do: "read", Memory: h})
			e.must(err)
			e.same(fmt.Sprintf("a half of %d bytes", sizes[i]), a.Data, want[h.Offset:][:h.Size])
		}
		h := e.exported(all[0])
		h.Size, h.Offset = 4, 4<<20
		if _, err := o.ask(farQuestion{Do: "read", Memory: h}); err == nil {
			e.Error("more than there is")
		}
	}},
	{name: "B160 a process does not import its own exports", run: func(e *env) {
		b := e.buffer(1 << 10)
		h := e.exported(b)
		if _, err := interop.ImportMemory(e.devs[0], h, nil); !errors.Is(err, driver.ErrSameProcess) {
			e.Errorf("ImportMemory = %v", err)
		}
		h.Driver = "none"
		if _, err := interop.ImportMemory(e.devs[0], h, nil); !errors.Is(err, gpu.ErrArgument) {
			e.Errorf("of another driver: %v", err)
		}
		e.holds(b, 0) // the device still works
	}},
	{name: "B160 B161 two processes exchange memory a thousand times each way", run: func(e *env) {
		const size = 64 << 10
		rounds := uint64(1000)
		if e.h.Brief {
			rounds = 100
		}
		t := e.other().table(size)
		seen := e.buffer(4 * rounds)
		pattern := make([]byte, 4)
		for i := range rounds {
			binary.LittleEndian.PutUint32(pattern, uint32(i+1))
			e.must(t.turn(pattern))
			e.must(e.q(0).Submit(t.next(), gpu.Copy(seen.Range(4*i, 4), t.far.Range(4*i%size, 4))))
		}
		for i, got := range e.words(seen, t.s.At(t.n)) {
			if got != uint32(i+1) {
				e.Fatalf("round %d has brought %d", i+1, got)
			}
		}
		last := e.read(t.far)
		e.same("the last round", last, bytes.Repeat(pattern, size/4))
		_, err := t.ask(farQuestion{Do: "leave"})
		e.must(errors.Join(err, t.far.Close()))
		if t.ready != nil {
			e.must(errors.Join(t.ready.Close(), t.there.Close()))
		}
	}},
	{name: "B160 B169 two processes exchange a number", run: func(e *env) {
		t := e.other().table(64 << 10)
		e.zeroed(t.own)
		_, err := t.ask(farQuestion{Do: "values"})
		e.must(err)
		for i := range uint64(valueTurns) {
			e.must(e.q(0).Submit(t.next(), interop.WriteValue(t.own.Range(0, 8), 2*i+1)))
			e.must(e.q(0).Submit(t.next(), interop.WaitValue(t.own.Range(0, 8), 2*i+2)))
		}
		e.wait(t.s, t.n)
		_, err = t.ask(farQuestion{Do: "leave"})
		e.must(errors.Join(err, t.far.Close()))
		if t.ready != nil {
			e.must(errors.Join(t.ready.Close(), t.there.Close()))
		}
	}},
	{name: "B190 shareable memory is used at two addresses, and stays until both are closed", run: func(e *env) {
		d := e.devs[0]
		if !d.Has(gpu.ShareableMem) {
			f, err := os.CreateTemp(e.TempDir(), "")
			e.must(err)
			defer f.Close()
			if _, err := interop.ImportMemoryFile(d, f, 1, nil); !errors.Is(err, driver.ErrUnsupported) {
				e.Errorf("ImportMemoryFile = %v", err)
			}
			return
		}
		for i, size := range []uint64{1, 100_000, 2 << 20, 3<<20 + 4} {
			b, err := d.Alloc(gpu.ShareableMem, size)
			e.must(err)
			f, err := interop.ExportMemoryFile(b)
			e.must(err)
			freed := make(chan struct{})
			in, err := interop.ImportMemoryFile(d, f, size, func() { close(freed) })
			e.must(err)
			// This import maps the same pages at another address.
			part, err := interop.ImportMemoryFile(d, f, max(size, 4)-3, nil)
			e.must(err)
			if in.Size() != size || in.Kind() != gpu.ShareableMem || in.Ptr() == b.Ptr() || in.Ptr() == part.Ptr() || in.Ptr()%gpu.Alignment != 0 {
				e.Errorf("%d bytes of kind %d at %#x, which are at %#x and %#x", in.Size(), in.Kind(), in.Ptr(), b.Ptr(), part.Ptr())
			}
			s, want := e.sem(), random(int(size), uint64(i))
			e.must(e.q(0).Submit(signal(s, 1), gpu.Upload(b.All(), want)))
			e.must(e.q(1).Submit(between(s, 1, s, 2), gpu.Fill(part.Range(0, 1), []byte{0xa5})))
			e.wait(s, 2)
			want[0] = 0xa5
			e.must(b.Close())
			e.must(part.Close())
			e.same(fmt.Sprintf("%d bytes behind the end of their first buffer", size), e.read(in), want)
			again, err := interop.ImportMemoryFile(d, f, size, nil)
			e.must(err)
			e.must(f.Close())
			e.must(in.Close())
			e.must(isFreed(e.ctx, freed))
			e.same("of the buffer that is left", e.read(again), want)
			e.must(again.Close())
		}
	}},
	{name: "B190 memory that is not shareable is neither exported nor imported", run: func(e *env) {
		d := e.devs[0]
		own := e.allocOn(d, gpu.ShareableMem, 64)
		if own == nil {
			e.Skip("there is none")
		}
		f, err := interop.ExportMemoryFile(own)
		e.must(err)
		defer f.Close()
		large, err := interop.ExportMemoryFile(e.allocOn(d, gpu.ShareableMem, 3<<20))
		e.must(err)
		defer large.Close()
		other, err := os.CreateTemp(e.TempDir(), "")
		e.must(err)
		defer other.Close()
		in := e.viaFile(own, d)
		only := func(_ any, err error) error { return err }
		for what, err := range map[string]error{
			"other memory": only(interop.ExportMemoryFile(e.buffer(64))), "what was imported": only(interop.ExportMemoryFile(in)), "no file": only(interop.ImportMemoryFile(d, nil, 64, nil)),
			"no bytes": only(interop.ImportMemoryFile(d, f, 0, nil)), "its handle": only(interop.ExportMemory(own)),
		} {
			if !errors.Is(err, gpu.ErrArgument) {
				e.Errorf("%s: %v", what, err)
			}
		}
		for what, err := range map[string]error{"another file": only(interop.ImportMemoryFile(d, other, 64, nil)), "more than there is": only(interop.ImportMemoryFile(d, f, 64<<20, nil)),
			"a part": only(interop.ImportMemoryFile(d, large, 64, nil))} {
			if err == nil || errors.Is(err, driver.ErrLost) {
				e.Errorf("%s: %v", what, err)
			}
			e.Logf("%s: %v", what, err)
		}
		e.must(in.Close())
		e.holds(e.buffer(64), 0) // the device still works
	}},
	{name: "B162 the other process is killed", run: func(e *env) {
		t := e.other().table(64 << 10)
		for range 5 {
			e.must(t.turn([]byte{5}))
		}
		e.wait(t.s, t.n)
		t.Kill()
		var err error
		for i := 0; err == nil && i < 100; i++ { // answers sent before the kill may still arrive
			err = t.turn([]byte{6})
		}
		if err == nil || e.ctx.Err() != nil {
			e.Fatalf("a process that was killed answers: %v", err)
		}
		e.Log(err)
		e.must(e.q(1).Submit(t.next(), gpu.Fill(t.own.All(), []byte{7})))
		e.holds(t.own, 7, t.s.At(t.n))
		e.must(t.far.Close())
	}},
}

// valueTurns is the number of times that two processes exchange a number.
const valueTurns = 200

// CheckKilled gives a stream a wait for an event of the far process, and then kills that process.
// Drivers do not define what happens then. CheckKilled logs the results of the wait, of a use of
// the imported memory, and of Shutdown. It checks that other queues work, that failing the
// semaphore of the wait ends waits of the host, and that Shutdown returns no unexpected error. A
// real device may be lost, so call CheckKilled in a process of its own.
func CheckKilled(t *testing.T, d driver.Driver, far Far) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	dev, err := gpu.Open(d, 0, gpu.Options{Queues: 4})
	if err != nil {
		t.Fatal(err)
	}
	e := &env{T: t, h: Harness{Far: func(*testing.T) Far { return far }}, ctx: ctx, devs: []*gpu.Device{dev}}
	x := e.other().table(64 << 10)
	if x.ready == nil {
		t.Skip("processes share no events")
	}
	e.must(x.turn([]byte{1}))
	e.wait(x.s, x.n)
	_, err = x.ask(farQuestion{Do: "busy"})
	e.must(err)
	e.must(x.q(0).Submit(x.next(), interop.WaitEvent(x.ready)))
	e.must(x.s.WaitIssued(ctx, x.n))
	v, err := x.s.Query()
	t.Logf("before the kill the wait for the event is over: %v (%v)", v == x.n, err)
	x.Kill()
	start := time.Now()
	short := func(what string, s *gpu.Semaphore, v uint64) error {
		ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
		defer cancel()
		err := s.Wait(ctx, v)
		t.Logf("%v after the kill: %s: %v", time.Since(start).Round(time.Microsecond), what, err)
		return err
	}
	if short("the wait for the event of the process that was killed", x.s, x.n) != nil {
		s := e.sem()
		err := e.q(2).Submit(signal(s, 1), interop.RecordEvent(x.ready))
		t.Logf("the event is recorded by who is left: %v", err)
		short("that record", s, 1)
		short("the wait for the event now", x.s, x.n)
	}
	gone := errors.New("the other process was killed")
	x.s.Fail(gone)
	if err := x.s.Wait(ctx, x.n); !errors.Is(err, gone) && !errors.Is(err, driver.ErrLost) {
		t.Errorf("a waiter gets %v", err)
	}
	s, data := e.sem(), make([]byte, 64)
	e.must(e.q(1).Submit(signal(s, 1), gpu.Fill(x.own.All(), []byte{2})))
	if err := short("work of another queue", s, 1); err != nil {
		t.Error("other queues do not go on")
	}
	e.must(e.q(1).Submit(between(s, 1, s, 2), gpu.Download(data, x.far.Range(0, 64))))
	err = short("a download of the memory of the process that was killed", s, 2)
	t.Logf("it has %v, and had ones: %v", data[:4], err)
	e.must(x.far.Close())
	e.must(errors.Join(x.ready.Close(), x.there.Close()))
	ctx, cancel = context.WithTimeout(ctx, time.Second)
	defer cancel()
	start = time.Now()
	err = dev.Shutdown(ctx)
	t.Logf("Shutdown returned after %v: %v", time.Since(start).Round(time.Millisecond), err)
	var late *gpu.CloseError
	if err != nil && !errors.As(err, &late) && !errors.Is(err, driver.ErrBusy) && !errors.Is(err, driver.ErrLost) {
		t.Errorf("Shutdown = %v", err)
	}
}
