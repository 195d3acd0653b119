package apitest

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode"
)

// TestPageLinks checks that the files and headings exist to which the pages of the repository link.
func TestPageLinks(t *testing.T) {
	root := filepath.Join("..", "..")
	var names []string
	for _, pattern := range []string{"*.md", "docs/*.md", "docs/guide/*.md"} {
		found, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil || len(found) == 0 {
			t.Fatalf("no page %s, %v", pattern, err)
		}
		names = append(names, found...)
	}
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		page, err := filepath.Rel(root, name)
		if err != nil {
			t.Fatal(err)
		}
		for _, x := range brokenLinks(filepath.ToSlash(page), string(text), func(name string) (string, error) {
			if info, err := os.Stat(filepath.Join(root, name)); err != nil || info.IsDir() {
				return "", err
			}
			text, err := os.ReadFile(filepath.Join(root, name))
			return string(text), err
		}) {
			t.Error(x)
		}
	}
}

// TestREADMELength checks that README.md stays short.
func TestREADMELength(t *testing.T) {
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(readme), "\n"); n >= 150 {
		t.Errorf("README.md has %d lines; it should stay below 150", n)
	}
}

// TestPagesRunLatest checks that a page that runs a tool by its full path says @latest, so that the
// command works outside a module too.
func TestPagesRunLatest(t *testing.T) {
	run := regexp.MustCompile(`go run github\.com/puregpu/puregpu/\S+`)
	for _, page := range pages(t, filepath.Join("..", ".."), "*.md", "docs/*.md", "docs/guide/*.md") {
		text, err := os.ReadFile(filepath.Join("..", "..", page))
		if err != nil {
			t.Fatal(err)
		}
		for _, command := range run.FindAllString(string(text), -1) {
			if !strings.Contains(command, "@latest") {
				t.Errorf("%s: %s fails outside a module: add @latest", page, command)
			}
		}
	}
}

var (
	anyFence = regexp.MustCompile("(?ms)^```.*?^```")
	inline   = regexp.MustCompile("`[^`\n]+`")
	linked   = regexp.MustCompile(`\]\(([^()\s]+)\)|(?:href|src)="([^"]*)"|(?m:^\[[^\]]+\]: (\S+))`)
	heading  = regexp.MustCompile(`(?m)^#+ +(.*?) *#*$`)
	absolute = regexp.MustCompile(`^[a-z]+:`)
)

// brokenLinks returns the broken links of a page. The function read returns a file by its name in
// the repository.
func brokenLinks(page, text string, read func(name string) (string, error)) (broken []string) {
	for _, m := range linked.FindAllStringSubmatch(inline.ReplaceAllString(anyFence.ReplaceAllString(text, ""), "x"), -1) {
		link := m[1] + m[2] + m[3]
		if absolute.MatchString(link) {
			continue
		}
		name, anchor, _ := strings.Cut(link, "#")
		to, in := page, text
		if name != "" {
			var err error
			to = path.Join(path.Dir(page), name)
			if in, err = read(to); err != nil {
				broken = append(broken, fmt.Sprintf("%s: link to %s: %v", page, link, err))
				continue
			}
		}
		if anchor != "" && !anchors(in)[anchor] {
			broken = append(broken, fmt.Sprintf("%s: link to %s: %s has no such heading", page, link, to))
		}
	}
	return broken
}

// anchors returns the anchors of a page's headings, as GitHub makes them.
func anchors(text string) map[string]bool {
	all := map[string]bool{}
	for _, m := range heading.FindAllStringSubmatch(anyFence.ReplaceAllString(text, ""), -1) {
		name := strings.Map(func(r rune) rune {
			switch {
			case r == ' ':
				return '-'
			case unicode.IsLetter(r), unicode.IsDigit(r), r == '-', r == '_':
				return unicode.ToLower(r)
			}
			return -1
		}, m[1])
		unique := name
		for n := 1; all[unique]; n++ {
			unique = fmt.Sprintf("%s-%d", name, n)
		}
		all[unique] = true
	}
	return all
}

func TestBrokenLinks(t *testing.T) {
	files := map[string]string{"docs/a.md": "# One, `two`: three\n## B\n## B\n```\n# C\n```\n", "x.go": ""}
	read := func(name string) (string, error) {
		if text, ok := files[name]; ok {
			return text, nil
		}
		return "", os.ErrNotExist
	}
	for link, want := range map[string]string{
		"[a](a.md)":                        "",
		"[a](a.md#one-two-three)":          "",
		"[a](a.md#b) [b](a.md#b-1)":        "",
		"[a](../x.go), [b](#here)":         "",
		`<img src="a.md">`:                 "",
		"[a][1]\n\n[1]: a.md":              "",
		"[a](https://x.test/b.md#x)":       "",
		"`[a](b.md)`\n```\n[a](b.md)\n```": "",
		"[a](b.md)":                        "link to b.md: file does not exist",
		"[a](a.md#c)":                      "link to a.md#c: docs/a.md has no such heading",
		"[a](#there)":                      "link to #there: docs/b.md has no such heading",
		`<img src="b.svg">`:                "link to b.svg",
		"[a][1]\n\n[1]: b.md":              "link to b.md",
	} {
		broken := brokenLinks("docs/b.md", "# Here\n"+link+"\n", read)
		if want == "" && len(broken) > 0 || want != "" && (len(broken) != 1 || !strings.Contains(broken[0], want)) {
			t.Errorf("%s: %q, want %q", link, broken, want)
		}
	}
}
