// Command gpubench times calls through the bindings against the same calls in a C loop, in one process and in turns, and
// prints the ratio.
//
//	gpubench -c libcloop.so [-rounds N]
//
// The C side is testdata/cloop.c. One line a case: what was called, nanoseconds a call in C and in Go, the ratio's
// median over the rounds, and the goal. The exit status is 1 if a goal was missed. It needs a CUDA GPU.
package main

import (
	"flag"
	"fmt"
	"os"
	"runtime"
	"slices"
	"time"
	"unsafe"

	"github.com/puregpu/puregpu/cuda"
	"github.com/puregpu/puregpu/runtime/dl"
)

func main() {
	lib := flag.String("c", "", "shared `library` made from cloop.c")
	rounds := flag.Int("rounds", 31, "`number` of rounds in which both sides take turns")
	flag.Parse()
	ok, err := run(*lib, *rounds)
	if err != nil {
		fmt.Fprintln(os.Stderr, "gpubench:", err)
		os.Exit(2)
	}
	if !ok {
		os.Exit(1)
	}
}

func run(path string, rounds int) (bool, error) {
	if path == "" || rounds < 1 {
		return false, fmt.Errorf("name the C side with -c, and at least one round")
	}
	runtime.LockOSThread() // the context belongs to the thread
	defer runtime.UnlockOSThread()
	start := time.Now()
	l, err := cuda.Open(cuda.Options{})
	if err != nil {
		return false, err
	}
	opened := time.Since(start)
	start = time.Now()
	if _, err := cuda.Open(cuda.Options{}); err != nil {
		return false, err
	}
	again := time.Since(start)
	c, err := openLoop(path)
	if err != nil {
		return false, err
	}
	g, err := newGPU(l)
	if err != nil {
		return false, err
	}
	defer g.close()
	cases, err := g.cases(c)
	if err != nil {
		return false, err
	}
	ok := true
	fmt.Printf("%-24s %10s %10s %8s %6s\n", "call", "C ns", "Go ns", "Go/C", "goal")
	for _, k := range cases {
		good, err := k.compare(rounds)
		if err != nil {
			return false, fmt.Errorf("%s: %w", k.name, err)
		}
		ok = ok && good
	}
	fmt.Printf("open: %v with the driver's own loading, %v for all symbols of a loaded driver (goal 3ms)\n", opened.Round(time.Microsecond), again.Round(time.Microsecond))
	return ok && again <= 3*time.Millisecond, nil
}

// A pairing is one call on both sides. Each side does n calls and returns how long they took.
type pairing struct {
	name   string
	goal   float64 // 0: none
	n      uint64
	c, g   func(n uint64) (time.Duration, error)
	settle func() error // waits for the device, outside the timing
}

func (p *pairing) compare(rounds int) (bool, error) {
	var ratios, cs, gs []float64
	for r := range rounds + 1 {
		var c, g time.Duration
		var err error
		both := []func() error{
			func() (err error) { c, err = p.c(p.n); return err },
			func() (err error) { g, err = p.g(p.n); return err },
		}
		if r%2 == 1 { // who goes first changes
			slices.Reverse(both)
		}
		for _, side := range both {
			if err = side(); err != nil {
				return false, err
			}
			if err = p.settle(); err != nil {
				return false, err
			}
		}
		if r == 0 {
			continue // the first round warms up
		}
		ratios = append(ratios, float64(g)/float64(c))
		cs = append(cs, float64(c)/float64(p.n))
		gs = append(gs, float64(g)/float64(p.n))
	}
	ratio := median(ratios)
	goal := "-"
	if p.goal > 0 {
		goal = fmt.Sprintf("%.2f", p.goal)
	}
	fmt.Printf("%-24s %10.1f %10.1f %8.3f %6s\n", p.name, median(cs), median(gs), ratio, goal)
	return p.goal == 0 || ratio <= p.goal, nil
}

func median(x []float64) float64 {
	slices.Sort(x)
	return x[len(x)/2]
}

// A loop is the C side.
type loop struct {
	dl.Library
	fns [3]uintptr
}

const (
	loopLaunch = iota
	loopTwo
	loopNothing
)

func openLoop(path string) (*loop, error) {
	c := new(loop)
	err := c.Open(&dl.Spec{
		Name: "gpubench's C loops", Package: "gpubench", Sets: []dl.Set{{Name: "core"}}, Hint: "build cloop.c",
		Symbols: []dl.Symbol{{Name: "cloop_launch", Sig: "wwwwww"}, {Name: "cloop_two", Sig: "wwwww"}, {Name: "cloop_nothing", Sig: "ww"}},
	}, c.fns[:], dl.Options{Path: path})
	return c, err
}

// nothing calls a C function that returns at once, as a generated method would.
func (c *loop) nothing(a, b uintptr) error {
	addr := dl.Load(&c.fns[loopNothing])
	if addr == 0 {
		return outcome(c.Slow(loopNothing, a, b))
	}
	var frame struct {
		dl.Frame
		a0, a1 uintptr
	}
	frame.Fn, frame.Ret, frame.a0, frame.a1 = addr, 0, a, b
	if r := dl.Call(2, unsafe.Pointer(&frame)); r != 0 {
		return cuda.Result(int32(r))
	}
	return nil
}

func (c *loop) launch(fn uintptr, f cuda.Function, s cuda.Stream, params *unsafe.Pointer, n uint64) (time.Duration, error) {
	ns := new(uint64)
	r, err := c.Slow(loopLaunch, fn, uintptr(f), uintptr(s), uintptr(unsafe.Pointer(params)), uintptr(n), uintptr(unsafe.Pointer(ns)))
	return time.Duration(*ns), outcome(r, err)
}

func (c *loop) two(fn, a, b uintptr, n uint64) (time.Duration, error) {
	ns := new(uint64)
	r, err := c.Slow(loopTwo, fn, a, b, uintptr(n), uintptr(unsafe.Pointer(ns)))
	return time.Duration(*ns), outcome(r, err)
}

func outcome(r uintptr, err error) error {
	if err == nil && int32(r) != 0 {
		err = cuda.Result(int32(r))
	}
	return err
}
