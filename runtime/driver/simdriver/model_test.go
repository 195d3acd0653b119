package simdriver_test

import (
	"bytes"
	"math/rand/v2"
	"testing"
	"unsafe"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/driver/simdriver"
)

// A world holds a few buffers with contents, and streams that change them.
type world struct {
	t       *testing.T
	r       *rand.Rand
	d       *simdriver.Driver
	devices []driver.Device
	streams []driver.Stream // stream i is on device i%2
	mix     []driver.Function
	mem     []driver.Mem
	model   [][]byte // the expected contents

	wrote []int         // for each buffer, the stream that wrote it last
	read  []map[int]int // for each buffer, the streams that have read it since its last write, and the times of the reads
	time  []int         // for each stream, the number of operations submitted
	since []int         // for each buffer, the time of the last write in its stream
	seen  [][]int       // for each stream, the time in each other stream up to which it waits
	wait  bool          // if false, streams do not wait for each other
}

const bufferSize = 256

func newWorld(t *testing.T, seed uint64, c simdriver.Config, wait bool) *world {
	c.Devices = 2
	c.Kernels = kernels(map[string]any{
		// b = 3·b + a + k
		"mix": func(g *simdriver.Grid, a, b driver.Ptr, k uint8) error {
			as, err := simdriver.View[byte](g, a, bufferSize)
			if err != nil {
				return err
			}
			bs, err := simdriver.View[byte](g, b, bufferSize)
			mix(bs, as, k)
			return err
		},
	})
	w := &world{t: t, r: rand.New(rand.NewPCG(seed, 1)), wait: wait}
	w.d, w.devices = open(t, c)
	for i, v := range w.devices {
		check(t, peers(v).EnablePeer(w.devices[1-i]))
	}
	for i := range 5 {
		v := w.devices[i%2]
		w.streams = append(w.streams, stream(t, v))
		w.mix = append(w.mix, function(t, v, "mix"))
		w.seen = append(w.seen, make([]int, 5))
		w.time = append(w.time, 0)
	}
	for i := range 6 {
		w.mem = append(w.mem, alloc(t, w.devices[i%2], driver.MemKind(i%3), bufferSize))
		w.model = append(w.model, make([]byte, bufferSize))
		w.wrote, w.since = append(w.wrote, -1), append(w.since, 0)
		w.read = append(w.read, make(map[int]int))
	}
	return w
}

func mix(b, a []byte, k uint8) {
	for i := range b {
		b[i] = 3*b[i] + a[i] + k
	}
}

// after makes stream s wait until stream o has executed as many operations as the parameter time
// says. It does nothing if s already waits for them.
func (w *world) after(s, o, time int) {
	if o < 0 || o == s || w.seen[s][o] >= time || !w.wait {
		return
	}
	e := record(w.t, w.devices[o%2], w.streams[o])
	check(w.t, w.devices[s%2].StreamWait(w.streams[s], e))
	if w.d.Counters().Devices[o%2].Events > 50 && w.devices[o%2].Caps().RerecordEvents {
		// Recording the event again does not affect the wait.
		check(w.t, w.devices[o%2].Record(e, w.streams[w.r.IntN(2)*2+o%2]))
	}
	w.seen[s][o] = w.time[o]
}

// reads makes stream s wait until s may read buffer i. world.writes does the same for writing.
func (w *world) reads(s, i int) {
	w.after(s, w.wrote[i], w.since[i])
	w.read[i][s] = w.time[s] + 1
}

func (w *world) writes(s, i int) {
	w.after(s, w.wrote[i], w.since[i])
	for o, time := range w.read[i] {
		w.after(s, o, time)
	}
	clear(w.read[i])
	w.wrote[i], w.since[i] = s, w.time[s]+1
}

// act submits a random operation, and applies its effect to the model.
func (w *world) act() {
	s := w.r.IntN(len(w.streams))
	v, h := w.devices[s%2], w.streams[s]
	i, j := w.r.IntN(len(w.mem)), w.r.IntN(len(w.mem))
	from := driver.Ptr(w.r.IntN(bufferSize))
	n := w.r.IntN(bufferSize - int(from) + 1)
	switch w.r.IntN(4) {
	case 0:
		x := w.r.Uint32()
		w.writes(s, i)
		check(w.t, v.Fill(h, w.mem[i].Ptr+from, x, 1, uint64(n)))
		copy(w.model[i][from:], bytes.Repeat([]byte{byte(x)}, n))
	case 1:
		if i == j {
			return
		}
		w.reads(s, j)
		w.writes(s, i)
		check(w.t, v.Copy(h, w.mem[i].Ptr+from, w.mem[j].Ptr, uint64(n)))
		copy(w.model[i][from:], w.model[j][:n])
	case 2:
		if i == j {
			return
		}
		k := uint8(w.r.Uint32())
		w.reads(s, j)
		w.writes(s, i)
		check(w.t, launch(v, h, w.mix[s], unsafe.Pointer(&w.mem[j].Ptr), unsafe.Pointer(&w.mem[i].Ptr), unsafe.Pointer(&k)))
		mix(w.model[i], w.model[j], k)
	case 3:
		b := bytes.Repeat([]byte{byte(w.r.Uint32())}, bufferSize)
		w.writes(s, i)
		check(w.t, v.Upload(h, w.mem[i].Ptr, unsafe.Pointer(&b[0]), bufferSize))
		copy(w.model[i], b)
	}
	w.time[s]++
}

// right reports whether the memory equals the model.
func (w *world) right() bool {
	run := func() {
		if w.d.Step() {
			w.d.Run()
		}
	}
	var ends []driver.Event
	for i, s := range w.streams {
		ends = append(ends, record(w.t, w.devices[i%2], s))
	}
	run()
	for i, e := range ends {
		check(w.t, wait(w.t, w.devices[i%2], e))
	}
	for i, m := range w.mem {
		b := make([]byte, bufferSize)
		check(w.t, w.devices[0].Download(w.streams[0], unsafe.Pointer(&b[0]), m.Ptr, bufferSize))
		e := record(w.t, w.devices[0], w.streams[0])
		run()
		check(w.t, wait(w.t, w.devices[0], e))
		if !bytes.Equal(b, w.model[i]) {
			return false
		}
	}
	return true
}

// TestModel submits random work, which events order, and compares the memory with that of a
// sequential run. Under the race detector TestModel also shows that the simulator orders the work
// as the events do.
func TestModel(t *testing.T) {
	hip := simdriver.HIPCaps()
	for name, c := range map[string]simdriver.Config{
		"concurrent": {}, "hip": {Caps: &hip}, "deterministic": {Deterministic: true},
	} {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(20) {
				c.Seed = seed
				w := newWorld(t, seed, c, true)
				for range 3 {
					for range 100 {
						w.act()
					}
					if !w.right() {
						t.Fatalf("seed %d: the memory is wrong", seed)
					}
				}
			}
		})
	}
}

// TestModelNotices leaves the waits out, and checks that some order of execution then gives another
// result.
func TestModelNotices(t *testing.T) {
	wrong := 0
	for seed := range uint64(10) {
		w := newWorld(t, 7, simdriver.Config{Deterministic: true, Seed: seed}, false)
		for range 100 {
			w.act()
		}
		if !w.right() {
			wrong++
		}
	}
	if wrong == 0 {
		t.Error("no order showed that the waits are missing")
	}
}
