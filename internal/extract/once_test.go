package extract

import (
	"slices"
	"testing"
)

// TestOnce checks that reports about the same record in several releases become one.
func TestOnce(t *testing.T) {
	var got []string
	add, flush := once(func(s string) { got = append(got, s) })
	for _, s := range []string{
		"struct S has another layout in 1.1: 4 bytes", "it is so", "struct S has another layout in 1.0: 2 bytes", "it is so",
		"enumerator E.A is 1 in 1.4, and 2 where it is bound", "enumerator E.A is 1 in 1.3, and 2 where it is bound", "enumerator E.A is 1 in 1.2, and 2 where it is bound",
		"f differs in 3.0", "f differs in 2.0", "f differs in 1.4", "f differs in 1.3", "f differs in 1.2", "f is deprecated in 3.0",
	} {
		add(s)
	}
	flush()
	want := []string{
		"struct S has another layout in 1.1 and 1.0: 4 bytes", "it is so", "enumerator E.A is 1 in 1.4, 1.3 and 1.2, and 2 where it is bound",
		"f differs in 3.0 and 4 other releases", "f is deprecated in 3.0",
	}
	if !slices.Equal(got, want) {
		t.Errorf("%q\nwant %q", got, want)
	}
	add, flush = once(nil)
	add("nobody hears it")
	flush()
}
