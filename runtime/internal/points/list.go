package points

import "slices"

// A list holds points ordered by value, and points of the same value in the order in which they
// were added. The points are in chunks of up to chunkSize points, and a directory lists the chunks.
// Adding a point moves only points of one chunk. Entries of the directory move only if that chunk
// overflows. Adding at either end usually moves nothing, because chunks and directory have room on
// both sides.
type list[T comparable] struct {
	dir    row[entry[T]]
	spare  []*row[Point[T]] // empty chunks for reuse, each with room for chunkSize points
	peak   int              // largest number of chunks since the list was last empty
	moved  int              // number of points and entries moved since the list was made; for tests
	first  row[Point[T]]    // the chunk with which an empty list begins; grows from 2 to chunkSize
	points [2]Point[T]      // storage of first.buf for two points
	entry  [1]entry[T]      // storage of dir.buf for one entry
}

// chunkSize is the capacity of a chunk, in points.
const chunkSize = 256

// An entry of the directory describes a chunk. No value of a point of the chunk is below the field
// low, and no value of an earlier chunk is above low.
type entry[T comparable] struct {
	low   uint64
	chunk *row[Point[T]]
}

// add adds a point after all points with the same or a lower value.
func (l *list[T]) add(p Point[T]) {
	dir := l.dir.all()
	if len(dir) == 0 {
		l.begin()
		dir = l.dir.all()
	}
	k := len(dir) - 1
	c := dir[k].chunk
	at := c.len()
	if at > 0 && c.buf[c.high-1].Value > p.Value { // usually the point comes last
		k, at = 0, 0
		if c = dir[0].chunk; c.buf[c.low].Value <= p.Value { // otherwise it often comes first
			k = max(l.search(p.Value, false)-1, 0)
			c = dir[k].chunk
			at = search(c.all(), p.Value, false)
		}
	}
	if k == 0 && at == 0 {
		dir[0].low = p.Value
	}
	if !c.fits(at) {
		c, at = l.room(k, at, p.Value)
	}
	l.moved += c.insert(at, p)
}

// fits reports whether an element can be inserted at index i. At an end of a row that is more than
// half full, fits requires free room on that side. Otherwise each element added at that end would
// move all others.
func (r *row[E]) fits(i int) bool {
	switch n := r.len(); {
	case n == len(r.buf):
		return false
	case i == n:
		return r.high < len(r.buf) || n <= len(r.buf)/2
	case i == 0:
		return r.low > 0 || n <= len(r.buf)/2
	}
	return true
}

// begin adds the first chunk to the empty list.
func (l *list[T]) begin() {
	c := &l.first
	if c.buf == nil {
		c.buf = l.points[:]
	}
	if l.dir.buf == nil {
		l.dir.buf = l.entry[:]
	}
	l.moved += l.dir.insert(0, entry[T]{chunk: c})
	l.peak = 1
}

// room makes room for a point in chunk k, in which it does not fit (see fits). The parameter at is
// the index for the point in that chunk, and value is the value of the point. room may split the
// chunk or add a new chunk. It returns the chunk with the room, and the index for the point in that
// chunk.
func (l *list[T]) room(k, at int, value uint64) (*row[Point[T]], int) {
	c := l.dir.all()[k].chunk
	n := c.len()
	if len(c.buf) < chunkSize { // only l.first can be that small, and then it is the only chunk
		l.moved += c.resize(min(4*len(c.buf), chunkSize), at < n/2)
		return c, at
	}
	next := l.take()
	switch {
	case at == n && k == l.dir.len()-1:
		next.low, next.high = 0, 0
		l.addChunk(k+1, value, next)
		return next, 0
	case at == 0 && k == 0:
		next.low, next.high = chunkSize, chunkSize
		l.dir.all()[0].low = c.buf[c.low].Value
		l.addChunk(0, value, next)
		return next, 0
	}
	half := n / 2
	upper := c.all()[half:]
	next.low = (chunkSize - len(upper)) / 2
	next.high = next.low + copy(next.buf[next.low:], upper)
	clear(upper)
	c.high -= len(upper)
	l.moved += len(upper)
	l.addChunk(k+1, next.buf[next.low].Value, next)
	if at > half {
		return next, at - half
	}
	return c, at
}

// addChunk inserts the chunk c into the directory at k.
func (l *list[T]) addChunk(k int, low uint64, c *row[Point[T]]) {
	if d := &l.dir; !d.fits(k) {
		l.moved += d.resize(max(2*len(d.buf), 8), k < d.len()/2)
	}
	l.moved += l.dir.insert(k, entry[T]{low, c})
	l.peak = max(l.peak, l.dir.len())
}

// take returns an empty chunk with room for chunkSize points: a spare one, or a new one.
func (l *list[T]) take() *row[Point[T]] {
	if n := len(l.spare); n > 0 {
		c := l.spare[n-1]
		l.spare[n-1] = nil
		l.spare = l.spare[:n-1]
		return c
	}
	c := new(row[Point[T]])
	c.buf = make([]Point[T], chunkSize)
	return c
}

// front returns the first point, which is the lowest, or nil if the list is empty.
func (l *list[T]) front() *Point[T] {
	if l.dir.low == l.dir.high {
		return nil
	}
	c := l.dir.buf[l.dir.low].chunk
	return &c.buf[c.low]
}

// back returns the last point, which is the highest, or nil if the list is empty.
func (l *list[T]) back() *Point[T] {
	if l.dir.low == l.dir.high {
		return nil
	}
	c := l.dir.buf[l.dir.high-1].chunk
	return &c.buf[c.high-1]
}

// pop removes the first point. A list that becomes empty keeps only as many spare chunks as it has
// needed since it was last empty.
func (l *list[T]) pop() {
	c := l.dir.buf[l.dir.low].chunk
	c.buf[c.low] = Point[T]{}
	if c.low++; c.low < c.high {
		return
	}
	c.low, c.high = 0, 0
	l.dir.buf[l.dir.low] = entry[T]{}
	l.dir.low++
	if c != &l.first {
		l.spare = append(l.spare, c)
	}
	if l.dir.low == l.dir.high {
		l.dir.low, l.dir.high = 0, 0
		if n := l.peak; len(l.spare) > n {
			l.spare = slices.Delete(l.spare, n, len(l.spare))
		}
	}
}

// find returns the position of the first point whose value is not below the given one. The result k
// is the index of the point's chunk in the directory, and the result at is the index of the point
// in the chunk. If there is no such point, k is the number of chunks.
func (l *list[T]) find(value uint64) (k, at int) {
	dir := l.dir.all()
	if len(dir) == 0 {
		return 0, 0
	}
	k = len(dir) - 1
	c := dir[k].chunk
	switch n := c.len(); { // usually the point is the last one, or there is none
	case c.buf[c.high-1].Value < value:
		return k + 1, 0
	case n > 1 && c.buf[c.high-2].Value < value:
		return k, n - 1
	}
	k = max(l.search(value, true)-1, 0)
	c = dir[k].chunk
	if at = search(c.all(), value, true); at == c.len() {
		return k + 1, 0
	}
	return k, at
}

// search returns the number of directory entries whose field low is less than the given value. If
// the parameter below is false, it also counts entries whose low is equal to that value.
func (l *list[T]) search(value uint64, below bool) int {
	dir := l.dir.all()
	low, high := 0, len(dir)
	for low < high {
		if middle := int(uint(low+high) / 2); dir[middle].low < value || !below && dir[middle].low == value {
			low = middle + 1
		} else {
			high = middle
		}
	}
	return low
}

// search returns the number of points with values less than the given value. If the parameter below
// is false, it also counts points with exactly that value.
func search[T comparable](points []Point[T], value uint64, below bool) int {
	low, high := 0, len(points)
	for low < high {
		if middle := int(uint(low+high) / 2); points[middle].Value < value || !below && points[middle].Value == value {
			low = middle + 1
		} else {
			high = middle
		}
	}
	return low
}

// A row is a slice with room at both ends: its elements are buf[low:high].
type row[E any] struct {
	buf       []E
	low, high int
}

func (r *row[E]) len() int { return r.high - r.low }

func (r *row[E]) all() []E { return r.buf[r.low:r.high] }

// insert inserts e at index i of a row that has room for it (see fits). It returns the number of
// elements moved.
func (r *row[E]) insert(i int, e E) (moved int) {
	n := r.len()
	if i == n && r.high < len(r.buf) {
		r.buf[r.high] = e
		r.high++
		return 0
	}
	front := 2*i < n || n == 0 // move the elements in front of i, because they are fewer than those behind
	if front && r.low == 0 || !front && r.high == len(r.buf) {
		if n <= len(r.buf)/2 {
			moved = r.resize(len(r.buf), front)
		} else {
			front = !front
		}
	}
	if front {
		r.low--
		moved += copy(r.buf[r.low:], r.buf[r.low+1:r.low+1+i])
	} else {
		moved += copy(r.buf[r.low+i+1:], r.buf[r.low+i:r.high])
		r.high++
	}
	r.buf[r.low+i] = e
	return moved
}

// resize moves the elements to new storage of the given size. The free room is in front of them if
// front is set, otherwise behind them. If size is the present size, resize moves the elements to
// the middle of the same storage. It returns the number of elements moved.
func (r *row[E]) resize(size int, front bool) (moved int) {
	old := r.all()
	low := 0
	if size == len(r.buf) {
		low = (size - len(old)) / 2
	}
	if front {
		low = size - len(old) - low
	}
	high := low + len(old)
	if size == len(r.buf) {
		copy(r.buf[low:], old)
		clear(r.buf[:low])
		clear(r.buf[high:])
	} else {
		r.buf = make([]E, size)
		copy(r.buf[low:], old)
	}
	r.low, r.high = low, high
	return len(old)
}
