package deploytest

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// A stage is one FROM of a container file and the instructions after it.
type stage struct {
	base, name string
	steps      []step
}

// A step is one instruction, such as COPY, RUN or ENV, and the rest of its line.
type step struct{ instruction, rest string }

// parse reads a container file. It knows the instructions that the recipes use, and refuses all
// others.
func parse(text string) (stages []stage, err error) {
	for i, line := range strings.Split(strings.TrimSuffix(text, "\n"), "\n") {
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		instruction, rest, _ := strings.Cut(line, " ")
		switch instruction {
		case "FROM":
			base, name, _ := strings.Cut(rest, " AS ")
			stages = append(stages, stage{base: base, name: name})
			continue
		case "ARG", "WORKDIR", "COPY", "RUN", "ENV", "USER", "ENTRYPOINT":
		default:
			return nil, fmt.Errorf("line %d: the test cannot follow %q", i+1, line)
		}
		if len(stages) == 0 || strings.HasSuffix(line, `\`) {
			return nil, fmt.Errorf("line %d: the test cannot follow %q", i+1, line)
		}
		last := &stages[len(stages)-1]
		last.steps = append(last.steps, step{instruction, rest})
	}
	return stages, nil
}

// An image is a root folder, and how its program is started.
type image struct {
	dir        string
	env        []string
	user       string
	entrypoint string
}

// assignment is one NAME=value of ENV.
var assignment = regexp.MustCompile(`^[A-Z_]+=[^\s"'$\\]+$`)

// make carries out a container file, with pkg as its argument PACKAGE, and returns the image.
func (b *builder) make(t *testing.T, file, pkg string) image {
	t.Helper()
	text, err := os.ReadFile(file)
	check(t, err)
	stages, err := parse(string(text))
	if err != nil || len(stages) != 2 || stages[0].name != "build" || !strings.HasPrefix(stages[0].base, "golang:") {
		t.Fatalf("%s: %v; want a stage \"build\" of golang, and a stage for the image", file, err)
	}
	built := b.build(t, stages[0], pkg)
	img := image{dir: t.TempDir()}
	check(t, os.Chmod(img.dir, 0o755))
	switch base := stages[1].base; {
	case base == "scratch":
	case strings.HasPrefix(base, "debian:bookworm"):
		b.debianImage(t, img.dir)
	case strings.HasPrefix(base, "alpine:"):
		b.alpineImage(t, img.dir)
	default:
		t.Fatalf("%s: nothing here stands for the image %s", file, base)
	}
	for _, s := range stages[1].steps {
		fields := strings.Fields(s.rest)
		switch s.instruction {
		case "COPY":
			if len(fields) < 3 || fields[0] != "--from=build" {
				t.Fatalf("%s: the test cannot follow COPY %s", file, s.rest)
			}
			to := fields[len(fields)-1]
			if len(fields) > 3 && !strings.HasSuffix(to, "/") {
				t.Fatalf("%s: COPY of several files to %s, which does not end in /", file, to)
			}
			for _, from := range fields[1 : len(fields)-1] {
				source := filepath.Join(built, from)
				if !strings.HasPrefix(from, "/out/") {
					source = inside(t, b.debian, from)
				}
				target := filepath.Join(img.dir, to)
				if strings.HasSuffix(to, "/") {
					target = filepath.Join(target, filepath.Base(from))
				}
				copyFile(t, target, source)
			}
		case "ENV":
			for _, f := range fields {
				if !assignment.MatchString(f) {
					t.Fatalf("%s: the test cannot follow ENV %s", file, f)
				}
			}
			img.env = append(img.env, fields...)
		case "USER":
			img.user = s.rest
		case "ENTRYPOINT":
			img.entrypoint = strings.TrimSuffix(strings.TrimPrefix(s.rest, `["`), `"]`)
		default:
			t.Fatalf("%s: the test cannot follow %s in the last stage", file, s.instruction)
		}
	}
	if img.user != "65532:65532" || !strings.HasPrefix(img.entrypoint, "/") {
		t.Fatalf("%s: user %q, entry point %q; want a user without rights, and a file", file, img.user, img.entrypoint)
	}
	return img
}

// build runs the first stage in a root folder with the host's programs, and the module's files in
// /src. It returns the root folder.
func (b *builder) build(t *testing.T, s stage, pkg string) string {
	t.Helper()
	var key strings.Builder
	fmt.Fprintf(&key, "%s %v", pkg, s)
	if dir := b.built[key.String()]; dir != "" {
		return dir
	}
	dir, err := os.MkdirTemp(b.scratch, "build")
	check(t, err)
	check(t, os.Mkdir(filepath.Join(dir, "out"), 0o755))
	workdir, copied := "/", false
	for _, step := range s.steps {
		switch {
		case step.instruction == "ARG" && step.rest == "PACKAGE=.":
		case step.instruction == "WORKDIR":
			workdir = step.rest
		case step.instruction == "COPY" && step.rest == ". .":
			copied = true
		case step.instruction == "RUN" && copied:
			b.runInBuild(t, dir, workdir, "PACKAGE="+pkg, step.rest)
		default:
			t.Fatalf("the test cannot follow %s %s in the stage that builds", step.instruction, step.rest)
		}
	}
	b.built[key.String()] = dir
	return dir
}

// TestParse checks that parse refuses unknown instructions and forms.
func TestParse(t *testing.T) {
	stages, err := parse("# comment\nFROM a AS build\nARG X=1\nRUN go build -o /out/program .\n\nFROM scratch\nCOPY --from=build /a /b\n")
	if got := fmt.Sprintf("%+v", stages); err != nil || got != "[{base:a name:build steps:[{instruction:ARG rest:X=1} {instruction:RUN rest:go build -o /out/program .}]} {base:scratch name: steps:[{instruction:COPY rest:--from=build /a /b}]}]" {
		t.Errorf("%s, %v", got, err)
	}
	for _, text := range []string{"COPY a b\n", "FROM a\nADD a b\n", "FROM a\nRUN a \\\n  b\n"} {
		if stages, err := parse(text); err == nil {
			t.Errorf("%q is taken: %v", text, stages)
		}
	}
}
