package kernels

import (
	"math"

	"github.com/puregpu/puregpu/runtime/driver"
	"github.com/puregpu/puregpu/runtime/driver/simdriver"
	"github.com/puregpu/puregpu/runtime/smallfloat"
)

// Sim returns the kernels of a simulated GPU, for simdriver.Config.Kernels.
func Sim() map[string]simdriver.Kernel { return SimLlama(Twins{}) }

// Twins are Go functions that the simulated GPU runs in place of the kernels. Tests also compare
// the kernels with the twins. The twins sum in float64, and round where the kernels round: to 16
// bits at the end of an operation.
type Twins struct{}

// A mem reads and writes the memory of a launch. It keeps the first error.
type mem struct {
	g   *simdriver.Grid
	d   Dims
	err error
}

// view returns n elements of the memory at p, from element first on. After an error it returns
// other memory, so that the twin can go on.
func view[T any](m *mem, p driver.Ptr, first, n int) []T {
	var zero []T
	if m.err == nil {
		var s []T
		if s, m.err = simdriver.View[T](m.g, p+driver.Ptr(first*sizeOf[T]()), n); m.err == nil {
			return s
		}
	}
	return append(zero, make([]T, n)...)
}

func (m *mem) float(v uint16) float32 {
	if m.d.Half == 1 {
		return smallfloat.Float16(v).Float32()
	}
	return smallfloat.BFloat16(v).Float32()
}

func (m *mem) round(v float64) uint16 {
	if m.d.Half == 1 {
		return uint16(smallfloat.ToFloat16(float32(v)))
	}
	return uint16(smallfloat.ToBFloat16(float32(v)))
}

// row returns row i of a matrix of 16-bit numbers, as float32.
func (m *mem) row(p driver.Ptr, i, width int) []float32 {
	list := make([]float32, width)
	for j, v := range view[uint16](m, p, i*width, width) {
		list[j] = m.float(v)
	}
	return list
}

// weights returns row i of a weight matrix.
func (m *mem) weights(w, scale driver.Ptr, fp8 bool, i, in int) []float32 {
	if !fp8 {
		return m.row(w, i, in)
	}
	list, s := make([]float32, in), view[float32](m, scale, i, 1)[0]
	for j, v := range view[uint8](m, w, i*in, in) {
		list[j] = smallfloat.Float8E4M3(v).Float32() * s
	}
	return list
}

// norm returns the RMS norm of a row of x, rounded to 16 bits.
func (m *mem) norm(x, weight driver.Ptr, row int) []float32 {
	width := int(m.d.Width)
	xs, ws := view[float32](m, x, row*width, width), m.row(weight, 0, width)
	sum := 0.
	for _, v := range xs {
		sum += float64(v) * float64(v)
	}
	inverse := 1 / math.Sqrt(sum/float64(width)+float64(m.d.Eps))
	for i, v := range xs {
		ws[i] = m.float(m.round(float64(v) * inverse * float64(ws[i])))
	}
	return ws
}

// numbers returns row i of a matrix of 16-bit numbers, as float64.
func (m *mem) numbers(p driver.Ptr, i, width int) []float64 {
	list := make([]float64, width)
	for j, v := range m.row(p, i, width) {
		list[j] = float64(v)
	}
	return list
}

// positionOf returns a slot's position, or 0 for slot -1.
func (m *mem) positionOf(slot int32, position driver.Ptr) int {
	if slot < 0 {
		return 0
	}
	return int(view[int32](m, position, int(slot), 1)[0])
}

// rows returns all rows of a matrix of 16-bit numbers, as float32.
func (m *mem) rows(p driver.Ptr, n, width int) [][]float32 {
	list := make([][]float32, n)
	for i := range list {
		list[i] = m.row(p, i, width)
	}
	return list
}

// product multiplies each row of a by a weight matrix whose number of rows is out.
func (m *mem) product(a [][]float32, out int, w, scale driver.Ptr, fp8 bool) [][]float64 {
	list := make([][]float64, len(a))
	for i := range list {
		list[i] = make([]float64, out)
	}
	for j := range out {
		ws := m.weights(w, scale, fp8, j, len(a[0]))
		for i, row := range a {
			sum := 0.
			for k, v := range row {
				sum += float64(v) * float64(ws[k])
			}
			list[i][j] = sum
		}
	}
	return list
}

// rotate rotates a head's numbers: number i with number i + HeadDim/2.
func (m *mem) rotate(head []float64, position int, freq []float32) {
	half := len(head) / 2
	for i := range half {
		s, c := math.Sincos(float64(float32(position) * freq[i]))
		s, c = s*float64(m.d.RopeFactor), c*float64(m.d.RopeFactor)
		a, b := head[i], head[i+half]
		head[i], head[i+half] = a*c-b*s, b*c+a*s
	}
}

// page returns the key (kv = 0) or the value (kv = 1) of a head at a position of a slot.
func (m *mem) page(pages, cache driver.Ptr, slot, layer, kv, head, position int) []uint16 {
	d := &m.d
	page := view[int32](m, pages, slot*int(d.MaxPages)+position/PageTokens, 1)[0]
	i := (((int(page)*int(d.Layers)+layer)*2+kv)*int(d.KVHeads) + head) * PageTokens
	return view[uint16](m, cache, (i+position%PageTokens)*int(d.HeadDim), int(d.HeadDim))
}

// place rotates the queries and keys of a row's product. It writes the queries to q, and keys and
// values to the slot's page at the position. With slot -1 the queries become 0, and nothing else is
// written.
func (m *mem) place(res []float64, row, slot, position, layer int, pages, cache, freq, q driver.Ptr) {
	d := &m.d
	dim, heads, kvHeads := int(d.HeadDim), int(d.Heads), int(d.KVHeads)
	qs, fs := view[uint16](m, q, row*heads*dim, heads*dim), view[float32](m, freq, 0, dim/2)
	if slot < 0 {
		clear(qs)
		return
	}
	for h := range heads + 2*kvHeads {
		head, to := res[h*dim:][:dim], qs
		if h < heads+kvHeads {
			m.rotate(head, position, fs)
		}
		if h < heads {
			to = qs[h*dim:]
		} else {
			to = m.page(pages, cache, slot, layer, (h-heads)/kvHeads, (h-heads)%kvHeads, position)
		}
		for i, v := range head {
			to[i] = m.round(v)
		}
	}
}

// attend writes the attention of a row's queries over the positions 0 … last of a slot.
func (m *mem) attend(row, slot, last, layer int, pages, cache, q, a driver.Ptr) {
	d := &m.d
	dim, heads := int(d.HeadDim), int(d.Heads)
	qs, as := m.row(q, row, heads*dim), view[uint16](m, a, row*heads*dim, heads*dim)
	clear(as)
	if slot < 0 {
		return
	}
	kvHeads := int(d.KVHeads)
	for kvHead := range kvHeads {
		keys, values := make([]float32, 0, (last+1)*dim), make([]float32, 0, (last+1)*dim)
		for p := range last + 1 {
			for _, v := range m.page(pages, cache, slot, layer, 0, kvHead, p) {
				keys = append(keys, m.float(v))
			}
			for _, v := range m.page(pages, cache, slot, layer, 1, kvHead, p) {
				values = append(values, m.float(v))
			}
		}
		for h := kvHead * heads / kvHeads; h < (kvHead+1)*heads/kvHeads; h++ {
			weights, top := make([]float64, last+1), math.Inf(-1)
			for p := range weights {
				for i, v := range keys[p*dim:][:dim] {
					weights[p] += float64(qs[h*dim+i]) * float64(v)
				}
				weights[p] /= math.Sqrt(float64(dim))
				top = max(top, weights[p])
			}
			sum, o := 0., make([]float64, dim)
			for p, w := range weights {
				w = math.Exp(w - top)
				sum += w
				for i, v := range values[p*dim:][:dim] {
					o[i] += w * float64(v)
				}
			}
			for i, v := range o {
				as[h*dim+i] = m.round(v / sum)
			}
		}
	}
}

func silu(x float64) float64 { return x / (1 + math.Exp(-x)) }

// Embed writes the embeddings of the slots' tokens.
func (Twins) Embed(g *simdriver.Grid, d Dims, active, token, table, x driver.Ptr) error {
	m := &mem{g: g, d: d}
	width := int(d.Width)
	for r, slot := range view[int32](m, active, 0, int(g.Blocks[0])) {
		to := view[float32](m, x, r*width, width)
		clear(to)
		if slot >= 0 {
			copy(to, m.row(table, int(view[int32](m, token, int(slot), 1)[0]), width))
		}
	}
	return m.err
}

// EmbedChunk writes the embeddings of tokens.
func (Twins) EmbedChunk(g *simdriver.Grid, d Dims, tokens, table, x driver.Ptr) error {
	m := &mem{g: g, d: d}
	width := int(d.Width)
	for r, token := range view[int32](m, tokens, 0, int(g.Blocks[0])) {
		copy(view[float32](m, x, r*width, width), m.row(table, int(token), width))
	}
	return m.err
}

// RmsNorm writes the norm of each row.
func (Twins) RmsNorm(g *simdriver.Grid, d Dims, x, weight, h driver.Ptr) error {
	m := &mem{g: g, d: d}
	width := int(d.Width)
	for r := range int(g.Blocks[0]) {
		to := view[uint16](m, h, r*width, width)
		for i, v := range m.norm(x, weight, r) {
			to[i] = m.round(float64(v))
		}
	}
	return m.err
}

func (m *mem) qkv(a [][]float32, layer int, active, position, pages, cache, freq, w, scale, q driver.Ptr) error {
	slots := view[int32](m, active, 0, len(a))
	for r, res := range m.product(a, m.d.QKVRows(), w, scale, m.d.FP8 == 1) {
		m.place(res, r, int(slots[r]), m.positionOf(slots[r], position), layer, pages, cache, freq, q)
	}
	return m.err
}

func (m *mem) gateUp(a [][]float32, w, scale, g driver.Ptr) error {
	ffn := int(m.d.FFN)
	for r, res := range m.product(a, 2*ffn, w, scale, m.d.FP8 == 1) {
		for i, to := 0, view[uint16](m, g, r*ffn, ffn); i < ffn; i++ {
			to[i] = m.round(silu(res[i]) * res[ffn+i])
		}
	}
	return m.err
}

func (m *mem) add(a [][]float32, add int32, w, scale, x driver.Ptr) error {
	width := int(m.d.Width)
	for r, res := range m.product(a, width, w, scale, m.d.FP8 == 1) {
		for i, to := 0, view[float32](m, x, r*width, width); i < width; i++ {
			to[i] = float32(float64(to[i])*float64(add) + res[i])
		}
	}
	return m.err
}

func (m *mem) logits(a [][]float32, w, logits driver.Ptr) error {
	vocab := int(m.d.Vocab)
	for r, res := range m.product(a, vocab, w, 0, false) {
		for i, to := 0, view[float32](m, logits, r*vocab, vocab); i < vocab; i++ {
			to[i] = float32(res[i])
		}
	}
	return m.err
}

// QkvOne is the operation QKV for one row.
func (Twins) QkvOne(g *simdriver.Grid, d Dims, layer int32, active, position, pages, cache, freq, x, norm, w, scale, q driver.Ptr) error {
	m := &mem{g: g, d: d}
	return m.qkv([][]float32{m.norm(x, norm, 0)}, int(layer), active, position, pages, cache, freq, w, scale, q)
}

// GateUpOne is the operation GateUp for one row.
func (Twins) GateUpOne(g *simdriver.Grid, d Dims, x, norm, w, scale, to driver.Ptr) error {
	m := &mem{g: g, d: d}
	return m.gateUp([][]float32{m.norm(x, norm, 0)}, w, scale, to)
}

// AddOne is the operation Out or Down for one row.
func (Twins) AddOne(g *simdriver.Grid, d Dims, in, add int32, a, w, scale, x driver.Ptr) error {
	m := &mem{g: g, d: d}
	return m.add(m.rows(a, 1, int(in)), add, w, scale, x)
}

// LogitsOne is the operation Logits for one row.
func (Twins) LogitsOne(g *simdriver.Grid, d Dims, x, norm, w, logits driver.Ptr) error {
	m := &mem{g: g, d: d}
	return m.logits([][]float32{m.norm(x, norm, 0)}, w, logits)
}

// The kernels for up to 8, 16, 32 and 64 rows have the same results.

func (Twins) QkvMany8(g *simdriver.Grid, d Dims, rows, layer int32, active, position, pages, cache, freq, h, w, scale, q driver.Ptr) error {
	m := &mem{g: g, d: d}
	return m.qkv(m.rows(h, int(rows), int(d.Width)), int(layer), active, position, pages, cache, freq, w, scale, q)
}

func (t Twins) QkvMany16(g *simdriver.Grid, d Dims, rows, layer int32, active, position, pages, cache, freq, h, w, scale, q driver.Ptr) error {
	return t.QkvMany8(g, d, rows, layer, active, position, pages, cache, freq, h, w, scale, q)
}

func (t Twins) QkvMany32(g *simdriver.Grid, d Dims, rows, layer int32, active, position, pages, cache, freq, h, w, scale, q driver.Ptr) error {
	return t.QkvMany8(g, d, rows, layer, active, position, pages, cache, freq, h, w, scale, q)
}

func (t Twins) QkvMany64(g *simdriver.Grid, d Dims, rows, layer int32, active, position, pages, cache, freq, h, w, scale, q driver.Ptr) error {
	return t.QkvMany8(g, d, rows, layer, active, position, pages, cache, freq, h, w, scale, q)
}

func (Twins) GateUpMany8(g *simdriver.Grid, d Dims, rows int32, h, w, scale, to driver.Ptr) error {
	m := &mem{g: g, d: d}
	return m.gateUp(m.rows(h, int(rows), int(d.Width)), w, scale, to)
}

func (t Twins) GateUpMany16(g *simdriver.Grid, d Dims, rows int32, h, w, scale, to driver.Ptr) error {
	return t.GateUpMany8(g, d, rows, h, w, scale, to)
}

func (t Twins) GateUpMany32(g *simdriver.Grid, d Dims, rows int32, h, w, scale, to driver.Ptr) error {
	return t.GateUpMany8(g, d, rows, h, w, scale, to)
}

func (t Twins) GateUpMany64(g *simdriver.Grid, d Dims, rows int32, h, w, scale, to driver.Ptr) error {
	return t.GateUpMany8(g, d, rows, h, w, scale, to)
}

func (Twins) AddMany8(g *simdriver.Grid, d Dims, rows, in, add int32, a, w, scale, x driver.Ptr) error {
	m := &mem{g: g, d: d}
	return m.add(m.rows(a, int(rows), int(in)), add, w, scale, x)
}

func (t Twins) AddMany16(g *simdriver.Grid, d Dims, rows, in, add int32, a, w, scale, x driver.Ptr) error {
	return t.AddMany8(g, d, rows, in, add, a, w, scale, x)
}

func (t Twins) AddMany32(g *simdriver.Grid, d Dims, rows, in, add int32, a, w, scale, x driver.Ptr) error {
	return t.AddMany8(g, d, rows, in, add, a, w, scale, x)
}

func (t Twins) AddMany64(g *simdriver.Grid, d Dims, rows, in, add int32, a, w, scale, x driver.Ptr) error {
	return t.AddMany8(g, d, rows, in, add, a, w, scale, x)
}

func (Twins) LogitsMany8(g *simdriver.Grid, d Dims, rows int32, h, w, logits driver.Ptr) error {
	m := &mem{g: g, d: d}
	return m.logits(m.rows(h, int(rows), int(d.Width)), w, logits)
}

func (t Twins) LogitsMany16(g *simdriver.Grid, d Dims, rows int32, h, w, logits driver.Ptr) error {
	return t.LogitsMany8(g, d, rows, h, w, logits)
}

func (t Twins) LogitsMany32(g *simdriver.Grid, d Dims, rows int32, h, w, logits driver.Ptr) error {
	return t.LogitsMany8(g, d, rows, h, w, logits)
}

func (t Twins) LogitsMany64(g *simdriver.Grid, d Dims, rows int32, h, w, logits driver.Ptr) error {
	return t.LogitsMany8(g, d, rows, h, w, logits)
}

// Attend computes the attention of each row over its slot's positions.
func (Twins) Attend(g *simdriver.Grid, d Dims, layer int32, active, position, pages, cache, q, a, work driver.Ptr) error {
	m := &mem{g: g, d: d}
	for r, slot := range view[int32](m, active, 0, int(g.Blocks[1])) {
		m.attend(r, int(slot), m.positionOf(slot, position), int(layer), pages, cache, q, a)
	}
	return m.err
}

// RopeChunk rotates a chunk's queries and keys, and writes keys and values to their pages.
func (Twins) RopeChunk(g *simdriver.Grid, d Dims, layer int32, chunk, pages, cache, freq, qkv, q driver.Ptr) error {
	m := &mem{g: g, d: d}
	c := view[int32](m, chunk, 0, 3)
	for r := range min(c[2], int32(g.Blocks[0])) {
		m.place(m.numbers(qkv, int(r), d.QKVRows()), int(r), int(c[0]), int(c[1]+r), int(layer), pages, cache, freq, q)
	}
	return m.err
}

// RopeRows is RopeChunk for the rows of a decode step.
func (Twins) RopeRows(g *simdriver.Grid, d Dims, layer int32, active, position, pages, cache, freq, qkv, q driver.Ptr) error {
	m := &mem{g: g, d: d}
	for r, slot := range view[int32](m, active, 0, int(g.Blocks[0])) {
		m.place(m.numbers(qkv, r, d.QKVRows()), r, int(slot), m.positionOf(slot, position), int(layer), pages, cache, freq, q)
	}
	return m.err
}

// AttendChunk computes the attention of a chunk's tokens.
func (Twins) AttendChunk(g *simdriver.Grid, d Dims, all, layer int32, chunk, pages, cache, q, a driver.Ptr) error {
	m := &mem{g: g, d: d}
	c := view[int32](m, chunk, 0, 3)
	for r := range int(all) {
		slot := int(c[0])
		if r >= int(c[2]) {
			slot = -1
		}
		m.attend(r, slot, int(c[1])+r, int(layer), pages, cache, q, a)
	}
	return m.err
}

// Swiglu computes silu(gate) * up.
func (Twins) Swiglu(g *simdriver.Grid, d Dims, gu, to driver.Ptr) error {
	m := &mem{g: g, d: d}
	ffn := int(d.FFN)
	for r := range int(g.Blocks[0]) {
		from, to := m.row(gu, r, 2*ffn), view[uint16](m, to, r*ffn, ffn)
		for i := range to {
			to[i] = m.round(silu(float64(from[i])) * float64(from[ffn+i]))
		}
	}
	return m.err
}

// Last copies the chunk's last row, and sets the slot's position.
func (Twins) Last(g *simdriver.Grid, d Dims, chunk, position, from, to driver.Ptr) error {
	m := &mem{g: g, d: d}
	c, width := view[int32](m, chunk, 0, 3), int(d.Width)
	copy(view[float32](m, to, 0, width), view[float32](m, from, int(c[2]-1)*width, width))
	view[int32](m, position, int(c[0]), 1)[0] = c[1] + c[2] - 1
	return m.err
}

// Dequantize converts an FP8 matrix to 16-bit numbers.
func (Twins) Dequantize(g *simdriver.Grid, d Dims, in int32, w, scale, dst driver.Ptr) error {
	m := &mem{g: g, d: d}
	for r := range int(g.Blocks[0]) {
		to := view[uint16](m, dst, r*int(in), int(in))
		for i, v := range m.weights(w, scale, true, r, int(in)) {
			to[i] = m.round(float64(v))
		}
	}
	return m.err
}
