package tokenizer

// A bpe merges the bytes of a piece of text into tokens: while any two neighbours have a merge, it
// does the merge with the lowest rank. Of several merges with that rank it does the first.
type bpe struct {
	bytes  [256]int32       // tokens of single bytes
	merges map[pair]merge   // merges of two neighbours
	whole  map[string]int32 // tokens of whole pieces, which are not merged; only with ignore_merges
}

// A pair is two tokens that are neighbours.
type pair struct{ left, right int32 }

// A merge is the token that a pair becomes. Lower ranks go first.
type merge struct{ rank, token int32 }

// A merger has the state for one piece, and is used again for the next piece, to save allocations.
type merger struct {
	parts []part
	queue []candidate // a heap
}

// A part is one of the tokens that make up the piece so far. The parts are a linked list.
type part struct {
	token      int32
	prev, next int32 // indexes in parts, -1 at the ends
}

// A candidate is a merge that may be done: rank in the upper half, the left part's index in the
// lower one, so that the smallest number is the next merge. A candidate is out of date if the left
// part and the next part have no merge of that rank any more.
type candidate uint64

// gone is the token of a part that was merged into the part before it.
const gone = -1

// encode appends the tokens of a piece to tokens.
func (b *bpe) encode(m *merger, tokens []int32, piece string) []int32 {
	if token, ok := b.whole[piece]; ok {
		return append(tokens, token)
	}
	m.parts, m.queue = m.parts[:0], m.queue[:0]
	for i := range len(piece) {
		m.parts = append(m.parts, part{b.bytes[piece[i]], int32(i - 1), int32(i + 1)})
	}
	if len(piece) > 0 {
		m.parts[len(piece)-1].next = -1
	}
	for i := range len(piece) {
		b.offer(m, int32(i))
	}
	for len(m.queue) > 0 {
		c := m.pop()
		i := int32(uint32(c))
		p := &m.parts[i]
		if p.token == gone || p.next < 0 {
			continue
		}
		next := &m.parts[p.next]
		to, ok := b.merges[pair{p.token, next.token}]
		if !ok || to.rank != int32(c>>32) {
			continue
		}
		p.token, p.next, next.token = to.token, next.next, gone
		if p.next >= 0 {
			m.parts[p.next].prev = i
		}
		b.offer(m, i)
		if p.prev >= 0 {
			b.offer(m, p.prev)
		}
	}
	for _, p := range m.parts {
		if p.token != gone {
			tokens = append(tokens, p.token)
		}
	}
	return tokens
}

// offer adds the merge of a part and the next part to the queue, if the two have a merge.
func (b *bpe) offer(m *merger, i int32) {
	p := m.parts[i]
	if p.next < 0 {
		return
	}
	if to, ok := b.merges[pair{p.token, m.parts[p.next].token}]; ok {
		m.push(candidate(to.rank)<<32 | candidate(uint32(i)))
	}
}

func (m *merger) push(c candidate) {
	m.queue = append(m.queue, c)
	q, i := m.queue, len(m.queue)-1
	for i > 0 && c < q[(i-1)/2] {
		q[i], i = q[(i-1)/2], (i-1)/2
	}
	q[i] = c
}

func (m *merger) pop() candidate {
	first, n := m.queue[0], len(m.queue)-1
	last := m.queue[n]
	m.queue = m.queue[:n]
	q, i := m.queue, 0
	for child := 1; child < n; child = 2*i + 1 {
		if child+1 < n && q[child+1] < q[child] {
			child++
		}
		if last <= q[child] {
			break
		}
		q[i], i = q[child], child
	}
	if n > 0 {
		q[i] = last
	}
	return first
}
