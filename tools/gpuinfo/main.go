// Command gpuinfo prints which GPU libraries and devices puregpu finds on this machine.
//
//	gpuinfo [-json | -explain] [-memory] [-need]
//	gpuinfo -version
//
// For each library it prints the loaded file and why that file was chosen, the version, and which
// sets of functions are present, partial or missing, with the release that brought them; of more
// than eight missing sets it prints the number. For libraries that few programs need it prints only
// the version and the file. For each device it prints the name and the properties. It prints the links between the devices of a library as a
// matrix. -memory also prints free memory; for that each device makes a context. -json prints a
// Report instead; report.go describes its fields. -version prints only the versions of puregpu and
// Go, and the platform.
//
// -explain prints a page for a bug report: the system, the drivers in its kernel, device nodes and
// their permissions, the container, each file that was tried for each library with its version and
// its answer, the parts of the toolkit, and advice. The only personal data on the page are user and
// group numbers and paths, including paths in environment variables. With -json the report has all
// this too, and every missing function.
//
// The exit status is for scripts:
//
//	0  nothing is wrong; a missing GPU or library is no error
//	1  a library or device exists and cannot be used, such as an NVML that does not start;
//	   a library that finds no device is no error
//	2  the command line is wrong
//	3  with -need: no GPU can be used, and nothing is wrong
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/puregpu/puregpu/internal/secureenv"
	"github.com/puregpu/puregpu/internal/version"
	"github.com/puregpu/puregpu/runtime/dl"
)

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr, probes)) }

// run runs the program and returns the exit status.
func run(args []string, stdout, stderr io.Writer, probes []probe) int {
	flags := flag.NewFlagSet("gpuinfo", flag.ContinueOnError)
	flags.SetOutput(stderr)
	asJSON := flags.Bool("json", false, "print JSON")
	explain := flags.Bool("explain", false, "print a page for a bug report: the system, every file that was tried, and advice")
	need := flags.Bool("need", false, "exit with status 3 if no GPU can be used")
	memory := flags.Bool("memory", false, "print free memory; each device makes a context for it")
	onlyVersion := flags.Bool("version", false, "print the versions of puregpu and Go, and the platform")
	switch err := flags.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		return 2
	case flags.NArg() > 0:
		fmt.Fprintf(stderr, "gpuinfo: takes no arguments, got %q\n", flags.Args())
		return 2
	}

	build := version.Read()
	if *onlyVersion {
		fmt.Fprintf(stdout, "gpuinfo: %v\n", build)
		return 0
	}

	report := Report{
		Schema: schema,
		Program: Program{
			Version: build.Module, Revision: build.Revision, RevisionTime: build.Time, Modified: build.Modified,
			Go: build.Go, OS: build.OS, Arch: build.Arch, FastCalls: dl.Fast,
		},
		Libraries: []Library{},
		Devices:   []Device{},
	}
	if *explain {
		system := readSystem()
		report.System = &system
		if !*asJSON {
			fmt.Fprintf(stdout, "gpuinfo: %v, C calls through %s\n\n", build, calls(dl.Fast))
			system.print(stdout)
		}
	}
	status := 0
	var all []found
	var absent []string // libraries of CUDA's toolkit and of ROCm
	for i := range probes {
		p := &probes[i]
		lib, devices, links, err := p.look(*explain, *memory)
		report.Libraries = append(report.Libraries, lib)
		report.Devices = append(report.Devices, devices...)
		report.Links = append(report.Links, links...)
		if err != nil && !p.absence(err) {
			status = 1
		}
		all = append(all, found{p, lib, devices, err})
		switch {
		case *asJSON:
			continue
		case p.toolkit && errors.Is(err, dl.ErrNotFound) && secureenv.Get(p.env) == "":
			absent = append(absent, p.name)
			continue
		case p.toolkit && err == nil && !*explain:
			fmt.Fprintf(stdout, "%s %s: %s\n", p.name, lib.Version, lib.Path)
			continue
		case *explain:
			lib.printPage(stdout, err, devices)
			continue
		case lib.Found:
			lib.print(stdout)
		}
		if err != nil {
			fmt.Fprintln(stdout, p.sentence(&lib, err))
		}
		for i := range devices {
			devices[i].print(stdout)
		}
		printLinks(stdout, p.pkg, len(devices), links)
	}
	if absent != nil {
		fmt.Fprintf(stdout, "Not found, and needed only by programs that use them: %s.\n", strings.Join(absent, ", "))
		if *explain {
			fmt.Fprintln(stdout)
		}
	}
	for _, d := range report.Devices {
		if d.Errors != nil {
			status = 1
		}
	}
	for _, l := range report.Links {
		if l.Error != "" {
			status = 1
		}
	}
	if *explain {
		if report.System.Headers = headers(all); !*asJSON {
			printHeaders(stdout, report.System.Headers)
		}
		report.Advice = advise(report.System, all)
		if !*asJSON {
			printAdvice(stdout, report.Advice)
		}
	}
	if status == 0 && *need && !usable(all) {
		status = 3
	}
	if *asJSON {
		out, err := json.MarshalIndent(report, "", "\t")
		if err != nil {
			fmt.Fprintln(stderr, "gpuinfo: write JSON:", err)
			return 1
		}
		fmt.Fprintf(stdout, "%s\n", out)
	}
	return status
}

// calls names the mechanism of C calls.
func calls(fast bool) string {
	if fast {
		return "trampolines"
	}
	return "package purego"
}
