package tokenizer

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// file is tokenizer.json. Truncation and padding are left out: programs choose them for each text.
type file struct {
	Added         []addedToken `json:"added_tokens"`
	Normalizer    *component   `json:"normalizer"`
	PreTokenizer  *component   `json:"pre_tokenizer"`
	PostProcessor *component   `json:"post_processor"`
	Decoder       *component   `json:"decoder"`
	Model         bpeComponent `json:"model"`
}

// A component is a normalizer, a pre-tokenizer, a post-processor or a decoder, or a list of those.
type component struct {
	Type string `json:"type"`

	Normalizers   []component `json:"normalizers"`
	PreTokenizers []component `json:"pretokenizers"`
	Processors    []component `json:"processors"`

	PrefixSpace      bool                   `json:"add_prefix_space"`  // ByteLevel
	UseRegex         *bool                  `json:"use_regex"`         // ByteLevel
	IndividualDigits bool                   `json:"individual_digits"` // Digits
	Pattern          struct{ Regex string } `json:"pattern"`           // Split
	Behavior         string                 `json:"behavior"`          // Split
	Invert           bool                   `json:"invert"`            // Split

	Single  []templatePart `json:"single"` // TemplateProcessing
	Special map[string]struct {
		IDs []int32 `json:"ids"`
	} `json:"special_tokens"` // TemplateProcessing
}

// A templatePart is the text or a special token around it.
type templatePart struct {
	SpecialToken *struct {
		ID string `json:"id"`
	}
	Sequence *struct {
		ID string `json:"id"`
	}
}

// bpeComponent is the model of tokenizer.json.
type bpeComponent struct {
	Type         string           `json:"type"`
	Dropout      float64          `json:"dropout"`
	Prefix       string           `json:"continuing_subword_prefix"`
	Suffix       string           `json:"end_of_word_suffix"`
	ByteFallback bool             `json:"byte_fallback"`
	IgnoreMerges bool             `json:"ignore_merges"`
	Vocab        map[string]int32 `json:"vocab"`
	Merges       []mergeText      `json:"merges"`
}

// A mergeText is two texts: a list of them, or one text with a space between them in older files.
type mergeText [2]string

func (m *mergeText) UnmarshalJSON(b []byte) error {
	if b[0] == '[' {
		return json.Unmarshal(b, (*[2]string)(m))
	}
	var text string
	err := json.Unmarshal(b, &text)
	m[0], m[1], _ = strings.Cut(text, " ")
	return err
}

// Load reads tokenizer.json of a folder. It refuses a file that this package would not follow
// exactly.
func Load(dir string) (*Tokenizer, error) {
	path := filepath.Join(dir, "tokenizer.json")
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	t, err := parse(b)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return t, nil
}

func parse(b []byte) (*Tokenizer, error) {
	var f file
	if err := json.Unmarshal(b, &f); err != nil {
		return nil, err
	}
	t := new(Tokenizer)
	if err := t.readModel(&f.Model); err != nil {
		return nil, fmt.Errorf("model: %w", err)
	}
	if err := t.readAdded(f.Added); err != nil {
		return nil, fmt.Errorf("added_tokens: %w", err)
	}
	if n := f.Normalizer; n != nil && (n.Type != "Sequence" || len(n.Normalizers) > 0) {
		return nil, fmt.Errorf("normalizer: %s is not supported", n.Type)
	}
	if d := f.Decoder; d == nil || d.Type != "ByteLevel" {
		return nil, errors.New("decoder: only ByteLevel is supported")
	}
	if err := t.readPreTokenizer(f.PreTokenizer); err != nil {
		return nil, fmt.Errorf("pre_tokenizer: %w", err)
	}
	if err := t.readPostProcessor(f.PostProcessor); err != nil {
		return nil, fmt.Errorf("post_processor: %w", err)
	}
	return t, nil
}

// maxVocab is above the number of tokens of any model.
const maxVocab = 1 << 22

// set gives a token its text.
func (t *Tokenizer) set(token int32, text string, special bool) error {
	if token < 0 || token >= maxVocab {
		return fmt.Errorf("token %q has number %d: must be from 0 to %d", text, token, maxVocab-1)
	}
	for int(token) >= len(t.texts) {
		t.texts = append(t.texts, make([]string, int(token)+1-len(t.texts))...)
		t.special = append(t.special, make([]bool, len(t.texts)-len(t.special))...)
	}
	t.texts[token], t.special[token] = text, special
	return nil
}

func (t *Tokenizer) readModel(m *bpeComponent) error {
	switch {
	case m.Type != "BPE" && m.Type != "":
		return fmt.Errorf("type %s is not supported: only BPE is", m.Type)
	case m.Dropout != 0:
		return errors.New("dropout is not supported")
	case m.Prefix != "":
		return errors.New("continuing_subword_prefix is not supported")
	case m.Suffix != "":
		return errors.New("end_of_word_suffix is not supported")
	case m.ByteFallback:
		return errors.New("byte_fallback is true: only byte-level BPE is supported")
	}
	if m.IgnoreMerges {
		t.bpe.whole = make(map[string]int32, len(m.Vocab))
	}
	alphabet := newAlphabet()
	for text, token := range m.Vocab {
		raw := alphabet.decode(text)
		if int(token) < len(t.texts) && token >= 0 && t.texts[token] != "" {
			return fmt.Errorf("tokens %q and %q have the same number %d", raw, t.texts[token], token)
		}
		if err := t.set(token, raw, false); err != nil {
			return err
		}
		if m.IgnoreMerges {
			t.bpe.whole[raw] = token
		}
	}
	for b, r := range alphabet.runes {
		token, ok := m.Vocab[string(r)]
		if !ok {
			return fmt.Errorf("byte %#02x has no token: only byte-level BPE is supported", b)
		}
		t.bpe.bytes[b] = token
	}
	t.bpe.merges = make(map[pair]merge, len(m.Merges))
	for rank, texts := range m.Merges {
		left, ok1 := m.Vocab[texts[0]]
		right, ok2 := m.Vocab[texts[1]]
		token, ok3 := m.Vocab[texts[0]+texts[1]]
		if !ok1 || !ok2 || !ok3 {
			return fmt.Errorf("merge %d, of %q and %q: vocab lacks them or their sum", rank, texts[0], texts[1])
		}
		t.bpe.merges[pair{left, right}] = merge{int32(rank), token}
	}
	return nil
}

func (t *Tokenizer) readAdded(added []addedToken) error {
	for _, a := range added {
		if a.Content == "" {
			return fmt.Errorf("token %d has no text", a.ID)
		}
		if a.SingleWord || a.LeftStrip || a.RightStrip {
			return fmt.Errorf("token %q: single_word, lstrip and rstrip are not supported", a.Content)
		}
		if err := t.set(a.ID, a.Content, a.Special); err != nil {
			return err
		}
		pass := 0
		if a.Normalized {
			pass = 1
		}
		t.added[pass].add(a)
	}
	return nil
}

func (t *Tokenizer) readPreTokenizer(c *component) error {
	if c == nil {
		return errors.New("there is none: only byte-level BPE is supported")
	}
	list := []component{*c}
	if c.Type == "Sequence" {
		list = c.PreTokenizers
	}
	for i, c := range list {
		switch c.Type {
		case "ByteLevel":
			if c.PrefixSpace {
				return errors.New("add_prefix_space is true: not supported")
			}
			if i != len(list)-1 {
				return errors.New("ByteLevel must come last")
			}
			if c.UseRegex == nil || *c.UseRegex {
				t.splits = append(t.splits, splitGPT2)
			}
			return nil
		case "Split":
			if c.Behavior != "Isolated" || c.Invert {
				return fmt.Errorf("Split with behavior %q and invert %v: only Isolated and false are supported", c.Behavior, c.Invert)
			}
			s, err := splitOf(c.Pattern.Regex)
			if err != nil {
				return err
			}
			t.splits = append(t.splits, s)
		case "Digits":
			if !c.IndividualDigits {
				return errors.New("Digits without individual_digits is not supported")
			}
			t.splits = append(t.splits, splitDigits)
		default:
			return fmt.Errorf("%s is not supported", c.Type)
		}
	}
	return errors.New("no ByteLevel: only byte-level BPE is supported")
}

func (t *Tokenizer) readPostProcessor(c *component) error {
	if c == nil || c.Type == "ByteLevel" { // ByteLevel changes offsets only
		return nil
	}
	if c.Type == "Sequence" {
		for i := range c.Processors {
			if err := t.readPostProcessor(&c.Processors[i]); err != nil {
				return err
			}
		}
		return nil
	}
	if c.Type != "TemplateProcessing" || t.before != nil || t.after != nil {
		return fmt.Errorf("%s is not supported: only one TemplateProcessing is", c.Type)
	}
	tokens := &t.before
	for _, p := range c.Single {
		switch {
		case p.SpecialToken != nil:
			ids := c.Special[p.SpecialToken.ID].IDs
			if len(ids) == 0 {
				return fmt.Errorf("special_tokens has no ids of %q", p.SpecialToken.ID)
			}
			for _, id := range ids {
				if id < 0 || int(id) >= len(t.texts) {
					return fmt.Errorf("special_tokens has token %d for %q, and the vocabulary has %d", id, p.SpecialToken.ID, len(t.texts))
				}
			}
			*tokens = append(*tokens, ids...)
		case p.Sequence != nil && p.Sequence.ID == "A" && tokens == &t.before:
			tokens = &t.after
		default:
			return errors.New("single must be special tokens around one sequence A")
		}
	}
	if tokens == &t.before {
		return errors.New("single has no sequence A")
	}
	return nil
}
