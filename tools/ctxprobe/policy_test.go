package main

import (
	"encoding/json"
	"fmt"
	"go/ast"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/puregpu/puregpu/internal/testlib"
)

const (
	cudadriver   = "../../runtime/driver/cudadriver"
	tablePattern = "../../testdata/ctxprobe/cuda-*.json"
)

// bindings returns the exported C functions that the methods of cuda.Library call, by the methods'
// names.
func bindings(t *testing.T) map[string]string {
	t.Helper()
	c := regexp.MustCompile(`(?m)^C: (cu\w+), since`)
	names := map[string]string{}
	for _, f := range testlib.Parse(t, filepath.Join("../../cuda", "*.go")) {
		for _, d := range f.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv != nil {
				if m := c.FindStringSubmatch(fn.Doc.Text()); m != nil {
					names[fn.Name.Name] = m[1]
				}
			}
		}
	}
	if len(names) < 500 {
		t.Fatalf("%d methods of cuda.Library", len(names))
	}
	return names
}

// A function is a function of cudadriver, with the functions that it calls. A callee's value is
// true if the context is current in all calls of the callee: each call is in a function literal
// that is passed to a function that makes the context current.
type function struct {
	native map[string]bool // methods of cuda.Library
	own    map[string]bool // functions and methods of the package
}

// source returns the functions of cudadriver by name, and methods by their own names.
func source(t *testing.T) map[string]*function {
	t.Helper()
	all, guards := map[string]*function{}, map[string]bool{}
	files := testlib.Parse(t, filepath.Join(cudadriver, "*.go"))
	each := func(f func(file *ast.File, fn *ast.FuncDecl)) {
		for _, file := range files {
			for _, d := range file.Decls {
				if fn, ok := d.(*ast.FuncDecl); ok && fn.Body != nil {
					f(file, fn)
				}
			}
		}
	}
	each(func(_ *ast.File, fn *ast.FuncDecl) {
		ast.Inspect(fn.Body, func(n ast.Node) bool {
			if x, ok := n.(*ast.SelectorExpr); ok && ofLibrary(x.X) && x.Sel.Name == "CtxPushCurrent" {
				guards[fn.Name.Name] = true
			}
			return true
		})
	})
	each(func(file *ast.File, fn *ast.FuncDecl) {
		imported := map[string]bool{}
		for _, i := range file.Imports {
			imported[filepath.Base(strings.Trim(i.Path.Value, "\""))] = true
		}
		x := &function{native: map[string]bool{}, own: map[string]bool{}}
		note := func(in map[string]bool, name string, guarded bool) {
			if was, ok := in[name]; ok {
				guarded = guarded && was
			}
			in[name] = guarded
		}
		var walk func(n ast.Node, guarded bool)
		walk = func(n ast.Node, guarded bool) {
			ast.Inspect(n, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.SelectorExpr:
					if ofLibrary(n.X) {
						note(x.native, n.Sel.Name, guarded)
					}
				case *ast.CallExpr:
					name := ""
					switch f := n.Fun.(type) {
					case *ast.Ident:
						name = f.Name
					case *ast.SelectorExpr:
						if p, ok := f.X.(*ast.Ident); ok && !ofLibrary(p) && !imported[p.Name] {
							name = f.Sel.Name
						}
					}
					if name == "" {
						return true
					}
					note(x.own, name, guarded)
					if guards[name] {
						for _, a := range n.Args {
							walk(a, true)
						}
						return false
					}
				}
				return true
			})
		}
		walk(fn.Body, false)
		all[fn.Name.Name] = x
	})
	return all
}

// ofLibrary reports whether an expression is a *cuda.Library, which cudadriver always calls lib.
func ofLibrary(x ast.Expr) bool {
	switch x := x.(type) {
	case *ast.Ident:
		return x.Name == "lib"
	case *ast.SelectorExpr:
		return x.Sel.Name == "lib"
	}
	return false
}

// reach calls f for each native function that the function name of cudadriver may reach. The
// context is current in name if guarded is set. f is told whether the context is current at the
// native call.
func reach(all map[string]*function, name string, guarded bool, seen map[string]bool, f func(method string, guarded bool)) {
	x := all[name]
	if x == nil || seen[name] {
		return
	}
	seen[name] = true
	for m, g := range x.native {
		f(m, guarded || g)
	}
	for _, callee := range slices.Sorted(maps.Keys(x.own)) {
		reach(all, callee, guarded || x.own[callee], seen, f)
	}
}

// tables reads the stored tables.
func tables(t *testing.T) map[string]*Table {
	t.Helper()
	names, err := filepath.Glob(tablePattern)
	if err != nil || len(names) == 0 {
		t.Fatalf("no tables %s, %v", tablePattern, err)
	}
	all := map[string]*Table{}
	for _, name := range names {
		data, err := os.ReadFile(name)
		x := new(Table)
		if err == nil {
			err = json.Unmarshal(data, x)
		}
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		all[filepath.Base(name)] = x
	}
	return all
}

// TestTrials checks that there is a trial for each function that cudadriver calls, and for no
// other.
func TestTrials(t *testing.T) {
	c, called := bindings(t), map[string]bool{}
	for _, x := range source(t) {
		for m := range x.native {
			if c[m] != "" {
				called[c[m]] = true
			}
		}
	}
	if len(called) < 60 {
		t.Errorf("cudadriver calls %d functions only: %v", len(called), slices.Sorted(maps.Keys(called)))
	}
	tried := map[string]bool{}
	for _, x := range trials {
		if tried[x.name] {
			t.Errorf("%s is tried twice", x.name)
		}
		if tried[x.name] = true; !called[x.name] {
			t.Errorf("%s is tried, and cudadriver does not call it", x.name)
		}
	}
	for name := range called {
		if !tried[name] {
			t.Errorf("cudadriver calls %s, for which there is no trial", name)
		}
	}
}

// unmeasured lists functions that submitting methods call and that may be absent from a table that
// was written by hand.
var unmeasured = []string{"cuEventElapsedTime", "cuEventElapsedTime_v2"}

// uncounted lists functions that submitting methods call and that may be absent from tables without
// cases.
var uncounted = []string{"cuMemcpyPeerAsync"}

// TestPolicy checks that every submitting method of cudadriver calls only functions that need no
// context, or makes the context current first.
func TestPolicy(t *testing.T) {
	c, all, methods := bindings(t), source(t), testlib.Submitting(t)
	for _, name := range []string{"Record", "Query", "StreamWait", "Fill", "FillStrided", "Copy", "Upload", "Download", "Launch", "AllocAsync", "FreeAsync", "SetNode", "LaunchGraph", "Elapsed"} {
		if !slices.Contains(methods, name) {
			t.Errorf("%s is not documented to be submitting", name)
		}
	}
	// newer has the functions that need no context according to some table. Older tables may lack
	// these functions.
	newer := map[string]bool{}
	for _, table := range tables(t) {
		for _, r := range table.Rows {
			newer[r.Function] = newer[r.Function] || r.Answer == no
		}
	}
	for file, table := range tables(t) {
		answers := map[string]string{}
		for _, r := range table.Rows {
			answers[r.Function] = r.Answer
			switch {
			case r.Answer == no, r.Answer == crashes, strings.HasPrefix(r.Answer, yes), strings.HasPrefix(r.Answer, notTried):
			default:
				t.Errorf("%s: %s: no answer %q", file, r.Function, r.Answer)
			}
		}
		checked, guards := map[string]bool{}, map[string]bool{}
		for _, name := range methods {
			found := 0
			reach(all, name, false, map[string]bool{}, func(m string, guarded bool) {
				fn := c[m]
				if fn == "" || strings.HasPrefix(fn, "cuCtx") {
					// Skip methods that are no function of CUDA, and functions for the thread's
					// contexts, which need no context.
					return
				}
				found++
				answer, known := answers[fn]
				switch {
				case guarded:
					guards[fn] = true
				case !known && table.ByHand && slices.Contains(unmeasured, fn):
				case !known && len(table.Cases) == 0 && slices.Contains(uncounted, fn):
				case !known && newer[fn]:
				case strings.HasPrefix(answer, notTried) && strings.Contains(answer, "no such function"):
				case answer != no:
					t.Errorf("%s: %s calls %s without a context: %q", file, name, fn, answer)
				default:
					checked[fn] = true
				}
			})
			if found == 0 {
				t.Errorf("%s calls nothing of CUDA's", name)
			}
		}
		if len(checked) < 14 || !checked["cuLaunchKernel"] || !checked["cuEventRecord"] || !checked["cuMemcpyHtoDAsync_v2"] {
			t.Errorf("%s: checked are %v", file, slices.Sorted(maps.Keys(checked)))
		}
		// Check the test itself: this function is known to crash without a context, so cudadriver
		// must call it with one.
		if crash := "cuGraphExecKernelNodeSetParams_v2"; !guards[crash] || answers[crash] == no {
			t.Errorf("%s: %s is %q, and guarded are %v", file, crash, answers[crash], slices.Sorted(maps.Keys(guards)))
		}
		unsafe := 0
		reach(all, "setNode", false, map[string]bool{}, func(m string, guarded bool) {
			if fn := c[m]; !guarded && fn != "" && answers[fn] == crashes {
				unsafe++
			}
		})
		if unsafe == 0 {
			t.Error("nobody would notice if SetNode did without a context")
		}
	}
}

// kept lists methods that must not get memory of another device's pool if the calling device has no
// access to that pool. Package driver forbids such calls: the runtime copies this memory by
// CopyPeer, and refuses other uses of the memory.
var kept = []string{"Fill", "FillStrided", "Copy", "Upload", "Download", "Launch", "LaunchGraph", "Prefetch", "SetNode", "SetNodes"}

// breaches returns the calls of the driver that do not work according to a table: a function that
// crashes, or a wrong copy between devices.
func breaches(table *Table, methods []string, c map[string]string, all map[string]*function) (list []string) {
	for _, name := range methods {
		reach(all, name, false, map[string]bool{}, func(m string, guarded bool) {
			for _, x := range table.Cases {
				if x.Function != c[m] || x.barred() && slices.Contains(kept, name) {
					continue
				}
				outcome := x.Without
				if guarded {
					outcome = x.With
				}
				// CopyPeer may fail for host memory of pools: the runtime uses Copy there, because
				// NewPool gives all devices access.
				wrong := name == "CopyPeer" && outcome != right && !strings.HasPrefix(outcome, notTried) && !strings.Contains(x.Memory, "host pool")
				if outcome == crashes || wrong {
					list = append(list, fmt.Sprintf("%s calls %s, with a context %t, of %s: %s", name, x.Function, guarded, x.Memory, outcome))
				}
			}
		})
	}
	return list
}

// TestMemoryPolicy checks, with the cases of the tables, that the driver never passes memory to a
// function that crashes with it.
func TestMemoryPolicy(t *testing.T) {
	c, all, methods := bindings(t), source(t), testlib.Submitting(t)
	for _, name := range append([]string{"CopyPeer", "FreeAsync", "AllocAsync"}, kept...) {
		if !slices.Contains(methods, name) {
			t.Errorf("%s is not documented to be submitting", name)
		}
	}
	for file, table := range tables(t) {
		for _, x := range table.Cases {
			for _, outcome := range []string{x.Without, x.With} {
				if outcome == "" {
					t.Errorf("%s: %s: %s: no outcome", file, x.Function, x.Memory)
				}
			}
		}
		for _, breach := range breaches(table, methods, c, all) {
			t.Errorf("%s: %s", file, breach)
		}
	}
	// Check the test itself: breaches must find these cases.
	const refused = "CUDA_ERROR_INVALID_VALUE"
	for _, x := range []struct {
		c     Case
		found int
	}{
		{Case{"cuMemcpyAsync", "other default pool from default pool", crashes, refused}, 0},
		// Copy, Upload and Download call this function.
		{Case{"cuMemcpyAsync", "other memory from default pool", crashes, right}, 3},
		{Case{"cuMemsetD8Async", "other pool", crashes, refused}, 0},
		{Case{"cuMemsetD8Async", "managed", crashes, right}, 1},
		{Case{"cuMemFreeAsync", "other pool", crashes, right}, 1},
		{Case{"cuMemPrefetchAsync_v2", "managed", crashes, right}, 0},
		{Case{"cuMemcpyPeerAsync", "other default pool from default pool", crashes, right}, 1},
		{Case{"cuMemcpyPeerAsync", "other default pool from host", refused, right}, 1},
		{Case{"cuMemcpyPeerAsync", "other default pool from host pool", notTried + "no such pool", right}, 0},
		{Case{"cuMemcpyPeerAsync", "other default pool from memory", right, right}, 0},
	} {
		if list := breaches(&Table{Cases: []Case{x.c}}, methods, c, all); len(list) != x.found {
			t.Errorf("of %+v is found: %q", x.c, list)
		}
	}
}
