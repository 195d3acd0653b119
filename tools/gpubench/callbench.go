package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/puregpu/puregpu/cuda"
)

// callBenches time opening the library, and calls of the bindings. The raw side of the calls is a
// loop in C. For the calls both sides run on the raw side's thread.
func callBenches(e *env) []bench {
	if e.lib == nil {
		return nil
	}
	all := []bench{openBench()}
	for i, name := range callNames {
		g := goal{}
		if name == "cuLaunchKernel" {
			g = goal{max: 1.02, of: ofRaw}
		}
		all = append(all, bench{
			rows:   []row{{name: "calls/" + name, unit: ns, goal: g}},
			rounds: 31,
			open:   func(e *env) (sides, error) { return openCall(e, i) },
		})
	}
	return all
}

// openCall opens the case of callNames[number].
func openCall(e *env, number int) (s sides, err error) {
	if e.opt.cloop == "" {
		return s, fmt.Errorf("%w: name the C side with -c", errNotRun)
	}
	c, err := openLoop(e.opt.cloop)
	if err != nil {
		return s, err
	}
	var g *callGPU
	var k pairing
	err = e.thread.do(func() error {
		if g, err = newCallGPU(e.lib, e.index); err != nil {
			return err
		}
		cases, err := g.cases(c)
		if err != nil {
			return errors.Join(err, g.close())
		}
		k = cases[number]
		return nil
	})
	if err != nil {
		return s, err
	}
	side := func(calls func(n uint64) (time.Duration, error)) func([]float64) error {
		return func(f []float64) error {
			return e.thread.do(func() error {
				d, err := calls(k.n)
				if err != nil {
					return err
				}
				f[0] = each(d, int(k.n))
				return k.settle()
			})
		}
	}
	return sides{raw: side(k.c), pure: side(k.g), close: func() error { return e.thread.do(g.close) }}, nil
}

// openBench times opening the library: the first time, when the system loads the driver, and again,
// when only the symbols are resolved.
func openBench() bench {
	return bench{
		rows: []row{
			{name: "calls/open, with the driver's own loading", unit: ns},
			{name: "calls/open again, all symbols", unit: ns, goal: goal{max: 3e6}},
		},
		rounds: 5,
		open: func(e *env) (sides, error) {
			return sides{pure: func(f []float64) error {
				start := time.Now()
				if _, err := cuda.Open(cuda.Options{}); err != nil {
					return err
				}
				f[0], f[1] = float64(e.opened), float64(time.Since(start))
				return nil
			}}, nil
		},
	}
}
