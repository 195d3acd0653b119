package hipdriver

import (
	"go/ast"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/puregpu/puregpu/internal/testlib"
)

// makes matches the HIP functions that make or destroy objects.
var makes = regexp.MustCompile(`^hip(Event|Stream|Graph)(Create|Destroy)|^hipGraph(Add|Instantiate|ExecDestroy)|^hipDrvGraphAdd|` +
	`^hipModule(Load|Unload)|^hip(Host)?(Malloc|Free|Register|Unregister)|EnablePeerAccess$`)

// mayMake are the exceptions: functions that submitting methods may call.
var mayMake = map[string]map[string]string{
	"AllocAsync":  {"hipMallocFromPoolAsync": "its purpose; it names the pool and the stream"},
	"FreeAsync":   {"hipFreeAsync": "likewise, and HIP knows whose memory it is"},
	"LaunchGraph": {"hipEventCreateWithFlags": "one more event, with the device current, for an exec all of whose events are pending"},
}

// declared returns the functions and the imports of the Go files of a folder.
func declared(t *testing.T, dir string) (funcs map[string]*ast.FuncDecl, imports map[string]bool) {
	t.Helper()
	funcs, imports = map[string]*ast.FuncDecl{}, map[string]bool{}
	for _, file := range testlib.Parse(t, filepath.Join(dir, "*.go")) {
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.ImportSpec:
				imports[filepath.Base(strings.Trim(n.Path.Value, `"`))] = true
			case *ast.FuncDecl:
				funcs[n.Name.Name] = n
			}
			return true
		})
	}
	return funcs, imports
}

// TestSubmittingMakesNothing checks in the source code that submitting methods make no objects. HIP
// would make an object on the thread's current device, which need not be the method's device.
func TestSubmittingMakesNothing(t *testing.T) {
	c := regexp.MustCompile(`(?m)^C: (hip\w+), since`)
	native := map[string]string{} // C names of functions by method name of hip.Library
	bindings, _ := declared(t, "../../../hip")
	for name, fn := range bindings {
		if m := c.FindStringSubmatch(fn.Doc.Text()); m != nil {
			native[name] = m[1]
		}
	}
	if len(native) < 300 {
		t.Fatalf("%d methods of hip.Library", len(native))
	}
	own, imports := declared(t, ".")
	// reached collects in calls the HIP functions that a function calls, directly or through other
	// functions of the package.
	var reached func(name string, seen, calls map[string]bool)
	reached = func(name string, seen, calls map[string]bool) {
		fn := own[name]
		if fn == nil || fn.Body == nil || seen[name] {
			return
		}
		seen[name] = true
		var visit func(n ast.Node) bool
		visit = func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.SelectorExpr:
				x, _ := n.X.(*ast.SelectorExpr)
				id, _ := n.X.(*ast.Ident)
				switch {
				case x != nil && x.Sel.Name == "lib" || id != nil && id.Name == "lib":
					calls[native[n.Sel.Name]] = true
				case id == nil || !imports[id.Name]:
					reached(n.Sel.Name, seen, calls)
				}
				ast.Inspect(n.X, visit)
				return false
			case *ast.Ident:
				reached(n.Name, seen, calls)
			}
			return true
		}
		ast.Inspect(fn.Body, visit)
	}
	submitting := 0
	used := map[string]bool{}
	for _, name := range testlib.Submitting(t) {
		if own[name] == nil {
			continue
		}
		submitting++
		calls := map[string]bool{}
		reached(name, map[string]bool{}, calls)
		if len(calls) == 0 {
			t.Errorf("%s calls nothing", name)
		}
		for _, f := range slices.Sorted(maps.Keys(calls)) {
			if !makes.MatchString(f) {
				continue
			}
			used[name+" "+f] = true
			if mayMake[name][f] == "" {
				t.Errorf("%s is a submitting method, and calls %s", name, f)
			}
		}
	}
	if submitting < 13 {
		t.Errorf("%d submitting methods", submitting)
	}
	for name, fs := range mayMake {
		for f := range fs {
			if !used[name+" "+f] {
				t.Errorf("mayMake lists that %s may call %s, but the method does not call it", name, f)
			}
		}
	}
}
