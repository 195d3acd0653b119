package recording_test

import (
	"testing"

	"github.com/puregpu/puregpu/runtime/gpu"
)

// BenchmarkRecord records commands, 4,096 in a recording.
func BenchmarkRecord(b *testing.B) {
	for name, record := range map[string]func(c *gpu.CommandBuffer, buf *gpu.Buffer, i uint64) error{
		"fill": func(c *gpu.CommandBuffer, buf *gpu.Buffer, i uint64) error {
			_, err := c.Add(gpu.Fill(buf.Range(8*i, 8), []byte{1, 2, 3, 4}))
			return err
		},
		"copy": func(c *gpu.CommandBuffer, buf *gpu.Buffer, i uint64) error {
			_, err := c.Add(gpu.Copy(buf.Range(8*i, 8), buf.Range(8*(i+1)%(8*4096), 8)))
			return err
		},
		"barrier": func(c *gpu.CommandBuffer, buf *gpu.Buffer, i uint64) error {
			_, err := c.Add(gpu.Barrier())
			return err
		},
	} {
		b.Run(name, func(b *testing.B) {
			dev := idle(b)
			buf, err := dev.Alloc(gpu.DeviceMem, 1<<16)
			must(b, err)
			var c *gpu.CommandBuffer
			i := uint64(0)
			b.ReportAllocs()
			for b.Loop() {
				if i%4096 == 0 {
					if c != nil {
						c.Close()
					}
					c = commandBuffer(b, dev, gpu.StreamMode)
				}
				if err := record(c, buf, i%4096); err != nil {
					b.Fatal(err)
				}
				i++
			}
		})
	}
}

// BenchmarkReplay executes a recording of 16 fills. Each fill comes after the previous one. The
// device does no work.
func BenchmarkReplay(b *testing.B) {
	for name, c := range map[string]struct {
		mode  gpu.Mode
		bound bool
	}{
		"stream": {gpu.StreamMode, false}, "stream, bound": {gpu.StreamMode, true},
		"graph": {gpu.GraphMode, false}, "graph, bound": {gpu.GraphMode, true},
	} {
		b.Run(name, func(b *testing.B) {
			dev := idle(b)
			buf, err := dev.Alloc(gpu.DeviceMem, 1<<16)
			must(b, err)
			r, dst := commandBuffer(b, dev, c.mode), buf
			var bindings [2][]gpu.Range
			if c.bound {
				dst, err = r.Binding()
				must(b, err)
				for i := range bindings {
					bindings[i] = []gpu.Range{buf.Range(uint64(i)<<12, 128)}
				}
			}
			for i := range uint64(16) {
				var after []gpu.Command
				if i > 0 {
					after = []gpu.Command{gpu.Command(i - 1)}
				}
				recorded(b)(r.Add(gpu.Fill(dst.Range(8*i, 8), []byte{1}), after...))
			}
			must(b, r.End())
			s := semaphores(b, 1)[0]
			var signal [1]gpu.Point
			n := uint64(0)
			b.ReportAllocs()
			for b.Loop() {
				n++
				signal[0] = gpu.Point{Semaphore: s, Value: n}
				if err := dev.Queue(0).Submit(gpu.Order{Signal: signal[:]}, gpu.Execute(r, bindings[n%2]...)); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkParams executes a recording of 82 kernels, as a graph and as a replay of calls. In some
// cases each execution changes a scalar that 1 or 48 kernels use. In others it changes the memory
// bound for 16 or for all kernels. The device does no work.
func BenchmarkParams(b *testing.B) {
	const kernels = 82
	for name, c := range map[string]struct {
		params, bindings int // number of kernels with the parameter, and of kernels with a binding
	}{"nothing changed": {0, 0}, "a scalar of one": {1, 0}, "a scalar of 48": {48, 0}, "16 bound anew": {0, 16}, "all bound anew": {0, kernels}} {
		for mode, m := range map[string]gpu.Mode{"graph": gpu.GraphMode, "stream": gpu.StreamMode} {
			b.Run(mode+"/"+name, func(b *testing.B) {
				dev := idle(b)
				k := kernelOf(b, dev, "any")
				r, buf := commandBuffer(b, dev, m), allocate(b, dev, 1<<16)
				p := param(b, r, uint64(0))
				var bindings [2][]gpu.Range
				for i := range kernels {
					args := []any{buf, uint64(1), uint32(2), uint32(3), buf}
					if i < c.params {
						args[1] = p
					}
					if i < c.bindings {
						bound, err := r.Binding()
						must(b, err)
						args[0] = bound
						for set := range bindings {
							bindings[set] = append(bindings[set], buf.Range(uint64(256*(2*i+set)), 8))
						}
					}
					recorded(b)(r.Add(gpu.Launch(k, gpu.Grid{}, args...)))
					recorded(b)(r.Add(gpu.Barrier()))
				}
				must(b, r.End())
				s := semaphores(b, 1)[0]
				var signal [1]gpu.Point
				n := uint64(0)
				b.ReportAllocs()
				for b.Loop() {
					n++
					signal[0] = gpu.Point{Semaphore: s, Value: n}
					op := gpu.Execute(r, bindings[n%2]...)
					if c.params > 0 {
						op = op.With(p.Value(n))
					}
					if err := dev.Queue(0).Submit(gpu.Order{Signal: signal[:]}, op); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
