package smallfloat_test

import (
	"bytes"
	"encoding"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"strings"
	"testing"

	. "github.com/puregpu/puregpu/runtime/smallfloat"
)

func TestString(t *testing.T) {
	for want, x := range map[string]fmt.Stringer{
		"1.5":           ToFloat16(1.5),
		"0.099975586":   ToFloat16(0.1),
		"65504":         MaxFloat16,
		"5.9604645e-08": SmallestNonzeroFloat16,
		"-0":            ToFloat16(float32(math.Copysign(0, -1))),
		"0":             Float16(0),
		"+Inf":          InfFloat16,
		"-Inf":          ToFloat16(float32(math.Inf(-1))),
		"NaN":           NaNFloat16,
		"3.140625":      ToBFloat16(math.Pi),
		"3.3895314e+38": MaxBFloat16,
		"9.1835e-41":    SmallestNonzeroBFloat16,
		"448":           MaxFloat8E4M3,
		"0.001953125":   SmallestNonzeroFloat8E4M3,
		"-3.25":         ToFloat8E4M3(-math.Pi),
		"57344":         MaxFloat8E5M2,
		"3":             ToFloat8E5M2(math.Pi),
	} {
		if got := x.String(); got != want {
			t.Errorf("%T %#x prints %q, want %q", x, x, got, want)
		}
	}
}

func TestFormat(t *testing.T) {
	x := ToFloat16(1.5)
	for format, want := range map[string]string{
		"%v": "1.5", "%+v": "1.5", "%s": "1.5", "%6v|": "   1.5|", "%-6v|": "1.5   |", "%.3v": "1.5",
		"%.2f": "1.50", "%8.2f|": "    1.50|", "%+g": "+1.5", "%e": "1.500000e+00", "%06.1f": "0001.5",
		"%d": "15872", "%#x": "0x3e00", "%016b": "0011111000000000", "%q": "'㸀'", "%z": "%!z(uint16=15872)",
	} {
		if got := fmt.Sprintf(format, x); got != want {
			t.Errorf("%s prints %q, want %q", format, got, want)
		}
	}
	for _, c := range []struct {
		x    any
		want string
	}{
		{[]Float16{ToFloat16(1), ToFloat16(-2)}, "[1 -2]"},
		{[]Float8E4M3{ToFloat8E4M3(1), ToFloat8E4M3(-2)}, "[1 -2]"},
		{[2]BFloat16{ToBFloat16(1), ToBFloat16(0.5)}, "[1 0.5]"},
		{struct{ X Float8E5M2 }{ToFloat8E5M2(3)}, "{3}"},
	} {
		if got := fmt.Sprint(c.x); got != c.want {
			t.Errorf("%T prints %q, want %q", c.x, got, c.want)
		}
	}
}

// A number is a pointer to a type of this package, with the methods that read text.
type number[T Float] interface {
	*T
	encoding.TextUnmarshaler
	json.Unmarshaler
}

// testText writes all values as text and as JSON, and reads them.
func testText[T Float, P number[T]](t *testing.T, width int) {
	for bits := range 1 << width {
		x := T(bits)
		f := float64(x.Float32())
		text, err := any(x).(encoding.TextMarshaler).MarshalText()
		if err != nil || string(text) != fmt.Sprint(x) {
			t.Fatalf("%v: MarshalText = %q, %v", x, text, err)
		}
		var back T
		if err := P(&back).UnmarshalText(text); err != nil {
			t.Fatal(err)
		}
		if want := FromFloat64[T](f); back != want { // x itself, unless x is a NaN, or infinity of a type that converts infinity to its greatest number
			t.Fatalf("%v, %#x, comes back from text as %#x, want %#x", x, x, back, want)
		}
		data, err := json.Marshal(x)
		if f != f || math.IsInf(f, 0) {
			if err == nil || !strings.Contains(err.Error(), "not a number in JSON") {
				t.Fatalf("%v in JSON is %s, %v", x, data, err)
			}
			continue
		}
		back = 0
		if err != nil || !bytes.Equal(data, text) {
			t.Fatalf("%v in JSON is %s, %v", x, data, err)
		}
		if err := json.Unmarshal(data, &back); err != nil || back != x {
			t.Fatalf("%v comes back from JSON as %v, %v", x, back, err)
		}
	}
}

func TestText(t *testing.T) {
	t.Run("Float16", func(t *testing.T) { testText[Float16](t, 16) })
	t.Run("BFloat16", func(t *testing.T) { testText[BFloat16](t, 16) })
	t.Run("Float8E4M3", func(t *testing.T) { testText[Float8E4M3](t, 8) })
	t.Run("Float8E5M2", func(t *testing.T) { testText[Float8E5M2](t, 8) })
}

func TestJSON(t *testing.T) {
	type weights struct {
		Scale Float16
		Rows  []Float8E4M3
		Bias  *BFloat16 `json:",omitempty"`
	}
	in := weights{Scale: ToFloat16(0.25), Rows: []Float8E4M3{ToFloat8E4M3(1), ToFloat8E4M3(448)}}
	data, err := json.Marshal(in)
	if want := `{"Scale":0.25,"Rows":[1,448]}`; err != nil || string(data) != want {
		t.Fatalf("%s, %v, want %s", data, err, want)
	}
	var out weights
	if err := json.Unmarshal([]byte(`{"Scale":-1e5,"Rows":[1e300,0.3],"Bias":null}`), &out); err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(out); got != "{-Inf [448 0.3125] <nil>}" {
		t.Errorf("read %v", got)
	}
	keys := map[Float16]int{ToFloat16(1.5): 1, InfFloat16: 2, NaNFloat16: 3}
	data, err = json.Marshal(keys)
	if want := `{"+Inf":2,"1.5":1,"NaN":3}`; err != nil || string(data) != want {
		t.Errorf("%s, %v, want %s", data, err, want)
	}
	var back map[Float16]int
	if err := json.Unmarshal(data, &back); err != nil || !maps.Equal(back, keys) {
		t.Errorf("keys %v come back as %v, %v", keys, back, err)
	}
	for _, text := range []string{`"one"`, `""`, `true`, `[1]`, `{}`} {
		x := ToFloat16(7)
		if err := json.Unmarshal([]byte(text), &x); err == nil || x != ToFloat16(7) || !strings.Contains(err.Error(), "smallfloat.Float16") {
			t.Errorf("%s is read as %v, %v", text, x, err)
		}
	}
}

func TestUnmarshalText(t *testing.T) {
	for text, want := range map[string]Float16{"1.5": ToFloat16(1.5), "0x1p-1": ToFloat16(0.5), "-inf": 0xfc00, "1e999": InfFloat16, "nan": NaNFloat16} {
		var x Float16
		if err := x.UnmarshalText([]byte(text)); err != nil || x != want {
			t.Errorf("%q is read as %v, %v, want %v", text, x, err, want)
		}
	}
	for _, text := range []string{"", "one", "1,5", "1 "} {
		x := ToFloat16(7)
		if err := x.UnmarshalText([]byte(text)); err == nil || x != ToFloat16(7) || !strings.Contains(err.Error(), "write a number such as 1.5") {
			t.Errorf("%q is read as %v, %v", text, x, err)
		}
	}
}
