// Command locks runs tests with watched mutexes. It reports the order in which goroutines lock
// mutexes, and how many mutexes a goroutine holds at a time.
//
//	locks [-depth N] [-v] [ARGUMENTS OF GO TEST]
//
// It runs in the root of the module. In the packages of the runtime it replaces the types
// sync.Mutex and sync.RWMutex of fields by types of internal/lockcheck (go test -overlay), so the
// product needs no hook. By default it runs the short tests of the core, without a few that cannot
// run with watched mutexes. That takes some minutes.
//
// It prints each order in which mutexes were held, without orders that begin a longer one. The exit
// status is 1 if mutexes are locked in a cycle, if a goroutine holds two mutexes of one name that
// must not nest, or if it holds more of the scheduler's mutexes than -depth allows. The exit status
// is 2 if the command line is wrong. Write -- before arguments of go test that begin with - .
package main

import (
	"bufio"
	"errors"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/puregpu/puregpu/internal/lockcheck"
	"github.com/puregpu/puregpu/internal/overlay"
)

// folders contain the watched mutexes.
var folders = []string{"runtime/gpu", "runtime/internal/engine", "runtime/internal/sema", "runtime/internal/wake", "runtime/internal/blockpool", "runtime/internal/recording",
	"runtime/internal/memory", "runtime/internal/comm", "runtime/internal/events", "runtime/internal/closer"}

// scheduler lists the mutexes of the scheduler. The flag -depth limits how many of them a goroutine
// may hold at a time.
var scheduler = []string{"engine.Timeline.mu", "engine.Timeline.coverMu", "engine.Timeline.queryMu",
	"engine.Timeline.retireMu", "engine.ring.mu", "engine.records.mu", "engine.EventPool.mu", "engine.loan.mu",
	"engine.Device.mu", "engine.Uses.mu", "sema.Semaphore.mu", "sema.TimepointPool.mu"}

// tested are the packages whose tests run by default.
var tested = []string{"./runtime/internal/engine", "./runtime/internal/sema", "./runtime/internal/memory",
	"./runtime/internal/recording", "./runtime/gpu", "./runtime/collective", "./runtime/control", "./runtime/interop", "./runtime/growing"}

// unfit lists the tests that do not run here: tests that hold mutexes of the runtime, that submit
// inside a call of the driver while the runtime holds mutexes, or that count allocations.
const unfit = "^(TestDump|TestParked|TestLostWhileFollowed|TestWaitForClosed|TestUseBeforeCheck|TestNearDeps|TestMishap)$|" +
	"^(TestJoin|TestSharedEventGarbage|TestLargeArgumentsAligned|TestTraceRing)$|Allocs|Allocations|AllocatesNothing"

// nested lists mutexes of which a goroutine may hold two at a time: the mutex of a recording that
// the goroutine executes, and the mutex of a recording nested in that recording.
var nested = []string{"recording.Recording.mu"}

func main() {
	err := run(os.Args[1:], os.Stdout, os.Stderr)
	if err == nil || errors.Is(err, flag.ErrHelp) {
		return
	}
	fmt.Fprintln(os.Stderr, "locks:", err)
	if errors.Is(err, errUsage) {
		os.Exit(2)
	}
	os.Exit(1)
}

var errUsage = errors.New("usage: locks [-depth N] [-v] [ARGUMENTS OF GO TEST]")

func run(args []string, stdout, stderr io.Writer) error {
	flags := flag.NewFlagSet("locks", flag.ContinueOnError)
	depth := flags.Int("depth", 0, "how many of the scheduler's mutexes a goroutine may hold; 0 is no limit")
	verbose := flags.Bool("v", false, "print where each order was seen first")
	flags.SetOutput(io.Discard)
	switch err := flags.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		fmt.Fprintln(stderr, errUsage)
		flags.SetOutput(stderr)
		flags.PrintDefaults()
		return err
	case err != nil:
		return fmt.Errorf("%w; %w", err, errUsage)
	case *depth < 0:
		return fmt.Errorf("-depth is %d, and must not be negative; %w", *depth, errUsage)
	}
	test := flags.Args()
	if len(test) == 0 {
		test = append([]string{"-short", "-skip=" + unfit}, tested...)
	}
	tmp, err := os.MkdirTemp("", "locks")
	if err != nil {
		return err
	}
	defer os.RemoveAll(tmp)
	file, err := rewrite(tmp)
	if err != nil {
		return err
	}
	seen := filepath.Join(tmp, "seen")
	cmd := exec.Command("go", append([]string{"test", "-count=1", "-timeout=30m", "-overlay=" + file}, test...)...)
	cmd.Env = append(os.Environ(), lockcheck.Output+"="+seen)
	cmd.Stdout, cmd.Stderr = stderr, stderr
	tested := cmd.Run()
	text, err := os.Open(seen)
	if err != nil {
		return errors.Join(tested, errors.New("no test has locked anything"))
	}
	defer text.Close()
	found, err := read(text)
	if err != nil {
		return err
	}
	found.print(stdout, *verbose)
	return errors.Join(tested, found.judge(*depth))
}

// rewrite writes the files with watched mutexes to a folder and returns the path of the overlay.
func rewrite(tmp string) (string, error) {
	replace, names := map[string]string{}, map[string]bool{}
	for _, folder := range folders {
		files, err := filepath.Glob(filepath.Join(folder, "*.go"))
		if err != nil {
			return "", err
		}
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			src, err := os.ReadFile(file)
			if err != nil {
				return "", err
			}
			out, watched, err := watch(file, src)
			if err != nil {
				return "", err
			}
			if len(watched) == 0 {
				continue
			}
			for _, name := range watched {
				names[name] = true
			}
			abs, err := filepath.Abs(file)
			if err != nil {
				return "", err
			}
			replace[abs] = filepath.Join(tmp, strings.ReplaceAll(file, string(filepath.Separator), "_"))
			if err := os.WriteFile(replace[abs], out, 0o666); err != nil {
				return "", err
			}
		}
	}
	if len(replace) == 0 {
		return "", errors.New("no mutexes here: run it in the root of the module")
	}
	for _, name := range scheduler {
		if !names[name] {
			return "", fmt.Errorf("there is no mutex %s: update the list of the scheduler's mutexes", name)
		}
	}
	return overlay.Write(tmp, replace)
}

// watch replaces the mutexes in the structs of a file and returns their names. It does not replace
// embedded mutexes, or fields that are declared together. Lines stay where they are.
func watch(name string, src []byte) (out []byte, watched []string, err error) {
	fset := token.NewFileSet()
	f, err := parser.ParseFile(fset, name, src, parser.SkipObjectResolution)
	if err != nil {
		return nil, nil, err
	}
	type edit struct {
		from, to int
		text     string
	}
	var edits []edit
	var types strings.Builder
	at := func(p token.Pos) int { return fset.Position(p).Offset }
	for _, d := range f.Decls {
		g, ok := d.(*ast.GenDecl)
		if !ok || g.Tok != token.TYPE {
			continue
		}
		for _, spec := range g.Specs {
			of := spec.(*ast.TypeSpec).Name.Name
			ast.Inspect(spec, func(n ast.Node) bool {
				field, ok := n.(*ast.Field)
				if !ok || len(field.Names) != 1 {
					return true
				}
				sel, ok := field.Type.(*ast.SelectorExpr)
				if !ok {
					return true
				}
				pkg, ok := sel.X.(*ast.Ident)
				if !ok || pkg.Name != "sync" || sel.Sel.Name != "Mutex" && sel.Sel.Name != "RWMutex" {
					return true
				}
				mutex := field.Names[0].Name
				tag, whole := "lockcheck_"+of+"_"+mutex, f.Name.Name+"."+of+"."+mutex
				edits = append(edits, edit{at(sel.Pos()), at(sel.End()), "lockcheck." + sel.Sel.Name + "[" + tag + "]"})
				watched = append(watched, whole)
				fmt.Fprintf(&types, "type %s struct{}\nfunc (%[1]s) Name() string { return %q }\n", tag, whole)
				return true
			})
		}
	}
	if len(edits) == 0 {
		return src, nil, nil
	}
	end := at(f.Name.End())
	out = append(out, src[:end]...)
	out = append(out, "; import lockcheck \"github.com/puregpu/puregpu/internal/lockcheck\""...)
	for _, e := range edits {
		out = append(out, src[end:e.from]...)
		out = append(out, e.text...)
		end = e.to
	}
	out = append(out, src[end:]...)
	out = append(out, "\nvar _ sync.Locker // keeps the import in use\n"+types.String()...)
	return out, watched, nil
}

// orders are the orders in which mutexes were held, with the place where each was first seen.
type orders map[string]string

func read(r io.Reader) (orders, error) {
	found := orders{}
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		order, where, _ := strings.Cut(lines.Text(), "\t")
		if _, ok := found[order]; !ok {
			found[order] = where
		}
	}
	return found, lines.Err()
}

// bare returns the name of a mutex without brackets. Brackets mean that the lock did not wait.
func bare(name string) string { return strings.Trim(name, "[]") }

// scheduled returns how many of an order's mutexes are the scheduler's.
func scheduled(order string) (n int) {
	for _, name := range strings.Fields(order) {
		if slices.Contains(scheduler, bare(name)) {
			n++
		}
	}
	return n
}

// print prints the orders that are not the beginning of a longer one.
func (o orders) print(w io.Writer, verbose bool) {
	for _, order := range slices.Sorted(maps.Keys(o)) {
		longer := func(other string) bool { return strings.HasPrefix(other, order+" ") }
		if slices.ContainsFunc(slices.Collect(maps.Keys(o)), longer) {
			continue
		}
		fmt.Fprintf(w, "%d  %s\n", scheduled(order), strings.ReplaceAll(order, " ", " > "))
		if verbose {
			fmt.Fprintf(w, "      %s\n", o[order])
		}
	}
}

// judge returns an error for each forbidden order.
func (o orders) judge(depth int) error {
	var errs []error
	after := map[string]map[string]string{} // for each mutex, the mutexes locked while it was held, with the places
	for _, order := range slices.Sorted(maps.Keys(o)) {
		names := strings.Fields(order)
		last := names[len(names)-1]
		if n := scheduled(order); depth > 0 && n > depth && slices.Contains(scheduler, bare(last)) {
			errs = append(errs, fmt.Errorf("a goroutine holds %d mutexes of the scheduler: %s: %s", n, order, o[order]))
		}
		for _, name := range names[:len(names)-1] {
			if bare(name) == bare(last) {
				if slices.Contains(nested, bare(last)) {
					continue
				}
				errs = append(errs, fmt.Errorf("a goroutine holds %s twice: %s: %s", bare(name), order, o[order]))
			} else if !strings.HasPrefix(last, "[") {
				if after[bare(name)] == nil {
					after[bare(name)] = map[string]string{}
				}
				after[bare(name)][last] = order + ": " + o[order]
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(after)) {
		if path := circle(after, name, name, map[string]bool{}); path != nil {
			errs = append(errs, fmt.Errorf("locked in a cycle: %s", strings.Join(append(path, name), " > ")))
		}
	}
	return errors.Join(errs...)
}

// circle returns a path of mutexes that begins with the mutex from. Each next mutex was locked
// while the one before it was held. The mutex to was locked while the path's last mutex was held.
// All mutexes of the path behind the first come after the mutex to in the alphabet, so that each
// circle is found once.
func circle(after map[string]map[string]string, from, to string, seen map[string]bool) []string {
	for _, next := range slices.Sorted(maps.Keys(after[from])) {
		if next == to {
			return []string{from}
		}
		if next < to || seen[next] {
			continue
		}
		seen[next] = true
		if path := circle(after, next, to, seen); path != nil {
			return append([]string{from}, path...)
		}
	}
	return nil
}
