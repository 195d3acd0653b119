package tokenizer

import (
	"cmp"
	"slices"
	"strings"
)

// An addedToken is a token that Encode finds in the text itself, before the merges.
type addedToken struct {
	ID         int32  `json:"id"`
	Content    string `json:"content"`
	SingleWord bool   `json:"single_word"`
	LeftStrip  bool   `json:"lstrip"`
	RightStrip bool   `json:"rstrip"`
	Normalized bool   `json:"normalized"`
	Special    bool   `json:"special"`
}

// A matcher finds added tokens by their first byte. Tokens with the same first byte are sorted,
// longest first.
type matcher [256][]addedToken

func (m *matcher) add(t addedToken) {
	list := &m[t.Content[0]]
	*list = append(*list, t)
	slices.SortStableFunc(*list, func(a, b addedToken) int {
		return cmp.Compare(len(b.Content), len(a.Content))
	})
}

// find returns the place of the first added token in a text, and its ID. If several begin at that
// place, find takes the longest. If there is none, begin and end are both the length of the text.
func (m *matcher) find(text string) (begin, end int, token int32) {
	for i := range len(text) {
		for _, t := range m[text[i]] {
			if strings.HasPrefix(text[i:], t.Content) {
				return i, i + len(t.Content), t.ID
			}
		}
	}
	return len(text), len(text), 0
}
