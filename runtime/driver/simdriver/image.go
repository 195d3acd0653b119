package simdriver

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
)

// marker begins the line of an image that names its kernels and variables.
const marker = "// sim:"

// An image is what a module is made of.
type image struct {
	kernels map[string][]int  // the parameters' sizes; nil where the image does not tell
	shared  map[string]uint64 // bytes of shared memory that kernels have of their own
	cluster map[string][3]int // blocks of a cluster of kernels that ask for some
	vars    map[string]uint64 // sizes in bytes
}

// Image returns an image with the kernels of the given names, for [driver.Device.Load]. A name such as "table=1024" is a
// variable of 1024 bytes, which are zero at first. The image is the line "// sim: name name …".
func Image(names ...string) []byte {
	return []byte(marker + " " + strings.Join(names, " ") + "\n")
}

// parse reads an image.
func parse(b []byte) (image, error) {
	im := image{kernels: make(map[string][]int), shared: make(map[string]uint64), cluster: make(map[string][3]int), vars: make(map[string]uint64)}
	text, marked := string(b), false
	for line := range strings.Lines(text) {
		names, ok := strings.CutPrefix(strings.TrimSpace(line), marker)
		if !ok {
			continue
		}
		marked = true
		for _, name := range strings.Fields(names) {
			name, size, ok := strings.Cut(name, "=")
			if !ok {
				im.kernels[name] = nil
				continue
			}
			n, err := strconv.ParseUint(size, 0, 40)
			if err != nil || n == 0 {
				return image{}, fmt.Errorf("image: %w: variable %s has the size %q, which is no number of bytes", ErrInvalidValue, name, size)
			}
			im.vars[name] = n
		}
	}
	parsePTX(text, &im)
	if !marked && len(im.kernels) == 0 && len(im.vars) == 0 {
		return image{}, fmt.Errorf("image of %d bytes: %w: it has neither a line %q with names nor an .entry of PTX", len(b), ErrInvalidValue, marker)
	}
	return im, nil
}

// parsePTX adds the kernels and variables of a PTX text to im.
func parsePTX(text string, im *image) {
	tokens := tokenize(text)
	depth := 0   // of braces: variables inside are a function's
	kernel := "" // that the braces belong to
	for i := 0; i < len(tokens); i++ {
		switch tokens[i] {
		case "{":
			depth++
		case "}":
			if depth--; depth == 0 {
				kernel = ""
			}
		case ".entry":
			if i+1 < len(tokens) && identifier(tokens[i+1]) {
				kernel = tokens[i+1]
				im.kernels[kernel] = params(tokens[i+2:])
				i++
			}
		case ".shared":
			if depth > 0 && kernel != "" {
				if _, size, rest := variable(tokens[i+1:]); len(rest) > 0 && rest[0] == ";" {
					im.shared[kernel] += size
				}
			}
		case ".reqnctapercluster":
			if depth == 0 && kernel != "" {
				im.cluster[kernel] = blocks(tokens[i+1:])
			}
		case ".global", ".const":
			if depth == 0 {
				name, size, rest := variable(tokens[i+1:])
				// One with an initial value would have to have it.
				if name != "" && size > 0 && len(rest) > 0 && rest[0] == ";" {
					im.vars[name] = size
				}
			}
		}
	}
}

// params returns the sizes of the parameters in the parentheses that tokens begin with.
func params(tokens []string) []int {
	sizes := []int{}
	if len(tokens) == 0 || tokens[0] != "(" {
		return sizes
	}
	for i := 1; i < len(tokens) && tokens[i] != ")"; i++ {
		if tokens[i] == ".param" {
			_, size, _ := variable(tokens[i+1:])
			if size == 0 {
				return nil // of a kind that is not known here
			}
			sizes = append(sizes, int(size))
		}
	}
	return sizes
}

// blocks reads one to three numbers with commas between; those that are not there are 1.
func blocks(tokens []string) [3]int {
	n := [3]int{1, 1, 1}
	for i := range n {
		if 2*i >= len(tokens) || i > 0 && tokens[2*i-1] != "," {
			break
		}
		if v, err := strconv.ParseUint(tokens[2*i], 0, 16); err == nil {
			n[i] = int(max(v, 1))
		}
	}
	return n
}

// variable reads a declaration such as ".align 8 .b8 name[16]". The size is 0 if it cannot be told.
func variable(tokens []string) (name string, size uint64, rest []string) {
	vector := uint64(1)
	for i := 0; i < len(tokens); i++ {
		t := tokens[i]
		switch {
		case t == ".align" || t == ".ptr":
			if t == ".align" {
				i++
			}
		case t == ".v2":
			vector = 2
		case t == ".v4":
			vector = 4
		case strings.HasPrefix(t, "."):
			// A type ends in its bits; others are state spaces and such.
			bits := strings.TrimLeftFunc(t[1:], unicode.IsLetter)
			if n, err := strconv.ParseUint(bits, 10, 16); err == nil && n%8 == 0 {
				size = n / 8 * vector
			}
		case identifier(t):
			name, rest = t, tokens[i+1:]
			for len(rest) >= 3 && rest[0] == "[" && rest[2] == "]" {
				n, err := strconv.ParseUint(rest[1], 0, 32)
				if err != nil {
					return name, 0, rest
				}
				size *= n
				rest = rest[3:]
			}
			return name, size, rest
		default:
			return "", 0, tokens[i:]
		}
	}
	return "", 0, nil
}

// tokenize splits PTX into words and punctuation, without comments.
func tokenize(text string) []string {
	var tokens []string
	for len(text) > 0 {
		switch {
		case strings.HasPrefix(text, "//"):
			_, text, _ = strings.Cut(text, "\n")
		case strings.HasPrefix(text, "/*"):
			_, text, _ = strings.Cut(text[2:], "*/")
		case strings.ContainsRune(" \t\r\n", rune(text[0])):
			text = text[1:]
		case strings.ContainsRune("(){}[],;=", rune(text[0])):
			tokens = append(tokens, text[:1])
			text = text[1:]
		default:
			n := strings.IndexAny(text[1:], " \t\r\n(){}[],;=/")
			if n < 0 {
				n = len(text) - 1
			}
			tokens = append(tokens, text[:n+1])
			text = text[n+1:]
		}
	}
	return tokens
}

// identifier reports whether t is a name in PTX.
func identifier(t string) bool {
	for i, r := range t {
		if r != '_' && r != '$' && r != '%' && !unicode.IsLetter(r) && (i == 0 || !unicode.IsDigit(r)) {
			return false
		}
	}
	return t != ""
}
