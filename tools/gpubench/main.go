// Command gpubench times puregpu and another way to do the same work, in turns, and says whether
// the goals are met. The other way, the raw side, is mostly a hand-written loop over the driver.
//
//	gpubench [-c libcloop.so] [-hip lib.so] [-python file] [-run regexp] [-rounds N] [-device name] [-json] [-svg file] [-bars file] [-long] [group ...]
//	gpubench -sim [-run regexp] [-rounds N] [-json] [-svg file] [-long] [group ...]
//	gpubench -compare dynamic.json static.json dynamic.json static.json ...
//	gpubench -version
//
// A group is all rows with the same name before the slash, such as collectives. Without a group
// gpubench runs all rows.
//
// It prints one line a row: the name, the raw side's figure, puregpu's figure, the ratio, the goal,
// and whether the goal was met. Figures are medians over the rounds. A time is for one operation,
// unless the row says otherwise.
//
// The rows of the group "calls" time the bindings alone: opening the library, and single calls. The
// raw side of the calls is a loop in C, from testdata/cloop.c; -c names the compiled file. All
// other rows time package gpu. Unless the text below says otherwise, their raw side is a Go loop
// that calls only the functions of package cuda that the work needs. The loop runs on a thread with
// a bound context and polls the driver until the work is done. In the groups chain, hop, kernel,
// native, pool, stream and trace package gpu works on the same thread, except in rows with "p50 to
// wait". In some rows without a raw side the ratio is to another row, such as the same work on the
// smallest scale, which shows whether the cost is flat. Rows that the device cannot run, such as
// memory pools or graphs, say so.
//
// The rows of the group "devices" use two devices: the one that -device names, and the next. In the
// row that loads code, the raw side is package gpu on one device. The rows of the group "hip"
// compare package gpu on a HIP library, which -hip names, with package gpu on the CUDA driver, the
// raw side, on the device of the same number. The folder testdata/hipovercuda of the repository has
// such a library for a machine without an AMD GPU.
//
// The rows of the group "stream" compare ways to submit the same work. The raw side submits the
// work to a queue with an Order, puregpu's side to a Stream. With typed arguments puregpu's side
// also makes a new Op for each launch.
//
// The rows of the group "kernel" time launches of a kernel with four arguments on a queue. The raw
// side is a loop of cuLaunchKernel, in C if -c is given. In the rows that say so, and in the row
// "p50 to wait", the raw side is a Go loop that records an event behind each launch.
//
// The rows of the group "native" time products of matrices by cuBLAS in a queue's order, with
// gpu.Native. The raw side calls cuBLAS in the same way on a stream. Both use the file that
// PUREGPU_CUBLAS_LIBRARY names, or the file of the system or of python3. Without such a file the
// rows do not run.
//
// The rows of the group "tail" time the slowest calls: the 99th percentile of calls that submit far
// ahead, and a parked fill that is released while the driver compiles.
//
// The rows of the group "others" compare a stream with the loop over the driver, with and without
// an event behind each operation, and with cuda.core, CuPy and PyTorch in a Python process (-python
// names the interpreter). Each library does the work as its users write it. p50 is the median time
// from the call until the host knows that the work is done. The other rows submit 2,000 operations
// ahead and wait for the last. -bars draws all of these rows, except those of the loop with events.
//
// The rows of the group "collectives" time all-reduces of float32, in place, over all devices: in
// one process with all of them, and in one process for each device. gpubench starts these
// processes. p50 is the median time in a process from the submission on its first rank until all
// its ranks are done; the slowest process counts. busbw is the bus bandwidth of many all-reduces
// submitted ahead, one after the other: bytes over time, × 2(n-1)/n for n ranks. chain and stream
// are the time of one of many all-reduces of which each waits for the one before, by points or in a
// Stream. -json also prints the least time, the time of one of many, and the bandwidth without the
// factor 2(n-1)/n. The raw side is PyTorch with one process a device (-python names a Python that
// has it). For each size the sides take turns and do the same numbers of all-reduces. While one
// side works, the processes of the other wait and hold no memory except their libraries'. puregpu
// uses PyTorch's NCCL file, unless PUREGPU_NCCL_LIBRARY names another. Both sides set
// NCCL_NVLS_ENABLE=0, because not every machine allows NVLink multicast. Without PyTorch there is
// no raw side. In one process one goroutine submits on all ranks, because the communicators' own
// threads do the work. -svg draws the bus bandwidths. The last rows, which have no raw side, are
// 100 small all-reduces, submitted as 100 groups, and recorded as one.
//
// With -sim gpubench uses two simulated devices and needs no GPU. The figures then show how the
// runtime scales. Goals that depend on a real device do not apply, and the raw side calls the
// simulated device.
//
// With -long the scale goes up to 1,000,000 submissions, which takes about a minute and 2 GB, and
// the sizes of all-reduces are all powers of two from 1 KiB to 1 GiB.
//
// -compare reads the output of -json of a dynamic program and of a static program (build tag
// puregpu_static), in turns, at least three runs each. gpubench compares the medians of puregpu's
// side in the rows that all files have. In a static program a C function may take 1.3 times as
// long, and cuLaunchKernel 1.02 times.
//
// -version prints the versions of puregpu and Go, and the platform.
//
// The exit status is 1 if a goal was missed or a row failed. The exit status is 2 after any other
// error, and if no row was run.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/puregpu/puregpu/internal/version"
)

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

// run runs the program with its arguments and returns its exit status.
func run(args []string, stdout, stderr io.Writer) int {
	if len(args) == 1 && args[0] == workerArg {
		return work(os.Stdin, stdout, stderr)
	}
	flags := flag.NewFlagSet("gpubench", flag.ContinueOnError)
	flags.SetOutput(stderr)
	var opt options
	flags.StringVar(&opt.cloop, "c", "", "shared `library` made from cloop.c, for the rows of the group calls and the raw side of some of wake and kernel")
	flags.StringVar(&opt.hip, "hip", "", "HIP `library`, for the rows of the group hip")
	flags.StringVar(&opt.python, "python", "python3", "`program` that runs Python with PyTorch, for the rows of the groups others and collectives")
	flags.StringVar(&opt.device, "device", "0", "`device` by number, UUID or PCI address")
	flags.BoolVar(&opt.sim, "sim", false, "run on a simulated GPU")
	flags.BoolVar(&opt.long, "long", false, "scale up to 1,000,000 submissions, and reduce all sizes")
	pattern := flags.String("run", "", "run the rows whose names match the `regexp`")
	rounds := flags.Int("rounds", 0, "`number` of rounds in which both sides take turns; 0: as many as suit the row")
	svg := flags.String("svg", "", "draw the bus bandwidth of all-reduces into a `file`")
	bars := flags.String("bars", "", "draw the rows of the group others into a `file`")
	asJSON := flags.Bool("json", false, "print JSON")
	comparing := flags.Bool("compare", false, "compare files with the JSON of a dynamic program and of a static one, in turns")
	onlyVersion := flags.Bool("version", false, "print the versions of puregpu and Go, and the platform")
	if err := flags.Parse(args); errors.Is(err, flag.ErrHelp) {
		return 0
	} else if err != nil {
		return 2
	}
	if *onlyVersion {
		fmt.Fprintf(stdout, "gpubench: %v\n", version.Read())
		return 0
	}
	if *comparing {
		if flags.NFlag() > 1 {
			fmt.Fprintln(stderr, "gpubench: -compare takes no other flag")
			return 2
		}
		kept, err := compareFiles(flags.Args(), stdout)
		switch {
		case err != nil:
			fmt.Fprintln(stderr, "gpubench:", err)
			return 2
		case !kept:
			return 1
		}
		return 0
	}
	wanted, err := regexp.Compile(*pattern)
	switch {
	case err != nil:
		err = fmt.Errorf("-run: %w", err)
	case *rounds < 0:
		err = fmt.Errorf("-rounds %d: at least one is needed", *rounds)
	}
	if err != nil {
		fmt.Fprintln(stderr, "gpubench:", err)
		return 2
	}
	e, err := newEnv(opt)
	if err != nil {
		fmt.Fprintln(stderr, "gpubench:", err)
		return 2
	}
	defer e.close()
	match := func(name string) bool {
		group, _, _ := strings.Cut(name, "/")
		return (flags.NArg() == 0 || slices.Contains(flags.Args(), group)) && wanted.MatchString(name)
	}
	var out printer = &table{w: stdout}
	if *asJSON {
		out = &document{w: stdout}
	}
	if *svg != "" {
		out = printers{out, &picture{file: *svg}}
	}
	if *bars != "" {
		out = printers{out, &barChart{file: *bars}}
	}
	line := newProgress(stderr)
	out.begin(e)
	good, ran := true, false
	for _, b := range benches(e) {
		if !b.matches(match) {
			continue
		}
		results := b.measure(e, *rounds, line)
		line.clear()
		for _, text := range e.remarks {
			out.remark(text)
		}
		e.remarks = nil
		for _, r := range results {
			if match(r.Row) {
				out.print(r)
				good = good && !r.bad()
				ran = ran || r.NotRun == ""
			}
		}
	}
	if err := out.end(); err != nil {
		fmt.Fprintln(stderr, "gpubench:", err)
		return 2
	}
	switch {
	case !ran:
		fmt.Fprintf(stderr, "gpubench: no row was run: groups %q, -run %q\n", flags.Args(), *pattern)
		return 2
	case !good:
		return 1
	}
	return 0
}

// benches returns all benches in the order in which they run.
func benches(e *env) []bench {
	var all []bench
	all = append(all, callBenches(e)...)
	all = append(all, latencyBenches()...)
	all = append(all, chainBenches()...)
	all = append(all, tailBenches(e)...)
	all = append(all, streamBenches()...)
	all = append(all, kernelBenches()...)
	all = append(all, traceBenches()...)
	all = append(all, nativeBenches()...)
	all = append(all, poolBenches()...)
	all = append(all, graphBenches()...)
	all = append(all, parkedBench())
	all = append(all, futureBench(e), unrelatedBench(e))
	all = append(all, semaphoreBench(), wakeBench(), lockedBench(), idleBench())
	// The benches below run last, because they give the devices access to each other and load more
	// libraries.
	all = append(all, deviceBenches(e)...)
	all = append(all, hipBenches()...)
	all = append(all, otherBenches()...)
	all = append(all, collectiveBenches(e)...)
	return all
}
