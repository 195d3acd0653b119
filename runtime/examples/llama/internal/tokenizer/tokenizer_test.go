package tokenizer_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/puregpu/puregpu/runtime/examples/llama/internal/tokenizer"
)

// TestReference compares with Hugging Face's library, for the small tokenizers in the folders of
// testdata. The files tokens.json there say how the library encodes and decodes; reference.py
// writes them. PUREGPU_LLAMA_REFERENCE may name one more folder, with a tokenizer of real size.
func TestReference(t *testing.T) {
	dirs, err := filepath.Glob("testdata/*/tokenizer.json")
	if err != nil || len(dirs) == 0 {
		t.Fatal("no tokenizers in testdata", err)
	}
	if dir := os.Getenv("PUREGPU_LLAMA_REFERENCE"); dir != "" {
		dirs = append(dirs, filepath.Join(dir, "tokenizer.json"))
	}
	for _, path := range dirs {
		dir := filepath.Dir(path)
		t.Run(filepath.Base(dir), func(t *testing.T) { compare(t, dir) })
	}
}

func compare(t *testing.T, dir string) {
	tok := load(t, dir)
	b, err := os.ReadFile(filepath.Join(dir, "tokens.json"))
	if err != nil {
		t.Fatal(err)
	}
	var cases []struct {
		Text            *string // nil: decode only
		Tokens, Special []int32
		Decoded         string
	}
	if err := json.Unmarshal(b, &cases); err != nil {
		t.Fatal(err)
	}
	if len(cases) == 0 {
		t.Fatal("tokens.json is empty")
	}
	for _, c := range cases {
		if got := decode(tok.NewDecoder(), c.Tokens); got != c.Decoded {
			t.Errorf("tokens %v decode to %q, want %q", c.Tokens, got, c.Decoded)
		}
		if c.Text == nil {
			continue
		}
		for _, special := range []bool{false, true} {
			want := c.Tokens
			if special {
				want = c.Special
			}
			got, err := tok.Encode(*c.Text, special)
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(got, want) {
				t.Errorf("%.100q with special %v gives %v, want %v", *c.Text, special, got, want)
			}
		}
	}
}

// TestDecoderHoldsBack checks that a decoder returns a character once all its bytes are there.
func TestDecoderHoldsBack(t *testing.T) {
	tok := load(t, "testdata/gpt2")
	tokens, err := tok.Encode("é𝐇", false)
	if err != nil {
		t.Fatal(err)
	}
	d, texts := tok.NewDecoder(), []string{}
	for _, token := range tokens {
		text := d.Next(token)
		if !utf8.ValidString(text) {
			t.Errorf("%q is not UTF-8", text)
		}
		texts = append(texts, text)
	}
	if got := strings.Join(texts, ""); got != "é𝐇" || texts[len(texts)-1] != "𝐇" {
		t.Errorf("the decoder returns %q", texts)
	}
	if end := d.Flush(); end != "" {
		t.Errorf("Flush returns %q with nothing held back", end)
	}
	d.Next(tokens[len(tokens)-4]) // the first byte of 𝐇
	if end := d.Flush(); end != "\ufffd" {
		t.Errorf("Flush returns %q for half a character", end)
	}
	if text := d.Next(int32(tok.Vocab())) + d.Next(-1) + d.Flush(); text != "" {
		t.Errorf("tokens that are not there decode to %q", text)
	}
}

// TestDecoderSpecial checks that a decoder returns special tokens only if Special is set.
func TestDecoderSpecial(t *testing.T) {
	tok := load(t, "testdata/llama")
	tokens, err := tok.Encode("a<|eot|>b", true)
	if err != nil {
		t.Fatal(err)
	}
	if got := decode(tok.NewDecoder(), tokens); got != "ab" {
		t.Errorf("the text without special tokens is %q", got)
	}
	d := tok.NewDecoder()
	d.Special = true
	if got := decode(d, tokens); got != "<|begin_of_text|>a<|eot|>b" {
		t.Errorf("the text with special tokens is %q", got)
	}
}

func TestNotUTF8(t *testing.T) {
	if _, err := load(t, "testdata/llama").Encode("a\xffb", false); err == nil {
		t.Error("a text that is not UTF-8 was encoded")
	}
}

// TestLongPiece checks a long text without any place to cut. Encoding would take minutes if each
// merge looked at all of the text.
func TestLongPiece(t *testing.T) {
	tok := load(t, "testdata/llama")
	text := strings.Repeat("thequickfox", 1<<16)
	tokens, err := tok.Encode(text, false)
	if err != nil {
		t.Fatal(err)
	}
	if decode(tok.NewDecoder(), tokens) != text {
		t.Error("decoding gives another text")
	}
}

// TestRefused checks that Load refuses a file that the package would not follow exactly, and says
// why.
func TestRefused(t *testing.T) {
	b, err := os.ReadFile("testdata/llama/tokenizer.json")
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct{ old, new, want string }{
		{`"BPE"`, `"Unigram"`, "Unigram"},
		{`"dropout":null`, `"dropout":0.1`, "dropout"},
		{`"byte_fallback":false`, `"byte_fallback":true`, "byte_fallback"},
		{`"end_of_word_suffix":null`, `"end_of_word_suffix":"</w>"`, "end_of_word_suffix"},
		{`"continuing_subword_prefix":null`, `"continuing_subword_prefix":"##"`, "continuing_subword_prefix"},
		{`"normalizer":null`, `"normalizer":{"type":"NFC"}`, "NFC"},
		{`"lstrip":false`, `"lstrip":true`, "lstrip"},
		{`\\p{N}{1,3}`, `\\p{N}{1,4}`, "pattern"},
		{`"Isolated"`, `"Removed"`, "Removed"},
		{`"add_prefix_space":false`, `"add_prefix_space":true`, "add_prefix_space"},
		{`"type":"Split"`, `"type":"Metaspace"`, "Metaspace"},
		{`"TemplateProcessing"`, `"BertProcessing"`, "BertProcessing"},
		{`"decoder":{"type":"ByteLevel"`, `"decoder":{"type":"Fuse"`, "decoder"},
		{`"!":33`, `"!?":33`, "byte 0x21"},
		{`"!":33`, `"!":-1`, "-1"},
		{`"!":33`, `"!":99999999`, "99999999"},
		{`"!":33`, `"!":1`, "same number"},
		{`"merges":[[`, `"merges":[["a","zz"],[`, "merge 0"},
		{`"merges":[[`, `"merges":[["a"],[`, "merge 0"},
		{`"merges":[[`, `"merges":["a",[`, "merge 0"},
		{`"ids":[558]`, `"ids":[70000]`, "token 70000"},
		{`"content":"<|eot|>"`, `"content":""`, "no text"},
	} {
		t.Run(test.new, func(t *testing.T) {
			dir := t.TempDir()
			changed := strings.Replace(string(b), test.old, test.new, 1)
			if changed == string(b) {
				t.Fatalf("the file has no %s", test.old)
			}
			if err := os.WriteFile(filepath.Join(dir, "tokenizer.json"), []byte(changed), 0o666); err != nil {
				t.Fatal(err)
			}
			_, err := tokenizer.Load(dir)
			if err == nil {
				t.Fatal("the file was not refused")
			}
			if !strings.Contains(err.Error(), test.want) {
				t.Errorf("%v: does not name %s", err, test.want)
			}
		})
	}
}

// FuzzRoundTrip checks that any text comes back from its tokens, or is refused if it is not UTF-8.
func FuzzRoundTrip(f *testing.F) {
	b, err := os.ReadFile("testdata/texts.json")
	if err != nil {
		f.Fatal(err)
	}
	var texts []string
	if err := json.Unmarshal(b, &texts); err != nil {
		f.Fatal(err)
	}
	for _, text := range texts {
		f.Add(text)
	}
	f.Add("a\xffb")
	var toks []*tokenizer.Tokenizer
	for _, name := range []string{"gpt2", "llama", "qwen", "digits"} {
		toks = append(toks, load(f, filepath.Join("testdata", name)))
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, tok := range toks {
			tokens, err := tok.Encode(text, false)
			if !utf8.ValidString(text) {
				if err == nil {
					t.Errorf("%q was encoded", text)
				}
				continue
			}
			if err != nil {
				t.Fatal(err)
			}
			d := tok.NewDecoder()
			d.Special = true
			if got := decode(d, tokens); got != text {
				t.Errorf("%q comes back as %q", text, got)
			}
		}
	})
}

// FuzzLoad checks that Load either refuses a file, or returns a tokenizer that encodes and decodes.
func FuzzLoad(f *testing.F) {
	for _, name := range []string{"gpt2", "llama", "digits"} {
		b, err := os.ReadFile(filepath.Join("testdata", name, "tokenizer.json"))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "tokenizer.json"), b, 0o666); err != nil {
			t.Fatal(err)
		}
		tok, err := tokenizer.Load(dir)
		if err != nil {
			return
		}
		tokens, err := tok.Encode("The quick fox's 123 <|eot|> \n 日本", true)
		if err != nil {
			t.Fatal(err)
		}
		decode(tok.NewDecoder(), tokens)
	})
}

func BenchmarkEncode(b *testing.B) {
	tok := load(b, "testdata/llama")
	text, err := os.ReadFile("tokenizer_test.go")
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		if _, err := tok.Encode(string(text), true); err != nil {
			b.Fatal(err)
		}
	}
}

func load(t testing.TB, dir string) *tokenizer.Tokenizer {
	tok, err := tokenizer.Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	return tok
}

func decode(d *tokenizer.Decoder, tokens []int32) string {
	var b strings.Builder
	for _, token := range tokens {
		b.WriteString(d.Next(token))
	}
	b.WriteString(d.Flush())
	return b.String()
}
