package persist

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/driver/simdriver"
	"github.com/puregpu/puregpu/runtime/examples/llama/internal/peer"
	"github.com/puregpu/puregpu/runtime/gpu"
)

// two opens two devices of a driver that has access to each other's memory.
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
		// part copies part r of rows, and of columns.
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

// launch launches operations on all ranks, and then waits for them.
func (m *team) launch(ops []gpu.Op) {
	t := m.whole.t
	t.Helper()
	for r, b := range m.ranks {
		if err := b.stream.Do(ops[r]); err != nil {
			t.Fatal(err)
		}
	}
	for r, b := range m.ranks {
		if err := b.stream.Wait(context.Background()); err != nil {
			t.Fatal(err)
		}
		if err := m.peers[r].Err(); err != nil {
			t.Fatal(err)
		}
	}
}

// testTeam compares a team with the whole model on one device, over a sequence of tokens. Then it
// decodes the last token again many times: each result must have the same bits, in all ranks.
func testTeam(t *testing.T, devices []*gpu.Device, d Dims, allowed float64, repeat int, defines ...string) {
	m := newTeam(t, devices, d, 0)
	tune := Tuning{Defines: defines}
	alone := m.whole.decoder(tune)
	var ops []gpu.Op
	for _, b := range m.ranks {
		ops = append(ops, gpu.Execute(record(b, b.decoder(tune), 1)))
	}
	step := func(token, position int) []float32 {
		for _, b := range m.ranks {
			b.set(token, position)
		}
		m.launch(ops)
		first := m.ranks[0].logits()
		for r, b := range m.ranks[1:] {
			if !slices.Equal(b.logits(), first) {
				t.Fatalf("position %d: the logits of rank %d differ from those of rank 0", position, r+1)
			}
		}
		return first
	}
	const length = 2*PageTokens + 3
	for position := range length {
		token := position * 37 % int(d.Vocab)
		m.whole.set(token, position)
		m.whole.do(alone.Op())
		if e := difference(step(token, position), m.whole.logits()); !(e < allowed) {
			t.Fatalf("position %d: logits differ by %.2g from those of one device", position, e)
		}
	}
	first := step(1, length)
	for range repeat {
		if !slices.Equal(step(1, length), first) {
			t.Fatal("decoding a token again gave other logits")
		}
	}
}

func TestTeam(t *testing.T) {
	half := tinySize()
	half.Half, half.RopeFactor = 1, 1.3
	for name, d := range map[string]Dims{"bfloat16": tinySize(), "float16": half} {
		t.Run(name, func(t *testing.T) { testTeam(t, simulatedTwo(t), d, 1e-3, 3) })
	}
}

// testLost launches a step on one rank only. The rank gives up, and later steps end at once.
func testLost(t *testing.T, devices []*gpu.Device) {
	m := newTeam(t, devices, tinySize(), time.Second/10)
	var all []*Decoder
	for _, b := range m.ranks {
		all = append(all, b.decoder(Tuning{}))
	}
	m.ranks[0].set(1, 0)
	for range 3 {
		m.ranks[0].do(all[0].Op())
	}
	if err := m.peers[0].Err(); err == nil || !strings.Contains(err.Error(), "was lost, or did not get the same work") {
		t.Errorf("a step without the other rank: error %v", err)
	}
	if err := m.peers[1].Err(); err != nil {
		t.Errorf("the rank that did nothing: error %v", err)
	}
}

func TestTeamLost(t *testing.T) { testLost(t, simulatedTwo(t)) }

// TestTeamRefused checks that New refuses a team whose words have no room.
func TestTeamRefused(t *testing.T) {
	d := tinySize()
	d.Width = 1 << 17
	if _, err := d.plan(132, 232448, 2, Tuning{}); err == nil || !strings.Contains(err.Error(), "there is room for") {
		t.Errorf("error %v", err)
	}
}
