package kernelobject

// An unpacker reads values of MessagePack one after the other and keeps none of them, so that values that
// nobody asks for take no memory. Each method reads one value whole, of whatever kind it is. Once a value
// is cut off or no value begins, the unpacker is broken and all further values are empty.
type unpacker struct {
	b      []byte
	broken bool
}

// A kind is what begins a value.
type kind int

const (
	kindOther kind = iota // nil, a boolean, a negative number, a float, bytes, an extension
	kindNumber
	kindText
	kindList
	kindMap
)

// take returns the next n bytes.
func (u *unpacker) take(n uint64) []byte {
	if n > uint64(len(u.b)) {
		u.b, u.broken = nil, true
		return nil
	}
	b := u.b[:n]
	u.b = u.b[n:]
	return b
}

// count reads a number of so many bytes.
func (u *unpacker) count(bytes uint64) (n uint64) {
	for _, c := range u.take(bytes) {
		n = n<<8 | uint64(c)
	}
	return n
}

// head reads the beginning of a value: of a number all, of a text its length, of a list or a map the
// number of values in it. Of others it reads all.
func (u *unpacker) head() (kind, uint64) {
	first := u.take(1)
	if u.broken {
		return kindOther, 0
	}
	// inside checks a count of values, each of which has a byte at least.
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

// rest reads the rest of a value that begins so.
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

// skip reads a value.
func (u *unpacker) skip() { u.rest(u.head()) }

// text returns a text, empty if the value is none.
func (u *unpacker) text() []byte {
	k, n := u.head()
	if k == kindText {
		return u.take(n)
	}
	u.rest(k, n)
	return nil
}

// number returns a number, 0 if the value is none or is negative.
func (u *unpacker) number() uint64 {
	k, n := u.head()
	if k == kindNumber {
		return n
	}
	u.rest(k, n)
	return 0
}

// items calls a function for each value of a list, which reads it. Of another value it calls none.
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

// fields calls a function for each key of a map, which reads the value. Of another value it calls none.
func (u *unpacker) fields(read func(key string)) {
	k, n := u.head()
	if k != kindMap {
		u.rest(k, n)
		return
	}
	for ; n > 0 && !u.broken; n -= 2 {
		const longest = 64 // of the keys that are read
		key := u.text()
		read(string(key[:min(len(key), longest)]))
	}
}
