package extract

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"modernc.org/cc/v4"
)

// A layouter lays out structs and unions as gcc and clang do on Linux, on both amd64 and arm64. It
// refuses a type that these compilers lay out differently. The C front end's own layouts are right
// only without packing, alignment and bit-fields.
type layouter struct {
	stream *stream
	bad    map[string]error // names that are refused
	shapes map[*body]*shape
	odd    bool // the front end gives some type a wrong size or alignment
}

// A shape is the layout of a type.
type shape struct {
	size, align int64
	members     []member // members of a struct or a union
	natural     int64    // the alignment of the Go type
	signed      bool     // the sign of an enumeration
	err         error
}

// A member is a field and its place. A bit-field lies in a unit of its type's size.
type member struct {
	*cc.Field
	offset, size int64
	bits, bit    int64
	natural      int64 // the alignment of the member's Go type
}

// of returns the shape of any type that a member may have.
func (l *layouter) of(t cc.Type) (*shape, error) {
	if td := t.Typedef(); td != nil && l.bad[td.Name()] != nil {
		return nil, fmt.Errorf("uses %s, which is refused", td.Name())
	}
	if isVarArgs(t) {
		return nil, fmt.Errorf("is a va_list, which Go cannot express")
	}
	switch x := t.(type) {
	case *cc.StructType:
		return l.aggregate(t, x.NumFields(), x.FieldByIndex, false)
	case *cc.UnionType:
		return l.aggregate(t, x.NumFields(), x.FieldByIndex, true)
	case *cc.EnumType:
		return l.enum(x)
	case *cc.ArrayType:
		if x.Len() < 0 {
			return nil, fmt.Errorf("is an array without a length, which no Go type has")
		}
		elem, err := l.of(x.Elem())
		if err != nil {
			return nil, err
		}
		return &shape{size: elem.size * x.Len(), align: elem.align, natural: elem.natural}, nil
	}
	if t.Kind() != cc.Ptr && arithmetic(t) == "" || t.Size() <= 0 {
		return nil, fmt.Errorf("has the type %s, which no Go type has", t)
	}
	return &shape{size: t.Size(), align: int64(t.Align()), natural: int64(t.Align())}, nil
}

// isVarArgs reports whether a type is the va_list of C. The front end does not know its size.
func isVarArgs(t cc.Type) bool {
	td := t.Typedef()
	return td != nil && (td.Name() == "va_list" || td.Name() == "__builtin_va_list" || td.Name() == "__gnuc_va_list")
}

// body finds the definition of a struct or a union by the members. It returns nil if there is none.
func (l *layouter) body(n int, field func(int) *cc.Field) *body {
	for i := range n {
		f := field(i)
		if d := f.Declarator(); d != nil && f.Name() != "" {
			if at := l.stream.index(d.NameTok()); at >= 0 {
				return l.stream.bodyAt(at)
			}
			return nil
		}
		if f.Type().Typedef() != nil || tagOf(f.Type()) != "" {
			continue // without a name the field adds no member, and the field's type may be defined elsewhere
		}
		inner := (*body)(nil)
		switch x := f.Type().(type) {
		case *cc.StructType:
			inner = l.body(x.NumFields(), x.FieldByIndex)
		case *cc.UnionType:
			inner = l.body(x.NumFields(), x.FieldByIndex)
		}
		if inner != nil && inner.outer >= 0 {
			return l.stream.bodies[inner.outer]
		}
	}
	return nil
}

func (l *layouter) aggregate(t cc.Type, n int, field func(int) *cc.Field, union bool) (*shape, error) {
	if tag := tagOf(t); l.bad[tag] != nil && tag != "" {
		return nil, fmt.Errorf("uses %s, which is refused", tag)
	}
	if t.IsIncomplete() || n == 0 {
		return nil, fmt.Errorf("has no known members")
	}
	b := l.body(n, field)
	if b == nil {
		return nil, fmt.Errorf("has no named members, so its definition cannot be found")
	}
	s := l.shapes[b]
	if s == nil {
		s = &shape{align: 1, natural: 1}
		l.shapes[b] = s
		s.err = l.place(s, b, n, field, union)
		if s.err == nil {
			l.odd = l.odd || s.size != t.Size() || s.align != int64(t.Align())
		} else if packed, aligned, err := layoutAttributes(b.attrs); packed || aligned > 0 || err != nil || b.pack != 0 || b.repacked {
			l.odd = true
		}
	}
	return s, s.err
}

// place computes the offsets of members.
func (l *layouter) place(s *shape, b *body, n int, field func(int) *cc.Field, union bool) error {
	packed, aligned, err := layoutAttributes(b.attrs)
	switch {
	case err != nil:
		return err
	case b.repacked:
		return fmt.Errorf("has a pragma between its braces, which may change its layout")
	case b.pack != 0 && (packed || aligned > 0):
		return fmt.Errorf("is packed by a pragma and has attributes of alignment, which compilers read differently")
	}
	bits := int64(0) // first bit that the next member may have
	for i := range n {
		f := field(i)
		if f.Declarator() == nil && !f.IsBitfield() && f.Type().Kind() == cc.Int {
			continue // a lone semicolon, which the front end reads as an int
		}
		if f.IsFlexibleArrayMember() {
			return fmt.Errorf("%s: is an array without a length, which no Go type has", f.Name())
		}
		ft, err := l.of(f.Type())
		if err != nil {
			return fmt.Errorf("%s: %w", f.Name(), err)
		}
		attrs, err := l.memberAttributes(b, f)
		if err != nil {
			return fmt.Errorf("%s: %w", f.Name(), err)
		}
		alone, least, err := layoutAttributes(attrs)
		if err != nil {
			return fmt.Errorf("%s: %w", f.Name(), err)
		}
		m := member{Field: f, size: ft.size, natural: ft.natural}
		if f.IsBitfield() {
			if packed || alone || least > 0 || b.pack != 0 { // gcc packs bit-fields even with pack(8)
				return fmt.Errorf("%s: is a bit-field that is packed or aligned, which compilers lay out differently", f.Name())
			}
			if f.Type().Kind() == cc.Enum && ft.size != 4 {
				return fmt.Errorf("%s: is a bit-field of an enumeration of %d bytes, which compilers lay out differently", f.Name(), ft.size)
			}
			if f.Type().Kind() == cc.Char {
				return fmt.Errorf("%s: is a bit-field of type char, which is signed on some machines only", f.Name())
			}
			unit := 8 * ft.size
			width := f.ValueBits()
			if width == 0 || !union && bits%unit+width > unit {
				bits = roundUp(bits, unit)
			}
			if f.Name() == "" {
				if ft.align > s.align { // arm64 aligns the struct to this type, amd64 does not
					return fmt.Errorf("has an unnamed bit-field, which aligns it on some machines only")
				}
			} else {
				s.align = max(s.align, ft.align)
			}
			m.offset, m.bit, m.bits = bits/unit*ft.size, bits%unit, width
			if width == 0 || f.Name() == "" {
				m.bits = 0
			}
			if union {
				s.size = max(s.size, (width+7)/8)
			} else {
				bits += width
			}
			s.natural = max(s.natural, ft.natural)
			if m.bits > 0 {
				s.members = append(s.members, m)
			}
			continue
		}
		if ft.size == 0 {
			return fmt.Errorf("%s: has no size, but its Go type would have one", f.Name())
		}
		align := ft.align
		if packed || alone {
			align = 1
		}
		align = max(align, least)
		if b.pack > 0 {
			if least > 0 {
				return fmt.Errorf("%s: is aligned in a struct that a pragma packs, which compilers read differently", f.Name())
			}
			align = min(align, int64(b.pack))
		}
		s.align, s.natural = max(s.align, align), max(s.natural, ft.natural)
		if union {
			s.size = max(s.size, ft.size)
		} else {
			m.offset = roundUp((bits+7)/8, align)
			bits = 8 * (m.offset + m.size)
		}
		s.members = append(s.members, m)
	}
	if s.size = max(s.size, (bits+7)/8); len(s.members) == 0 {
		return fmt.Errorf("has no members with names")
	}
	s.align = max(s.align, aligned)
	s.size = roundUp(s.size, s.align)
	for _, m := range s.members {
		if m.offset+m.size > s.size {
			return fmt.Errorf("%s: the unit of the bit-field extends beyond the struct", m.Name())
		}
	}
	return nil
}

// inGo returns an error if no Go struct can have the layout. If windows is set, it also returns an
// error if Windows lays out a bit-field differently.
func (s *shape) inGo(union, windows bool) error {
	for i, m := range s.members {
		if m.bits == 0 && m.offset%m.natural != 0 {
			return fmt.Errorf("%s: is packed to offset %d, where no Go struct can have a member of its type", m.Name(), m.offset)
		}
		for _, o := range s.members[:i] {
			if windows && !union && (m.bits > 0 || o.bits > 0) && m.offset < o.offset+o.size && o.offset < m.offset+m.size && (m.bits == 0 || o.bits == 0 || m.size != o.size) {
				return fmt.Errorf("%s: shares the unit of a bit-field, which Windows lays out differently", m.Name())
			}
		}
	}
	if s.size%s.natural != 0 {
		return fmt.Errorf("is packed to %d bytes, which no Go struct with its members has", s.size)
	}
	return nil
}

// memberAttributes returns the attributes of a member's declaration. It leaves out attributes of
// types that are defined inside the declaration.
func (l *layouter) memberAttributes(b *body, f *cc.Field) (list []attribute, err error) {
	s := l.stream
	at := -1
	if d := f.Declarator(); d != nil && f.Name() != "" {
		at = s.index(d.NameTok())
	} else {
		switch x := f.Type().(type) { // an unnamed member, which is at the definition of its type
		case *cc.StructType:
			if inner := l.body(x.NumFields(), x.FieldByIndex); inner != nil {
				at = inner.close
			}
		case *cc.UnionType:
			if inner := l.body(x.NumFields(), x.FieldByIndex); inner != nil {
				at = inner.close
			}
		default:
			return nil, nil // padding; an attribute on it is refused
		}
	}
	if at < b.open || at > b.close {
		return nil, fmt.Errorf("is not found in the text of the struct's definition")
	}
	first := b.open + 1
	for i := first; i < b.close; i++ {
		switch s.tokens[i] {
		case "(", "[", "{":
			i = s.group(i) - 1
		case ";":
			if i >= at {
				return s.ownAttributes(b, first, i), nil
			}
			first = i + 1
		}
	}
	return s.ownAttributes(b, first, b.close), nil
}

// ownAttributes returns the attributes in a range of tokens; the token after the range ends the
// declaration. It leaves out attributes of types that are defined in the range. It sets
// attribute.inside for attributes in brackets, such as a parameter's, and for attributes of a
// pointer.
func (s *stream) ownAttributes(b *body, first, end int) (list []attribute) {
	depth := 0
	for i := first; i <= end; i++ {
		for _, a := range s.attrs[i] {
			if !slices.ContainsFunc(s.bodies, func(x *body) bool {
				return x.open > b.open && x.close < b.close && slices.ContainsFunc(x.attrs, func(y attribute) bool { return y.id == a.id })
			}) {
				a.inside = depth > 0 || i > first && s.tokens[i-1] == "*" // after a star the attribute is the pointer's
				list = append(list, a)
			}
		}
		if i == end {
			break
		}
		switch t := s.tokens[i]; {
		case t == "{":
			i = s.group(i) - 1
		case t == "(" || t == "[":
			depth++
		case t == ")" || t == "]":
			depth--
		case isAlignas(t) && s.tokens[i+1] == "(":
			list = append(list, attribute{name: "aligned", args: s.tokens[i+2 : s.group(i+1)-1], id: -1, inside: depth > 0})
			i = s.group(i+1) - 1
		}
	}
	return list
}

var sizeOfPointer = regexp.MustCompile(`^sizeof \( [\w ]+\* \)$`)

// layoutAttributes reads the attributes packed and aligned.
func layoutAttributes(list []attribute) (packed bool, aligned int64, err error) {
	for _, a := range list {
		switch {
		case a.inside && (a.name == "packed" || a.name == "aligned"):
			return packed, aligned, fmt.Errorf("has the attribute %s in the middle of a declarator, which is not understood there", a.name)
		case a.name == "packed" && len(a.args) == 0:
			packed = true
		case a.name == "aligned" && (len(a.args) == 1 || sizeOfPointer.MatchString(strings.Join(a.args, " "))):
			n, err := int64(8), error(nil)
			if len(a.args) == 1 {
				n, err = strconv.ParseInt(a.args[0], 0, 32)
			}
			if err != nil || n <= 0 || n&(n-1) != 0 || n > 4096 {
				return packed, aligned, fmt.Errorf("has the alignment %s, which is not understood", a.args[0])
			}
			if aligned > 0 && aligned != n {
				return packed, aligned, fmt.Errorf("has two alignments, and compilers choose differently")
			}
			aligned = n
		case a.name == "packed" || a.name == "aligned":
			return packed, aligned, fmt.Errorf("has an attribute %s that is not understood", a.name)
		}
	}
	return packed, aligned, nil
}

// enum returns the size and sign of an enumeration. The type of an enumeration is the stated one,
// or else the smallest of unsigned int, int and their 8-byte forms that holds all values. A packed
// enumeration may also have 1 or 2 bytes.
func (l *layouter) enum(x *cc.EnumType) (*shape, error) {
	if tag := tagOf(x); l.bad[tag] != nil && tag != "" {
		return nil, fmt.Errorf("uses %s, which is refused", tag)
	}
	list := x.Enumerators()
	if len(list) == 0 {
		return nil, fmt.Errorf("is an enumeration without values")
	}
	least, most := int64(0), uint64(0)
	for _, v := range list {
		switch n := v.Value().(type) {
		case cc.Int64Value:
			least = min(least, int64(n))
			most = max(most, uint64(max(0, n)))
		case cc.UInt64Value:
			most = max(most, uint64(n))
		default:
			return nil, fmt.Errorf("enumerator %s has no integer value", v.Token.SrcStr())
		}
	}
	b := l.stream.bodyAt(l.stream.index(list[0].Token))
	if b == nil || b.kind != "enum" {
		return nil, fmt.Errorf("enumerator %s is not found in its definition", list[0].Token.SrcStr())
	}
	packed, aligned, err := layoutAttributes(b.attrs)
	if err != nil {
		return nil, err
	}
	if aligned > 0 {
		return nil, fmt.Errorf("is an aligned enumeration, which compilers read differently")
	}
	if b.fixed {
		under := x.UnderlyingType()
		if arithmetic(under) == "" {
			return nil, fmt.Errorf("is of type %s, which is not understood", under)
		}
		return &shape{size: under.Size(), align: under.Size(), natural: under.Size(), signed: cc.IsSignedInteger(under)}, nil
	}
	sizes := []int64{4, 8}
	if packed {
		sizes = []int64{1, 2, 4, 8}
	}
	s := &shape{signed: least < 0}
	for _, n := range sizes {
		limit := uint64(math.MaxUint64) >> (64 - 8*n)
		if s.signed {
			limit /= 2
		}
		if s.size == 0 && most <= limit && least >= -1<<(8*n-1) {
			s.size = n
		}
	}
	if s.size == 0 {
		return nil, fmt.Errorf("has values that no integer type holds")
	}
	s.align, s.natural = s.size, s.size
	l.odd = l.odd || s.size != x.Size()
	return s, nil
}

func roundUp(n, to int64) int64 { return (n + to - 1) / to * to }
