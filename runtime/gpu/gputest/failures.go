package gputest

import (
	"errors"
	"io"

	"github.com/puregpu/puregpu/runtime/gpu"
)

var failures = []test{
	{name: "B77 a failed wait fails the signals, and nothing runs", run: func(e *env) {
		b, host, s, x := e.buffer(64), e.sem(), e.sem(), e.sem()
		e.must(e.q(0).Submit(gpu.Order{Wait: points(host, 1), Signal: []gpu.Point{{Semaphore: s, Value: 1}, {Semaphore: x, Value: 1}}}, gpu.Fill(b.All(), []byte{1})))
		host.Fail(io.ErrUnexpectedEOF)
		e.failed(s, 1, io.ErrUnexpectedEOF)
		e.failed(x, 1, io.ErrUnexpectedEOF)
		y := e.sem() // signalled by work that waits for a semaphore that has failed already
		e.must(e.q(0).Submit(between(host, 1, y, 1), gpu.Fill(b.All(), []byte{1})))
		err := e.failed(y, 1, io.ErrUnexpectedEOF)
		var se *gpu.SubmitError
		if !errors.As(err, &se) || se.Op != "fill" {
			e.Errorf("the failure is %v", err)
		}
		e.holds(b, 0)
	}},
	{name: "B77 a wait for failed earlier work of the same queue fails", run: func(e *env) {
		b, s, x, y := e.buffer(64), e.sem(), e.sem(), e.sem()
		for v := range uint64(4) { // the later submissions reuse the records of these four
			e.must(e.q(0).Submit(signal(y, v+1), gpu.Fill(b.All(), []byte{0})))
		}
		e.wait(y, 4)
		e.must(e.q(0).Submit(signal(s, 1), gpu.Fill(b.Range(32, 32), []byte{1})))
		s.Fail(io.ErrUnexpectedEOF)
		e.must(e.q(0).Submit(between(s, 1, x, 1), gpu.Fill(b.Range(0, 32), []byte{2})))
		e.failed(x, 1, io.ErrUnexpectedEOF)
		z := e.sem()
		e.must(e.q(0).Submit(signal(z, 1), gpu.Fill(b.Range(32, 32), []byte{0})))
		e.wait(z, 1)
		e.holds(b, 0)
	}},
	{name: "B77 one failed wait is enough", run: func(e *env) {
		b, never := e.buffer(64), e.sem()
		for name, do := range map[string]func(gpu.Order) error{
			"fill":    func(o gpu.Order) error { return e.q(0).Submit(o, gpu.Fill(b.All(), []byte{1})) },
			"barrier": func(o gpu.Order) error { return e.q(0).Submit(o, gpu.Barrier()) },
			"host call": func(o gpu.Order) error {
				return e.q(0).Submit(o, gpu.HostCall(func() error { e.Error("the host call runs"); return nil }))
			},
			"download": func(o gpu.Order) error { return e.q(0).Submit(o, gpu.Download(make([]byte, 64), b.All())) },
		} {
			for _, last := range []bool{false, true} {
				fails, failed, s, x := e.sem(), e.sem(), e.sem(), e.sem()
				failed.Fail(io.ErrNoProgress)
				waits := []gpu.Point{never.At(1), fails.At(1), never.At(2)}
				if last {
					waits = []gpu.Point{never.At(2), never.At(1), fails.At(1)}
				}
				if err := do(gpu.Order{Wait: waits, Signal: points(s, 1)}); err != nil {
					e.Fatalf("%s: %v", name, err)
				}
				fails.Fail(io.ErrUnexpectedEOF)
				e.failed(s, 1, io.ErrUnexpectedEOF)
				// Now one of the waits has failed before the call.
				if err := do(gpu.Order{Wait: append(waits, failed.At(1)), Signal: points(x, 1)}); err != nil {
					e.Fatalf("%s: %v", name, err)
				}
				e.failed(x, 1, io.ErrUnexpectedEOF)
			}
		}
		e.holds(b, 0)
		e.must(never.Signal(2))
	}},
	{name: "B78 a failure passes through chains", run: func(e *env) {
		const n = 1000
		b, s, last := e.buffer(64), e.sems(n+1), e.sem()
		for i := range n {
			e.must(e.q(i).Submit(between(s[i], 1, s[i+1], 1), gpu.Fill(b.All(), []byte{1})))
		}
		e.must(e.q(0).Submit(between(s[n], 1, last, 1), gpu.HostCall(func() error { e.Error("the host call runs"); return nil })))
		s[0].Fail(io.ErrUnexpectedEOF)
		err := e.failed(last, 1, io.ErrUnexpectedEOF)
		if len(err.Error()) > 500 {
			e.Errorf("the failure has grown to %d bytes: %.200s…", len(err.Error()), err.Error())
		}
		e.holds(b, 0)
	}},
	{name: "B79 a failure does not affect unrelated work", run: func(e *env) {
		b, bad, x := e.buffer(64), e.sem(), e.sem()
		e.must(e.q(0).Submit(between(bad, 1, x, 1), gpu.Fill(b.Range(0, 8), []byte{1})))
		good, y := e.sem(), e.sem()
		e.must(e.q(0).Submit(between(good, 1, y, 1), gpu.Fill(b.Range(8, 8), []byte{2})))
		bad.Fail(io.EOF)
		e.failed(x, 1, io.EOF)
		e.must(good.Signal(1))
		e.wait(y, 1)
		z := e.sem()
		e.must(e.q(0).Submit(signal(z, 1), gpu.Fill(b.All(), []byte{3})))
		e.wait(z, 1)
		e.holds(b, 3)
	}},
	{name: "B82 a mistake is reported at once, and changes nothing", run: func(e *env) {
		b, s := e.buffer(64), e.sem()
		other, err := e.devs[0].Alloc(gpu.DeviceMem, 16)
		e.must(err)
		e.must(other.Close())
		q, o := e.q(0), signal(s, 1)
		none := gpu.Order{Wait: []gpu.Point{{}}, Signal: o.Signal}
		high := gpu.Order{Signal: []gpu.Point{{Semaphore: s, Value: 1}, {Semaphore: s, Value: 1<<64 - 1}}}
		for name, c := range map[string]struct {
			err, kind error
		}{
			"fill behind the end":         {q.Submit(o, gpu.Fill(b.Range(60, 8), []byte{1})), gpu.ErrRange},
			"fill far behind the end":     {q.Submit(o, gpu.Fill(b.Range(65, 0), []byte{1})), gpu.ErrRange},
			"fill with an overflow":       {q.Submit(o, gpu.Fill(b.Range(8, 1<<64-4), []byte{1})), gpu.ErrRange},
			"fill of no buffer":           {q.Submit(o, gpu.Fill(gpu.Range{}, []byte{1})), gpu.ErrArgument},
			"fill of a closed buffer":     {q.Submit(o, gpu.Fill(other.All(), []byte{1})), gpu.ErrClosed},
			"fill with no pattern":        {q.Submit(o, gpu.Fill(b.All(), nil)), gpu.ErrArgument},
			"fill with 3 bytes":           {q.Submit(o, gpu.Fill(b.All(), []byte{1, 2, 3})), gpu.ErrArgument},
			"fill with a size unaligned":  {q.Submit(o, gpu.Fill(b.Range(0, 6), []byte{1, 2, 3, 4})), gpu.ErrArgument},
			"fill with an offset of 2":    {q.Submit(o, gpu.Fill(b.Range(2, 8), []byte{1, 2, 3, 4})), gpu.ErrArgument},
			"copy of different sizes":     {q.Submit(o, gpu.Copy(b.Range(0, 8), b.Range(8, 16))), gpu.ErrArgument},
			"copy from behind the end":    {q.Submit(o, gpu.Copy(b.Range(0, 8), b.Range(60, 8))), gpu.ErrRange},
			"copy from a closed buffer":   {q.Submit(o, gpu.Copy(b.Range(0, 8), other.Range(0, 8))), gpu.ErrClosed},
			"update of a different size":  {q.Submit(o, gpu.UploadCopy(b.Range(0, 8), make([]byte, 9))), gpu.ErrArgument},
			"update behind the end":       {q.Submit(o, gpu.UploadCopy(b.Range(64, 8), make([]byte, 8))), gpu.ErrRange},
			"download of another size":    {q.Submit(o, gpu.Download(make([]byte, 9), b.Range(0, 8))), gpu.ErrArgument},
			"download behind the end":     {q.Submit(o, gpu.Download(make([]byte, 8), b.Range(57, 8))), gpu.ErrRange},
			"update of a closed buffer":   {q.Submit(o, gpu.UploadCopy(other.Range(0, 8), make([]byte, 8))), gpu.ErrClosed},
			"download of a closed buffer": {q.Submit(o, gpu.Download(make([]byte, 8), other.Range(0, 8))), gpu.ErrClosed},
			"upload of another size":      {q.Submit(o, gpu.Upload(b.Range(0, 8), make([]byte, 9))), gpu.ErrArgument},
			"upload behind the end":       {q.Submit(o, gpu.Upload(b.Range(64, 8), make([]byte, 8))), gpu.ErrRange},
			"a large upload to nothing":   {q.Submit(o, gpu.Upload(gpu.Range{Size: 2 << 20}, make([]byte, 2<<20))), gpu.ErrArgument},
			"a large download of nothing": {q.Submit(o, gpu.Download(make([]byte, 2<<20), b.Range(0, 2<<20))), gpu.ErrRange},
			"fill of 8 bytes at 4":        {q.Submit(o, gpu.Fill(b.Range(4, 8), make([]byte, 8))), gpu.ErrArgument},
			"fill of 12 bytes with 8":     {q.Submit(o, gpu.Fill(b.Range(0, 12), make([]byte, 8))), gpu.ErrArgument},
			"fill with 16 bytes":          {q.Submit(o, gpu.Fill(b.All(), make([]byte, 16))), gpu.ErrArgument},
			"notify of no function":       {q.Submit(o, gpu.Notify(nil)), gpu.ErrArgument},
			"a wait above the highest":    {q.Submit(gpu.Order{Wait: points(s, gpu.MaxValue+1), Signal: o.Signal}, gpu.Barrier()), gpu.ErrArgument},
			"a host call's wait above it": {q.Submit(gpu.Order{Wait: points(s, gpu.MaxValue+1)}, gpu.HostCall(func() error { return nil })), gpu.ErrArgument},
			"launch of no kernel":         {q.Submit(o, gpu.Launch(nil, gpu.Grid{})), gpu.ErrArgument},
			"host call of no function":    {q.Submit(o, gpu.HostCall(nil)), gpu.ErrArgument},
			"a wait for no semaphore":     {q.Submit(none, gpu.Barrier()), gpu.ErrArgument},
			"a signal of no semaphore":    {q.Submit(gpu.Order{Signal: []gpu.Point{{}}}, gpu.Fill(b.All(), []byte{1})), gpu.ErrArgument},
			"a signal above the highest":  {q.Submit(high, gpu.UploadCopy(b.All(), make([]byte, 64))), gpu.ErrArgument},
		} {
			if !errors.Is(c.err, c.kind) {
				e.Errorf("%s: %v; want %v", name, c.err, c.kind)
			}
		}
		e.at(s, 0)
		e.must(q.Submit(o, gpu.Fill(b.All(), []byte{1})))
		e.wait(s, 1)
		if n := e.devs[0].Stats(); n.InFlight+n.Parked > 0 {
			e.Errorf("left: %+v", n)
		}
	}},
	{name: "B83 a passed value fails only its own submission", run: func(e *env) {
		b, gate, s, x, y := e.buffer(64), e.sem(), e.sem(), e.sem(), e.sem()
		e.must(e.q(0).Submit(gpu.Order{Wait: points(gate, 1), Signal: []gpu.Point{{Semaphore: s, Value: 5}, {Semaphore: x, Value: 1}}}, gpu.Fill(b.All(), []byte{1})))
		e.must(s.Signal(5))
		e.must(gate.Signal(1))
		e.failed(x, 1, gpu.ErrValue)
		e.failed(s, 5, gpu.ErrValue)
		e.must(e.q(0).Submit(signal(y, 1), gpu.Fill(b.All(), []byte{2})))
		e.wait(y, 1)
		e.holds(b, 2)
	}},
	{name: "B79 a closed semaphore in a list does not affect the others", run: func(e *env) {
		b, gate, s, x := e.buffer(64), e.sem(), e.sem(), e.sem()
		e.must(e.q(0).Submit(gpu.Order{Wait: points(gate, 1), Signal: []gpu.Point{{Semaphore: s, Value: 1}, {Semaphore: x, Value: 1}}}, gpu.Fill(b.All(), []byte{1})))
		e.must(s.Close())
		e.must(gate.Signal(1))
		e.wait(x, 1)
		e.failed(s, 1, gpu.ErrClosed)
	}},
	{name: "B78 a failure passes through operations of all kinds", options: small, run: func(e *env) {
		const n = 2 * 4096 // two pieces
		b, data, host := e.buffer(n), make([]byte, n), e.sem()
		s := host
		for _, x := range []struct {
			q  int
			op gpu.Op
		}{
			{0, gpu.Barrier()},
			{1, gpu.Fill(b.All(), []byte{1, 2, 3, 4, 5, 6, 7, 8})},
			{0, gpu.HostCall(func() error { e.Error("called"); return nil })},
			{2, gpu.Barrier()},
			{1, gpu.UploadCopy(b.All(), data)},
			{2, gpu.Notify(func() { e.Error("notified") })},
			{3, gpu.Upload(b.All(), data)},
			{3, gpu.Download(data, b.All())},
			{3, gpu.Download(data[:16], b.Range(0, 16))},
			{0, gpu.ReadFrom(b.All(), &memory{data: data}, 0)},
			{1, gpu.WriteTo(&memory{}, 0, b.All())},
			{1, gpu.Copy(b.Range(0, 8), b.Range(8, 8))},
		} {
			next := e.sem()
			e.must(e.q(x.q).Submit(between(s, 1, next, 1), x.op))
			s = next
		}
		far := e.sem()
		s.Link(1, far, 1)
		host.Fail(io.ErrUnexpectedEOF)
		e.failed(far, 1, io.ErrUnexpectedEOF)
		e.failed(s, 1, io.ErrUnexpectedEOF)
		e.holds(b, 0)
		e.settled(e.devs[0])
	}},
	{name: "B24 semaphores that fail together fail the waiters of each", run: func(e *env) {
		b, s, x := e.buffer(64), e.sems(3), e.sems(3)
		for i := range s {
			e.must(e.q(i).Submit(between(s[i], 1, x[i], 1), gpu.Fill(b.All(), []byte{1})))
		}
		s[1].Fail(io.EOF)
		gpu.FailAll(io.ErrNoProgress, s[0], nil, s[1], s[2])
		e.failed(x[0], 1, io.ErrNoProgress)
		e.failed(x[1], 1, io.EOF)
		e.failed(x[2], 1, io.ErrNoProgress)
		e.holds(b, 0)
	}},
	{name: "B83 of two that signal the same value one fails", run: func(e *env) {
		b := e.buffer(64)
		for _, queues := range []int{1, 2} {
			for range 20 {
				s, gate, x := e.sem(), e.sem(), e.sems(2)
				for i := range x {
					o := gpu.Order{Wait: points(gate, 1), Signal: []gpu.Point{{Semaphore: s, Value: 1}, {Semaphore: x[i], Value: 1}}}
					e.must(e.q(i%queues).Submit(o, gpu.Fill(b.Range(uint64(i), 1), []byte{1})))
				}
				e.must(gate.Signal(1)) // not earlier: Submit refuses a value that has been reached
				failed := 0
				for _, x := range x {
					if err := x.Wait(e.ctx, 1); errors.Is(err, gpu.ErrValue) {
						failed++
					} else if err != nil {
						e.Error(err)
					}
				}
				if failed != 1 {
					e.Errorf("%d have failed", failed)
				}
				e.failed(s, 1, gpu.ErrValue)
			}
		}
	}},
	{name: "B5 B75 values raised by unordered work are all reached, in any order", run: func(e *env) {
		const n = 400
		b, s := e.buffer(64), e.sem()
		for v := range uint64(n) {
			e.must(e.q(int(v)).Submit(signal(s, v+1), gpu.Fill(b.Range(v%4, 1), []byte{1})))
		}
		e.wait(s, n)
		e.settled(e.devs[0])
		e.at(s, n)
	}},
	{name: "B5 B83 a value passed by other work while this work was parked is not a mistake", run: func(e *env) {
		b, gate, s, x := e.buffer(64), e.sem(), e.sem(), e.sem()
		for i := range uint64(3) {
			o := gpu.Order{Wait: points(gate, i+1), Signal: []gpu.Point{{Semaphore: s, Value: i + 1}, {Semaphore: x, Value: i + 1}}}
			e.must(e.q(int(i)).Submit(o, gpu.Fill(b.Range(i, 1), []byte{1})))
		}
		e.must(e.q(0).Submit(signal(s, 5), gpu.Fill(b.Range(4, 1), []byte{1})))
		e.wait(s, 5)
		for i := range uint64(3) {
			e.must(gate.Signal(i + 1))
			e.wait(x, i+1)
		}
		e.must(e.q(0).Submit(signal(s, 6), gpu.Fill(b.Range(4, 1), []byte{1})))
		e.wait(s, 6)
		e.settled(e.devs[0])
	}},
}
