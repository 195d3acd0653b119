package persist

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/driver/simdriver"
	"github.com/puregpu/puregpu/runtime/examples/llama/internal/peer"
	"github.com/puregpu/puregpu/runtime/gpu"
)

// two opens the first two devices of a driver, or skips the test.
func two(t *testing.T, d driver.Driver) []*gpu.Device {
	t.Helper()
	g, err := gpu.OpenGroup(d, gpu.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := g.Close(); err != nil {
			t.Error(err)
		}
	})
	if len(g.Devices()) < 2 {
		t.Skip("there is one GPU only")
	}
	return g.Devices()[:2]
}

func simulatedTwo(t *testing.T) []*gpu.Device {
	t.Helper()
	kernels := peer.Sim()
	for name, k := range SimPersist(Twins{}) {
		kernels[name] = k
	}
	return two(t, simdriver.New(simdriver.Config{Devices: 2, Memory: 1 << 33, Kernels: kernels}))
}

// A team is a model that ranks share.
type team struct {
	whole *bench // the same model on the device of rank 0
	ranks []*bench
	peers []*peer.Sum
}

func newTeam(t *testing.T, devices []*gpu.Device, d Dims, patience time.Duration) *team {
	t.Helper()
	peers, err := peer.New(t.Context(), devices, patience)
	if errors.Is(err, gpu.ErrUnsupported) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for _, p := range peers {
			if err := p.Close(); err != nil {
				t.Error(err)
			}
		}
	})
	m := &team{whole: newBench(t, devices[0], d, 8), peers: peers}
	m.whole.fillCache(0)
	n := len(devices)
	for r, dev := range devices {
		b := newBench(t, dev, d.of(int32(n)), 8)
		b.args.Rank = peers[r]
		b.fillCache(0)
		m.ranks = append(m.ranks, b)
		from, to := &m.whole.args, &b.args
		// part copies the part of rank r: rows of each matrix, or columns if acrossColumns is set.
		part := func(to, from gpu.Range, columns int, rows []int, acrossColumns bool) {
			all := make([]uint16, from.Size/2)
			m.whole.do(gpu.Download(gpu.BytesOf(all), from))
			var some []uint16
			for _, n := range rows { // several matrices, one below the other
				matrix := all[:n*columns]
				all = all[n*columns:]
				for i, row := range slices.Collect(slices.Chunk(matrix, columns)) {
					switch {
					case acrossColumns:
						some = append(some, row[r*columns/len(devices):(r+1)*columns/len(devices)]...)
					case i/(n/len(devices)) == r:
						some = append(some, row...)
					}
				}
			}
			b.do(gpu.Upload(to, gpu.BytesOf(some)))
		}
		whole := func(to, from gpu.Range) {
			all := make([]byte, from.Size)
			m.whole.do(gpu.Download(all, from))
			b.do(gpu.Upload(to, all))
		}
		width, dim := int(d.Width), int(d.HeadDim)
		q, kv, ffn := int(d.Heads)*dim, int(d.KVHeads)*dim, int(d.FFN)
		for i := range from.Layers {
			from, to := &from.Layers[i], &to.Layers[i]
			whole(to.Norm1, from.Norm1)
			part(to.QKV, from.QKV, width, []int{q, kv, kv}, false)
			part(to.Out, from.Out, q, []int{width}, true)
			whole(to.Norm2, from.Norm2)
			part(to.GateUp, from.GateUp, width, []int{ffn, ffn}, false)
			part(to.Down, from.Down, ffn, []int{width}, true)
		}
		whole(to.Embeddings, from.Embeddings)
		whole(to.LastNorm, from.LastNorm)
		whole(to.Head, from.Head)
	}
	return m
}

// wait waits for all ranks.
func (m *team) wait() {
	t := m.whole.t
	t.Helper()
	for r, b := range m.ranks {
		if err := b.stream.Wait(context.Background()); err != nil {
			t.Fatal(err)
		}
		if err := m.peers[r].Err(); err != nil {
			t.Fatal(err)
		}
	}
}

// logits returns the logits, which must have the same bits in all ranks.
func (m *team) logits() []float32 {
	t := m.whole.t
	t.Helper()
	first := m.ranks[0].logits()
	for r, b := range m.ranks[1:] {
		if !slices.Equal(b.logits(), first) {
			t.Fatalf("the logits of rank %d differ from those of rank 0", r+1)
		}
	}
	return first
}

// testTeam compares a team with the whole model on one device, over a sequence of tokens. Then
// testTeam decodes one token many times, in launches that follow each other: the logits must not
// change.
func testTeam(t *testing.T, devices []*gpu.Device, d Dims, allowed float64, length, repeat int) {
	m := newTeam(t, devices, d, 0)
	alone := m.whole.decoder(Tuning{})
	const ahead = 5
	var once, several []gpu.Op
	for _, b := range m.ranks {
		c := b.decoder(Tuning{})
		once, several = append(once, gpu.Execute(record(b, c, 1))), append(several, gpu.Execute(record(b, c, ahead)))
	}
	step := func(token, position int) []float32 {
		for _, b := range m.ranks {
			b.set(token, position)
		}
		for r, b := range m.ranks {
			b.stream.Do(once[r])
		}
		m.wait()
		return m.logits()
	}
	for position := range length {
		token := position * 37 % int(d.Vocab)
		m.whole.set(token, position)
		m.whole.do(alone.Op())
		if e := difference(step(token, position), m.whole.logits()); !(e < allowed) {
			t.Fatalf("position %d: logits differ by %.2g from those of one device", position, e)
		}
	}
	first := step(1, length)
	var late []gpu.Range
	for _, b := range m.ranks {
		late = append(late, b.alloc(1<<24).All())
	}
	for i := range repeat {
		for r, b := range m.ranks {
			if r == i%len(m.ranks) { // this rank begins later
				b.stream.Do(gpu.Fill(late[r], []byte{1}), gpu.Fill(late[r], []byte{2}))
			}
			for range ahead {
				// Steps without a slot, between the others, do nothing.
				b.stream.Do(several[r], b.args.Active.Fill(-1), once[r], b.args.Active.Fill(b.slot), once[r])
			}
		}
		m.wait()
		if !slices.Equal(m.logits(), first) {
			t.Fatal("decoding a token again gave other logits")
		}
	}
}

func TestTeam(t *testing.T) {
	half := tinySize()
	half.Half, half.RopeFactor = 1, 1.3
	for name, d := range map[string]Dims{"bfloat16": tinySize(), "float16": half} {
		t.Run(name, func(t *testing.T) { testTeam(t, simulatedTwo(t), d, 1e-3, 2*PageTokens+3, 3) })
	}
}

// testLost checks that a rank gives up if the other rank launches nothing, and that later steps and
// sums of the rank that gave up wait only for milliseconds. A launch of the step clears sh.lost, so
// it polls until it reads the host's word.
func testLost(t *testing.T, devices []*gpu.Device) {
	m := newTeam(t, devices, tinySize(), time.Second/10)
	var all []*Decoder
	for _, b := range m.ranks {
		all = append(all, b.decoder(Tuning{}))
	}
	b := m.ranks[0]
	b.set(1, 0)
	b.do(all[0].Op())
	if err := m.peers[0].Err(); err == nil || !strings.Contains(err.Error(), "for the numbers of rank 1: its GPU was lost, or did not get the same work") {
		t.Errorf("a step without the other rank: error %v", err)
	}
	x := slice(b, make([]float32, 8))
	all[0].peers.Patience = uint64(time.Hour)
	b.do(all[0].Op(), m.peers[0].Op(x.Slice(0, 4), x.Slice(4, 8), 4), all[0].Op())
	if err := m.peers[1].Err(); err != nil {
		t.Errorf("the rank that did nothing: error %v", err)
	}
}

func TestTeamLost(t *testing.T) { testLost(t, simulatedTwo(t)) }

// TestTeamRefused checks that New refuses teams that the kernel cannot run.
func TestTeamRefused(t *testing.T) {
	devices := simulatedTwo(t)
	m := newTeam(t, devices, tinySize(), 0)
	b := m.ranks[0]
	if _, err := New(t.Context(), devices[1], b.dims, b.args, Tuning{}); !errors.Is(err, gpu.ErrArgument) {
		t.Errorf("another rank's device: error %v", err)
	}
	d := b.dims
	d.Width = 1 << 17
	if _, err := d.plan(132, 232448, 2, Tuning{}); !errors.Is(err, gpu.ErrUnsupported) || !strings.Contains(err.Error(), "there is room for") {
		t.Errorf("words that need more than the scratch memory: error %v", err)
	}
	d.FFN = 36 // for each rank
	if _, err := New(t.Context(), devices[0], d, b.args, Tuning{}); !errors.Is(err, gpu.ErrUnsupported) {
		t.Errorf("an FFN that the ranks do not divide well: error %v", err)
	}
}
