// Command gpubench times puregpu against hand-written loops, in one process and in turns, and says whether the goals are met.
//
//	gpubench [-c libcloop.so] [-hip lib.so] [-python file] [-run regexp] [-rounds N] [-device name] [-json] [-svg file] [-bars file] [-long] [group ...]
//	gpubench -sim [-run regexp] [-rounds N] [-json] [-svg file] [-long] [group ...]
//	gpubench -compare dynamic.json static.json dynamic.json static.json ...
//	gpubench -version
//
// Groups of rows go by what their names begin with, such as collectives; without one all are run.
//
// One line is printed a row: what was timed, by the raw side, by puregpu's, the ratio, the goal, and whether it was met.
// Figures are medians over the rounds. A time is one of an operation, if the row does not say otherwise.
//
// The rows of the group calls time the bindings alone: the raw side is a loop in C, from testdata/cloop.c, which -c names.
// All others time package gpu: there the raw side is a loop in Go that makes the calls of package cuda that the work cannot
// do without, on a thread of its own to which the context is bound, and asks the driver until the work is done. In the groups
// chain, hop, kernel, native and pool package gpu works on the same thread. Where there is nothing to compare with, the ratio is that to the
// same work on the smallest scale, which tells whether it is flat.
// Rows of what the device cannot do, such as memory pools or graphs, are not run, and say so.
//
// The rows of the group devices take two devices: the one that -device names, and the next. Their raw side loads code on one
// alone. Those of the group hip compare package gpu over a HIP library, which -hip names, with package gpu over the CUDA
// driver, which is the raw side there, on the device of the same number. testdata/hipovercuda has such a library for a machine
// without an AMD GPU.
//
// The rows of the group stream compare ways to submit the same: the raw side is a call of a queue, with its lists, and puregpu's side
// the call of a stream, or a launch with typed arguments.
//
// The rows of the group kernel time launches of a kernel with four arguments, on a queue. The raw side is a loop of cuLaunchKernel, in C if -c
// is given, and for the rows that say so one in Go that records an event behind each launch.
//
// The rows of the group native time products of matrices by cuBLAS, which package cudadriver's users put into a queue's order with
// gpu.Native. The raw side calls cuBLAS alike, on a stream. Both take the file that PUREGPU_CUBLAS_LIBRARY names, or what the system or
// python3 has; without one the rows are not run.
//
// The rows of the group tail time what must not take long at times: one call in a hundred of those that submit far ahead, and a parked
// fill that is released while the driver compiles.
//
// The rows of the group others time a stream beside the loop over the driver, without events and with one behind each operation, and beside cuda.core, CuPy and PyTorch in a process of
// Python (-python names it). Each library does the work as its users write it. p50 is the median time from the call until the host
// knows that the work is done; the other rows submit 2,000 operations ahead and wait for the last. -bars draws them.
//
// The rows of the group collectives time all-reduces of float32, in place, over all devices: in one process that has them all,
// and in processes that have one each, which the program starts itself. p50 is the median time from the submission on the
// first rank until the last is done; busbw is the bus bandwidth of many that are submitted ahead, one behind the other: bytes
// over time, × 2(n-1)/n for n ranks. The least time, the time of one of many, and the bandwidth without that factor are printed
// with -json. The raw side is PyTorch (-python names the program that has it) with one process a device. For each size the sides
// take turns, as everywhere, with the same numbers of all-reduces; while one works the processes of the other wait and have no
// memory but their libraries'. Both use the file of NCCL that PyTorch brings, if PUREGPU_NCCL_LIBRARY does not name another, and
// for both NCCL_NVLS_ENABLE=0 is set, since NVLink's multicast is not to be used on every machine. Without PyTorch there is no
// raw side. In one process one goroutine submits on all ranks, since the communicators' own threads do the work. -svg draws the bus
// bandwidths. The last rows are 100 small all-reduces, submitted as 100 groups, and recorded as one.
//
// With -sim the devices are two simulated ones, so that no GPU is needed. Their rows tell how the runtime scales; goals that a
// real device has a part in are not applied, and the raw side calls the simulated device.
//
// With -long the scale goes up to 1,000,000 submissions, which takes a minute and 2 GB or so, and the sizes of all-reduces are
// all powers of two.
//
// -compare reads what -json has printed, by a dynamic program and by a static one (build tag puregpu_static) in turns, three times each at least,
// and compares the medians of the rows that all have, by puregpu's side. A C function may take 1.3 times as long in a static program, and
// cuLaunchKernel 1.02 times.
//
// -version prints the versions of puregpu and Go, and the platform.
//
// The exit status is 1 if a goal was missed or a row failed, and 2 if nothing could be run or compared.
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
			fmt.Fprintln(stderr, "gpubench: -compare goes with no other flag")
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
		err = fmt.Errorf("-rounds %d: there must be one at least", *rounds)
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

// benches returns all of them, in the order in which they run.
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
	// Behind all others, which should not notice that the devices know each other and that one more library is there.
	all = append(all, deviceBenches(e)...)
	all = append(all, hipBenches()...)
	all = append(all, otherBenches()...)
	all = append(all, collectiveBenches(e)...)
	return all
}
