package cproof

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/puregpu/puregpu/symbols"
)

// A Record says that a table was proven. [Record.Holds] compares the record with a table, without a
// compiler.
type Record struct {
	Table    string    `json:"table"`  // file name
	SHA256   string    `json:"sha256"` // checksum of the table
	Releases []Release `json:"releases"`
}

// A Release records the proof against one release's headers.
type Release struct {
	Version  symbols.Version `json:"version"`
	Compiler string          `json:"compiler"`
	Facts    int             `json:"facts"`
	Headers  []File          `json:"headers"`
}

// Sum returns the SHA-256 checksum of a text in hexadecimal digits.
func Sum(text []byte) string {
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// Release returns the record of a proof.
func (r *Report) Release(v symbols.Version, cc *Compiler) Release {
	return Release{v, cc.Name, r.Right(), r.Files}
}

// Encode returns the record as indented JSON.
func (r *Record) Encode() []byte {
	text, err := json.MarshalIndent(r, "", " ")
	if err != nil {
		panic(err) // every value has a JSON form
	}
	return append(text, '\n')
}

// Decode reads a record.
func Decode(text []byte) (*Record, error) {
	r := &Record{}
	if err := json.Unmarshal(text, r); err != nil {
		return nil, fmt.Errorf("the record of the proof: %w", err)
	}
	return r, nil
}

// Holds reports whether the record is of a table with this text, and proves a release.
func (r *Record) Holds(table []byte) bool { return r.SHA256 == Sum(table) && len(r.Releases) > 0 }

// Same reports whether two records say the same, ignoring the compiler.
func (r *Record) Same(s *Record) bool {
	return r.Table == s.Table && r.SHA256 == s.SHA256 && slices.EqualFunc(r.Releases, s.Releases, func(a, b Release) bool {
		return a.Version == b.Version && a.Facts == b.Facts && slices.Equal(a.Headers, b.Headers)
	})
}
