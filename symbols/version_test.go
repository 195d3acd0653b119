package symbols

import (
	"encoding/json"
	"testing"
)

func TestParseVersion(t *testing.T) {
	tests := []struct {
		in   string
		want Version
		text string // "" for an error
	}{
		{"12", Version{12, 0, 0}, "12.0"},
		{"12.5", Version{12, 5, 0}, "12.5"},
		{"2.28.3", Version{2, 28, 3}, "2.28.3"},
		{"2.28.0", Version{2, 28, 0}, "2.28"},
		{"0.0", Version{}, "0.0"},
		{"0.0.7", Version{0, 0, 7}, "0.0.7"},
		{"", Version{}, ""},
		{"1.", Version{}, ""},
		{".1", Version{}, ""},
		{"1..2", Version{}, ""},
		{"1.2.3.4", Version{}, ""},
		{"-1.2", Version{}, ""},
		{"+1", Version{}, ""},
		{"1.x", Version{}, ""},
		{" 1.2", Version{}, ""},
		{"2147483648", Version{}, ""}, // too large for an int of 32 bits
	}
	for _, tt := range tests {
		got, err := ParseVersion(tt.in)
		if tt.text == "" {
			if err == nil {
				t.Errorf("ParseVersion(%q) = %v, want an error", tt.in, got)
			}
			continue
		}
		if err != nil || got != tt.want || got.String() != tt.text {
			t.Errorf("ParseVersion(%q) = %v, %v; want %v written %q", tt.in, got, err, tt.want, tt.text)
		}
		again, err := ParseVersion(got.String())
		if err != nil || again != got {
			t.Errorf("ParseVersion(%q) = %v, %v after a round trip", got.String(), again, err)
		}
	}
}

func TestVersionCompareOrdersByAge(t *testing.T) {
	ordered := []Version{{}, {0, 0, 1}, {0, 1, 0}, {1, 0, 0}, {2, 4, 0}, {2, 4, 2}, {2, 19, 1}, {12, 0, 0}}
	for i, v := range ordered {
		for j, w := range ordered {
			got := v.Compare(w)
			if want := i - j; got < 0 != (want < 0) || got > 0 != (want > 0) {
				t.Errorf("%v.Compare(%v) = %d", v, w, got)
			}
		}
		if v.IsZero() != (i == 0) {
			t.Errorf("%v.IsZero() = %t", v, v.IsZero())
		}
	}
}

func TestVersionIsTextInJSON(t *testing.T) {
	type record struct {
		Since Version `json:"since,omitzero"`
	}
	for _, want := range []string{`{}`, `{"since":"12.3"}`, `{"since":"2.4.2"}`} {
		var r record
		if err := json.Unmarshal([]byte(want), &r); err != nil {
			t.Fatal(err)
		}
		got, err := json.Marshal(r)
		if err != nil || string(got) != want {
			t.Errorf("round trip of %s gives %s, %v", want, got, err)
		}
	}
	var r record
	if err := json.Unmarshal([]byte(`{"since":"new"}`), &r); err == nil {
		t.Error("a version that is not a number was accepted")
	}
}
