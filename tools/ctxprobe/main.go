// Command ctxprobe finds out which functions of the CUDA driver need a current context on the calling thread.
//
//	ctxprobe [-device N] [-library FILE] [-timeout D] [-text FILE] [-json FILE]
//
// It tries each function that runtime/driver/cudadriver calls: on a thread that has no current context, in a process of its
// own, for releases of the driver are known to crash. What fails without a context is tried with one as well, so that only
// the context can have been what was missing. The table is printed, and with -json and -text written to files; that of
// testdata/ctxprobe is what the driver's policy is held to.
//
// The exit status is 1 if nothing could be tried, and 2 if the command line is wrong.
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
	"strings"
	"time"

	"github.com/puregpu/puregpu/cuda"
)

// A Table is what was found.
type Table struct {
	Driver  string `json:"driver"` // the release: "580.159.04"
	CUDA    string `json:"cuda"`   // the newest CUDA that it knows: "13.0"
	Device  string `json:"device"`
	Comment string `json:"comment,omitempty"`
	ByHand  bool   `json:"by_hand,omitempty"` // not written by this program
	Rows    []Row  `json:"rows"`
}

// A Row is about one function.
type Row struct {
	Function string `json:"function"` // as it is exported
	Answer   string `json:"answer"`   // "no", "yes: CUDA_ERROR_…", "crashes", or "not tried: …"
}

// The answers, or what they begin with.
const (
	no       = "no"
	yes      = "yes: "
	crashes  = "crashes"
	notTried = "not tried: "
)

// mark is what a child's answer begins with, among whatever else it prints.
const mark = "ctxprobe: "

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

// run is the program: it returns the exit status.
func run(args []string, stdout, stderr io.Writer) int {
	flags := flag.NewFlagSet("ctxprobe", flag.ContinueOnError)
	flags.SetOutput(stderr)
	device := flags.Int("device", 0, "the device to try on")
	library := flags.String("library", "", "the CUDA driver's file")
	timeout := flags.Duration("timeout", time.Minute, "how long to wait for each function")
	text := flags.String("text", "", "write the table as text to this file")
	js := flags.String("json", "", "write the table as JSON to this file")
	trial := flags.String("trial", "", "try one function and print the answer; what the program calls itself for")
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
		answer := try(*trial, *library, *device)
		fmt.Fprintf(stdout, "\n%s%s\n", mark, answer)
		return 0
	}
	t, err := describe(*library, *device)
	if err == nil {
		for _, x := range trials {
			t.Rows = append(t.Rows, Row{x.name, child(x.name, *library, *device, *timeout)})
		}
		err = t.write(stdout, *text, *js)
	}
	if err != nil {
		fmt.Fprintf(stderr, "ctxprobe: %v\n", err)
		return 1
	}
	return 0
}

// describe says what is tried.
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
	if b, err := os.ReadFile("/proc/driver/nvidia/version"); err == nil {
		if m := regexp.MustCompile(`\b\d+\.\d+(\.\d+)?\b`).Find(b); m != nil {
			t.Driver = string(m)
		}
	}
	return t, nil
}

// child tries a function in another process, and says what became of it.
func child(name, library string, device int, timeout time.Duration) string {
	exe, err := os.Executable()
	if err != nil {
		return notTried + err.Error()
	}
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, exe, "-trial", name, "-device", fmt.Sprint(device), "-library", library)
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

// crash is what a process leaves behind that C code has ended, with Go's runtime in it or not.
var crash = regexp.MustCompile(`unexpected signal|SIG(SEGV|BUS|ABRT|ILL|FPE)|signal: `)

// childEnv is set for the processes that the program starts.
const childEnv = "PUREGPU_CTXPROBE_CHILD"

// write prints the table, and writes it to the files that have names.
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
}
