package kernelobject

// An unpacker reads consecutive MessagePack values and keeps none of them, so that unused values
// take no memory. The methods skip, text, number, items and fields each read one complete value of
// any kind. After a truncated value the unpacker is broken, and all further values are empty.
type unpacker struct {
	b      []byte
	broken bool
}

// A kind is the kind of a value, known from its first byte.
type kind int

const (
	kindOther kind = iota // nil, a boolean, a negative number, a float, bytes or an extension
	kindNumber
	kindText
	kindList
	kindMap
)

// take returns the next n bytes, or nil if there are fewer.
func (u *unpacker) take(n uint64) []byte {
	if n > uint64(len(u.b)) {
		u.b, u.broken = nil, true
		return nil
	}
	b := u.b[:n]
	u.b = u.b[n:]
	return b
}

// count reads a big-endian number of the given number of bytes.
func (u *unpacker) count(bytes uint64) (n uint64) {
	for _, c := range u.take(bytes) {
		n = n<<8 | uint64(c)
	}
	return n
}

// head reads the beginning of a value: a complete number, the length of a text, or the number of
// values in a list or map. It reads values of other kinds completely.
func (u *unpacker) head() (kind, uint64) {
	first := u.take(1)
	if u.broken {
		return kindOther, 0
	}
	// inside checks a number of values against the remaining bytes, since each value takes at least
	// one byte.
	inside := func(k kind, n uint64) (kind, uint64) {
		if n > uint64(len(u.b)) {
			u.b, u.broken = nil, true
			return kindOther, 0
		}
		return k, n
	}
	switch c := first[0]; {
	case c < 0x80:
		return kindNumber, uint64(c)
	case c < 0x90:
		return inside(kindMap, 2*uint64(c&15))
	case c < 0xa0:
		return inside(kindList, uint64(c&15))
	case c < 0xc0:
		return kindText, uint64(c & 31)
	case c >= 0xc4 && c <= 0xc6: // bytes
		u.take(u.count(1 << (c - 0xc4)))
	case c >= 0xc7 && c <= 0xc9: // an extension: length, kind, bytes
		u.take(u.count(1<<(c-0xc7)) + 1)
	case c == 0xca || c == 0xcb: // floats
		u.take(4 << (c - 0xca))
	case c >= 0xcc && c <= 0xcf:
		return kindNumber, u.count(1 << (c - 0xcc))
	case c >= 0xd0 && c <= 0xd3: // signed
		bytes := uint64(1) << (c - 0xd0)
		if n := u.count(bytes); n>>(8*bytes-1) == 0 {
			return kindNumber, n
		}
	case c >= 0xd4 && c <= 0xd8: // an extension of fixed length
		u.take(1 + 1<<(c-0xd4))
	case c >= 0xd9 && c <= 0xdb:
		return kindText, u.count(1 << (c - 0xd9))
	case c == 0xdc || c == 0xdd:
		return inside(kindList, u.count(2<<(c-0xdc)))
	case c == 0xde || c == 0xdf:
		return inside(kindMap, 2*u.count(2<<(c-0xde)))
	}
	return kindOther, 0
}

// rest reads the rest of a value after its head.
func (u *unpacker) rest(k kind, n uint64) {
	switch k {
	case kindText:
		u.take(n)
	case kindList, kindMap:
		for n > 0 && !u.broken {
			k, more := u.head()
			n--
			switch k {
			case kindText:
				u.take(more)
			case kindList, kindMap:
				n += more
			}
		}
	}
}

// skip skips a value.
func (u *unpacker) skip() { u.rest(u.head()) }

// text returns a text, or nothing for a value of another kind.
func (u *unpacker) text() []byte {
	k, n := u.head()
	if k == kindText {
		return u.take(n)
	}
	u.rest(k, n)
	return nil
}

// number returns a number, or 0 for a negative number or another kind.
func (u *unpacker) number() uint64 {
	k, n := u.head()
	if k == kindNumber {
		return n
	}
	u.rest(k, n)
	return 0
}

// items reads a list. It calls the function read for each value of the list; the function must read
// the value. items skips a value of another kind.
func (u *unpacker) items(read func()) {
	k, n := u.head()
	if k != kindList {
		u.rest(k, n)
		return
	}
	for ; n > 0 && !u.broken; n-- {
		read()
	}
}

// fields reads a map. It calls the function read for each key; the function must read the key's
// value. fields skips a value of another kind.
func (u *unpacker) fields(read func(key string)) {
	k, n := u.head()
	if k != kindMap {
		u.rest(k, n)
		return
	}
	for ; n > 0 && !u.broken; n -= 2 {
		const longest = 64 // no key that matters is longer
		key := u.text()
		read(string(key[:min(len(key), longest)]))
	}
}
