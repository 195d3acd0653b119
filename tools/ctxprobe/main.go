// Command ctxprobe finds out which functions of the CUDA driver need a current context on the
// calling thread, and which memory they accept.
//
//	ctxprobe [-device N] [-library FILE] [-timeout D] [-jobs N] [-only REGEXP] [-text FILE] [-json FILE]
//
// It calls each function that runtime/driver/cudadriver uses, on a thread without a current
// context. Each call is in a process of its own, because some driver releases crash. ctxprobe
// repeats a failed call with a context, to show that the missing context was the reason.
//
// Then it passes memory of every kind to the submitting functions: memory of the device and, if
// there is one, of another device, with and without a context, again each call in a process of its
// own. ctxprobe gives no device access to another device's pools.
//
// It prints the table, and writes it to the files of -json and -text. Tests check the driver
// against the tables in testdata/ctxprobe.
//
// The exit status is 1 if nothing could be tried or a file not written, and 2 if the command line
// is wrong.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/puregpu/puregpu/cuda"
)

// A Table has the results of a run.
type Table struct {
	Driver  string `json:"driver"` // the release: "580.159.04"
	CUDA    string `json:"cuda"`   // the newest CUDA version that it supports: "13.0"
	Device  string `json:"device"`
	Comment string `json:"comment,omitempty"`
	ByHand  bool   `json:"by_hand,omitempty"` // written by hand, not by this program
	Rows    []Row  `json:"rows"`
	Devices int    `json:"devices,omitempty"` // number of devices that the cases use, one or two
	Cases   []Case `json:"cases,omitempty"`   // absent in old tables
}

// A Row is about one function.
type Row struct {
	Function string `json:"function"` // the exported name
	Answer   string `json:"answer"`   // "no", "yes: CUDA_ERROR_…", "crashes", or "not tried: …"
}

// The answers for functions. Some continue with details.
const (
	no       = "no"
	yes      = "yes: "
	crashes  = "crashes"
	notTried = "not tried: "
)

// mark begins the answer in a child's output.
const mark = "ctxprobe: "

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

// run runs the program and returns the exit status.
func run(args []string, stdout, stderr io.Writer) int {
	flags := flag.NewFlagSet("ctxprobe", flag.ContinueOnError)
	flags.SetOutput(stderr)
	device := flags.Int("device", 0, "the device to try on")
	library := flags.String("library", "", "the CUDA driver's file")
	timeout := flags.Duration("timeout", time.Minute, "time limit for each function")
	text := flags.String("text", "", "write the table as text to this file")
	js := flags.String("json", "", "write the table as JSON to this file")
	jobs := flags.Int("jobs", min(8, max(2, runtime.NumCPU()/2)), "number of concurrent processes")
	only := flags.String("only", "", "try only functions, and cases as function:memory, that match a regular `expression`")
	trial := flags.String("trial", "", "try one function or case and print the answer; the program runs itself with this flag")
	with := flags.Bool("with", false, "try the case with the context current")
	switch err := flags.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		return 2
	case flags.NArg() > 0:
		fmt.Fprintf(stderr, "ctxprobe: takes no arguments, got %q\n", flags.Args())
		return 2
	}
	if *trial != "" {
		var answer string
		if strings.Contains(*trial, ": ") {
			answer = tryMemory(*trial, *library, *device, *with)
		} else {
			answer = try(*trial, *library, *device)
		}
		fmt.Fprintf(stdout, "\n%s%s\n", mark, answer)
		return 0
	}
	if *jobs < 1 {
		fmt.Fprintf(stderr, "ctxprobe: -jobs is %d, and must be positive\n", *jobs)
		return 2
	}
	match, err := regexp.Compile(*only)
	if err != nil {
		fmt.Fprintf(stderr, "ctxprobe: -only: %v\n", err)
		return 2
	}
	t, err := describe(*library, *device)
	if err == nil {
		t.fill(match, *jobs, func(name string, with bool) string { return child(name, *library, *device, *timeout, with) })
		err = t.write(stdout, *text, *js)
	}
	if err != nil {
		fmt.Fprintf(stderr, "ctxprobe: %v\n", err)
		return 1
	}
	return 0
}

// fill tries all functions and cases.
func (t *Table) fill(match *regexp.Regexp, jobs int, child func(name string, with bool) string) {
	var todo []func()
	for _, x := range trials {
		if match.MatchString(x.name) {
			t.Rows = append(t.Rows, Row{Function: x.name})
		}
	}
	for i := range t.Rows {
		r := &t.Rows[i]
		todo = append(todo, func() { r.Answer = child(r.Function, false) })
	}
	cases := givens(t.Devices)
	cases = slices.DeleteFunc(cases, func(g given) bool { return !match.MatchString(g.name()) })
	t.Cases = make([]Case, len(cases))
	for i, g := range cases {
		c := &t.Cases[i]
		c.Function, c.Memory = g.user.name, g.memory()
		todo = append(todo, func() { c.Without = child(g.name(), false) }, func() { c.With = child(g.name(), true) })
	}
	var wg sync.WaitGroup
	free := make(chan struct{}, jobs)
	for _, f := range todo {
		free <- struct{}{}
		wg.Go(func() {
			f()
			<-free
		})
	}
	wg.Wait()
}

// describe returns a table with the driver and the devices, and without rows.
func describe(library string, device int) (*Table, error) {
	lib, err := cuda.Open(cuda.Options{Path: library})
	if err != nil {
		return nil, err
	}
	if err := lib.Init(0); err != nil {
		return nil, err
	}
	dev, err := lib.DeviceGet(int32(device))
	if err != nil {
		return nil, fmt.Errorf("device %d: %w", device, err)
	}
	t := &Table{Driver: "unknown", CUDA: cuda.FormatVersion(lib.Version())}
	if t.Device, err = lib.DeviceGetName(dev); err != nil {
		return nil, err
	}
	n, err := lib.DeviceGetCount()
	if err != nil {
		return nil, err
	}
	t.Devices = min(int(n), 2)
	if b, err := os.ReadFile("/proc/driver/nvidia/version"); err == nil {
		if m := regexp.MustCompile(`\b\d+\.\d+(\.\d+)?\b`).Find(b); m != nil {
			t.Driver = string(m)
		}
	}
	return t, nil
}

// child tries a function or a case in another process, and returns the outcome.
func child(name, library string, device int, timeout time.Duration, with bool) string {
	exe, err := os.Executable()
	if err != nil {
		return notTried + err.Error()
	}
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, exe, "-trial", name, "-device", fmt.Sprint(device), "-library", library, fmt.Sprintf("-with=%t", with))
	cmd.Env = append(os.Environ(), childEnv+"=1")
	out, err := cmd.Output()
	for line := range strings.Lines(string(out)) {
		if answer, ok := strings.CutPrefix(strings.TrimSpace(line), mark); ok {
			return answer
		}
	}
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return fmt.Sprintf("%sno answer within %v", notTried, timeout)
	case errors.As(err, &exit) && crash.Match(append(exit.Stderr, exit.String()...)):
		return crashes
	case errors.As(err, &exit):
		return fmt.Sprintf("%sthe process ended with %v", notTried, exit)
	case err != nil:
		return notTried + err.Error()
	}
	return notTried + "the process said nothing"
}

// crash matches the output or the state of a process that crashed in C code.
var crash = regexp.MustCompile(`unexpected signal|SIG(SEGV|BUS|ABRT|ILL|FPE)|signal: `)

// childEnv is set in child processes.
const childEnv = "PUREGPU_CTXPROBE_CHILD"

// write prints the table, and writes it to the named files.
func (t *Table) write(stdout io.Writer, text, js string) error {
	var b strings.Builder
	t.print(&b)
	if _, err := io.WriteString(stdout, b.String()); err != nil {
		return err
	}
	if text != "" {
		if err := os.WriteFile(text, []byte(b.String()), 0o666); err != nil {
			return err
		}
	}
	if js == "" {
		return nil
	}
	data, err := json.MarshalIndent(t, "", "\t")
	if err != nil {
		return err
	}
	return os.WriteFile(js, append(data, '\n'), 0o666)
}

func (t *Table) print(w io.Writer) {
	fmt.Fprintf(w, "driver %s, CUDA %s, %s: does a function need a current context?\n", t.Driver, t.CUDA, t.Device)
	if t.Comment != "" {
		fmt.Fprintln(w, t.Comment)
	}
	for _, r := range t.Rows {
		fmt.Fprintf(w, "%-36s %s\n", r.Function, r.Answer)
	}
	count := func(answer string) (n int) {
		for _, r := range t.Rows {
			if strings.HasPrefix(r.Answer, answer) {
				n++
			}
		}
		return n
	}
	tried := len(t.Rows) - count(notTried)
	fmt.Fprintf(w, "of %d functions %d need none, %d need one, %d crash without, and %d were not tried\n",
		len(t.Rows), tried-count(yes)-count(crashes), count(yes), count(crashes), count(notTried))
	t.printCases(w)
}

// printCases prints the cases whose outcomes are not both right, and the number of the other cases.
func (t *Table) printCases(w io.Writer) {
	if len(t.Cases) == 0 {
		return
	}
	fmt.Fprintf(w, "\nmemory of %d devices: without a context, and with one\n", t.Devices)
	good := map[string]int{}
	all := map[string]int{}
	var names []string
	for _, c := range t.Cases {
		if all[c.Function]++; all[c.Function] == 1 {
			names = append(names, c.Function)
		}
		if c.Without == right && c.With == right {
			good[c.Function]++
			continue
		}
		fmt.Fprintf(w, "%-24s %-46s %-34s %s\n", c.Function, c.Memory, c.Without, c.With)
	}
	for _, n := range names {
		fmt.Fprintf(w, "%-24s right either way in %d of %d cases\n", n, good[n], all[n])
	}
}
