package main

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/puregpu/puregpu/internal/traceformat"
	"github.com/puregpu/puregpu/internal/tracetest"
)

const (
	µs = tracetest.Microsecond
	ms = tracetest.Millisecond
)

type (
	args = traceformat.Args
	pts  = []traceformat.Point
)

var start2026 = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// scenarios are traces with a known story.
var scenarios = []struct {
	name  string
	trace func() []byte
}{
	{"steps", func() []byte { return steps(3).JSON() }},
	{"ranks", func() []byte { return allreduce(4).JSON() }},
	{"trouble", trouble},
	{"nothing", func() []byte { return tracetest.New("nothing", 0, 1, start2026).JSON() }},
	{"without device times", untimed},
	{"a burst", burst},
	{"a slow host", slowHost},
}

// steps is a program that waits for each step, so that the device is idle in between.
func steps(n int) *tracetest.Builder {
	b := tracetest.New("mlp", 0, 1, start2026)
	host := b.Host("host 1")
	dev := b.Device(0, "NVIDIA H200")
	q := b.Queue(dev, 0, "queue 0")
	s := b.Stream(dev, 1)
	sem := b.Semaphore("step")
	b.Call(host, "compile", 0, 2*ms, args{Label: "mlp.cu"})
	b.Call(host, "load", 2*ms, 2200*µs, args{Label: "mlp.cubin", Bytes: 1 << 16})
	b.Instant(dev, traceformat.CatClock, "clock fit", 10*µs, args{Rate: 0.2, Margin: 300})
	at := 2300 * µs
	value := uint64(0)
	for range n {
		// upload 40 µs, forward 200 µs, backward 300 µs, one after the other
		for i, op := range []args{
			{Op: "copy", Bytes: 4 << 20},
			{Op: "launch", Kernel: "forward", Grid: [3]uint32{64, 1, 1}, Block: [3]uint32{256, 1, 1}},
			{Op: "launch", Kernel: "backward", Grid: [3]uint32{128, 2, 1}, Block: [3]uint32{256, 1, 1}, Label: "backward of the first layer"},
		} {
			if value > 0 {
				op.Waits = pts{sem(value)}
			}
			value++
			op.Signals = pts{sem(value)}
			begun := at + []traceformat.Time{10 * µs, 52 * µs, 254 * µs}[i]
			submitted := at + traceformat.Time(i)*3*µs
			dur := []traceformat.Time{40 * µs, 200 * µs, 300 * µs}[i]
			b.Submit(q, s, tracetest.Submission{Args: op, Submitted: submitted, Issued: submitted + 2*µs, Begun: begun, Ended: begun + dur, Done: at + 562*µs})
		}
		b.Count(dev, traceformat.CounterInFlight, at, traceformat.Series{Name: "operations", Value: 3})
		b.Count(dev, traceformat.CounterInFlight, at+562*µs, traceformat.Series{Name: "operations", Value: 0})
		b.Wait(host, at+10*µs, at+564*µs, sem(value))
		at += 564*µs + 150*µs // 150 µs of it on the host
	}
	b.Count(dev, traceformat.CounterPoolBytes, 2250*µs, traceformat.Series{Name: "reserved", Value: 64 << 20}, traceformat.Series{Name: "used", Value: 8 << 20})
	return b
}

// allreduce is data-parallel training on two devices: the first waits for the second, which is
// slower.
func allreduce(n int) *tracetest.Builder {
	b := tracetest.New("allreduce", 0, 1, start2026)
	host := b.Host("host 1")
	type side struct {
		q, s, ch tracetest.Track
		sem      func(uint64) traceformat.Point
	}
	var sides []side
	for i := range 2 {
		dev := b.Device(i, "NVIDIA H200")
		sides = append(sides, side{b.Queue(dev, 0, fmt.Sprintf("queue 0 %q", "train")), b.Stream(dev, 1), b.Channel(dev, "channel grads"), b.Semaphore(fmt.Sprintf("rank %d", i))})
	}
	at := 100 * µs
	for step := range uint64(n) {
		v := 2 * step
		for i, x := range sides {
			compute := []traceformat.Time{300 * µs, 500 * µs}[i]
			var waits pts
			if v > 0 {
				waits = pts{x.sem(v)}
			}
			submitted := at - 60*µs
			b.Submit(x.q, x.s, tracetest.Submission{
				Args: args{Op: "execute", Label: "step", Commands: 2, Waits: waits, Signals: pts{x.sem(v + 1)}}, Submitted: submitted, Issued: submitted + 4*µs, Begun: at, Ended: at + compute, Done: at + 620*µs,
				Commands: []tracetest.Command{
					{Args: args{Op: "launch", Kernel: "forward"}, Begun: at, Ended: at + compute/3},
					{Args: args{Op: "launch", Kernel: "backward"}, Begun: at + compute/3, Ended: at + compute},
				},
			})
		}
		for i, x := range sides {
			// NCCL's kernel spins until the other rank arrives.
			begun := at + []traceformat.Time{305 * µs, 505 * µs}[i]
			submitted := at - 50*µs
			b.Submit(x.q, x.ch, tracetest.Submission{
				Args:      args{Op: "collective", Kernel: "all-reduce", Bytes: 64 << 20, Channel: "grads", Collective: step + 1, Rank: i, Ranks: 2, Waits: pts{x.sem(v + 1)}, Signals: pts{x.sem(v + 2)}},
				Submitted: submitted, Issued: submitted + 5*µs, Begun: begun, Ended: at + 615*µs, Done: at + 620*µs,
			})
		}
		at += 625 * µs
	}
	b.Wait(host, 60*µs, at, sides[0].sem(uint64(2*n)), sides[1].sem(uint64(2*n)))
	return b
}

// trouble is a trace with parked work that waits for the host's signal. The trace also has an
// error, a loss and dropped submissions, and its end is cut off.
func trouble() []byte {
	b := tracetest.New("serve", 0, 1, start2026)
	host, other := b.Host("host 1"), b.Host("host 2")
	dev := b.Device(0, "Simulated GPU 0")
	q, s := b.Queue(dev, 0, "requests"), b.Stream(dev, 1)
	go1, done := b.Semaphore("go"), b.Semaphore("done")
	b.Call(other, "allocate", 10*µs, 20*µs, args{Bytes: 1 << 20})
	b.Call(other, "signal", 500*µs, 501*µs, args{Signals: pts{go1(1)}})
	b.Submit(q, s, tracetest.Submission{Args: args{Op: "fill", Bytes: 1 << 20, Signals: pts{done(1)}}, Submitted: 30 * µs, Issued: 31 * µs, Begun: 32 * µs, Ended: 60 * µs, Done: 61 * µs})
	b.Submit(q, s, tracetest.Submission{Args: args{Op: "copy", Bytes: 1 << 20, Waits: pts{go1(1), done(1)}, Signals: pts{done(2)}}, Submitted: 40 * µs, Issued: 505 * µs, Begun: 510 * µs, Ended: 560 * µs, Done: 565 * µs, Parked: true})
	b.Submit(q, s, tracetest.Submission{Args: args{Op: "launch", Kernel: "attention\x1b[31m<script>", Error: "gpu: device lost:\nillegal address"}, Submitted: 600 * µs, Issued: 601 * µs, Done: 700 * µs})
	b.Submit(q, s, tracetest.Submission{Args: args{Op: "copy", Waits: pts{go1(9)}}, Submitted: 610 * µs, Issued: 0, Parked: false})
	b.Wait(host, 70*µs, 566*µs, done(2))
	b.Instant(dev, traceformat.CatLoss, "device lost", 699*µs, args{Error: "gpu: device lost: illegal address"})
	b.Instant(1, traceformat.CatDrop, "dropped", 690*µs, args{Dropped: 1200, Total: 1200})
	data := b.JSON()
	return data[:len(data)-3]
}

// untimed is a trace without device times.
func untimed() []byte {
	b := tracetest.New("plain", 0, 1, start2026)
	host := b.Host("host 1")
	dev := b.Device(0, "AMD Instinct")
	q := b.Queue(dev, 0, "queue 0")
	sem := b.Semaphore("")
	for i := range uint64(3) {
		at := traceformat.Time(100*i+10) * µs
		b.Submit(q, q, tracetest.Submission{Args: args{Op: "fill", Signals: pts{sem(i + 1)}}, Submitted: at, Issued: at + µs, Done: at + 80*µs})
		b.Wait(host, at+2*µs, at+82*µs, sem(i+1))
	}
	return b.JSON()
}

// burst is a trace with missing arrows. Some of its work should have device times and has none.
func burst() []byte {
	b := tracetest.New("burst", 0, 1, start2026)
	dev := b.Device(0, "NVIDIA H200")
	q, s := b.Queue(dev, 0, "queue 0"), b.Stream(dev, 1)
	sem := b.Semaphore("")
	for i := range uint64(5) {
		at := traceformat.Time(i+1) * µs
		x := tracetest.Submission{Args: args{Op: "execute", Signals: pts{sem(i + 1)}}, Submitted: at, Issued: at + µs/2, Begun: 10*at + µs, Ended: 10*at + 9*µs, Done: 100 * µs}
		if i > 0 {
			x.Args.Waits = pts{sem(i)}
		}
		if i > 2 {
			x.Begun, x.Ended, x.Args.Untimed = 0, 0, true
		}
		b.Submit(q, s, x)
	}
	b.Instant(1, traceformat.CatArrows, "arrows are missing", 50*µs, args{Undrawn: 1})
	b.Instant(1, traceformat.CatArrows, "arrows are missing", 100*µs, args{Undrawn: 2, Forgotten: 1}) // in all
	return b.JSON()
}

// slowHost is a trace of work that a slow host gave an idle device: a native function, a recording
// whose last command is such a function, and a kernel that may have ended earlier than it seems. A
// graph has no times of its commands.
func slowHost() []byte {
	b := tracetest.New("slow", 0, 1, start2026)
	host := b.Host("host 1")
	dev := b.Device(0, "NVIDIA H100")
	q, s := b.Queue(dev, 0, "queue 0"), b.Stream(dev, 1)
	sem := b.Semaphore("")
	b.Instant(dev, traceformat.CatClock, "clock fit", µs, args{Rate: 0.2, Margin: 2 * µs})
	b.Submit(q, s, tracetest.Submission{Args: args{Op: "native", Label: "gemm", Signals: pts{sem(1)}, Early: 50 * ms},
		Submitted: ms, Issued: ms, Begun: 51 * ms, Ended: 52 * ms, Done: 52100 * µs})
	b.Wait(host, ms, 52110*µs, sem(1))
	b.Submit(q, s, tracetest.Submission{Args: args{Op: "execute", Commands: 2, Signals: pts{sem(2)}, Early: 10 * ms, UntimedCommands: 1},
		Submitted: 53 * ms, Issued: 53 * ms, Begun: 63 * ms, Ended: 64 * ms, Done: 65 * ms,
		Commands: []tracetest.Command{{Args: args{Op: "launch", Kernel: "scale"}, Begun: 53500 * µs, Ended: 57500 * µs}}})
	b.Wait(host, 53*ms, 65*ms, sem(2))
	b.Submit(q, s, tracetest.Submission{Args: args{Op: "launch", Kernel: "sum", Margin: 3 * ms}, Submitted: 65 * ms, Issued: 65 * ms, Begun: 66 * ms, Ended: 70 * ms, Done: 71 * ms})
	b.Submit(q, s, tracetest.Submission{Args: args{Op: "execute", Commands: 9, Graph: true}, Submitted: 66 * ms, Issued: 66 * ms, Begun: 70 * ms, Ended: 80 * ms, Done: 81 * ms})
	return b.JSON()
}

// busyServer is a random trace of n submissions on two devices with two queues each.
func busyServer(n int) *tracetest.Builder {
	r := rand.New(rand.NewPCG(1, 2))
	b := tracetest.New("serve", 0, 1, start2026)
	var hosts []tracetest.Track
	for i := range 4 {
		hosts = append(hosts, b.Host(fmt.Sprintf("host %d", i+1)))
	}
	type lane struct {
		q, s  tracetest.Track
		sem   func(uint64) traceformat.Point
		value uint64
		free  traceformat.Time
		dev   int64
	}
	var lanes []lane
	for d := range 2 {
		dev := b.Device(d, "NVIDIA H200")
		for i, name := range []string{"compute", "transfer"} {
			lanes = append(lanes, lane{q: b.Queue(dev, i, fmt.Sprintf("queue %d %q", i, name)), s: b.Stream(dev, i+1), sem: b.Semaphore(name), dev: dev})
		}
	}
	kernels := []string{"attention", "gemm_f16_128x256", "layer_norm", "softmax", "rope", "silu_mul", "embed", "sample_top_p"}
	hostFree := make([]traceformat.Time, len(hosts))
	at := 10 * µs
	for i := 0; i < n; i++ {
		k := r.IntN(len(lanes))
		l, other := &lanes[k], &lanes[k^1]
		a := args{Op: "launch", Kernel: kernels[r.IntN(len(kernels))], Grid: [3]uint32{uint32(1 + r.IntN(512)), 1, 1}, Block: [3]uint32{256, 1, 1}}
		dur := traceformat.Time(3+r.ExpFloat64()*25) * µs
		if k%2 == 1 {
			a = args{Op: "copy", Bytes: uint64(1+r.IntN(64)) << 16}
			dur = traceformat.Time(2*µs) + traceformat.Time(a.Bytes)/50
		}
		begun := max(at+5*µs, l.free+traceformat.Time(r.IntN(900)))
		if l.value > 0 {
			a.Waits = append(a.Waits, l.sem(l.value))
		}
		parked := false
		if other.value > 0 && r.IntN(6) == 0 {
			a.Waits = append(a.Waits, other.sem(other.value))
			begun = max(begun, other.free+µs)
			parked = r.IntN(3) == 0
		}
		issued := at + traceformat.Time(800+r.IntN(1500))
		if parked {
			issued = max(issued, begun-traceformat.Time(1+r.IntN(20))*µs)
			begun = max(begun, issued+µs)
		}
		l.value++
		a.Signals = pts{l.sem(l.value)}
		l.free = begun + dur
		done := l.free + traceformat.Time(1+r.IntN(9))*µs
		b.Submit(l.q, l.s, tracetest.Submission{Args: a, Submitted: at, Issued: issued, Begun: begun, Ended: l.free, Done: done, Parked: parked})
		if i%8 == 0 {
			h := r.IntN(len(hosts))
			from := max(at, hostFree[h])
			if from < done {
				b.Wait(hosts[h], from, done+µs, l.sem(l.value))
				hostFree[h] = done + 2*µs
			}
			b.Count(l.dev, traceformat.CounterInFlight, at, traceformat.Series{Name: "operations", Value: int64(r.IntN(40))})
			b.Count(l.dev, traceformat.CounterPoolBytes, at, traceformat.Series{Name: "reserved", Value: 8 << 30}, traceformat.Series{Name: "used", Value: int64(4+r.IntN(4)) << 30})
		}
		at += traceformat.Time(r.ExpFloat64() * 21000)
		if i%300 == 299 { // a pause without requests
			at += ms
		}
	}
	return b
}
