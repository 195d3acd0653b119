package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/mod/module"
	modzip "golang.org/x/mod/zip"
	"golang.org/x/tools/txtar"
)

const mit = `Permission is hereby granted, free of charge, to any person obtaining a copy of this software.
The above copyright notice and this permission notice shall be included in all copies.
`

// A made is a module in a git repository that passes all checks.
type made struct {
	t     *testing.T
	dir   string // folder of the module
	cache string // the module cache
	env   []string
}

// newMade unpacks testdata/ready.txtar and commits the files.
func newMade(t *testing.T) *made {
	t.Helper()
	if testing.Short() {
		t.Skip("the test builds programs")
	}
	for _, name := range []string{"go", "git", "sh"} {
		if _, err := exec.LookPath(name); err != nil {
			t.Skip("this machine has no ", name)
		}
	}
	temp := t.TempDir()
	m := &made{t: t, dir: filepath.Join(temp, "made"), cache: filepath.Join(temp, "cache")}
	proxy := filepath.Join(temp, "proxy")
	m.env = []string{
		"GOMODCACHE=" + m.cache, "GOPROXY=file://" + filepath.ToSlash(proxy), "GOSUMDB=off", "GOFLAGS=-modcacherw", "GOWORK=off", "CGO_ENABLED=0",
		"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.com", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.com",
		"GIT_CONFIG_GLOBAL=" + os.DevNull, "GIT_CONFIG_SYSTEM=" + os.DevNull,
	}
	a, err := txtar.ParseFile("testdata/ready.txtar")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range a.Files {
		m.write(f.Name, string(f.Data))
	}
	for _, name := range []string{"LICENSE", "tools/bundle/drift.sh", "tools/gputrace/web/LICENSES"} {
		text, err := os.ReadFile("../../" + name)
		if err != nil {
			t.Fatal(err)
		}
		m.write(name, string(text))
	}
	serveDep(t, proxy)
	m.command("go", "mod", "tidy")
	m.command("git", "init", "-q", "-b", "main")
	m.commit()
	return m
}

// serveDep puts the module example.com/dep v1.0.0 into the folder of a module proxy.
func serveDep(t *testing.T, proxy string) {
	t.Helper()
	source, versions := t.TempDir(), filepath.Join(proxy, "example.com", "dep", "@v")
	goMod := "module example.com/dep\n\ngo 1.26\n"
	for name, text := range map[string]string{
		filepath.Join(source, "go.mod"): goMod, filepath.Join(source, "dep.go"): "package dep\n", filepath.Join(source, "LICENSE"): mit,
		filepath.Join(versions, "list"): "v1.0.0\n", filepath.Join(versions, "v1.0.0.mod"): goMod, filepath.Join(versions, "v1.0.0.info"): `{"Version":"v1.0.0"}`,
	} {
		writeFile(t, name, text)
	}
	var b bytes.Buffer
	if err := modzip.CreateFromDir(&b, module.Version{Path: "example.com/dep", Version: "v1.0.0"}, source); err != nil {
		t.Fatal(err)
	}
	writeFile(t, filepath.Join(versions, "v1.0.0.zip"), b.String())
}

func writeFile(t *testing.T, name, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func (m *made) write(name, text string) {
	m.t.Helper()
	writeFile(m.t, filepath.Join(m.dir, name), text)
}

// inDep changes a file of the dependency, in the module cache.
func (m *made) inDep(name, text string) {
	m.t.Helper()
	writeFile(m.t, filepath.Join(m.cache, "example.com", "dep@v1.0.0", name), text)
}

func (m *made) replace(name, from, to string) {
	m.t.Helper()
	text, err := os.ReadFile(filepath.Join(m.dir, name))
	if err != nil || !strings.Contains(string(text), from) {
		m.t.Fatalf("%s has no %q (%v)", name, from, err)
	}
	m.write(name, strings.Replace(string(text), from, to, 1))
}

func (m *made) remove(name string) {
	m.t.Helper()
	if err := os.Remove(filepath.Join(m.dir, name)); err != nil {
		m.t.Fatal(err)
	}
}

func (m *made) command(name string, args ...string) {
	m.t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Dir, cmd.Env = m.dir, append(os.Environ(), m.env...)
	if out, err := cmd.CombinedOutput(); err != nil {
		m.t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
}

func (m *made) commit() {
	m.t.Helper()
	m.command("git", "add", "-A")
	m.command("git", "commit", "-q", "--allow-empty", "-m", "a commit")
}

func (m *made) release(version string) *release {
	m.t.Helper()
	r, err := newRelease(m.dir, version)
	if err != nil {
		m.t.Fatal(err)
	}
	r.env = m.env
	return r
}

// TestChecksFail checks that each check reports the faults that it is for.
func TestChecksFail(t *testing.T) {
	for _, c := range []struct {
		check, name string
		spoil       func(m *made)
		want        string
	}{
		{"tree", "a file that is not committed", func(m *made) { m.write("new.go", "package made\n") }, "?? new.go"},
		{"tree", "a tag on an older commit", func(m *made) { m.command("git", "tag", "v0.1.0"); m.commit() }, "the tag v0.1.0 is on commit"},
		{"changelog", "a newer section", func(m *made) { m.replace("CHANGELOG.md", "## v0.1.0", "## Unreleased\n\n- more\n\n## v0.1.0") }, "the first section of CHANGELOG.md is Unreleased"},
		{"changelog", "an empty section", func(m *made) { m.replace("CHANGELOG.md", "- the first\n", "") }, "v0.1.0 of CHANGELOG.md is empty"},
		{"changelog", "an older section first", func(m *made) { m.replace("CHANGELOG.md", "- the first\n", "- the first\n\n## v0.2.0\n\n- later\n") }, "v0.2.0 of CHANGELOG.md comes behind v0.1.0"},
		{"changelog", "a section that is no version", func(m *made) { m.replace("CHANGELOG.md", "- the first\n", "- the first\n\n## Older\n\n- old\n") }, "Older of CHANGELOG.md is no version"},
		{"versions", "another Go release", func(m *made) { m.replace("README.md", "Go 1.26", "Go 1.25") }, `README.md says "Go 1.25 or newer", and go.mod has go 1.26`},
		{"versions", "another Go image", func(m *made) { m.write("deploy/x.Containerfile", "FROM golang:1.24\n") }, `deploy/x.Containerfile says "golang:1.24"`},
		{"versions", "another version", func(m *made) { m.replace("README.md", "gpuinfo@v0.1.0", "gpuinfo@v0.2.0") }, "README.md names example.com/made/tools/gpuinfo@v0.2.0"},
		{"versions", "no Go release", func(m *made) { m.replace("README.md", "Go 1.26 or newer", "Go") }, "no page says which Go release"},
		{"tidy", "a requirement that nothing needs", func(m *made) { m.remove("lib/lib.go"); m.write("lib/lib.go", "package lib\n") }, "-require example.com/dep v1.0.0"},
		{"tidy", "a module in a folder", func(m *made) {
			m.write("sub/go.mod", "module example.com/sub\n\ngo 1.26\n\nrequire example.com/dep v1.0.0\n")
		}, "made/sub"},
		{"verify", "another dependency", func(m *made) { m.inDep("dep.go", "package dep // changed\n") }, "dir has been modified"},
		{"records", "a test that fails", func(m *made) {
			m.replace("internal/apitest/api_test.go", "{} // API", `{ t.Error("the API has lost a name") }`)
		}, "the API has lost a name"},
		{"records", "a test that is not there", func(m *made) { m.replace("internal/apitest/api_test.go", "TestPageLinks", "TestPages") }, "does not run TestPageLinks"},
		{"generated", "an old file", func(m *made) { m.replace("lib/source.txt", "package lib", "package lib // newer") }, "go generate changed the files above"},
		{"licences", "a licence that is not allowed", func(m *made) { m.inDep("LICENSE", "GNU General Public License, version 3\n") }, "example.com/dep v1.0.0: the licence GPL is not one of"},
		{"licences", "a second licence", func(m *made) { m.inDep("COPYING", "GNU Lesser General Public License\n") }, "example.com/dep v1.0.0: the licence LGPL is not one of"},
		{"licences", "a licence that is not known", func(m *made) { m.inDep("LICENSE", "Ask me.\n") }, "LICENSE is not the text of a licence that is known"},
		{"licences", "no licence", func(m *made) {
			if err := os.Remove(filepath.Join(m.cache, "example.com", "dep@v1.0.0", "LICENSE")); err != nil {
				m.t.Fatal(err)
			}
		}, "has no file LICENSE or COPYING"},
		{"licences", "another licence of the module itself", func(m *made) { m.write("LICENSE", mit) }, `the module's own licence is "MIT", want Apache-2.0`},
		{"licences", "a script with another licence", func(m *made) { m.write("tools/gputrace/web/LICENSES", "d3-zoom 3.0.1:\n\nMozilla Public License\n") }, "d3-zoom 3.0.1: the licence MPL-2.0 is not one of"},
		{"licences", "no list of scripts", func(m *made) { m.write("tools/gputrace/web/LICENSES", mit) }, "has no line such as"},
		{"module", "a name that no module may have", func(m *made) { m.write("lib/aux.txt", "") }, "aux.txt"},
		{"module", "a package that does not build", func(m *made) { m.write("lib/more.go", "package lib\n\nvar x int = \"\"\n") }, "cannot use"},
		{"module", "a file that is not in the module", func(m *made) {
			m.write("lib/sub/go.mod", "module example.com/made/lib/sub\n\ngo 1.26\n")
			m.write("lib/embed.go", "package lib\n\nimport _ \"example.com/made/lib/sub\"\n")
		}, "example.com/made/lib/sub"},
		{"module", "another version in gpuinfo", func(m *made) { m.replace("tools/gpuinfo/main.go", "info.Main.Version", `"v0.0.9"`) }, "the version is v0.1.0"},
	} {
		t.Run(c.check+"/"+strings.ReplaceAll(c.name, " ", "_"), func(t *testing.T) {
			t.Parallel()
			m := newMade(t)
			c.spoil(m)
			if c.check != "tree" {
				m.commit()
			}
			r := m.release("v0.1.0")
			for _, k := range r.checks() {
				if k.name == c.check {
					if err := k.run(t.Context()); err == nil || !strings.Contains(err.Error(), c.want) {
						t.Errorf("%s: %v, want %q", c.check, err, c.want)
					}
				}
			}
		})
	}
}

// TestVersionsFail checks the errors for invalid versions, and for a go.mod that replaces a module.
func TestVersionsFail(t *testing.T) {
	m := newMade(t)
	for _, v := range []string{"0.1.0", "v0.1", "v2.0.0", "Unreleased"} {
		if err := m.release(v).versions(t.Context()); err == nil || !strings.Contains(err.Error(), v) {
			t.Errorf("%s: %v, want an error that names it", v, err)
		}
	}
	m.replace("go.mod", "go 1.26", "go 1.26\n\nreplace example.com/x => ../x")
	if _, err := newRelease(m.dir, ""); err == nil || !strings.Contains(err.Error(), "replaces modules") {
		t.Errorf("go.mod with a replacement: %v", err)
	}
}

// TestRelease checks the files of a release, and that no file is written if a check fails.
func TestRelease(t *testing.T) {
	m := newMade(t)
	var said strings.Builder
	out := filepath.Join(m.dir, "build", "release")
	if err := m.release("").run(t.Context(), &said, out); err != nil {
		t.Fatalf("%v\n%s", err, &said)
	}
	if n := strings.Count(said.String(), "ok  "); n != 9 {
		t.Errorf("%d checks succeeded, want 9:\n%s", n, &said)
	}
	sums, err := os.ReadFile(filepath.Join(out, "SHA256SUMS"))
	if err != nil {
		t.Fatal(err)
	}
	var want strings.Builder
	for _, name := range []string{"made-v0.1.0.zip", "made-v0.1.0.cdx.json"} {
		text, err := os.ReadFile(filepath.Join(out, name))
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&want, "%x  %s\n", sha256.Sum256(text), name)
	}
	if string(sums) != want.String() {
		t.Errorf("SHA256SUMS is\n%swant\n%s", sums, &want)
	}
	var bom struct{ Components []component }
	text, err := os.ReadFile(filepath.Join(out, "made-v0.1.0.cdx.json"))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &bom); err != nil {
		t.Fatal(err)
	}
	if c := bom.Components[0]; c.PURL != "pkg:golang/example.com/dep@v1.0.0" || c.Scope != "" || fmt.Sprint(c.Licences) != "[map[license:map[id:MIT]]]" ||
		len(c.Properties) != 1 || !strings.HasPrefix(c.Properties[0].Value, "h1:") {
		t.Errorf("the first component is %+v", c)
	}

	if err := os.RemoveAll(out); err != nil {
		t.Fatal(err)
	}
	m.replace("README.md", "Go 1.26", "Go 1.25")
	said.Reset()
	if err := m.release("").run(t.Context(), &said, out); err == nil || !strings.Contains(err.Error(), "2 checks failed") {
		t.Errorf("%v\n%s", err, &said)
	}
	for _, want := range []string{"FAILED  tree ", "FAILED  versions ", "ok      module "} {
		if !strings.Contains(said.String(), want) {
			t.Errorf("release does not print %q:\n%s", want, &said)
		}
	}
	if _, err := os.Stat(out); !os.IsNotExist(err) {
		t.Errorf("release wrote files although a check failed: %v", err)
	}
}
