package apitest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// TestBehaviours checks that each behaviour in docs/behaviours.md is cited by a test, or listed on
// that page as not tested, and that tests cite only numbers on the page.
func TestBehaviours(t *testing.T) {
	page, err := os.ReadFile("../../docs/behaviours.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range compareBehaviours(string(page), citations(t, "../../runtime")) {
		t.Error(x)
	}
}

var (
	described = regexp.MustCompile(`(?m)^- \*\*B(\d+)\*\* \S`)
	untested  = regexp.MustCompile(`(?m)^- B(\d+): \S`)
	cited     = regexp.MustCompile(`\bB(\d+)\b`)
	inName    = regexp.MustCompile(`^(B\d+[ :])+`)
)

// compareBehaviours returns the errors of a page. The map tests has each number that a test cites,
// with one place that cites the number.
func compareBehaviours(page string, tests map[int]string) (wrong []string) {
	say := func(n int, what string) { wrong = append(wrong, "docs/behaviours.md: B"+strconv.Itoa(n)+" "+what) }
	times, excused := map[int]int{}, map[int]bool{}
	highest := 0
	for _, n := range numbers(described, page) {
		if times[n]++; times[n] == 2 {
			say(n, "is there twice")
		}
		highest = max(highest, n)
	}
	for n := 1; n < highest; n++ {
		if times[n] == 0 {
			say(n, "is missing: numbers have no gaps")
		}
	}
	_, list, _ := strings.Cut(page, "\n## Not tested here\n")
	for _, n := range numbers(untested, list) {
		excused[n] = true
		switch {
		case times[n] == 0:
			say(n, "is said not to be tested, and is not described")
		case tests[n] != "":
			say(n, "is said not to be tested, and cited in "+tests[n])
		}
	}
	for n := range highest + 1 {
		if times[n] > 0 && tests[n] == "" && !excused[n] {
			say(n, "is cited by no test: cite it, or list it under Not tested here with the reason")
		}
	}
	for n, where := range tests {
		if n > highest || n == 0 {
			say(n, "is missing, and cited in "+where)
		}
	}
	slices.Sort(wrong)
	return wrong
}

func numbers(re *regexp.Regexp, s string) (all []int) {
	for _, m := range re.FindAllStringSubmatch(s, -1) {
		n, _ := strconv.Atoi(m[1]) // m[1] has only digits, and a number that is too large becomes the highest int
		all = append(all, n)
	}
	return all
}

// citations returns one place for each number that a test below dir cites. A citation is at the
// beginning of a string, such as a test's name, or in the comment of a test function. Tests are in
// _test.go files and in package gputest.
func citations(t *testing.T, dir string) map[int]string {
	t.Helper()
	where := map[int]string{}
	err := filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(name, "_test.go") && !(filepath.Base(filepath.Dir(name)) == "gputest" && strings.HasSuffix(name, ".go")) {
			return err
		}
		fset := token.NewFileSet()
		f, err := parser.ParseFile(fset, name, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		add := func(at token.Pos, s string) {
			for _, n := range numbers(cited, s) {
				if where[n] == "" {
					where[n] = fset.Position(at).String()
				}
			}
		}
		ast.Inspect(f, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.BasicLit:
				if n.Kind == token.STRING {
					if s, err := strconv.Unquote(n.Value); err == nil {
						add(n.Pos(), inName.FindString(s))
					}
				}
			case *ast.FuncDecl:
				if strings.HasPrefix(n.Name.Name, "Test") {
					add(n.Pos(), n.Doc.Text())
				}
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(where) == 0 {
		t.Fatalf("no test below %s cites a behaviour", dir)
	}
	return where
}

func TestCompareBehaviours(t *testing.T) {
	const page = "- **B1** One.\n- **B2** Two,\n  B7 and all.\n\n## Not tested here\n\n- B2: needs two machines\n"
	for name, x := range map[string]struct {
		page  string
		tests map[int]string
		want  string // a part of the only error; "" for no error
	}{
		"right":              {page, map[int]string{1: "x"}, ""},
		"a number twice":     {"- **B1** Once more.\n" + page, map[int]string{1: "x"}, "B1 is there twice"},
		"a gap":              {"- **B4** Four.\n" + page, map[int]string{1: "x", 4: "x"}, "B3 is missing: numbers"},
		"no test":            {page, nil, "B1 is cited by no test"},
		"tested after all":   {page, map[int]string{1: "x", 2: "y"}, "B2 is said not to be tested, and cited in y"},
		"excused, not there": {page + "- B3: forgotten\n", map[int]string{1: "x"}, "B3 is said not to be tested, and is not described"},
		"cited, not there":   {page, map[int]string{1: "x", 3: "z"}, "B3 is missing, and cited in z"},
	} {
		wrong := compareBehaviours(x.page, x.tests)
		if x.want == "" && len(wrong) > 0 || x.want != "" && (len(wrong) != 1 || !strings.Contains(wrong[0], x.want)) {
			t.Errorf("%s: %q, want %q", name, wrong, x.want)
		}
	}
}
