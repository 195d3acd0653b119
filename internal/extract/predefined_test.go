package extract

import (
	"bytes"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var gcctxt = flag.Bool("gcc", false, "write gcc.txt anew")

// flagMacros are macros that depend on compiler flags.
var flagMacros = regexp.MustCompile(`^__(OPTIMIZE|OPTIMIZE_SIZE|NO_INLINE|pic|PIC|pie|PIE|CET|SSP|SSP_STRONG|SSP_ALL)__$|^_FORTIFY_SOURCE$`)

// versionMacros are macros that differ between versions of gcc since 10: the version itself, and
// additions of later versions.
var versionMacros = regexp.MustCompile(`^__(GNUC__|GNUC_MINOR__|GNUC_PATCHLEVEL__|VERSION__|GXX_ABI_VERSION|\w*FLT\w*_IS_IEC_60559__|DBL_IS_IEC_60559__|LDBL_IS_IEC_60559__` +
	`|BFLT16_\w+|FLT16_\w+|BITINT_MAXWIDTH__|GCC_(CON|DE)STRUCTIVE_SIZE|\w+_NORM_MAX__|SIZEOF_BFLOAT16__|STDC_EMBED_\w+|__STDC_EMBED_\w+|SEG_FS|SEG_GS)$|^__STDC_(IEC_60559_|EMBED_)\w+$`)

func gccOf(t *testing.T) func(text string, args ...string) []byte {
	t.Helper()
	gcc, err := exec.LookPath("gcc")
	if err != nil {
		t.Skip("no gcc")
	}
	machine, err := exec.Command(gcc, "-dumpmachine").Output()
	version, _ := exec.Command(gcc, "--version").Output()
	if err != nil || !bytes.HasPrefix(machine, []byte("x86_64-")) || !bytes.Contains(machine, []byte("linux")) || bytes.Contains(version, []byte("clang")) {
		t.Skipf("gcc is for %s", machine)
	}
	return func(text string, args ...string) []byte {
		cmd := exec.Command(gcc, append([]string{"-std=gnu11", "-E", "-x", "c", "-"}, args...)...)
		cmd.Stdin = strings.NewReader(text)
		out, err := cmd.Output()
		if err != nil && len(out) == 0 {
			t.Fatal(err)
		}
		return out
	}
}

// macrosOf returns #define lines by macro name.
func macrosOf(text []byte) map[string]string {
	macros := map[string]string{}
	for line := range strings.Lines(string(text)) {
		name, value, _ := strings.Cut(strings.TrimPrefix(strings.TrimSpace(line), "#define "), " ")
		plain, _, _ := strings.Cut(name, "(")
		if !flagMacros.MatchString(plain) {
			macros[name] = value
		}
	}
	return macros
}

// questions returns C text that tests each name with an operator.
func questions(operator string, names []string) string {
	var b strings.Builder
	for _, name := range names {
		fmt.Fprintf(&b, "#if %s(%s)\n+%s\n#endif\n", operator, name, name)
	}
	return b.String()
}

func answers(out []byte) (names []string) {
	for line := range strings.Lines(string(out)) {
		if name, ok := strings.CutPrefix(strings.TrimSpace(line), "+"); ok {
			names = append(names, name)
		}
	}
	return names
}

// TestPredefined checks that gcc.txt has the predefined names of the installed gcc.
func TestPredefined(t *testing.T) {
	gcc := gccOf(t)
	theirs := macrosOf(gcc("", "-dM"))
	if *gcctxt {
		writeFacts(t, gcc, theirs)
	}
	ours := macrosOf([]byte(knownFacts().macros))
	for _, name := range slices.Sorted(maps.Keys(ours)) {
		if got, ok := theirs[name]; (!ok || got != ours[name]) && !versionMacros.MatchString(name) {
			t.Errorf("%s is %q, in gcc %q", name, ours[name], got)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(theirs)) {
		if _, ok := ours[name]; !ok && !versionMacros.MatchString(name) {
			t.Errorf("%s is not defined, in gcc %q", name, theirs[name])
		}
	}
	if theirs["__GNUC__"] != ours["__GNUC__"] {
		t.Logf("gcc is of version %s, gcc.txt of %s", theirs["__GNUC__"], ours["__GNUC__"])
		return // attributes and builtin functions differ between versions
	}
	for operator, set := range map[string]map[string]bool{"__has_attribute": knownFacts().attributes, "__has_builtin": knownFacts().builtins} {
		names := slices.Sorted(maps.Keys(set))
		for _, name := range names {
			set[name] = true
		}
		if got := answers(gcc(questions(operator, names), "-P")); !slices.Equal(got, names) {
			t.Errorf("%s: gcc knows %d of the %d names", operator, len(got), len(names))
		}
		more := []string{"no_such_name", "noescape", "__noescape__", "availability", "device_builtin", "__builtin_nothing", "swift_name", "abi_tag", "init_priority", "dllimport", "diagnose_if", "enable_if",
			"overloadable", "ext_vector_type", "address_space", "annotate", "format_arg", "assume_aligned", "counted_by", "assume", "__builtin_bit_cast", "__builtin_addressof", "__builtin_dump_struct", "memcpy", "puts", "__sync_fetch_and_add",
			"__atomic_load_n", "__builtin_available", "_Static_assert", "packed", "__packed__", "zero_call_used_regs", "patchable_function_entry", "null_terminated_string_arg", "musttail", "nonstring", "flag_enum", "enum_extensibility"}
		var ours []string
		for _, name := range more {
			if operator == "__has_attribute" && hasName(attributePrefix+name) || operator != "__has_attribute" && hasName(name) {
				ours = append(ours, name)
			}
		}
		if got := answers(gcc(questions(operator, more), "-P")); !slices.Equal(got, ours) {
			t.Errorf("%s: gcc knows %q, gcc.txt %q", operator, got, ours)
		}
	}
}

// writeFacts writes gcc.txt. It looks for names of attributes and builtin functions among the
// strings of the compiler's binary; a string may be the end of another one.
func writeFacts(t *testing.T, gcc func(string, ...string) []byte, macros map[string]string) {
	program, err := exec.Command("gcc", "-print-prog-name=cc1").Output()
	if err != nil {
		t.Fatal(err)
	}
	binary, err := os.ReadFile(strings.TrimSpace(string(program)))
	if err != nil {
		t.Fatal(err)
	}
	words := map[string]bool{}
	for _, w := range regexp.MustCompile(`[A-Za-z_]\w{2,40}`).FindAll(binary, -1) {
		word := string(w)
		for i := range word {
			if end := word[i:]; len(end) > 2 && (end[0] < '0' || end[0] > '9') {
				words[end] = true
			}
		}
	}
	maps.DeleteFunc(words, func(w string, _ bool) bool {
		_, macro := macros[w]
		return macro || flagMacros.MatchString(w) || strings.HasPrefix(w, "__has_") || strings.HasPrefix(w, "__VA_") || w == "_Pragma" || regexp.MustCompile(`^__[A-Z_]*__$`).MatchString(w)
	})
	names := slices.Sorted(maps.Keys(words))
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(macros)) {
		b.WriteString(strings.TrimSpace("#define "+name+" "+macros[name]) + "\n")
	}
	for _, name := range answers(gcc(questions("__has_attribute", names), "-P")) {
		if !strings.HasPrefix(name, "__") {
			b.WriteString("attribute " + name + "\n")
		}
	}
	for _, name := range answers(gcc(questions("__has_builtin", names), "-P")) {
		b.WriteString("builtin " + name + "\n")
	}
	list, err := exec.Command("dpkg", "-L", "libc6-dev", "gcc-"+macros["__GNUC__"], "libgcc-"+macros["__GNUC__"]+"-dev").Output()
	if err != nil {
		t.Fatal(err)
	}
	var headers []string
	for _, m := range regexp.MustCompile(`(?m)^/usr/(?:include|lib/gcc/[\w-]+/\d+/include)/(?:x86_64-linux-gnu/)?(.+\.h)$`).FindAllStringSubmatch(string(list), -1) {
		if !strings.HasPrefix(m[1], "bits/") && !strings.HasPrefix(m[1], "gnu/") {
			headers = append(headers, m[1])
		}
	}
	slices.Sort(headers)
	for _, name := range slices.Compact(headers) {
		b.WriteString("header " + name + "\n")
	}
	if err := os.WriteFile("gcc.txt", []byte(b.String()), 0o666); err != nil {
		t.Fatal(err)
	}
	t.Skip("written")
}
