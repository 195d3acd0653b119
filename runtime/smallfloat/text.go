package smallfloat

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"strconv"
)

// String returns the number as package fmt prints a float32.
func (x Float16) String() string { return string(appendText(nil, x)) }

// String returns the number as package fmt prints a float32.
func (x BFloat16) String() string { return string(appendText(nil, x)) }

// String returns the number as package fmt prints a float32.
func (x Float8E4M3) String() string { return string(appendText(nil, x)) }

// String returns the number as package fmt prints a float32.
func (x Float8E5M2) String() string { return string(appendText(nil, x)) }

// Format prints the number for %v, %s, %e, %f and %g, and the bits for the verbs of integers.
func (x Float16) Format(s fmt.State, verb rune) { format(s, verb, x, uint16(x)) }

// Format prints the number for %v, %s, %e, %f and %g, and the bits for the verbs of integers.
func (x BFloat16) Format(s fmt.State, verb rune) { format(s, verb, x, uint16(x)) }

// Format prints the number for %v, %s, %e, %f and %g, and the bits for the verbs of integers.
func (x Float8E4M3) Format(s fmt.State, verb rune) { format(s, verb, x, uint8(x)) }

// Format prints the number for %v, %s, %e, %f and %g, and the bits for the verbs of integers.
func (x Float8E5M2) Format(s fmt.State, verb rune) { format(s, verb, x, uint8(x)) }

// MarshalText returns the same text as String.
func (x Float16) MarshalText() ([]byte, error) { return appendText(nil, x), nil }

// MarshalText returns the same text as String.
func (x BFloat16) MarshalText() ([]byte, error) { return appendText(nil, x), nil }

// MarshalText returns the same text as String.
func (x Float8E4M3) MarshalText() ([]byte, error) { return appendText(nil, x), nil }

// MarshalText returns the same text as String.
func (x Float8E5M2) MarshalText() ([]byte, error) { return appendText(nil, x), nil }

// UnmarshalText sets x to a number that [strconv.ParseFloat] reads, converted as by [FromFloat64].
func (x *Float16) UnmarshalText(text []byte) error { return parse(x, text) }

// UnmarshalText sets x to a number that [strconv.ParseFloat] reads, converted as by [FromFloat64].
func (x *BFloat16) UnmarshalText(text []byte) error { return parse(x, text) }

// UnmarshalText sets x to a number that [strconv.ParseFloat] reads, converted as by [FromFloat64].
func (x *Float8E4M3) UnmarshalText(text []byte) error { return parse(x, text) }

// UnmarshalText sets x to a number that [strconv.ParseFloat] reads, converted as by [FromFloat64].
func (x *Float8E5M2) UnmarshalText(text []byte) error { return parse(x, text) }

// MarshalJSON returns x as a number of JSON. It returns an error for infinity and NaN, which JSON
// does not have.
func (x Float16) MarshalJSON() ([]byte, error) { return toJSON(x) }

// MarshalJSON returns x as a number of JSON. It returns an error for infinity and NaN, which JSON
// does not have.
func (x BFloat16) MarshalJSON() ([]byte, error) { return toJSON(x) }

// MarshalJSON returns x as a number of JSON. It returns an error for NaN, which JSON does not have.
func (x Float8E4M3) MarshalJSON() ([]byte, error) { return toJSON(x) }

// MarshalJSON returns x as a number of JSON. It returns an error for infinity and NaN, which JSON
// does not have.
func (x Float8E5M2) MarshalJSON() ([]byte, error) { return toJSON(x) }

// UnmarshalJSON sets x to a number of JSON, converted as by [FromFloat64]. It also takes a string
// that UnmarshalText reads, because package json calls UnmarshalJSON for keys of maps too.
func (x *Float16) UnmarshalJSON(text []byte) error { return fromJSON(x, text) }

// UnmarshalJSON sets x to a number of JSON, converted as by [FromFloat64]. It also takes a string
// that UnmarshalText reads, because package json calls UnmarshalJSON for keys of maps too.
func (x *BFloat16) UnmarshalJSON(text []byte) error { return fromJSON(x, text) }

// UnmarshalJSON sets x to a number of JSON, converted as by [FromFloat64]. It also takes a string
// that UnmarshalText reads, because package json calls UnmarshalJSON for keys of maps too.
func (x *Float8E4M3) UnmarshalJSON(text []byte) error { return fromJSON(x, text) }

// UnmarshalJSON sets x to a number of JSON, converted as by [FromFloat64]. It also takes a string
// that UnmarshalText reads, because package json calls UnmarshalJSON for keys of maps too.
func (x *Float8E5M2) UnmarshalJSON(text []byte) error { return fromJSON(x, text) }

// appendText appends the number as strconv formats a float32.
func appendText[T Float](b []byte, x T) []byte {
	return strconv.AppendFloat(b, float64(x.Float32()), 'g', -1, 32)
}

// format prints x, whose bits are given as an integer.
func format[T Float](s fmt.State, verb rune, x T, bits any) {
	switch verb {
	case 's':
		verb = 'v'
		fallthrough
	case 'v', 'e', 'E', 'f', 'F', 'g', 'G':
		bits = x.Float32()
	}
	fmt.Fprintf(s, fmt.FormatString(s, verb), bits)
}

func parse[T Float](x *T, text []byte) error {
	f, err := strconv.ParseFloat(string(text), 64)
	if err != nil && !errors.Is(err, strconv.ErrRange) { // out of range: f is infinite
		return fmt.Errorf("smallfloat: %q is not a %v: write a number such as 1.5, or Inf or NaN", text, reflect.TypeFor[T]())
	}
	*x = FromFloat64[T](f)
	return nil
}

func toJSON[T Float](x T) ([]byte, error) {
	if f := float64(x.Float32()); f != f || math.IsInf(f, 0) {
		return nil, fmt.Errorf("smallfloat: %v is not a number in JSON: write it as a string, with MarshalText", x)
	}
	return appendText(nil, x), nil
}

func fromJSON[T Float](x *T, text []byte) error {
	n := len(text)
	switch {
	case string(text) == "null": // by convention it changes nothing
		return nil
	case n > 1 && text[0] == '"' && text[n-1] == '"':
		return parse(x, text[1:n-1])
	case n == 0 || text[0] != '-' && (text[0] < '0' || text[0] > '9'):
		return fmt.Errorf("smallfloat: %s is not a %v: write a number such as 1.5", text, reflect.TypeFor[T]())
	}
	return parse(x, text)
}
