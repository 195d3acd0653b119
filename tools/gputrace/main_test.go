package main

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/puregpu/puregpu/internal/tracetest"
)

// files writes traces into a folder.
func files(t *testing.T, list map[string][]byte) string {
	t.Helper()
	dir := t.TempDir()
	for name, data := range list {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestCommandLine(t *testing.T) {
	dir := files(t, map[string][]byte{
		"steps.json": steps(2).JSON(), "trouble.json": trouble(), "empty.json": nil, "broken.json": []byte(`[{"ph":"Q","name":"x","pid":1,"tid":1,"ts":1}]`),
		"page.html": []byte("<html>"),
	})
	at := func(name string) string { return filepath.Join(dir, name) }
	for _, c := range []struct {
		name           string
		args           []string
		status         int
		stdout, stderr string
	}{
		{"nothing", nil, 2, "", "takes the files of a trace, or run"},
		{"run without a program", []string{"run"}, 2, "", "run takes the program to run"},
		{"a flag that there is not", []string{"-x"}, 2, "", "flag provided but not defined"},
		{"help", []string{"-h"}, 0, "", "gputrace run [flags] -- program"},
		{"version", []string{"-version"}, 0, "gputrace: puregpu", ""},
		{"a part that is none", []string{"-from", "2s", "-to", "1s", at("steps.json")}, 2, "", "leave nothing"},
		{"no rows", []string{"-top", "0", at("steps.json")}, 2, "", "above 0"},
		{"no such file", []string{at("none.json")}, 1, "", "open " + at("none.json")},
		{"a folder", []string{dir}, 1, "", "is a folder, not a trace"},
		{"an empty file", []string{at("empty.json")}, 1, "", "empty.json: not a trace: it does not begin with a JSON array of events: it is empty"},
		{"a page", []string{at("page.html")}, 1, "", "page.html: not a trace"},
		{"too many events", []string{"-max", "3", at("steps.json")}, 1, "", "more than 3 of this part"},
		{"a trace", []string{at("steps.json")}, 0, "mlp: 1.28 ms from the first", ""},
		{"a part of it", []string{"-to", "2.9ms", at("steps.json")}, 0, "3 submissions", ""},
		{"a part beyond the end", []string{"-from", "10s", at("steps.json")}, 1, "", "steps.json: the trace has nothing in the part that -from and -to name: it goes from "},
		{"a part beyond the end of one that is cut", []string{"-from", "10s", "-html", at("none.html"), at("trouble.json")}, 1, "", "nothing in the part"},
		{"ranks beyond the end", []string{"-from", "10s", "-json", at("steps.json"), at("trouble.json")}, 1, "", "nothing in the part"},
		{"JSON", []string{"-json", at("steps.json")}, 0, `"critical_path_by_kind": [`, ""},
		{"a check", []string{"-check", at("steps.json"), at("trouble.json")}, 0, "without its end: 4 submissions", ""},
		{"a check that finds something", []string{"-check", at("broken.json")}, 1, `event 1: phase "Q" is not used`, "broken.json: breaks the rules in 2 places"},
		{"writing over what is read", []string{"-o", at("steps.json"), at("steps.json")}, 1, "", "is an input file, and would be overwritten"},
		{"writing where nothing can be", []string{"-html", at("none/page.html"), at("steps.json")}, 1, "", "open " + at("none")},
		{"a whole file of one that is cut", []string{"-o", at("whole.json"), at("trouble.json")}, 0, "serve", "wrote"},
		{"ranks on one clock", []string{at("steps.json"), at("trouble.json")}, 0, "mlp and 1 more ranks", ""},
		{"a page of it", []string{"-html", at("page2.html"), at("steps.json")}, 0, "mlp", "wrote"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var stdout, stderr bytes.Buffer
			if status := run(c.args, &stdout, &stderr); status != c.status || !strings.Contains(stdout.String(), c.stdout) || !strings.Contains(stderr.String(), c.stderr) {
				t.Errorf("status %d, want %d\nprinted:\n%s\nwant %q\nerrors:\n%s\nwant %q", status, c.status, stdout.String(), c.stdout, stderr.String(), c.stderr)
			}
		})
	}
	if left, err := filepath.Glob(at(".gputrace-*")); err != nil || len(left) > 0 {
		t.Errorf("left behind: %q, %v", left, err)
	}
	var stdout, stderr bytes.Buffer
	if status := run([]string{"-check", at("whole.json")}, &stdout, &stderr); status != 0 || !strings.Contains(stdout.String(), ", whole:") {
		t.Errorf("the file that -o wrote: %s%s", stdout.String(), stderr.String())
	}
}

// TestRunPutsRanksTogether checks that gputrace run merges the traces of a program's ranks. The
// test itself is the program, and writes two traces.
func TestRunPutsRanksTogether(t *testing.T) {
	if name := os.Getenv("PUREGPU_TRACE"); name != "" && os.Getenv("GPUTRACE_TEST_PROGRAM") != "" {
		for rank := range 2 {
			b := tracetest.New("program", rank, 2, start2026.Add(time.Duration(rank)*time.Millisecond))
			if err := os.WriteFile(strings.ReplaceAll(name, "%p", fmt.Sprint(1000+rank)), b.JSON(), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		os.Exit(7)
	}
	t.Setenv("GPUTRACE_TEST_PROGRAM", "1")
	var stdout, stderr bytes.Buffer
	if status := run([]string{"run", "--", os.Args[0], "-test.run=^TestRunPutsRanksTogether$"}, &stdout, &stderr); status != 7 || !strings.Contains(stdout.String(), "program and 1 more ranks") {
		t.Errorf("status %d, printed:\n%s%s", status, stdout.String(), stderr.String())
	}
	for _, c := range []struct {
		args   []string
		status int
		stderr string
	}{
		{[]string{"run", "--", os.Args[0], "-test.run=^$"}, 1, "wrote no trace"},
		{[]string{"run", "--", os.Args[0], "-test.no-such-flag"}, 2, "exit status 2"},
		{[]string{"run", "--", filepath.Join(t.TempDir(), "none")}, 1, "none"},
	} {
		t.Setenv("GPUTRACE_TEST_PROGRAM", "")
		var stdout, stderr bytes.Buffer
		if status := run(c.args, &stdout, &stderr); status != c.status || !strings.Contains(stderr.String(), c.stderr) {
			t.Errorf("%q: status %d, errors:\n%s", c.args, status, stderr.String())
		}
	}
}

// TestRunInterrupted checks that gputrace run, when interrupted or terminated, waits for the program
// and prints the program's trace, and that it passes SIGTERM on. The test itself is the program, and
// sends gputrace the signal.
func TestRunInterrupted(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("no process can be interrupted alone")
	}
	if name := os.Getenv("PUREGPU_TRACE"); name != "" && os.Getenv("GPUTRACE_TEST_PROGRAM") != "" {
		terminated := make(chan os.Signal, 1)
		signal.Notify(terminated, syscall.SIGTERM)
		send := os.Interrupt
		if os.Getenv("GPUTRACE_TEST_PROGRAM") == "terminated" {
			send = syscall.SIGTERM
		}
		gputrace, err := os.FindProcess(os.Getppid())
		if err == nil {
			err = gputrace.Signal(send)
		}
		if err != nil {
			t.Fatal(err)
		}
		if send == syscall.SIGTERM {
			<-terminated
		}
		if err := os.WriteFile(strings.ReplaceAll(name, "%p", "1"), tracetest.New("server", 0, 0, start2026).JSON(), 0o644); err != nil {
			t.Fatal(err)
		}
		os.Exit(0)
	}
	for _, how := range []string{"interrupted", "terminated"} {
		t.Setenv("GPUTRACE_TEST_PROGRAM", how)
		var stdout, stderr bytes.Buffer
		if status := run([]string{"run", "--", os.Args[0], "-test.run=^TestRunInterrupted$"}, &stdout, &stderr); status != 0 || !strings.Contains(stdout.String(), "server: ") {
			t.Errorf("%s: status %d, printed:\n%s%s", how, status, stdout.String(), stderr.String())
		}
	}
}

// TestPageNeedsNothingElse checks that a page contains its data, refers to no other address, and
// escapes names.
func TestPageNeedsNothingElse(t *testing.T) {
	b := steps(1)
	b.Events[1].Args.Name = "</script><script>alert(1)</script>"
	b.Events[0].Args.Program = `<img src=x onerror="alert(1)">`
	tr := loaded(t, b.JSON())
	var out bytes.Buffer
	if err := writePage(&out, tr, summarize(tr)); err != nil {
		t.Fatal(err)
	}
	page := out.String()
	if n := strings.Count(page, "<script"); n != 2 || strings.Count(page, "</script>") != 2 {
		t.Errorf("%d scripts", n)
	}
	if strings.Contains(page, "<img") || strings.Contains(page, "{{") {
		t.Error("text of the trace is markup of the page, or the template is not filled in")
	}
	if m := regexp.MustCompile(`(?i)(src|href)="?(https?:)?//|@import|url\(http`).FindString(page); m != "" {
		t.Errorf("the page has %q", m)
	}
	policy := fmt.Sprintf("default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-%s'", hashOf(pageJS))
	if !strings.Contains(page, policy) {
		t.Errorf("the page lacks the policy %q", policy)
	}
	var data pageData
	readPage(t, page, &data)
	kinds := map[int]int{}
	for _, k := range data.Slices.Kind {
		kinds[k]++
	}
	if kinds[pageDevice] != 3 || kinds[pageQueue] != 3 || kinds[pageCall] != 2 || kinds[pageWait] != 1 || len(data.From) != 3 || len(data.Counters) != 2 {
		t.Errorf("kinds %v, %d arrows, %d counters", kinds, len(data.From), len(data.Counters))
	}
	sum := 0
	for _, k := range data.Tracks {
		for _, n := range k.Rows {
			sum += n
		}
	}
	if sum != len(data.Slices.Name) {
		t.Errorf("%d slices in rows, of %d", sum, len(data.Slices.Name))
	}
}

// readPage decodes the data in a page.
func readPage(t *testing.T, page string, data any) {
	t.Helper()
	_, rest, ok := strings.Cut(page, `id="data">`)
	text, _, ended := strings.Cut(rest, "</script>")
	if !ok || !ended {
		t.Fatal("the page has no data")
	}
	zip, err := gzip.NewReader(base64.NewDecoder(base64.StdEncoding, strings.NewReader(strings.TrimSpace(text))))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.NewDecoder(zip).Decode(data); err != nil {
		t.Fatal(err)
	}
}

func hashOf(s string) string {
	sum := sha256.Sum256([]byte(s))
	return base64.StdEncoding.EncodeToString(sum[:])
}

// TestBundleIsOfItsSource checks that web/build.sh has run since its sources last changed.
func TestBundleIsOfItsSource(t *testing.T) {
	h := sha256.New()
	for _, name := range []string{"viewer.js", "package-lock.json"} {
		data, err := os.ReadFile(filepath.Join("web", name))
		if err != nil {
			t.Fatal(err)
		}
		h.Write(data)
	}
	if want := "source " + hex.EncodeToString(h.Sum(nil)); !strings.Contains(pageJS, want) {
		t.Errorf("web/viewer.min.js is not of %s: run tools/gputrace/web/build.sh", want)
	}
	licenses, err := os.ReadFile("web/LICENSES")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(pageJS, string(licenses)) {
		t.Error("web/viewer.min.js lacks the licenses of what is in it")
	}
}
