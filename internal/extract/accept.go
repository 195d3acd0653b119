package extract

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"modernc.org/cc/v4"
)

// The C front end accepts more than it understands: it ignores packing and assembler names. So a
// declaration is accepted only if this file understands each of its tokens. A stream holds the
// preprocessed tokens. The front end never sees attributes, since it rejects some attributes and
// some of their positions.

// pragmaWord stands for _Pragma in all headers. A stream gets pragmaWord as a token, and the front
// end expands it to nothing.
const pragmaWord = "_PRAGMA"

// volatileWords are removed from the text that the front end reads: tables do not record volatile,
// and the front end confuses it with const.
var volatileWords = wordSet("volatile __volatile __volatile__")

// foreignFloats are types that the front end does not have and reads as float. Declarations with
// these types are refused.
var foreignFloats = wordSet("_Float16 __fp16 __bf16 _Float128x __float80 __ibm128")

// A stream is the preprocessed text of a translation unit, with the attributes and the pragma state
// of each token.
type stream struct {
	raw     []streamItem        // preprocessed tokens and pragmas; nil after stream.fold
	tokens  []string            // the tokens, without attributes
	attrs   map[int][]attribute // the attributes in front of a token, by the token's index
	states  []*pragmas          // the state of the pragmas at each token
	bodies  []*body             // bodies of structs, unions and enumerations, in the order of their opening braces
	renamed map[string]string   // the assembler names that pragmas redefine_extname give, by C name
	spans   []span              // external declarations, in order
	ids     int                 // number of attributes
	foreign map[int]string      // types that the front end reads as float, by the token's index
	marks   int                 // number of pragmas that change the state
}

// A streamItem is a token, or a pragma in its place.
type streamItem struct {
	token  string
	pragma []string
}

// pragmas is the state that pragmas set.
type pragmas struct {
	pack    int      // largest alignment of a member; 0 if nothing is packed
	stack   []pushed // the states that pack(push) has saved
	unknown string
}

// A pushed is an entry that pack(push) puts on the stack. The label is "" if the pragma has none.
type pushed struct {
	pack  int
	label string
}

// A span is an external declaration: tokens from first to last.
type span struct {
	first, last int
	lastSeq     int // the front end's sequence number of the last token
}

// A body is the part of a struct, a union or an enumeration between its braces.
type body struct {
	kind        string // "struct", "union", "enum"
	tag         string
	open, close int         // indices of the tokens { and }
	outer       int         // the enclosing body, or -1
	attrs       []attribute // attributes of the type
	pack        int         // alignment that a pragma sets
	repacked    bool        // the body contains a pragma
	fixed       bool        // an enumeration with an explicit integer type
}

// An attribute is one name in an __attribute__, or _Alignas.
type attribute struct {
	name string
	args []string
	at   int // index of the token after the attribute
	id   int // unique in the stream

	inside bool // in the middle of a declarator: inside brackets or after a star
}

func (s *stream) Write(token []byte) (int, error) {
	if t := string(token); strings.TrimSpace(t) != "" {
		s.raw = append(s.raw, streamItem{token: t})
	}
	return len(token), nil
}

func (s *stream) pragma(tokens []cc.Token) error {
	var words []string
	for _, t := range tokens {
		if w := strings.TrimSpace(t.SrcStr()); w != "" {
			words = append(words, w)
		}
	}
	s.raw = append(s.raw, streamItem{pragma: words})
	return nil
}

// fold applies the pragmas and the _Pragma operators, takes the attributes out of the tokens, and
// finds the bodies.
func (s *stream) fold() {
	now := &pragmas{}
	s.renamed, s.attrs, s.foreign = map[string]string{}, map[int][]attribute{}, map[int]string{}
	for i := 0; i < len(s.raw); i++ {
		x := s.raw[i]
		if x.token == pragmaWord && i+3 < len(s.raw) && s.raw[i+1].token == "(" && s.raw[i+3].token == ")" {
			text, err := strconv.Unquote(strings.TrimPrefix(s.raw[i+2].token, "L"))
			if err != nil {
				text = "that cannot be read"
			}
			x.pragma = pragmaWords.FindAllString(text, -1)
			i += 3
		}
		if x.pragma != nil {
			if next := now.after(x.pragma, s.renamed); next != now {
				now = next
				s.marks++
			}
			continue
		}
		if isAttribute(x.token) {
			if end := s.foldAttributes(i); end > i {
				i = end
				continue
			}
		}
		if volatileWords[x.token] {
			continue // see volatileWords
		}
		if x.token == "__const__" {
			x.token = "const"
		}
		if foreignFloats[x.token] {
			s.foreign[len(s.tokens)] = x.token
			x.token = "float"
		}
		s.tokens, s.states = append(s.tokens, x.token), append(s.states, now)
	}
	s.raw = nil
	s.findBodies()
}

// foldAttributes reads __attribute__ (( ... )) at raw token i. It returns the index of the
// attribute's last token, or i if it cannot read the attribute. The front end cannot read such an
// attribute either.
func (s *stream) foldAttributes(i int) int {
	var words []string
	depth, last := 0, i
	for j := i + 1; j < len(s.raw) && s.raw[j].pragma == nil; j++ {
		words = append(words, s.raw[j].token)
		switch s.raw[j].token {
		case "(":
			depth++
		case ")":
			depth--
		}
		if depth <= 0 {
			last = j
			break
		}
	}
	n := len(words) - 2
	if last == i || n < 2 || words[0] != "(" || words[1] != "(" || words[n] != ")" {
		return i
	}
	at := len(s.tokens)
	for j := 2; j < n; j++ {
		a := attribute{name: strings.Trim(words[j], "_"), at: at, id: s.ids}
		if words[j+1] == "(" {
			for depth, j = 0, j+1; ; j++ {
				if words[j] == "(" {
					depth++
				} else if words[j] == ")" {
					depth--
				}
				if depth == 0 {
					break
				}
				a.args = append(a.args, words[j])
			}
			a.args = a.args[1:]
		}
		if a.name != "," && a.name != "" {
			s.ids++
			s.attrs[at] = append(s.attrs[at], a)
		}
	}
	return last
}

var pragmaWords = regexp.MustCompile(`\w+|[^\s\w]`)

// harmlessPragmas do not change declarations. A pragma that begins with GCC or clang is listed with
// its second word.
var harmlessPragmas = []string{
	"once", "message", "warning", "region", "endregion", "comment", "STDC", "mark", "unroll", "GCC unroll", "GCC ivdep", "nv_diag_suppress", "nv_diag_default", "nv_diagnostic",
	"nv_exec_check_disable", "hd_warning_disable", "GCC diagnostic", "GCC visibility", "GCC system_header", "GCC warning", "GCC poison",
	"GCC dependency", "clang diagnostic", "clang system_header", "clang assume_nonnull", "clang deprecated",
}

// after returns the state after a pragma. For a pragma redefine_extname it stores the assembler
// name in renamed, under the C name.
func (p *pragmas) after(words []string, renamed map[string]string) *pragmas {
	text := strings.Join(words, " ")
	if slices.ContainsFunc(harmlessPragmas, func(s string) bool { return text == s || strings.HasPrefix(text, s+" ") }) {
		return p
	}
	next := *p
	unknown := func() *pragmas {
		if next.unknown == "" {
			next.unknown = "#pragma " + text
		}
		return &next
	}
	switch {
	case len(words) == 3 && words[0] == "redefine_extname":
		renamed[words[1]] = words[2]
		return p
	case len(words) >= 3 && words[0] == "pack" && words[1] == "(" && words[len(words)-1] == ")":
	default:
		return unknown()
	}
	args := strings.Split(strings.Join(words[2:len(words)-1], ""), ",")
	does, label := args[0], ""
	if does == "push" || does == "pop" {
		args = args[1:]
		if len(args) > 0 && isIdentifier(args[0]) {
			label, args = args[0], args[1:]
		}
	}
	switch {
	case does == "push":
		next.stack = append(slices.Clip(next.stack), pushed{next.pack, label})
	case does == "pop" && len(args) > 0: // gcc ignores the pragma, clang does not
		return unknown()
	case does == "pop":
		last := len(next.stack) - 1
		for label != "" && last >= 0 && next.stack[last].label != label {
			last--
		}
		if last < 0 && label != "" {
			return unknown()
		}
		if last >= 0 {
			next.pack, next.stack = next.stack[last].pack, next.stack[:last]
		}
	}
	switch {
	case len(args) == 0:
	case len(args) > 1:
		return unknown()
	case args[0] == "" && does != "push" || args[0] == "0":
		next.pack = 0
	case slices.Contains([]string{"1", "2", "4", "8", "16"}, args[0]):
		next.pack, _ = strconv.Atoi(args[0])
	default:
		return unknown()
	}
	return &next
}

func isAttribute(token string) bool { return token == "__attribute__" || token == "__attribute" }
func isAlignas(token string) bool   { return token == "_Alignas" }

// group returns the index of the token after the brackets that open at i, or -1 if they do not
// close.
func (s *stream) group(i int) int {
	depth := 0
	for ; i < len(s.tokens); i++ {
		switch s.tokens[i] {
		case "(", "[", "{":
			depth++
		case ")", "]", "}":
			if depth--; depth == 0 {
				return i + 1
			}
		}
	}
	return -1
}

// findBodies finds the bodies of structs, unions and enumerations with their attributes.
func (s *stream) findBodies() {
	var stack []int // bodies that are open, -1 for other braces
	next := map[int]*body{}
	for i, t := range s.tokens {
		switch t {
		case "struct", "union", "enum":
			b := &body{kind: t}
			j := i + 1
			if b.attrs = slices.Clone(s.attrs[j]); j < len(s.tokens) && isIdentifier(s.tokens[j]) {
				b.tag = s.tokens[j]
				j++
			}
			if t == "enum" && j < len(s.tokens) && s.tokens[j] == ":" { // the underlying type
				for b.fixed = true; j < len(s.tokens) && s.tokens[j] != "{" && s.tokens[j] != ";"; j++ {
				}
			}
			next[j] = b
		case "{":
			b, ok := next[i]
			if !ok {
				stack = append(stack, -1)
				continue
			}
			b.open, b.outer, b.pack = i, -1, s.states[i].pack
			for _, n := range slices.Backward(stack) {
				if b.outer = n; n >= 0 {
					break
				}
			}
			stack = append(stack, len(s.bodies))
			s.bodies = append(s.bodies, b)
		case "}":
			if len(stack) == 0 {
				continue
			}
			if n := stack[len(stack)-1]; n >= 0 {
				b := s.bodies[n]
				b.close, b.repacked = i, s.states[i] != s.states[b.open]
				b.attrs = append(b.attrs, s.attrs[i+1]...)
			}
			stack = stack[:len(stack)-1]
		}
	}
}

// bodyAt returns the innermost body that contains a token, or nil.
func (s *stream) bodyAt(token int) (in *body) {
	for _, b := range s.bodies {
		if b.open > token {
			break
		}
		if token < b.close {
			in = b
		}
	}
	return in
}

// align finds the tokens of each external declaration of a tree. The front end numbers tokens in
// reading order. It adds tokens to each function body, and numbers these too. The stream may have a
// declaration that is not in the tree.
func (s *stream) align(ast *cc.AST) error {
	at, skew, again := 0, 1, false
	for l := ast.TranslationUnit; l != nil; l = l.TranslationUnit {
		ed := l.ExternalDeclaration
		if ed == nil {
			continue
		}
		tokens := cc.NodeTokens(ed)
		first, last := tokens[0], tokens[len(tokens)-1]
		lost := fmt.Errorf("%v: the C front end reports a wrong place for the end of this declaration: change the header or leave it out", ed.Position())
		for {
			end := s.end(at, ed.FunctionDefinition != nil)
			if end < 0 {
				return lost
			}
			if again || ed.FunctionDefinition != nil {
				skew = first.Seq() - at
			}
			if end < first.Seq()-skew { // the tree does not contain this declaration
				at = end + 1
				continue
			}
			if ed.Declaration != nil && ed.Declaration.Case == cc.DeclarationAssert {
				end-- // the assertion's semicolon is not in the tree
			}
			if ed.FunctionDefinition == nil && end != last.Seq()-skew || s.tokens[end] != last.SrcStr() || !slices.Contains(s.tokens[at:end+1], first.SrcStr()) {
				return lost
			}
			s.spans = append(s.spans, span{at, end, last.Seq()})
			at, again = end+1, ed.FunctionDefinition != nil
			break
		}
	}
	return nil
}

// end returns the index of the last token of the external declaration that begins at i, or -1 if
// the tokens end before.
func (s *stream) end(i int, function bool) int {
	for ; i >= 0 && i < len(s.tokens); i++ {
		switch t := s.tokens[i]; t {
		case "(", "[", "{":
			body := t == "{" && function && i > 0 && s.tokens[i-1] == ")"
			if i = s.group(i) - 1; body && i >= 0 {
				return i
			}
			if i < 0 {
				return -1
			}
		case ";":
			if !function {
				return i
			}
		}
	}
	return -1
}

// index returns the index of the tree's token in the stream, or -1.
func (s *stream) index(t cc.Token) int {
	seq := t.Seq()
	i, _ := slices.BinarySearchFunc(s.spans, seq, func(x span, seq int) int { return x.lastSeq - seq })
	if i == len(s.spans) {
		return -1
	}
	at := s.spans[i].last - (s.spans[i].lastSeq - seq)
	if at < s.spans[i].first || s.tokens[at] != t.SrcStr() {
		return -1
	}
	return at
}

// spanOf returns the span of a declaration.
func (s *stream) spanOf(ed *cc.ExternalDeclaration) (span, bool) {
	tokens := cc.NodeTokens(ed)
	seq := tokens[len(tokens)-1].Seq()
	i, ok := slices.BinarySearchFunc(s.spans, seq, func(x span, seq int) int { return x.lastSeq - seq })
	if !ok {
		return span{}, false
	}
	return s.spans[i], true
}

// understood holds the keywords whose meaning is part of the front end's types.
var understood = wordSet(`void char short int long float double signed unsigned struct union enum const restrict
	typedef extern static inline register sizeof __const __restrict __restrict__ __signed __signed__
	__inline __inline__ _Bool _Noreturn _Nonnull _Alignof __alignof __alignof__ _Static_assert`)

// otherKeywords holds the keywords, of the front end and of compilers, that are not in the set
// above. A declaration with one of them is refused, except with asm before an assembler name.
var otherKeywords = wordSet(`auto break case continue default do else for goto if return switch while _Atomic _Generic _Thread_local
	_Decimal128 _Decimal32 _Decimal64 _Float128 _Float32 _Float32x _Float64 _Float64x __auto_type
	__complex __complex__ _Complex _Imaginary __float128 __imag __imag__ __int128 __int128_t __uint128_t __label__ __real __real__ __thread
	__typeof __typeof__ typeof typeof_unqual asm __asm __asm__ __declspec constexpr thread_local _BitInt __ptr32 __ptr64 __unaligned __sptr __uptr
	__seg_fs __seg_gs`)

// harmlessAttributes change neither calls nor layouts.
var harmlessAttributes = wordSet(`deprecated visibility nonnull returns_nonnull pure const warn_unused_result nodiscard malloc alloc_size
	alloc_align assume_aligned format format_arg nothrow leaf noreturn unused maybe_unused used always_inline noinline gnu_inline artificial
	sentinel cold hot warning error access may_alias designated_init flag_enum enum_extensibility externally_visible weak dllimport dllexport
	sysv_abi no_instrument_function nodebug availability annotate fallthrough hidden device_builtin device_builtin_texture_type
	device_builtin_surface_type cudart_builtin host device no_sanitize retain section flatten counted_by`)

func wordSet(text string) map[string]bool {
	set := map[string]bool{}
	for _, w := range strings.Fields(text) {
		set[w] = true
	}
	return set
}

// accept returns an error if a declaration has a token or an attribute that is not understood, or
// if a pragma that is not understood applies to it.
func (s *stream) accept(x span, ed *cc.ExternalDeclaration) error {
	end := x.last + 1
	if ed.FunctionDefinition != nil { // the extractor does not read the function's body
		for end = x.first; end < x.last && !(s.tokens[end] == "{" && s.bodyAt(end+1) == s.bodyAt(x.first)); end++ {
		}
	}
	if p := s.states[x.last]; p.unknown != "" {
		return fmt.Errorf("follows %s, which is not understood", p.unknown)
	}
	if err := typed(ed.Declaration); err != nil {
		return err
	}
	labels := 0
	if ed.Declaration != nil {
		for il := ed.Declaration.InitDeclaratorList; il != nil; il = il.InitDeclaratorList {
			if il.InitDeclarator.Asm != nil {
				labels++
			}
		}
	}
	for i := x.first; i < end; i++ {
		t := s.tokens[i]
		for _, a := range s.attrs[i] {
			if err := s.acceptAttribute(a); err != nil {
				return err
			}
		}
		switch {
		case s.foreign[i] != "":
			return fmt.Errorf("has %s, which no binding can express", s.foreign[i])
		case isAttribute(t):
			return fmt.Errorf("has an attribute that cannot be read")
		case isAlignas(t):
			if in := s.bodyAt(i); in == nil || in.kind == "enum" {
				return fmt.Errorf("has %s in a place where the extractor does not understand it", t)
			}
		case t == "asm" || t == "__asm" || t == "__asm__":
			if labels--; labels < 0 {
				return fmt.Errorf("has %s in a place where the extractor does not understand it", t)
			}
		case otherKeywords[t]:
			return fmt.Errorf("has %s, which no binding can express", t)
		case t == "[" && i+1 < end && (s.tokens[i+1] == "*"):
			return fmt.Errorf("has an array without a constant length")
		}
	}
	return nil
}

// acceptAttribute returns an error for an attribute that is not understood in its place. It accepts
// harmless attributes, the attributes packed and aligned of structs, unions and their members, and
// the attribute packed of enumerations. The layouter checks packed and aligned.
func (s *stream) acceptAttribute(a attribute) error {
	if harmlessAttributes[a.name] {
		return nil
	}
	in := s.bodyAt(a.at - 1)
	if a.name == "packed" || a.name == "aligned" {
		if in != nil && in.kind != "enum" { // the attribute of a member or of its type
			return nil
		}
		if b := s.bodyOf(a); b != nil && (a.name == "packed" || b.kind != "enum") {
			return nil
		}
	}
	if in != nil && in.tag != "" {
		return fmt.Errorf("has the attribute %s in %s %s, which is not understood there", a.name, in.kind, in.tag)
	}
	return fmt.Errorf("has the attribute %s, which is not understood there", a.name)
}

// bodyOf returns the body whose type has an attribute, or nil.
func (s *stream) bodyOf(a attribute) *body {
	i := slices.IndexFunc(s.bodies, func(b *body) bool {
		return slices.ContainsFunc(b.attrs, func(x attribute) bool { return x.id == a.id })
	})
	if i < 0 {
		return nil
	}
	return s.bodies[i]
}

// alters reports whether the typedefs of a refused declaration may have another type than the
// struct that the declaration names. That is so if the declaration has, outside the struct, a token
// or an attribute that is not understood. An unusual alignment alone does not change pointers to a
// struct that the declaration defines.
func (s *stream) alters(x span) bool {
	defines := slices.ContainsFunc(s.bodies, func(b *body) bool { return b.open > x.first && b.close <= x.last })
	for i := x.first; i <= x.last; i++ {
		for _, a := range s.attrs[i] {
			aligns := a.name == "packed" || a.name == "aligned"
			if s.bodyAt(a.at-1) == nil && s.bodyOf(a) == nil && s.acceptAttribute(a) != nil && !(aligns && defines) {
				return true
			}
		}
		if s.bodyAt(i) == nil && otherKeywords[s.tokens[i]] {
			return true
		}
	}
	return false
}

// measures reports whether a declaration takes the size or the alignment of a type, or the offset
// of a member.
func (s *stream) measures(ed *cc.ExternalDeclaration) bool {
	x, ok := s.spanOf(ed)
	return ok && slices.ContainsFunc(s.tokens[x.first:x.last], func(t string) bool {
		return t == "sizeof" || t == "_Alignof" || t == "__alignof" || t == "__alignof__" || t == "->"
	})
}

// deprecated reports whether a declaration has the attribute deprecated.
func (s *stream) deprecated(ed *cc.ExternalDeclaration) bool {
	x, ok := s.spanOf(ed)
	for i := x.first; ok && i <= x.last; i++ {
		if slices.ContainsFunc(s.attrs[i], func(a attribute) bool { return a.name == "deprecated" }) {
			return true
		}
	}
	return false
}

// names returns the names that a declaration declares.
func (s *stream) names(x span, ed *cc.ExternalDeclaration) (names []string) {
	if ed.FunctionDefinition != nil {
		return []string{ed.FunctionDefinition.Declarator.Name()}
	}
	if ed.Declaration == nil {
		return nil
	}
	for il := ed.Declaration.InitDeclaratorList; il != nil; il = il.InitDeclaratorList {
		names = append(names, il.InitDeclarator.Declarator.Name())
	}
	for _, b := range s.bodies {
		if b.tag != "" && b.open > x.first && b.close <= x.last && !slices.Contains(names, b.tag) {
			names = append(names, b.tag)
		}
	}
	if len(names) == 0 { // an enumeration without a name is named after its first enumerator
		for _, b := range s.bodies {
			if b.kind == "enum" && b.open > x.first && b.close <= x.last && b.open+1 < b.close {
				return []string{s.tokens[b.open+1]}
			}
		}
	}
	return names
}
