package simdriver_test

import (
	"errors"
	"strings"
	"testing"
	"unsafe"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/driver/simdriver"
)

// TestUnorderedNodes runs graphs of two nodes that use one buffer, with and without an edge between
// them. The result is an error only if the nodes conflict and have no edge. The error names both.
func TestUnorderedNodes(t *testing.T) {
	kernels := map[string]simdriver.Kernel{
		"set": simdriver.MustKernel(func(g *simdriver.Grid, p driver.Ptr, n, v int64) error {
			b, err := simdriver.View[uint8](g, p, int(n))
			for i := range b {
				b[i] = uint8(v)
			}
			return err
		}),
		"first": simdriver.MustKernel(func(g *simdriver.Grid, p driver.Ptr, n, at int64) error {
			b, err := simdriver.View[uint8](g, p, int(n))
			if err == nil {
				b[at] = 7
			}
			return err
		}),
		"alternate": simdriver.MustKernel(func(g *simdriver.Grid, p driver.Ptr, n int64) error {
			b, err := simdriver.View[uint8](g, p, int(n))
			for i := 0; i < len(b); i += 2 {
				b[i] = 1
			}
			return err
		}),
		"twice": simdriver.MustKernel(func(g *simdriver.Grid, p driver.Ptr, n int64) error {
			b, err := simdriver.View[uint8](g, p, int(n))
			if err == nil {
				b[0] = 1
				_, err = simdriver.View[uint8](g, p, int(n))
			}
			return err
		}),
		"read": simdriver.MustKernel(func(g *simdriver.Grid, p driver.Ptr, n int64) error {
			_, err := simdriver.ReadView[uint8](g, p, int(n))
			return err
		}),
	}
	for name, c := range map[string]struct {
		ops  func(launch func(string, driver.Ptr, ...int64) driver.NodeOp, p driver.Ptr) [2]driver.NodeOp
		want string // part of the error if there is no edge; "" if the nodes do not conflict
		// The error is expected only with Config.Deterministic.
		manual bool
	}{
		"fill, fill": {func(_ func(string, driver.Ptr, ...int64) driver.NodeOp, p driver.Ptr) [2]driver.NodeOp {
			return [2]driver.NodeOp{fillOp(p, 1, 32), fillOp(p+16, 2, 32)}
		}, "use 16 bytes", false},
		"fill, fill elsewhere": {func(_ func(string, driver.Ptr, ...int64) driver.NodeOp, p driver.Ptr) [2]driver.NodeOp {
			return [2]driver.NodeOp{fillOp(p, 1, 32), fillOp(p+32, 2, 32)}
		}, "", false},
		"fills that interleave": {func(_ func(string, driver.Ptr, ...int64) driver.NodeOp, p driver.Ptr) [2]driver.NodeOp {
			half := driver.NodeOp{Kind: driver.FillNode, Dst: p, Pattern: 1, Width: 4, Count: 8, Stride: 8}
			other := half
			other.Dst += 4
			return [2]driver.NodeOp{half, other}
		}, "", false},
		"fills that begin in each other": {func(_ func(string, driver.Ptr, ...int64) driver.NodeOp, p driver.Ptr) [2]driver.NodeOp {
			half := driver.NodeOp{Kind: driver.FillNode, Dst: p, Pattern: 1, Width: 4, Count: 4, Stride: 8}
			other := half
			other.Dst += 16
			return [2]driver.NodeOp{half, other}
		}, "nothing orders them", false},
		"kernel writes, kernel reads": {func(launch func(string, driver.Ptr, ...int64) driver.NodeOp, p driver.Ptr) [2]driver.NodeOp {
			return [2]driver.NodeOp{launch("set", p, 64, 5), launch("read", p+32, 8)}
		}, "one, launch of set and two, launch of read of one graph", false},
		"kernel writes every other byte, kernel reads": {func(launch func(string, driver.Ptr, ...int64) driver.NodeOp, p driver.Ptr) [2]driver.NodeOp {
			return [2]driver.NodeOp{launch("alternate", p, 1024), launch("read", p, 1024)}
		}, "one, launch of alternate and two, launch of read of one graph", false},
		"kernels write": {func(launch func(string, driver.Ptr, ...int64) driver.NodeOp, p driver.Ptr) [2]driver.NodeOp {
			return [2]driver.NodeOp{launch("set", p, 64, 5), launch("set", p+32, 8, 6)}
		}, "use 8 bytes", true},
		"kernel writes equal bytes, kernel reads": {func(launch func(string, driver.Ptr, ...int64) driver.NodeOp, p driver.Ptr) [2]driver.NodeOp {
			return [2]driver.NodeOp{launch("set", p, 64, 0), launch("read", p+32, 8)}
		}, "", false},
		"kernel views twice, copy elsewhere": {func(launch func(string, driver.Ptr, ...int64) driver.NodeOp, p driver.Ptr) [2]driver.NodeOp {
			return [2]driver.NodeOp{launch("twice", p, 32), {Kind: driver.CopyNode, Dst: p + 32, Src: p + 16, Count: 16}}
		}, "", false},
		"kernels read": {func(launch func(string, driver.Ptr, ...int64) driver.NodeOp, p driver.Ptr) [2]driver.NodeOp {
			return [2]driver.NodeOp{launch("read", p, 64), launch("read", p, 64)}
		}, "", false},
		"kernels write parts of a common view": {func(launch func(string, driver.Ptr, ...int64) driver.NodeOp, p driver.Ptr) [2]driver.NodeOp {
			return [2]driver.NodeOp{launch("first", p, 64, 3), launch("first", p, 64, 40)}
		}, "", false},
	} {
		for _, manual := range []bool{false, true} {
			for _, ordered := range []bool{false, true} {
				if raceEnabled && c.want != "" && !manual && !ordered {
					continue // the race detector would report the conflict and fail the test
				}
				want := c.want
				if c.manual && !manual {
					want = ""
				}
				t.Run(name, func(t *testing.T) {
					d := simdriver.New(simdriver.Config{Kernels: kernels, Deterministic: manual})
					v := must(d.Open(0))(t)
					defer v.Close()
					m := alloc(t, v, driver.DeviceMem, 1024)
					s := stream(t, v)
					check(t, v.Fill(s, m.Ptr, 0, 1, 1024))
					mod := must(v.Load(simdriver.Image("set", "first", "read", "alternate", "twice")))(t)
					launch := func(name string, p driver.Ptr, args ...int64) driver.NodeOp {
						f, _, err := v.Function(mod, name)
						check(t, err)
						all := []unsafe.Pointer{unsafe.Pointer(&p)}
						for _, a := range args {
							all = append(all, ptr(a))
						}
						return kernelOp(f, all...)
					}
					ops := c.ops(launch, m.Ptr)
					ops[0].Name, ops[1].Name = "one", "two"
					g := graph(t, v)
					first := node(t, v, g, ops[0])
					if ordered {
						node(t, v, g, ops[1], first)
					} else {
						node(t, v, g, ops[1])
					}
					x := instantiate(t, v, g)
					e := event(t, v)
					check(t, graphs(v).LaunchGraph(s, x))
					err := v.Record(e, s) // fails if the graph has already run and lost the device
					d.Run()
					if err == nil {
						err = wait(t, v, e)
					}
					var wrong *simdriver.OrderError
					switch {
					case ordered || want == "":
						check(t, err)
					case !errors.As(err, &wrong) || !errors.Is(err, driver.ErrLost):
						t.Errorf("without an order: %v", err)
					case !strings.Contains(err.Error(), want):
						t.Errorf("%q does not say %q", err, want)
					}
				})
			}
		}
	}
}
