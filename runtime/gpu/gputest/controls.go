package gputest

import (
	"encoding/binary"

	"github.com/puregpu/puregpu/runtime/control"
	"github.com/puregpu/puregpu/runtime/gpu"
)

var controls = []test{
	{name: "B201 if, switch and while, nested, recorded and not, on the device and on the host", run: func(e *env) {
		e.eachMode(func(e *env, m gpu.Mode) {
			const n = 8 // numbers in the list
			b := e.buffer(256)
			list, err := gpu.SliceOf[uint32](b.Range(0, 4*n))
			e.must(err)
			kind, err := gpu.SliceOf[uint32](b.Range(64, 4))
			e.must(err)
			out, spare := b.Range(128, 4), b.Range(192, 4*(n-1))
			fills := func(v byte) gpu.Op {
				c := e.commands(m)
				c.fill(out, []byte{v})
				c.end()
				return gpu.Execute(c.CommandBuffer)
			}
			// A step of the loop copies the first number of the list to kind[0], executes the case
			// for that number, and removes the number from the list.
			step := e.commands(m)
			step.copy(kind.Range(), list.Slice(0, 1).Range())
			step.barrier()
			step.add(control.Switch(kind, fills(9), gpu.Barrier(), fills(1), fills(2)))
			step.barrier()
			step.copy(spare, list.Slice(1, n).Range())
			step.barrier()
			step.copy(list.Slice(0, n-1).Range(), spare)
			step.end()
			loop := control.While(list, gpu.Execute(step.CommandBuffer))
			outer := e.commands(m)
			at := outer.add(loop)
			outer.add(control.IfElse(list, fills(0), gpu.Barrier()), at)
			outer.end()
			if why, err := control.Host(outer.CommandBuffer, at); err != nil || m == gpu.StreamMode && why == "" {
				e.Errorf("the host runs the loop because %q, %v", why, err)
			}
			for _, x := range []struct {
				list []uint32
				out  byte
			}{{[]uint32{1, 2, 0, 5}, 2}, {[]uint32{2, 1, 0}, 1}, {[]uint32{1, 2, 7, 3, 0}, 9}, {[]uint32{0, 1}, 77}} {
				for _, op := range []gpu.Op{loop, gpu.Execute(outer.CommandBuffer)} {
					data, got := make([]byte, 4*n), make([]byte, 4)
					for i, v := range x.list {
						binary.NativeEndian.PutUint32(data[4*i:], v)
					}
					s := e.q(0).NewStream()
					e.must(s.Do(gpu.Upload(list.Range(), data), gpu.Fill(out, []byte{77}), op, gpu.Download(got, out)))
					e.must(s.Wait(e.ctx))
					if got[0] != x.out {
						e.Errorf("%v, %v: the last choice is %d, want %d", op, x.list, got[0], x.out)
					}
				}
			}
		})
	}},
}
