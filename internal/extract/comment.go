package extract

import (
	"regexp"
	"strings"

	"github.com/puregpu/puregpu/symbols"
)

// A comment holds the facts that the extractor takes from a documentation comment, without its
// sentences.
type comment struct {
	deprecated bool
	params     map[string]paramFacts
}

type paramFacts struct {
	dir  symbols.Dir
	null bool
	unit string
	many bool // the parameter is an array or device memory according to the text, so it is not an output of one element
}

var (
	deprecatedTag = regexp.MustCompile(`[\\@]deprecated\b`)
	paramTag      = regexp.MustCompile(`(?s)[\\@]param\s*(\[[a-z, ]+\])?\s*([A-Za-z_][A-Za-z0-9_]*)\s*(?:-|:)?\s*(.*)`)
	returned      = regexp.MustCompile(`(?i)^(\*\s*)?(returned|returns\b|output\b|out\b|(array )?reference in which|reference to return|pointer to (the )?(returned|output)|pointer to store|pointer to (the )?(location|variable|memory) (to|where|in which)|address (to|in which|where)|location (to|where)|receives|value returned|the returned|resulting|size of .* returned)`)
	readWritten   = regexp.MustCompile(`(?i)\b(input and output|in/out|on input.*on output|in-out)\b`)
	nullable      = regexp.MustCompile(`(?i)(may|can|could|is allowed to) be (om+itted|NULL|nullptr|0\b)|\boptional(ly)?\b|\bif (this is |it is )?(NULL|nullptr)\b|(is|are) NULL,`)
	several       = regexp.MustCompile(`(?i)\b(arrays?|lists?|vectors?|buffers?|matri(x|ces)|elements|(device|gpu) (memory|pointers?|buffers?))\b`)
	inBytes       = regexp.MustCompile(`(?i)\b(in bytes|bytes to|number of bytes|size of .* bytes|bytecount|count in bytes)\b`)
)

// parseComment reads the last /* comment before a declaration, if it is a documentation comment.
// Comments before that one, such as a licence or a group heading, do not belong to the declaration.
func parseComment(sep string) comment {
	start := strings.LastIndex(sep, "/*")
	if start < 0 {
		return comment{}
	}
	text := sep[start:]
	end := strings.Index(text, "*/")
	if end < 0 || !(strings.HasPrefix(text, "/**") || strings.HasPrefix(text, "/*!")) {
		return comment{}
	}
	var lines []string
	for line := range strings.Lines(text[:end]) {
		line = strings.TrimSpace(line)
		line = strings.TrimPrefix(strings.TrimPrefix(line, "/**"), "/*!")
		lines = append(lines, strings.TrimSpace(strings.TrimPrefix(line, "*")))
	}
	c := comment{deprecated: deprecatedTag.MatchString(text), params: map[string]paramFacts{}}
	for i, line := range lines {
		if !strings.HasPrefix(line, `\param`) && !strings.HasPrefix(line, "@param") {
			continue
		}
		for _, next := range lines[i+1:] { // a paragraph ends at a blank line or the next tag
			if next == "" || next[0] == '\\' || next[0] == '@' {
				break
			}
			line += " " + next
		}
		m := paramTag.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		c.params[m[2]] = facts(m[1], m[3])
	}
	return c
}

func facts(tag, text string) (f paramFacts) {
	tag = strings.ReplaceAll(strings.Trim(tag, "[]"), " ", "")
	switch {
	case tag == "out":
		f.dir = symbols.Out
	case tag == "in,out" || tag == "inout" || tag == "out,in" || readWritten.MatchString(text):
		f.dir = symbols.InOut
	case tag == "in":
		f.dir = symbols.In
	case returned.MatchString(text):
		f.dir = symbols.Out
	}
	f.many = several.MatchString(text)
	f.null = nullable.MatchString(text)
	if inBytes.MatchString(text) {
		f.unit = "bytes"
	}
	return f
}
