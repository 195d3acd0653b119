package dl

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"unsafe"
)

// show writes moves as "<place>=<argument>", with the range of bytes for words of a struct.
func show(moves []move) string {
	var b strings.Builder
	for i, m := range moves {
		if i > 0 {
			b.WriteByte(' ')
		}
		fmt.Fprintf(&b, "%c%d=%d", "ifs"[m.to], m.index, m.arg)
		if m.from >= 0 {
			fmt.Fprintf(&b, "[%d:%d]", m.from, int(m.from)+int(m.size))
		}
	}
	return b.String()
}

func words(from, to int, arg int, format string) string {
	var s []string
	for i := from; i < to; i++ {
		s = append(s, fmt.Sprintf(format, i, arg, (i-from)*8, (i-from)*8+8))
	}
	return strings.Join(s, " ")
}

func TestArrange(t *testing.T) {
	const six = "i0=0 i1=1 i2=2 i3=3 i4=4 i5=5"
	const eightStack = "s0=0 s1=1 s2=2 s3=3 s4=4 s5=5 s6=6 s7=7"
	for _, c := range []struct {
		name, sig        string
		sysv, aapcs, win string
	}{
		{"none", "", "", "", ""},
		{"words", "www", "i0=0 i1=1 i2=2", "i0=0 i1=1 i2=2", "s0=0 s1=1 s2=2"},
		{
			"8-byte struct is a word", "ww", // CUmemLocation
			"i0=0 i1=1", "i0=0 i1=1", "s0=0 s1=1",
		},
		{
			"ten words", "wwwwwwwwww",
			six + " s0=6 s1=7 s2=8 s3=9",
			six + " i6=6 i7=7 s0=8 s1=9",
			eightStack + " s8=8 s9=9",
		},
		{
			"128-byte struct between words", "wws128;w", // ncclCommInitRank
			"i0=0 i1=1 " + words(0, 16, 2, "s%d=%d[%d:%d]") + " i2=3",
			"i0=0 i1=1 i2=2 i3=3",
			"s0=0 s1=1 s2=2 s3=3",
		},
		{
			"64-byte struct after six words", "wwwwwws64;w",
			six + " " + words(0, 8, 6, "s%d=%d[%d:%d]") + " s8=7",
			six + " i6=6 i7=7",
			eightStack,
		},
		{
			"64-byte struct after eight words", "wwwwwwwws64;w",
			six + " s0=6 s1=7 " + words(2, 10, 8, "s%d=%d[%d:%d]") + " s10=9",
			six + " i6=6 i7=7 s0=8 s1=9",
			eightStack + " s8=8 s9=9",
		},
		{
			"two 12-byte structs", "ws12;s12;www", // hipLaunchKernel
			"i0=0 i1=1[0:8] i2=1[8:12] i3=2[0:8] i4=2[8:12] i5=3 s0=4 s1=5",
			"i0=0 i1=1[0:8] i2=1[8:12] i3=2[0:8] i4=2[8:12] i5=3 i6=4 i7=5",
			"s0=0 s1=1 s2=2 s3=3 s4=4 s5=5",
		},
		{
			"16-byte struct, one register left on amd64", "wwwwws16;w",
			"i0=0 i1=1 i2=2 i3=3 i4=4 s0=5[0:8] s1=5[8:16] i5=6",
			"i0=0 i1=1 i2=2 i3=3 i4=4 i5=5[0:8] i6=5[8:16] i7=6",
			"s0=0 s1=1 s2=2 s3=3 s4=4 s5=5 s6=6",
		},
		{
			"16-byte struct, one register left on arm64", "wwwwwwws16;w",
			six + " s0=6 s1=7[0:8] s2=7[8:16] s3=8",
			six + " i6=6 s0=7[0:8] s1=7[8:16] s2=8",
			eightStack + " s8=8",
		},
		{
			"large struct and no register left on arm64", "wwwwwwwws24;s3;",
			six + " s0=6 s1=7 s2=8[0:8] s3=8[8:16] s4=8[16:24] s5=9[0:3]",
			six + " i6=6 i7=7 s0=8 s1=9[0:3]",
			eightStack + " s8=8 s9=9",
		},
		{
			"structs of 5, 24 and 32 bytes", "s5;s24;s32;w",
			"i0=0[0:5] s0=1[0:8] s1=1[8:16] s2=1[16:24] " + words(3, 7, 2, "s%d=%d[%d:%d]") + " i1=3",
			"i0=0[0:5] i1=1 i2=2 i3=3",
			"s0=0 s1=1 s2=2 s3=3",
		},
		{"float", "wwf", "i0=0 i1=1 f0=2", "i0=0 i1=1 f0=2", "s0=0 s1=1 s2=2"},
		{
			"mixed floats", "fwds12;f",
			"f0=0 i0=1 f1=2 i1=3[0:8] i2=3[8:12] f2=4",
			"f0=0 i0=1 f1=2 i1=3[0:8] i2=3[8:12] f2=4",
			"s0=0 s1=1 s2=2 s3=3 s4=4",
		},
		{
			"ten floats", "ddddddddfdw",
			"f0=0 f1=1 f2=2 f3=3 f4=4 f5=5 f6=6 f7=7 s0=8 s1=9 i0=10",
			"f0=0 f1=1 f2=2 f3=3 f4=4 f5=5 f6=6 f7=7 s0=8 s1=9 i0=10",
			eightStack + " s8=8 s9=9 s10=10",
		},
		{
			"structs of floats", "h2f;h2d;h3f;h4d;f",
			"f0=0[0:8] f1=1[0:8] f2=1[8:16] f3=2[0:8] f4=2[8:12] " + words(0, 4, 3, "s%d=%d[%d:%d]") + " f5=4",
			"f0=0[0:4] f1=0[4:8] f2=1[0:8] f3=1[8:16] f4=2[0:4] f5=2[4:8] f6=2[8:12] " + words(0, 4, 3, "s%d=%d[%d:%d]") + " s4=4",
			"s0=0[0:8] s1=1 s2=2 s3=3 s4=4",
		},
		{
			"structs of floats, one register left", "dddddddh2d;h2f;d>d",
			"f0=0 f1=1 f2=2 f3=3 f4=4 f5=5 f6=6 s0=7[0:8] s1=7[8:16] f7=8[0:8] s2=9",
			"f0=0 f1=1 f2=2 f3=3 f4=4 f5=5 f6=6 s0=7[0:8] s1=7[8:16] s2=8[0:8] s3=9",
			eightStack + " s8=8[0:8] s9=9",
		},
	} {
		for a, want := range map[abi]string{sysv64: c.sysv, aapcs64: c.aapcs, win64: c.win} {
			moves, err := arrange(a, c.sig, nil)
			if err != nil {
				t.Errorf("%s, abi %d: %v", c.name, a, err)
			} else if got := show(moves); got != want {
				t.Errorf("%s, abi %d:\n got %s\nwant %s", c.name, a, got, want)
			}
		}
	}
}

func TestMoveValue(t *testing.T) {
	b := []byte{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}
	args := []uintptr{uintptr(unsafe.Pointer(&b[0]))}
	if v := (move{from: 0, size: 8}).value(args); uint64(v) != 0x0807060504030201 {
		t.Errorf("first word %#x", v)
	}
	if v := (move{from: 8, size: 4}).value(args); v != 0x0c0b0a09 {
		t.Errorf("last word %#x", v)
	}
	if v := (move{from: -1}).value(args); v != args[0] {
		t.Errorf("whole word %#x", v)
	}
	runtime.KeepAlive(b)
}

func TestSigErrors(t *testing.T) {
	for sig, want := range map[string]string{
		"x":                      `signature "x": unknown code 'x'`,
		"ws":                     `signature "s": want s<size>;`,
		"s;":                     `signature "s;": want s<size>;`,
		"s12":                    `signature "s12": want s<size>;`,
		"s12w":                   `signature "s12w": want s<size>;`,
		"s8;":                    `signature "s8;": a struct of 8 bytes is not an s`,
		"s0;":                    `signature "s0;": a struct of 0 bytes is not an s`,
		"h5f;":                   `signature "h5f;": want h<1 to 4>f; or h<1 to 4>d;`,
		"wh2w;":                  `signature "h2w;": want h<1 to 4>f; or h<1 to 4>d;`,
		"w>w":                    `signature ">w": unknown code '>'`,
		"s4097;":                 `signature "s4097;": struct larger than 4096 bytes`,
		"s99999999999999999999;": `signature "s99999999999999999999;": struct larger than 4096 bytes`,
		strings.Repeat("w", 65):  "signature of 65 parameters, more than 64",
	} {
		if _, err := countParams(sig); err == nil || err.Error() != want {
			t.Errorf("%q: error %v, want %s", sig, err, want)
		}
		if _, err := arrange(sysv64, sig, nil); err == nil {
			t.Errorf("%q: arranged", sig)
		}
	}
}

// FuzzSig checks that no signature makes the parser or the function arrange panic, that both accept
// the same signatures, and that no two words get the same place.
func FuzzSig(f *testing.F) {
	for _, s := range []string{"", "w", "wws128;w", "ws12;s12;www", "fwds12;f", "s", "s8;", "x", "s4096;s4096;", "h2f;>d", "wh4d;h3f;fffffh2d;h1f;w>f", "h5f;", "h2w;"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, sig string) {
		n, err := countParams(sig)
		for _, a := range []abi{sysv64, aapcs64, win64} {
			moves, aerr := arrange(a, sig, nil)
			if (err == nil) != (aerr == nil) {
				t.Fatalf("%q: parse %v, arrange %v", sig, err, aerr)
			}
			if err != nil {
				continue
			}
			type spot struct {
				to    place
				index uint16
			}
			seen := map[spot]bool{}
			args := map[uint8]bool{}
			for _, m := range moves {
				s := spot{m.to, m.index}
				if seen[s] {
					t.Fatalf("%q, abi %d: two words in %v", sig, a, s)
				}
				if m.to != inStack && m.index >= 8 {
					t.Fatalf("%q, abi %d: register %d", sig, a, m.index)
				}
				seen[s] = true
				args[m.arg] = true
			}
			for i := range stackWords(moves) {
				if !seen[spot{inStack, uint16(i)}] {
					t.Fatalf("%q, abi %d: stack word %d is empty", sig, a, i)
				}
			}
			if len(args) != n {
				t.Fatalf("%q, abi %d: %d of %d arguments", sig, a, len(args), n)
			}
		}
	})
}
